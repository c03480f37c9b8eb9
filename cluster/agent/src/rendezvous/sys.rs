//! The system calls of the rendezvous. Nothing here waits, except [`wait`].

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
pub use weft_kernel::user;
use weft_kernel::{Abstract, Descriptor, control, option, peer, set_option, system_call};
use weft_wire::stream::packet::{COMMON_NAME, user_name};
use weft_wire::stream::{arena, page};

fn socket() -> io::Result<OwnedFd> {
    weft_kernel::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET).map(OwnedFd::from)
}

/// A descriptor that another process has sent.
///
/// Its program may have said that the close of it waits, and be gone: then ours would be the one that does. So it goes
/// as one of which nothing was said.
pub struct SentDescriptor(Option<OwnedFd>);

impl SentDescriptor {
    /// For somebody who sees to its close himself, where that holds.
    pub fn keep_if(mut self, holds: bool) -> Option<OwnedFd> {
        self.0.take_if(|_| holds)
    }
}

impl AsRawFd for SentDescriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

impl Drop for SentDescriptor {
    fn drop(&mut self) {
        let nothing = libc::linger { l_onoff: 0, l_linger: 0 };
        let said = option(self.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, nothing);
        if said.is_ok_and(|said| said.l_onoff != 0 && said.l_linger != 0) {
            let _ = set_option(self.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, nothing);
        }
    }
}

/// Connects to root's rendezvous or to this user's.
pub fn connect() -> io::Result<OwnedFd> {
    let me = user();
    let (name, length) = user_name(me);
    connect_to(COMMON_NAME.as_bytes(), 0).or_else(|_| connect_to(&name[..length], me))
}

fn connect_to(name: &[u8], must_be: u32) -> io::Result<OwnedFd> {
    let socket = socket()?;
    weft_kernel::connect(socket.as_raw_fd(), &Abstract::new(name))?;
    if peer(socket.as_raw_fd())?.uid != must_be {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the process that answers is another user's"));
    }
    Ok(socket)
}

/// The user who listens at this name, if anybody does.
fn holder(name: &[u8]) -> io::Result<u32> {
    let socket = socket()?;
    weft_kernel::connect(socket.as_raw_fd(), &Abstract::new(name))?;
    Ok(peer(socket.as_raw_fd())?.uid)
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

/// Calls the process at the other end by a signal that means nothing to programs (`SIGURG`): that one, and never
/// another that has got its number since. `is_there` answers whether the process of this number still is the one.
pub fn call(socket: &OwnedFd, process: u32, is_there: impl FnOnce() -> bool) {
    let (file, is_right) = match option(socket.as_raw_fd(), libc::SOL_SOCKET, SO_PEERPIDFD, -1i32) {
        Ok(file) => (file, true),
        // Older kernels know only the number.
        // SAFETY: numbers only.
        Err(_) => match unsafe { system_call!(libc::SYS_pidfd_open, process, 0) } {
            Ok(file) => (file as RawFd, is_there()),
            Err(_) => return,
        },
    };
    let file = Descriptor::own(file);
    if is_right {
        // SAFETY: numbers, and no further information.
        let _ = unsafe { system_call!(libc::SYS_pidfd_send_signal, file.as_raw_fd(), libc::SIGURG, 0, 0) };
    }
}

pub struct RendezvousListener {
    pub socket: OwnedFd,
}

/// A process that has come.
pub struct ComeProcess {
    pub socket: OwnedFd,
    pub pid: u32,
    pub user: u32,
}

impl RendezvousListener {
    pub fn bind(name: &[u8]) -> io::Result<Self> {
        let socket = socket()?;
        weft_kernel::bind(socket.as_raw_fd(), &Abstract::new(name))?;
        // SAFETY: numbers only.
        unsafe { system_call!(libc::SYS_listen, socket.as_raw_fd(), 1024) }?;
        Ok(Self { socket })
    }

    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub fn accept(&self) -> io::Result<ComeProcess> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no address is asked for.
        let came = unsafe { system_call!(libc::SYS_accept4, self.socket.as_raw_fd(), 0, 0, flags) }?;
        let socket = OwnedFd::from(Descriptor::own(came as RawFd));
        let peer = peer(socket.as_raw_fd())?;
        Ok(ComeProcess { socket, pid: peer.pid as u32, user: peer.uid })
    }
}

/// Sends a packet, with a descriptor if there is one.
pub fn send(socket: &OwnedFd, packet: &[u8], descriptor: Option<RawFd>) -> io::Result<()> {
    weft_kernel::send_packet(socket.as_raw_fd(), packet, descriptor)
}

/// Receives a packet: how long it is (0: the end) and its descriptor.
pub fn receive(socket: &OwnedFd, packet: &mut [u8]) -> io::Result<(usize, Option<SentDescriptor>)> {
    let (got, descriptor) = weft_kernel::receive_packet(socket.as_raw_fd(), packet)?;
    Ok((got, descriptor.map(|descriptor| SentDescriptor(Some(descriptor.into())))))
}

/// What a shown socket is, asked from the kernel.
pub struct ShownSocket {
    pub namespace: u64,
    pub cookie: u64,
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

const SO_NETNS_COOKIE: i32 = 71;
const TCP_ESTABLISHED: u8 = 1;

/// The network namespace of a socket, by the kernel's number.
pub fn namespace(socket: &impl AsRawFd) -> io::Result<u64> {
    option(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, 0u64)
}

/// `None` if it is not an established TCP connection.
pub fn look_at(shown: &impl AsRawFd) -> Option<ShownSocket> {
    let number = |name| option(shown.as_raw_fd(), libc::SOL_SOCKET, name, 0i32).ok();
    if number(libc::SO_TYPE)? != libc::SOCK_STREAM || number(libc::SO_PROTOCOL)? != libc::IPPROTO_TCP {
        return None;
    }
    // The first byte of the information is the state.
    if option(shown.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, [0u8; 8]).ok()?[0] != TCP_ESTABLISHED {
        return None;
    }
    Some(ShownSocket {
        namespace: namespace(shown).ok()?,
        cookie: weft_kernel::cookie(shown.as_raw_fd()).ok()?,
        local: name_of(shown, libc::SYS_getsockname)?,
        remote: name_of(shown, libc::SYS_getpeername)?,
    })
}

/// Whether this process, which we know as `pid`, is in our own namespace of process numbers. (Its link to that
/// namespace can be read only by those who may debug it; this may be read by all.)
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
    let number = |name| option(shown.as_raw_fd(), libc::SOL_SOCKET, name, 0i32).ok();
    if number(libc::SO_TYPE)? != libc::SOCK_DGRAM || number(libc::SO_PROTOCOL)? != libc::IPPROTO_UDP {
        return None;
    }
    Some(DatagramSocket {
        namespace: namespace(shown).ok()?,
        cookie: weft_kernel::cookie(shown.as_raw_fd()).ok()?,
        local: name_of(shown, libc::SYS_getsockname)?,
        remote: name_of(shown, libc::SYS_getpeername),
        shares_address: number(libc::SO_REUSEADDR)? != 0 || number(libc::SO_REUSEPORT)? != 0,
    })
}

/// Connects to a rendezvous of a test.
#[cfg(test)]
pub fn connect_for_test(name: &[u8]) -> io::Result<OwnedFd> {
    connect_to(name, user())
}

/// Memory of a process, until it is dropped.
#[cfg(test)]
pub struct Mapping(*mut u8);

#[cfg(test)]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped below, and nobody has a reference into it.
        unsafe { weft_kernel::unmap(self.0, page::BYTES) };
    }
}

#[cfg(test)]
pub fn map_for_test(page: &File) -> Mapping {
    Mapping(weft_kernel::map_shared(Some(page.as_raw_fd()), page::BYTES).expect("mapped"))
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
    #[repr(C)]
    struct TwoRights {
        header: libc::cmsghdr,
        descriptors: [RawFd; 2],
    }
    let mut part = libc::iovec { iov_base: packet.as_ptr() as *mut libc::c_void, iov_len: packet.len() };
    // SAFETY: plain data, for which zero is a value; all that the message points at lives across the call.
    let sent = unsafe {
        let mut control = TwoRights { header: std::mem::zeroed(), descriptors: two };
        control.header.cmsg_len = size_of::<TwoRights>();
        (control.header.cmsg_level, control.header.cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        let mut message: libc::msghdr = std::mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        (message.msg_control, message.msg_controllen) = ((&raw mut control).cast(), size_of::<TwoRights>());
        libc::sendmsg(socket.as_raw_fd(), &raw const message, 0)
    };
    assert_eq!(sent, packet.len() as isize);
}

fn name_of(socket: &impl AsRawFd, ask: libc::c_long) -> Option<SocketAddr> {
    // SAFETY: plain data; the kernel writes at most the length said. The family says what was written.
    unsafe {
        let mut storage: libc::sockaddr_storage = std::mem::zeroed();
        let mut length = size_of_val(&storage) as libc::socklen_t;
        system_call!(ask, socket.as_raw_fd(), &raw mut storage, &raw mut length).ok()?;
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
    let memory = File::from(OwnedFd::from(weft_kernel::sealed_memory(c"weft-streams", arena::BYTES)?));
    memory.write_all_at(&arena::heading(name), 0)?;
    Ok(memory)
}

/// A process's page, if it is memory of the right size whose size nobody can change: writing there never waits.
pub fn as_page(sent: SentDescriptor) -> Option<File> {
    // Only memory has seals.
    let is_page = weft_kernel::is_sealed(sent.as_raw_fd(), page::BYTES);
    sent.keep_if(is_page).map(File::from)
}

/// Whether anybody has the page in his memory: the process that has shown it, as long as it lives and has not become
/// another program, or one that shares its memory. False also where that cannot be asked.
pub fn is_mapped(page: &File) -> bool {
    // The kernel forbids writing only where nobody could.
    let sealed = control(page.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_WRITE);
    sealed.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
}

/// A number that nobody can guess; not 0.
pub fn random() -> io::Result<u64> {
    weft_kernel::true_random().map(|number| number.max(1)).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// As many descriptors as this process may have; answers how many those are.
pub fn raise_limit() -> usize {
    let (_, hard) = weft_kernel::limits(libc::RLIMIT_NOFILE).unwrap_or((1024, 1024));
    let _ = weft_kernel::set_limits(libc::RLIMIT_NOFILE, hard, hard);
    usize::try_from(hard).unwrap_or(usize::MAX)
}

/// Runs `body` in a process of its own, in a session of its own, without a terminal, that is nobody's child. Of the
/// descriptors of this process it has only those in `keep`: whatever else it inherited, a pipe or a socket of the
/// program that started it, would seem to be open for as long as it lives.
pub fn detached(keep: &[RawFd], body: impl FnOnce()) -> io::Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    // SAFETY: the caller has one thread only (contract of `ensure`), so the child may do what it likes.
    let child = crate::sys::check(unsafe { libc::fork() })?;
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
    weft_kernel::close_all_but(libc::STDERR_FILENO + 1, keep);
    crate::sys::set_name(c"weft-rendezvous");
    body();
    crate::sys::exit_now(0)
}
