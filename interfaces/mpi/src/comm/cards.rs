//! Processes of several jobs introduce themselves to each other: numbers of processes mean something in one job only.

use super::Comm;
use super::agree::tell;
use crate::error::{Class, Error, Result};
use crate::world::WORLD;
use weft_fabric::Peer;
use weft_fabric::foreign::{CARD_WORDS, Card};

/// Words of each card.
pub const WORDS: usize = CARD_WORDS;

/// The card of this process; zeros where it has none, so that nobody waits for it.
pub fn mine() -> [u64; WORDS] {
    WORLD.enter().endpoint.card().map_or([0; WORDS], |card| card.encode())
}

/// The cards of all members of an intracommunicator, in the order of their ranks.
pub fn of_members(call: &'static str, local: &Comm) -> Result<Vec<u64>> {
    let mine = mine();
    let mut cards = vec![0; local.size() as usize * WORDS];
    for (part, words) in mine.chunks_exact(4).enumerate() {
        let block = [words[0], words[1], words[2], words[3]];
        for (rank, said) in tell(call, local, block)?.into_iter().enumerate() {
            cards[rank * WORDS + 4 * part..][..4].copy_from_slice(&said);
        }
    }
    Ok(cards)
}

fn read(words: &[u64]) -> Result<Card> {
    let card = words.try_into().ok().and_then(Card::decode);
    card.ok_or_else(|| {
        Error::new(Class::Other, "a process cannot be reached by other jobs: it has no socket or no key")
    })
}

/// Whether all of them are cards.
pub fn check(cards: &[u64]) -> Result<()> {
    cards.chunks_exact(WORDS).try_for_each(|words| read(words).map(drop))
}

/// The peers with these cards.
pub fn adopt(cards: &[u64]) -> Result<Vec<Peer>> {
    check(cards)?;
    cards.chunks_exact(WORDS).map(|words| adopt_one(&read(words)?)).collect()
}

pub fn adopt_one(card: &Card) -> Result<Peer> {
    let adopted = WORLD.enter().endpoint.adopt(card);
    adopted.map_err(|error| Error::new(Class::Other, format!("another job cannot be reached: {error}")))
}
