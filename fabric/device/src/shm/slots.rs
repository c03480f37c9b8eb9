//! The copy slots of all pairs, as one member sees them. Separate from the rings, so that a protocol can use them while
//! it handles a packet.

use super::copy::TakenSlot;
use super::views::Views;
use crate::sync::Ordering;

/// Views into the segment (VIEW-KEEPS-MEMORY: `views` keeps it).
pub struct CopySlots {
    views: Views,
    me: u32,
}

impl CopySlots {
    pub(super) fn new(views: Views, me: u32) -> Self {
        Self { views, me }
    }

    /// Receiver: a free slot of what `from` sends to us.
    pub fn take(&self, from: u32) -> Option<TakenSlot> {
        let slots = self.views.pair(from, self.me).slots;
        let index = slots.iter().position(|s| s.taken.load(Ordering::Relaxed) == 0)?;
        Some(TakenSlot { index: index as u32, generation: slots[index].reset(), slot: &slots[index] })
    }

    /// Receiver: gives a slot back.
    pub fn free(&self, from: u32, index: u32) {
        self.views.pair(from, self.me).slots[index as usize].taken.store(0, Ordering::Relaxed);
    }

    /// Sender: the slot that `to` claims to have taken; `None` if there is no such slot.
    pub fn granted(&self, to: u32, index: u32, generation: u32) -> Option<TakenSlot> {
        let slot = self.views.pair(self.me, to).slots.get(index as usize)?;
        Some(TakenSlot { index, generation, slot })
    }

    /// The process id of a member that has joined and counts processes as we do. A claim of the member.
    pub fn pid(&self, member: u32) -> Option<i32> {
        let namespace = |member| self.views.namespace(member).load(Ordering::Relaxed);
        match self.views.pid(member).load(Ordering::Relaxed) as i32 {
            pid if pid > 0 && namespace(member) == namespace(self.me) && namespace(member) != 0 => Some(pid),
            _ => None,
        }
    }
}
