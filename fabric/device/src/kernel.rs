//! System calls without the C library: for code that lives in a process whose C library's calls are ours, too.
//!
//! A call of `libc` from within a preloaded library could come back to that library's own function of the same name.
//! These do not, touch neither `errno` nor any lock, and answer what the kernel answers.

use std::io;
use std::os::fd::RawFd;

pub(crate) use weft_kernel::checked;
pub use weft_kernel::{Descriptor, call, close};

pub fn thread() -> u32 {
    // SAFETY: asks a number.
    unsafe { call(libc::SYS_gettid, [0; 6]) as u32 }
}

pub fn process() -> u32 {
    // SAFETY: asks a number.
    unsafe { call(libc::SYS_getpid, [0; 6]) as u32 }
}

/// Whether a process with this number has not ended. False also where that cannot be seen.
pub fn is_running(process: i32) -> bool {
    // SAFETY: numbers only.
    let Ok(file) = (unsafe { checked(libc::SYS_pidfd_open, [process as usize, 0, 0, 0, 0, 0]) }) else { return false };
    // Readable means: it has ended, be it waited for or not.
    let ended = events_now(file as RawFd, libc::POLLIN);
    close(file as RawFd);
    ended == Some(0)
}

/// What `poll` says at once.
fn events_now(descriptor: RawFd, events: i16) -> Option<i16> {
    let mut asked = libc::pollfd { fd: descriptor, events, revents: 0 };
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both places live across the call.
    let found = unsafe { checked(libc::SYS_ppoll, [&raw mut asked as usize, 1, &raw const now as usize, 0, 0, 0]) };
    found.is_ok().then_some(asked.revents)
}

/// Whether nobody is at the other end of a connected Unix socket any more.
pub fn is_hung_up(socket: RawFd) -> bool {
    events_now(socket, 0) != Some(0)
}

pub fn user() -> u32 {
    // SAFETY: asks a number.
    unsafe { call(libc::SYS_geteuid, [0; 6]) as u32 }
}

/// Whether a thread (or process) of this number exists.
pub fn exists(thread: u32) -> bool {
    // SAFETY: signal 0 asks only.
    let answer = unsafe { call(libc::SYS_kill, [thread as usize, 0, 0, 0, 0, 0]) };
    answer != -(libc::ESRCH as isize)
}

pub fn socket(domain: i32, kind: i32) -> io::Result<RawFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory.
    unsafe { checked(libc::SYS_socket, [domain as usize, kind as usize, 0, 0, 0, 0]) }.map(|fd| fd as RawFd)
}

/// Moves a descriptor out of the way of programs: to 900 or more, or as high as the limit allows. Kept as it is where
/// that is impossible.
pub fn out_of_the_way(descriptor: RawFd) -> RawFd {
    let limit = soft_limit(libc::RLIMIT_NOFILE as usize).unwrap_or(1024);
    let base = limit.saturating_sub(64).min(900);
    // SAFETY: no memory.
    let moved =
        unsafe { checked(libc::SYS_fcntl, [descriptor as usize, libc::F_DUPFD_CLOEXEC as usize, base, 0, 0, 0]) };
    match moved {
        Ok(moved) => {
            close(descriptor);
            moved as RawFd
        }
        Err(_) => descriptor,
    }
}

/// The present limit of a resource; the largest number for none.
fn soft_limit(resource: usize) -> Option<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place for the answer.
    let asked = unsafe { call(libc::SYS_prlimit64, [0, resource, 0, (&raw mut limit) as usize, 0, 0]) };
    (asked == 0).then_some(limit.rlim_cur as usize)
}

/// Whether a file may have so many bytes. Asked before: who makes one longer than that is sent a signal that ends it.
pub fn may_have_file_of(bytes: usize) -> bool {
    soft_limit(libc::RLIMIT_FSIZE as usize).is_none_or(|limit| limit >= bytes)
}

/// A Unix socket's abstract address.
pub struct Abstract {
    address: libc::sockaddr_un,
    length: u32,
}

impl Abstract {
    /// `name` without the leading zero byte; cut to what fits.
    pub fn new(name: &[u8]) -> Self {
        let mut address = libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
        let length = name.len().min(address.sun_path.len() - 1);
        for (to, from) in address.sun_path[1..].iter_mut().zip(name) {
            *to = *from as libc::c_char;
        }
        Self { address, length: (size_of::<libc::sa_family_t>() + 1 + length) as u32 }
    }

    fn at(&self) -> usize {
        (&raw const self.address) as usize
    }
}

pub fn bind(socket: RawFd, name: &Abstract) -> io::Result<()> {
    // SAFETY: the address lives across the call.
    unsafe { checked(libc::SYS_bind, [socket as usize, name.at(), name.length as usize, 0, 0, 0]) }.map(drop)
}

pub fn connect(socket: RawFd, name: &Abstract) -> io::Result<()> {
    // SAFETY: the address lives across the call.
    unsafe { checked(libc::SYS_connect, [socket as usize, name.at(), name.length as usize, 0, 0, 0]) }.map(drop)
}

/// Sends a datagram to a name, without waiting. A socket of TCP, should the descriptor have become one, refuses it: a
/// connected one would not look at the name, but for the third flag, which means nothing to others.
pub fn send_to(socket: RawFd, bytes: &[u8], name: &Abstract) -> io::Result<usize> {
    let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_FASTOPEN) as usize;
    let (at, length) = (bytes.as_ptr() as usize, bytes.len());
    // SAFETY: bytes and address live across the call.
    unsafe { checked(libc::SYS_sendto, [socket as usize, at, length, flags, name.at(), name.length as usize]) }
}

/// Receives without waiting.
pub fn receive(socket: RawFd, bytes: &mut [u8]) -> io::Result<usize> {
    let (at, length) = (bytes.as_mut_ptr() as usize, bytes.len());
    // SAFETY: the place is valid and ours across the call.
    unsafe { checked(libc::SYS_recvfrom, [socket as usize, at, length, libc::MSG_DONTWAIT as usize, 0, 0]) }
}

/// Takes all datagrams that are there, up to so many in one call, and looks at none. Answers whether there may be more.
pub fn discard(socket: RawFd) -> bool {
    const AT_ONCE: usize = 8;
    // SAFETY: zeros are headers of nothing.
    let mut headers: [libc::mmsghdr; AT_ONCE] = unsafe { std::mem::zeroed() };
    let (at, flags) = (headers.as_mut_ptr() as usize, libc::MSG_DONTWAIT as usize);
    // SAFETY: the headers live across the call and point nowhere.
    let taken = unsafe { checked(libc::SYS_recvmmsg, [socket as usize, at, AT_ONCE, flags, 0, 0]) };
    taken.is_ok_and(|taken| taken == AT_ONCE)
}

/// A socket option that is a plain value, for a place of the size that the option has.
pub(crate) fn option<T: Copy>(socket: RawFd, level: i32, name: i32, mut value: T) -> io::Result<T> {
    let mut bytes = size_of::<T>() as u32;
    let (at, length) = ((&raw mut value) as usize, (&raw mut bytes) as usize);
    // SAFETY: place and length are valid; callers ask with types for which any bytes are a value.
    unsafe { checked(libc::SYS_getsockopt, [socket as usize, level as usize, name as usize, at, length, 0]) }?;
    Ok(value)
}

/// The number that the kernel gives a socket, the same for all its descriptors and no other socket's.
pub fn cookie(socket: RawFd) -> io::Result<u64> {
    option(socket, libc::SOL_SOCKET, libc::SO_COOKIE, 0u64)
}

/// Lets the kernel drop every datagram for this socket that does not begin with `word`, highest byte first.
pub fn admit_only(socket: RawFd, word: u32) -> io::Result<()> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const COMPARE: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const ANSWER: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    // One that is too short to be looked at is dropped by the first step.
    let mut steps = [
        libc::sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        libc::sock_filter { code: COMPARE, jt: 0, jf: 1, k: word },
        libc::sock_filter { code: ANSWER, jt: 0, jf: 0, k: u32::MAX },
        libc::sock_filter { code: ANSWER, jt: 0, jf: 0, k: 0 },
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    let (level, name) = (libc::SOL_SOCKET as usize, libc::SO_ATTACH_FILTER as usize);
    let (at, bytes) = ((&raw const program) as usize, size_of_val(&program));
    // SAFETY: the program and its steps live across the call, which copies them.
    unsafe { checked(libc::SYS_setsockopt, [socket as usize, level, name, at, bytes, 0]) }.map(drop)
}

/// Who is at the other end of a Unix socket; process 0 where it has no number among ours.
pub fn peer(socket: RawFd) -> io::Result<libc::ucred> {
    let nobody = libc::ucred { pid: 0, uid: u32::MAX, gid: 0 };
    option(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, nobody)
}

/// Room for one control message with one descriptor.
#[repr(C, align(8))]
struct Control {
    header: libc::cmsghdr,
    descriptor: RawFd,
    _rest: [u8; 44],
}

const CONTROL_BYTES: usize = size_of::<libc::cmsghdr>() + size_of::<RawFd>();

fn message(part: &mut libc::iovec, control: &mut Control, bytes: usize) -> libc::msghdr {
    // SAFETY: plain data, for which zero is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    if bytes > 0 {
        message.msg_control = (&raw mut *control).cast();
        message.msg_controllen = bytes as _;
    }
    message
}

fn control(descriptor: RawFd) -> Control {
    // SAFETY: plain data, for which zero is a value.
    let mut control: Control = unsafe { std::mem::zeroed() };
    control.header.cmsg_len = CONTROL_BYTES as _;
    control.header.cmsg_level = libc::SOL_SOCKET;
    control.header.cmsg_type = libc::SCM_RIGHTS;
    control.descriptor = descriptor;
    control
}

/// Sends one packet, with a descriptor if there is one, without waiting.
pub fn send_packet(socket: RawFd, packet: &[u8], descriptor: Option<RawFd>) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: packet.as_ptr() as *mut libc::c_void, iov_len: packet.len() };
    let mut control = control(descriptor.unwrap_or(-1));
    let message = message(&mut part, &mut control, if descriptor.is_some() { size_of::<Control>().min(24) } else { 0 });
    let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as usize;
    let at = (&raw const message) as usize;
    // SAFETY: all that the message points at lives across the call; the kernel only reads it.
    unsafe { checked(libc::SYS_sendmsg, [socket as usize, at, flags, 0, 0, 0]) }.map(drop)
}

/// Receives one packet without waiting: its bytes (0 at the end of the connection) and its descriptor.
pub fn receive_packet(socket: RawFd, packet: &mut [u8]) -> io::Result<(usize, Option<RawFd>)> {
    let mut part = libc::iovec { iov_base: packet.as_mut_ptr().cast(), iov_len: packet.len() };
    let mut control = control(-1);
    control.header.cmsg_len = 0;
    let mut message = message(&mut part, &mut control, size_of::<Control>());
    let flags = (libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC) as usize;
    let at = (&raw mut message) as usize;
    // SAFETY: all that the message points at lives across the call and is ours alone.
    let got = unsafe { checked(libc::SYS_recvmsg, [socket as usize, at, flags, 0, 0, 0]) }?;
    let told = message.msg_controllen >= CONTROL_BYTES
        && control.header.cmsg_type == libc::SCM_RIGHTS
        && control.header.cmsg_len >= CONTROL_BYTES;
    Ok((got, told.then_some(control.descriptor)))
}

/// Anonymous memory that can be shared, of a size that nobody can change.
pub fn sealed_memory(name: &std::ffi::CStr, bytes: usize) -> io::Result<RawFd> {
    memory_sealed_by(name, bytes, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL)
}

/// The same for others who may seal it further: so they learn whether anybody has it in his memory.
pub fn sealable_memory(name: &std::ffi::CStr, bytes: usize) -> io::Result<RawFd> {
    memory_sealed_by(name, bytes, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)
}

fn memory_sealed_by(name: &std::ffi::CStr, bytes: usize, seals: i32) -> io::Result<RawFd> {
    if !may_have_file_of(bytes) {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    let flags = (libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) as usize;
    // SAFETY: the name is a C string; the others take numbers.
    unsafe {
        let memory = checked(libc::SYS_memfd_create, [name.as_ptr() as usize, flags, 0, 0, 0, 0])?;
        let sized = checked(libc::SYS_ftruncate, [memory, bytes, 0, 0, 0, 0])
            .and_then(|_| checked(libc::SYS_fcntl, [memory, libc::F_ADD_SEALS as usize, seals as usize, 0, 0, 0]));
        if let Err(error) = sized {
            close(memory as RawFd);
            return Err(error);
        }
        Ok(memory as RawFd)
    }
}

/// Whether a descriptor is memory of exactly so many bytes whose size nobody can change.
pub fn is_sealed(memory: RawFd, bytes: usize) -> bool {
    let wanted = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    sealed_size(memory).is_some_and(|(seals, size)| seals & wanted == wanted && size == bytes)
}

/// Bytes of the memory behind a descriptor, if nobody can make it shorter.
pub(crate) fn sealed_bytes(memory: RawFd) -> Option<usize> {
    sealed_size(memory).filter(|(seals, _)| seals & libc::F_SEAL_SHRINK != 0).map(|(_, size)| size)
}

/// Seals and size of memory.
fn sealed_size(memory: RawFd) -> Option<(i32, usize)> {
    // SAFETY: numbers only.
    let seals = unsafe { call(libc::SYS_fcntl, [memory as usize, libc::F_GET_SEALS as usize, 0, 0, 0, 0]) };
    stat(memory).filter(|_| seals >= 0).map(|stat| (seals as i32, stat.st_size as usize))
}

fn stat(descriptor: RawFd) -> Option<libc::stat> {
    // SAFETY: a structure of numbers, for which zero is a value, and a valid place for the answer.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        let (nothing, place) = (c"".as_ptr() as usize, (&raw mut stat) as usize);
        let arguments = [descriptor as usize, nothing, place, libc::AT_EMPTY_PATH as usize, 0, 0];
        (call(libc::SYS_newfstatat, arguments) == 0).then_some(stat)
    }
}

/// Which file, socket or memory it is, also under another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    file: u64,
}

/// What a descriptor leads to; `None` if it is not open.
pub fn identity(descriptor: RawFd) -> Option<Identity> {
    stat(descriptor).map(|stat| Identity { device: stat.st_dev, file: stat.st_ino })
}

/// Maps memory for reading and writing: that behind a descriptor, or new memory that is shared with children.
pub fn map_shared(memory: Option<RawFd>, bytes: usize) -> io::Result<*mut u8> {
    map(std::ptr::null_mut(), memory, bytes, libc::MAP_SHARED)
}

/// New memory of this process alone; a child by fork gets a copy.
pub fn map_private(bytes: usize) -> io::Result<*mut u8> {
    map(std::ptr::null_mut(), None, bytes, libc::MAP_PRIVATE)
}

/// Puts the memory behind a descriptor, or new private memory, in the place of whatever is mapped at `at`.
///
/// # Safety
/// `at` is the beginning of pages that belong to the caller, and nobody minds that their content changes.
pub unsafe fn map_over(at: *mut u8, memory: Option<RawFd>, bytes: usize) -> io::Result<()> {
    let kind = if memory.is_some() { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
    map(at, memory, bytes, kind | libc::MAP_FIXED).map(drop)
}

fn map(at: *mut u8, memory: Option<RawFd>, bytes: usize, flags: i32) -> io::Result<*mut u8> {
    let (flags, descriptor) = match memory {
        Some(memory) => (flags, memory as usize),
        None => (flags | libc::MAP_ANONYMOUS, usize::MAX),
    };
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (flags | libc::MAP_NORESERVE) as usize;
    // SAFETY: a new mapping at an address of the kernel's choice, or, with MAP_FIXED, of a caller who answers for it.
    unsafe { checked(libc::SYS_mmap, [at as usize, bytes, protection, flags, descriptor, 0]) }.map(|at| at as *mut u8)
}

/// # Safety
/// Nobody uses the mapping any more.
pub unsafe fn unmap(at: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    let _ = unsafe { call(libc::SYS_munmap, [at as usize, bytes, 0, 0, 0, 0]) };
}

/// Leaves a mapping out of core dumps.
pub fn without_dump(at: *mut u8, bytes: usize) {
    // SAFETY: changes no content.
    let _ = unsafe { call(libc::SYS_madvise, [at as usize, bytes, libc::MADV_DONTDUMP as usize, 0, 0, 0]) };
}

/// Takes the lock of the first byte of a file for this process, or gives it back; false where another process has it. Such
/// a lock ends with its process, and with the first descriptor of the file that the process closes.
pub(crate) fn set_lock(file: RawFd, taken: bool) -> bool {
    // SAFETY: plain data, for which zero is a valid value; the kernel reads it during the call.
    unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        lock.l_type = if taken { libc::F_WRLCK } else { libc::F_UNLCK } as libc::c_short;
        lock.l_len = 1;
        let at = (&raw const lock) as usize;
        call(libc::SYS_fcntl, [file as usize, libc::F_SETLK as usize, at, 0, 0, 0]) == 0
    }
}

/// Gives the pages of shared memory back; they are zero when next touched.
///
/// # Safety
/// The range is mapped shared memory, and nobody minds that its content is gone.
pub unsafe fn forget(at: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    let _ = unsafe { call(libc::SYS_madvise, [at as usize, bytes, libc::MADV_REMOVE as usize, 0, 0, 0]) };
}

/// Sleeps while the word holds `expected`, at most so many nanoseconds. Ends early at times, and at signals.
#[cfg(not(loom))]
pub fn futex_wait(word: &std::sync::atomic::AtomicU32, expected: u32, nanoseconds: u32) {
    let limit = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds.min(999_999_999) as libc::c_long };
    let (at, limit) = (word.as_ptr() as usize, (&raw const limit) as usize);
    // SAFETY: word and limit live across the call; the kernel only reads both.
    let _ = unsafe { call(libc::SYS_futex, [at, libc::FUTEX_WAIT as usize, expected as usize, limit, 0, 0]) };
}

/// Wakes one who sleeps on the word.
#[cfg(not(loom))]
pub fn futex_wake_one(word: &std::sync::atomic::AtomicU32) {
    // SAFETY: the kernel uses the address only as a key.
    let _ = unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, libc::FUTEX_WAKE as usize, 1, 0, 0, 0]) };
}

pub fn yield_core() {
    // SAFETY: no arguments.
    let _ = unsafe { call(libc::SYS_sched_yield, [0; 6]) };
}

/// Registers this process for [`barrier`]s of others; false where the kernel has no such thing.
pub fn register_for_barriers() -> bool {
    const REGISTER_GLOBAL_EXPEDITED: usize = 1 << 2;
    // SAFETY: no memory.
    unsafe { call(libc::SYS_membarrier, [REGISTER_GLOBAL_EXPEDITED, 0, 0, 0, 0, 0]) == 0 }
}

/// A full barrier on every running thread of every registered process.
pub fn barrier() {
    const GLOBAL_EXPEDITED: usize = 1 << 1;
    // SAFETY: no memory.
    let _ = unsafe { call(libc::SYS_membarrier, [GLOBAL_EXPEDITED, 0, 0, 0, 0, 0]) };
}

/// A number that nobody can guess; `None` where the system gives none.
pub fn true_random() -> Option<u64> {
    let mut number = 0u64;
    // SAFETY: a valid place of eight bytes.
    let got = unsafe { call(libc::SYS_getrandom, [(&raw mut number) as usize, 8, 0, 0, 0, 0]) };
    (got == 8).then_some(number)
}

/// The same, and without a source the clock and our number. Worse than random, and unique enough to try; nothing that is
/// encrypted may depend on it.
pub fn random() -> u64 {
    true_random().unwrap_or_else(|| now() ^ ((process() as u64) << 40))
}

/// Nanoseconds of the monotonic clock.
pub fn now() -> u64 {
    crate::sys::now_ns()
}

/// Whether a thread of this number runs, or may still run: one that has ended and is not collected yet does not.
pub fn is_alive(thread: u32) -> bool {
    if !exists(thread) {
        return false;
    }
    let mut path = [0u8; 32];
    let mut stat = [0u8; 256];
    // /proc/ number /stat and a zero byte.
    let mut digits = [0u8; 10];
    let (mut rest, mut count) = (thread, 0);
    while rest > 0 {
        digits[count] = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
    }
    digits[..count].reverse();
    for (to, from) in path.iter_mut().zip(b"/proc/".iter().chain(&digits[..count]).chain(b"/stat")) {
        *to = *from;
    }
    // SAFETY: a C string, and a place of the length said.
    let got = unsafe {
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
        let Ok(file) = checked(libc::SYS_openat, [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags, 0, 0, 0])
        else {
            return true;
        };
        let got = call(libc::SYS_read, [file, stat.as_mut_ptr() as usize, stat.len(), 0, 0, 0]);
        close(file as RawFd);
        got.max(0) as usize
    };
    // The state is the letter behind the name, which stands in brackets and may hold any.
    let state = stat[..got].iter().rposition(|byte| *byte == b')').and_then(|at| stat.get(at + 2));
    !matches!(state, Some(b'Z' | b'X'))
}
