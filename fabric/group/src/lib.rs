//! Totally ordered groups by name: what members send is delivered to all of them in one order, whoever dies.
//!
//! [`OrderedGroups`] stands beside an endpoint, as the companion of a messenger does: it moves with the endpoint's
//! progress ([`OrderedGroups::advance`], [`OrderedGroups::idle`]) and never waits. The order is made by the machine of
//! [`weft_fabric::ordered`]; here are names ([`directory`]), the way of its words, and what it has to be told: who has
//! died, and the time. Processes of the endpoint's job can be members; each is one at most once at a time.
//!
//! Deaths are those that the fabric knows of: the kernel's or the launcher's word, or a lost connection. A process that
//! leaves the job without leaving its groups has died for these. Silence counts where somebody is waited for.
//!
//! Invariants:
//! - A member's words to another one arrive in the order of sending, so those of a group go by one way, [`Missives`].
//! - Who is no member any more still answers: it may know of a decision that others do not.
//!
//! [`GroupCalls`] are calls that wait. Not here: upcalls (interfaces).
//!
//! Test: `cargo test -p weft-group`; jobs of several hosts: `hosts_groups` in `tests`.
#![forbid(unsafe_code)]

mod calls;
pub mod directory;
mod live;
mod member;
mod outbox;
#[cfg(test)]
mod tests;

pub use calls::{GroupCalls, HasGroups};
use directory::{Directory, DirectoryWord, FoundName, LONGEST_NAME};
use live::LiveGroup;
use outbox::WordOutbox;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use weft_fabric::ordered::{GroupEvent, GroupMember, GroupRules, GroupView, Placed};
use weft_fabric::ordered::{GroupWord, HostNumber};
use weft_fabric::{Endpoint, Peer};
use weft_ports::Companion;
use weft_ports::missives::{LONGEST_BYTES, Missive, Missives};

/// How often it is looked whether a member has died.
const LOOK: Duration = Duration::from_millis(20);
/// Most passes in which what the dead have sent is taken.
const PASSES_TO_TAKE: u32 = 1 << 16;
/// The tag of words about names; groups have numbers from 1 on.
const NAMES: i32 = 0;
/// Longest message of a group: half of what goes at once, so that the end of a view has room beside it.
pub const LONGEST_MESSAGE: usize = LONGEST_BYTES as usize / 2;
/// Groups that are over and kept, at most.
const KEPT: usize = 16;
/// Words for groups that this process does not know yet, at most.
const EARLY: usize = 4096;

/// A group that this process is a member of, or wants to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupId(u32);

/// Rules that fit most groups.
pub const USUAL_RULES: GroupRules = GroupRules {
    window: 64,
    history: 1024,
    history_bytes: 16 << 20,
    reserve_from: 4096,
    tree_from: 4096,
    safe: false,
    silence_ms: 2500,
};

/// Why a group cannot be joined, or sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupError {
    /// The name is empty or too long.
    Name(String),
    /// This process is a member of the group already, or wants to be.
    Joined(String),
    /// This process is not, or no longer, a member.
    Over,
    /// A message has so many bytes, which are too many.
    Long(usize),
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => {
                let dots = if name.chars().nth(40).is_some() { "..." } else { "" };
                write!(f, "a group's name has 1 to {LONGEST_NAME} bytes, not {}: '{name:.40}{dots}'", name.len())
            }
            Self::Joined(name) => write!(f, "this process is a member of group '{name}' already"),
            Self::Long(bytes) => write!(f, "a message to a group has at most {LONGEST_MESSAGE} bytes, not {bytes}"),
            Self::Over => write!(f, "this process is no member of the group any more"),
        }
    }
}

impl std::error::Error for GroupError {}

/// The process that a member is.
pub fn process_of(member: GroupMember) -> Peer {
    member::peer(member)
}

/// As far as the fabric knows.
fn is_dead(endpoint: &Endpoint, peer: Peer) -> bool {
    endpoint.is_lost(peer) || endpoint.has_ended(peer)
}

/// The groups of a process.
pub struct OrderedGroups {
    me: Peer,
    missives: Missives,
    directory: Directory,
    all: Vec<LiveGroup>,
    /// What came before it was known which group it is for.
    early: Vec<Missive>,
    lost: BTreeSet<Peer>,
    /// How often this process has joined the groups of these names before.
    turns: BTreeMap<String, u32>,
    host_of: Option<HostNumber>,
    begun: Instant,
    ids: u32,
    /// Something was said that has not left.
    unsent: bool,
    outbox: WordOutbox,
}

impl OrderedGroups {
    /// For an endpoint that has joined, with the context of that number and the next one.
    pub fn new(endpoint: &mut Endpoint, context: u32) -> Self {
        let mut missives = Missives::new(context);
        missives.post(endpoint);
        let me = endpoint.me();
        Self {
            me,
            missives,
            directory: Directory::new(me, endpoint.world_size()),
            all: Vec::new(),
            early: Vec::new(),
            lost: BTreeSet::new(),
            turns: BTreeMap::new(),
            host_of: member::hosts(endpoint),
            begun: Instant::now(),
            ids: 0,
            unsent: false,
            outbox: WordOutbox::default(),
        }
    }

    /// Wants to be a member. Events tell when this process is one.
    ///
    /// # Errors
    /// The name cannot be one, or the process is a member.
    pub fn join(&mut self, endpoint: &mut Endpoint, name: &str, rules: GroupRules) -> Result<GroupId, GroupError> {
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(GroupError::Name(name.to_owned()));
        }
        if self.all.iter().any(|group| group.is_named(name) && !group.is_over()) {
            return Err(GroupError::Joined(name.to_owned()));
        }
        let turn = *self.turns.entry(name.to_owned()).and_modify(|turn| *turn += 1).or_default();
        self.forget_old();
        self.ids += 1;
        let group = LiveGroup::new(GroupId(self.ids), name, member::member(self.me, turn), rules, self.host_of.clone());
        self.directory.find(name, group.member());
        self.all.push(group);
        self.settle(endpoint);
        Ok(GroupId(self.ids))
    }

    /// Of the groups that are over the latest ones are kept: they know what others may ask for.
    fn forget_old(&mut self) {
        let over = self.all.iter().filter(|group| group.is_over()).count();
        let mut surplus = over.saturating_sub(KEPT);
        self.all.retain(|group| {
            let goes = surplus > 0 && group.is_over();
            surplus -= usize::from(goes);
            !goes
        });
    }

    /// Wants to be no member any more; an event tells when this is so. What has no place yet is lost.
    pub fn leave(&mut self, endpoint: &mut Endpoint, group: GroupId) {
        if let Some(at) = self.place(group) {
            self.all[at].leave();
        }
        self.settle(endpoint);
    }

    /// Sends to all members, this process among them, if there is room; else make progress, and try again.
    ///
    /// # Errors
    /// This process is no member any more, or the message is longer than [`LONGEST_MESSAGE`].
    #[inline]
    pub fn try_send(&mut self, endpoint: &mut Endpoint, group: GroupId, bytes: Arc<[u8]>) -> Result<bool, GroupError> {
        let sent = self.try_send_among_others(group, bytes);
        if let Some(at) = self.place(group) {
            self.send_words(endpoint, at);
        }
        sent
    }

    /// As [`Self::try_send`], where more sends may follow before anything is waited for: the message leaves with the
    /// next progress, together with those.
    ///
    /// # Errors
    /// As [`Self::try_send`].
    #[inline]
    pub fn try_send_among_others(&mut self, group: GroupId, bytes: Arc<[u8]>) -> Result<bool, GroupError> {
        let at = self.place(group).filter(|at| !self.all[*at].is_over()).ok_or(GroupError::Over)?;
        if bytes.len() > LONGEST_MESSAGE {
            return Err(GroupError::Long(bytes.len()));
        }
        self.unsent = true;
        Ok(self.all[at].try_send(bytes))
    }

    /// What has happened next in a group, this process being a member of it first of all.
    #[inline]
    pub fn take_event(&mut self, endpoint: &mut Endpoint, group: GroupId) -> Option<GroupEvent> {
        let at = self.place(group)?;
        let event = self.all[at].poll_event()?;
        let group = &self.all[at];
        match &event {
            GroupEvent::Message { .. } => {}
            GroupEvent::View(view) => self.directory.tell_members(group.name(), group.number(), &view.members),
            GroupEvent::Left | GroupEvent::Excluded => {
                self.directory.tell_end(group.name(), group.number(), group.has_nobody());
            }
        }
        self.send_names(endpoint);
        self.send_words(endpoint, at);
        Some(event)
    }

    /// Messages of this process that have no place in the order yet.
    pub fn unplaced(&self, group: GroupId) -> usize {
        self.place(group).map_or(0, |at| self.all[at].unplaced())
    }

    /// The members; none before this process is one.
    pub fn view(&self, group: GroupId) -> Option<&GroupView> {
        self.all[self.place(group)?].view()
    }

    /// This process as a member.
    pub fn member(&self, group: GroupId) -> Option<GroupMember> {
        Some(self.all[self.place(group)?].member())
    }

    fn place(&self, group: GroupId) -> Option<usize> {
        // The latest ones are used.
        self.all.iter().rposition(|one| one.id() == group)
    }

    /// Takes in what has come, and sends what follows from it. To be called after each progress pass.
    #[inline]
    pub fn advance(&mut self, endpoint: &mut Endpoint) {
        let first = self.missives.next(endpoint);
        if first.is_none() && !std::mem::take(&mut self.unsent) {
            return;
        }
        first.into_iter().for_each(|missive| self.take(endpoint, missive));
        while let Some(missive) = self.missives.next(endpoint) {
            self.take(endpoint, missive);
        }
        for at in 0..self.all.len() {
            self.all[at].pause();
            self.send_words(endpoint, at);
        }
    }

    #[inline]
    fn take(&mut self, endpoint: &mut Endpoint, missive: Missive) {
        if missive.tag == NAMES {
            self.take_name(endpoint, &missive);
        } else if let Some(at) = self.all.iter().rposition(|group| group.is_for(missive.tag)) {
            let (from, claimed) = (missive.from, GroupMember(missive.source));
            let believed = member::peer(claimed) == from;
            let group = &mut self.all[at];
            let heard = |word: Option<GroupWord>| word.is_some_and(|word| group.handle_word(claimed, word).is_ok());
            if !believed || !outbox::words(&missive).all(heard) {
                endpoint.lose(from);
                self.lose(endpoint, from);
            }
        } else if self.early.len() < EARLY && self.all.iter().any(LiveGroup::is_sought) {
            return self.early.push(missive);
        }
        self.missives.give_back(missive);
    }

    #[cold]
    fn take_name(&mut self, endpoint: &mut Endpoint, missive: &Missive) {
        let Some(word) = DirectoryWord::read(missive.bytes()) else { return };
        if let DirectoryWord::Find { name, .. } = &word {
            // Nobody may have told the registrar of their deaths.
            let members = self.directory.members_of(name).into_iter().filter(|peer| *peer != self.me);
            let dead: Vec<Peer> = members.filter(|peer| is_dead(endpoint, *peer)).collect();
            dead.into_iter().for_each(|peer| self.lose(endpoint, peer));
        }
        self.directory.handle_word(missive.from, word);
        self.settle(endpoint);
    }

    /// Does what the directory has found, and says what it has to say.
    fn settle(&mut self, endpoint: &mut Endpoint) {
        while let Some((name, found)) = self.directory.poll_found() {
            let (FoundName::Create { number } | FoundName::Ask { number, .. }) = found;
            let contact = if let FoundName::Ask { contact, .. } = found { Some(contact) } else { None };
            match self.all.iter_mut().find(|group| group.is_named(&name) && group.is_awaited()) {
                Some(group) => {
                    if let Some(asker) = group.begin(number, contact, &self.lost) {
                        self.directory.find(&name, asker);
                    }
                }
                // It was left before it was found.
                None if contact.is_none() => self.directory.tell_end(&name, number, true),
                None => {}
            }
        }
        let early = std::mem::take(&mut self.early);
        early.into_iter().for_each(|missive| self.take(endpoint, missive));
        (0..self.all.len()).for_each(|at| self.send_words(endpoint, at));
        self.send_names(endpoint);
    }

    fn send_names(&mut self, endpoint: &mut Endpoint) {
        while let Some((to, word)) = self.directory.poll_word() {
            let bytes = word.write();
            self.missives.send(endpoint, [(to, NAMES)].into_iter(), self.me.0, (&bytes, &[]), || [].into());
        }
    }

    /// Sends what a group has to say.
    #[inline]
    fn send_words(&mut self, endpoint: &mut Endpoint, at: usize) {
        let Self { all, missives, outbox, lost, .. } = self;
        all[at].check_view(lost);
        all[at].send_words(endpoint, missives, outbox);
    }

    /// Where a pass moved nothing: looks for deaths, and at the clock. True if anything changed.
    pub fn idle(&mut self, endpoint: &mut Endpoint, sleeps: bool) -> bool {
        self.missives.post(endpoint);
        if !sleeps || self.longest_sleep().is_none() {
            return false;
        }
        self.missives.reclaim(endpoint);
        let now_ms = self.begun.elapsed().as_millis() as u64;
        for at in 0..self.all.len() {
            if let Some(asker) = self.all[at].handle_time(now_ms) {
                self.directory.find(self.all[at].name(), asker);
            }
            self.send_words(endpoint, at);
        }
        self.settle(endpoint);
        self.look_for_deaths(endpoint)
    }

    fn look_for_deaths(&mut self, endpoint: &mut Endpoint) -> bool {
        let known = self.lost.len();
        if endpoint.keeps_going() {
            let lost = endpoint.look_for_lost();
            lost.into_iter().for_each(|peer| self.lose(endpoint, peer));
        }
        let mut watched: BTreeSet<Peer> = self.all.iter().flat_map(LiveGroup::watched).collect();
        watched.extend(self.directory.watched());
        watched.extend(self.missives.leaving_to());
        watched.iter().filter(|peer| **peer != self.me).for_each(|peer| endpoint.attend(*peer));
        // Of the others it may be known, too.
        watched.extend(self.all.iter().flat_map(LiveGroup::peers));
        let living = watched.into_iter().filter(|peer| *peer != self.me && !self.lost.contains(peer));
        let dead: Vec<Peer> = living.filter(|peer| is_dead(endpoint, *peer)).collect();
        if dead.is_empty() {
            return self.lost.len() > known;
        }
        // What they have sent has arrived, since they have ended before.
        for _ in 0..PASSES_TO_TAKE {
            if !endpoint.progress() {
                break;
            }
            self.advance(endpoint);
        }
        dead.into_iter().for_each(|peer| self.lose(endpoint, peer));
        true
    }

    /// A process is dead for all groups.
    fn lose(&mut self, endpoint: &mut Endpoint, peer: Peer) {
        if self.lost.insert(peer) {
            // What was to leave for it is over.
            endpoint.lose_ended(peer);
            self.directory.handle_loss(peer);
            for group in &mut self.all {
                if let Some(asker) = group.handle_loss(peer) {
                    self.directory.find(group.name(), asker);
                }
            }
            self.settle(endpoint);
        }
    }

    /// How long a thread that waits may sleep before [`Self::idle`] is to be called again.
    pub fn longest_sleep(&self) -> Option<Duration> {
        let watches = self.all.iter().any(|group| !group.is_alone()) || !self.directory.watched().is_empty();
        (watches || self.missives.leaving_to().next().is_some()).then_some(LOOK)
    }

    /// Whether all that was sent has left this process; it is looked at before the endpoint leaves.
    pub fn has_left(&mut self, endpoint: &mut Endpoint) -> bool {
        self.missives.reclaim(endpoint)
    }

    /// Gives all up, before the endpoint leaves.
    pub fn withdraw(&mut self, endpoint: &mut Endpoint) {
        self.missives.withdraw(endpoint);
    }
}

/// For an interface that has nothing but groups.
impl Companion for OrderedGroups {
    #[inline]
    fn advance(&mut self, endpoint: &mut Endpoint) {
        Self::advance(self, endpoint);
    }

    fn idle(&mut self, endpoint: &mut Endpoint, sleeps: bool) -> bool {
        Self::idle(self, endpoint, sleeps)
    }

    fn longest_sleep(&self) -> Option<Duration> {
        Self::longest_sleep(self)
    }

    fn withdraw(&mut self, endpoint: &mut Endpoint) {
        Self::withdraw(self, endpoint);
    }
}
