//! Where tasks of a user find the daemon of their virtual machine on a host: a Unix socket with a name that is in no file
//! system. Each of both sides looks whether the other is of its user.

use std::io;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

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

fn address() -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("weft-pvm-{}", suffix()))
}

/// # Errors
/// `AddrInUse` where there is a daemon.
pub fn listen() -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(&address()?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// # Errors
/// `ConnectionRefused` where there is no daemon; `PermissionDenied` where another user has the name.
pub fn connect() -> io::Result<UnixStream> {
    let stream = UnixStream::connect_addr(&address()?)?;
    if is_ours(&stream) {
        Ok(stream)
    } else {
        let text = format!("another user holds the name '@weft-pvm-{}' of Unix sockets", suffix());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }
}

/// Whether this user is at the other end.
pub fn is_ours(stream: &UnixStream) -> bool {
    weft_kernel::peer(stream.as_raw_fd()).is_ok_and(|peer| peer.uid == weft_kernel::user())
}
