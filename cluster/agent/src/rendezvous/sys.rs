//! The system calls of the rendezvous. Nothing here waits, except [`wait`].

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use weft_wire::stream::packet::{COMMON_NAME, user_name};
use weft_wire::stream::{arena, page};

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

pub fn user() -> u32 {
    // SAFETY: asks a number.
    unsafe { libc::geteuid() }
}

fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_UNIX, kind, 0))?) })
}

fn address(name: &[u8]) -> (libc::sockaddr_un, libc::socklen_t) {
    let mut address = libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
    for (to, from) in address.sun_path[1..].iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    (address, (size_of::<libc::sa_family_t>() + 1 + name.len()) as libc::socklen_t)
}

/// A socket option that is plain data.
fn option<T: Copy>(socket: &impl AsRawFd, level: i32, name: i32, mut value: T) -> io::Result<T> {
    let mut bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: place and length are valid; it is called with plain data only.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &mut bytes) })?;
    Ok(value)
}

/// A descriptor that another process has sent.
///
/// Its program may have said that the close of it waits, and be gone: then ours would be the one that does. So it goes
/// as one of which nothing was said.
pub struct Sent(Option<OwnedFd>);

impl Sent {
    /// For somebody who sees to its close himself, where that holds.
    pub fn keep_if(mut self, holds: bool) -> Option<OwnedFd> {
        self.0.take_if(|_| holds)
    }
}

impl AsRawFd for Sent {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        let nothing = libc::linger { l_onoff: 0, l_linger: 0 };
        let said = option(self, libc::SOL_SOCKET, libc::SO_LINGER, nothing);
        if said.is_ok_and(|said| said.l_onoff != 0 && said.l_linger != 0) {
            let (at, bytes) = ((&raw const nothing).cast(), size_of::<libc::linger>() as libc::socklen_t);
            // SAFETY: a value and its length.
            unsafe { libc::setsockopt(self.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, at, bytes) };
        }
    }
}

/// User and process at the other end.
fn peer(socket: &OwnedFd) -> io::Result<libc::ucred> {
    option(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, libc::ucred { pid: 0, uid: u32::MAX, gid: 0 })
}

/// Connects to root's rendezvous or to this user's.
pub fn connect() -> io::Result<OwnedFd> {
    let me = user();
    let (name, length) = user_name(me);
    connect_to(COMMON_NAME.as_bytes(), 0).or_else(|_| connect_to(&name[..length], me))
}

fn connect_to(name: &[u8], must_be: u32) -> io::Result<OwnedFd> {
    let socket = socket()?;
    let (address, length) = address(name);
    // SAFETY: the address is valid for the length said.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    if peer(&socket)?.uid != must_be {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the process that answers is another user's"));
    }
    Ok(socket)
}

/// The user who listens at this name, if anybody does.
fn holder(name: &[u8]) -> io::Result<u32> {
    let socket = socket()?;
    let (address, length) = address(name);
    // SAFETY: the address is valid for the length said.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(peer(&socket)?.uid)
}

/// Whether another user listens at this name.
pub fn is_squatted(name: &[u8]) -> bool {
    holder(name).is_ok_and(|holder| holder != user())
}

/// The error of a name that is not to be had.
pub fn squatted(name: &[u8]) -> io::Error {
    let holder = match holder(name) {
        Ok(user) => format!("user {user}"),
        Err(_) => "somebody who does not listen".to_owned(),
    };
    let text = format!("{holder} holds the name '@{}' of Unix sockets", String::from_utf8_lossy(name));
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

const SO_PEERPIDFD: i32 = 77;

/// Calls the process at the other end by a signal that means nothing to programs (`SIGURG`): that one, and never another
/// that has got its number since. `is_there` answers whether the process of this number still is the one.
pub fn call(socket: &OwnedFd, process: u32, is_there: impl FnOnce() -> bool) {
    let asked = option(socket, libc::SOL_SOCKET, SO_PEERPIDFD, -1i32);
    let (file, is_right) = match asked {
        Ok(file) => (Ok(file), true),
        // Older kernels know only the number.
        // SAFETY: numbers only.
        Err(_) => (check(unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) } as i32), is_there()),
    };
    let Ok(file) = file else { return };
    // SAFETY: a new descriptor that nobody else owns.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    if is_right {
        let nothing = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: numbers, and no further information.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, file.as_raw_fd(), libc::SIGURG, nothing, 0) };
    }
}

pub struct Listener {
    pub socket: OwnedFd,
}

/// A process that has come.
pub struct Guest {
    pub socket: OwnedFd,
    pub pid: u32,
    pub user: u32,
}

impl Listener {
    pub fn bind(name: &[u8]) -> io::Result<Self> {
        let socket = socket()?;
        let (address, length) = address(name);
        // SAFETY: the address is valid for the length said.
        check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
        // SAFETY: no memory.
        check(unsafe { libc::listen(socket.as_raw_fd(), 1024) })?;
        Ok(Self { socket })
    }

    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub fn accept(&self) -> io::Result<Guest> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let nobody = std::ptr::null_mut();
        // SAFETY: no address is asked for; the descriptor is new and ours.
        let socket = unsafe {
            OwnedFd::from_raw_fd(check(libc::accept4(self.socket.as_raw_fd(), nobody, std::ptr::null_mut(), flags))?)
        };
        let peer = peer(&socket)?;
        Ok(Guest { socket, pid: peer.pid as u32, user: peer.uid })
    }
}

/// Room for one control message with one descriptor.
#[repr(C, align(8))]
struct Control([u8; 24]);

// SAFETY: computes sizes.
const CONTROL_BYTES: usize = unsafe {
    assert!(libc::CMSG_SPACE(4) as usize <= size_of::<Control>());
    libc::CMSG_LEN(4) as usize
};

fn message(part: &mut libc::iovec, control: Option<&mut Control>) -> libc::msghdr {
    // SAFETY: plain data, for which zero is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    if let Some(control) = control {
        message.msg_control = control.0.as_mut_ptr().cast();
        // To the byte: of more descriptors than that the kernel would put a second one into the padding.
        message.msg_controllen = CONTROL_BYTES as _;
    }
    message
}

/// Sends a packet, with a descriptor if there is one.
pub fn send(socket: &OwnedFd, packet: &[u8], descriptor: Option<RawFd>) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: packet.as_ptr() as *mut libc::c_void, iov_len: packet.len() };
    let mut control = Control([0; 24]);
    let message = message(&mut part, descriptor.is_some().then_some(&mut control));
    if let Some(descriptor) = descriptor {
        // SAFETY: the message has room for one descriptor, checked below by the compiler's arithmetic.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = CONTROL_BYTES as _;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor);
        }
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: all that the message points at lives across the call.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &message, flags) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives a packet: how long it is (0: the end) and its descriptor.
pub fn receive(socket: &OwnedFd, packet: &mut [u8]) -> io::Result<(usize, Option<Sent>)> {
    let mut part = libc::iovec { iov_base: packet.as_mut_ptr().cast(), iov_len: packet.len() };
    let mut control = Control([0; 24]);
    let mut message = message(&mut part, Some(&mut control));
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: all that the message points at lives across the call and is ours. A descriptor in the control message is
    // new and nobody else's.
    unsafe {
        let got = libc::recvmsg(socket.as_raw_fd(), &mut message, flags);
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        let header = libc::CMSG_FIRSTHDR(&message);
        let told = !header.is_null()
            && (*header).cmsg_type == libc::SCM_RIGHTS
            && (*header).cmsg_len as usize >= CONTROL_BYTES;
        let descriptor = told.then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()));
        Ok((got as usize, descriptor.map(|descriptor| Sent(Some(descriptor)))))
    }
}

/// What a shown socket is, asked from the kernel.
pub struct Shown {
    pub namespace: u64,
    pub cookie: u64,
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

const SO_NETNS_COOKIE: i32 = 71;
const TCP_ESTABLISHED: u8 = 1;

/// The network namespace of a socket, by the kernel's number.
pub fn namespace(socket: &impl AsRawFd) -> io::Result<u64> {
    option(socket, libc::SOL_SOCKET, SO_NETNS_COOKIE, 0u64)
}

/// `None` if it is not an established TCP connection.
pub fn look_at(shown: &impl AsRawFd) -> Option<Shown> {
    let number = |name| option(shown, libc::SOL_SOCKET, name, 0i32).ok();
    if number(libc::SO_TYPE)? != libc::SOCK_STREAM || number(libc::SO_PROTOCOL)? != libc::IPPROTO_TCP {
        return None;
    }
    // The first byte of the information is the state.
    if option(shown, libc::IPPROTO_TCP, libc::TCP_INFO, [0u8; 8]).ok()?[0] != TCP_ESTABLISHED {
        return None;
    }
    Some(Shown {
        namespace: namespace(shown).ok()?,
        cookie: option(shown, libc::SOL_SOCKET, libc::SO_COOKIE, 0u64).ok()?,
        local: name_of(shown, libc::getsockname)?,
        remote: name_of(shown, libc::getpeername)?,
    })
}

/// Whether this process, which we know as `pid`, is in our own namespace of process numbers. (Its link to that namespace
/// can be read only by those who may debug it; this may be read by all.)
pub fn counts_as_we_do(pid: u32) -> bool {
    // Its numbers, from the namespace of /proc inwards to its own.
    let numbers_of = |process: &str| -> Option<Vec<u32>> {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        line.split_ascii_whitespace().map(|number| number.parse().ok()).collect()
    };
    let (Some(its), Some(own)) = (numbers_of(&pid.to_string()), numbers_of("self")) else { return false };
    its.len() == own.len() && its.last() == Some(&pid)
}

/// What a shown datagram socket is, asked from the kernel.
pub struct DatagramSocket {
    pub namespace: u64,
    pub cookie: u64,
    pub local: SocketAddr,
    /// The peer of a connected one.
    pub remote: Option<SocketAddr>,
    /// Others may be bound to the same address.
    pub shares_address: bool,
}

/// `None` if it is no UDP socket.
pub fn datagram_socket(shown: &impl AsRawFd) -> Option<DatagramSocket> {
    let number = |name| option(shown, libc::SOL_SOCKET, name, 0i32).ok();
    if number(libc::SO_TYPE)? != libc::SOCK_DGRAM || number(libc::SO_PROTOCOL)? != libc::IPPROTO_UDP {
        return None;
    }
    Some(DatagramSocket {
        namespace: namespace(shown).ok()?,
        cookie: option(shown, libc::SOL_SOCKET, libc::SO_COOKIE, 0u64).ok()?,
        local: name_of(shown, libc::getsockname)?,
        remote: name_of(shown, libc::getpeername),
        shares_address: number(libc::SO_REUSEADDR)? != 0 || number(libc::SO_REUSEPORT)? != 0,
    })
}

/// Connects to a rendezvous of a test.
#[cfg(test)]
pub fn connect_for_test(name: &[u8]) -> io::Result<OwnedFd> {
    connect_to(name, user())
}

/// A page as a process shows it.
#[cfg(test)]
pub fn page_for_test() -> File {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a C string; a new descriptor that nobody else owns.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"weft-page".as_ptr(), flags)) };
    file.set_len(page::BYTES as u64).expect("made longer");
    // SAFETY: numbers only.
    let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW) };
    assert_eq!(sealed, 0);
    file
}

/// Memory of a process, until it is dropped.
#[cfg(test)]
pub struct Mapping(*mut libc::c_void);

#[cfg(test)]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped below, and nobody has a reference into it.
        unsafe { libc::munmap(self.0, page::BYTES) };
    }
}

#[cfg(test)]
pub fn map_for_test(page: &File) -> Mapping {
    let (rights, nowhere) = (libc::PROT_READ | libc::PROT_WRITE, std::ptr::null_mut());
    // SAFETY: new pages, wherever there is room.
    let at = unsafe { libc::mmap(nowhere, page::BYTES, rights, libc::MAP_SHARED, page.as_raw_fd(), 0) };
    assert_ne!(at, libc::MAP_FAILED);
    Mapping(at)
}

/// Counts this process's `SIGURG` from now on.
#[cfg(test)]
pub fn urgent_signals_for_test() -> impl Fn() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn count(_: i32) {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
    let handler: extern "C" fn(i32) = count;
    // SAFETY: the handler only counts.
    unsafe { libc::signal(libc::SIGURG, handler as libc::sighandler_t) };
    || COUNT.load(Ordering::Relaxed)
}

/// Sends a packet with two descriptors.
#[cfg(test)]
pub fn send_two_for_test(socket: &OwnedFd, packet: &[u8], two: [RawFd; 2]) {
    let mut part = libc::iovec { iov_base: packet.as_ptr() as *mut libc::c_void, iov_len: packet.len() };
    let mut control = Control([0; 24]);
    let mut message = message(&mut part, Some(&mut control));
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: there is room for two, and all that the message points at lives across the call.
    let sent = unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = size_of::<Control>() as _;
        libc::CMSG_DATA(header).cast::<[RawFd; 2]>().write_unaligned(two);
        libc::sendmsg(socket.as_raw_fd(), &message, 0)
    };
    assert_eq!(sent, packet.len() as isize);
}

/// The close of the socket waits for so many seconds.
#[cfg(test)]
pub fn linger_for_test(socket: &OwnedFd, seconds: i32) {
    let linger = libc::linger { l_onoff: 1, l_linger: seconds };
    let (at, bytes) = ((&raw const linger).cast(), size_of::<libc::linger>() as libc::socklen_t);
    // SAFETY: a value and its length.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, at, bytes) };
    assert_eq!(set, 0);
}

/// Sets an option to 1.
#[cfg(test)]
pub fn set_for_test(socket: &impl AsRawFd, name: i32) {
    let one = 1i32;
    // SAFETY: the number lives across the call.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, (&raw const one).cast(), 4) };
    assert_eq!(set, 0);
}

type AskName = unsafe extern "C" fn(i32, *mut libc::sockaddr, *mut libc::socklen_t) -> i32;

fn name_of(socket: &impl AsRawFd, ask: AskName) -> Option<SocketAddr> {
    // SAFETY: plain data; the kernel writes at most the length said. The family says what was written.
    unsafe {
        let mut storage: libc::sockaddr_storage = std::mem::zeroed();
        let mut length = size_of_val(&storage) as libc::socklen_t;
        check(ask(socket.as_raw_fd(), (&raw mut storage).cast(), &mut length)).ok()?;
        match i32::from(storage.ss_family) {
            libc::AF_INET => {
                let v4 = (&raw const storage).cast::<libc::sockaddr_in>().read();
                let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
                Some(SocketAddr::new(ip.into(), u16::from_be(v4.sin_port)))
            }
            libc::AF_INET6 => {
                let v6 = (&raw const storage).cast::<libc::sockaddr_in6>().read();
                Some(SocketAddr::new(Ipv6Addr::from(v6.sin6_addr.s6_addr).into(), u16::from_be(v6.sin6_port)))
            }
            _ => None,
        }
    }
}

/// New memory for two processes, of a size that they cannot change.
pub fn new_arena(name: u64) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a C string; a new descriptor that nobody else owns.
    let file = unsafe { File::from_raw_fd(check(libc::memfd_create(c"weft-streams".as_ptr(), flags))?) };
    file.set_len(arena::BYTES as u64)?;
    file.write_all_at(&arena::heading(name), 0)?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: numbers only.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(file)
}

/// A process's page, if it is memory of the right size whose size nobody can change: writing there never waits.
pub fn as_page(sent: Sent) -> Option<File> {
    // SAFETY: numbers only.
    let seals = unsafe { libc::fcntl(sent.as_raw_fd(), libc::F_GET_SEALS) };
    let wanted = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    // Only memory has seals.
    let memory = sent.keep_if(seals >= 0 && seals & wanted == wanted).map(File::from)?;
    (memory.metadata().ok()?.len() == page::BYTES as u64).then_some(memory)
}

/// Whether anybody has the page in his memory: the process that has shown it, as long as it lives and has not become
/// another program, or one that shares its memory. False also where that cannot be asked.
pub fn is_mapped(page: &File) -> bool {
    // The kernel forbids writing only where nobody could.
    // SAFETY: numbers only.
    let sealed = unsafe { libc::fcntl(page.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_WRITE) };
    sealed < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EBUSY)
}

/// A number that nobody can guess; not 0.
pub fn random() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: a valid place; so few bytes come whole.
    match unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), 8, 0) } {
        8 => Ok(u64::from_le_bytes(bytes).max(1)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// As many descriptors as this process may have; answers how many those are.
pub fn raise_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 1024, rlim_max: 1024 };
    // SAFETY: a valid place, then a valid value.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}

/// Closes every descriptor above the standard ones but those in `keep`. Whatever else a detached process inherited, a
/// pipe or a socket of the program that started it, would seem to be open for as long as it lives.
fn close_all_but(keep: &mut [RawFd]) {
    keep.sort_unstable();
    let mut first = 3;
    for kept in keep.iter().copied().chain([RawFd::MAX]) {
        if kept > first {
            // SAFETY: numbers only; nobody in this new process uses what is closed, which its parent still has.
            unsafe { libc::syscall(libc::SYS_close_range, first, kept - 1, 0) };
        }
        first = first.max(kept.saturating_add(1));
    }
}

/// Runs `body` in a process of its own, in a session of its own, without a terminal, that is nobody's child. Of the
/// descriptors of this process it has only those in `keep`.
pub fn detached(keep: &mut [RawFd], body: impl FnOnce()) -> io::Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    // SAFETY: the caller has one thread only (contract of `ensure`), so the child may do what it likes.
    let child = check(unsafe { libc::fork() })?;
    if child > 0 {
        crate::sys::wait_for(child);
        return Ok(());
    }
    // SAFETY: numbers only; in the child nobody needs the three descriptors.
    unsafe {
        libc::setsid();
        if libc::fork() != 0 {
            libc::_exit(0);
        }
        for standard in 0..3 {
            libc::dup2(nothing.as_raw_fd(), standard);
        }
        libc::chdir(c"/".as_ptr());
    }
    drop(nothing);
    close_all_but(keep);
    crate::sys::set_name(c"weft-rendezvous");
    body();
    crate::sys::exit_now(0)
}
