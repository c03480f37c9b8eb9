//! The sending end to one peer.

use super::distance::Writing;
use super::doorbell::Mailbox;
use super::ring::{BulkProducer, Producer};
use super::views::PairView;
use crate::contract::Posted;
use crate::sync::Ordering;
use crate::{copying, past_caches};
use weft_wire::segment::BULK_BYTES;

/// What a post lacked when it was last refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    Nothing,
    Cell,
    /// A cell and room in the bulk area.
    Bulk,
}

/// Sending end to one peer.
pub(super) struct ShmOutgoing {
    pub(super) cells: Producer<'static>,
    pub(super) bulk: BulkProducer<'static>,
    pub(super) writing: Writing,
    pub(super) pair: PairView,
    pub(super) mailbox: Mailbox<'static>,
    /// So many bytes of the bulk area have memory behind them.
    pub(super) populated: usize,
    /// Whoever was refused may wait for credits, so that arming must see to it that they wake us.
    pub(super) lack: Lack,
}

impl ShmOutgoing {
    /// The end of `pair`, whose receiver has this mailbox.
    pub(super) fn new(pair: PairView, mailbox: Mailbox<'static>) -> Self {
        Self {
            cells: Producer::new(pair.cells, pair.credits),
            bulk: BulkProducer::new(pair.credits, BULK_BYTES),
            writing: Writing::default(),
            pair,
            mailbox,
            populated: 0,
            lack: Lack::Nothing,
        }
    }

    #[inline]
    pub(super) fn finish(&mut self, me: u32, first: u64, wakeups: &mut u64) {
        self.cells.publish(first);
        if self.mailbox.announce(me) {
            *wakeups += 1;
        }
    }

    #[cold]
    pub(super) fn refuse(&mut self, lack: Lack) -> Posted {
        self.lack = lack;
        Posted::Full
    }

    /// Copies to a place in the area; whether past the caches.
    ///
    /// # Safety
    /// `data` is readable for `length` bytes; `offset + length` lies inside the area and has memory; the peer has given
    /// these bytes back.
    pub(super) unsafe fn store(&mut self, offset: usize, data: *const u8, length: usize) -> bool {
        let stored = self.writing.begin(length, || self.pair.credits.reading.load(Ordering::Relaxed));
        let to = self.pair.bulk.wrapping_add(offset);
        // SAFETY: the caller's promise.
        unsafe {
            if stored.past {
                past_caches::copy(data, to, length);
                past_caches::settle();
            } else {
                copying::copy(data, to, length);
            }
        }
        self.writing.end(stored);
        stored.past
    }
}
