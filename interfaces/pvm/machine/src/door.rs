//! Where tasks of a user find the daemon of their virtual machine on a host: a Unix socket with a name that is in no
//! file system. Each of both sides looks whether the other is of its user.

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use weft_kernel::Abstract;

/// Tells the virtual machines of one user apart.
pub const MACHINE_VARIABLE: &str = "PVM_VMID";

/// What stands behind the names of a user's things: the user, and the virtual machine if it has a name.
pub fn suffix() -> String {
    let user = weft_kernel::user();
    match std::env::var(MACHINE_VARIABLE) {
        Ok(name) if !name.is_empty() => format!("{user}.{name}"),
        _ => user.to_string(),
    }
}

fn name() -> String {
    format!("weft-pvm-{}", suffix())
}

/// # Errors
/// `AddrInUse` where there is a daemon.
pub fn listen() -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name())?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// # Errors
/// `ConnectionRefused` where there is no daemon; `PermissionDenied` where another user has the name; `WouldBlock` where
/// whoever has it lets nobody in now.
pub fn connect() -> io::Result<UnixStream> {
    connect_to(&name())
}

fn connect_to(name: &str) -> io::Result<UnixStream> {
    let socket = weft_kernel::socket(libc::AF_UNIX, libc::SOCK_STREAM)?;
    weft_kernel::connect(socket.as_raw_fd(), &Abstract::new(name.as_bytes())).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => {
            let text =
                format!("who holds the name '@{name}' of Unix sockets lets nobody in ('ss -xlp' shows who that is)");
            io::Error::new(ErrorKind::WouldBlock, text)
        }
        _ => error,
    })?;
    let stream = UnixStream::from(OwnedFd::from(socket));
    stream.set_nonblocking(false)?;
    match weft_kernel::peer(stream.as_raw_fd())?.uid {
        uid if uid == weft_kernel::user() => Ok(stream),
        uid => {
            let text = format!("another user ({uid}) holds the name '@{name}' of Unix sockets");
            Err(io::Error::new(ErrorKind::PermissionDenied, text))
        }
    }
}

/// Whether this user is at the other end.
pub fn is_ours(stream: &UnixStream) -> bool {
    weft_kernel::peer(stream.as_raw_fd()).is_ok_and(|peer| peer.uid == weft_kernel::user())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever has the name cannot hold up who connects.
    #[test]
    fn a_door_that_lets_nobody_in_is_an_error_at_once() {
        let name = format!("weft-pvm-test-{}", std::process::id());
        assert_eq!(connect_to(&name).expect_err("nobody has it").kind(), ErrorKind::ConnectionRefused);
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).expect("a name"));
        let _listener = listener.expect("it is free");
        let (waiting, error) = (0..10_000)
            .try_fold(Vec::new(), |mut waiting, _| match connect_to(&name) {
                Ok(stream) => {
                    waiting.push(stream);
                    Ok(waiting)
                }
                Err(error) => Err((waiting, error)),
            })
            .expect_err("there is room for so many");
        assert!(!waiting.is_empty() && error.kind() == ErrorKind::WouldBlock, "{error}");
        assert!(error.to_string().contains("lets nobody in"), "{error}");
    }
}
