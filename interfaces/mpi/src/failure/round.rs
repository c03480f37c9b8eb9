//! Agreements under way, and the letters by which they and revocations travel.

use crate::comm::agree::wait;
use crate::comm::{Comm, LETTERS as CONTEXT};
use crate::world::{WORLD, World};
use std::sync::atomic::Ordering;
use weft_fabric::consensus::{Machine, Members, Value, Word};
use weft_fabric::{Endpoint, Envelope, Peer, RequestId, Selector, SendMode};

/// Number of a letter that tells the members of the communicator to end.
const END: u32 = u32::MAX;
/// Most words of a letter that is read.
const MOST_WORDS: u64 = 1 << 12;
/// Letters about agreements that have not begun here, at most.
const MOST_EARLY: usize = 1 << 16;
/// Agreements that are remembered after their end.
const REMEMBERED: usize = 1024;

/// Which agreement: of what communicator, and which of its agreements, from 1, above which of several that are one for the
/// program: those after the first begin when the one before is over, between whichever others are there. Number 0 tells that
/// the communicator is revoked, the last one ([`END`]) that its members are to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    context: u32,
    number: u32,
}

/// Below the step of an agreement; more of one communicator are not under way or remembered at the same time.
const NUMBER_BITS: u32 = 24;
const NUMBERS: u32 = (1 << NUMBER_BITS) - 1;

impl Name {
    fn word(self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.context)
    }

    fn read(word: u64) -> Self {
        Self { context: word as u32, number: (word >> 32) as u32 }
    }

    /// The next agreement that a communicator's members begin: all of them in the same order.
    fn next(comm: &Comm) -> Self {
        let before = comm.failure.agreements.fetch_add(1, Ordering::Relaxed);
        Self { context: comm.context, number: 1 + before % (NUMBERS - 1) }
    }

    /// The one that follows as a part of the same.
    fn following(self) -> Self {
        let step = (self.number >> NUMBER_BITS).wrapping_add(1) % (1 << (32 - NUMBER_BITS));
        Self { number: step << NUMBER_BITS | self.number & NUMBERS, ..self }
    }
}

/// An agreement under way.
pub(super) struct Round {
    name: Name,
    members: Vec<Peer>,
    machine: Machine,
}

/// Letters under way.
#[derive(Default)]
pub(super) struct Letters {
    leaving: Vec<(RequestId, Box<[u64]>)>,
    arriving: Vec<(RequestId, Peer, Box<[u64]>)>,
    /// About agreements that have not begun here.
    early: Vec<(Peer, Name, Box<[u64]>)>,
}

impl Letters {
    fn post(&mut self, endpoint: &mut Endpoint, to: Peer, words: Box<[u64]>) {
        self.leaving.retain(|(id, _)| endpoint.take_outcome(*id).is_none());
        if endpoint.is_lost(to) || endpoint.has_ended(to) {
            return;
        }
        let envelope = Envelope { context: CONTEXT, tag: 0, source: 0 };
        // SAFETY: the words live in the box, which is kept until the send is complete.
        unsafe {
            if !endpoint.try_send(to, envelope, words.as_ptr().cast(), size_of_val(&*words)) {
                let id =
                    endpoint.post_send(to, envelope, words.as_ptr().cast(), size_of_val(&*words), SendMode::Standard);
                self.leaving.push((id, words));
            }
        }
    }

    /// The next letter that is here.
    fn poll(&mut self, endpoint: &mut Endpoint) -> Option<(Peer, Box<[u64]>)> {
        let anyone = Selector { context: CONTEXT, peer: None, tag: None };
        while let Some((message, seen)) = endpoint.take_matched(anyone) {
            let length = if seen.length % 8 == 0 && seen.length <= 8 * MOST_WORDS { seen.length / 8 } else { 0 };
            let mut words = vec![0u64; length as usize].into_boxed_slice();
            // SAFETY: the words are kept until the receive is complete.
            let id = unsafe { endpoint.post_matched_receive(message, words.as_mut_ptr().cast(), size_of_val(&*words)) };
            self.arriving.push((id, seen.peer, words));
        }
        let at = self.arriving.iter().position(|letter| endpoint.is_complete(letter.0))?;
        let (id, from, words) = self.arriving.remove(at);
        let good = endpoint.take_outcome(id).is_some_and(|outcome| outcome.fault.is_none());
        Some((from, if good { words } else { Box::default() }))
    }
}

/// Begins an agreement of all members of a communicator, to which this one brings `value`.
pub(super) fn begin(world: &mut World, comm: &Comm, value: impl FnOnce(&[Peer], Members) -> Value) -> Name {
    begin_named(world, comm, Name::next(comm), value)
}

/// The same for one that follows another as a part of the same.
pub(super) fn begin_following(
    world: &mut World,
    comm: &Comm,
    before: Name,
    value: impl FnOnce(&[Peer], Members) -> Value,
) -> Name {
    begin_named(world, comm, before.following(), value)
}

fn begin_named(world: &mut World, comm: &Comm, name: Name, value: impl FnOnce(&[Peer], Members) -> Value) -> Name {
    super::look(world);
    let members = comm.union();
    let me = world.endpoint.me();
    let place = members.iter().position(|peer| *peer == me).expect("a process is in its communicators");
    let mut lost = Members::none(members.len());
    let gone = |peer: &Peer| world.failures.lost.contains(peer) || *peer != me && world.endpoint.has_left(*peer);
    let gone: Vec<usize> = (0..members.len()).filter(|member| gone(&members[*member])).collect();
    gone.iter().for_each(|member| lost.insert(*member));
    let value = value(&members, lost);
    let mut machine = Machine::new(place, members.len(), value);
    gone.into_iter().for_each(|member| machine.handle_lost(member));
    world.failures.rounds.push(Round { name, members, machine });
    let (mine, others) =
        std::mem::take(&mut world.failures.letters.early).into_iter().partition(|early| early.1 == name);
    world.failures.letters.early = others;
    let mine: Vec<(Peer, Name, Box<[u64]>)> = mine;
    mine.into_iter().for_each(|(from, name, words)| handle(world, from, name, words));
    advance(world);
    name
}

/// The result of an agreement, once it is there.
pub(super) fn decided(world: &World, name: Name) -> Option<Value> {
    world.failures.decided.iter().find(|decided| decided.0 == name).map(|decided| decided.1.clone())
}

/// A process is lost.
pub(super) fn handle_lost(world: &mut World, peer: Peer) {
    for round in &mut world.failures.rounds {
        if let Some(member) = round.members.iter().position(|member| *member == peer) {
            round.machine.handle_lost(member);
        }
    }
}

/// Reads letters and writes some; true if anything was read.
pub(crate) fn advance(world: &mut World) -> bool {
    let mut heard = false;
    while let Some((from, words)) = world.failures.letters.poll(&mut world.endpoint) {
        heard = true;
        if let Some((first, _)) = words.split_first() {
            handle(world, from, Name::read(*first), words);
        }
    }
    forget_who_has_left(world);
    settle(world);
    heard
}

/// Who has taken its leave says nothing any more: it has heard the result, of which it may have told nobody.
fn forget_who_has_left(world: &mut World) {
    let World { failures, endpoint, .. } = world;
    let me = endpoint.me();
    for round in &mut failures.rounds {
        for (member, peer) in round.members.iter().enumerate() {
            if *peer != me && endpoint.has_left(*peer) {
                round.machine.handle_lost(member);
            }
        }
    }
}

fn handle(world: &mut World, from: Peer, name: Name, words: Box<[u64]>) {
    if name.number == 0 {
        if world.contexts.was_released(name.context) {
            super::close(world, name.context);
        }
        if world.failures.revoked.insert(name.context) {
            world.failures.news = true;
            super::tell_all(world);
        }
        return;
    }
    if name.number == END {
        let code = words.get(1).map_or(1, |code| *code as u32 as i32);
        eprintln!("weft: rank {}: rank {} has aborted a communicator of both", world.endpoint.me().0, from.0);
        crate::start::end_process(code);
    }
    let Some(round) = world.failures.rounds.iter_mut().find(|round| round.name == name) else {
        return answer(world, from, name, words);
    };
    let word = Word::read(&words[1..], round.members.len());
    let member = round.members.iter().position(|member| *member == from);
    if let (Some(word), Some(member)) = (word, member) {
        round.machine.handle_word(member, word);
    }
}

/// To a letter about an agreement that is not under way: it is over, or to come.
fn answer(world: &mut World, from: Peer, name: Name, words: Box<[u64]>) {
    match decided(world, name) {
        Some(value) => {
            let kind = words.get(1).map_or(0, |word| word & 0xff);
            if kind == 0 || kind == 4 {
                post(world, from, name, &Word::Decided(value));
            }
        }
        None if world.failures.letters.early.len() < MOST_EARLY => {
            world.failures.letters.early.push((from, name, words));
        }
        None => {}
    }
}

fn post(world: &mut World, to: Peer, name: Name, word: &Word) {
    let words: Box<[u64]> = std::iter::once(name.word()).chain(word.words()).collect();
    world.failures.letters.post(&mut world.endpoint, to, words);
}

/// Says what is to be said, and puts aside what is over.
fn settle(world: &mut World) {
    let mut at = 0;
    while at < world.failures.rounds.len() {
        let round = &mut world.failures.rounds[at];
        let name = round.name;
        let words: Vec<_> =
            std::iter::from_fn(|| round.machine.poll_word()).map(|(to, word)| (round.members[to], word)).collect();
        let over = round.machine.decided().cloned();
        words.into_iter().for_each(|(to, word)| post(world, to, name, &word));
        match over {
            Some(value) => {
                world.failures.rounds.swap_remove(at);
                world.failures.decided.truncate(REMEMBERED - 1);
                world.failures.decided.push_front((name, value));
            }
            None => at += 1,
        }
    }
}

/// Tells all other members of a communicator that it is revoked.
pub(super) fn announce_revocation(world: &mut World, comm: &Comm) {
    let name = Name { context: comm.context, number: 0 };
    let me = world.endpoint.me();
    for to in comm.union().into_iter().filter(|peer| *peer != me) {
        world.failures.letters.post(&mut world.endpoint, to, Box::new([name.word()]));
    }
}

/// Tells all other members of a communicator to end, as far as the letters leave at once.
pub(super) fn announce_end(world: &mut World, comm: &Comm, code: i32) {
    let name = Name { context: comm.context, number: END };
    let me = world.endpoint.me();
    for to in comm.union().into_iter().filter(|peer| *peer != me) {
        world.failures.letters.post(&mut world.endpoint, to, Box::new([name.word(), u64::from(code as u32)]));
    }
    world.endpoint.push_out();
    while world.endpoint.progress() {}
}

/// Waits until everybody who lives is as far; what is agreed on does not matter.
pub(crate) fn finish(call: &'static str, comm: &Comm) {
    let plain = |members: &[Peer], lost| Value { all: 0, highest: 0, lost, acknowledged: Members::none(members.len()) };
    let name = begin(&mut WORLD.enter(), comm, plain);
    wait(call, comm.context, |world| decided(world, name).map(drop));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_agreement_have_names_that_no_other_has() {
        let first = Name { context: 7, number: 3 };
        let second = first.following();
        assert!(second != first && second.number != 4 && second.following() != first);
        assert_eq!(Name::read(second.word()), second);
        let last = (0..600).fold(Name { number: NUMBERS - 1, ..first }, |name, _| name.following());
        assert!(last.number != END && last.number != 0);
    }
}
