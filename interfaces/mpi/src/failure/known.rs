//! What the process knows of failures.

use super::letters::{AgreementName, AgreementRound, Letters};
use crate::comm::Comm;
use crate::error::{Class, Error, Result};
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::Ordering;
use std::time::Duration;
use weft_fabric::consensus::AgreedValue;
use weft_fabric::{Endpoint, Peer, Selector};

/// The longest sleep in a job that goes on when processes are lost: what the launcher says wakes nobody.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);

/// What the process knows of failures.
#[derive(Default)]
pub struct Failures {
    /// Processes that are lost, in the order in which we learnt of it.
    pub(super) lost: Vec<Peer>,
    /// Contexts of communicators that are revoked. A context is never used again.
    pub(super) revoked: HashSet<u32>,
    /// Communicators of which nobody has told that they are revoked while we had not made them yet.
    pub(super) news: bool,
    /// Contexts on which receives from anybody stall.
    pub(super) stalled: Vec<u32>,
    pub(super) rounds: Vec<AgreementRound>,
    /// Agreements that are over, the last one first: others may still ask for them.
    pub(super) decided: VecDeque<(AgreementName, AgreedValue)>,
    pub(super) letters: Letters,
    /// Progress passes move the rounds.
    pub(super) are_moved: bool,
}

/// The error of a call on a communicator that is revoked.
#[cold]
pub fn revoked(comm: &Comm) -> Error {
    Error::new(Class::Revoked, format!("{} is revoked", comm.display_name())).on(comm.handle)
}

impl Comm {
    /// # Errors
    /// The communicator is revoked.
    #[inline]
    pub fn check_not_revoked(&self) -> Result<()> {
        if self.failure.is_revoked() { Err(revoked(self)) } else { Ok(()) }
    }
}

impl Failures {
    /// Whether a receive or probe from anybody cannot go on, because a process is lost and that is not acknowledged.
    #[inline]
    pub fn stalls(&self, with: Selector) -> bool {
        !self.stalled.is_empty() && with.peer.is_none() && self.stalled.contains(&with.context)
    }

    /// Whether any process is lost.
    #[inline]
    pub fn has_losses(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The lost members of a communicator, in the order in which we learnt of it.
    pub(super) fn lost_of(&self, comm: &Comm) -> Vec<Peer> {
        let is_in = |peer: &Peer| {
            comm.local.rank_of(*peer).is_some() || comm.remote.as_ref().is_some_and(|far| far.rank_of(*peer).is_some())
        };
        self.lost.iter().copied().filter(is_in).collect()
    }

    /// Acknowledges up to `most` lost members; how many are acknowledged now.
    pub(super) fn acknowledge(&mut self, comm: &Comm, most: usize) -> usize {
        let lost = self.lost_of(comm).len();
        let before = comm.failure.acknowledged.load(Ordering::Relaxed) as usize;
        let now = before.max(most.min(lost));
        comm.failure.acknowledged.store(now as u32, Ordering::Relaxed);
        if now == lost {
            self.stalled.retain(|context| *context != comm.context);
        }
        now
    }

    pub(super) fn acknowledged_of(&self, comm: &Comm) -> Vec<Peer> {
        let mut lost = self.lost_of(comm);
        lost.truncate(comm.failure.acknowledged.load(Ordering::Relaxed) as usize);
        lost
    }

    /// Whether anything goes on that wants a look in every pass.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.rounds.is_empty()
    }

    pub fn longest_sleep(&self, endpoint: &Endpoint) -> Option<Duration> {
        (endpoint.keeps_going() || !self.is_quiet()).then_some(LONGEST_SLEEP)
    }
}
