//! One call that reads or writes: from its arguments to the bytes of memory that it moved.
//!
//! Calls of all processes agree on how they went: a wrong argument of one process, or an error of an aggregator,
//! reaches those whom it concerns, and nobody waits for ever.

use super::call::{AccessPlace, BytesWay, Call, alone};
use super::memory::FileMemory;
use super::view::FileView;
use super::{OpenFile, Split, collective, datarep};
use crate::error::{Class, Result};
use std::sync::{Arc, PoisonError};

/// What an access moves: its memory, and how much that is in the file.
struct Load {
    memory: FileMemory,
    view: Arc<FileView>,
    etypes: i64,
}

/// Performs the access; answers the bytes of memory.
///
/// # Errors
/// In the accesses of all together an error of this process's own arguments comes after the others were served.
pub fn perform(file: &OpenFile, call: Call, memory: Result<FileMemory>) -> Result<u64> {
    let load = memory.and_then(|memory| prepare(file, call, memory)).map_err(|error| file.named(error));
    if !call.together {
        let load = load?;
        let at = begin_alone(file, call, &load)?;
        return run(file, call, &load, at, false).map_err(|error| file.named(error));
    }
    let (load, wrong) = match load {
        Ok(load) => (load, None),
        Err(error) => (Load { memory: FileMemory::empty(), view: file.view(), etypes: 0 }, Some(error)),
    };
    let at = if call.place == AccessPlace::Shared {
        in_turn(file, call, load.etypes)
    } else {
        begin_alone(file, call, &load)
    };
    let moved = match (at, &wrong) {
        (Ok(at), None) => run(file, call, &load, at, true),
        // At the place of a position that is wrong nothing is accessed, but the others are met.
        (Ok(_), Some(_)) => run(file, call, &load, 0, true),
        (Err(error), _) => Err(error),
    };
    match wrong {
        Some(error) => Err(error),
        None => moved.map_err(|error| file.named(error)),
    }
}

/// Checks what does not depend on other processes.
fn prepare(file: &OpenFile, call: Call, memory: FileMemory) -> Result<Load> {
    match call.way {
        BytesWay::Read if !file.mode.reads() => {
            return Err(file.error(Class::Access, "it was opened with MPI_MODE_WRONLY and cannot be read"));
        }
        BytesWay::Write if !file.mode.writes() => {
            return Err(file.error(Class::ReadOnly, "it was opened with MPI_MODE_RDONLY and cannot be written"));
        }
        _ => {}
    }
    if call.place != AccessPlace::Shared {
        file.refuse_sequential()?;
    }
    let view = file.view();
    let bytes = view.datarep.bytes_of(&memory)?;
    if bytes % view.unit() != 0 {
        let detail = format!("{bytes} bytes are no whole number of etypes, which have {} bytes each", view.unit());
        return Err(file.error(Class::Io, detail));
    }
    if let AccessPlace::At(offset) = call.place
        && offset < 0
    {
        return Err(file.error(Class::Arg, format!("offset {offset} is negative")));
    }
    Ok(Load { etypes: (bytes / view.unit()) as i64, view, memory })
}

impl OpenFile {
    pub(super) fn refuse_sequential(&self) -> Result<()> {
        let detail = "it was opened with MPI_MODE_SEQUENTIAL, which leaves only the shared file pointer";
        if self.mode.is_sequential() { Err(self.error(Class::UnsupportedOperation, detail)) } else { Ok(()) }
    }
}

/// Where the access begins, in etypes, without asking all others. The pointer moves on by what is asked for, so that
/// accesses of several threads do not meet.
fn begin_alone(file: &OpenFile, call: Call, load: &Load) -> Result<i64> {
    match call.place {
        AccessPlace::At(offset) => Ok(offset),
        AccessPlace::Own => {
            let mut state = file.state();
            let at = state.position;
            state.position = at.saturating_add(load.etypes);
            Ok(at)
        }
        AccessPlace::Shared => file.add_to_shared(call.name, load.etypes),
    }
}

/// Where the access begins at the shared pointer, in the order of the ranks.
fn in_turn(file: &OpenFile, call: Call, etypes: i64) -> Result<i64> {
    let sizes = file.tell(call.name, [etypes as u64, 0, 0, 0])?;
    let sum = |blocks: &[[u64; 4]]| blocks.iter().fold(0u64, |sum, block| sum.saturating_add(block[0]));
    let total = i64::try_from(sum(&sizes)).unwrap_or(i64::MAX);
    // Everybody is here, so what was asked for before the call has been answered.
    let base = if file.comm.rank == 0 { file.add_to_shared(call.name, total)? } else { 0 };
    let bases = file.tell(call.name, [base as u64, 0, 0, 0])?;
    let before = sum(&sizes[..file.comm.rank as usize]);
    Ok(i64::try_from(bases[0][0].saturating_add(before)).unwrap_or(i64::MAX))
}

/// Moves the bytes; with a representation of other numbers through a converted copy.
fn run(file: &OpenFile, call: Call, load: &Load, at: i64, together: bool) -> Result<u64> {
    let Load { memory, view, .. } = load;
    let start = i128::from(at) * i128::from(view.unit());
    let start = u64::try_from(start).ok().filter(|&start| start <= i64::MAX as u64);
    let start = start.ok_or_else(|| file.error(Class::Arg, format!("etype {at} of the view lies beyond 2^63-1 bytes")));
    // In an access of all nobody stays away for it.
    let (start, wrong) = match start {
        Ok(start) => (start, None),
        Err(error) if together => (0, Some(error)),
        Err(error) => return Err(error),
    };
    if wrong.is_none() && view.datarep.is_plain() {
        let moved = run_plain(file, call, view, start, memory, together)?;
        settle_pointer(file, call, load, at, moved, memory.bytes);
        return Ok(moved);
    }
    let empty = FileMemory::empty();
    let memory = if wrong.is_some() { &empty } else { memory };
    let mut encoded = match call.way {
        // SAFETY: the program's own functions.
        BytesWay::Write => unsafe { view.datarep.encode(memory) },
        BytesWay::Read => view.datarep.bytes_of(memory).and_then(datarep::zeroed),
    };
    let length = encoded.as_ref().map_or(0, |data| data.len() as u64);
    let base = encoded.as_mut().map_or(std::ptr::null_mut(), |data| data.as_mut_ptr());
    // SAFETY: the copy lives to the end of the access.
    let converted = unsafe { FileMemory::of_bytes(base, length) };
    let moved = run_plain(file, call, view, start, &converted, together);
    drop(converted);
    let mut data = encoded?;
    if let Some(error) = wrong {
        return Err(error);
    }
    let moved = moved?;
    settle_pointer(file, call, load, at, moved, length);
    match call.way {
        BytesWay::Write => Ok(memory.bytes),
        // SAFETY: as above.
        BytesWay::Read => unsafe { view.datarep.decode(memory, &mut data[..moved as usize]) },
    }
}

fn run_plain(
    file: &OpenFile,
    call: Call,
    view: &FileView,
    at: u64,
    memory: &FileMemory,
    together: bool,
) -> Result<u64> {
    let (atomic, hints) = {
        let state = file.state();
        (state.atomic, state.hints.clone())
    };
    if together && !atomic && file.comm.size() > 1 {
        return collective::perform(file, call, view, at, memory, &hints);
    }
    let _turn = atomic.then(|| file.turn.lock().unwrap_or_else(PoisonError::into_inner));
    alone(file, call.way, view, at, memory, atomic)
}

/// A read that met the end of the file leaves the individual pointer behind what it found, unless somebody moved it
/// since.
fn settle_pointer(file: &OpenFile, call: Call, load: &Load, at: i64, moved: u64, asked: u64) {
    if call.place == AccessPlace::Own && moved < asked {
        let mut state = file.state();
        if state.position == at.saturating_add(load.etypes) {
            state.position = at + (moved / load.view.unit()) as i64;
        }
    }
}

/// Begins a split collective access, which is done at once. One that fails has not begun.
pub fn begin(
    file: &OpenFile,
    call: Call,
    family: &'static str,
    buffer: usize,
    memory: Result<FileMemory>,
) -> Result<()> {
    file.refuse_open_split()?;
    let bytes = perform(file, call, memory)?;
    file.state().split = Some(Split { family, buffer, bytes });
    Ok(())
}

/// Ends it; answers the bytes of memory.
pub fn end(file: &OpenFile, family: &'static str, buffer: usize) -> Result<u64> {
    let mut state = file.state();
    let wrong = match &state.split {
        None => format!("{family}_begin was not called"),
        Some(split) if split.family != family => format!("what has begun is {}_begin", split.family),
        Some(split) if split.buffer != buffer => {
            format!("buf {buffer:#x} is not that of {family}_begin, {:#x}", split.buffer)
        }
        Some(_) => return Ok(state.split.take().expect("it was there").bytes),
    };
    drop(state);
    Err(file.error(Class::Other, wrong))
}

impl OpenFile {
    /// Refuses another collective access while a split one is open (MPI 5.0, section 14.4.5).
    pub(super) fn refuse_open_split(&self) -> Result<()> {
        let open = self.state().split.as_ref().map(|split| split.family);
        let refuse = |family| Err(self.error(Class::Other, format!("{family}_begin has no end yet")));
        open.map_or(Ok(()), refuse)
    }
}
