//! Runs whose parts do not meet, because the ranks were called with different lengths; see [`super::super::inquiry`].

use super::super::schedule::Step;
use super::{Dealings, Network, Run};
use crate::error::{Class, Error};
use weft_fabric::Peer;

impl<I: Copy> Run<I> {
    /// The rank that a process has in this operation.
    pub fn rank_of(&self, peer: Peer) -> Option<u32> {
        (0..self.job.route.ranks()).find(|rank| self.job.route.peer(*rank) == peer)
    }

    pub fn peer(&self, rank: u32) -> Peer {
        self.job.route.peer(rank)
    }

    /// What the whole operation has to do with `rank`.
    pub fn dealings(&self, rank: u32) -> Dealings {
        let schedule = &self.job.schedule;
        let mut dealings = Dealings::default();
        for step in &schedule.steps {
            match *step {
                Step::Send { to, view } if to == rank => {
                    dealings.sent += 1;
                    dealings.sent_bytes += schedule.size(view);
                }
                Step::Receive { from, view } if from == rank => {
                    dealings.received += 1;
                    dealings.received_bytes += schedule.size(view);
                }
                _ => {}
            }
        }
        dealings
    }

    /// The ranks that this run waits for, each once.
    pub fn awaited(&self) -> Vec<u32> {
        let mut ranks: Vec<u32> = self.pending.iter().map(|pending| pending.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// Whether something sent to `rank` has not left.
    pub fn owes(&self, rank: u32) -> bool {
        self.pending.iter().any(|pending| !pending.receives && pending.rank == rank)
    }

    /// What `rank` brings does not meet what we expect.
    #[cold]
    pub(super) fn fall_out(&mut self, rank: u32) {
        self.misfit = true;
        if self.error.is_none() {
            let detail = format!(
                "what rank {rank} sends and receives in this collective does not meet this rank's counts and types; all \
                 ranks have to pass the same"
            );
            self.error = Some(Error::new(Class::Truncate, detail));
        }
    }

    /// Nothing goes between us and `rank` any more.
    pub fn part(&mut self, net: &mut impl Network<Id = I>, rank: u32) {
        self.fall_out(rank);
        self.withdraw_from(net, rank);
        if !self.parted.contains(&rank) {
            self.parted.push(rank);
        }
    }

    /// `rank` has ended its part, and everything that it sent has arrived. Where we were called alike, nothing is missing
    /// then, and nothing more is to be sent.
    pub fn end_of(&mut self, net: &mut impl Network<Id = I>, rank: u32) {
        if !self.over.contains(&rank) {
            self.over.push(rank);
        }
        let rest = &self.job.schedule.steps[self.next..];
        if rest.iter().any(|step| matches!(step, Step::Send { to, .. } if *to == rank)) {
            return self.part(net, rank);
        }
        if self.withdraw_from(net, rank) {
            self.fall_out(rank);
        }
    }

    /// Takes the receives back that nothing from `rank` has met; true if there were any.
    fn withdraw_from(&mut self, net: &mut impl Network<Id = I>, rank: u32) -> bool {
        let before = self.pending.len();
        self.pending.retain(|pending| !(pending.receives && pending.rank == rank && net.withdraw(pending.id)));
        self.pending.len() < before
    }

    /// Takes what `rank` has sent and we do not receive.
    pub fn discard(&self, net: &mut impl Network<Id = I>, rank: u32) {
        net.discard(self.from(rank));
    }
}
