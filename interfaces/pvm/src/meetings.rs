//! Places of barriers in shared memory: the machine has told where (`weft_pvm_machine`'s `meetings`).
//!
//! A place is a word that counts: rounds that are over, how many are awaited in the present one, and how many have
//! come. Who comes last begins the next round and wakes the others. Who is told that the meeting is over leaves the
//! round, unless that is over, and goes to the machine with it, as all others do. It leaves word there, so that those
//! who are told something by it come to no meeting that is over. ([`crate::meet`] goes there.)

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use weft_fabric::shared::Block;
use weft_ports::Peer;
use weft_pvm_machine::frame::ByteString;

/// Bytes from one place to the next.
pub const LINE: usize = 64;
/// Beside the word: the number of the last meeting there that is over, as far as a member knows.
pub const OVER: usize = 8;

/// The word of a place: rounds in the upper half, then who is awaited, then who has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeetingWord {
    pub round: u32,
    pub awaited: u16,
    pub come: u16,
}

impl MeetingWord {
    fn of(word: u64) -> Self {
        Self { round: (word >> 32) as u32, awaited: (word >> 16) as u16, come: word as u16 }
    }

    fn word(self) -> u64 {
        u64::from(self.round) << 32 | u64::from(self.awaited) << 16 | u64::from(self.come)
    }

    /// One more comes, who waits for so many; `None` where others wait for another number.
    pub fn with_one_more(self, awaited: u16) -> Option<Self> {
        match self.come + 1 {
            _ if self.come > 0 && self.awaited != awaited => None,
            come if come == awaited => Some(Self { round: self.round.wrapping_add(1), awaited: 0, come: 0 }),
            come => Some(Self { awaited, come, ..self }),
        }
    }

    /// One leaves who has come to this round; `None` where that is over.
    pub fn with_one_less(self, round: u32) -> Option<Self> {
        let come = self.come.checked_sub(1).filter(|_| self.round == round)?;
        Some(Self { awaited: if come == 0 { 0 } else { self.awaited }, come, ..self })
    }
}

pub fn change(word: &AtomicU64, new: impl Fn(MeetingWord) -> Option<MeetingWord>) -> Result<MeetingWord, ()> {
    let new = |old| new(MeetingWord::of(old)).map(MeetingWord::word);
    // ORDER: pvm-meeting, among those who come: what each did before its barrier comes before what others do after it.
    word.fetch_update(Ordering::AcqRel, Ordering::Acquire, new).map(MeetingWord::of).map_err(drop)
}

/// Where a group meets.
pub struct MeetingPlace {
    pub number: u32,
    pub block: Block,
    pub at: usize,
    pub others: Vec<Peer>,
    /// The round that this task has come to, and that was not seen to be over.
    pub round: Option<u32>,
}

impl MeetingPlace {
    pub fn word(&self) -> &AtomicU64 {
        self.block.word(self.at)
    }

    /// Whether a member has found the meeting to be over.
    pub fn is_closed(&self) -> bool {
        self.block.observe(self.at + OVER) == u64::from(self.number)
    }

    /// Whether the round is over that this task has come to.
    // ORDER: pvm-meeting
    pub fn is_over(&self) -> bool {
        self.round.is_some_and(|round| MeetingWord::of(self.block.observe(self.at)).round != round)
    }
}

#[derive(Default)]
pub struct KnownMeetings {
    pub places: BTreeMap<ByteString, MeetingPlace>,
    /// The round that this task had come to when its meeting ended was over.
    pub was_over: bool,
    pub has_offered: bool,
}

impl KnownMeetings {
    pub const fn new() -> Self {
        Self { places: BTreeMap::new(), was_over: false, has_offered: false }
    }

    pub fn clear(&mut self) {
        self.places.clear();
    }

    pub fn has(&self, name: &ByteString) -> bool {
        self.places.contains_key(name)
    }

    pub fn forget(&mut self, name: &ByteString) {
        self.places.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(round: u32, awaited: u16, come: u16) -> MeetingWord {
        let word = MeetingWord { round, awaited, come };
        assert_eq!(MeetingWord::of(word.word()), word);
        word
    }

    #[test]
    fn who_comes_last_begins_the_next_round() {
        let one = after(u32::MAX, 0, 0).with_one_more(2).expect("the first");
        assert_eq!(one, after(u32::MAX, 2, 1));
        assert_eq!(one.with_one_more(3), None, "others wait for two");
        assert_eq!(one.with_one_more(2), Some(after(0, 0, 0)));
        assert_eq!(after(7, 0, 0).with_one_more(1), Some(after(8, 0, 0)));
    }

    #[test]
    fn who_leaves_is_not_counted_unless_the_round_is_over() {
        assert_eq!(after(7, 3, 2).with_one_less(7), Some(after(7, 3, 1)));
        assert_eq!(after(7, 3, 1).with_one_less(7), Some(after(7, 0, 0)), "the next one says for how many");
        assert_eq!(after(8, 3, 1).with_one_less(7), None);
        assert_eq!(after(8, 0, 0).with_one_less(7), None);
    }
}
