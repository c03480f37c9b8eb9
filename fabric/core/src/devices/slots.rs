//! Copy slots, named by rank.

use weft_device::shm::{CopySlots, TakenSlot};

/// The copy slots, by rank. Who is not of this host has none.
pub(crate) struct Slots {
    slots: CopySlots,
    /// `None`: every rank is the member of its number.
    members: Option<Vec<Option<u32>>>,
}

impl Slots {
    pub fn new(slots: CopySlots, members: Option<Vec<Option<u32>>>) -> Self {
        Self { slots, members }
    }

    /// The peer after the `peers` that there are shares no memory with us.
    pub fn add_stranger(&mut self, peers: u32) {
        self.members.get_or_insert_with(|| (0..peers).map(Some).collect()).push(None);
    }

    fn member(&self, rank: u32) -> Option<u32> {
        match &self.members {
            None => Some(rank),
            Some(members) => members[rank as usize],
        }
    }

    pub fn pid(&self, rank: u32) -> Option<i32> {
        self.slots.pid(self.member(rank)?)
    }

    pub fn take(&self, from: u32) -> Option<TakenSlot> {
        self.slots.take(self.member(from)?)
    }

    pub fn free(&self, from: u32, index: u32) {
        if let Some(member) = self.member(from) {
            self.slots.free(member, index);
        }
    }

    pub fn granted(&self, to: u32, index: u32, generation: u32) -> Option<TakenSlot> {
        self.slots.granted(self.member(to)?, index, generation)
    }
}
