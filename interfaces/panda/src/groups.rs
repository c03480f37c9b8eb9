//! Groups of platforms, whose members get the same messages in the same order. The order is made elsewhere
//! ([`weft_group`]); here are the members' handlers, and what has no room to leave yet.
//!
//! No more is taken of what has come than handlers run, so that who sends faster waits.

use crate::failure::fail;
use crate::message::{Content, PandaMessage, words_of};
use crate::sending::waiting;
use crate::takers;
use crate::upcalls::{self, OrderedUpcall, Upcalls};
use crate::world::{PandaWorld, WORLD};
use std::collections::VecDeque;
use std::sync::Arc;
use weft_fabric::Endpoint;
use weft_group::{GroupEvent, GroupId, GroupMember, Groups, USUAL_RULES, process_of};

pub type GroupFunction = unsafe extern "C" fn(*mut PandaMessage);

/// Messages of groups that wait for their upcalls, at most.
const ORDERED: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Joining,
    In,
    Over,
}

/// A group that this platform is or was a member of.
struct PandaGroup {
    id: GroupId,
    name: String,
    standing: Standing,
    members: Vec<GroupMember>,
    /// How many there were at most: who waits for all may come when some have left.
    most: usize,
    handler: Option<GroupFunction>,
    /// What came before there was a handler.
    early: Vec<Arc<[u8]>>,
    /// What had no room to leave when it was sent.
    unsent: VecDeque<Arc<[u8]>>,
}

/// All groups of this platform, by their numbers.
pub struct PandaGroups {
    groups: Groups,
    all: Vec<Option<PandaGroup>>,
}

impl PandaGroups {
    /// With the context of that number and the next one.
    pub fn new(endpoint: &mut Endpoint, context: u32) -> Self {
        Self { groups: Groups::new(endpoint, context), all: Vec::new() }
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

    fn at(&mut self, number: usize) -> Option<&mut PandaGroup> {
        self.all.get_mut(number)?.as_mut()
    }

    /// Whether all that this platform has sent to a group has its place there.
    fn is_settled(&self, number: usize) -> bool {
        let group = self.all.get(number).and_then(Option::as_ref);
        group.is_none_or(|group| group.unsent.is_empty() && self.groups.unplaced(group.id) == 0)
    }
}

impl PandaGroup {
    fn handle(&mut self, event: GroupEvent, upcalls: &mut Upcalls) {
        match event {
            GroupEvent::Message { message, .. } => match self.handler {
                Some(handler) => upcalls.push_ordered(OrderedUpcall { handler, bytes: message.bytes }),
                None => self.early.push(message.bytes),
            },
            GroupEvent::View(view) => {
                self.most = self.most.max(view.members.len());
                (self.members, self.standing) = (view.members, Standing::In);
            }
            GroupEvent::Left => self.standing = Standing::Over,
            GroupEvent::Excluded => {
                fail(&format!("group '{}': the others have taken this platform for dead", self.name));
            }
        }
    }

    #[inline]
    fn send_unsent(&mut self, groups: &mut Groups, endpoint: &mut Endpoint) {
        while let Some(next) = self.unsent.front() {
            // What is sent to a group that one is no member of any more is thrown away.
            if !groups.try_send(endpoint, self.id, next.clone()).unwrap_or(true) {
                return;
            }
            self.unsent.pop_front();
        }
    }
}

/// A member's number of a group that this platform joins; it returns when this is so, unless it is not to wait.
pub fn join(call: &'static str, name: &str, handler: Option<GroupFunction>, waits: bool) -> usize {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let id = world.groups.groups.join(&mut world.endpoint, name, USUAL_RULES);
    let id = id.unwrap_or_else(|error| fail(&format!("{call}: {error}")));
    let group = PandaGroup {
        id,
        name: name.to_owned(),
        standing: Standing::Joining,
        members: Vec::new(),
        most: 0,
        handler,
        early: Vec::new(),
        unsent: VecDeque::new(),
    };
    world.groups.all.push(Some(group));
    let number = world.groups.all.len() - 1;
    drop(guard);
    if waits {
        await_size(call, number, 1);
    }
    number
}

/// The group of this number, which the program may know.
fn no_group(call: &str) -> ! {
    fail(&format!("{call}: this is no group that was joined and not cleared"))
}

/// Gives a group its handler, and what came before. False if it has one.
pub fn set_handler(call: &str, number: usize, handler: GroupFunction) -> bool {
    let mut world = WORLD.enter();
    let world = &mut *world;
    let Some(group) = world.groups.at(number) else { no_group(call) };
    let is_first = group.handler.is_none();
    group.handler = group.handler.or(Some(handler));
    for bytes in std::mem::take(&mut group.early) {
        world.upcalls.push_ordered(OrderedUpcall { handler, bytes });
    }
    is_first
}

/// Waits until a group has, or has had, so many members.
pub fn await_size(call: &'static str, number: usize, size: usize) {
    takers::wait(waiting(call, None), |world| {
        let Some(group) = world.groups.at(number) else { no_group(call) };
        (group.most >= size).then_some(())
    });
}

/// Members of a group, and the platform that orders its messages.
pub fn members(call: &str, number: usize) -> (usize, Option<u32>) {
    let mut world = WORLD.enter();
    let Some(group) = world.groups.at(number) else { no_group(call) };
    (group.members.len(), group.members.first().map(|member| process_of(*member).0))
}

/// Sends to all members. It waits until there is room, but in no upcall.
pub fn send(call: &'static str, number: usize, bytes: Arc<[u8]>) {
    if upcalls::is_in_one() {
        let mut world = WORLD.enter();
        let PandaWorld { groups: PandaGroups { groups, all }, endpoint, .. } = &mut *world;
        let Some(group) = all.get_mut(number).and_then(Option::as_mut) else { no_group(call) };
        group.unsent.push_back(bytes);
        return group.send_unsent(groups, endpoint);
    }
    takers::wait(waiting(call, None), |world| {
        let (groups, endpoint) = (&mut world.groups, &mut world.endpoint);
        let Some(group) = groups.all.get_mut(number).and_then(Option::as_mut) else { no_group(call) };
        if group.standing == Standing::Over {
            fail(&format!("{call}: this platform is no member of group '{}' any more", group.name));
        }
        if group.standing == Standing::Joining || !group.unsent.is_empty() {
            return None;
        }
        let sent = groups.groups.try_send(endpoint, group.id, bytes.clone());
        sent.unwrap_or_else(|error| fail(&format!("{call}: {error}"))).then_some(())
    });
}

/// Waits until all that this platform has sent to a group has its place in the order.
pub fn settle(call: &'static str, number: usize) {
    takers::wait(waiting(call, None), |world| world.groups.is_settled(number).then_some(()));
}

/// Leaves a group, once all that this platform has sent has its place.
pub fn leave(call: &'static str, number: usize) {
    settle(call, number);
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let Some(group) = world.groups.all.get(number).and_then(Option::as_ref) else { no_group(call) };
    world.groups.groups.leave(&mut world.endpoint, group.id);
    drop(guard);
    takers::wait(waiting(call, None), |world| {
        let Some(group) = world.groups.at(number) else { no_group(call) };
        (group.standing == Standing::Over).then_some(())
    });
}

/// Forgets a group.
pub fn clear(number: usize) {
    if let Some(place) = WORLD.enter().groups.all.get_mut(number) {
        *place = None;
    }
}

pub fn call_ordered(OrderedUpcall { handler, bytes }: OrderedUpcall) {
    let content = Content { words: words_of(&bytes), length: bytes.len() };
    let message = Box::into_raw(Box::new(PandaMessage::of(content)));
    // SAFETY: the program has registered a function of this type. The message is its own from here on.
    unsafe { handler(message) };
}
