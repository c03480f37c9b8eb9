//! The C library's own functions behind our hooks.
//!
//! What is not accelerated goes to them and not straight to the kernel, so that threads can be cancelled in them, and
//! everything else that the C library does stays as it was. They are resolved when the library is loaded; a hook that
//! is called before that resolves its own (looking up a symbol that exists neither allocates nor fails).

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{
    FILE, clockid_t, epoll_event, fd_set, iovec, mmsghdr, msghdr, nfds_t, off_t, pid_t, pollfd, sigset_t, size_t,
    sockaddr, socklen_t, ssize_t, timespec, timeval, useconds_t,
};

/// Stands in for a function that this C library does not have.
unsafe extern "C-unwind" fn missing() -> c_long {
    super::raw::set_errno(libc::ENOSYS);
    -1
}

#[cold]
fn resolve(slot: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    // SAFETY: the name ends with zero; the answer is a function of that name or null.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    let found = if found.is_null() { missing as *mut c_void } else { found };
    slot.store(found, Ordering::Relaxed);
    found
}

macro_rules! real {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        mod slots {
            use super::{AtomicPtr, c_void};
            $(#[allow(non_upper_case_globals)] pub static $name: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());)*
        }

        $(
            /// # Safety
            /// As the function of this name in the C library.
            #[allow(non_snake_case)]
            #[inline]
            pub unsafe fn $name($($argument: $type),*) -> $answer {
                let mut at = slots::$name.load(Ordering::Relaxed);
                if at.is_null() {
                    at = resolve(&slots::$name, name_of(concat!(stringify!($name), "\0")));
                }
                // SAFETY: a function of this name has this type; the one that stands in answers -1 in the same
                // register.
                unsafe {
                    std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($type),*) -> $answer>(at)($($argument),*)
                }
            }
        )*

        /// Resolves them all.
        pub fn resolve_all() {
            $(resolve(&slots::$name, name_of(concat!(stringify!($name), "\0")));)*
        }
    };
}

fn name_of(text: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(text.as_bytes()).unwrap_or_default()
}

type Words = *const *const c_char;

real! {
    socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int;
    connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    listen(fd: c_int, backlog: c_int) -> c_int;
    shutdown(fd: c_int, how: c_int) -> c_int;
    getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int;
    setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t) -> c_int;
    read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t;
    write(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t;
    readv(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t;
    writev(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t;
    preadv2(fd: c_int, pieces: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
    pwritev2(fd: c_int, pieces: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
    recv(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int) -> ssize_t;
    send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t;
    recvfrom(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int, address: *mut sockaddr, size: *mut socklen_t) -> ssize_t;
    sendto(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int, address: *const sockaddr, size: socklen_t) -> ssize_t;
    recvmsg(fd: c_int, header: *mut msghdr, flags: c_int) -> ssize_t;
    sendmsg(fd: c_int, header: *const msghdr, flags: c_int) -> ssize_t;
    recvmmsg(fd: c_int, headers: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec) -> c_int;
    sendmmsg(fd: c_int, headers: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int;
    sendfile(out: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t;
    splice(from: c_int, offset_from: *mut i64, to: c_int, offset_to: *mut i64, length: size_t, flags: c_uint) -> ssize_t;
    close(fd: c_int) -> c_int;
    closefrom(first: c_int) -> ();
    syscall(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long;
    close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    dup(fd: c_int) -> c_int;
    dup2(fd: c_int, to: c_int) -> c_int;
    dup3(fd: c_int, to: c_int, flags: c_int) -> c_int;
    fcntl(fd: c_int, command: c_int, argument: usize) -> c_int;
    ioctl(fd: c_int, request: usize, argument: usize) -> c_int;
    fdopen(fd: c_int, mode: *const c_char) -> *mut FILE;
    vdprintf(fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int;
    select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval) -> c_int;
    pselect(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int;
    ppoll(fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    epoll_create(size: c_int) -> c_int;
    epoll_create1(flags: c_int) -> c_int;
    epoll_ctl(set: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int;
    epoll_pwait(set: c_int, events: *mut epoll_event, count: c_int, timeout: c_int, mask: *const sigset_t) -> c_int;
    pthread_testcancel() -> ();
    epoll_pwait2(set: c_int, events: *mut epoll_event, count: c_int, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    nanosleep(time: *const timespec, rest: *mut timespec) -> c_int;
    clock_nanosleep(clock: clockid_t, flags: c_int, time: *const timespec, rest: *mut timespec) -> c_int;
    usleep(time: useconds_t) -> c_int;
    pause() -> c_int;
    fork() -> pid_t;
    _Fork() -> pid_t;
    execve(path: *const c_char, arguments: Words, environment: Words) -> c_int;
    execvpe(path: *const c_char, arguments: Words, environment: Words) -> c_int;
    fexecve(fd: c_int, arguments: Words, environment: Words) -> c_int;
    execveat(directory: c_int, path: *const c_char, arguments: Words, environment: Words, flags: c_int) -> c_int;
    posix_spawn(pid: *mut pid_t, path: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Words, environment: Words) -> c_int;
    posix_spawnp(pid: *mut pid_t, file: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: Words, environment: Words) -> c_int;
    posix_spawn_file_actions_adddup2(actions: *mut c_void, fd: c_int, to: c_int) -> c_int;
    system(command: *const c_char) -> c_int;
    popen(command: *const c_char, kind: *const c_char) -> *mut FILE;
    sigaction(signal: c_int, new: *const c_void, old: *mut c_void) -> c_int;
    signal(signal: c_int, handler: usize) -> usize;
    sysv_signal(signal: c_int, handler: usize) -> usize;
    siginterrupt(signal: c_int, flag: c_int) -> c_int;
}

/// Where the C library's function of this name is; an address that answers -1 if it has none.
pub fn address_of(name: &CStr) -> usize {
    // SAFETY: the name ends with zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if found.is_null() { missing as *const () as usize } else { found as usize }
}
