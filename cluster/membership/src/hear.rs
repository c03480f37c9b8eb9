//! What comes from others. All of it is a claim.

use crate::MemberId;
use crate::datagram::{ANSWER, Datagram, IS_ANSWER, Unreadable};
use crate::repute::Repute;
use crate::view::MembershipView;

/// A member that says it was heard by us so long ago was well then, if not now. Beats leave it behind by one turn.
const BEHIND_NS: u64 = 1_200_000_000;
/// A sign of life that is older is not told to others.
const TOLD_NS: u64 = 2_000_000_000;
/// Rosters are compared so often with one neighbour.
const COMPARE_NS: u64 = 200_000_000;
/// A datagram comes before so many others at most that were sent earlier. Who is further behind was believed too much.
const DISORDER: i32 = 1024;
/// This member takes another incarnation so often, where two daemons believe that they are the same one.
const RENEW_NS: u64 = 1_000_000_000;

impl MembershipView {
    /// These bytes came from this member.
    pub fn handle_datagram(&mut self, now_ns: u64, from: MemberId, bytes: &[u8]) {
        self.advance(now_ns);
        if self.has_left {
            return;
        }
        let Some(sender) = self.sender(from) else {
            self.dropped.strangers += 1;
            return;
        };
        match Datagram::read(bytes) {
            Err(Unreadable::Version(version)) => {
                self.dropped.other_versions += 1;
                self.versions.insert(from, version);
            }
            Ok(datagram) if datagram.to != self.roster.member(self.me) => self.dropped.misdirected += 1,
            Ok(datagram) if !datagram.repute.is_unseen() => {
                self.versions.remove(&from);
                self.hear(sender, datagram);
                self.tell_news();
                self.set_due();
            }
            Ok(_) | Err(Unreadable::Malformed) => self.dropped.malformed += 1,
        }
    }

    /// Most datagrams are a neighbour's.
    fn sender(&self, from: MemberId) -> Option<usize> {
        let neighbour = self.neighbours.iter().find(|neighbour| neighbour.id == from);
        let sender = neighbour.map(|neighbour| neighbour.member).or_else(|| self.roster.place(from));
        sender.filter(|sender| *sender != self.me)
    }

    fn hear(&mut self, sender: usize, datagram: Datagram) {
        self.take(sender, datagram.repute);
        let known = self.roster.repute(sender);
        let correction = if datagram.repute < known { vec![(self.roster.member(sender), known)] } else { Vec::new() };
        if datagram.repute.incarnation < known.incarnation {
            self.dropped.outdated += 1;
            self.say(sender, Datagram { flags: IS_ANSWER, said: correction, ..Datagram::default() });
            return;
        }
        let is_neighbour = self.hear_life(sender, &datagram);
        self.hear_said(&datagram.said);
        let told = self.told(&datagram.asked);
        self.hear_told(&datagram.told);
        if let Some(groups) = &datagram.groups {
            let said = self.roster.differing(groups);
            self.say_all(sender, &said);
        } else if datagram.digest != self.roster.digest() {
            self.compare(sender);
        }
        let from_afar = !is_neighbour && datagram.flags & IS_ANSWER == 0;
        if from_afar || datagram.flags & ANSWER != 0 || !told.is_empty() || !correction.is_empty() {
            self.say(sender, Datagram { flags: IS_ANSWER, said: correction, told, ..Datagram::default() });
        }
    }

    /// Takes a datagram for a sign of life, unless a later one came before it. Whether its sender is a neighbour.
    fn hear_life(&mut self, sender: usize, datagram: &Datagram) -> bool {
        let now_ns = self.now_ns;
        let Some(neighbour) = self.neighbours.iter_mut().find(|neighbour| neighbour.member == sender) else {
            return false;
        };
        let (incarnation, number) = neighbour.latest;
        let ahead = datagram.number.wrapping_sub(number).cast_signed();
        let is_later = !(-DISORDER..=0).contains(&ahead);
        if datagram.repute.incarnation != incarnation || is_later {
            neighbour.latest = (datagram.repute.incarnation, datagram.number);
            neighbour.came_ns = Some(now_ns);
            let behind_ns = (u64::from(datagram.heard_ms) * 1_000_000).saturating_sub(BEHIND_NS);
            neighbour.well_ns = neighbour.well_ns.max(now_ns.saturating_sub(behind_ns));
        }
        true
    }

    fn hear_said(&mut self, said: &[(MemberId, Repute)]) {
        for (member, repute) in said {
            match self.roster.place(*member) {
                Some(place) if place == self.me => self.refute(*repute),
                Some(place) => _ = self.take(place, *repute),
                None => {}
            }
        }
    }

    /// Somebody says of this member what only this member knows.
    fn refute(&mut self, claim: Repute) {
        let mine = self.roster.repute(self.me);
        if claim <= mine {
            return;
        }
        let (above, renews) = mine.above(claim);
        if renews {
            if self.renewed_ns.is_some_and(|renewed_ns| self.now_ns < renewed_ns + RENEW_NS) {
                return;
            }
            self.renewed_ns = Some(self.now_ns);
        }
        self.take(self.me, above);
    }

    /// The answer to who is asked about: those who were heard lately.
    fn told(&self, asked: &[MemberId]) -> Vec<(MemberId, u16)> {
        let told = asked.iter().filter_map(|member| {
            let place = self.roster.place(*member)?;
            let neighbour = self.neighbours.iter().find(|neighbour| neighbour.member == place)?;
            let age_ns = self.now_ns - neighbour.well_ns;
            (age_ns < TOLD_NS && neighbour.came_ns.is_some()).then_some((*member, (age_ns / 1_000_000) as u16))
        });
        told.collect()
    }

    fn hear_told(&mut self, told: &[(MemberId, u16)]) {
        for (member, age_ms) in told {
            let place = self.roster.place(*member);
            let well_ns = self.now_ns.saturating_sub(u64::from(*age_ms) * 1_000_000);
            let neighbour = self.neighbours.iter_mut().find(|neighbour| Some(neighbour.member) == place);
            neighbour.into_iter().for_each(|neighbour| neighbour.well_ns = neighbour.well_ns.max(well_ns));
        }
    }

    /// Sends a neighbour whose roster differs what it needs to say in which members.
    fn compare(&mut self, neighbour: usize) {
        let now_ns = self.now_ns;
        let known = self.neighbours.iter_mut().find(|known| known.member == neighbour);
        let Some(known) = known.filter(|known| now_ns >= known.compared_ns + COMPARE_NS) else { return };
        known.compared_ns = now_ns;
        let groups = Some(Box::new(self.roster.groups()));
        self.say(neighbour, Datagram { groups, ..Datagram::default() });
    }
}
