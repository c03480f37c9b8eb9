//! The silence of neighbours: asking, accusing, and who takes over.

use crate::datagram::{ANSWER, Datagram};
use crate::view::{MembershipView, Neighbour};
use crate::{ASK_EVERY_NS, ASK_NS, SILENCE_NS};

/// How many other neighbours of a silent one are asked.
const HELPERS: usize = 3;
/// The most usable neighbours in one direction of a circle.
const REACH_MAX: usize = 512;
/// Who looks at more asks them, and nobody else about them.
const REACH_WITH_HELPERS: usize = 4;

impl MembershipView {
    /// Asks silent neighbours and those who may hear them, and accuses who was silent for too long.
    pub(crate) fn watch(&mut self) {
        for at in 0..self.neighbours.len() {
            let neighbour = &self.neighbours[at];
            if !self.is_watched(neighbour) {
                continue;
            }
            let (member, silence_ns) = (neighbour.member, self.now_ns - neighbour.well_ns);
            if silence_ns >= SILENCE_NS {
                self.take(member, self.roster.repute(member).accused());
                self.extend();
            } else if silence_ns >= ASK_NS && self.now_ns >= neighbour.asked_ns + ASK_EVERY_NS {
                self.neighbours[at].asked_ns = self.now_ns;
                self.ask(member);
            }
        }
    }

    /// When [`watch`](Self::watch) has something to do.
    pub(crate) fn watch_ns(&self) -> Option<u64> {
        let watched = self.neighbours.iter().filter(|neighbour| self.is_watched(neighbour));
        let due = watched.map(|neighbour| {
            let ask_ns = (neighbour.well_ns + ASK_NS).max(neighbour.asked_ns + ASK_EVERY_NS);
            ask_ns.min(neighbour.well_ns + SILENCE_NS)
        });
        due.min()
    }

    fn is_watched(&self, neighbour: &Neighbour) -> bool {
        let repute = self.roster.repute(neighbour.member);
        !repute.is_accused() && !repute.has_ended()
    }

    fn ask(&mut self, member: usize) {
        self.say(member, Datagram { flags: ANSWER, ..Datagram::default() });
        if self.reach > REACH_WITH_HELPERS {
            return;
        }
        let mut around = self.circles.nearest(member, |other| self.board.is_usable(other));
        around.retain(|helper| *helper != self.me);
        for helper in around.into_iter().take(HELPERS) {
            self.say(helper, Datagram { asked: vec![self.roster.member(member)], ..Datagram::default() });
        }
    }

    /// Neighbours are chosen anew, because somebody can be counted on who could not, or the other way round. For new
    /// ones the last sign of life is `well_ns`.
    pub(crate) fn choose_neighbours(&mut self, well_ns: u64) {
        let around = self.circles.neighbours(self.me, self.reach, |other| self.board.is_usable(other));
        let mut before = std::mem::take(&mut self.neighbours);
        for member in around {
            let known = before.iter().position(|neighbour| neighbour.member == member);
            self.neighbours.push(match known {
                Some(at) => before.swap_remove(at),
                None => Neighbour::new(self.roster.member(member), member, well_ns),
            });
        }
    }

    /// What is assumed of a neighbour that another one's silence brings: enough to ask it at once.
    pub(crate) fn takeover_ns(&self) -> u64 {
        self.now_ns.saturating_sub(ASK_NS)
    }

    /// If half of the neighbours are silent, many members are, and more are looked at. If all are, this member is cut
    /// off, and looks at all others.
    fn extend(&mut self) {
        let is_silent = |one: &&Neighbour| !self.is_watched(one) || self.now_ns - one.well_ns >= ASK_NS;
        let (silent, all) = (self.neighbours.iter().filter(is_silent).count(), self.neighbours.len());
        if silent == all {
            self.reach = REACH_MAX;
        } else if silent * 2 >= all {
            self.reach = (self.reach * 4).min(REACH_MAX);
        }
    }

    /// As few neighbours as usual again, when those that are counted on are heard.
    pub(crate) fn contract(&mut self) {
        let is_heard = |one: &Neighbour| !self.is_watched(one) || self.now_ns - one.well_ns < ASK_NS;
        if self.reach > 1 && self.neighbours.iter().all(is_heard) {
            self.reach = 1;
            self.choose_neighbours(self.takeover_ns());
        }
    }
}
