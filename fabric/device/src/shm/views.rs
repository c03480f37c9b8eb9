//! Typed views of the segment: the one place where offsets become references.

use super::block::Block;
use super::copy::CopySlot;
use super::doorbell::Mailbox;
use super::memory::Memory;
use super::ring::{Cell, Credits};
use crate::sync::{AtomicU32, AtomicU64};
use std::sync::Arc;
use weft_wire::segment::{BLOCK_BYTES, BULK_BYTES, COPY_SLOTS, Geometry, RING_CELLS, mailbox, pair};

/// What can be viewed in shared memory: made of atomics only, so that any bytes are a valid value and peers may change
/// them at any time.
///
/// # Safety
/// The implementor consists of atomic integers, whatever their values.
unsafe trait AtomicsOnly {}
// SAFETY: atomics only.
unsafe impl AtomicsOnly for AtomicU32 {}
// SAFETY: atomics only.
unsafe impl AtomicsOnly for AtomicU64 {}
// SAFETY: atomics only.
unsafe impl AtomicsOnly for Cell {}
// SAFETY: atomics only.
unsafe impl AtomicsOnly for Credits {}
// SAFETY: atomics only.
unsafe impl AtomicsOnly for CopySlot {}

/// The segment's memory with its geometry. The references it hands out are `'static` in type and live as long as the
/// memory: whoever keeps one keeps the `Arc` too (invariant VIEW-KEEPS-MEMORY).
#[derive(Clone)]
pub(super) struct Views {
    pub memory: Arc<Memory>,
    pub geometry: Geometry,
}

/// One ordered pair's part of the segment.
#[derive(Clone, Copy)]
pub(super) struct PairView {
    pub credits: &'static Credits,
    pub starved: &'static AtomicU32,
    pub slots: &'static [CopySlot],
    pub cells: &'static [Cell],
    pub bulk: *mut u8,
}

impl Views {
    fn one<T: AtomicsOnly>(&self, offset: usize) -> &'static T {
        &self.many::<T>(offset, 1)[0]
    }

    fn many<T: AtomicsOnly>(&self, offset: usize, count: usize) -> &'static [T] {
        let at = self.memory.at(offset, count * size_of::<T>()).cast::<T>();
        assert!(at.is_aligned(), "offset {offset} is not aligned");
        // SAFETY: inside the mapping and aligned, as checked; any bytes are a valid `T` (trait Shared); the mapping
        // lives as long as the reference by VIEW-KEEPS-MEMORY.
        unsafe { std::slice::from_raw_parts(at, count) }
    }

    pub fn header_u32(&self, offset: usize) -> &'static AtomicU32 {
        self.one(offset)
    }

    pub fn header_u64(&self, offset: usize) -> &'static AtomicU64 {
        self.one(offset)
    }

    /// The mailbox of `member`, for a process that others cannot order if it `fences`.
    pub fn mailbox(&self, member: u32, fences: bool) -> Mailbox<'static> {
        let base = self.geometry.mailbox(member);
        Mailbox {
            doorbell: self.one(base + mailbox::DOORBELL),
            active: self.many(base + mailbox::ACTIVE, self.geometry.members.div_ceil(64) as usize),
            orders: self.one(base + mailbox::ORDERS),
            bell: self.one(base + mailbox::BELL),
            fences,
        }
    }

    /// Who has no memory for packets to `member`, one bit each.
    pub fn cut_off(&self, member: u32) -> &'static [AtomicU64] {
        self.many(self.geometry.mailbox(member) + mailbox::CUT_OFF, self.geometry.members.div_ceil(64) as usize)
    }

    pub fn pid(&self, member: u32) -> &'static AtomicU32 {
        self.one(self.geometry.mailbox(member) + mailbox::PID)
    }

    pub fn namespace(&self, member: u32) -> &'static AtomicU32 {
        self.one(self.geometry.mailbox(member) + mailbox::NAMESPACE)
    }

    pub fn state(&self, member: u32) -> &'static AtomicU32 {
        self.one(self.geometry.mailbox(member) + mailbox::STATE)
    }

    pub fn core(&self, member: u32) -> &'static AtomicU32 {
        self.one(self.geometry.mailbox(member) + mailbox::CORE)
    }

    pub fn pair(&self, from: u32, to: u32) -> PairView {
        let base = self.geometry.pair(from, to);
        PairView {
            credits: self.one(base + pair::CREDITS),
            starved: self.one(base + pair::STARVED),
            slots: self.many(base + pair::SLOTS, COPY_SLOTS),
            cells: self.many(base + pair::CELLS, RING_CELLS),
            bulk: self.memory.at(base + pair::BULK, BULK_BYTES),
        }
    }

    pub fn block(&self, first: usize, count: usize) -> Block {
        assert!(first + count <= self.geometry.blocks(), "no blocks {first}+{count}");
        let at = self.memory.at(self.geometry.block(first), count * BLOCK_BYTES);
        Block::new(self.memory.clone(), at, count * BLOCK_BYTES)
    }
}
