//! Accept and connect: the roots find each other at a door, and the groups by them.

use super::attend;
use super::ports::{Port, locked};
use crate::comm::agree::tell;
use crate::comm::bridge::{self, Bridge};
use crate::comm::{Comm, MEETING, cards};
use crate::error::{Class, Error, Result};
use crate::world::World;
use std::time::{Duration, Instant};
use weft_fabric::Peer;
use weft_fabric::door::{DoorError, Talk};
use weft_fabric::foreign::{CARD_WORDS, Card};

/// Who is asked in and says nothing for so long is turned away, where somebody else connects: it may be stopped. It
/// comes again.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// What the first byte of a piece says: somebody connects, with a card; is asked in, with a card and a tag; has heard
/// that; and is let in.
const CONNECT: u8 = b'c';
const ACCEPT: u8 = b'a';
const READY: u8 = b'r';
const ENTER: u8 = b'e';

const CARD_BYTES: usize = 8 * CARD_WORDS;

/// The other root.
pub(super) struct MetRoot {
    peer: Peer,
    tag: i32,
}

fn port_error(error: &DoorError) -> Error {
    Error::new(Class::Port, format!("port_name cannot be connected to: {error}"))
}

fn card_bytes(kind: u8, world: &mut World) -> Result<Vec<u8>> {
    let card = world.endpoint.card().map_err(|error| Error::new(Class::Other, error.to_string()))?;
    Ok(std::iter::once(kind).chain(card.encode().into_iter().flat_map(u64::to_le_bytes)).collect())
}

/// Reads a card behind the byte that says what it is for.
fn read_card(kind: u8, piece: &[u8]) -> Option<Card> {
    let bytes = piece.strip_prefix(&[kind])?.get(..CARD_BYTES)?;
    let mut words = [0; CARD_WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    Card::decode(&words)
}

/// Tags of meetings: two of the same two processes at the same time are kept apart by chance.
fn new_tag() -> i32 {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(0) & 0x7fff_ffff) as i32
}

fn adopt(world: &mut World, card: &Card) -> Result<Peer> {
    let adopted = world.endpoint.adopt(card);
    adopted.map_err(|error| Error::new(Class::Other, format!("the other job cannot be reached: {error}")))
}

/// Who stands at a door and has been asked in.
struct Candidate {
    talk: Talk,
    card: Card,
    tag: i32,
    since: Instant,
}

/// Lets in who connects; who goes away or is stopped meanwhile keeps nobody waiting. `aside` looks after who comes for
/// another reason, and may end the waiting.
pub(super) fn await_visitor(
    call: &'static str,
    port: &Port,
    mut aside: impl FnMut(Option<(Talk, Vec<u8>)>) -> Result<()>,
) -> Result<MetRoot> {
    let mut candidate: Option<Candidate> = None;
    attend(call, |world| {
        world.attending.shows = Some(locked(port).descriptor());
        if let Err(error) = aside(None) {
            return Some(Err(error));
        }
        if let Some(Candidate { talk, card, tag, since }) = &mut candidate {
            match talk.poll() {
                Ok(None) if since.elapsed() < ANSWERS_WITHIN => {
                    world.attending.shows = talk.descriptor();
                    return None;
                }
                Ok(None) => {}
                Ok(Some(piece)) if piece == [READY] => {
                    let met = adopt(world, card).map(|peer| MetRoot { peer, tag: *tag });
                    // Else it sees the door closed, and does not wait for us.
                    if met.is_ok() {
                        talk.say(&[ENTER]);
                    }
                    return Some(met);
                }
                _ => candidate = None,
            }
        }
        let (mut talk, piece) = locked(port).poll_visitor()?;
        let Some(card) = read_card(CONNECT, &piece) else {
            return aside(Some((talk, piece))).err().map(Err);
        };
        let tag = new_tag();
        let mut answer = match card_bytes(ACCEPT, world) {
            Ok(answer) => answer,
            Err(error) => return Some(Err(error)),
        };
        answer.extend_from_slice(&tag.to_le_bytes());
        talk.say(&answer);
        candidate = Some(Candidate { talk, card, tag, since: Instant::now() });
        None
    })
}

/// As the root of those who accept.
pub(super) fn accept(call: &'static str, port: &Port) -> Result<MetRoot> {
    await_visitor(call, port, |_| Ok(()))
}

/// As the root of those who connect.
pub(super) fn connect(call: &'static str, name: &str, patience: Option<Duration>) -> Result<MetRoot> {
    let (mine, patience) = {
        let mut world = crate::world::WORLD.enter();
        let setting = world.endpoint.settings().connect_timeout;
        (card_bytes(CONNECT, &mut world)?, patience.or_else(|| setting.map(Duration::from_secs)))
    };
    let knock = || -> Result<Talk> {
        let mut talk = Talk::call(name).map_err(|error| port_error(&error))?;
        talk.say(&mine);
        Ok(talk)
    };
    let begun = Instant::now();
    let (mut talk, mut asked_in) = (knock()?, None);
    attend(call, |world| {
        let heard = talk.poll();
        world.attending.shows = talk.descriptor();
        match heard {
            Ok(Some(piece)) if piece == [ENTER] => {
                let (card, tag) = asked_in.take()?;
                Some(adopt(world, &card).map(|peer| MetRoot { peer, tag }))
            }
            Ok(Some(piece)) => {
                let card = read_card(ACCEPT, &piece);
                let tag = piece.get(1 + CARD_BYTES..).and_then(|tag| tag.try_into().ok()).map(i32::from_le_bytes);
                asked_in = card.zip(tag.filter(|tag| *tag >= 0));
                talk.say(&[READY]);
                asked_in.is_none().then(|| Err(port_error(&DoorError::Nonsense)))
            }
            // Who has said that it is ready is waited for, whoever is slow.
            Ok(None) if asked_in.is_some() || patience.is_none_or(|patience| begun.elapsed() < patience) => None,
            Ok(None) => {
                let waited = patience.unwrap_or_default().as_secs_f64();
                let hint = "info key timeout, WEFT_CONNECT_TIMEOUT";
                let detail = format!("nobody has accepted at port_name for {waited} s ({hint})");
                Some(Err(Error::new(Class::Port, detail)))
            }
            // It took us for stopped, and has somebody else in. Another time it may be us.
            Err(DoorError::Closed) if asked_in.take().is_some() => match knock() {
                Ok(again) => {
                    talk = again;
                    None
                }
                Err(error) => Some(Err(error)),
            },
            Err(DoorError::Closed) => {
                let detail = "port_name was closed before anybody accepted there";
                Some(Err(Error::new(Class::Port, detail)))
            }
            Err(error) => Some(Err(port_error(&error))),
        }
    })
}

/// What the root has found, known to all in the group; then the intercommunicator of both groups. `found` only in the
/// root.
pub(super) fn together(call: &'static str, comm: &Comm, root: u32, found: Option<Result<MetRoot>>) -> Result<usize> {
    let says = match &found {
        None => 0,
        Some(Ok(_)) => 1,
        Some(Err(error)) => 2 + error.class as u64,
    };
    let said = tell(call, comm, [says, 0, 0, 0])?[root as usize][0];
    let bridge = match found {
        Some(met) => {
            let MetRoot { peer, tag } = met?;
            Some(Bridge::to(peer, MEETING, tag))
        }
        None if said >= 2 => {
            let class = i32::try_from(said - 2).ok().and_then(Class::from_number).unwrap_or(Class::Other);
            return Err(Error::new(class, format!("it has failed in the root, which is rank {root}")));
        }
        None => None,
    };
    bridge::create(comm, root, bridge)
}

/// A card for somebody whom the program has a way to.
pub(super) fn swap_cards(own: impl FnOnce(&[u8]) -> Result<Vec<u8>>) -> Result<MetRoot> {
    let tag = new_tag();
    let mut mine = card_bytes(CONNECT, &mut crate::world::WORLD.enter())?;
    mine.extend_from_slice(&tag.to_le_bytes());
    let theirs = own(&mine)?;
    let nonsense = || Error::new(Class::Other, "who is at the other end of fd does not join, or with another library");
    let card = read_card(CONNECT, &theirs).ok_or_else(nonsense)?;
    let their_tag = theirs.get(1 + CARD_BYTES..).and_then(|tag| tag.try_into().ok()).map(i32::from_le_bytes);
    let their_tag = their_tag.ok_or_else(nonsense)?;
    // The same for both.
    Ok(MetRoot { peer: cards::adopt_one(&card)?, tag: (tag ^ their_tag) & 0x7fff_ffff })
}

/// Bytes that [`swap_cards`] gives and wants.
pub(super) const SWAPPED_BYTES: usize = 1 + CARD_BYTES + 4;
