//! The socket that clients of this host come to. Its name is in no file system, so nothing stays behind; who began
//! first has it. A daemon that systemd starts is handed the socket instead (`sd_listen_fds(3)`): then no user can have
//! taken the name before, and who asks while a daemon begins again is served when it has.

use anyhow::{Context, Result, ensure};
use rustix::io::{FdFlags, fcntl_setfd};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use weft_requests::client;

/// The first descriptor that is handed over.
const HANDED: i32 = 3;

/// # Errors
/// Somebody else has it, or another one was handed over.
pub fn socket(name: &str) -> Result<tokio::net::UnixListener> {
    let address = client::address(name)?;
    let handed = handed(&address).with_context(|| format!("socket '{name}'"))?;
    let listener = handed.map_or_else(|| bound(name, &address), Ok)?;
    listener.set_nonblocking(true)?;
    Ok(tokio::net::UnixListener::from_std(listener)?)
}

fn handed(address: &SocketAddr) -> Result<Option<UnixListener>> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    // What was meant for who has started this process is not for us.
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Ok(None);
    }
    ensure!(number("LISTEN_FDS") == Some(1), "one socket is to be handed over, not {:?}", std::env::var("LISTEN_FDS"));
    let socket = OwnedFd::from(weft_kernel::Descriptor::own(HANDED));
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    listening(socket, address).map(Some)
}

/// The socket that was handed over, if it is the one that is wanted.
fn listening(socket: OwnedFd, address: &SocketAddr) -> Result<UnixListener> {
    let listener = UnixListener::from(socket);
    let own = listener.local_addr().context("what was handed over is no socket of this kind")?;
    let name = |address: &SocketAddr| std::os::linux::net::SocketAddrExt::as_abstract_name(address).map(<[u8]>::to_vec);
    ensure!(name(&own) == name(address), "another one was handed over: {own:?}");
    // A connection of it has the same name.
    let listens = weft_kernel::option(listener.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ACCEPTCONN, 0i32)?;
    ensure!(
        listens != 0,
        "a connection was handed over, and not the socket that listens: its unit of systemd must not say Accept=yes"
    );
    Ok(listener)
}

fn bound(name: &str, address: &SocketAddr) -> Result<UnixListener> {
    UnixListener::bind_addr(address).map_err(|error| {
        let held = error.kind() == std::io::ErrorKind::AddrInUse;
        let holder = || UnixStream::connect_addr(address).ok();
        let peer = |stream: UnixStream| weft_kernel::peer(stream.as_raw_fd()).ok().map(|peer| (peer.pid, peer.uid));
        match holder().filter(|_| held).and_then(peer) {
            Some((pid, uid)) => anyhow::anyhow!("socket '{name}' is held by process {pid} of user {uid}"),
            None => anyhow::anyhow!("socket '{name}': {error}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As systemd hands it over where the unit of a socket says `Accept=yes`.
    #[test]
    fn a_connection_in_the_place_of_the_socket_is_refused() {
        let address = client::address(&format!("weftd-test/{}", std::process::id())).expect("a name");
        let listener = UnixListener::bind_addr(&address).expect("it is free");
        let _client = UnixStream::connect_addr(&address).expect("it listens");
        let (connection, _) = listener.accept().expect("it has come");
        let refused = listening(connection.into(), &address).expect_err("it does not listen");
        assert!(refused.to_string().contains("Accept=yes"), "{refused}");
        assert!(listening(listener.into(), &address).is_ok());
    }
}
