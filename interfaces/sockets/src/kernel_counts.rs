//! What the kernel says about a connection: whether it may be accelerated at all, how many bytes it has carried, and
//! the options that calls on it must follow.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use libc::{AF_INET, AF_INET6, IPPROTO_TCP, SOL_SOCKET, sockaddr_in, sockaddr_in6, sockaddr_storage};
use weft_fabric::stream::Reason;

use super::conn::Connection;
use super::{raw, rest, settings};

const ESTABLISHED: u8 = 1;
/// The states of a connection whose other side has ended it: by an end of its own direction, or altogether.
const ENDED: [u8; 5] = [TIME_WAIT, CLOSE, CLOSE_WAIT, LAST_ACK, CLOSING];
const TIME_WAIT: u8 = 6;
const CLOSE: u8 = 7;
const CLOSE_WAIT: u8 = 8;
const LAST_ACK: u8 = 9;
const CLOSING: u8 = 11;

/// The part of the kernel's `tcp_info` that is needed, with its layout (`linux/tcp.h`): the counts lie at these
/// offsets.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct TcpInfo([u8; 216]);

impl TcpInfo {
    fn of(fd: c_int) -> Option<Self> {
        raw::option(fd, IPPROTO_TCP, libc::TCP_INFO, TcpInfo([0; 216])).ok()
    }

    fn number(&self, offset: usize, size: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&self.0[offset..offset + size]);
        u64::from_ne_bytes(bytes)
    }

    fn established(&self) -> bool {
        self.0[0] == ESTABLISHED
    }

    fn ended(&self) -> bool {
        ENDED.contains(&self.0[0])
    }

    fn bytes_received(&self) -> u64 {
        self.number(128, 8)
    }

    /// Bytes that the program has handed over: those that went out at least once and those still to go. (Bytes
    /// acknowledged would count the first packet of a connection in one direction.)
    fn bytes_written(&self) -> u64 {
        let (sent, again, waiting) = (self.number(200, 8), self.number(208, 8), self.number(144, 4));
        sent.wrapping_sub(again) + waiting
    }
}

/// Whether `fd` is an established TCP connection between two addresses of this host that the user's rules allow; its
/// cookie.
pub fn may_be_accelerated(fd: c_int) -> Result<u64, Reason> {
    if !is_connection(fd) {
        return Err(Reason::NotLocal);
    }
    let Some((here, there)) = ends(fd) else { return Err(Reason::NotLocal) };
    if !same_host(&here, &there) {
        return Err(Reason::NotLocal);
    }
    if !settings::port_allowed(here.port) && !settings::port_allowed(there.port) {
        return Err(Reason::Rule);
    }
    raw::cookie(fd).map_err(|_| Reason::Resources)
}

/// Whether `fd` is an established TCP connection.
pub fn is_connection(fd: c_int) -> bool {
    raw::option(fd, SOL_SOCKET, libc::SO_PROTOCOL, 0 as c_int).is_ok_and(|protocol| protocol == IPPROTO_TCP)
        && TcpInfo::of(fd).is_some_and(|info| info.established())
}

/// The ports of this end and the other.
pub fn ports(fd: c_int) -> Option<[u16; 2]> {
    ends(fd).map(|(here, there)| [here.port, there.port])
}

/// Whether `fd` is an established TCP connection to an address that is not its own, with a port that the user's rules
/// allow.
pub fn leads_elsewhere(fd: c_int) -> bool {
    is_connection(fd)
        && ends(fd).is_some_and(|(here, there)| {
            !same_host(&here, &there) && (settings::port_allowed(here.port) || settings::port_allowed(there.port))
        })
}

/// Whether both are this host, as far as the two addresses tell.
fn same_host(here: &KernelEnd, there: &KernelEnd) -> bool {
    here.address == there.address || (here.is_loopback() && there.is_loopback())
}

/// Whether the other side has ended the connection, or its direction of it: the kernel calls also that an end for
/// readers that this side has shut against itself.
pub fn has_ended(fd: c_int) -> bool {
    TcpInfo::of(fd).is_some_and(|info| info.ended())
}

/// The other side has ended its direction, and this side has not.
pub fn awaits_our_end(fd: c_int) -> bool {
    TcpInfo::of(fd).is_some_and(|info| info.0[0] == CLOSE_WAIT)
}

/// This end and the other one, as the kernel names them.
pub fn ends(fd: c_int) -> Option<(KernelEnd, KernelEnd)> {
    let here = raw::name(libc::SYS_getsockname, fd).ok()?;
    let there = raw::name(libc::SYS_getpeername, fd).ok()?;
    Some((KernelEnd::of(&here)?, KernelEnd::of(&there)?))
}

/// Makes the kernel send what it holds back until a packet is full (Nagle's rule, `TCP_CORK`): setting `TCP_NODELAY`
/// does that, also where it is set already or has no effect later.
pub fn push(fd: c_int) {
    let before = raw::option(fd, IPPROTO_TCP, libc::TCP_NODELAY, 1 as c_int).unwrap_or(1);
    let _ = raw::set_option(fd, IPPROTO_TCP, libc::TCP_NODELAY, 1);
    if before == 0 {
        let _ = raw::set_option(fd, IPPROTO_TCP, libc::TCP_NODELAY, 0);
    }
}

/// One end of a connection; IPv4 in its mapped form.
#[derive(PartialEq, Eq)]
pub struct KernelEnd {
    address: [u8; 16],
    pub port: u16,
}

impl KernelEnd {
    fn of(name: &sockaddr_storage) -> Option<KernelEnd> {
        match c_int::from(name.ss_family) {
            AF_INET => {
                // SAFETY: the family says which type it is; the storage is large enough for all and aligned.
                let name = unsafe { &*(&raw const *name).cast::<sockaddr_in>() };
                let mut address = [0; 16];
                address[10..12].copy_from_slice(&[0xff, 0xff]);
                address[12..].copy_from_slice(&name.sin_addr.s_addr.to_ne_bytes());
                Some(KernelEnd { address, port: u16::from_be(name.sin_port) })
            }
            AF_INET6 => {
                // SAFETY: as above.
                let name = unsafe { &*(&raw const *name).cast::<sockaddr_in6>() };
                Some(KernelEnd { address: name.sin6_addr.s6_addr, port: u16::from_be(name.sin6_port) })
            }
            _ => None,
        }
    }

    fn is_loopback(&self) -> bool {
        let mapped = self.address[..10] == [0; 10] && self.address[10..12] == [0xff, 0xff];
        (mapped && self.address[12] == 127) || self.address == *std::net::Ipv6Addr::LOCALHOST.octets().as_slice()
    }
}

/// How often counts are compared while the other side is sending.
const SAMPLES: u32 = 50;

/// What the kernel says about the counts of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountSample {
    /// They are the kernel's.
    Equal,
    /// More has come between the questions: they lie within the bounds.
    Possible,
    /// What was sent is not what the kernel says, which may be in the middle of sending something again.
    Unclear,
    /// The program has taken something else, or one direction has ended.
    Other,
}

/// Whether the kernel has carried exactly what was counted, in a connection where nothing has ended. The caller makes
/// sure that nobody of this process moves bytes meanwhile.
///
/// The peer may go on sending, and under load something arrives between any two questions. What the program has taken
/// is then known within bounds only; counts that lie in them again and again are believed.
pub fn agree(fd: c_int, sent: u64, received: u64) -> bool {
    let mut possible = false;
    for _ in 0..SAMPLES {
        match sample(fd, sent, received) {
            CountSample::Equal => return true,
            CountSample::Possible => possible = true,
            CountSample::Unclear => {}
            CountSample::Other => return false,
        }
    }
    possible
}

fn sample(fd: c_int, sent: u64, received: u64) -> CountSample {
    let (Some(before), Ok(waiting)) = (TcpInfo::of(fd), raw::ioctl_number(fd, libc::FIONREAD)) else {
        return CountSample::Other;
    };
    let Some(after) = TcpInfo::of(fd) else { return CountSample::Other };
    // What was written is one answer of the kernel, under its lock: exact.
    if after.established() && after.bytes_written() != sent {
        return CountSample::Unclear;
    }
    if !after.established() {
        return CountSample::Other;
    }
    within(received + waiting as u64, before.bytes_received(), after.bytes_received())
}

/// How a count of what has arrived in all compares to the kernel's, asked before and after.
fn within(arrived: u64, before: u64, after: u64) -> CountSample {
    match (before..=after).contains(&arrived) {
        true if before == after => CountSample::Equal,
        true => CountSample::Possible,
        false => CountSample::Other,
    }
}

/// Reads the options that data calls on an attached connection must follow.
pub fn read_options(conn: &Connection, fd: c_int) {
    let options = conn.stream().options();
    options.receive_timeout.store(timeout_ns(fd, libc::SO_RCVTIMEO), Ordering::Relaxed);
    options.send_timeout.store(timeout_ns(fd, libc::SO_SNDTIMEO), Ordering::Relaxed);
    let low = raw::option(fd, SOL_SOCKET, libc::SO_RCVLOWAT, 1 as c_int).unwrap_or(1);
    options.low_water.store(low.max(1) as u32, Ordering::Relaxed);
    let tells = raw::option(fd, IPPROTO_TCP, rest::TCP_INQ, 0 as c_int).unwrap_or(0);
    options.tells_left.store(u32::from(tells != 0), Ordering::Relaxed);
}

/// `SO_RCVTIMEO` or `SO_SNDTIMEO`; 0 for none.
pub fn timeout_ns(fd: c_int, name: c_int) -> u64 {
    let none = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let time = raw::option(fd, SOL_SOCKET, name, none).unwrap_or(none);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_usec as u64 * 1000)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn counts_of_the_kernel_are_those_of_the_program_on_both_sides() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            for (from, to) in [(&client, &server), (&server, &client)] {
                assert!(agree(from.as_raw_fd(), 0, 0) && agree(to.as_raw_fd(), 0, 0));
            }
            client.write_all(&[1; 1000]).unwrap();
            server.read_exact(&mut [0; 400]).unwrap();
            let eventually = |fd, sent, received| (0..1_000_000).any(|_| agree(fd, sent, received));
            assert!(eventually(client.as_raw_fd(), 1000, 0) && eventually(server.as_raw_fd(), 0, 400));
            assert!(!agree(client.as_raw_fd(), 999, 0) && !agree(server.as_raw_fd(), 0, 401));
            server.write_all(&[2; 7]).unwrap();
            client.read_exact(&mut [0; 7]).unwrap();
            assert!(eventually(client.as_raw_fd(), 1000, 7) && eventually(server.as_raw_fd(), 7, 400));
            assert!(may_be_accelerated(client.as_raw_fd()).is_ok());
            drop(server);
            assert!(!(0..10).any(|_| agree(client.as_raw_fd(), 1000, 7)));
        }
    }

    #[test]
    fn counts_agree_while_the_other_side_never_stops_sending() {
        use std::sync::atomic::AtomicBool;

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut went = true;
                while went && !stop.load(Ordering::Relaxed) {
                    went = client.write_all(&[1; 100]).is_ok();
                }
            });
            let mut buffer = vec![0; 1 << 16];
            let mut received = 0;
            let right = (0..2000).all(|_| {
                received += server.read(&mut buffer).unwrap() as u64;
                // One byte too many was never there; one too few may hide behind what has just come.
                agree(server.as_raw_fd(), 0, received) && !agree(server.as_raw_fd(), 1, received)
            });
            let wrong = (0..100).any(|_| agree(server.as_raw_fd(), 0, received + (1 << 30)));
            stop.store(true, Ordering::Relaxed);
            drop(server);
            assert!(right && !wrong);
        });
    }

    #[test]
    fn bounds_hold_the_count_from_both_sides() {
        assert_eq!(within(10, 10, 10), CountSample::Equal);
        assert_eq!([10, 12, 15].map(|at| within(at, 10, 15)), [CountSample::Possible; 3]);
        assert_eq!([9, 16].map(|at| within(at, 10, 15)), [CountSample::Other; 2]);
    }

    #[test]
    fn other_sockets_are_not_accelerated() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(may_be_accelerated(listener.as_raw_fd()), Err(Reason::NotLocal));
        let (unix, _) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(may_be_accelerated(unix.as_raw_fd()), Err(Reason::NotLocal));
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.connect(udp.local_addr().unwrap()).unwrap();
        assert_eq!(may_be_accelerated(udp.as_raw_fd()), Err(Reason::NotLocal));
    }
}
