//! System calls of the library itself, by the instruction: they meet no hook, touch no `errno` and never lock in libc.

use std::ffi::{CStr, c_int};

use libc::{c_long, iovec, pollfd, timespec};
pub use weft_kernel::{
    call, close, cookie, now as now_ns, option, out_of_the_way, process, set_option, unmap, user, yield_core,
};

/// The error of a system call: a number of `errno.h`.
pub type Errno = c_int;

fn checked(answer: isize) -> Result<usize, Errno> {
    if (-4095..0).contains(&answer) { Err(-answer as Errno) } else { Ok(answer as usize) }
}

/// A system call with up to six arguments, as a result.
macro_rules! kernel {
    ($number:expr $(, $argument:expr)*) => { checked(call($number, padded([$($argument as usize),*]))) };
}

fn padded<const N: usize>(given: [usize; N]) -> [usize; 6] {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&given);
    all
}

/// Sends the pieces of `iov` as one `sendmsg`.
pub fn send_pieces(fd: c_int, iov: &[iovec], flags: c_int) -> Result<usize, Errno> {
    // SAFETY: a header of zeros is an empty one; the kernel checks what `iov` points to and answers EFAULT.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = iov.as_ptr().cast_mut();
        header.msg_iovlen = iov.len() as _;
        kernel!(libc::SYS_sendmsg, fd, &raw const header, flags)
    }
}

/// `sendmsg`.
///
/// # Safety
/// The header and all that it points at live across the call.
pub unsafe fn send_message(fd: c_int, header: &libc::msghdr, flags: c_int) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    unsafe { kernel!(libc::SYS_sendmsg, fd, header as *const libc::msghdr, flags) }
}

/// `sendfile` from a position.
pub fn send_file(fd: c_int, file: c_int, mut at: i64, count: usize) -> Result<usize, Errno> {
    // SAFETY: the position lives across the call.
    unsafe { kernel!(libc::SYS_sendfile, fd, file, &raw mut at, count) }
}

/// Receives into the pieces of `iov` as one `recvmsg`.
pub fn receive_pieces(fd: c_int, iov: &[iovec], flags: c_int) -> Result<usize, Errno> {
    // SAFETY: as in `send_pieces`.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = iov.as_ptr().cast_mut();
        header.msg_iovlen = iov.len() as _;
        kernel!(libc::SYS_recvmsg, fd, &raw mut header, flags)
    }
}

/// Sends `bytes` without waiting and without a signal.
pub fn send_now(fd: c_int, bytes: &[u8]) -> Result<usize, Errno> {
    let piece = iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    send_pieces(fd, &[piece], libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
}

/// What the kernel would say to a receiver now, taking nothing: a number of bytes (0: the end), or an error.
pub fn look(fd: c_int) -> Result<usize, Errno> {
    let mut byte = 0u8;
    let piece = iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    receive_pieces(fd, &[piece], libc::MSG_DONTWAIT | libc::MSG_PEEK)
}

/// Waits for descriptors. `timeout` `None` is for ever; `mask` is the signal mask meanwhile, 0 for the present one.
pub fn poll(fds: &mut [pollfd], timeout_ns: Option<u64>, mask: Option<u64>) -> Result<usize, Errno> {
    let time = timeout_ns.map(timespec_of);
    let time = time.as_ref().map_or(std::ptr::null(), |time| time as *const timespec);
    let mask = mask.as_ref().map_or(std::ptr::null(), |mask| mask as *const u64);
    // SAFETY: slice, time and mask live across the call.
    unsafe { kernel!(libc::SYS_ppoll, fds.as_mut_ptr(), fds.len(), time, mask, 8) }
}

/// What is ready of `events` on one descriptor now.
pub fn poll_one(fd: c_int, events: i16) -> i16 {
    let mut one = [pollfd { fd, events, revents: 0 }];
    match poll(&mut one, Some(0), None) {
        Ok(_) => one[0].revents,
        Err(_) => 0,
    }
}

pub fn timespec_of(ns: u64) -> timespec {
    timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// The same as `poll` has it: never shorter, -1 for ever.
pub fn milliseconds_of(left_ns: Option<u64>) -> c_int {
    left_ns.map_or(-1, |ns| ns.div_ceil(1_000_000).min(c_int::MAX as u64) as c_int)
}

/// One of `getsockname` and `getpeername`, by number.
pub fn name(call_number: c_long, fd: c_int) -> Result<libc::sockaddr_storage, Errno> {
    // SAFETY: zeros are a valid address of no family; the kernel writes at most `length` bytes.
    unsafe {
        let mut address: libc::sockaddr_storage = std::mem::zeroed();
        let mut length = size_of_val(&address) as libc::socklen_t;
        kernel!(call_number, fd, &raw mut address, &raw mut length)?;
        Ok(address)
    }
}

/// `ioctl` that answers one number.
pub fn ioctl_number(fd: c_int, request: u64) -> Result<c_int, Errno> {
    let mut number: c_int = 0;
    // SAFETY: the requests used here write one int.
    unsafe { kernel!(libc::SYS_ioctl, fd, request, &raw mut number) }?;
    Ok(number)
}

/// `fcntl` with a number as argument.
pub fn fcntl(fd: c_int, command: c_int, argument: usize) -> Result<usize, Errno> {
    // SAFETY: the commands used here take a number.
    unsafe { kernel!(libc::SYS_fcntl, fd, command, argument) }
}

pub fn shutdown(fd: c_int, how: c_int) -> Result<usize, Errno> {
    // SAFETY: numbers only.
    unsafe { kernel!(libc::SYS_shutdown, fd, how) }
}

/// Memory of zeros that is not there before it is touched; `shared` is shared with children. Null when there is none.
pub fn map(bytes: usize, shared: bool) -> *mut u8 {
    let made = if shared { weft_kernel::map_shared(None, bytes) } else { weft_kernel::map_private(bytes) };
    made.unwrap_or(std::ptr::null_mut())
}

/// Makes closing this descriptor reset its connection. Answers what closing it did before.
pub fn reset_when_closed(fd: c_int) -> Option<libc::linger> {
    let nothing = libc::linger { l_onoff: 0, l_linger: 0 };
    let before = option(fd, libc::SOL_SOCKET, libc::SO_LINGER, nothing).ok();
    set_linger(fd, libc::linger { l_onoff: 1, l_linger: 0 });
    before
}

pub fn set_linger(fd: c_int, linger: libc::linger) {
    let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_LINGER, linger);
}

/// Undoes a connection: its other side is reset, and every later call says that there is none.
pub fn disconnect(fd: c_int) -> Result<usize, Errno> {
    let nowhere = libc::sockaddr { sa_family: libc::AF_UNSPEC as u16, sa_data: [0; 14] };
    // SAFETY: the address lives across the call.
    unsafe { kernel!(libc::SYS_connect, fd, &raw const nowhere, size_of::<libc::sockaddr>()) }
}

/// Two ends of a new connection between two addresses of this host, ports aside, with as much of `room` as may be. Both
/// close on exec.
pub fn connected_pair(
    near: &libc::sockaddr_storage,
    far: &libc::sockaddr_storage,
    room: c_int,
) -> Option<(c_int, c_int)> {
    let listener = bound(far, room)?;
    let made = bound(near, room).and_then(|near| match connect_to_own(near, listener) {
        Some(far) => Some((near, far)),
        None => {
            close(near);
            None
        }
    });
    close(listener);
    made
}

/// Connects `near` to `listener`; the other end, if it is that.
fn connect_to_own(near: c_int, listener: c_int) -> Option<c_int> {
    // SAFETY: the addresses live across the calls; null pointers ask for none.
    unsafe {
        kernel!(libc::SYS_listen, listener, 1).ok()?;
        let name = name(libc::SYS_getsockname, listener).ok()?;
        kernel!(libc::SYS_connect, near, &raw const name, length_of(&name)).ok()?;
        let far = kernel!(libc::SYS_accept4, listener, 0, 0, libc::SOCK_CLOEXEC).ok()? as c_int;
        let ours = super::kernel_counts::ends(near).zip(super::kernel_counts::ends(far));
        if ours.is_some_and(|((here, there), (its_here, its_there))| here == its_there && there == its_here) {
            return Some(far);
        }
        close(far);
    }
    None
}

fn length_of(name: &libc::sockaddr_storage) -> usize {
    if c_int::from(name.ss_family) == libc::AF_INET { size_of::<libc::sockaddr_in>() } else { size_of_val(name) }
}

/// A socket that is bound to this address, and any port.
fn bound(name: &libc::sockaddr_storage, room: c_int) -> Option<c_int> {
    let mut name = *name;
    // SAFETY: the address lives across the calls, and is large enough for both families, whose ports lie at one place.
    unsafe {
        (*(&raw mut name).cast::<libc::sockaddr_in>()).sin_port = 0;
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        let fd = kernel!(libc::SYS_socket, c_int::from(name.ss_family), kind, 0).ok()? as c_int;
        let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, room);
        let _ = set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, room);
        if kernel!(libc::SYS_bind, fd, &raw const name, length_of(&name)).is_err() {
            close(fd);
            return None;
        }
        Some(fd)
    }
}

/// Makes `to` another descriptor of the file that `fd` is.
pub fn copy_onto(fd: c_int, to: c_int, flags: c_int) -> Result<usize, Errno> {
    // SAFETY: numbers only.
    unsafe { kernel!(libc::SYS_dup3, fd, to, flags) }
}

/// Sets the signal mask of this thread; answers the one before.
pub fn signal_mask(mask: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: both places live across the call, 8 bytes are the kernel's size of a set.
    let _ = unsafe { kernel!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, &raw mut before, 8) };
    before
}

/// Sends a signal to the calling thread.
pub fn raise(signal: c_int) {
    // SAFETY: numbers only.
    let _ = unsafe { kernel!(libc::SYS_tgkill, process(), weft_kernel::thread(), signal) };
}

/// Sends a signal to a process.
pub fn kill(process: c_int, signal: c_int) {
    // SAFETY: numbers only.
    let _ = unsafe { kernel!(libc::SYS_kill, process, signal) };
}

pub fn write(fd: c_int, bytes: &[u8]) {
    // SAFETY: the slice lives across the call.
    let _ = unsafe { kernel!(libc::SYS_write, fd, bytes.as_ptr(), bytes.len()) };
}

/// `write`; the kernel raises SIGPIPE where it answers EPIPE.
pub fn write_some(fd: c_int, bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: the slice lives across the call.
    unsafe { kernel!(libc::SYS_write, fd, bytes.as_ptr(), bytes.len()) }
}

/// `read`.
pub fn read_some(fd: c_int, into: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the slice lives across the call.
    unsafe { kernel!(libc::SYS_read, fd, into.as_mut_ptr(), into.len()) }
}

pub fn read_at(fd: c_int, into: &mut [u8], offset: i64) -> Result<usize, Errno> {
    // SAFETY: the slice lives across the call.
    unsafe { kernel!(libc::SYS_pread64, fd, into.as_mut_ptr(), into.len(), offset) }
}

pub fn seek(fd: c_int, offset: i64, whence: c_int) -> Result<usize, Errno> {
    // SAFETY: numbers only.
    unsafe { kernel!(libc::SYS_lseek, fd, offset, whence) }
}

pub fn epoll_control(set: c_int, operation: c_int, fd: c_int, event: &mut libc::epoll_event) -> Result<usize, Errno> {
    // SAFETY: the event lives across the call.
    unsafe { kernel!(libc::SYS_epoll_ctl, set, operation, fd, event as *mut libc::epoll_event) }
}

/// What a set of the kernel has now, without waiting; signals that `mask` allows are let through.
pub fn epoll_look(set: c_int, events: &mut [libc::epoll_event], mask: *const libc::sigset_t) -> Result<usize, Errno> {
    // SAFETY: the slice lives across the call; the mask is the program's own.
    unsafe { kernel!(libc::SYS_epoll_pwait, set, events.as_mut_ptr(), events.len(), 0, mask, 8) }
}

/// How the process treats a signal: its handler (0 default, 1 ignored) and its flags.
pub fn signal_action(signal: c_int) -> Option<(usize, u64)> {
    // The kernel's own layout: handler, flags, then words that do not matter here.
    let mut action = [0u64; 4];
    // SAFETY: the kernel writes its structure of 32 bytes.
    unsafe { kernel!(libc::SYS_rt_sigaction, signal, 0, action.as_mut_ptr(), 8) }.ok()?;
    Some((action[0] as usize, action[1]))
}

/// A cheap clock of unknown unit, a few billions to tens of millions a second.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a counter.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    now_ns()
}

/// `errno` of the C library.
pub fn set_errno(error: Errno) {
    // SAFETY: the place of this thread.
    unsafe { *libc::__errno_location() = error };
}

pub fn errno() -> Errno {
    // SAFETY: the place of this thread.
    unsafe { *libc::__errno_location() }
}

/// Keeps `errno` over calls into the fabric, which may set it.
#[derive(Debug)]
pub struct KeepErrno(Errno);

impl KeepErrno {
    pub fn new() -> Self {
        Self(errno())
    }
}

impl Drop for KeepErrno {
    fn drop(&mut self) {
        set_errno(self.0);
    }
}

/// Whether this thread runs on a stack that it has set aside for signal handlers.
pub fn on_other_stack() -> bool {
    let mut stack = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    // SAFETY: the kernel writes its structure.
    let _ = unsafe { kernel!(libc::SYS_sigaltstack, 0, &raw mut stack) };
    stack.ss_flags & libc::SS_ONSTACK != 0
}

/// The signals that wait for this thread or process.
pub fn pending_signals() -> u64 {
    let mut pending = 0u64;
    // SAFETY: the kernel writes 8 bytes.
    let _ = unsafe { kernel!(libc::SYS_rt_sigpending, &raw mut pending, 8) };
    pending
}

/// A new descriptor that is readable when any signal is pending.
pub fn signal_descriptor() -> Option<c_int> {
    let all = u64::MAX;
    let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
    // SAFETY: the mask lives across the call.
    let made = unsafe { kernel!(libc::SYS_signalfd4, -1i32, &raw const all, 8, flags) };
    made.ok().map(|fd| out_of_the_way(fd as c_int))
}

/// What a symbolic link of /proc that names a namespace says; zeros behind it.
pub fn read_link(path: &CStr) -> Result<[u8; 64], Errno> {
    let mut name = [0u8; 64];
    // SAFETY: a C string, and a place of the length said.
    unsafe { kernel!(libc::SYS_readlinkat, libc::AT_FDCWD, path.as_ptr(), name.as_mut_ptr(), name.len()) }?;
    Ok(name)
}

/// Ends the process.
pub fn exit(status: c_int) -> ! {
    loop {
        // SAFETY: a number.
        unsafe { call(libc::SYS_exit_group, padded([status as usize])) };
    }
}
