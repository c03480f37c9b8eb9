//! Files (MPI 5.0, chapter 14).
//!
//! - `view`: which bytes of the file a process sees; pure.
//! - `memory`: the bytes of the program's buffers. `datarep`: what they are in the file.
//! - `transfer`: one process's access. `collective`: that of all, by few for all where their pieces are small and
//!   mixed.
//! - `pointer`: the shared file pointer. `access`: what the calls have in common, from arguments to a byte count
//!   (`call`: those arguments).
//! - `open`: beginning and end of a file. `mode`, `hints`: how it may be used. `fault`: what the system says, as
//!   errors.
//! - `disk`: the system calls. Nothing else in this crate touches a file.
//!
//! Nonblocking accesses are done inside the call that starts them (decision 19): their requests are complete at once.
//! Those of all processes together do not wait for the others: each does its own part. Split collective accesses are
//! done in the call that begins them.
//!
//! Invariants:
//! - No system call on a file is made, and no function of the program runs, while the monitor or a lock of [`OpenFile`]
//!   is held (but for the lock of an atomic access, under which its reads and writes are made).
//! - A write changes the bytes that the caller's view shows and no others.
//! - Collective calls with an argument that is wrong on one process take part all the same, so that nobody waits for
//!   ever.

pub mod abi;
mod access;
mod call;
mod collective;
mod datarep;
mod disk;
mod fault;
mod hints;
mod memory;
mod mode;
mod open;
mod pointer;
mod transfer;
mod view;

pub use open::close;

use crate::comm::Comm;
use crate::comm::agree;
use crate::errhandler::handler::Handler;
use crate::error::{Class, Error, Result};
use crate::handle::{HandleKind, HandleTable};
use disk::Disk;
use hints::Hints;
use mode::AccessMode;
use pointer::PointerKeeper;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use view::FileView;

/// An open file. Immutable but for its state, which locks itself.
pub struct OpenFile {
    path: PathBuf,
    disk: Disk,
    mode: AccessMode,
    /// Of its own, so that its messages meet nobody else's.
    comm: Arc<Comm>,
    state: Mutex<FileState>,
    /// Taken by atomic accesses: locks of the file system do not keep threads of one process apart.
    turn: Mutex<()>,
    /// Whether the file lies on another machine, once it was asked.
    remote: OnceLock<bool>,
    /// The shared pointer, in the process that keeps it.
    keeper: Option<Arc<Mutex<PointerKeeper>>>,
}

/// The open files.
static FILES: Mutex<HandleTable<Arc<OpenFile>>> = Mutex::new(HandleTable::new(HandleKind::File));

fn files() -> MutexGuard<'static, HandleTable<Arc<OpenFile>>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What calls change.
struct FileState {
    view: Arc<FileView>,
    /// The individual file pointer, in etypes.
    position: i64,
    atomic: bool,
    hints: Hints,
    errhandler: Arc<Handler>,
    /// The split collective access that has begun.
    split: Option<Split>,
}

/// A split collective access whose end is still to be called.
struct Split {
    /// Of which function family, such as `MPI_File_read_all`.
    family: &'static str,
    buffer: usize,
    /// How much of memory was moved.
    bytes: u64,
}

impl OpenFile {
    fn state(&self) -> MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> Arc<FileView> {
        self.state().view.clone()
    }

    /// The handler of this file, for errors in calls on it.
    pub fn errhandler(&self) -> Arc<Handler> {
        self.state().errhandler.clone()
    }

    pub fn set_errhandler(&self, handler: Arc<Handler>) {
        self.state().errhandler = handler;
    }

    /// An error that names the file.
    #[cold]
    fn error(&self, class: Class, detail: impl std::fmt::Display) -> Error {
        Error::new(class, format!("file {}: {detail}", self.path.display()))
    }

    /// The same for an error that does not know the file.
    #[cold]
    fn named(&self, error: Error) -> Error {
        let detail = if error.detail.starts_with("file ") {
            error.detail
        } else {
            format!("file {}: {}", self.path.display(), error.detail)
        };
        Error { detail, on: None, ..error }
    }

    /// What every process of the file says, by rank.
    fn tell(&self, call: &'static str, says: [u64; 4]) -> Result<Vec<[u64; 4]>> {
        agree::tell(call, &self.comm, says).map_err(|error| self.named(error))
    }

    /// The hints that all have to have alike are those of the first process from now on.
    fn settle_hints(&self, call: &'static str) -> Result<()> {
        let [ways, buffer] = self.state().hints.shape();
        let said = self.tell(call, [ways, buffer, 0, 0])?;
        self.state().hints.follow([said[0][0], said[0][1]]);
        Ok(())
    }

    /// Tells the others how this process's part went; an error of any process is one of all.
    fn agree(&self, call: &'static str, mine: Result<()>) -> Result<()> {
        let class = mine.as_ref().err().map_or(0, |error| error.code as u64);
        let said = self.tell(call, [class, 0, 0, 0])?;
        mine?;
        match said.iter().position(|block| block[0] != 0) {
            None => Ok(()),
            Some(rank) => Err(self.elsewhere(rank, said[rank][0])),
        }
    }

    #[cold]
    fn elsewhere(&self, rank: usize, code: u64) -> Error {
        let code = code as i32;
        let error =
            Error::from_code(code, format!("it failed in rank {rank} of the file: {}", crate::error::text(code)));
        self.named(error)
    }
}

/// Open files that come from a session, each with the context of its communicator.
pub fn of_session(session: usize) -> Vec<(u32, usize)> {
    let files = files();
    let theirs = files.iter().filter(|(_, file)| file.comm.session == Some(session));
    theirs.map(|(handle, file)| (file.comm.context, handle)).collect()
}

/// The open file with this handle.
pub fn of(handle: usize) -> Result<Arc<OpenFile>> {
    let unknown = |mut error: Error| {
        error.detail = error.detail.replacen("file ", "fh ", 1);
        error
    };
    files().get(handle).cloned().map_err(unknown)
}
