//! `MPI_Comm_join`: two processes that have a connected socket (MPI 5.0, section 11.10.4).

use super::{attend, meet};
use crate::error::{Class, Error, Result};
use crate::world::WORLD;
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

/// What the process at the other end of the socket `fd` says for `mine`, of equal length. Nothing else is read, and no
/// flag of the socket is changed for good.
fn swap(fd: BorrowedFd<'_>, mine: &[u8]) -> Result<Vec<u8>> {
    let failed = |error: io::Error| Error::new(Class::Arg, format!("fd cannot be used: {error}"));
    // A descriptor of our own for the same socket, whatever its family: reading and writing need not know it.
    let socket = UnixStream::from(fd.try_clone_to_owned().map_err(failed)?);
    let mut theirs = vec![0; mine.len()];
    let (mut said, mut heard) = (0, 0);
    let was_blocking = weft_fabric::door::is_blocking(fd).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    let swapped = attend("MPI_Comm_join", |_| {
        let step = |result: io::Result<usize>, at: &mut usize| match result {
            Ok(0) => Err(Error::new(Class::Other, "the other end of fd is closed")),
            Ok(count) => {
                *at += count;
                Ok(())
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(()),
            Err(error) => Err(failed(error)),
        };
        if said < mine.len()
            && let Err(error) = step((&socket).write(&mine[said..]), &mut said)
        {
            return Some(Err(error));
        }
        if heard < theirs.len()
            && let Err(error) = step((&socket).read(&mut theirs[heard..]), &mut heard)
        {
            return Some(Err(error));
        }
        (said == mine.len() && heard == theirs.len()).then_some(Ok(()))
    });
    if was_blocking {
        let _ = socket.set_nonblocking(false);
    }
    swapped.map(|()| theirs)
}

/// The intercommunicator of both.
pub(super) fn join(fd: BorrowedFd<'_>) -> Result<usize> {
    let met = meet::swap_cards(|mine| {
        debug_assert_eq!(mine.len(), meet::SWAPPED_BYTES);
        swap(fd, mine)
    });
    let myself = WORLD.enter().comm(crate::abi::COMM_SELF)?.clone();
    meet::together("MPI_Comm_join", &myself, 0, Some(met))
}
