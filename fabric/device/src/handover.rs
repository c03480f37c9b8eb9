//! Handing a descriptor to other processes of this host and user, over a Unix socket whose name nobody can guess.
//!
//! Abstract names belong to a network namespace, so whoever can connect shares it, and with the descriptor received
//! shares memory: "same host" is tested by doing, not by comparing names.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// A stranger who connects and says nothing holds the others up for so long.
const PATIENCE: Duration = Duration::from_secs(2);

/// A socket on which a descriptor can be fetched.
pub struct Offer {
    listener: UnixListener,
    name: String,
}

impl Offer {
    /// Opens a socket under a random name.
    pub fn new() -> io::Result<Self> {
        let name = format!("weft-{:032x}", random()?);
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        Ok(Self { listener, name })
    }

    /// What those who fetch must know: graphic ASCII characters only.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Hands `descriptor` to each of the members `1..members`, once. Other users, and who names no such member, are
    /// turned away.
    ///
    /// # Errors
    /// `TimedOut` when not all have come after `limit`.
    pub fn serve(self, descriptor: BorrowedFd<'_>, members: u32, limit: Duration) -> io::Result<()> {
        let end = Instant::now() + limit;
        let mut served = vec![false; members as usize];
        served[0] = true;
        self.listener.set_nonblocking(true)?;
        while let Some(missing) = served.iter().position(|s| !s) {
            if !crate::sys::wait_readable(&self.listener, end.saturating_duration_since(Instant::now()))? {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("rank {missing} has not come within {} s", limit.as_secs()),
                ));
            }
            let Ok((stream, _)) = self.listener.accept() else { continue };
            if let Some(member) = admit(&stream, &served) {
                served[member] = send_descriptor(&stream, descriptor).is_ok();
            }
        }
        Ok(())
    }
}

/// The member behind a new connection, if it is one of ours that has not been served.
fn admit(mut stream: &UnixStream, served: &[bool]) -> Option<usize> {
    let mut word = [0; 4];
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    if !is_same_user(stream).ok()? {
        return None;
    }
    stream.read_exact(&mut word).ok()?;
    let member = u32::from_le_bytes(word) as usize;
    served.get(member).is_some_and(|s| !s).then_some(member)
}

/// Fetches, as `member`, the descriptor that another process offers under `name`.
///
/// # Errors
/// `ConnectionRefused` where nobody in this network namespace offers it.
pub fn fetch(name: &str, member: u32) -> io::Result<OwnedFd> {
    let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    if !is_same_user(&stream)? {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the process that offers it is another user's"));
    }
    crate::sys::send_all(&stream, &member.to_le_bytes())?;
    receive_descriptor(&stream)
}

fn random() -> io::Result<u128> {
    let mut bytes = [0u8; 16];
    // SAFETY: pointer and length describe the array; so few bytes come whole.
    match unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) } {
        16 => Ok(u128::from_le_bytes(bytes)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the process at the other end runs as the user that we run as.
fn is_same_user(stream: &UnixStream) -> io::Result<bool> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: a valid place for the answer and its size.
    let result = unsafe {
        let at = (&raw mut peer).cast();
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, at, &mut bytes)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: asks a number.
    Ok(peer.uid == unsafe { libc::geteuid() })
}

/// Room for one control message with one descriptor, aligned as its header wants.
#[repr(C, align(8))]
struct Control([u8; 64]);

const DESCRIPTOR_BYTES: u32 = size_of::<RawFd>() as u32;

/// A message of one byte in `byte` with the control message in `control`.
fn message(byte: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: plain data, for which zero is a valid value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = byte;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: computes a size.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(DESCRIPTOR_BYTES) } as _;
    message
}

fn send_descriptor(stream: &UnixStream, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let mut byte = 1u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = Control([0; 64]);
    let message = message(&mut part, &mut control);
    // SAFETY: the control message lies inside `control` (CMSG_SPACE of one descriptor is less than 64 bytes); all that
    // the message points at lives across the call.
    let sent = unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(DESCRIPTOR_BYTES) as _;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor.as_raw_fd());
        libc::sendmsg(stream.as_raw_fd(), &message, libc::MSG_NOSIGNAL)
    };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn receive_descriptor(stream: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = 0u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut control = Control([0; 64]);
    let mut message = message(&mut part, &mut control);
    let got = loop {
        // SAFETY: all that the message points at lives across the call.
        let got = unsafe { libc::recvmsg(stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) };
        if got >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break got;
        }
    };
    match got {
        ..0 => return Err(io::Error::last_os_error()),
        0 => return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the process that offers it turned us away")),
        _ => {}
    }
    // SAFETY: the kernel has filled `control` and says how far; a descriptor in it is new and ours.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        let is_descriptor = !header.is_null()
            && (*header).cmsg_type == libc::SCM_RIGHTS
            && (*header).cmsg_len >= libc::CMSG_LEN(DESCRIPTOR_BYTES) as _;
        if !is_descriptor {
            return Err(io::Error::other("the answer holds no descriptor (are there too few? see ulimit -n)"));
        }
        Ok(OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::Memory;
    use std::os::fd::AsFd;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn every_member_gets_the_same_memory() {
        let memory = Memory::create(c"weft-test", 4096).expect("memfd");
        // SAFETY: inside the memory.
        unsafe { memory.at(7, 1).write(9) };
        let offer = Offer::new().expect("offer");
        let name = offer.name().to_owned();
        std::thread::scope(|scope| {
            for member in 1..4 {
                let name = &name;
                scope.spawn(move || {
                    let theirs = Memory::open(fetch(name, member).expect("fetch")).expect("map");
                    // SAFETY: inside the memory.
                    assert_eq!(unsafe { theirs.at(7, 1).read() }, 9);
                });
            }
            offer.serve(memory.descriptor(), 4, LIMIT).expect("all came");
        });
    }

    #[test]
    fn a_member_that_does_not_exist_is_turned_away() {
        let offer = Offer::new().expect("offer");
        let name = offer.name().to_owned();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(fetch(&name, 5).expect_err("no such member").kind(), io::ErrorKind::PermissionDenied);
                fetch(&name, 1).expect("this one exists");
            });
            offer.serve(std::io::stdin().as_fd(), 2, LIMIT).expect("member 1 came");
        });
    }

    #[test]
    fn a_name_that_nobody_offers_is_refused() {
        assert_eq!(fetch("weft-nobody", 1).expect_err("nobody").kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn who_does_not_come_is_named() {
        let offer = Offer::new().expect("offer");
        let error = offer.serve(std::io::stdin().as_fd(), 3, Duration::ZERO).expect_err("nobody came");
        assert!(error.to_string().contains("rank 1"), "{error}");
    }
}
