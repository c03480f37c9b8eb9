//! Handing a descriptor to other processes of this host and user, over a Unix socket whose name nobody can guess.
//!
//! Abstract names belong to a network namespace, so whoever can connect shares it, and with the descriptor received
//! shares memory: "same host" is tested by doing, not by comparing names.

use crate::kernel;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// A stranger who connects and says nothing holds the others up for so long.
const PATIENCE: Duration = Duration::from_secs(2);

/// A socket on which a descriptor can be fetched.
pub struct DescriptorOffer {
    listener: UnixListener,
    name: String,
}

impl DescriptorOffer {
    /// Opens a socket under a random name.
    pub fn new() -> io::Result<Self> {
        let random = || kernel::true_random().ok_or_else(|| io::Error::other("the system gives no random numbers"));
        let name = format!("weft-{:016x}{:016x}", random()?, random()?);
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
                served[member] = kernel::send_packet(stream.as_raw_fd(), &[1], Some(descriptor.as_raw_fd())).is_ok();
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

/// Whether the process at the other end runs as the user that we run as.
fn is_same_user(stream: &UnixStream) -> io::Result<bool> {
    Ok(kernel::peer(stream.as_raw_fd())?.uid == kernel::user())
}

fn receive_descriptor(stream: &UnixStream) -> io::Result<OwnedFd> {
    let (bytes, descriptor) = loop {
        crate::sys::wait_readable(stream, Duration::MAX)?;
        match kernel::receive_packet(stream.as_raw_fd(), &mut [0]) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            answer => break answer?,
        }
    };
    match descriptor {
        _ if bytes == 0 => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "the process that offers it turned us away"))
        }
        None => Err(io::Error::other("the answer holds no descriptor (are there too few? see ulimit -n)")),
        Some(descriptor) => Ok(descriptor.into()),
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
        let offer = DescriptorOffer::new().expect("offer");
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
        let offer = DescriptorOffer::new().expect("offer");
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
        let offer = DescriptorOffer::new().expect("offer");
        let error = offer.serve(std::io::stdin().as_fd(), 3, Duration::ZERO).expect_err("nobody came");
        assert!(error.to_string().contains("rank 1"), "{error}");
    }
}
