//! Meetings: a group whose members share memory has its barriers there, and the machine takes no part in them.
//!
//! That are ranks of one job on the first host, one of whom has offered a block of their memory. When a barrier has
//! ended here, the members are told where the next ones are ([`Event::MeetAt`]). Any change of who is in the group ends
//! that: they are told so ([`Event::MeetNoMore`]) before whoever has changed it goes on, leave the place, come here
//! instead, and say that they have left ([`Request::LeftMeeting`]).
//!
//! Invariants:
//! - As long as a group has a meeting, nobody waits here: who comes is sent there, and has been told of it before.
//! - A place is used again when all who were told of it have left. One where somebody has died never is: it may have
//!   been counted among those that have come.
//!
//! [`Event::MeetAt`]: crate::frame::Event::MeetAt
//! [`Event::MeetNoMore`]: crate::frame::Event::MeetNoMore
//! [`Request::LeftMeeting`]: crate::frame::Request::LeftMeeting

use super::ClientNumber;
use std::collections::BTreeMap;

/// Places in a block.
pub const PLACES: u32 = 4096;

/// A job's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobBlock {
    pub job: u64,
    pub block: u32,
}

struct GroupMeeting {
    job: u64,
    place: u32,
    /// Who was told, and has not left.
    members: Vec<ClientNumber>,
    /// Somebody has died there.
    is_spoilt: bool,
}

#[derive(Default)]
pub struct GroupMeetings {
    all: BTreeMap<u32, GroupMeeting>,
    last: u32,
}

impl GroupMeetings {
    /// A meeting of these, with its number and its place; `None` where there is none left. `is_job` says which jobs are
    /// there.
    pub fn begin(&mut self, job: u64, members: Vec<ClientNumber>, is_job: impl Fn(u64) -> bool) -> Option<(u32, u32)> {
        self.all.retain(|_, meeting| is_job(meeting.job));
        let is_free = |place: &u32| !self.all.values().any(|other| (other.job, other.place) == (job, *place));
        let place = (0..PLACES).find(is_free)?;
        self.last = self.last.wrapping_add(1);
        self.all.insert(self.last, GroupMeeting { job, place, members, is_spoilt: false });
        Some((self.last, place))
    }

    pub fn members(&self, number: u32) -> &[ClientNumber] {
        self.all.get(&number).map_or(&[], |meeting| &meeting.members)
    }

    /// One has left a meeting that is over.
    pub fn leave(&mut self, number: u32, client: ClientNumber) {
        self.retain(|of, meeting| {
            if of == number {
                meeting.members.retain(|member| *member != client);
            }
        });
    }

    /// One leaves all meetings, and is in no call.
    pub fn leave_all(&mut self, client: ClientNumber) {
        self.retain(|_, meeting| meeting.members.retain(|member| *member != client));
    }

    /// One has died, perhaps in a barrier.
    pub fn forget(&mut self, client: ClientNumber) {
        self.retain(|_, meeting| {
            meeting.is_spoilt |= meeting.members.contains(&client);
            meeting.members.retain(|member| *member != client);
        });
    }

    fn retain(&mut self, change: impl Fn(u32, &mut GroupMeeting)) {
        self.all.retain(|number, meeting| {
            change(*number, meeting);
            !meeting.members.is_empty() || meeting.is_spoilt
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_when_all_have_left_and_none_has_died_there() {
        let mut meetings = GroupMeetings::default();
        let (one, other) = ((1, 1), (1, 2));
        let begin = |meetings: &mut GroupMeetings| meetings.begin(7, vec![one, other], |_| true).expect("a place");
        let (first, place) = begin(&mut meetings);
        assert_eq!(place, 0);
        meetings.leave(first, one);
        let (second, place) = begin(&mut meetings);
        assert_eq!(place, 1, "one may still be there");
        meetings.leave(first, other);
        let (third, place) = begin(&mut meetings);
        assert_eq!(place, 0);
        meetings.leave(third, one);
        meetings.forget(other);
        meetings.leave(second, one);
        assert_eq!(begin(&mut meetings).1, 2, "somebody may have come there and died");
        assert_eq!(meetings.begin(8, vec![one], |_| true).expect("a place").1, 0, "each job has its own");
        assert_eq!(meetings.begin(7, vec![one], |job| job != 7).expect("a place").1, 0, "the job is forgotten");
    }
}
