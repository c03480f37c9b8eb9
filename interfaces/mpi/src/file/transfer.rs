//! One process's access: the bytes of its memory to the pieces of the file that its view shows, and back.
//!
//! Writes touch the bytes of the view and no others: holes are never read and written back, since another process may
//! write there meanwhile. Reads may take small holes with them, which costs less than many calls and changes nothing.

use super::disk::{Disk, LockedRange};
use super::fault;
use super::memory::FileMemory;
use super::view::{FilePiece, FileView};
use crate::error::Result;
use crate::world::WORLD;
use std::path::Path;

/// Bytes of the stream that are looked at together. They bound the list of pieces and the copies.
const WINDOW: u64 = 1 << 20;
/// The same where both sides are one run: what one system call may move.
const LONG_WINDOW: u64 = 1 << 26;
/// Reads join pieces with smaller holes than this between them.
const HOLE: u64 = 4 << 10;
/// The longest read with holes in it.
const SIEVE: u64 = 256 << 10;

/// A file as the transfers see it.
#[derive(Clone, Copy)]
pub struct FileTarget<'a> {
    pub disk: &'a Disk,
    pub path: &'a Path,
    /// Each access excludes others of the same bytes.
    pub atomic: bool,
}

impl FileTarget<'_> {
    /// For an atomic access the lock over all that it touches.
    fn lock(&self, view: &FileView, at: u64, bytes: u64, exclusive: bool) -> Result<Option<LockedRange<'_>>> {
        if !self.atomic || bytes == 0 {
            return Ok(None);
        }
        let (start, last) = (view.offset(at)?, view.offset(at + bytes - 1)?);
        // Of a view that jumps back all of the file: length 0 is the rest of it.
        let (start, length) = if view.is_sorted() { (start, last - start + 1) } else { (0, 0) };
        let lock = self.disk.lock(start as i64, length as i64, exclusive);
        lock.map(Some).map_err(|error| fault::of("locking for an atomic access", self.path, &error))
    }
}

fn window(view: &FileView, memory: &FileMemory) -> u64 {
    if view.is_dense() && memory.run().is_some() { LONG_WINDOW } else { WINDOW }
}

/// Writes all of `memory` from byte `at` of the stream on.
pub fn write(target: FileTarget, view: &FileView, at: u64, memory: &FileMemory) -> Result<()> {
    let _lock = target.lock(view, at, memory.bytes, true)?;
    let (mut scratch, mut pieces) = (Vec::new(), Vec::new());
    let mut done = 0;
    while done < memory.bytes {
        let length = window(view, memory).min(memory.bytes - done);
        view.pieces(at + done, length, &mut pieces)?;
        let mut data = memory.bytes(done, length as usize, &mut scratch);
        for piece in &pieces {
            let (now, rest) = data.split_at(piece.bytes as usize);
            target.disk.write(now, piece.offset).map_err(|error| fault::of("writing", target.path, &error))?;
            data = rest;
        }
        done += length;
        attend(target, done < memory.bytes);
    }
    Ok(())
}

/// Reads into `memory` from byte `at` of the stream on; answers how many bytes there were before the file's end.
pub fn read(target: FileTarget, view: &FileView, at: u64, memory: &FileMemory) -> Result<u64> {
    let _lock = target.lock(view, at, memory.bytes, false)?;
    let (mut scratch, mut sieve, mut pieces) = (Vec::new(), Vec::new(), Vec::new());
    let mut done = 0;
    while done < memory.bytes {
        let length = window(view, memory).min(memory.bytes - done);
        view.pieces(at + done, length, &mut pieces)?;
        let direct = memory.fill(done, length as usize, |room| fetch(target, &pieces, room, &mut sieve));
        let fetched = match direct {
            Some(fetched) => fetched?,
            None => {
                scratch.resize(length as usize, 0);
                let fetched = fetch(target, &pieces, &mut scratch, &mut sieve)?;
                memory.store(done, &scratch[..fetched as usize]);
                fetched
            }
        };
        done += fetched;
        if fetched < length {
            break;
        }
        attend(target, done < memory.bytes);
    }
    Ok(done)
}

/// Other ranks may wait for this one: a long access looks after them now and then. Not under a lock, since the
/// program's operations may run meanwhile.
fn attend(target: FileTarget, goes_on: bool) {
    if goes_on && !target.atomic {
        WORLD.poll();
    }
}

/// Reads the pieces one behind the other into `room`; answers how many bytes there were before the file's end.
pub fn fetch(target: FileTarget, pieces: &[FilePiece], room: &mut [u8], sieve: &mut Vec<u8>) -> Result<u64> {
    let read = |data: &mut [u8], offset| {
        target.disk.read(data, offset).map_err(|error| fault::of("reading", target.path, &error))
    };
    let (mut filled, mut rest) = (0, pieces);
    while !rest.is_empty() {
        let (group, others) = rest.split_at(together(rest));
        rest = others;
        let (first, wanted) = (group[0].offset, group.iter().map(|piece| piece.bytes).sum::<u64>());
        let found = if let [piece] = group {
            read(&mut room[filled..filled + piece.bytes as usize], piece.offset)? as u64
        } else {
            let hull = group.last().expect("a group has pieces").end() - first;
            sieve.resize(hull as usize, 0);
            let available = read(&mut sieve[..], first)? as u64;
            pick(group, first, &sieve[..available as usize], &mut room[filled..])
        };
        filled += found as usize;
        if found < wanted {
            break;
        }
    }
    Ok(filled as u64)
}

/// How many of the pieces, which there are, are read in one call.
fn together(pieces: &[FilePiece]) -> usize {
    let near = |pair: &[FilePiece]| {
        let hole = pair[1].offset.checked_sub(pair[0].end());
        hole.is_some_and(|hole| hole < HOLE) && pair[1].end() - pieces[0].offset <= SIEVE
    };
    1 + pieces.windows(2).take_while(|pair| near(pair)).count()
}

/// Copies the pieces out of `data`, which lies at `first` in the file, as far as it goes.
fn pick(pieces: &[FilePiece], first: u64, data: &[u8], room: &mut [u8]) -> u64 {
    let mut filled = 0;
    for piece in pieces {
        let start = ((piece.offset - first) as usize).min(data.len());
        let end = ((piece.end() - first) as usize).min(data.len());
        room[filled..filled + end - start].copy_from_slice(&data[start..end]);
        filled += end - start;
        if end - start < piece.bytes as usize {
            break;
        }
    }
    filled as u64
}
