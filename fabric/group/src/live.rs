//! One group of this process: sought by its name, then a machine that is moved.

use crate::outbox::{WordOutbox, WordSender};
use crate::{GroupId, member};
use std::collections::BTreeSet;
use std::sync::Arc;
use weft_fabric::ordered::{
    GroupBreach, GroupEvent, GroupMember, GroupRules, GroupView, GroupWord, HostNumber, OrderedGroup, WordTo,
};
use weft_fabric::{Endpoint, Peer};
use weft_ports::missives::Missives;

/// How long a process waits to be let in before it asks again who can do so.
const PATIENCE_MS: u64 = 100;

enum GroupLife {
    /// The directory has been asked for the name.
    Sought,
    Begun(Box<OrderedGroup>),
    /// Was left before it was found.
    Dropped,
}

pub struct LiveGroup {
    id: GroupId,
    name: String,
    member: GroupMember,
    rules: GroupRules,
    /// Where it is known, and not one for all.
    host_of: Option<HostNumber>,
    /// 0 while it is sought.
    number: u32,
    /// Who was asked to let this process in.
    contact: Option<GroupMember>,
    life: GroupLife,
    /// When the contact was asked, or the time that was known then.
    asked_ms: u64,
    /// Up to which view the machine knows who is lost.
    view_checked: u32,
    /// Events that are of this process alone.
    left: bool,
}

impl LiveGroup {
    pub fn new(id: GroupId, name: &str, member: GroupMember, rules: GroupRules, host_of: Option<HostNumber>) -> Self {
        let (name, contact) = (name.to_owned(), None);
        Self {
            id,
            name,
            member,
            rules,
            host_of,
            number: 0,
            contact,
            life: GroupLife::Sought,
            asked_ms: 0,
            view_checked: 0,
            left: false,
        }
    }

    pub fn id(&self) -> GroupId {
        self.id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn member(&self) -> GroupMember {
        self.member
    }

    pub fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    pub fn is_sought(&self) -> bool {
        matches!(self.life, GroupLife::Sought)
    }

    /// Whether the directory is to answer about it.
    pub fn is_awaited(&self) -> bool {
        match &self.life {
            GroupLife::Sought => true,
            GroupLife::Begun(group) => !group.has_view() && !group.is_over(),
            GroupLife::Dropped => false,
        }
    }

    /// Whether nobody is a member any more, as this process knows that was the last.
    pub fn has_nobody(&self) -> bool {
        self.machine().is_some_and(OrderedGroup::has_nobody)
    }

    #[inline]
    pub fn is_for(&self, tag: i32) -> bool {
        self.number != 0 && member::is_for(tag, self.number, self.member)
    }

    pub fn is_over(&self) -> bool {
        match &self.life {
            GroupLife::Sought => false,
            GroupLife::Begun(group) => group.is_over(),
            GroupLife::Dropped => true,
        }
    }

    /// Whether nobody else is to be watched for it.
    pub fn is_alone(&self) -> bool {
        match &self.life {
            GroupLife::Sought => false,
            GroupLife::Begun(group) => group.is_over() || group.has_view() && group.view().members.len() == 1,
            GroupLife::Dropped => true,
        }
    }

    fn machine(&self) -> Option<&OrderedGroup> {
        if let GroupLife::Begun(group) = &self.life { Some(group) } else { None }
    }

    #[inline]
    fn machine_mut(&mut self) -> Option<&mut OrderedGroup> {
        if let GroupLife::Begun(group) = &mut self.life { Some(group) } else { None }
    }

    pub fn view(&self) -> Option<&GroupView> {
        self.machine().map(OrderedGroup::view).filter(|view| view.number > 0)
    }

    pub fn unplaced(&self) -> usize {
        self.machine().map_or(0, OrderedGroup::unplaced)
    }

    /// The processes whose death is to be looked for; this one has sent them something.
    pub fn watched(&self) -> Vec<Peer> {
        let watched = self.machine().filter(|group| !group.is_over()).map(OrderedGroup::watched);
        watched.into_iter().flatten().chain(self.contact).map(member::peer).collect()
    }

    /// All members' processes, of which some may be known to be dead without that.
    pub fn peers(&self) -> impl Iterator<Item = Peer> {
        let members = self.machine().filter(|group| !group.is_over()).map(|group| group.view().members.as_slice());
        members.unwrap_or_default().iter().copied().map(member::peer)
    }

    /// It was found: made by this process, or let in by `contact`. If that one is lost the name is to be looked for
    /// again, as the answer says.
    pub fn begin(&mut self, number: u32, contact: Option<GroupMember>, lost: &BTreeSet<Peer>) -> Option<GroupMember> {
        let again = self.number == number;
        (self.number, self.contact) = (number, contact);
        match (&mut self.life, contact) {
            // What the machine has heard already is kept.
            (GroupLife::Begun(group), Some(contact)) if again => group.ask_to_join(contact),
            (life, contact) => {
                let mut group = match contact {
                    None => OrderedGroup::create(self.member, self.rules),
                    Some(contact) => OrderedGroup::join(self.member, self.rules, contact),
                };
                self.host_of.iter().for_each(|host_of| group.know_hosts(host_of.clone()));
                *life = GroupLife::Begun(Box::new(group));
            }
        }
        lost.iter().filter_map(|peer| self.handle_loss(*peer)).last()
    }

    #[inline]
    pub fn try_send(&mut self, bytes: Arc<[u8]>) -> bool {
        self.machine_mut().is_some_and(|group| group.try_send(bytes))
    }

    pub fn leave(&mut self) {
        match &mut self.life {
            GroupLife::Begun(group) => group.leave(),
            life => (*life, self.left) = (GroupLife::Dropped, true),
        }
    }

    #[inline]
    pub fn poll_event(&mut self) -> Option<GroupEvent> {
        let event = match &mut self.life {
            GroupLife::Begun(group) => group.poll_event(),
            _ => std::mem::take(&mut self.left).then_some(GroupEvent::Left),
        }?;
        if let GroupEvent::View(_) = event {
            self.contact = None;
        }
        Some(event)
    }

    #[inline]
    pub fn handle_word(&mut self, from: GroupMember, word: GroupWord) -> Result<(), GroupBreach> {
        self.machine_mut().map_or(Ok(()), |group| group.handle_word(from, word))
    }

    #[inline]
    pub fn pause(&mut self) {
        if self.rules.safe
            && let Some(group) = self.machine_mut()
        {
            group.handle_pause();
        }
    }

    /// Time has gone on. Where nobody has let this process in for long, the name is looked for once more, as the answer
    /// says: who was asked may be no member any more.
    pub fn handle_time(&mut self, now_ms: u64) -> Option<GroupMember> {
        let GroupLife::Begun(group) = &mut self.life else {
            self.asked_ms = now_ms;
            return None;
        };
        group.handle_time(now_ms);
        let waits = self.contact.is_some() && !group.has_view() && !group.is_over();
        (waits && now_ms > self.asked_ms + PATIENCE_MS).then(|| self.seek(now_ms))
    }

    fn seek(&mut self, now_ms: u64) -> GroupMember {
        (self.contact, self.asked_ms) = (None, now_ms);
        self.member
    }

    /// Tells the machine who of its view was lost before it knew that view.
    #[inline]
    pub fn check_view(&mut self, lost: &BTreeSet<Peer>) {
        let number = self.machine().map_or(0, |group| group.view().number);
        if number != self.view_checked {
            self.view_checked = number;
            let dead: Vec<Peer> = self.peers().filter(|peer| lost.contains(peer)).collect();
            dead.into_iter().for_each(|peer| _ = self.handle_loss(peer));
        }
    }

    /// All members that a process was are dead. Where one of them was to let this process in, the name is looked for
    /// once more, as the answer says.
    pub fn handle_loss(&mut self, of: Peer) -> Option<GroupMember> {
        let contact = self.contact;
        let GroupLife::Begun(group) = &mut self.life else { return None };
        let members = group.view().members.iter().copied().chain(contact);
        let dead: BTreeSet<_> = members.filter(|member| member::peer(*member) == of).collect();
        dead.iter().for_each(|member| group.handle_death(*member));
        if group.has_view() || group.is_over() || contact.is_none_or(|contact| member::peer(contact) != of) {
            return None;
        }
        Some(self.seek(self.asked_ms))
    }

    /// Sends what the machine has to say.
    #[inline]
    pub fn send_words(&mut self, endpoint: &mut Endpoint, missives: &mut Missives, outbox: &mut WordOutbox) {
        let (group, me) = (self.number, self.member);
        let Some(machine) = self.machine_mut() else { return };
        let mut sender = WordSender { endpoint, missives, group, me };
        while let Some((to, word)) = machine.poll_word() {
            match to {
                WordTo::One(one) => outbox.take(&mut sender, std::iter::once(one), &word),
                WordTo::Others { but } => outbox.take(&mut sender, machine.receivers(but), &word),
                WordTo::Hosts { origin, passes_on } => {
                    outbox.take(&mut sender, machine.receivers_by_hosts(origin, passes_on), &word);
                }
            }
        }
        outbox.leave(&mut sender);
    }
}
