//! Agreements under way, and the letters by which they and revocations travel.

use super::letters::{AgreementName, END};
use super::spread::{close, tell_all};
use crate::start::phase::end_process;
use crate::world::World;
use weft_fabric::Peer;
use weft_fabric::consensus::{AgreedValue, ConsensusWord};

/// Letters about agreements that have not begun here, at most.
const MOST_EARLY: usize = 1 << 16;
/// Agreements that are remembered after their end.
const REMEMBERED: usize = 1024;

/// The result of an agreement, once it is there.
pub(super) fn decided(world: &World, name: AgreementName) -> Option<AgreedValue> {
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
pub(super) fn advance(world: &mut World) -> bool {
    let mut heard = false;
    while let Some((from, words)) = world.failures.letters.poll(&mut world.endpoint) {
        heard = true;
        if let Some((first, _)) = words.split_first() {
            handle(world, from, AgreementName::read(*first), words);
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

pub(super) fn handle(world: &mut World, from: Peer, name: AgreementName, words: Box<[u64]>) {
    if name.number == 0 {
        if world.contexts.was_released(name.context) {
            close(world, name.context);
        }
        if world.failures.revoked.insert(name.context) {
            world.failures.news = true;
            tell_all(world);
        }
        return;
    }
    if name.number == END {
        let code = words.get(1).map_or(1, |code| *code as u32 as i32);
        eprintln!("weft: rank {}: rank {} has aborted a communicator of both", world.endpoint.me().0, from.0);
        end_process(code);
    }
    let Some(round) = world.failures.rounds.iter_mut().find(|round| round.name == name) else {
        return answer(world, from, name, words);
    };
    let word = ConsensusWord::read(&words[1..], round.members.len());
    let member = round.members.iter().position(|member| *member == from);
    if let (Some(word), Some(member)) = (word, member) {
        round.machine.handle_word(member, word);
    }
}

/// To a letter about an agreement that is not under way: it is over, or to come.
fn answer(world: &mut World, from: Peer, name: AgreementName, words: Box<[u64]>) {
    match decided(world, name) {
        Some(value) => {
            let kind = words.get(1).map_or(0, |word| word & 0xff);
            if kind == 0 || kind == 4 {
                post(world, from, name, &ConsensusWord::Decided(value));
            }
        }
        None if world.failures.letters.early.len() < MOST_EARLY => {
            world.failures.letters.early.push((from, name, words));
        }
        None => {}
    }
}

fn post(world: &mut World, to: Peer, name: AgreementName, word: &ConsensusWord) {
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
