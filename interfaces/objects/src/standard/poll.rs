//! Polls, one after the other: yes if all voters say so.

use crate::object;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Polls by number: the answer of each is yes if all voters say yes, and no as soon as one says no.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PollObject {
    voters: u32,
    polls: BTreeMap<u64, Votes>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Votes {
    yes: u32,
    is_refused: bool,
}

impl PollObject {
    /// For that many voters.
    pub fn new(voters: u32) -> Self {
        Self { voters, polls: BTreeMap::new() }
    }

    fn decision(&self, poll: u64) -> Option<bool> {
        let votes = self.polls.get(&poll).cloned().unwrap_or_default();
        if votes.is_refused { Some(false) } else { (votes.yes >= self.voters).then_some(true) }
    }
}

#[object(handle = SharedPoll)]
impl PollObject {
    /// One vote; false if the poll is decided, and the vote not counted.
    #[operation(write)]
    pub fn vote(&mut self, poll: u64, is_yes: bool) -> bool {
        if self.decision(poll).is_some() {
            return false;
        }
        let votes = self.polls.entry(poll).or_default();
        votes.yes += u32::from(is_yes);
        votes.is_refused |= !is_yes;
        true
    }

    /// Waits until the poll is decided.
    #[operation(read, guard = self.decision(*poll).is_some())]
    pub fn await_decision(&self, poll: u64) -> bool {
        self.decision(poll) == Some(true)
    }
}
