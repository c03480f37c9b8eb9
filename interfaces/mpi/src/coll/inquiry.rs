//! How ranks find out that they were called with lengths whose schedules do not meet.
//!
//! The length decides which algorithm a rank takes. Where ranks pass different lengths to one collective, which the
//! standard forbids, one may therefore wait for a message that the other never sends, or send one that it never receives.
//! Most see it in the length of what they get (`run`); those who would wait for ever see it here.
//!
//! Nothing is sent and nothing is looked at while operations go well. A run that has waited for long asks those it waits
//! for and tells them what it has to do with them ([`Dealings`]). The answer is one of three:
//! - *wait*: the other one has not begun, or its part meets ours and it waits for somebody else. We ask again later.
//! - *over*: it has ended its part. Messages between two processes keep their order, so all that it sent has arrived:
//!   what still waits for it waits in vain.
//! - *parted*: its part does not meet ours. Both go on as if the other was not there.
//!
//! Whoever answers *over* or *parted* takes what the other has sent and nobody receives, as the sender may wait for that.
//!
//! Only operations of one start: those of persistent ones have the same tag each time.

use super::active::Active;
use super::run::{Dealings, Job, Network, Run};
use crate::comm::COLLECTIVE;
use crate::world::World;
use std::time::Duration;
use weft_fabric::{Endpoint, Envelope, Peer, RequestId, Selector, SendMode};

/// No communicator has it.
const CONTEXT: u32 = u32::MAX;
/// Unmoved passes of a program that tests between two looks at letters.
const PASSES_PER_LOOK: u64 = 64;
/// What a sleep counts in such passes.
const SLEEP_PASSES: u64 = 1 << 14;
/// Passes that a run waits before it first asks.
const FIRST_PATIENCE: u64 = 1 << 15;
/// The longest sleep while a collective is under way: who has slept twice asks.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// How long one operation has waited, in passes on the clock of [`Letters`].
#[derive(Default)]
pub(super) struct Patience {
    /// When it is time to ask; 0 before the first look.
    ends: u64,
    /// How often we have asked without learning anything.
    asked: u32,
    /// Asked and not answered.
    open: u32,
}

impl Patience {
    /// True when it is time to ask.
    #[inline]
    fn is_over(&mut self, now: u64) -> bool {
        now >= self.ends && self.is_really_over(now)
    }

    #[cold]
    fn is_really_over(&mut self, now: u64) -> bool {
        if self.open > 0 {
            return false;
        }
        let first = self.ends == 0;
        self.ends = now + (FIRST_PATIENCE << self.asked.min(30));
        self.asked += u32::from(!first);
        !first
    }

    fn answered(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Something was learnt; the next thing may be near.
    fn begin_again(&mut self) {
        (self.ends, self.asked) = (0, 0);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ask,
    Wait,
    Over,
    Parted,
    /// Take what I have sent; there is nothing to answer.
    Take,
}

const KINDS: [Kind; 5] = [Kind::Ask, Kind::Wait, Kind::Over, Kind::Parted, Kind::Take];

/// Context and tag of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    context: u32,
    tag: i32,
}

impl Name {
    pub fn of(job: &Job) -> Self {
        Self { context: job.context, tag: job.tag }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Letter {
    kind: Kind,
    name: Name,
    /// The writer's with the reader.
    dealings: Dealings,
}

const WORDS: usize = 5;

impl Letter {
    fn new(kind: Kind, name: Name) -> Self {
        Self { kind, name, dealings: Dealings::default() }
    }

    fn words(self) -> [u64; WORDS] {
        let Dealings { sent, received, sent_bytes, received_bytes } = self.dealings;
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let name = pair(self.name.context, self.name.tag as u32);
        [self.kind as u64, name, pair(sent, received), sent_bytes, received_bytes]
    }

    /// What a peer has written; `None` if it is no letter.
    fn read(words: [u64; WORDS]) -> Option<Self> {
        let [kind, name, messages, sent_bytes, received_bytes] = words;
        let halves = |word: u64| ((word >> 32) as u32, word as u32);
        let ((context, tag), (sent, received)) = (halves(name), halves(messages));
        let kind = *KINDS.get(usize::try_from(kind).ok()?)?;
        let dealings = Dealings { sent, received, sent_bytes, received_bytes };
        Some(Self { kind, name: Name { context, tag: tag as i32 }, dealings })
    }
}

/// What there is to letters beside the operations.
#[derive(Default)]
pub(super) struct Letters {
    /// Not left yet.
    leaving: Vec<(RequestId, Box<[u64; WORDS]>)>,
    /// Blocking operations under way. They live on the stacks of their calls.
    blocking: Vec<Name>,
    /// Letters to them.
    held: Vec<(Peer, Letter)>,
    /// Passes that moved nothing, as far as they are counted.
    clock: u64,
    unseen: u64,
}

impl Letters {
    /// A blocking operation begins.
    #[inline]
    pub fn begin(&mut self, name: Name) {
        self.blocking.push(name);
    }

    fn post(&mut self, endpoint: &mut Endpoint, to: Peer, letter: Letter) {
        self.leaving.retain(|(id, _)| endpoint.take_outcome(*id).is_none());
        // Whoever has left the job had everything that it asked about.
        if endpoint.has_ended(to) {
            return;
        }
        let words = Box::new(letter.words());
        let envelope = Envelope { context: CONTEXT, tag: 0, source: 0 };
        let (data, length) = (words.as_ptr().cast(), size_of_val(&*words));
        // SAFETY: the words live in the box, which is kept until the send is complete.
        unsafe {
            if !endpoint.try_send(to, envelope, data, length) {
                let id = endpoint.post_send(to, envelope, data, length, SendMode::Standard);
                self.leaving.push((id, words));
            }
        }
    }

    /// Asks all that a run waits for.
    #[cold]
    fn ask(&mut self, endpoint: &mut Endpoint, run: &Run, patience: &mut Patience) {
        for rank in run.awaited() {
            let letter = Letter { dealings: run.dealings(rank), ..Letter::new(Kind::Ask, run.name()) };
            self.post(endpoint, run.peer(rank), letter);
            patience.open += 1;
        }
    }
}

impl Active {
    /// Whoever waits for a collective looks now and then whether it waits in vain.
    pub fn longest_sleep(&self) -> Option<Duration> {
        (!self.is_quiet() || !self.letters.blocking.is_empty()).then_some(LONGEST_SLEEP)
    }

    /// Asks for the operations that have waited for long.
    fn ask(&mut self, endpoint: &mut Endpoint) {
        let Self { operations, moving, letters, .. } = self;
        for index in moving {
            let Some(operation) = operations[*index as usize].as_mut() else { continue };
            if !operation.persistent && operation.is_running() && operation.patience.is_over(letters.clock) {
                letters.ask(endpoint, &operation.run, &mut operation.patience);
            }
        }
    }
}

/// For a blocking run that cannot move: reads letters to it, and asks if it has waited for long. True if it may move.
#[inline]
pub(super) fn attend(world: &mut World, run: &mut Run, patience: &mut Patience) -> bool {
    let World { collectives, endpoint, .. } = world;
    let letters = &mut collectives.letters;
    if patience.is_over(letters.clock) {
        letters.ask(endpoint, run, patience);
    }
    !letters.held.is_empty() && read_held(letters, endpoint, run, patience)
}

#[cold]
fn read_held(letters: &mut Letters, endpoint: &mut Endpoint, run: &mut Run, patience: &mut Patience) -> bool {
    let (mine, others) = letters.held.drain(..).partition::<Vec<_>, _>(|(_, letter)| letter.name == run.name());
    letters.held = others;
    for &(from, letter) in &mine {
        let answer = consider(endpoint, run, patience, from, letter);
        send(letters, endpoint, from, letter.name, answer);
    }
    !mine.is_empty()
}

/// A blocking run is done.
#[inline]
pub(super) fn end(world: &mut World, run: &Run) {
    let letters = &mut world.collectives.letters;
    let name = run.name();
    // The last that began, unless several threads call.
    match letters.blocking.last() {
        Some(last) if *last == name => drop(letters.blocking.pop()),
        _ => letters.blocking.retain(|other| *other != name),
    }
    if !letters.held.is_empty() {
        answer_held(world, name);
    }
}

#[cold]
fn answer_held(world: &mut World, name: Name) {
    let held = std::mem::take(&mut world.collectives.letters.held);
    for (from, letter) in held {
        match letter.name == name {
            true => handle(world, from, letter),
            false => world.collectives.letters.held.push((from, letter)),
        }
    }
}

/// Reads letters and writes some; true if anything changed.
pub(crate) fn idle(world: &mut World, sleeps: bool) -> bool {
    let letters = &mut world.collectives.letters;
    letters.unseen += 1;
    if !sleeps && letters.unseen < PASSES_PER_LOOK {
        return false;
    }
    letters.clock += if sleeps { SLEEP_PASSES } else { PASSES_PER_LOOK };
    letters.unseen = 0;
    let mut changed = false;
    while let Some((from, letter)) = next_letter(&mut world.endpoint) {
        changed = true;
        if let Some(letter) = letter {
            handle(world, from, letter);
        }
    }
    if !world.collectives.is_quiet() {
        world.collectives.ask(&mut world.endpoint);
    }
    changed
}

/// The next letter that has arrived, and from whom; `None` in it if it cannot be read.
fn next_letter(endpoint: &mut Endpoint) -> Option<(Peer, Option<Letter>)> {
    let anyone = Selector { context: CONTEXT, peer: None, tag: None };
    let (message, seen) = endpoint.take_matched(anyone)?;
    let mut words = Box::new([0u64; WORDS]);
    let room = size_of_val(&*words);
    // SAFETY: the words live on if the receive is not complete.
    let id = unsafe { endpoint.post_matched_receive(message, words.as_mut_ptr().cast(), room) };
    let letter = match endpoint.take_outcome(id) {
        Some(outcome) if outcome.fault.is_none() && outcome.length == room as u64 => Letter::read(*words),
        Some(_) => None,
        None => {
            // Letters are short and arrive whole. Whoever sends another thing here costs us these words.
            endpoint.release(id);
            Box::leak(words);
            None
        }
    };
    Some((seen.peer, letter))
}

fn handle(world: &mut World, from: Peer, letter: Letter) {
    let World { collectives, endpoint, .. } = world;
    if collectives.letters.blocking.contains(&letter.name) {
        return collectives.letters.held.push((from, letter));
    }
    let answer = match collectives.under_way(letter.name) {
        Some(operation) => consider(endpoint, &mut operation.run, &mut operation.patience, from, letter),
        None => look_back(world, from, letter),
    };
    let World { collectives, endpoint, .. } = world;
    send(&mut collectives.letters, endpoint, from, letter.name, answer);
}

/// What a letter means for an operation under way; what is to be answered.
fn consider(
    endpoint: &mut Endpoint,
    run: &mut Run,
    patience: &mut Patience,
    from: Peer,
    letter: Letter,
) -> Option<Kind> {
    let rank = run.rank_of(from)?;
    match letter.kind {
        Kind::Ask if run.dealings(rank) == letter.dealings.mirrored() => return Some(Kind::Wait),
        Kind::Ask => {
            run.part(endpoint, rank);
            run.discard(endpoint, rank);
            return Some(Kind::Parted);
        }
        Kind::Take => {
            run.discard(endpoint, rank);
            return None;
        }
        Kind::Wait => {
            patience.answered();
            return None;
        }
        Kind::Over => run.end_of(endpoint, rank),
        Kind::Parted => {
            run.part(endpoint, rank);
            run.discard(endpoint, rank);
        }
    }
    patience.answered();
    patience.begin_again();
    // What was sent after the question may wait there again.
    run.owes(rank).then_some(Kind::Take)
}

/// The same for an operation that is not under way: it was, or is to come.
fn look_back(world: &mut World, from: Peer, letter: Letter) -> Option<Kind> {
    let answer = match letter.kind {
        Kind::Ask if has_begun(world, letter.name) => Some(Kind::Over),
        Kind::Ask => return Some(Kind::Wait),
        Kind::Wait | Kind::Over => return None,
        Kind::Parted | Kind::Take => None,
    };
    discard(&mut world.endpoint, from, letter.name);
    answer
}

/// Whether an operation that is not under way was.
fn has_begun(world: &World, name: Name) -> bool {
    let Some(context) = name.context.checked_sub(COLLECTIVE) else { return false };
    match world.comms.every().find(|comm| comm.context == context) {
        Some(comm) => comm.collective.has_begun(name.tag),
        None => world.contexts.was_released(context),
    }
}

fn send(letters: &mut Letters, endpoint: &mut Endpoint, to: Peer, name: Name, kind: Option<Kind>) {
    if let Some(kind) = kind {
        letters.post(endpoint, to, Letter::new(kind, name));
    }
}
/// Takes what `from` has sent in an operation that does not wait for it.
fn discard(endpoint: &mut Endpoint, from: Peer, name: Name) {
    Network::discard(endpoint, Selector { context: name.context, peer: Some(from), tag: Some(name.tag) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_read_as_it_was_written_and_nothing_else_is() {
        let dealings = Dealings { sent: 7, received: u32::MAX, sent_bytes: 1 << 40, received_bytes: 3 };
        for kind in KINDS {
            let letter = Letter { kind, name: Name { context: 0xffff_fff1, tag: (1 << 30) - 1 }, dealings };
            assert_eq!(Letter::read(letter.words()), Some(letter));
        }
        assert_eq!(Letter::read([KINDS.len() as u64, 0, 0, 0, 0]), None);
        assert_eq!(dealings.mirrored().mirrored(), dealings);
    }

    #[test]
    fn who_waits_asks_ever_more_rarely_and_not_twice_at_a_time() {
        let (mut patience, mut now) = (Patience::default(), 0);
        let mut passes = |patience: &mut Patience, most: u64| {
            (0..most).find(|_| {
                now += SLEEP_PASSES;
                patience.is_over(now)
            })
        };
        let first = passes(&mut patience, 1000).unwrap();
        assert!(first >= 1, "asked at the first look");
        let second = passes(&mut patience, 1000).unwrap();
        assert!(passes(&mut patience, 1000).unwrap() > second);
        patience.open = 1;
        assert_eq!(passes(&mut patience, 1000), None, "asked again before the answer is there");
        patience.answered();
        assert!(passes(&mut patience, 1000).is_some());
    }
}
