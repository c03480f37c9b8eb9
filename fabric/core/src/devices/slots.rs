//! Copy slots, named by rank.

use weft_device::shm::{CopySlots, TakenSlot};

/// Where the slots of a rank are.
enum SlotSeat {
    /// In the segment of the job, which it is this member of.
    Member(u32),
    /// In a segment of the two of us, which it is this member of. Its process was looked at when we met, since it may
    /// write what it wants there later; `None` where copies have been refused.
    Other(CopySlots, u32, Option<i32>),
    /// It shares no memory with us.
    None,
}

/// The copy slots, by rank.
pub(crate) struct RankSlots {
    slots: CopySlots,
    /// `None`: every rank is the member of its number.
    seats: Option<Vec<SlotSeat>>,
}

impl RankSlots {
    pub fn new(slots: CopySlots, members: Option<Vec<Option<u32>>>) -> Self {
        let seat = |member: Option<u32>| member.map_or(SlotSeat::None, SlotSeat::Member);
        Self { slots, seats: members.map(|members| members.into_iter().map(seat).collect()) }
    }

    /// The peer after the `peers` that there are shares no memory with us.
    pub fn add_stranger(&mut self, peers: u32) {
        self.seats.get_or_insert_with(|| (0..peers).map(SlotSeat::Member).collect()).push(SlotSeat::None);
    }

    /// A stranger shares a segment with us from now on, as this member of it and with this process id; or none any
    /// more.
    pub fn set_stranger(&mut self, rank: u32, slots: Option<(CopySlots, u32, i32)>) {
        if let Some(seat) = self.seats.as_mut().and_then(|seats| seats.get_mut(rank as usize)) {
            *seat = slots.map_or(SlotSeat::None, |(slots, member, pid)| SlotSeat::Other(slots, member, Some(pid)));
        }
    }

    /// A copy with a rank was refused: no more with it, if it is a stranger; whether it is one.
    pub fn refuse(&mut self, rank: u32) -> bool {
        match self.seats.as_mut().map(|seats| &mut seats[rank as usize]) {
            Some(SlotSeat::Other(_, _, pid)) => {
                *pid = None;
                true
            }
            _ => false,
        }
    }

    #[inline]
    fn seat(&self, rank: u32) -> Option<(&CopySlots, u32)> {
        match self.seats.as_ref().map(|seats| &seats[rank as usize]) {
            None => Some((&self.slots, rank)),
            Some(SlotSeat::Member(member)) => Some((&self.slots, *member)),
            Some(SlotSeat::Other(slots, member, _)) => Some((slots, *member)),
            Some(SlotSeat::None) => None,
        }
    }

    pub fn pid(&self, rank: u32) -> Option<i32> {
        if let Some(SlotSeat::Other(_, _, pid)) = self.seats.as_ref().map(|seats| &seats[rank as usize]) {
            return *pid;
        }
        self.seat(rank).and_then(|(slots, member)| slots.pid(member))
    }

    pub fn take(&self, from: u32) -> Option<TakenSlot> {
        self.seat(from).and_then(|(slots, member)| slots.take(member))
    }

    pub fn free(&self, from: u32, index: u32) {
        if let Some((slots, member)) = self.seat(from) {
            slots.free(member, index);
        }
    }

    pub fn granted(&self, to: u32, index: u32, generation: u32) -> Option<TakenSlot> {
        self.seat(to).and_then(|(slots, member)| slots.granted(member, index, generation))
    }
}
