//! What a platform does in its groups.

use crate::early::EarlyMessages;
use crate::failure::fail;
use crate::groups::{PandaGroup, PandaGroups, PandaStanding};
use crate::labels::waiting;
use crate::takers;
use crate::upcalls::{self, GroupFunction, OrderedUpcall, SentMessage};
use crate::world::{PandaWorld, WORLD};
use std::collections::VecDeque;
use std::sync::Arc;
use weft_group::{USUAL_RULES, process_of};

/// A member's number of a group that this platform joins; it returns when this is so, unless it is not to wait.
pub fn join(call: &'static str, name: &str, handler: Option<GroupFunction>, waits: bool) -> usize {
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let id = world.groups.groups.join(&mut world.endpoint, name, USUAL_RULES);
    let id = id.unwrap_or_else(|error| fail(&format!("{call}: {error}")));
    let group = PandaGroup {
        id,
        me: world.groups.groups.member(id),
        name: name.to_owned(),
        standing: PandaStanding::Joining,
        members: Vec::new(),
        most: 0,
        handler,
        early: EarlyMessages::default(),
        unsent: VecDeque::new(),
        own: VecDeque::new(),
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
    for message in group.early.take() {
        world.upcalls.push_ordered(OrderedUpcall { handler, message });
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

/// Sends to all members. It waits until there is room, but in no upcall. `own` is what the handler here gets for it.
pub fn send(call: &'static str, number: usize, bytes: Arc<[u8]>, own: Option<SentMessage>) {
    if upcalls::is_in_one() {
        let mut world = WORLD.enter();
        let PandaWorld { groups: PandaGroups { groups, all }, endpoint, .. } = &mut *world;
        let Some(group) = all.get_mut(number).and_then(Option::as_mut) else { no_group(call) };
        group.unsent.push_back(bytes);
        group.own.extend(own);
        return group.send_unsent(groups, endpoint);
    }
    takers::wait(waiting(call, None), |world| {
        let (groups, endpoint) = (&mut world.groups, &mut world.endpoint);
        let Some(group) = groups.all.get_mut(number).and_then(Option::as_mut) else { no_group(call) };
        if group.standing == PandaStanding::Over {
            fail(&format!("{call}: this platform is no member of group '{}' any more", group.name));
        }
        if group.standing == PandaStanding::Joining || !group.unsent.is_empty() {
            return None;
        }
        let sent = groups.groups.try_send(endpoint, group.id, bytes.clone());
        let sent = sent.unwrap_or_else(|error| fail(&format!("{call}: {error}")));
        sent.then(|| group.own.extend(own))
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
        (group.standing == PandaStanding::Over).then_some(())
    });
}

/// Forgets a group.
pub fn clear(number: usize) {
    if let Some(place) = WORLD.enter().groups.all.get_mut(number) {
        *place = None;
    }
}
