//! How one view follows on another: members that take part agree on its successor, whoever dies meanwhile.
//!
//! The first member of the view that is neither dead nor silent *leads*. It collects what each one has; who answers
//! takes no part in the old view any more. When all have answered that are neither dead nor silent, and they may speak
//! for the view, the leader fetches what it lacks, and proposes the last message and the next members. When those have
//! accepted it is decided, and installed. Another one who takes over begins with a higher ballot, and proposes again
//! what has been accepted with the highest one: what was decided stays so (as in Paxos; Lamport, "The Part-Time
//! Parliament").
//!
//! They may speak for the view who are more than half of it, or all of it that is not proven to be dead. So any two
//! decisions have a member in common, unless all of the first one's have died; then nobody is left who could know of
//! it. One case is not seen: some who were cut off from the rest, let others in and then died.

use super::{
    Ballot, GroupBreach, GroupEvent, GroupMember, GroupStanding, GroupView, OrderedGroup, Placed, Saying, Successor,
    Unplaced, WordTo,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Decisions that are kept for members that have not heard of them.
const DECISIONS: usize = 8;

pub type GroupMembers = BTreeSet<GroupMember>;

/// What a member has.
#[derive(Debug)]
struct Holding {
    received: u64,
    early: Vec<u64>,
    accepted: Option<(Ballot, Successor)>,
}

/// A change that this process leads.
#[derive(Debug)]
struct Leading {
    ballot: Ballot,
    holdings: BTreeMap<GroupMember, Holding>,
    /// What is fetched, and from whom.
    fetching: BTreeMap<u64, GroupMember>,
    fetched: BTreeMap<u64, Placed>,
    proposed: Option<Successor>,
    accepted: GroupMembers,
}

#[derive(Debug, Default)]
pub(super) struct ViewChange {
    /// The highest ballot that this process has answered in this view.
    promised: Ballot,
    /// One that is higher, which others have answered.
    rival: Option<Ballot>,
    accepted: Option<(Ballot, Successor)>,
    leading: Option<Leading>,
    pub dead: GroupMembers,
    silent: GroupMembers,
    /// Who wants to come in.
    pub joining: Vec<GroupMember>,
    pub leaving: GroupMembers,
    /// Whom all this was told last, and how much it was.
    urged: Option<(GroupMember, usize)>,
    /// What follows on the views before.
    pub decided: VecDeque<(u32, Successor)>,
}

impl ViewChange {
    /// Whether this process takes no part in its view any more.
    #[inline]
    pub fn is_frozen(&self) -> bool {
        self.promised != Ballot::default()
    }

    pub fn is_leading(&self) -> bool {
        self.leading.is_some()
    }

    pub fn has_nobody(&self) -> bool {
        self.decided.back().is_some_and(|(_, successor)| successor.members.is_empty())
    }

    pub fn note_leaver(&mut self, member: GroupMember) {
        self.leaving.insert(member);
    }

    pub fn note_dead(&mut self, member: GroupMember) {
        self.dead.insert(member);
        self.joining.retain(|joining| *joining != member);
    }

    /// True if the member was not silent before.
    pub fn note_silent(&mut self, member: GroupMember) -> bool {
        self.silent.insert(member)
    }

    /// True if the member had been silent.
    #[inline]
    pub fn hears_again(&mut self, member: GroupMember) -> bool {
        !self.silent.is_empty() && self.silent.remove(&member)
    }

    /// Who leads, as far as this process knows, where it does not do so itself.
    fn led_by_another(&self, me: GroupMember) -> Option<GroupMember> {
        let highest = self.rival.unwrap_or(self.promised);
        (highest != Ballot::default() && highest.leader != me.0).then_some(GroupMember(highest.leader))
    }

    fn is_out(&self, member: GroupMember) -> bool {
        self.dead.contains(&member) || self.silent.contains(&member)
    }

    /// Whom this process waits for while the view is changed.
    pub fn awaited(&self, me: GroupMember, view: &GroupView) -> Vec<GroupMember> {
        let Some(leading) = &self.leading else {
            // Who is silent to this process alone is heard again.
            let silent = self.silent.iter().copied().filter(|member| view.place(*member).is_some());
            let urged = self.urged.map(|(leader, _)| leader);
            return self.led_by_another(me).into_iter().chain(urged).chain(silent).collect();
        };
        let has_answered = |member: &GroupMember| match &leading.proposed {
            None => leading.holdings.contains_key(member) && !leading.fetching.values().any(|from| from == member),
            Some(_) => !leading.holdings.contains_key(member) || leading.accepted.contains(member),
        };
        view.members.iter().copied().filter(|member| *member != me && !has_answered(member)).collect()
    }
}

impl OrderedGroup {
    /// Looks whether the view must be changed, and does what is to be done for that now.
    pub(super) fn reconsider(&mut self) {
        if self.standing != GroupStanding::In {
            return;
        }
        self.change.dead.remove(&self.me);
        self.change.silent.remove(&self.me);
        let change = &self.change;
        let goes = |member: &GroupMember| change.is_out(*member) || change.leaving.contains(member);
        if !change.is_frozen() && change.joining.is_empty() && !self.view.members.iter().any(goes) {
            self.change.urged = None;
            return;
        }
        let mut living = self.view.members.iter().copied().filter(|member| !change.is_out(*member));
        let leader = living.next().unwrap_or(self.me);
        if change.leading.is_some() {
            self.lead_on();
        } else if leader != self.me {
            self.urge(leader);
        } else if change.led_by_another(self.me).is_none_or(|other| change.is_out(other)) {
            self.begin_to_lead();
        }
    }

    /// Tells who would lead what this process knows.
    fn urge(&mut self, leader: GroupMember) {
        let ViewChange { dead, silent, joining, leaving, .. } = &self.change;
        let known = dead.len() + silent.len() + joining.len() + leaving.len();
        if self.change.urged == Some((leader, known)) {
            return;
        }
        let in_view = |set: &GroupMembers| set.iter().copied().filter(|one| self.view.place(*one).is_some()).collect();
        let (dead, silent): (Vec<_>, Vec<_>) = (in_view(dead), in_view(silent));
        let joins = joining.iter().map(|member| Saying::Join { member: *member });
        let leaves = leaving.iter().map(|member| Saying::Leave { member: *member });
        let all: Vec<_> = joins.chain(leaves).chain([Saying::Urge { dead, silent }]).collect();
        all.into_iter().for_each(|saying| self.say(WordTo::One(leader), saying));
        self.change.urged = Some((leader, known));
    }

    fn begin_to_lead(&mut self) {
        let ViewChange { promised, rival, .. } = &mut self.change;
        let highest = rival.take().map_or(promised.round, |rival| rival.round.max(promised.round));
        let ballot = Ballot { round: highest.saturating_add(1), leader: self.me.0 };
        self.change.promised = ballot;
        let own = self.holding();
        self.change.leading = Some(Leading {
            ballot,
            holdings: BTreeMap::from([(self.me, own)]),
            fetching: BTreeMap::new(),
            fetched: BTreeMap::new(),
            proposed: None,
            accepted: GroupMembers::new(),
        });
        let others = self.view.members.iter().copied().filter(|member| *member != self.me);
        let asked: Vec<_> = others.filter(|member| !self.change.dead.contains(member)).collect();
        asked.into_iter().for_each(|member| self.say(WordTo::One(member), Saying::Collect { ballot }));
        self.lead_on();
    }

    fn holding(&self) -> Holding {
        let accepted = self.change.accepted.clone();
        Holding { received: self.history.next(), early: self.history.early(), accepted }
    }

    /// Whether these may speak for the view.
    fn speak_for_all(&self, members: &GroupMembers) -> bool {
        let all = &self.view.members;
        2 * members.len() > all.len()
            || all.iter().all(|member| members.contains(member) || self.change.dead.contains(member))
    }

    /// Whether nobody else is to be waited for than `members`.
    fn are_complete(&self, members: &GroupMembers) -> bool {
        let all = &self.view.members;
        all.iter().all(|member| members.contains(member) || self.change.is_out(*member)) && self.speak_for_all(members)
    }

    /// What can be done now in the change that this process leads.
    fn lead_on(&mut self) {
        let Some(leading) = &self.change.leading else { return };
        if leading.proposed.is_some() {
            // Who has not answered the first question is not among those that are asked the second one.
            let mut asked = leading.holdings.keys().filter(|member| !self.change.is_out(**member));
            if asked.all(|member| leading.accepted.contains(member)) && self.speak_for_all(&leading.accepted) {
                self.decide();
            }
            return;
        }
        if !self.are_complete(&leading.holdings.keys().copied().collect()) {
            return;
        }
        let accepted = leading.holdings.values().filter_map(|holding| holding.accepted.as_ref());
        if let Some((_, successor)) = accepted.max_by_key(|(ballot, _)| *ballot) {
            return self.propose(successor.clone());
        }
        let (first, next) = self.rest_of_view();
        if self.fetch(first, next) {
            let successor = self.successor(first, next);
            self.propose(successor);
        }
    }

    /// From the first message that somebody lacks to behind the last one that follows without a gap on all before.
    fn rest_of_view(&self) -> (u64, u64) {
        let leading = self.change.leading.as_ref().expect("asked by the leader only");
        let holdings = || leading.holdings.values();
        let first = holdings().map(|holding| holding.received).min().unwrap_or(0);
        let mut next = holdings().map(|holding| holding.received).max().unwrap_or(0);
        while holdings().any(|holding| holding.early.contains(&next)) {
            next += 1;
        }
        (first, next)
    }

    /// Asks for what this process lacks of these; true if it lacks nothing.
    fn fetch(&mut self, first: u64, next: u64) -> bool {
        let leading = self.change.leading.as_mut().expect("asked by the leader only");
        let ballot = leading.ballot;
        let mut asks = Vec::new();
        let mut lacks = false;
        for sequence in first..next {
            if self.history.get(sequence).is_some() || leading.fetched.contains_key(&sequence) {
                continue;
            }
            lacks = true;
            let ask = leading.fetching.get(&sequence);
            if ask.is_some_and(|from| !self.change.dead.contains(from) && !self.change.silent.contains(from)) {
                continue;
            }
            let has = |holding: &Holding| holding.received > sequence || holding.early.contains(&sequence);
            let holders = leading.holdings.iter().filter(|(_, holding)| has(holding)).map(|(member, _)| *member);
            let living = holders.filter(|member| !self.change.dead.contains(member));
            // One that is silent only if there is no other.
            match living.min_by_key(|member| self.change.silent.contains(member)) {
                Some(holder) if ask != Some(&holder) => {
                    leading.fetching.insert(sequence, holder);
                    asks.push((holder, sequence));
                }
                Some(_) => {}
                // All who have it are dead: nobody who lives has delivered it, or he would be among them.
                None => return self.forget_holders(),
            }
        }
        asks.into_iter().for_each(|(holder, sequence)| {
            self.say(WordTo::One(holder), Saying::Fetch { ballot, sequence });
        });
        !lacks
    }

    /// Does not count on the dead any more, and asks all others once more.
    fn forget_holders(&mut self) -> bool {
        self.change.leading = None;
        self.begin_to_lead();
        false
    }

    fn successor(&self, first: u64, next: u64) -> Successor {
        let leading = self.change.leading.as_ref().expect("asked by the leader only");
        let rest = (first..next).filter_map(|at| self.history.get(at).or_else(|| leading.fetched.get(&at)).cloned());
        let change = &self.change;
        let stays = |member: &GroupMember| leading.holdings.contains_key(member) && !change.leaving.contains(member);
        let old = self.view.members.iter().copied().filter(stays);
        let new = change.joining.iter().copied().filter(|member| self.view.place(*member).is_none());
        Successor { members: old.chain(new).collect(), next, rest: rest.collect() }
    }

    fn propose(&mut self, successor: Successor) {
        let Some(leading) = &mut self.change.leading else { return };
        let ballot = leading.ballot;
        leading.proposed = Some(successor.clone());
        leading.accepted = GroupMembers::from([self.me]);
        let others: Vec<_> = leading.holdings.keys().copied().filter(|member| *member != self.me).collect();
        self.change.accepted = Some((ballot, successor.clone()));
        for member in others {
            self.say(WordTo::One(member), Saying::Propose { ballot, successor: Box::new(successor.clone()) });
        }
        self.lead_on();
    }

    fn decide(&mut self) {
        let Some(successor) = self.change.leading.take().and_then(|leading| leading.proposed) else { return };
        let all: GroupMembers = self.view.members.iter().chain(&successor.members).copied().collect();
        let is_told = |member: &GroupMember| *member != self.me && !self.change.dead.contains(member);
        let told: Vec<_> = all.into_iter().filter(is_told).collect();
        for member in told {
            self.say(WordTo::One(member), Saying::Install { successor: Box::new(successor.clone()) });
        }
        self.install(self.view.number, successor);
    }

    /// A word about the change of the view that this process is in.
    pub(super) fn on_change(&mut self, from: GroupMember, saying: Saying) -> Result<(), GroupBreach> {
        match saying {
            Saying::Collect { ballot } => self.on_collect(from, ballot),
            Saying::State { ballot, received, early, accepted } => {
                let accepted = accepted.map(|(ballot, successor)| (ballot, *successor));
                let Some(leading) = self.led_by(ballot) else { return Ok(()) };
                leading.holdings.entry(from).or_insert(Holding { received, early, accepted });
                // Who comes late may still be needed for a majority.
                if let Some(successor) = leading.proposed.clone().map(Box::new) {
                    self.say(WordTo::One(from), Saying::Propose { ballot, successor });
                }
            }
            Saying::Fetch { ballot, sequence } => {
                if let Some(message) = self.history.get(sequence).cloned() {
                    self.say(WordTo::One(from), Saying::Have { ballot, sequence, message });
                }
            }
            Saying::Have { ballot, sequence, message } => {
                if let Some(leading) = self.led_by(ballot).filter(|leading| leading.fetching.contains_key(&sequence)) {
                    leading.fetching.remove(&sequence);
                    leading.fetched.insert(sequence, message);
                }
            }
            Saying::Propose { ballot, successor } if ballot == self.change.promised => {
                self.change.accepted = Some((ballot, *successor));
                self.say(WordTo::One(from), Saying::Accepted { ballot });
            }
            Saying::Propose { ballot, .. } if ballot < self.change.promised => {
                self.say(WordTo::One(from), Saying::Refused { promised: self.change.promised });
            }
            Saying::Accepted { ballot } => {
                self.led_by(ballot).map(|leading| leading.accepted.insert(from));
            }
            Saying::Refused { promised } if promised > self.change.promised => {
                (self.change.rival, self.change.leading) = (Some(promised), None);
            }
            Saying::Install { successor } => {
                self.check_successor(&successor)?;
                self.install(self.view.number, *successor);
            }
            Saying::Urge { dead, silent } => {
                self.change.dead.extend(dead);
                self.watch.doubt(silent);
            }
            _ => {}
        }
        self.reconsider();
        Ok(())
    }

    fn led_by(&mut self, ballot: Ballot) -> Option<&mut Leading> {
        self.change.leading.as_mut().filter(|leading| leading.ballot == ballot)
    }

    fn on_collect(&mut self, from: GroupMember, ballot: Ballot) {
        if ballot <= self.change.promised {
            return self.say(WordTo::One(from), Saying::Refused { promised: self.change.promised });
        }
        self.change.promised = ballot;
        (self.change.leading, self.change.rival) = (None, None);
        let Holding { received, early, accepted } = self.holding();
        let accepted = accepted.map(|(ballot, successor)| (ballot, Box::new(successor)));
        self.say(WordTo::One(from), Saying::State { ballot, received, early, accepted });
    }

    /// For one who stays: it ends behind what is here, and what comes with it leaves no gap.
    fn check_successor(&self, successor: &Successor) -> Result<(), GroupBreach> {
        let first = successor.next.checked_sub(successor.rest.len() as u64).ok_or(GroupBreach)?;
        let are_distinct = successor.members.iter().collect::<BTreeSet<_>>().len() == successor.members.len();
        let follows = first <= self.history.next() && successor.next >= self.history.next();
        if are_distinct && (follows || !successor.members.contains(&self.me)) { Ok(()) } else { Err(GroupBreach) }
    }

    /// The view of that number is over.
    pub(super) fn install(&mut self, number: u32, successor: Successor) {
        let wished = self.change.leaving.contains(&self.me);
        let Successor { members, next, .. } = successor.clone();
        let ends = wished || members.contains(&self.me);
        if ends {
            self.end_view(&successor);
        }
        self.change.decided.push_back((number, successor));
        if self.change.decided.len() > DECISIONS {
            self.change.decided.pop_front();
        }
        if !ends {
            return self.end(GroupEvent::Excluded, self.delivered);
        }
        if !members.contains(&self.me) {
            return self.end(GroupEvent::Left, next.min(self.history.next()));
        }
        self.change.begin_view(&members);
        self.watch.begin_view();
        self.enter(GroupView { number: number + 1, members }, next);
        self.hear_ahead();
        self.reconsider();
    }

    /// Takes the last messages of the view, and back what has no place in it.
    fn end_view(&mut self, successor: &Successor) {
        let first = successor.next - successor.rest.len() as u64;
        for (message, sequence) in successor.rest.iter().zip(first..) {
            if sequence >= self.history.next() && message.origin == self.me {
                self.own.retain(|own| own.number != message.number);
            }
            self.history.insert(sequence, message.clone());
        }
        let lost = self.history.cut(successor.next).into_iter().filter(|message| message.origin == self.me);
        lost.rev().for_each(|Placed { number, bytes, .. }| self.own.push_front(Unplaced { number, bytes }));
        self.stable = self.stable.max(successor.next.min(self.history.next()));
    }
}

impl ViewChange {
    /// Forgets what was about the view before.
    fn begin_view(&mut self, members: &[GroupMember]) {
        (self.promised, self.rival) = (Ballot::default(), None);
        (self.accepted, self.leading, self.urged) = (None, None, None);
        self.silent.retain(|member| members.contains(member));
        self.leaving.retain(|member| members.contains(member));
        self.joining.retain(|member| !members.contains(member));
    }
}
