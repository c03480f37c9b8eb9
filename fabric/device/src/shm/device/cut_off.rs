//! Senders that have no memory for packets to a member. The receiver cannot see that by itself, and may wait for them
//! for ever, so they tell it by a way that needs no more memory: a bit in its mailbox page, and an alert.
//!
//! ORDER: cut-off. Who is cut off sets its bit after its last packet; the receiver looks at the bits, then at the ring.

use super::ShmDevice;
use crate::contract::{PeerFault, Sink};
use crate::shm::doorbell::{Mailbox, members_of};
use crate::shm::views::Views;
use crate::sync::{AtomicU64, Ordering};
use weft_wire::segment::RING_CELLS;

/// Says that nothing comes from `me` to `to` any more, whose mailbox is `bell`. True if it was woken.
pub(super) fn tell(views: &Views, me: u32, to: u32, bell: &Mailbox<'_>) -> bool {
    // ORDER: cut-off
    word_of(views.cut_off(to), me).fetch_or(1 << (me % 64), Ordering::SeqCst);
    bell.alert(to)
}

fn word_of(set: &[AtomicU64], member: u32) -> &AtomicU64 {
    &set[member as usize / 64]
}

impl ShmDevice {
    /// After an alert: takes what was sent by those who are cut off from us, and tells that no more comes. True if that
    /// concerned anybody. They fill their rings no more, so this ends.
    #[cold]
    pub(super) fn take_cut_offs<S: Sink>(&mut self, sink: &mut S) -> bool {
        let me = self.me;
        self.mailbox.heed(me);
        self.seen[me as usize / 64] &= !(1 << (me % 64));
        let set = self.views.cut_off(me);
        let mut any = false;
        for (index, word) in set.iter().enumerate() {
            // ORDER: cut-off
            for from in members_of(index, word.load(Ordering::SeqCst)) {
                any |= self.take_last(from, sink);
            }
        }
        any
    }

    /// The bit is a claim, as a sender's other bit is.
    fn take_last<S: Sink>(&mut self, from: u32, sink: &mut S) -> bool {
        if from >= self.views.geometry.members {
            return false;
        }
        // Who has never sent has no ring. A look at it would want the memory that there is not.
        let has_sent = self.incoming[from as usize].is_some()
            || word_of(self.mailbox.active, from).load(Ordering::SeqCst) & 1 << (from % 64) != 0;
        let mut woken = 0;
        if self.claimed_sender(from).is_none_or(|ring| ring.broken) {
            return false;
        }
        let ring = self.incoming[from as usize].as_deref_mut().expect("a claimed sender has a ring");
        let mut back = self.outgoing[from as usize].as_deref_mut();
        for _ in 0..=RING_CELLS {
            if !has_sent || ring.broken || !ring.drain(from, back.as_deref_mut(), sink, &mut woken) {
                break;
            }
        }
        if !std::mem::replace(&mut ring.broken, true) {
            sink.handle_fault(PeerFault::CutOff { peer: from });
        }
        self.wakeups += woken;
        true
    }
}
