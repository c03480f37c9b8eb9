//! The messages of an access in two phases.

use super::trains::Train;
use crate::abi::{BYTE, Counts, Described, Various};
use crate::coll::call::blocking;
use crate::coll::prepare::movement::{self, MovementSide};
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::file::memory::FileMemory;
use std::ffi::c_void;

/// Bytes that go to one process or come from one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangePart {
    pub from: u64,
    pub bytes: u64,
}

/// One part for each rank, in the form that all-to-all wants.
#[derive(Clone, Debug)]
pub struct Parts {
    counts: Vec<i64>,
    places: Vec<i64>,
}

impl Parts {
    /// Nothing for anybody.
    pub fn new(ranks: u32) -> Self {
        Self { counts: vec![0; ranks as usize], places: vec![0; ranks as usize] }
    }

    /// Parts of these lengths, one behind the other.
    pub fn side_by_side(lengths: &[u64]) -> Self {
        let mut parts = Self::new(lengths.len() as u32);
        let mut from = 0;
        for (rank, &bytes) in lengths.iter().enumerate() {
            parts.set(rank as u32, ExchangePart { from, bytes });
            from += bytes;
        }
        parts
    }

    pub fn at(&self, rank: u32) -> ExchangePart {
        ExchangePart { from: self.places[rank as usize] as u64, bytes: self.counts[rank as usize] as u64 }
    }

    pub fn set(&mut self, rank: u32, part: ExchangePart) {
        self.places[rank as usize] = part.from as i64;
        self.counts[rank as usize] = part.bytes as i64;
    }

    /// Leaves the first `bytes` of a part; false if it has fewer.
    pub fn shorten(&mut self, rank: u32, bytes: u64) -> bool {
        let fits = bytes <= self.at(rank).bytes;
        if fits {
            self.counts[rank as usize] = bytes as i64;
        }
        fits
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().sum::<i64>() as u64
    }

    fn lengths(&self) -> Vec<u64> {
        self.counts.iter().map(|&count| count as u64).collect()
    }

    fn various(&self, buffer: *const u8) -> MovementSide {
        // The address of what is empty may be any, also one that has a meaning to collectives.
        let buffer = if self.total() == 0 { std::ptr::null() } else { buffer };
        let counts = Counts { at: self.counts.as_ptr().cast(), wide: true };
        let displacements = Counts { at: self.places.as_ptr().cast(), wide: true };
        MovementSide::Various(Various { buffer: buffer.cast(), counts, displacements, datatype: BYTE })
    }
}

/// The error of a file has no communicator.
fn plain(error: Error) -> Error {
    Error { on: None, ..error }
}

/// # Safety
/// `sent` is readable and `received` writable as their parts say, during the call.
unsafe fn all_to_all(
    call: &'static str,
    comm: &Comm,
    (sent, out): (*const u8, &Parts),
    (received, into): (*mut u8, &Parts),
) -> Result<()> {
    // SAFETY: the caller's promise.
    let done = unsafe {
        blocking(call, comm.handle, |scene| movement::alltoall(scene, out.various(sent), into.various(received)))
    };
    done.map_err(plain)
}

/// Two words to each rank and from each.
pub fn words(call: &'static str, comm: &Comm, sent: &[[u64; 2]]) -> Result<Vec<[u64; 2]>> {
    let mut received = vec![[0u64; 2]; sent.len()];
    let side = |buffer: *const c_void| {
        MovementSide::Uniform(Described { buffer, count: size_of::<[u64; 2]>() as i64, datatype: BYTE })
    };
    let (from, to) = (side(sent.as_ptr().cast()), side(received.as_mut_ptr().cast()));
    // SAFETY: both have as many words as there are ranks, and live during the call.
    unsafe { blocking(call, comm.handle, |scene| movement::alltoall(scene, from, to)) }.map_err(plain)?;
    Ok(received)
}

/// Trains to each rank; answers those from each, of which there are as many as `counts` says.
pub fn trains(call: &'static str, comm: &Comm, sent: &[Vec<Train>], counts: &[u64]) -> Result<Vec<Vec<Train>>> {
    const EACH: u64 = size_of::<Train>() as u64;
    let nothing = Train { offset: 0, bytes: 0, stride: 0, count: 0 };
    let all = sent.concat();
    let out = Parts::side_by_side(&sent.iter().map(|list| list.len() as u64 * EACH).collect::<Vec<_>>());
    let into = Parts::side_by_side(&counts.iter().map(|count| count * EACH).collect::<Vec<_>>());
    let mut received = vec![nothing; counts.iter().sum::<u64>() as usize];
    // SAFETY: both have as many trains as their parts say; any bytes make a train.
    unsafe { all_to_all(call, comm, (all.as_ptr().cast(), &out), (received.as_mut_ptr().cast(), &into))? };
    let mut rest = received.as_slice();
    Ok(counts
        .iter()
        .map(|&count| {
            let (list, behind) = rest.split_at(count as usize);
            rest = behind;
            list.to_vec()
        })
        .collect())
}

/// Sends parts of the program's memory and receives into `data`.
pub fn send_memory(
    call: &'static str,
    comm: &Comm,
    memory: &FileMemory,
    mine: &Parts,
    scratch: &mut Vec<u8>,
    arrived: &Parts,
    data: &mut [u8],
) -> Result<()> {
    if let Some(run) = memory.run() {
        // SAFETY: the parts lie within the memory (invariant MEMORY) and within `data`.
        return unsafe { all_to_all(call, comm, (run, mine), (data.as_mut_ptr(), arrived)) };
    }
    let packed = Parts::side_by_side(&mine.lengths());
    scratch.resize(mine.total() as usize, 0);
    for rank in 0..comm.size() {
        let (from, to) = (mine.at(rank).from, packed.at(rank));
        memory.copy(from, &mut scratch[to.from as usize..(to.from + to.bytes) as usize]);
    }
    // SAFETY: the parts lie within the copy and within `data`.
    unsafe { all_to_all(call, comm, (scratch.as_ptr(), &packed), (data.as_mut_ptr(), arrived)) }
}

/// Sends `data` and receives into parts of the program's memory.
pub fn receive_memory(
    call: &'static str,
    comm: &Comm,
    data: &[u8],
    sent: &Parts,
    memory: &FileMemory,
    mine: &Parts,
    scratch: &mut Vec<u8>,
) -> Result<()> {
    if let Some(run) = memory.run() {
        // SAFETY: the parts lie within `data` and within the memory (invariant MEMORY).
        return unsafe { all_to_all(call, comm, (data.as_ptr(), sent), (run, mine)) };
    }
    let packed = Parts::side_by_side(&mine.lengths());
    scratch.resize(mine.total() as usize, 0);
    // SAFETY: the parts lie within `data` and within the copy.
    unsafe { all_to_all(call, comm, (data.as_ptr(), sent), (scratch.as_mut_ptr(), &packed))? };
    for rank in 0..comm.size() {
        let (to, from) = (mine.at(rank), packed.at(rank));
        memory.store(to.from, &scratch[from.from as usize..(from.from + from.bytes) as usize]);
    }
    Ok(())
}
