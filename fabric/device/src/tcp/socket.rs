//! Sockets, each call in its thinnest safe form; none of them waits.

use super::epoll::{Epoll, SocketWatch, Token};
use crate::contract::ReceiveRoom;
use crate::kernel::{self, checked};
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// The kernel's form of an address, of either family.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union KernelAddress {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
    family: libc::sa_family_t,
}

impl KernelAddress {
    pub(crate) fn new(address: &SocketAddr) -> (Self, usize) {
        let port = address.port().to_be();
        match address.ip() {
            IpAddr::V4(ip) => {
                let sin_addr = libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) };
                let sin_family = libc::AF_INET as libc::sa_family_t;
                let v4 = libc::sockaddr_in { sin_family, sin_port: port, sin_addr, sin_zero: [0; 8] };
                (Self { v4 }, size_of::<libc::sockaddr_in>())
            }
            IpAddr::V6(ip) => {
                let v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: port,
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr { s6_addr: ip.octets() },
                    sin6_scope_id: 0,
                };
                (Self { v6 }, size_of::<libc::sockaddr_in6>())
            }
        }
    }

    /// What the kernel has written; `None` where it is of no family that we know.
    pub(crate) fn read(&self) -> Option<SocketAddr> {
        // SAFETY: the places are plain numbers of the union's zeroed bytes, which the kernel has written over.
        unsafe {
            match i32::from(self.family) {
                libc::AF_INET => {
                    let ip = Ipv4Addr::from(self.v4.sin_addr.s_addr.to_ne_bytes());
                    Some(SocketAddr::new(ip.into(), u16::from_be(self.v4.sin_port)))
                }
                libc::AF_INET6 => {
                    let ip = Ipv6Addr::from(self.v6.sin6_addr.s6_addr);
                    Some(SocketAddr::new(ip.to_canonical(), u16::from_be(self.v6.sin6_port)))
                }
                _ => None,
            }
        }
    }
}

/// A connected socket, or one on its way to be.
pub struct TcpSocket {
    descriptor: OwnedFd,
    /// The set that watches it.
    set: Option<Arc<Epoll>>,
}

/// What reading has brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    Bytes(usize),
    /// Nothing is there now.
    Nothing,
    /// The other side sends no more.
    End,
}

pub(super) fn own(descriptor: usize) -> OwnedFd {
    // SAFETY: a new descriptor that the kernel has just given us.
    unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) }
}

/// How long a silent connection lives: keep-alive asks after so many seconds, then every so many, so many times.
const KEEP_ALIVE: [i32; 3] = [5, 3, 6];

/// A path whose least round trip, in microseconds, is shorter stays inside a cluster.
const SHORT_PATH_US: u32 = 1000;
/// Of what the kernel says of a socket's memory, the bytes that it may keep for sending, and those that it does
/// (`linux/sock_diag.h`).
const MEMORY_WORDS: usize = 9;
const MAY_KEEP: usize = 3;
const KEEPS: usize = 5;
/// The kernel's longest name of a congestion control, with the zero that ends it.
const CONTROL_NAME_BYTES: usize = 16;

/// Whether a congestion control is left on a path with this least round trip, in microseconds (the most that there is
/// where none was seen yet): BBR inside a cluster. It allows what the least round trip can carry, a few microseconds
/// there, in which next to nothing is under way, so that a long message stops again and again.
fn is_left(control: &str, least_us: u32) -> bool {
    least_us < SHORT_PATH_US && control.starts_with("bbr")
}

/// Nothing now is an answer; so is an interruption, after which one looks again.
fn unless_now(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

/// As [`unless_now`] for a write: where the kernel lacks memory for the moment there is no room now. That must be told
/// from an end of the connection, because who has no room is woken when there is some.
fn unless_full(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM)) => Ok(None),
        other => unless_now(other),
    }
}

impl TcpSocket {
    fn new(descriptor: usize) -> Self {
        let socket = Self { descriptor: own(descriptor), set: None };
        socket.prepare();
        socket
    }

    /// Has a set watch this socket, until it is dropped.
    pub fn watch(&mut self, set: &Arc<Epoll>, watch: SocketWatch, token: Token) -> io::Result<()> {
        set.add(self.raw(), watch, token)?;
        self.set = Some(set.clone());
        Ok(())
    }

    /// Begins to connect; when it is writable, [`Self::error`] says how that went.
    pub fn dial(address: &SocketAddr) -> io::Result<Self> {
        let socket = Self { descriptor: begin(address)?, set: None };
        socket.prepare();
        Ok(socket)
    }

    /// Takes the next connection that waits at `listener`.
    pub fn accept(listener: &OwnedFd) -> io::Result<Option<Self>> {
        let flags = (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) as usize;
        // SAFETY: numbers only; the other side's address is not asked for.
        let taken = unsafe { checked(libc::SYS_accept4, [listener.as_raw_fd() as usize, 0, 0, flags, 0, 0]) };
        Ok(unless_now(taken)?.map(Self::new))
    }

    /// Short packets leave at once, and a host that is gone is noticed. Neither can fail on a socket of this kind.
    fn prepare(&self) {
        let [idle, interval, count] = KEEP_ALIVE;
        let options = [
            (libc::IPPROTO_TCP, libc::TCP_NODELAY, 1),
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, idle),
            (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, interval),
            (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, count),
        ];
        options.into_iter().for_each(|(level, name, value)| self.set(level, name, value));
    }

    fn set(&self, level: i32, name: i32, value: i32) {
        let _ = self.set_bytes(level, name, &value.to_ne_bytes());
    }

    fn set_bytes(&self, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
        let at = value.as_ptr() as usize;
        // SAFETY: the value lives across the call.
        let answer = unsafe {
            checked(libc::SYS_setsockopt, [self.raw() as usize, level as usize, name as usize, at, value.len(), 0])
        };
        answer.map(drop)
    }

    /// How the other side's kernel answers ours. Takes another congestion control where the system's is not for a path
    /// as short as this one has shown itself.
    pub fn check_path(&self) -> Silence {
        let Ok(info) = self.info() else { return Silence::default() };
        if is_left(&self.congestion_control(), info.tcpi_min_rtt) {
            // Where the system allows an unprivileged process neither, it stays.
            let _ = self.set_congestion_control("cubic").or_else(|_| self.set_congestion_control("reno"));
        }
        Silence { since_ms: info.tcpi_last_ack_recv, repeated: info.tcpi_retransmits, asked: info.tcpi_probes }
    }

    fn congestion_control(&self) -> String {
        let name = kernel::option(self.raw(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, [0; CONTROL_NAME_BYTES]);
        let name = name.unwrap_or_default();
        String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
    }

    fn set_congestion_control(&self, name: &str) -> io::Result<()> {
        self.set_bytes(libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())
    }

    fn info(&self) -> io::Result<libc::tcp_info> {
        // SAFETY: plain numbers, for which zero is a value.
        let info: libc::tcp_info = unsafe { std::mem::zeroed() };
        kernel::option(self.raw(), libc::IPPROTO_TCP, libc::TCP_INFO, info)
    }

    /// Lets the kernel keep no more than so many bytes in either direction.
    #[cfg(test)]
    pub fn keep_little(&self, bytes: i32) {
        [libc::SO_SNDBUF, libc::SO_RCVBUF].into_iter().for_each(|name| self.set(libc::SOL_SOCKET, name, bytes));
    }

    pub fn raw(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// The other end of a connected socket.
    pub fn peer(&self) -> Option<SocketAddr> {
        ask_name(self.raw(), libc::SYS_getpeername)
    }

    /// Our end.
    #[cfg(test)]
    pub fn name(&self) -> Option<SocketAddr> {
        name_of(self.raw())
    }

    /// What has gone wrong with the connection since the last question.
    pub fn error(&self) -> Option<io::Error> {
        match kernel::option(self.raw(), libc::SOL_SOCKET, libc::SO_ERROR, 0i32) {
            Ok(0) => None,
            Ok(number) => Some(io::Error::from_raw_os_error(number)),
            Err(error) => Some(error),
        }
    }

    pub fn read(&self, bytes: &mut [u8]) -> io::Result<Read> {
        match unless_now(kernel::receive(self.raw(), bytes))? {
            None => Ok(Read::Nothing),
            Some(0) if !bytes.is_empty() => Ok(Read::End),
            Some(count) => Ok(Read::Bytes(count)),
        }
    }

    /// Receives the first `bytes` into memory of somebody else's, which has room for them, and what comes behind into
    /// `rest`.
    pub fn read_into(&self, room: &ReceiveRoom<'_>, bytes: usize, rest: &mut [u8]) -> io::Result<Read> {
        debug_assert!((1..=room.bytes()).contains(&bytes));
        let mut parts = [
            libc::iovec { iov_base: room.at().cast(), iov_len: bytes },
            libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() },
        ];
        // SAFETY: plain data, for which zero is a valid value.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (parts.as_mut_ptr(), parts.len() as _);
        let (at, flags) = ((&raw mut message) as usize, libc::MSG_DONTWAIT as usize);
        // SAFETY: all that the message points at lives across the call and is writable: ours, or as who has made `room`
        // promises.
        let got = unsafe { checked(libc::SYS_recvmsg, [self.raw() as usize, at, flags, 0, 0, 0]) };
        Ok(match unless_now(got)? {
            None => Read::Nothing,
            Some(0) => Read::End,
            Some(count) => Read::Bytes(count),
        })
    }

    /// So many bytes or a little less would be taken now, if the kernel says so. Of what is written beyond that it
    /// learns that it should keep more.
    pub fn room(&self) -> Option<usize> {
        let memory = kernel::option(self.raw(), libc::SOL_SOCKET, libc::SO_MEMINFO, [0u32; MEMORY_WORDS]).ok()?;
        Some(memory[MAY_KEEP].saturating_sub(memory[KEEPS]) as usize)
    }

    /// Whether the other side's kernel has not confirmed everything that was written; false for a connection that has
    /// ended.
    pub fn is_owed(&self) -> bool {
        let mut bytes = 0i32;
        let at = (&raw mut bytes) as usize;
        // SAFETY: the place is valid and ours across the call.
        let asked = unsafe { checked(libc::SYS_ioctl, [self.raw() as usize, libc::TIOCOUTQ as usize, at, 0, 0, 0]) };
        asked.is_ok() && bytes > 0
    }

    /// Lets go what was written with more to follow.
    pub fn push(&self) {
        self.set(libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
    }

    /// Sends as much of these bytes, one after the other, as there is room for; answers how much. With `more` to
    /// follow, the kernel may keep it for company, until [`Self::push`], the other side's next word, or for a fifth of
    /// a second.
    pub fn write(&self, parts: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
        // SAFETY: plain data, for which zero is a valid value.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        // A slice of this kind is what the kernel calls `iovec`.
        message.msg_iov = parts.as_ptr().cast_mut().cast();
        message.msg_iovlen = parts.len();
        let more = if more { libc::MSG_MORE } else { 0 };
        let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | more) as usize;
        let at = (&raw const message) as usize;
        // SAFETY: all that the message points at lives across the call; the kernel only reads it.
        let sent = unsafe { checked(libc::SYS_sendmsg, [self.raw() as usize, at, flags, 0, 0, 0]) };
        Ok(unless_full(sent)?.unwrap_or(0))
    }
}

impl Drop for TcpSocket {
    /// A process that was forked holds the connection as well, without knowing of it, and with that closing alone
    /// neither ends the watch nor tells the other side.
    fn drop(&mut self) {
        if let Some(set) = self.set.take().filter(|set| set.is_ours()) {
            set.forget(self.raw());
            // SAFETY: no memory.
            let _ = unsafe { checked(libc::SYS_shutdown, [self.raw() as usize, libc::SHUT_RDWR as usize, 0, 0, 0, 0]) };
        }
    }
}

/// Begins a connection; nothing waits.
///
/// # Errors
/// It cannot even be begun.
pub fn begin(address: &SocketAddr) -> io::Result<OwnedFd> {
    let domain = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let socket = OwnedFd::from(kernel::socket(domain, libc::SOCK_STREAM)?);
    let (name, length) = KernelAddress::new(address);
    let at = (&raw const name) as usize;
    // SAFETY: the address lives across the call.
    match unsafe { checked(libc::SYS_connect, [socket.as_raw_fd() as usize, at, length, 0, 0, 0]) } {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

/// Our end of a socket.
pub fn name_of(socket: RawFd) -> Option<SocketAddr> {
    ask_name(socket, libc::SYS_getsockname)
}

fn ask_name(socket: RawFd, call: libc::c_long) -> Option<SocketAddr> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut name: KernelAddress = unsafe { std::mem::zeroed() };
    let mut length = size_of::<KernelAddress>() as u32;
    let (at, length_at) = ((&raw mut name) as usize, (&raw mut length) as usize);
    // SAFETY: both places are valid and ours across the call.
    let asked = unsafe { checked(call, [socket as usize, at, length_at, 0, 0, 0]) };
    asked.ok().and_then(|_| name.read())
}

/// How the kernel of the other side answers ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// Milliseconds since its last word.
    pub since_ms: u32,
    /// What was sent, and how often sent again since its last word.
    pub repeated: u8,
    /// How often it was asked since its last word, when nothing was on its way.
    pub asked: u8,
}

impl Silence {
    /// Sent again and again at intervals that double, bytes get through at the latest when a fault has lasted as long
    /// again: a fault of ten seconds is over for both kernels after not much more than twenty.
    const LIMIT_MS: u32 = 30_000;

    /// Whether the other host must be gone. A kernel that is asked and answers nothing is; one that was not asked, or
    /// whose process takes nothing for hours, is not. (The kernel's own limit, `TCP_USER_TIMEOUT`, is not for us: it
    /// ends also the connection to a process that only takes nothing.)
    pub fn is_final(self) -> bool {
        self.since_ms >= Self::LIMIT_MS && (self.repeated > 0 || self.asked > 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::net::TcpListener;
    use std::time::Duration;

    #[test]
    fn addresses_survive_the_kernel() {
        for text in ["127.0.0.1:80", "10.1.2.3:65535", "[::1]:7", "[fe80::1]:443"] {
            let address: SocketAddr = text.parse().expect("an address");
            assert_eq!(KernelAddress::new(&address).0.read(), Some(address));
        }
    }

    #[test]
    fn bbr_is_left_on_short_paths_and_nothing_else_is() {
        for control in ["bbr", "bbr2"] {
            assert!(is_left(control, 4) && is_left(control, 999));
            assert!(!is_left(control, 1000) && !is_left(control, u32::MAX));
        }
        assert!(!is_left("cubic", 4) && !is_left("dctcp", 4) && !is_left("", 4));
    }

    /// BBR where this machine has it, whose module is not loaded for this.
    #[test]
    fn a_connection_inside_a_cluster_is_not_left_to_bbr() {
        let has = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let dialled = TcpSocket::dial(&listener.local_addr().expect("bound")).expect("begun");
        let mut accepted = listener.accept().expect("a connection").0;
        dialled.set_congestion_control("reno").expect("allowed to everybody, unless it was forbidden");
        dialled.check_path();
        assert_eq!(dialled.congestion_control(), "reno");
        if !has.split_whitespace().any(|name| name == "bbr") || dialled.set_congestion_control("bbr").is_err() {
            return println!("this machine has no BBR for us, but: {has}");
        }
        // One that is not delayed by what else runs here.
        while dialled.info().expect("a connection").tcpi_min_rtt >= SHORT_PATH_US {
            assert_eq!(dialled.write(&[IoSlice::new(b"a")], false).expect("sent"), 1);
            accepted.read_exact(&mut [0]).expect("what was sent");
        }
        dialled.check_path();
        assert!(["cubic", "reno"].contains(&&*dialled.congestion_control()));
    }

    #[test]
    fn what_is_ready_is_told_by_its_token_and_the_end_by_its_name() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let listener = OwnedFd::from(listener);
        let set = Arc::new(Epoll::new().expect("a set"));
        let mut ready = Vec::new();
        set.wait(&mut ready, Some(Duration::ZERO));
        assert_eq!(ready, []);
        let mut dialled = TcpSocket::dial(&address).expect("begun");
        dialled.watch(&set, SocketWatch::Both, 5).expect("added");
        set.wait(&mut ready, None);
        assert_eq!((&ready[..], dialled.error().is_none()), (&[5][..], true));
        let accepted = TcpSocket::accept(&listener).expect("no error").expect("one waits");
        assert_eq!(dialled.peer(), Some(address));
        assert_eq!(dialled.write(&[IoSlice::new(b"ab"), IoSlice::new(b"c")], false).expect("sent"), 3);
        let mut bytes = [0; 8];
        assert_eq!(accepted.read(&mut bytes).expect("read"), Read::Bytes(3));
        assert_eq!(bytes[..3], *b"abc");
        assert_eq!(accepted.read(&mut bytes).expect("read"), Read::Nothing);
        drop(dialled);
        set.wait(&mut ready, Some(Duration::ZERO));
        assert_eq!(ready, [5], "a closed socket is watched no more");
        let mut end = accepted.read(&mut bytes).expect("read");
        while end == Read::Nothing {
            end = accepted.read(&mut bytes).expect("read");
        }
        assert_eq!(end, Read::End);
    }

    #[test]
    fn a_port_without_a_listener_is_an_error_with_a_name() {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
        let error = match TcpSocket::dial(&free) {
            Err(error) => error,
            Ok(socket) => {
                let set = Arc::new(Epoll::new().expect("a set"));
                let mut socket = socket;
                socket.watch(&set, SocketWatch::Both, 0).expect("added");
                set.wait(&mut Vec::new(), None);
                socket.error().expect("refused")
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    /// As after a fork: whoever was forked holds the connection as well.
    #[test]
    fn a_socket_that_others_hold_as_well_is_watched_no_more_and_its_end_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let set = Arc::new(Epoll::new().expect("a set"));
        let mut ours = TcpSocket::dial(&address).expect("begun");
        ours.watch(&set, SocketWatch::Both, 5).expect("added");
        let (mut far, _) = listener.accept().expect("one waits");
        let held = ours.descriptor.try_clone().expect("a second descriptor");
        drop(ours);
        let mut ready = Vec::new();
        set.wait(&mut ready, Some(Duration::ZERO));
        assert_eq!(ready, []);
        far.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        assert_eq!(io::Read::read(&mut far, &mut [0; 8]).expect("the end"), 0);
        drop(held);
    }

    #[test]
    fn too_little_memory_of_the_kernel_is_no_room_and_not_an_end() {
        let error = |number| unless_full(Err(io::Error::from_raw_os_error(number)));
        for number in [libc::ENOBUFS, libc::ENOMEM, libc::EAGAIN, libc::EINTR] {
            assert!(matches!(error(number), Ok(None)), "{number}");
        }
        assert!(error(libc::EPIPE).is_err() && error(libc::ECONNRESET).is_err());
    }

    #[test]
    fn a_host_is_gone_when_its_kernel_has_long_answered_nothing() {
        let silence = |since_ms, repeated, asked| Silence { since_ms, repeated, asked };
        assert!(silence(30_000, 1, 0).is_final() && silence(90_000, 0, 3).is_final());
        assert!(!silence(3_600_000, 0, 0).is_final(), "nothing was said to it");
        assert!(!silence(25_000, 7, 0).is_final(), "a fault of ten seconds");
        assert!(!silence(100_000, 0, 1).is_final(), "a process that takes nothing; its kernel was asked just now");
    }
}
