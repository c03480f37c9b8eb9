//! The ring of cells: one producer, one consumer, one cache line per short packet.
//!
//! A cell is valid for the consumer when its stamp is that of the consumer's lap. The producer writes the words, then
//! the first word with the stamp; no index is shared on the way. Credits flow back lazily: the consumer publishes how
//! much it has taken when a quarter of the ring has gathered, or when it finds the ring empty.
//!
//! Orderings:
//! - `publish-cell`: the producer's release store of word 0 pairs with the consumer's acquire load of it; it publishes
//!   words 1..8 and the bulk bytes.
//! - `return-credit`: the consumer's release store of a credit pairs with the producer's acquire load; it says that the
//!   consumer has finished reading the cells and bytes that the producer may now overwrite.
//!
//! **Borrowed bytes.** Whoever has read bulk bytes may answer in them, before it gives them back. A core writes lines
//! that it has read last in a fourth of the time that it needs for lines that another core has read last (Zen 4: 600
//! ticks for 16 KiB, and 4,400), so an answer in the same bytes goes about three times as fast. The producer has them
//! again when the credit says so and it has read everything that was sent to it in borrowed bytes until then; how much
//! that is stands beside the credit.

use crate::past_caches;
use crate::sync::{AtomicU64, Label, Ordering, ordering};
use weft_wire::cell::{INLINE_WORDS, stamp};

/// Largest bulk payload of one packet: a quarter of the area, so that both sides copy at the same time.
pub const LARGEST_PACKET: usize = 32 * 1024;

/// Set beside the length of a bulk payload that was stored past the caches.
pub(super) const PAST_CACHES: u64 = 1 << 63;
/// Set beside the length of a payload that stands in borrowed bytes, with where in the area of its receiver.
pub(super) const BORROWED: u64 = 1 << 62;
const BORROWED_AT: u32 = 32;
const BORROWED_MASK: u64 = (1 << 30) - 1;

/// The word that describes a payload of `length` at `offset` in the area of who receives it.
pub(super) fn borrowed_word(offset: usize, length: usize) -> u64 {
    BORROWED | (offset as u64) << BORROWED_AT | length as u64
}

/// Offset and length that such a word claims.
pub(super) fn borrowed_claim(word: u64) -> (usize, usize) {
    ((word >> BORROWED_AT & BORROWED_MASK) as usize, word as u32 as usize)
}

/// One cache line.
#[repr(C, align(64))]
pub struct Cell {
    pub head: [AtomicU64; 2],
    pub inline: [AtomicU64; INLINE_WORDS],
}
#[cfg(not(loom))]
const _: () = assert!(size_of::<Cell>() == weft_wire::cell::CELL_BYTES);

/// What the consumer has consumed so far. Counters, not positions: they never go back.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Credits {
    pub cells: AtomicU64,
    pub bulk: AtomicU64,
    /// What it takes to read bulk ([`super::distance`]).
    pub reading: AtomicU64,
    /// Packets that the consumer has sent in borrowed bytes until it stored `bulk`.
    pub borrowed: AtomicU64,
}

/// Asks for the line of a cell.
#[inline]
fn fetch<const WRITE: bool>(cell: &Cell) {
    past_caches::fetch::<WRITE>(std::ptr::from_ref(cell).cast());
}

/// A position in a ring of `cells`, with its lap.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    index: usize,
    lap: u64,
    /// Cells passed since the beginning.
    count: u64,
}

impl Cursor {
    #[inline]
    fn advance(&mut self, cells: usize) {
        self.index += 1;
        self.count += 1;
        if self.index == cells {
            self.index = 0;
            self.lap += 1;
        }
    }
}

/// The sending end of a ring.
pub struct Producer<'a> {
    cells: &'a [Cell],
    credits: &'a Credits,
    next: Cursor,
    /// Last credit seen.
    consumed: u64,
}

impl<'a> Producer<'a> {
    pub fn new(cells: &'a [Cell], credits: &'a Credits) -> Self {
        Self { cells, credits, next: Cursor::default(), consumed: 0 }
    }

    /// The next cell to write, if there is room.
    #[inline]
    pub fn vacant(&mut self) -> Option<&'a Cell> {
        if self.next.count - self.consumed >= self.cells.len() as u64 && !self.refresh() {
            return None;
        }
        Some(&self.cells[self.next.index])
    }

    /// Cells published so far.
    pub fn published(&self) -> u64 {
        self.next.count
    }

    /// Fetches the line of the next cell for writing, to overlap that with other work of ours.
    #[inline]
    pub fn fetch_for_writing(&self) {
        fetch::<true>(&self.cells[self.next.index]);
    }

    #[cold]
    fn refresh(&mut self) -> bool {
        // ORDER: return-credit
        let claimed = self.credits.cells.load(ordering(Label::ReturnCreditLoad, Ordering::Acquire));
        // A claim: only a value that is possible is believed.
        if claimed > self.consumed && claimed <= self.next.count {
            self.consumed = claimed;
        }
        self.next.count - self.consumed < self.cells.len() as u64
    }

    /// Makes the cell that [`Self::vacant`] answered visible. `first` comes without stamp.
    #[inline]
    pub fn publish(&mut self, first: u64) {
        let cell = &self.cells[self.next.index];
        // ORDER: publish-cell
        let order = ordering(Label::PublishCellStore, Ordering::Release);
        cell.head[0].store(first | stamp(self.next.lap) as u64, order);
        self.next.advance(self.cells.len());
    }
}

/// The receiving end of a ring.
pub struct Consumer<'a> {
    cells: &'a [Cell],
    credits: &'a Credits,
    next: Cursor,
    reported: u64,
}

impl<'a> Consumer<'a> {
    pub fn new(cells: &'a [Cell], credits: &'a Credits) -> Self {
        Self { cells, credits, next: Cursor::default(), reported: 0 }
    }

    /// The next cell and its first word, if one has arrived.
    #[inline]
    pub fn arrived(&self) -> Option<(&'a Cell, u64)> {
        let cell = &self.cells[self.next.index];
        // ORDER: publish-cell
        let first = cell.head[0].load(ordering(Label::PublishCellLoad, Ordering::Acquire));
        (first as u8 == stamp(self.next.lap)).then_some((cell, first))
    }

    /// Fetches the line of the cell after the next, to overlap that with the copying of the next one's bulk.
    #[inline]
    pub fn fetch_following(&self) {
        let following = if self.next.index + 1 == self.cells.len() { 0 } else { self.next.index + 1 };
        fetch::<false>(&self.cells[following]);
    }

    /// Gives the cell that [`Self::arrived`] answered back. True when credits should be reported now.
    #[inline]
    pub fn consume(&mut self) -> bool {
        self.next.advance(self.cells.len());
        self.unreported() >= self.cells.len() as u64 / 4
    }

    #[inline]
    pub fn unreported(&self) -> u64 {
        self.next.count - self.reported
    }

    /// Publishes what was consumed.
    #[inline]
    pub fn report(&mut self) {
        self.reported = self.next.count;
        // ORDER: return-credit
        self.credits.cells.store(self.reported, ordering(Label::ReturnCreditStore, Ordering::Release));
    }
}

/// The sending end of a pair's bulk area: a ring of bytes, handed out in contiguous pieces of whole cache lines.
pub struct BulkProducer<'a> {
    credits: &'a Credits,
    capacity: u64,
    next: u64,
    consumed: u64,
    /// Packets in borrowed bytes that have been read.
    returned: u64,
}

/// Bulk bytes are handed out in whole lines.
const LINE: u64 = 64;

/// A power of two, so that a place in the area is a mask away: a division is a tenth of a short message.
fn area(capacity: usize) -> u64 {
    assert!(capacity.is_power_of_two(), "a bulk area of {capacity} bytes, which is no power of two");
    capacity as u64
}

/// Bytes that a bulk payload of `length` takes in the area.
#[inline]
pub const fn bulk_footprint(length: u64) -> u64 {
    length.div_ceil(LINE) * LINE
}

impl<'a> BulkProducer<'a> {
    pub fn new(credits: &'a Credits, capacity: usize) -> Self {
        Self { credits, capacity: area(capacity), next: 0, consumed: 0, returned: 0 }
    }

    /// A contiguous piece for at most `wanted` bytes: offset in the area and length. Not taken until [`Self::take`].
    #[inline]
    pub fn room(&mut self, wanted: usize) -> Option<(usize, usize)> {
        let offset = self.next & (self.capacity - 1);
        let piece = (wanted as u64).min(self.capacity - offset);
        let mut free = self.capacity - (self.next - self.consumed);
        if free < bulk_footprint(piece) {
            // ORDER: return-credit
            let claimed = self.credits.bulk.load(ordering(Label::ReturnBulkLoad, Ordering::Acquire));
            let possible = claimed > self.consumed && claimed <= self.next && claimed.is_multiple_of(LINE);
            // Ordered by the load before: it is at least what was true when that credit was given.
            if possible && self.credits.borrowed.load(Ordering::Relaxed) <= self.returned {
                self.consumed = claimed;
            }
            free = self.capacity - (self.next - self.consumed);
        }
        let piece = piece.min(free);
        (piece > 0).then_some((offset as usize, piece as usize))
    }

    /// Bytes taken so far.
    pub fn taken(&self) -> u64 {
        self.next
    }

    #[inline]
    pub fn take(&mut self, length: usize) {
        self.next += bulk_footprint(length as u64);
    }

    /// A packet that came in borrowed bytes has been read.
    #[inline]
    pub fn take_back(&mut self) {
        self.returned += 1;
    }
}

/// The receiving end of a bulk area.
pub struct BulkConsumer<'a> {
    credits: &'a Credits,
    capacity: u64,
    next: u64,
    reported: u64,
    /// Up to here bytes were borrowed, or will not be.
    borrowed: u64,
    /// Packets that were sent in borrowed bytes, and their bytes.
    loans: u64,
    loan_bytes: u64,
    /// Bytes consumed since something was last sent the other way. While it is little, the latest bytes are kept for
    /// what may follow.
    one_way: u64,
}

impl<'a> BulkConsumer<'a> {
    pub fn new(credits: &'a Credits, capacity: usize) -> Self {
        let capacity = area(capacity);
        Self { credits, capacity, next: 0, reported: 0, borrowed: 0, loans: 0, loan_bytes: 0, one_way: capacity }
    }

    /// Where a payload of the claimed `length` stands; `None` if no producer could have put it there.
    #[inline]
    pub fn locate(&self, length: u64) -> Option<usize> {
        let offset = self.next & (self.capacity - 1);
        (length <= self.capacity - offset && length > 0).then_some(offset as usize)
    }

    /// Gives the payload back. True when credits should be reported now.
    #[inline]
    pub fn consume(&mut self, length: u64) -> bool {
        let bytes = bulk_footprint(length);
        self.next += bytes;
        self.one_way = self.one_way.saturating_add(bytes);
        self.next - self.reported >= if self.keeps() { self.capacity * 5 / 8 } else { self.capacity / 4 }
    }

    /// Whether the latest bytes are kept. The producer has as much as it needs for its longest packet all the same.
    #[inline]
    fn keeps(&self) -> bool {
        self.one_way < self.capacity
    }

    /// Something is sent the other way, to whoever has sent these bytes.
    #[inline]
    pub fn answer(&mut self) {
        self.one_way = 0;
    }

    /// Contiguous bytes for a packet of this length to the producer: where in the area.
    #[inline]
    pub fn borrow(&mut self, length: usize) -> Option<usize> {
        let bytes = bulk_footprint(length as u64);
        let offset = self.borrowed & (self.capacity - 1);
        let start = if offset + bytes > self.capacity { self.borrowed + self.capacity - offset } else { self.borrowed };
        if start + bytes > self.next {
            return None;
        }
        self.borrowed = start + bytes;
        self.loans += 1;
        self.loan_bytes += bytes;
        Some((start & (self.capacity - 1)) as usize)
    }

    pub fn unreported(&self) -> u64 {
        self.next - self.reported
    }

    /// Bytes of all packets that were sent in borrowed bytes.
    pub fn loan_bytes(&self) -> u64 {
        self.loan_bytes
    }

    /// Gives credit for what was consumed, and keeps the latest bytes while answers are likely.
    #[inline]
    pub fn report(&mut self) {
        match self.keeps() {
            true => self.report_to(self.next.saturating_sub(self.capacity / 2).max(self.reported)),
            false => self.report_to(self.next),
        }
    }

    /// Gives credit for all of it.
    #[inline]
    pub fn report_all(&mut self) {
        self.report_to(self.next);
    }

    #[inline]
    fn report_to(&mut self, to: u64) {
        self.reported = to;
        self.borrowed = self.borrowed.max(to);
        self.credits.borrowed.store(self.loans, Ordering::Relaxed);
        // ORDER: return-credit
        self.credits.bulk.store(to, ordering(Label::ReturnBulkStore, Ordering::Release));
    }
}
