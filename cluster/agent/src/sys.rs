//! The system calls that the standard library does not offer, each behind a safe function. The only unsafe code here.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use weft_cluster::placement::Core;
use weft_cluster::usage::RankUsage;
use weft_kernel::{Descriptor, control, system_call};

pub(crate) fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Which side of a fork we are on.
pub enum Fork {
    Parent { child: i32 },
    Child,
}

/// Forks. The process must have one thread only (the contract of [`crate::run`]).
pub fn fork() -> io::Result<Fork> {
    // SAFETY: with one thread, no lock can be held by a thread that does not exist in the child.
    match check(unsafe { libc::fork() })? {
        0 => Ok(Fork::Child),
        child => Ok(Fork::Parent { child }),
    }
}

/// Ends this process at once, without running what the other half of a fork owns.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(code) }
}

pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is passed.
    unsafe { system_call!(libc::SYS_kill, pid, signal) }.map(drop)
}

/// A change of child `pid`, or of any for -1: its number and raw wait status. `ECHILD` when there is none.
pub fn wait(pid: i32, options: i32) -> io::Result<Option<(i32, i32)>> {
    Ok(wait_with_usage(pid, options)?.map(|(pid, status, _)| (pid, status)))
}

/// Waits for this child; its raw wait status, and what it has used.
pub fn end_of(pid: i32) -> io::Result<(i32, RankUsage)> {
    wait_with_usage(pid, 0).map(|changed| changed.map_or_else(Default::default, |(_, status, used)| (status, used)))
}

fn wait_with_usage(pid: i32, options: i32) -> io::Result<Option<(i32, i32, RankUsage)>> {
    let mut status = 0;
    // SAFETY: plain data.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: `status` and `usage` take the answer.
        match unsafe { system_call!(libc::SYS_wait4, pid, &raw mut status, options, &raw mut usage) } {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            changed => return changed.map(|pid| (pid != 0).then_some((pid as i32, status, used(&usage)))),
        }
    }
}

/// What the children of this process have used that have been waited for.
pub fn used_by_children() -> RankUsage {
    // SAFETY: plain data.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` takes the answer.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) };
    used(&usage)
}

fn used(usage: &libc::rusage) -> RankUsage {
    let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    RankUsage {
        wall_us: 0,
        user_us: micros(usage.ru_utime),
        system_us: micros(usage.ru_stime),
        peak_bytes: usage.ru_maxrss as u64 * 1024,
    }
}

/// A child that has ended and is still to be collected, with what it has used.
pub fn next_ended() -> io::Result<Option<(i32, RankUsage)>> {
    // SAFETY: plain data.
    let (mut info, mut usage): (libc::siginfo_t, libc::rusage) = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` and `usage` take the answer.
    unsafe { system_call!(libc::SYS_waitid, libc::P_ALL, 0, &raw mut info, options, &raw mut usage) }?;
    // SAFETY: filled by a call that tells of a child, or zeros.
    let pid = unsafe { info.si_pid() };
    Ok((pid != 0).then(|| (pid, used(&usage))))
}

/// Waits for this child; its raw wait status.
pub fn status_of(pid: i32) -> io::Result<i32> {
    wait(pid, 0).map(|changed| changed.map_or(0, |(_, status)| status))
}

/// Waits until the child `pid` has ended.
pub fn wait_for(pid: i32) {
    let _ = status_of(pid);
}

/// Takes a process group of our own.
pub fn own_group() -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::setpgid(0, 0) }).map(drop)
}

/// Orphans among our descendants become our children.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: this option takes one integer.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }).map(drop)
}

/// Sets the name that process lists show.
pub fn set_name(name: &CStr) {
    // SAFETY: `name` ends with a zero byte; the kernel copies at most 16 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// A set of signals.
#[derive(Clone, Copy)]
pub struct SignalSet(libc::sigset_t);

impl SignalSet {
    pub fn of(signals: &[i32]) -> Self {
        // SAFETY: the set is plain data, initialised by `sigemptyset` before use.
        let mut set = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is a valid set; a number that is no signal is refused without effect.
        unsafe {
            libc::sigemptyset(&mut set);
            signals.iter().for_each(|signal| _ = libc::sigaddset(&mut set, *signal));
        }
        Self(set)
    }

    pub fn all() -> Self {
        let mut set = Self::of(&[]);
        // SAFETY: `set` is a valid set.
        unsafe { libc::sigfillset(&mut set.0) };
        set
    }

    /// Blocks these signals in addition, and answers which were blocked before.
    pub fn block(&self) -> io::Result<Self> {
        self.mask(libc::SIG_BLOCK)
    }

    /// Blocks these signals and no others, and answers which were blocked before.
    pub fn block_only(&self) -> io::Result<Self> {
        self.mask(libc::SIG_SETMASK)
    }

    fn mask(&self, how: i32) -> io::Result<Self> {
        let mut before = Self::of(&[]);
        // SAFETY: both sets are valid.
        check(unsafe { libc::sigprocmask(how, &self.0, &mut before.0) })?;
        Ok(before)
    }

    /// A descriptor (non-blocking, close-on-exec) from which these signals are read.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        // SAFETY: the set is valid.
        let fd = check(unsafe { libc::signalfd(-1, &self.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) })?;
        // SAFETY: a new descriptor that nobody else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// The next signal of a signal descriptor.
pub fn read_signal(fd: &OwnedFd) -> Option<i32> {
    read_signal_from(fd).map(|came| came.signal)
}

/// A signal that has come.
pub struct ArrivedSignal {
    pub signal: i32,
    /// The kernel itself has sent it: for a terminal, say.
    pub by_kernel: bool,
    pub sender: i32,
}

/// The same, with who has sent it.
pub fn read_signal_from(fd: &OwnedFd) -> Option<ArrivedSignal> {
    // SAFETY: plain data.
    let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
    let size = size_of_val(&info);
    // SAFETY: `info` has room for `size` bytes.
    let read = unsafe { libc::read(fd.as_raw_fd(), (&raw mut info).cast(), size) };
    let came = ArrivedSignal {
        signal: info.ssi_signo as i32,
        by_kernel: info.ssi_code == libc::SI_KERNEL,
        sender: info.ssi_pid as i32,
    };
    (read == size as isize).then_some(came)
}

/// Whether whoever started us wants this signal ignored (as `nohup` does).
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: plain data.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only asks; `action` is a valid place for the answer.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Gives a signal its default effect again, whatever whoever started us made of it.
pub fn reset_signal(signal: i32) {
    // SAFETY: installs no handler of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

pub fn read(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe the slice.
    unsafe { system_call!(libc::SYS_read, fd, buffer.as_mut_ptr(), buffer.len()) }
}

pub fn write(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe the slice.
    unsafe { system_call!(libc::SYS_write, fd, bytes.as_ptr(), bytes.len()) }
}

/// Writes to a socket without waiting and without changing the flags of its description.
pub fn send_now(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: pointer and length describe the slice.
    unsafe { system_call!(libc::SYS_sendto, fd, bytes.as_ptr(), bytes.len(), flags, 0, 0) }
}

/// How many bytes the next record of this socket has, which stays where it is.
pub fn next_record(fd: RawFd) -> io::Result<usize> {
    let flags = libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: no byte is written to an empty place.
    unsafe { system_call!(libc::SYS_recvfrom, fd, 0, 0, flags, 0, 0) }
}

/// A connected pair of sockets that keep record boundaries (close-on-exec).
pub fn record_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: room for two descriptors.
    check(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, fds.as_mut_ptr()) })?;
    // SAFETY: two new descriptors that nobody else owns.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// Makes reads and writes of this description answer "would block". Only for descriptions that we alone hold.
pub fn set_nonblocking(fd: &impl AsRawFd) -> io::Result<()> {
    let flags = control(fd.as_raw_fd(), libc::F_GETFL, 0)?;
    control(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK).map(drop)
}

/// Whether `fd` goes to programs that are started.
pub fn set_inherited(fd: &impl AsRawFd, inherited: bool) -> io::Result<()> {
    control(fd.as_raw_fd(), libc::F_SETFD, if inherited { 0 } else { libc::FD_CLOEXEC }).map(drop)
}

/// Keeps a descriptor, of which only the number is known, from programs that are started, if it leads to a socket or to
/// memory that can be sealed. A number that is not open, or leads to something else, is left alone.
pub fn keep_to_ourselves(number: RawFd) {
    if kind(number) == DescriptorKind::Socket || control(number, libc::F_GET_SEALS, 0).is_ok() {
        let _ = control(number, libc::F_SETFD, libc::FD_CLOEXEC);
    }
}

/// Makes the descriptor `number` lead to where `fd` leads; it goes to programs that are started.
pub fn replace(number: RawFd, fd: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: no memory is passed; nobody owns the standard streams, which this is for.
    check(unsafe { libc::dup2(fd.as_raw_fd(), number) }).map(drop)
}

/// Nothing more will be written into this socket.
pub fn end_writing(fd: RawFd) {
    // SAFETY: no memory is passed.
    unsafe { libc::shutdown(fd, libc::SHUT_WR) };
}

/// Whether the same call may succeed later.
pub fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The addresses of the interfaces that are up, without loopback and those that count on one link only.
pub fn interface_addresses() -> Vec<IpAddr> {
    let mut list = std::ptr::null_mut();
    // SAFETY: a valid place for the list.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Vec::new();
    }
    let mut addresses = Vec::new();
    let mut at = list;
    // SAFETY: the list was made by `getifaddrs`, is not changed, and ends with a null pointer.
    while let Some(entry) = unsafe { at.as_ref() } {
        let wanted = entry.ifa_flags & (libc::IFF_UP | libc::IFF_LOOPBACK) as u32 == libc::IFF_UP as u32;
        addresses.extend(wanted.then(|| address_of(entry.ifa_addr)).flatten());
        at = entry.ifa_next;
    }
    // SAFETY: made by `getifaddrs`, freed once, and no longer used.
    unsafe { libc::freeifaddrs(list) };
    addresses
}

/// `address` is null or leads to an address of the size that its family has.
fn address_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: as said.
    let family = unsafe { address.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: the family says what it is.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family says what it is.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            let address = Ipv6Addr::from(address.sin6_addr.s6_addr);
            (!address.is_unicast_link_local()).then(|| address.into())
        }
        _ => None,
    }
}

/// What a descriptor leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorKind {
    Terminal,
    Pipe,
    Socket,
    /// Files and devices, on which a write does not wait for another program.
    Other,
}

pub fn kind(fd: RawFd) -> DescriptorKind {
    let Some(stat) = weft_kernel::stat(fd) else { return DescriptorKind::Other };
    match stat.st_mode & libc::S_IFMT {
        libc::S_IFIFO => DescriptorKind::Pipe,
        libc::S_IFSOCK => DescriptorKind::Socket,
        // SAFETY: no memory is passed.
        libc::S_IFCHR if unsafe { libc::isatty(fd) } == 1 => DescriptorKind::Terminal,
        _ => DescriptorKind::Other,
    }
}

/// Whether we may read the terminal `fd` now: it is ours and we are in its foreground, or it is not ours at all.
pub fn in_foreground(fd: RawFd) -> bool {
    // SAFETY: no memory is passed.
    let group = unsafe { libc::tcgetpgrp(fd) };
    // SAFETY: no preconditions.
    group < 0 || group == unsafe { libc::getpgrp() }
}

/// Whether this process may execute the file.
pub fn may_execute(path: &CStr) -> bool {
    // SAFETY: `path` ends with a zero byte.
    unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 }
}

/// Whether the file gives capabilities to who executes it.
pub fn has_capabilities(path: &std::path::Path) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both texts end with a zero byte; with a size of 0 nothing is written.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// Where the first bytes stand from there on that somebody has written into this memory. Where the kernel does not
/// know, all may have been written.
pub fn next_data(memory: RawFd, from: u64) -> u64 {
    // SAFETY: no memory is passed.
    match unsafe { system_call!(libc::SYS_lseek, memory, from, libc::SEEK_DATA) } {
        Ok(at) => at as u64,
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => u64::MAX,
        Err(_) => from,
    }
}

/// Memory that grows by what is written to it (close-on-exec).
pub fn growing_memory(name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the name is a C string.
    let made = unsafe { system_call!(libc::SYS_memfd_create, name.as_ptr(), libc::MFD_CLOEXEC) }?;
    Ok(OwnedFd::from(Descriptor::own(made as RawFd)))
}

/// The kernel kills this process when its parent is gone.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: this option takes one integer.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(drop)
}

/// Who runs this process, by name where it has one.
pub fn user_name() -> String {
    let number = weft_kernel::user().to_string();
    let list = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    };
    // Those of a directory service are not in the file.
    let of_login = || std::env::var("LOGNAME").ok().filter(|name| !name.is_empty());
    list.lines().find_map(name).or_else(of_login).unwrap_or(number)
}

/// The name of this host.
pub fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: pointer and length describe the array; the last byte stays zero.
    let result = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    match CStr::from_bytes_until_nul(&name) {
        Ok(name) if result == 0 => name.to_string_lossy().into_owned(),
        _ => "localhost".to_owned(),
    }
}

/// How far a process that is started stands apart from us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// Not at all: it is in our process group.
    Beside,
    /// In a process group of its own.
    Group,
    /// In a session of its own as well: without a terminal, and without the signals by which one stops programs.
    Session,
}

/// Starts `command`, on this core if one is given. The kernel kills it when we are gone: whoever else would have is
/// then gone, too.
pub fn spawn(command: &mut std::process::Command, apart: Apart, core: Option<Core>) -> io::Result<u32> {
    let us = std::process::id() as i32;
    let die_with_us = move || {
        // Here, and not before the fork: who starts others does not go from core to core for that.
        core.as_ref().map_or(Ok(()), |core| weft_kernel::set_affinity(core))?;
        if apart == Apart::Session {
            // SAFETY: no preconditions.
            check(unsafe { libc::setsid() })?;
        }
        // SAFETY: this option takes one integer.
        check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
        // Whose parent was gone before that is told by nobody.
        // SAFETY: no preconditions.
        if unsafe { libc::getppid() } == us { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    };
    // SAFETY: four system calls, and no memory is asked for: fit to run between fork and exec.
    unsafe { command.pre_exec(die_with_us) };
    if apart == Apart::Group {
        // The first of a group could make no session.
        command.process_group(0);
    }
    command.spawn().map(|child| child.id())
}

/// Whether the user wants us to have less processor time than others.
pub fn is_nice() -> bool {
    // SAFETY: no memory is passed. The answer for an error is that of who wants more.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) > 0 }
}

/// A socket of this kind (`SOCK_STREAM`: one that listens) on every address of the host, of both families whatever the
/// host's own setting is (`net.ipv6.bindv6only`), at a port that the system chooses. A host may be without IPv6.
pub fn socket_on_every_address(kind: i32) -> io::Result<OwnedFd> {
    // SAFETY: plain data.
    let mut six: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
    six.sin6_family = libc::AF_INET6 as libc::sa_family_t;
    // SAFETY: plain data.
    let mut four: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    four.sin_family = libc::AF_INET as libc::sa_family_t;
    bound(libc::AF_INET6, kind, &six).or_else(|_| bound(libc::AF_INET, kind, &four))
}

fn bound<T>(family: i32, kind: i32, address: &T) -> io::Result<OwnedFd> {
    // SAFETY: numbers only.
    let made = unsafe { system_call!(libc::SYS_socket, family, kind | libc::SOCK_CLOEXEC, 0) }?;
    let fd = OwnedFd::from(Descriptor::own(made as RawFd));
    let raw = fd.as_raw_fd();
    if family == libc::AF_INET6 {
        weft_kernel::set_option(raw, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 0i32)?;
    }
    // SAFETY: pointer and length describe the address.
    unsafe { system_call!(libc::SYS_bind, raw, &raw const *address, size_of::<T>()) }?;
    if kind == libc::SOCK_STREAM {
        // SAFETY: numbers only.
        unsafe { system_call!(libc::SYS_listen, raw, libc::SOMAXCONN) }?;
    }
    Ok(fd)
}
