//! The time of a job is over: it is told what each rank did then, and the ranks are ended.

use super::*;
use crate::TimeLimit;
use std::collections::{BTreeMap, BTreeSet};
use weft_cluster::frame::Frame;
use weft_cluster::state::EXIT_TIMEOUT;
use weft_ranks::Doing;

/// How long agents have to say what their ranks do.
const ANSWERS: Duration = Duration::from_millis(500);
/// Lines about what ranks do.
const LINES: usize = 16;
/// Letters of one of them, which may have come from another host.
const LONGEST: usize = 400;

/// How long the job may take, and what its ranks do when that is over.
pub(super) struct JobLimit {
    given: Option<TimeLimit>,
    doing: BTreeMap<u32, Doing>,
    /// Watches that have not answered.
    awaited: BTreeSet<usize>,
}

impl JobLimit {
    pub fn new(given: Option<TimeLimit>) -> Self {
        Self { given, doing: BTreeMap::new(), awaited: BTreeSet::new() }
    }

    /// What the members of a host do, which are these ranks.
    fn take_in(&mut self, ranks: &[usize], members: &[(String, Option<u64>)]) {
        for (rank, (words, blocked)) in ranks.iter().zip(members) {
            let blocked = blocked.map(Duration::from_millis);
            let words = words.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect();
            self.doing.insert(*rank as u32, Doing { words, blocked });
        }
    }
}

impl Supervisor {
    /// The time is over. What ranks do is asked while all of them still do it.
    pub(super) fn handle_limit(&mut self) {
        if !self.state.is_ending() {
            for (number, watch) in self.watches.iter_mut().enumerate().filter(|(_, watch)| !watch.over) {
                match &mut watch.way {
                    WatchWay::Near { .. } => {
                        let doing = self.members.as_ref().map_or_else(Vec::new, HostMembers::doing);
                        self.limit.take_in(&watch.ranks, &doing);
                    }
                    WatchWay::Far { relay, .. } => {
                        relay.send(&Frame::AskDoing);
                        self.limit.awaited.insert(number);
                    }
                }
            }
        }
        match self.limit.awaited.is_empty() {
            true => self.end_by_limit(),
            false => self.timers.start(Deadline::Answers, Instant::now() + ANSWERS),
        }
    }

    /// An agent has answered.
    pub(super) fn handle_doing(&mut self, watch: usize, members: &[(String, Option<u64>)]) {
        if !self.limit.awaited.remove(&watch) {
            return;
        }
        self.limit.take_in(&self.watches[watch].ranks, members);
        if self.limit.awaited.is_empty() {
            self.end_by_limit();
        }
    }

    pub(super) fn end_by_limit(&mut self) {
        self.timers.stop(Deadline::Answers);
        self.limit.awaited.clear();
        let mut doing = std::mem::take(&mut self.limit.doing);
        if !self.state.is_ending() {
            doing.retain(|rank, _| self.state.is_running(*rank as usize));
            for line in Doing::lines(&doing, LINES) {
                say(&self.front, line);
            }
        }
        let limit = self.limit.given.as_ref().map_or("", |limit| limit.words.as_str());
        let decision = self.state.handle_timeout(limit);
        self.obey(decision);
        if self.is_over() {
            // Only what the ranks have spawned still runs.
            self.spawned.code.get_or_insert(EXIT_TIMEOUT);
            self.end_ranks();
        }
    }
}
