//! Beginning and end of a file.
//!
//! An open file has a communicator of its own for its messages.

use super::datarep::Datarep;
use super::disk::Disk;
use super::hints::Hints;
use super::mode::AccessMode;
use super::view::FileView;
use super::{FileState, OpenFile, fault, pointer};
use crate::abi::BYTE;
use crate::comm::agree::agree;
use crate::comm::{Comm, CommDraft, create};
use crate::datatype::Datatype;
use crate::errhandler;
use crate::error::{Class, Error, Result};
use crate::info::Info;
use crate::world::WORLD;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// Opens a file together with all processes of `parent`; answers its handle. What is wrong with the arguments of one
/// process fails in all.
pub fn open(parent: &Comm, path: Result<PathBuf>, amode: i32, info: Result<Info>) -> Result<usize> {
    const CALL: &str = "MPI_File_open";
    let asked = path.and_then(|path| Ok((AccessMode::new(amode).map_err(|error| about(&path, error))?, info?, path)));
    let context = meet(CALL, parent, amode, asked.as_ref().err());
    let (mode, info, path) = asked?;
    let context = context.map_err(|error| about(&path, error))?;
    let comm = own_comm(parent, &path, context);
    let mut hints = Hints::default();
    hints.take(&info);
    let opened = open_together(CALL, &comm, &path, mode, hints);
    opened.map(insert).inspect_err(|_| release(&comm))
}

/// An error that names the file.
fn about(path: &Path, error: Error) -> Error {
    Error { detail: format!("file {}: {}", path.display(), error.detail), on: None, ..error }
}

/// All processes agree on a context for the file, unless one of them has a wrong argument or another access mode.
fn meet(call: &'static str, parent: &Comm, amode: i32, wrong: Option<&Error>) -> Result<u32> {
    let (circle, _) = create::everyone(parent);
    let code = wrong.map_or(0, |error| error.code as u64);
    let agreed = agree(call, circle, [amode as u32 as u64, code, 0])?;
    let first = agreed.said[0][0];
    let failed = agreed.said.iter().position(|says| says[1] != 0);
    let error = match (failed, agreed.said.iter().position(|says| says[0] != first)) {
        (None, None) => return Ok(agreed.context),
        (_, Some(rank)) => {
            let (first, other) = (first as i32, agreed.said[rank][0] as i32);
            Error::new(Class::NotSame, format!("amode is {first} in rank 0 and {other} in rank {rank}"))
        }
        (Some(rank), None) => {
            let code = agreed.said[rank][1] as i32;
            Error::from_code(code, format!("an argument of rank {rank} is wrong: {}", crate::error::text(code)))
        }
    };
    WORLD.enter().contexts.release(agreed.context);
    Err(error)
}

/// A communicator for the file alone.
fn own_comm(parent: &Comm, path: &Path, context: u32) -> Arc<Comm> {
    let draft =
        CommDraft { name: format!("file {}", path.display()), ..CommDraft::from_parent(parent.local.clone(), parent) };
    let mut world = WORLD.enter();
    let handle = create::insert(&mut world, draft, context);
    world.comm(handle).expect("it was just made").clone()
}

fn release(comm: &Comm) {
    let mut world = WORLD.enter();
    let _ = world.comms.remove(comm.handle);
    world.contexts.release(comm.context);
}

/// The first process opens the file, and creates it if so; the others follow if that went well.
fn open_together(
    call: &'static str,
    comm: &Arc<Comm>,
    path: &Path,
    mode: AccessMode,
    hints: Hints,
) -> Result<OpenFile> {
    let first = comm.rank == 0;
    let open = || {
        let wanted = mode.wanted(first, hints.permissions);
        let opened = Disk::open(path, wanted).and_then(|disk| disk.size().map(|size| (disk, size)));
        opened.map_err(|error| fault::of("opening", path, &error))
    };
    let mut mine = None;
    if first || !mode.creates() {
        mine = Some(open());
    }
    if mode.creates() {
        report(call, comm, path, mine.as_ref().and_then(|opened| opened.as_ref().err()))?;
    }
    let mine = mine.unwrap_or_else(open);
    // Nobody goes on with a file that another process could not open.
    report(call, comm, path, mine.as_ref().err())?;
    let (disk, size) = mine?;
    let byte = || Datatype::predefined(BYTE).expect("bytes are predefined").clone();
    let state = FileState {
        view: Arc::new(FileView::new(0, byte(), byte(), Datarep::Native)?),
        position: if mode.begins_at_the_end() { size as i64 } else { 0 },
        atomic: false,
        hints,
        errhandler: errhandler::for_files(),
        split: None,
    };
    let (state, turn, remote) = (Mutex::new(state), Mutex::new(()), OnceLock::new());
    // The program may go elsewhere before the file is deleted at its close.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let keeper = pointer::open(&mut WORLD.enter(), comm.context, comm.rank);
    let file = OpenFile { path, disk, mode, comm: comm.clone(), state, turn, remote, keeper };
    if mode.begins_at_the_end() {
        file.set_kept_pointer(size as i64);
    }
    // The pointer is kept before anybody may ask for it.
    file.settle_hints(call)?;
    Ok(file)
}

/// Tells the others how it went so far; an error of any process is one of all.
fn report(call: &'static str, comm: &Comm, path: &Path, error: Option<&Error>) -> Result<()> {
    let code = error.map_or(0, |error| error.code as u64);
    let said = crate::comm::agree::tell(call, comm, [code, 0, 0, 0]).map_err(|error| Error { on: None, ..error })?;
    if let Some(error) = error {
        return Err(error.clone());
    }
    match said.iter().position(|block| block[0] != 0) {
        None => Ok(()),
        Some(rank) => {
            let code = said[rank][0] as i32;
            let why = crate::error::text(code);
            Err(Error::from_code(code, format!("file {}: rank {rank} could not open it: {why}", path.display())))
        }
    }
}

fn insert(file: OpenFile) -> usize {
    super::files().insert(Arc::new(file))
}

/// Closes a file together with all processes that opened it.
pub fn close(handle: usize) -> Result<()> {
    const CALL: &str = "MPI_File_close";
    let file = super::of(handle)?;
    if let Some(split) = &file.state().split {
        return Err(file.error(Class::Other, format!("{}_begin has no end yet", split.family)));
    }
    let met = file.tell(CALL, [0; 4]);
    pointer::close(&file);
    super::files().remove(handle)?;
    let mut removed = Ok(());
    if file.mode.is_deleted_at_the_end() {
        if file.comm.rank == 0 {
            removed = Disk::remove(&file.path).map_err(|error| fault::of("deleting", &file.path, &error));
        }
        // Whoever goes on after the call finds no file.
        removed = file.agree(CALL, removed);
    }
    release(&file.comm);
    met?;
    removed
}

/// Deletes a file by its name.
pub fn delete(path: &Path) -> Result<()> {
    Disk::remove(path).map_err(|error| fault::of("deleting", path, &error))
}
