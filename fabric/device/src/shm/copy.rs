//! Long messages: one copy out of the sender's memory, its chunks shared between both sides.
//!
//! The receiver takes a slot of the pair and tells the sender of it. From then on whoever has time claims the next
//! chunk and copies it: the receiver pulls, the sender pushes. The side that finishes the last chunk tells the other.

use super::memory::Memory;
use crate::sync::{AtomicU32, AtomicU64, Label, Ordering, ordering};
use crate::sys;
use std::sync::Arc;

/// The shared state of one long message. Claims: a peer can only make its own message fail by changing it.
#[repr(C, align(64))]
pub struct CopySlot {
    /// 1 while a message uses it. Owned by the receiver.
    pub taken: AtomicU32,
    /// 1 when a chunk could not be copied.
    pub failed: AtomicU32,
    /// Generation of the slot in the upper half, next chunk to claim in the lower. A claim of an earlier message's
    /// generation finds nothing left, so a side that comes late never touches the next message.
    pub claimed: AtomicU64,
    /// Chunks finished.
    pub finished: AtomicU64,
}

/// A slot that a receiver has taken for one message.
#[derive(Clone, Copy)]
pub struct TakenSlot {
    pub index: u32,
    pub generation: u32,
    pub slot: &'static CopySlot,
}

impl CopySlot {
    /// Receiver: makes a slot ready for a new message; answers its generation.
    pub fn reset(&self) -> u32 {
        let generation = ((self.claimed.load(Ordering::Relaxed) >> 32) as u32).wrapping_add(1);
        self.taken.store(1, Ordering::Relaxed);
        self.failed.store(0, Ordering::Relaxed);
        self.finished.store(0, Ordering::Relaxed);
        self.claimed.store((generation as u64) << 32, Ordering::Release);
        generation
    }

    /// The next chunk of a message with `chunks`, if there is one.
    pub(super) fn claim(&self, generation: u32, chunks: u64) -> Option<u64> {
        let mut now = self.claimed.load(Ordering::Acquire);
        loop {
            let index = now as u32 as u64;
            if (now >> 32) as u32 != generation || index >= chunks {
                return None;
            }
            match self.claimed.compare_exchange_weak(now, now + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(index),
                Err(other) => now = other,
            }
        }
    }

    /// A claimed chunk of a message with `chunks` is done, `well` or not. To whoever finishes the last one: whether all
    /// of them went well.
    pub(super) fn finish(&self, chunks: u64, well: bool) -> Option<bool> {
        if !well {
            self.failed.store(1, Ordering::Relaxed);
        }
        // ORDER: finish-chunk. The last finisher sees the bytes and the failure flag of every earlier one. The counter
        // is a claim: it may be anything.
        let finished = self.finished.fetch_add(1, ordering(Label::FinishChunk, Ordering::AcqRel));
        (finished.wrapping_add(1) == chunks).then(|| self.failed.load(Ordering::Relaxed) == 0)
    }
}

/// Bytes of the shortest chunk: both sides share a message of 128 KiB, and a system call is still worth it.
pub const CHUNK_BYTES: u64 = 64 * 1024;

/// Which way this side copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Pull,
    Push,
}

/// Memory of the other side that is mapped here, and where the message begins in it.
#[derive(Clone)]
pub struct ShownMemory {
    pub memory: Arc<Memory>,
    pub offset: usize,
}

impl ShownMemory {
    /// The address of `length` bytes from `from` on, in this process. The peer may change what stands there.
    pub fn at(&self, from: usize, length: usize) -> *const u8 {
        self.memory.at(self.offset + from, length).cast_const()
    }

    /// Copies `length` bytes from `from` on.
    ///
    /// # Safety
    /// `to` is writable for `length` bytes, and does not lie in this memory.
    pub unsafe fn copy(&self, from: usize, to: *mut u8, length: usize) {
        // SAFETY: inside the mapping, which checks that. A peer that writes meanwhile spoils only the bytes that it
        // sent.
        unsafe { crate::copying::copy(self.at(from, length), to, length) };
    }
}

/// One side's view of a long message under way.
pub struct CopyJob {
    pub slot: TakenSlot,
    pub pid: i32,
    pub local: *mut u8,
    pub remote: u64,
    pub bytes: u64,
    pub direction: Direction,
    /// Where a pull finds the message without the kernel.
    pub shown: Option<ShownMemory>,
}

// SAFETY: the pointer is used by whoever holds the job; the caller of the transfer keeps its buffer alive.
unsafe impl Send for CopyJob {}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// A chunk of so many bytes was copied; there may be more.
    Chunk(u64),
    /// Nothing was left to claim; the other side finishes.
    NothingLeft,
    /// This side finished the last chunk, of so many bytes, all of them well.
    Last(u64),
    /// This side finished the last chunk, and one of them failed.
    LastFailed,
}

impl CopyJob {
    fn chunks(&self) -> u64 {
        self.bytes.div_ceil(self.chunk_bytes())
    }

    /// A quarter of a message, up to 512 KiB: each chunk costs a claim, and sharing wants a few of them.
    fn chunk_bytes(&self) -> u64 {
        (self.bytes / 4).next_multiple_of(4096).clamp(CHUNK_BYTES, 8 * CHUNK_BYTES)
    }

    /// Claims and copies one chunk.
    ///
    /// # Safety
    /// `local` is valid for `bytes` bytes: writable when pulling, readable when pushing.
    pub unsafe fn step(&self) -> Copied {
        let chunks = self.chunks();
        let Some(index) = self.slot.slot.claim(self.slot.generation, chunks) else { return Copied::NothingLeft };
        let offset = index * self.chunk_bytes();
        let length = self.chunk_bytes().min(self.bytes - offset) as usize;
        // SAFETY: offset + length <= bytes, and the caller vouches for `local`.
        let result = unsafe {
            let here = self.local.add(offset as usize);
            // A claim: the kernel refuses what is not mapped there.
            let remote = self.remote.wrapping_add(offset);
            match (self.direction, &self.shown) {
                (Direction::Pull, Some(shown)) => {
                    shown.copy(offset as usize, here, length);
                    Ok(())
                }
                (Direction::Pull, None) => sys::copy_from_process(self.pid, remote, here, length),
                (Direction::Push, _) => sys::copy_to_process(self.pid, here, remote, length),
            }
        };
        match self.slot.slot.finish(chunks, result.is_ok()) {
            None => Copied::Chunk(length as u64),
            Some(true) => Copied::Last(length as u64),
            Some(false) => Copied::LastFailed,
        }
    }
}
