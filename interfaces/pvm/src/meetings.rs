//! Barriers in shared memory: the machine has told where (`weft_pvm_machine`'s `meetings`).
//!
//! A place is a word that counts: rounds that are over, how many are awaited in the present one, and how many have come.
//! Who comes last begins the next round and wakes the others. Who is told that the meeting is over leaves the round, unless
//! that is over, and goes to the machine with it, as all others do. It leaves word there, so that those who are told
//! something by it come to no meeting that is over.

use crate::errors::Error;
use crate::library::{PvmLibrary, enrolled, my_tid};
use crate::waiting::{FABRIC, wait_for_memory};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use weft_fabric::Endpoint;
use weft_fabric::shared::Block;
use weft_ports::Peer;
use weft_pvm_machine::frame::{ByteString, Request};

/// Bytes from one place to the next.
const LINE: usize = 64;
/// Beside the word: the number of the last meeting there that is over, as far as a member knows.
const OVER: usize = 8;

/// The word of a place: rounds in the upper half, then who is awaited, then who has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MeetingWord {
    round: u32,
    awaited: u16,
    come: u16,
}

impl MeetingWord {
    fn of(word: u64) -> Self {
        Self { round: (word >> 32) as u32, awaited: (word >> 16) as u16, come: word as u16 }
    }

    fn word(self) -> u64 {
        u64::from(self.round) << 32 | u64::from(self.awaited) << 16 | u64::from(self.come)
    }

    /// One more comes, who waits for so many; `None` where others wait for another number.
    fn with_one_more(self, awaited: u16) -> Option<Self> {
        match self.come + 1 {
            _ if self.come > 0 && self.awaited != awaited => None,
            come if come == awaited => Some(Self { round: self.round.wrapping_add(1), awaited: 0, come: 0 }),
            come => Some(Self { awaited, come, ..self }),
        }
    }

    /// One leaves who has come to this round; `None` where that is over.
    fn with_one_less(self, round: u32) -> Option<Self> {
        let come = self.come.checked_sub(1).filter(|_| self.round == round)?;
        Some(Self { awaited: if come == 0 { 0 } else { self.awaited }, come, ..self })
    }
}

fn change(word: &AtomicU64, new: impl Fn(MeetingWord) -> Option<MeetingWord>) -> Result<MeetingWord, ()> {
    let new = |old| new(MeetingWord::of(old)).map(MeetingWord::word);
    // ORDER: pvm-meeting, among those who come: what each did before its barrier comes before what others do after it.
    word.fetch_update(Ordering::AcqRel, Ordering::Acquire, new).map(MeetingWord::of).map_err(drop)
}

/// Where a group meets.
struct MeetingPlace {
    number: u32,
    block: Block,
    at: usize,
    others: Vec<Peer>,
    /// The round that this task has come to, and that was not seen to be over.
    round: Option<u32>,
}

impl MeetingPlace {
    fn word(&self) -> &AtomicU64 {
        self.block.word(self.at)
    }

    /// Whether a member has found the meeting to be over.
    fn is_closed(&self) -> bool {
        self.block.observe(self.at + OVER) == u64::from(self.number)
    }

    /// Whether the round is over that this task has come to.
    fn is_over(&self) -> bool {
        self.round.is_some_and(|round| MeetingWord::of(self.block.observe(self.at)).round != round)
    }
}

/// How a barrier goes on.
enum MeetingCall {
    Over,
    /// It is not here, or no more.
    Elsewhere,
    /// In the meeting of this number.
    Waits(u32),
}

#[derive(Default)]
pub struct Meetings {
    places: BTreeMap<ByteString, MeetingPlace>,
    /// The round that this task had come to when its meeting ended was over.
    was_over: bool,
    has_offered: bool,
}

impl Meetings {
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

impl PvmLibrary {
    /// Offers memory of the job to its groups, as the founder of one.
    pub fn offer_block(&mut self) {
        let Some(task) = self.task.as_mut().filter(|task| task.is_rank() && !self.meetings.has_offered) else { return };
        let first = FABRIC.with(|endpoint| {
            let shares = (0..endpoint.world_size()).all(|rank| endpoint.is_local(Peer(rank)));
            if shares { endpoint.shared_blocks().take(1) } else { None }
        });
        self.meetings.has_offered = true;
        if let Some(block) = first.and_then(|first| u32::try_from(first).ok()) {
            // That the machine is gone shows when it is asked.
            let _ = task.client.send(&Request::OfferBlock { block });
        }
    }

    /// The barriers of a group are there from now on.
    pub fn meet_at(
        &mut self,
        endpoint: &mut Endpoint,
        name: ByteString,
        (number, block, place): (u32, u32, u32),
        tids: &[c_int],
    ) -> Result<(), Error> {
        let task = self.task()?;
        let others = tids.iter().filter(|tid| **tid != my_tid()).map(|tid| task.known(*tid)).collect();
        let at = place as usize * LINE;
        let block = endpoint.shared_blocks().open(block as usize, 1).filter(|block| at + LINE <= block.length());
        // It is what a rank of this job has offered, and those are known.
        let (Some(block), Some(others)) = (block, others) else { return Err(self.lose_machine()) };
        self.meetings.places.insert(name, MeetingPlace { number, block, at, others, round: None });
        Ok(())
    }

    /// ... and no more.
    pub fn meet_no_more(&mut self, number: u32) {
        let names = self.meetings.places.iter().find(|(_, place)| place.number == number).map(|(name, _)| name.clone());
        if let Some(name) = names {
            if let Some(place) = self.meetings.places.remove(&name) {
                place.block.publish(place.at + OVER, u64::from(number));
                if let Some(round) = place.round {
                    self.meetings.was_over = change(place.word(), |word| word.with_one_less(round)).is_err();
                }
            }
            // A frozen group has lost a member.
            self.frozen.0.remove(&name);
        }
        if let Some(task) = &mut self.task {
            let _ = task.client.send(&Request::LeftMeeting { number });
        }
    }

    /// Waits in a meeting; false if it has ended before the round was over.
    fn wait_for_others(&mut self, meeting: (&ByteString, u32)) -> Result<bool, Error> {
        loop {
            let look = |endpoint: &mut Endpoint, is_time| self.look_at_meeting(endpoint, meeting, is_time);
            let over = wait_for_memory("pvm_barrier", look)?;
            // Messages may have waited for what the machine has said.
            self.task()?.flush();
            if let Some(over) = over {
                return Ok(over);
            }
        }
    }

    /// How the wait ends; an answer of `None` says that messages can leave now.
    fn look_at_meeting(
        &mut self,
        endpoint: &mut Endpoint,
        (name, number): (&ByteString, u32),
        is_time: bool,
    ) -> Option<Result<Option<bool>, Error>> {
        match self.meetings.places.get_mut(name).filter(|place| place.number == number) {
            Some(place) if place.is_over() => {
                place.round = None;
                return Some(Ok(Some(true)));
            }
            Some(_) => {}
            // The group may have another one by now.
            None => return Some(Ok(Some(self.meetings.was_over))),
        }
        if !is_time {
            return None;
        }
        match self.listen(endpoint) {
            Ok(true) => Some(Ok(None)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// This task comes to a barrier.
    fn come(&mut self, name: &ByteString, count: c_int) -> Result<MeetingCall, Error> {
        let place = self.meetings.places.get_mut(name).filter(|place| !place.is_closed());
        let Some(place) = place else { return Ok(MeetingCall::Elsewhere) };
        let size = place.others.len() + 1;
        let awaited = if count == -1 { size } else { usize::try_from(count).map_err(|_| Error::BAD_PARAM)? };
        let awaited = u16::try_from(awaited).ok().filter(|awaited| *awaited > 0).ok_or(Error::BAD_PARAM)?;
        let found = change(place.word(), |word| word.with_one_more(awaited)).map_err(|()| Error::MISMATCH)?;
        if found.come + 1 < awaited {
            place.round = Some(found.round);
            return Ok(MeetingCall::Waits(place.number));
        }
        FABRIC.with(|endpoint| place.others.iter().for_each(|peer| endpoint.wake(*peer)));
        Ok(MeetingCall::Over)
    }
}

/// A barrier of a group that meets in shared memory; false where it does not, or no more.
///
/// # Errors
/// Others wait for another number; the machine is gone.
pub fn meet(name: &ByteString, count: c_int) -> Result<bool, Error> {
    let mut library = enrolled()?;
    // Whoever has joined or left has gone on after this was told. Where a number is given, it is as good to wait for others
    // here first.
    let is_sure = library.meetings.has(name) && (count != -1 || library.frozen.0.contains_key(name));
    if !is_sure && FABRIC.with(|endpoint| library.listen(endpoint))? {
        library.task()?.flush();
    }
    match library.come(name, count)? {
        MeetingCall::Over => Ok(true),
        MeetingCall::Elsewhere => Ok(false),
        MeetingCall::Waits(number) => library.wait_for_others((name, number)),
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
