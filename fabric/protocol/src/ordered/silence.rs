//! Who is waited for, and has said nothing for long. Nobody is asked anything while nobody is waited for.

use super::{GroupMember, GroupStanding, OrderedGroup, Saying, WordTo};
use std::collections::{BTreeMap, BTreeSet};

/// Who is waited for is asked so often before it is silent.
const PINGS: u64 = 4;

struct Wait {
    pinged_ms: u64,
    /// Pings that were not answered: time in which this process did not ask says nothing.
    pings: u64,
}

#[derive(Default)]
pub(super) struct SilenceWatch {
    waits: BTreeMap<GroupMember, Wait>,
    /// Others have called them silent: they are asked once more.
    doubted: BTreeSet<GroupMember>,
}

impl SilenceWatch {
    #[inline]
    pub fn note_heard(&mut self, from: GroupMember) {
        if !self.waits.is_empty() {
            self.waits.remove(&from);
            self.doubted.remove(&from);
        }
    }

    pub fn doubt(&mut self, members: Vec<GroupMember>) {
        self.doubted.extend(members);
    }

    pub fn begin_view(&mut self) {
        self.waits.clear();
        self.doubted.clear();
    }
}

impl OrderedGroup {
    /// Time has gone on. To be called some times in each quarter of [`super::GroupRules::silence_ms`], as long as the
    /// group is [waiting](Self::is_waiting).
    pub fn handle_time(&mut self, now_ms: u64) {
        let awaited = self.awaited();
        self.watch.waits.retain(|member, _| awaited.contains(member));
        let (mut pings, mut silent) = (Vec::new(), Vec::new());
        for member in awaited {
            let wait = self.watch.waits.entry(member).or_insert(Wait { pinged_ms: now_ms, pings: 0 });
            if now_ms >= wait.pinged_ms.saturating_add(self.rules.silence_ms / PINGS) {
                wait.pinged_ms = now_ms;
                wait.pings += 1;
                pings.push(member);
            }
            if wait.pings >= PINGS {
                silent.push(member);
            }
        }
        let joins = matches!(self.standing, GroupStanding::Joining(_));
        for member in pings {
            let asked = if joins { Saying::Join { member: self.me } } else { Saying::Ping };
            self.say(WordTo::One(member), asked);
        }
        let news = silent.into_iter().filter(|member| self.change.note_silent(*member)).count();
        if news > 0 {
            self.reconsider();
        }
    }

    /// Whether somebody is waited for.
    pub fn is_waiting(&self) -> bool {
        !self.awaited().is_empty()
    }

    /// Whose death this process needs to hear of: it has sent something to each of them. The sequencer hears of that of
    /// all others.
    pub fn watched(&self) -> BTreeSet<GroupMember> {
        let all = self.sequencer.is_some() || self.change.is_leading();
        let mut watched = self.awaited();
        watched.extend(self.view.members.iter().take(if all { usize::MAX } else { 1 }));
        watched.remove(&self.me);
        watched
    }

    fn awaited(&self) -> BTreeSet<GroupMember> {
        match self.standing {
            GroupStanding::Joining(contact) => return BTreeSet::from([contact]),
            GroupStanding::Over => return BTreeSet::new(),
            GroupStanding::In => {}
        }
        let mut awaited: BTreeSet<_> = self.change.awaited(self.me, &self.view).into_iter().collect();
        match &self.sequencer {
            _ if self.change.is_frozen() => {}
            Some(sequencer) => awaited.extend(sequencer.laggards().map(|at| self.view.members[at])),
            None if !self.own.is_empty() || self.delivered < self.history.next() => {
                awaited.insert(self.view.members[0]);
            }
            None => {}
        }
        awaited.extend(self.watch.doubted.iter().filter(|member| self.view.place(**member).is_some()));
        awaited.remove(&self.me);
        awaited
    }
}
