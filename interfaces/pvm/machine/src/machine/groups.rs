//! TaskGroups of tasks, with their barriers (`pvm_joingroup(3PVM)` and others).

use super::ClientNumber;
use crate::code;
use crate::frame::{Answer, ByteString, NameInfo};
use std::collections::BTreeMap;

#[derive(Default)]
struct TaskGroup {
    /// By instance; 0 where there is none.
    tids: Vec<i32>,
    /// How many are awaited, and who waits.
    barrier: Option<(i32, Vec<ClientNumber>)>,
    freezing: Option<(i32, Vec<ClientNumber>)>,
    is_frozen: bool,
    /// It was frozen and has lost a member.
    is_dead: bool,
    /// Where its barriers are, if not here.
    meeting: Option<u32>,
}

impl TaskGroup {
    fn size(&self) -> i32 {
        self.tids.iter().filter(|tid| **tid != 0).count() as i32
    }
}

#[derive(Default)]
pub struct TaskGroups {
    groups: BTreeMap<ByteString, TaskGroup>,
    /// Meetings that are over, of which the members are to be told.
    over: Vec<u32>,
}

/// How one who comes to a barrier goes on.
pub enum Barrier {
    Waits,
    Refused(i32),
    /// The group is frozen already.
    Again(ClientNumber),
    /// All are there.
    Complete {
        released: Vec<ClientNumber>,
        was_frozen: bool,
    },
}

impl TaskGroups {
    /// Its instance in the group: the lowest that is free.
    pub fn join(&mut self, name: &ByteString, tid: i32) -> i32 {
        if name.0.is_empty() {
            return code::NULL_GROUP;
        }
        let group = self.groups.entry(name.clone()).or_default();
        if group.is_frozen || group.is_dead {
            return code::NOT_IN_GROUP;
        }
        if group.tids.contains(&tid) {
            return code::DUP_GROUP;
        }
        self.over.extend(group.meeting.take());
        match group.tids.iter().position(|there| *there == 0) {
            Some(place) => {
                group.tids[place] = tid;
                place as i32
            }
            None => {
                group.tids.push(tid);
                group.tids.len() as i32 - 1
            }
        }
    }

    /// The answer, and who waits in vain from now on.
    pub fn leave(&mut self, name: &ByteString, tid: i32) -> (i32, Vec<ClientNumber>) {
        if name.0.is_empty() {
            return (code::NULL_GROUP, Vec::new());
        }
        let Some(group) = self.groups.get_mut(name) else { return (code::NO_GROUP, Vec::new()) };
        let Some(place) = group.tids.iter().position(|there| *there == tid) else {
            return (code::NOT_IN_GROUP, Vec::new());
        };
        self.over.extend(group.meeting.take());
        group.tids[place] = 0;
        while group.tids.last() == Some(&0) {
            group.tids.pop();
        }
        let mut released = Vec::new();
        if group.is_frozen {
            (group.is_frozen, group.is_dead) = (false, true);
            released = group.barrier.take().map_or(Vec::new(), |(_, waiting)| waiting);
        }
        if group.size() == 0 {
            self.groups.remove(name);
        }
        (code::OK, released)
    }

    /// Leaves all groups; who waits in vain from now on.
    pub fn leave_all(&mut self, tid: i32) -> Vec<ClientNumber> {
        let names = self.groups.iter().filter(|(_, group)| group.tids.contains(&tid)).map(|(name, _)| name.clone());
        let names: Vec<ByteString> = names.collect();
        names.iter().flat_map(|name| self.leave(name, tid).1).collect()
    }

    /// A meeting that is over.
    pub fn take_over(&mut self) -> Option<u32> {
        self.over.pop()
    }

    /// By instance, the members of a group of several that has no meeting.
    pub fn unmet(&self, name: &ByteString) -> Option<&[i32]> {
        let group = self.groups.get(name)?;
        (group.meeting.is_none() && group.size() > 1).then_some(&group.tids)
    }

    pub fn set_meeting(&mut self, name: &ByteString, number: u32) {
        if let Some(group) = self.groups.get_mut(name) {
            group.meeting = Some(number);
        }
    }

    /// One who waits no more.
    pub fn forget(&mut self, client: ClientNumber) {
        for group in self.groups.values_mut() {
            for (_, waiting) in [&mut group.barrier, &mut group.freezing].into_iter().flatten() {
                waiting.retain(|there| *there != client);
            }
        }
    }

    /// A member comes to the barrier of its group, or to its freezing; -1: of all members.
    pub fn wait(&mut self, name: &ByteString, tid: i32, client: ClientNumber, count: i32, freezes: bool) -> Barrier {
        if name.0.is_empty() {
            return Barrier::Refused(code::NULL_GROUP);
        }
        let Some(group) = self.groups.get_mut(name) else { return Barrier::Refused(code::NO_GROUP) };
        if !group.tids.contains(&tid) {
            return Barrier::Refused(code::NOT_IN_GROUP);
        }
        if group.is_dead {
            return Barrier::Refused(code::NO_GROUP);
        }
        if freezes && group.is_frozen {
            return Barrier::Again(client);
        }
        if !freezes && group.meeting.is_some() {
            return Barrier::Refused(code::ELSEWHERE);
        }
        let size = group.size();
        let count = if count == -1 { size } else { count };
        if count < 1 {
            return Barrier::Refused(code::BAD_PARAM);
        }
        let was_frozen = group.is_frozen;
        let place = if freezes { &mut group.freezing } else { &mut group.barrier };
        let (awaited, waiting) = place.get_or_insert((count, Vec::new()));
        if *awaited != count {
            return Barrier::Refused(code::MISMATCH);
        }
        waiting.push(client);
        if (waiting.len() as i32) < count {
            return Barrier::Waits;
        }
        let released = place.take().map_or(Vec::new(), |(_, waiting)| waiting);
        group.is_frozen |= freezes;
        Barrier::Complete { released, was_frozen }
    }

    pub fn members(&self, name: &ByteString) -> Answer {
        let none = |code| Answer::Members { code, tids: Vec::new(), is_frozen: false };
        if name.0.is_empty() {
            return none(code::NULL_GROUP);
        }
        match self.groups.get(name) {
            None => none(code::NO_GROUP),
            Some(group) => Answer::Members { code: code::OK, tids: group.tids.clone(), is_frozen: group.is_frozen },
        }
    }

    /// All groups, as names with members.
    pub fn names(&self) -> Vec<NameInfo> {
        let info = |(name, group): (&ByteString, &TaskGroup)| {
            let members = group.tids.iter().enumerate().filter(|(_, tid)| **tid != 0);
            let (indices, owners): (Vec<i32>, Vec<i32>) = members.map(|(at, tid)| (at as i32, *tid)).unzip();
            let flags = vec![i32::from(group.is_frozen); indices.len()];
            NameInfo { name: name.clone(), indices, owners, flags }
        };
        self.groups.iter().map(info).collect()
    }
}
