//! Totally ordered groups: all members deliver the same messages in the same order, whoever dies. One member's machine,
//! without a network or a clock.
//!
//! The members of a *view* are in the order of joining; the first is the *sequencer*. A message gets its place in one
//! of two ways. A short one goes to the sequencer, which sends it to all (*submit*). A long one goes from its origin to
//! all, once the sequencer has given it a place (*reserve*), so that the sequencer does not become the narrowest point.
//! Who misses a message keeps the later ones until it is there. Members keep what not all are known to have: `received`
//! of each goes to the sequencer, which says what is *stable*. A sequencer gives no place while too much is not stable,
//! and a member has a bounded number of messages without a place, so all memory is bounded.
//!
//! A view ends when a member dies, is silent, joins or leaves ([`change`]). Those who take part in the change stop
//! delivering, say what they have, and agree on the last message of the view and on the members of the next one. So no
//! message that a survivor has delivered is missing at another one, and what had no place yet gets one in the next
//! view. Death that is proven (by the kernel, a launcher) shrinks a view at once. Silence needs a majority of the view,
//! without which nobody goes on: two halves of a cut network do not both do so.
//!
//! Delivery is *agreed*: as soon as a message is there and all before it. With [`GroupRules::safe`] it waits until all
//! members have it; then also who has died, or was cut off, has delivered nothing that the survivors do not deliver.
//!
//! What makes it right: words of one member to another come once and in order, and from some point on not at all. What
//! a peer says is a claim: one that cannot be is a [`GroupBreach`].
//!
//! Not here: names, and who is asked to let one in (`weft-group`).
//!
//! Test: `cargo test -p weft-protocol ordered`; the simulator is in `ordered/tests`.

mod change;
mod history;
mod sequencer;
mod silence;
#[cfg(test)]
mod tests;
mod tree;
mod views;
mod word;

use change::ViewChange;
pub use history::Placed;
use history::ViewHistory;
use sequencer::{Sequencer, ToPlace};
use silence::SilenceWatch;
use std::collections::VecDeque;
use std::sync::Arc;
pub use tree::HostNumber;
use tree::HostTree;
pub use word::{Ballot, GroupWord, ORDERED_HEAD, Saying, Successor};

/// A process, by a number that no other one in the same group has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupMember(pub u32);

/// What all members of a group must have alike.
#[derive(Clone, Copy, Debug)]
pub struct GroupRules {
    /// Messages of a member that have no place yet, at most.
    pub window: usize,
    /// Messages that are not stable, at most.
    pub history: usize,
    /// Their bytes; a single message may be longer.
    pub history_bytes: usize,
    /// From this length on a message is sent to all by its origin.
    pub reserve_from: usize,
    /// From this length on a message goes to each host once, where it is known who is where, and a member there passes
    /// it on.
    pub tree_from: usize,
    /// Whether delivery waits until all members have a message.
    pub safe: bool,
    /// A member that is waited for is asked four times in so long; one that answers none of them is silent.
    pub silence_ms: u64,
}

/// Who is in a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupView {
    /// Counts the views of the group.
    pub number: u32,
    /// In the order of joining. The first one is the sequencer.
    pub members: Vec<GroupMember>,
}

impl GroupView {
    pub fn place(&self, member: GroupMember) -> Option<usize> {
        self.members.iter().position(|other| *other == member)
    }
}

/// Where a word goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordTo {
    One(GroupMember),
    /// To all members of [`OrderedGroup::view`] but this process and that one.
    Others {
        but: Option<GroupMember>,
    },
    /// To those of [`OrderedGroup::receivers_by_hosts`].
    Hosts {
        origin: GroupMember,
        passes_on: bool,
    },
}

/// What a group has for its user, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupEvent {
    Message {
        sequence: u64,
        message: Placed,
    },
    /// The members from now on; this process is one of them.
    View(GroupView),
    /// This process has left, as it wished.
    Left,
    /// The others have taken this process for dead. What it had sent, and what had no place yet, is lost.
    Excluded,
}

/// A peer has said what cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupBreach;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupStanding {
    /// Has asked this member to be let in.
    Joining(GroupMember),
    In,
    /// Is no member any more.
    Over,
}

/// A message of this process that has no place yet.
struct Unplaced {
    number: u32,
    bytes: Arc<[u8]>,
}

pub struct OrderedGroup {
    me: GroupMember,
    rules: GroupRules,
    standing: GroupStanding,
    view: GroupView,
    history: ViewHistory,
    /// All below were handed to the user.
    delivered: u64,
    /// All members have what is below.
    stable: u64,
    /// What the sequencer was told that we have.
    told: u64,
    /// Those of messages that were delivered since.
    untold_bytes: usize,
    own: VecDeque<Unplaced>,
    /// The number of the next message of this process.
    number: u32,
    /// Where this process is it.
    sequencer: Option<Sequencer>,
    tree: HostTree,
    host_of: Option<HostNumber>,
    change: ViewChange,
    watch: SilenceWatch,
    out: VecDeque<(WordTo, GroupWord)>,
    /// Events that come before the message of that number.
    events: VecDeque<(u64, GroupEvent)>,
    /// What was said in views that this process does not know yet.
    ahead: VecDeque<(GroupMember, GroupWord)>,
}

impl OrderedGroup {
    /// A new group of this process alone.
    pub fn create(me: GroupMember, rules: GroupRules) -> Self {
        let mut group = Self::empty(me, rules, GroupStanding::In);
        group.enter(GroupView { number: 1, members: vec![me] }, 0);
        group
    }

    /// One that a member is asked to let this process into.
    pub fn join(me: GroupMember, rules: GroupRules, contact: GroupMember) -> Self {
        let mut group = Self::empty(me, rules, GroupStanding::Joining(contact));
        group.ask_to_join(contact);
        group
    }

    fn empty(me: GroupMember, rules: GroupRules, standing: GroupStanding) -> Self {
        Self {
            me,
            rules,
            standing,
            view: GroupView::default(),
            history: ViewHistory::new(0),
            delivered: 0,
            stable: 0,
            told: 0,
            untold_bytes: 0,
            own: VecDeque::new(),
            number: 0,
            sequencer: None,
            tree: HostTree::default(),
            host_of: None,
            change: ViewChange::default(),
            watch: SilenceWatch::default(),
            out: VecDeque::new(),
            events: VecDeque::new(),
            ahead: VecDeque::new(),
        }
    }

    /// Asks another member, since the one that was asked is gone.
    pub fn ask_to_join(&mut self, contact: GroupMember) {
        if let GroupStanding::Joining(_) = self.standing {
            self.standing = GroupStanding::Joining(contact);
            self.say(WordTo::One(contact), Saying::Join { member: self.me });
        }
    }

    pub fn view(&self) -> &GroupView {
        &self.view
    }

    /// Whether this process is a member.
    pub fn has_view(&self) -> bool {
        self.standing == GroupStanding::In
    }

    /// Whether the group has ended: nobody is in its last view.
    pub fn has_nobody(&self) -> bool {
        self.is_over() && self.change.has_nobody()
    }

    /// Whether this process is not a member any more.
    pub fn is_over(&self) -> bool {
        self.standing == GroupStanding::Over
    }

    /// Messages of this process that have no place yet.
    pub fn unplaced(&self) -> usize {
        self.own.len()
    }

    /// Whether a message can be sent now.
    pub fn has_room(&self) -> bool {
        self.standing == GroupStanding::In && self.own.len() < self.rules.window
    }

    /// Sends a message to all members, this process among them, if there is room.
    pub fn try_send(&mut self, bytes: Arc<[u8]>) -> bool {
        if !self.has_room() {
            return false;
        }
        let number = self.number;
        self.number = number.wrapping_add(1);
        self.own.push_back(Unplaced { number, bytes: bytes.clone() });
        if !self.change.is_frozen() {
            self.submit(number, bytes);
        }
        true
    }

    /// Wants to be no member any more. What was sent before and has no place yet is lost.
    pub fn leave(&mut self) {
        match self.standing {
            GroupStanding::In => {
                self.change.note_leaver(self.me);
                self.reconsider();
            }
            _ => self.end(GroupEvent::Left, self.delivered),
        }
    }

    /// It is proven that a process is dead: nothing of it is heard any more.
    pub fn handle_death(&mut self, of: GroupMember) {
        self.change.note_dead(of);
        self.reconsider();
    }

    /// The next word to be sent.
    #[inline]
    pub fn poll_word(&mut self) -> Option<(WordTo, GroupWord)> {
        self.out.pop_front()
    }

    /// What has happened since, in the order of the group.
    #[inline]
    pub fn poll_event(&mut self) -> Option<GroupEvent> {
        if self.events.front().is_some_and(|(at, _)| *at <= self.delivered) {
            let event = self.events.pop_front().map(|(_, event)| event);
            if self.is_over() && self.events.is_empty() {
                // Nobody is told of its messages any more but by what was decided.
                self.history = ViewHistory::new(self.delivered);
            }
            return event;
        }
        let end = if self.rules.safe { self.history.next().min(self.stable) } else { self.history.next() };
        if self.delivered >= end || self.standing == GroupStanding::Over && self.events.is_empty() {
            return None;
        }
        let message = self.history.get(self.delivered)?.clone();
        self.delivered += 1;
        self.untold_bytes += message.bytes.len();
        self.settle();
        Some(GroupEvent::Message { sequence: self.delivered - 1, message })
    }

    /// A word of a member, or of somebody who wants to be one.
    ///
    /// # Errors
    /// It breaks the protocol; its sender is not to be heard any more.
    #[inline]
    pub fn handle_word(&mut self, from: GroupMember, word: GroupWord) -> Result<(), GroupBreach> {
        self.watch.note_heard(from);
        if self.change.hears_again(from) {
            self.reconsider();
        }
        match (self.standing, word.saying) {
            (GroupStanding::In, Saying::Ping) if word.view >= self.view.number => self.answer_ping(from),
            (_, Saying::Pong) => {}
            (GroupStanding::In, Saying::Join { member }) => self.on_join(member),
            (GroupStanding::In, Saying::Leave { member }) => self.on_leave(member),
            (GroupStanding::In, Saying::Behind) => self.tell_decided(from, word.view),
            (GroupStanding::In, Saying::Excluded) if word.view > self.view.number => {
                self.end(GroupEvent::Excluded, self.delivered);
            }
            (GroupStanding::In | GroupStanding::Joining(_), saying) if word.view > self.view.number => {
                return self.on_ahead(from, GroupWord { view: word.view, saying });
            }
            (GroupStanding::In, saying) if word.view == self.view.number => return self.on_current(from, saying),
            (GroupStanding::In, saying) => self.on_late(from, word.view, &saying),
            (GroupStanding::Over, saying) => self.on_over(from, word.view, &saying),
            _ => {}
        }
        Ok(())
    }

    /// Something said in the view that this process is in.
    #[inline]
    fn on_current(&mut self, from: GroupMember, saying: Saying) -> Result<(), GroupBreach> {
        let Some(place) = self.view.place(from) else {
            self.say(WordTo::One(from), Saying::Excluded);
            return Ok(());
        };
        match saying {
            Saying::Ordered { sequence, stable, message } => self.on_ordered(from, sequence, stable, message),
            Saying::Submit { number, received, bytes } => {
                self.on_submitted(place, number, received, ToPlace::Here(bytes))
            }
            Saying::Reserve { number, received, length } => {
                self.on_submitted(place, number, received, ToPlace::There(length))
            }
            Saying::Yours { number, sequence, stable } => self.on_yours(number, sequence, stable),
            Saying::Received { received } => self.on_received(place, received),
            Saying::Stable { stable } => self.on_stable(stable),
            change => self.on_change(from, change),
        }
    }

    fn say(&mut self, to: WordTo, saying: Saying) {
        self.out.push_back((to, GroupWord { view: self.view.number, saying }));
    }

    /// Begins a view, whose first message will be `next`.
    fn enter(&mut self, view: GroupView, next: u64) {
        self.view = view;
        if let Some(host_of) = &self.host_of {
            self.tree = HostTree::new(&self.view, self.me, host_of);
        }
        (self.stable, self.told) = (next, next);
        let first = self.view.members[0] == self.me;
        self.sequencer = first.then(|| Sequencer::new(next, self.view.members.len()));
        self.events.push_back((next, GroupEvent::View(self.view.clone())));
        let own: Vec<_> = self.own.iter().map(|own| (own.number, own.bytes.clone())).collect();
        own.into_iter().for_each(|(number, bytes)| self.submit(number, bytes));
    }

    /// Is no member any more, once all below `at` has been delivered.
    fn end(&mut self, event: GroupEvent, at: u64) {
        if self.standing != GroupStanding::Over {
            self.standing = GroupStanding::Over;
            self.own.clear();
            // What it has decided is not to be lost.
            self.out.retain(|(_, word)| matches!(word.saying, Saying::Install { .. }));
            self.events.push_back((at, event));
        }
    }
}
