//! The system calls of waiting and copying, each in its thinnest safe form.

use crate::kernel::{self, Descriptor, system_call};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

pub use crate::kernel::{FileIdentity, now as now_ns, yield_core};

/// A clock that is cheaper to read, for short spans that need not be exact: it has one to four ticks in a nanosecond,
/// or on machines with a slow one fewer.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a counter that every such processor has.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    now_ns()
}

/// Cores of the machine.
pub fn online_cores() -> u32 {
    // SAFETY: asks a number.
    (unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).max(1) as u32
}

/// Runs `what`, such as the start of a thread, which inherits that, with all signals held back in this thread.
#[cfg(not(loom))]
pub fn without_signals<R>(what: impl FnOnce() -> R) -> R {
    // SAFETY: sets of signals, for which zeros are a value; they live across the calls.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let answer = what();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        answer
    }
}

/// Has this thread run soon when it is woken, also where its core computes: it asks for short turns, and timers that
/// are not late. Kernels before 6.12 know no lengths of turns, and nothing changes there.
pub fn take_short_turns() {
    const TURN_NS: u64 = 100_000;
    // SAFETY: numbers only, for which zeros are a value; they live across the calls.
    unsafe {
        let mut how: libc::sched_attr = std::mem::zeroed();
        let size = size_of_val(&how);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        if libc::syscall(libc::SYS_sched_getattr, 0, &raw mut how, size, 0) == 0 {
            how.sched_runtime = TURN_NS;
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const how, 0);
        }
    }
}

/// How often the kernel has given this thread's core to another one while it could have gone on, [`yield_core`]
/// included.
pub fn involuntary_switches() -> u64 {
    // SAFETY: numbers only, for which zeros are a value; it lives across the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nivcsw as u64
    }
}

fn attach(call: libc::c_long, pid: i32, local: *const u8, remote: u64, length: usize) -> io::Result<usize> {
    let here = libc::iovec { iov_base: local as *mut libc::c_void, iov_len: length };
    let there = libc::iovec { iov_base: remote as *mut libc::c_void, iov_len: length };
    // SAFETY: the kernel checks both ranges and answers EFAULT where they are not mapped.
    unsafe { system_call!(call, pid, &raw const here, 1, &raw const there, 1, 0) }
}

fn attach_all(call: libc::c_long, pid: i32, local: *const u8, remote: u64, length: usize) -> io::Result<()> {
    let mut done = 0;
    while done < length {
        // SAFETY: done < length, inside the caller's range.
        let at = unsafe { local.add(done) };
        match attach(call, pid, at, remote.wrapping_add(done as u64), length - done)? {
            0 => return Err(io::Error::from_raw_os_error(libc::EFAULT)),
            n => done += n,
        }
    }
    Ok(())
}

/// Copies from the memory of process `pid`.
///
/// # Safety
/// `to` is writable for `length` bytes and nobody reads it meanwhile.
pub unsafe fn copy_from_process(pid: i32, from: u64, to: *mut u8, length: usize) -> io::Result<()> {
    attach_all(libc::SYS_process_vm_readv, pid, to, from, length)
}

/// Copies into the memory of process `pid`, which has asked for it.
///
/// # Safety
/// `from` is readable for `length` bytes.
pub unsafe fn copy_to_process(pid: i32, from: *const u8, to: u64, length: usize) -> io::Result<()> {
    attach_all(libc::SYS_process_vm_writev, pid, from, to, length)
}

/// Pieces that go with one call; more of them make none of them cheaper.
const PIECES: usize = 64;

/// Copies bytes that lie side by side to places of process `pid`, which has asked for it: each an address and a length.
///
/// # Safety
/// `from` is readable for the bytes of all places.
pub unsafe fn scatter_to_process(
    pid: i32,
    from: *const u8,
    places: impl Iterator<Item = (u64, usize)>,
) -> io::Result<()> {
    attach_many(libc::SYS_process_vm_writev, pid, from, places)
}

/// Brings the bytes of places of process `pid` side by side: each an address and a length.
///
/// # Safety
/// `to` is writable for the bytes of all places and nobody reads it meanwhile.
pub unsafe fn gather_from_process(pid: i32, places: impl Iterator<Item = (u64, usize)>, to: *mut u8) -> io::Result<()> {
    attach_many(libc::SYS_process_vm_readv, pid, to, places)
}

fn attach_many(
    call: libc::c_long,
    pid: i32,
    mut local: *const u8,
    mut places: impl Iterator<Item = (u64, usize)>,
) -> io::Result<()> {
    let mut there = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PIECES];
    loop {
        let (mut count, mut bytes) = (0, 0);
        for (piece, (at, length)) in there.iter_mut().zip(&mut places) {
            *piece = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: length };
            (count, bytes) = (count + 1, bytes + length);
        }
        if count == 0 {
            return Ok(());
        }
        attach_pieces(call, pid, (local, bytes), &there[..count])?;
        local = local.wrapping_add(bytes);
    }
}

fn attach_pieces(
    call: libc::c_long,
    pid: i32,
    (local, bytes): (*const u8, usize),
    there: &[libc::iovec],
) -> io::Result<()> {
    let here = libc::iovec { iov_base: local as *mut libc::c_void, iov_len: bytes };
    // SAFETY: the kernel checks all ranges and answers EFAULT where they are not mapped.
    let done = unsafe { system_call!(call, pid, &raw const here, 1, there.as_ptr(), there.len(), 0) };
    if done.is_ok_and(|done| done == bytes) {
        return Ok(());
    }
    // What one call could not do in whole is done piece by piece, or says why not.
    let mut at = local;
    for piece in there {
        attach_all(call, pid, at, piece.iov_base as u64, piece.iov_len)?;
        at = at.wrapping_add(piece.iov_len);
    }
    Ok(())
}

/// Lets processes of the same user attach where Yama restricts it to ancestors. Harmless where it does not exist.
pub fn allow_attach() {
    // SAFETY: sets a flag of this process.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

/// Whether the kernel lets this process use cross-memory attach at all (a sandbox may forbid the call).
pub fn attach_works() -> io::Result<()> {
    let source = 0x5745_4654u64;
    let mut target = 0u64;
    // SAFETY: both places are on our stack.
    unsafe {
        copy_from_process(std::process::id() as i32, &raw const source as u64, (&raw mut target).cast(), 8)?;
    }
    if target == source { Ok(()) } else { Err(io::Error::other("the copy differs")) }
}

/// The number of the namespace that our process ids belong to.
pub fn pid_namespace() -> Option<u32> {
    u32::try_from(std::fs::metadata("/proc/self/ns/pid").ok()?.ino()).ok()
}

/// Whether no process of this id runs any more. One that has ended and was not collected by its parent is none.
pub fn process_has_ended(pid: i32) -> bool {
    pid > 0 && !kernel::is_alive(pid as u32)
}

/// What an inherited descriptor must lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherited {
    Socket,
    /// Memory that can be sealed.
    Memory,
    /// A socket, or a tap device.
    Sender,
}

/// The device of all tap devices, as every Linux has it.
const TAP: libc::dev_t = libc::makedev(10, 200);

/// From now on nothing that is asked of the descriptor waits.
pub fn set_nonblocking(descriptor: &impl AsFd) -> io::Result<()> {
    let number = descriptor.as_fd().as_raw_fd();
    let flags = kernel::control(number, libc::F_GETFL, 0)?;
    kernel::control(number, libc::F_SETFL, flags | libc::O_NONBLOCK).map(drop)
}

/// Whether nothing that is asked of the descriptor waits.
///
/// # Errors
/// It is not open.
pub fn is_nonblocking(descriptor: &impl AsFd) -> io::Result<bool> {
    let flags = kernel::control(descriptor.as_fd().as_raw_fd(), libc::F_GETFL, 0)?;
    Ok(flags & libc::O_NONBLOCK != 0)
}

/// Whether this host has the address: only then a socket can have it, unless the site lets sockets have any
/// (`ip_nonlocal_bind`). Then it must be the one by which this host talks to it, which a second one of an interface is
/// not.
pub fn is_own_address(address: std::net::IpAddr) -> bool {
    let taken = std::net::UdpSocket::bind((address, 0));
    let version = if address.is_ipv4() { "ipv4" } else { "ipv6" };
    let setting = std::fs::read_to_string(format!("/proc/sys/net/{version}/ip_nonlocal_bind")).unwrap_or_default();
    taken.is_ok() && (setting.trim() != "1" || talks_to_itself(address).unwrap_or(false))
}

fn talks_to_itself(address: std::net::IpAddr) -> io::Result<bool> {
    /// Nothing is sent there.
    const DISCARD: u16 = 9;
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = std::net::UdpSocket::bind(any)?;
    socket.connect((address, DISCARD))?;
    Ok(socket.local_addr()?.ip() == address)
}

/// Lets as many wait at a listener as the kernel allows. The standard library asks for 128, and who comes beyond that
/// tries again after a second, or gives up.
///
/// # Errors
/// It is no listener.
pub fn lengthen_queue(listener: &impl AsFd) -> io::Result<()> {
    // SAFETY: a number of a descriptor that lives across the call.
    match unsafe { libc::listen(listener.as_fd().as_raw_fd(), libc::SOMAXCONN) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes over a descriptor whose number the process was told at its start, and keeps it from being inherited further.
/// A number that is not open, or leads to something else, is an error and is left alone.
///
/// # Errors
/// `NotFound` when it is not open, `InvalidInput` when it is of another kind.
pub fn adopt(number: RawFd, kind: Inherited) -> io::Result<OwnedFd> {
    let stat = kernel::stat(number).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it is not open"))?;
    let [is_socket, is_device] = [libc::S_IFSOCK, libc::S_IFCHR].map(|kind| stat.st_mode & libc::S_IFMT == kind);
    let (fits, name) = match kind {
        Inherited::Socket => (is_socket, "it is not a socket"),
        Inherited::Sender => (is_socket || is_device && stat.st_rdev == TAP, "it is neither a socket nor a tap device"),
        Inherited::Memory => (kernel::control(number, libc::F_GET_SEALS, 0).is_ok(), "it is not sealed memory"),
    };
    if !fits {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, name));
    }
    kernel::control(number, libc::F_SETFD, libc::FD_CLOEXEC)?;
    // What is found is of the kind that the launcher passes on for us alone: nobody else in this process owns it.
    Ok(Descriptor::own(number).into())
}

/// Writes all of `bytes`. A peer that is gone is an error and no signal.
pub fn send_all(stream: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: pointer and length describe `bytes`.
        let sent = unsafe { libc::send(stream.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
        match usize::try_from(sent) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error if error.kind() == io::ErrorKind::WouldBlock => {
                    wait_for(stream.as_raw_fd(), libc::POLLOUT, None)?;
                }
                error => return Err(error),
            },
        }
    }
    Ok(())
}

/// Waits until something can be read (or the end has come), at most for `limit`; false when it has passed.
pub fn wait_readable(descriptor: &impl AsFd, limit: Duration) -> io::Result<bool> {
    wait_for(descriptor.as_fd().as_raw_fd(), libc::POLLIN, Some(limit))
}

/// Waits for what `poll` calls `events`, whatever signals come; false when `limit` has passed.
fn wait_for(descriptor: RawFd, events: i16, limit: Option<Duration>) -> io::Result<bool> {
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        match kernel::await_events(descriptor, events, left)? {
            0 if left.is_some_and(|left| left.is_zero()) => return Ok(false),
            0 => {}
            _ => return Ok(true),
        }
    }
}

/// Waits until the reader of the pipe behind descriptor `number` has taken all that was written, at most for `limit`.
/// Anything but a pipe is not waited for.
pub fn wait_drained(number: RawFd, limit: Duration) {
    let end = Instant::now() + limit;
    while in_pipe(number) > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Bytes in the pipe behind a descriptor, 0 for anything else.
fn in_pipe(number: RawFd) -> i32 {
    let mut bytes = 0;
    let is_pipe = kernel::stat(number).is_some_and(|stat| stat.st_mode & libc::S_IFMT == libc::S_IFIFO);
    // SAFETY: a valid place for the answer.
    let asked = unsafe { system_call!(libc::SYS_ioctl, number, libc::FIONREAD, &raw mut bytes) };
    if is_pipe && asked.is_ok() { bytes } else { 0 }
}

/// What a descriptor leads to; `None` if it is not open.
pub fn identity(descriptor: BorrowedFd<'_>) -> Option<FileIdentity> {
    kernel::identity(descriptor.as_raw_fd())
}

/// Ends the process at once: no exit handler of the program runs.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: no preconditions.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_from_an_unmapped_place_is_an_error() {
        let mut target = [0u8; 16];
        let me = std::process::id() as i32;
        // SAFETY: the target is ours.
        let answer = unsafe { copy_from_process(me, 16, target.as_mut_ptr(), 16) };
        assert_eq!(answer.expect_err("page zero").raw_os_error(), Some(libc::EFAULT));
    }

    #[test]
    fn only_what_the_launcher_passes_on_is_adopted() {
        assert_eq!(adopt(1 << 20, Inherited::Socket).expect_err("not open").kind(), io::ErrorKind::NotFound);
        let file = std::fs::File::open("/proc/self/exe").expect("open");
        for kind in [Inherited::Socket, Inherited::Memory, Inherited::Sender] {
            let error = adopt(file.as_raw_fd(), kind).expect_err("a file");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
        let device = std::fs::File::open("/dev/null").expect("open");
        assert!(adopt(device.as_raw_fd(), Inherited::Sender).is_err(), "another device");
        file.metadata().expect("the file was left open");
        let (ours, _theirs) = UnixStream::pair().expect("pair");
        let number = OwnedFd::from(ours);
        let number = std::mem::ManuallyDrop::new(number).as_raw_fd();
        assert_eq!(adopt(number, Inherited::Socket).expect("a socket").as_raw_fd(), number);
    }

    #[test]
    fn a_pipe_is_drained_when_its_reader_has_taken_all() {
        use std::io::{Read, Write};
        let (mut reader, mut writer) = io::pipe().expect("pipe");
        writer.write_all(b"abc").expect("room");
        assert_eq!((in_pipe(writer.as_raw_fd()), in_pipe(-1)), (3, 0));
        wait_drained(writer.as_raw_fd(), Duration::ZERO);
        let drainer = std::thread::spawn(move || reader.read_exact(&mut [0; 3]).map(|()| reader));
        wait_drained(writer.as_raw_fd(), Duration::from_secs(20));
        assert_eq!(in_pipe(writer.as_raw_fd()), 0);
        drainer.join().expect("no panic").expect("read");
    }

    #[test]
    fn the_clock_does_not_run_backwards() {
        let a = now_ns();
        assert!(now_ns() >= a);
    }
}
