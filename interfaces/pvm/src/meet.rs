//! Barriers in shared memory, and what the machine says of where they are.

use crate::errors::Error;
use crate::library::{PvmLibrary, enrolled, my_tid};
use crate::meetings::{LINE, MeetingPlace, OVER, change};
use crate::waiting::{FABRIC, wait_for_memory};
use std::ffi::c_int;
use weft_fabric::Endpoint;
use weft_ports::Peer;
use weft_pvm_machine::frame::{ByteString, Request};

/// How a barrier goes on.
enum MeetingCall {
    Over,
    /// It is not here, or no more.
    Elsewhere,
    /// In the meeting of this number.
    Waits(u32),
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
    // Whoever has joined or left has gone on after this was told. Where a number is given, it is as good to wait for
    // others here first.
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
