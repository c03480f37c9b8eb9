//! Agreements of all members of a communicator begin.

use super::letters::{AgreementName, AgreementRound};
use super::look::look;
use super::round::{advance, decided, handle};
use crate::comm::Comm;
use crate::comm::agree::wait;
use crate::world::{Task, WORLD, World};
use weft_fabric::Peer;
use weft_fabric::consensus::{AgreedValue, ConsensusMachine, Members};

/// Moves all agreements under way.
struct Rounds;

impl Task for Rounds {
    fn advance(&mut self, world: &mut World) -> bool {
        advance(world);
        world.failures.are_moved = !world.failures.is_quiet();
        !world.failures.are_moved
    }
}

/// Begins an agreement of all members of a communicator, to which this one brings `value`.
pub(super) fn begin(
    world: &mut World,
    comm: &Comm,
    value: impl FnOnce(&[Peer], Members) -> AgreedValue,
) -> AgreementName {
    begin_named(world, comm, AgreementName::next(comm), value)
}

/// The same for one that follows another as a part of the same.
pub(super) fn begin_following(
    world: &mut World,
    comm: &Comm,
    before: AgreementName,
    value: impl FnOnce(&[Peer], Members) -> AgreedValue,
) -> AgreementName {
    begin_named(world, comm, before.following(), value)
}

fn begin_named(
    world: &mut World,
    comm: &Comm,
    name: AgreementName,
    value: impl FnOnce(&[Peer], Members) -> AgreedValue,
) -> AgreementName {
    look(world);
    let members = comm.union();
    let me = world.endpoint.me();
    let place = members.iter().position(|peer| *peer == me).expect("a process is in its communicators");
    let mut lost = Members::none(members.len());
    let gone = |peer: &Peer| world.failures.lost.contains(peer) || *peer != me && world.endpoint.has_left(*peer);
    let gone: Vec<usize> = (0..members.len()).filter(|member| gone(&members[*member])).collect();
    gone.iter().for_each(|member| lost.insert(*member));
    let value = value(&members, lost);
    let mut machine = ConsensusMachine::new(place, members.len(), value);
    gone.into_iter().for_each(|member| machine.handle_lost(member));
    world.failures.rounds.push(AgreementRound { name, members, machine });
    if !std::mem::replace(&mut world.failures.are_moved, true) {
        world.add(Box::new(Rounds));
    }
    let (mine, others) =
        std::mem::take(&mut world.failures.letters.early).into_iter().partition(|early| early.1 == name);
    world.failures.letters.early = others;
    let mine: Vec<(Peer, AgreementName, Box<[u64]>)> = mine;
    mine.into_iter().for_each(|(from, name, words)| handle(world, from, name, words));
    advance(world);
    name
}

/// Waits until everybody who lives is as far; what is agreed on does not matter.
pub(crate) fn finish(call: &'static str, comm: &Comm) {
    let plain =
        |members: &[Peer], lost| AgreedValue { all: 0, highest: 0, lost, acknowledged: Members::none(members.len()) };
    let name = begin(&mut WORLD.enter(), comm, plain);
    wait(call, comm.context, |world| decided(world, name).map(drop));
}
