//! OrderedGroups of platforms, whose members get the same messages in the same order. The order is made elsewhere
//! ([`weft_group`]); here are the members' handlers, and what has no room to leave yet.
//!
//! No more is taken of what has come than handlers run, so that who sends faster waits.

use crate::early::EarlyMessages;
use crate::failure::fail;
use crate::upcalls::{GroupFunction, OrderedMessage, OrderedUpcall, SentMessage, Upcalls};
use std::collections::VecDeque;
use std::sync::Arc;
use weft_fabric::Endpoint;
use weft_group::{GroupEvent, GroupId, GroupMember, OrderedGroups};

/// Messages of groups that wait for their upcalls, at most.
const ORDERED: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PandaStanding {
    Joining,
    In,
    Over,
}

/// A group that this platform is or was a member of.
pub struct PandaGroup {
    pub id: GroupId,
    /// This platform, as the group's messages name it.
    pub me: Option<GroupMember>,
    pub name: String,
    pub standing: PandaStanding,
    pub members: Vec<GroupMember>,
    /// How many there were at most: who waits for all may come when some have left.
    pub most: usize,
    pub handler: Option<GroupFunction>,
    /// What came before there was a handler.
    pub early: EarlyMessages<OrderedMessage>,
    /// What had no room to leave when it was sent.
    pub unsent: VecDeque<Arc<[u8]>>,
    /// Messages that the program gets back in their turn, in the order of sending.
    pub own: VecDeque<SentMessage>,
}

/// All groups of this platform, by their numbers.
pub struct PandaGroups {
    pub groups: OrderedGroups,
    pub all: Vec<Option<PandaGroup>>,
}

impl PandaGroups {
    /// With the context of that number and the next one.
    pub fn new(endpoint: &mut Endpoint, context: u32) -> Self {
        Self { groups: OrderedGroups::new(endpoint, context), all: Vec::new() }
    }

    /// Takes in what has come, as far as there is room for upcalls.
    #[inline]
    pub fn advance(&mut self, endpoint: &mut Endpoint, upcalls: &mut Upcalls) {
        self.groups.advance(endpoint);
        for group in self.all.iter_mut().flatten() {
            group.send_unsent(&mut self.groups, endpoint);
            while upcalls.ordered() < ORDERED
                && let Some(event) = self.groups.take_event(endpoint, group.id)
            {
                group.handle(event, upcalls);
            }
        }
    }

    pub fn idle(&mut self, endpoint: &mut Endpoint, sleeps: bool) -> bool {
        self.groups.idle(endpoint, sleeps)
    }

    pub fn longest_sleep(&self) -> Option<std::time::Duration> {
        self.groups.longest_sleep()
    }

    pub fn has_left(&mut self, endpoint: &mut Endpoint) -> bool {
        self.groups.has_left(endpoint)
    }

    pub fn withdraw(&mut self, endpoint: &mut Endpoint) {
        self.groups.withdraw(endpoint);
    }

    pub fn at(&mut self, number: usize) -> Option<&mut PandaGroup> {
        self.all.get_mut(number)?.as_mut()
    }

    /// Whether all that this platform has sent to a group has its place there.
    pub fn is_settled(&self, number: usize) -> bool {
        let group = self.all.get(number).and_then(Option::as_ref);
        group.is_none_or(|group| group.unsent.is_empty() && self.groups.unplaced(group.id) == 0)
    }
}

impl PandaGroup {
    fn handle(&mut self, event: GroupEvent, upcalls: &mut Upcalls) {
        match event {
            GroupEvent::Message { message, .. } => {
                let length = message.bytes.len();
                let own = if Some(message.origin) == self.me { self.own.pop_front() } else { None };
                let message = own.map_or(OrderedMessage::Came(message.bytes), OrderedMessage::Own);
                match self.handler {
                    Some(handler) => upcalls.push_ordered(OrderedUpcall { handler, message }),
                    None => self.early.keep(message, length, || format!("a message of group '{}'", self.name)),
                }
            }
            GroupEvent::View(view) => {
                self.most = self.most.max(view.members.len());
                (self.members, self.standing) = (view.members, PandaStanding::In);
            }
            GroupEvent::Left => self.standing = PandaStanding::Over,
            GroupEvent::Excluded => {
                fail(&format!("group '{}': the others have taken this platform for dead", self.name));
            }
        }
    }

    #[inline]
    pub fn send_unsent(&mut self, groups: &mut OrderedGroups, endpoint: &mut Endpoint) {
        while let Some(next) = self.unsent.front() {
            // What is sent to a group that one is no member of any more is thrown away.
            if !groups.try_send(endpoint, self.id, next.clone()).unwrap_or(true) {
                return;
            }
            self.unsent.pop_front();
        }
    }
}
