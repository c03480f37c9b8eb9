//! What leaves, and what tags say.

use crate::failure::fail;
use crate::message::Content;
use crate::upcalls;
use crate::world::{PandaWorld, WORLD};
use weft_fabric::{Envelope, Peer, RequestId, SendMode, Waiting};
use weft_ports::ready::bytes_of;

pub const MESSAGES: u32 = 0;
/// Bytes of messages that were announced, by number.
pub const BYTES: u32 = 1;
/// Words of groups; the next context is theirs, too.
pub const GROUPS: u32 = 2;
/// Longer messages are announced.
pub const WHOLE_BYTES: usize = 64 * 1024 - 64;
/// Longest message, so that no peer can ask for all memory there is.
pub const LONGEST_BYTES: u64 = 1 << 31;
/// With more bytes that have not left yet who sends waits.
const KEPT_BYTES: usize = 1 << 26;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A call to the handler of remote procedure calls, numbered by its caller.
    Request,
    Reply,
    /// For a map, or for one receive.
    Entry(u32),
    /// For a service point.
    Point(u32),
    /// Asks what the time is.
    Clock,
}

/// Most maps, receives and service points; their numbers stand in tags.
pub const NUMBERS: u32 = 1 << 20;

impl What {
    const KINDS: i32 = 24;
    /// The bytes follow in a message of their own.
    const APART: i32 = 1 << 28;

    fn tag(self) -> i32 {
        let (kind, number) = match self {
            Self::Request => (0, 0),
            Self::Reply => (1, 0),
            Self::Entry(number) => (2, number),
            Self::Point(number) => (3, number),
            Self::Clock => (4, 0),
        };
        kind << Self::KINDS | number as i32
    }

    /// With whether the bytes follow.
    pub fn from_tag(tag: i32) -> Option<(Self, bool)> {
        let (rest, apart) = (tag & !Self::APART, tag & Self::APART != 0);
        let number = (rest & ((1 << Self::KINDS) - 1)) as u32;
        let what = match (rest >> Self::KINDS, number) {
            (0, 0) => Self::Request,
            (1, 0) => Self::Reply,
            (2, 0..NUMBERS) => Self::Entry(number),
            (3, 0..NUMBERS) => Self::Point(number),
            (4, 0) => Self::Clock,
            _ => return None,
        };
        Some((what, apart))
    }
}

/// What a message is for, and a number that goes beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    pub what: What,
    pub beside: u32,
}

/// What was sent and has not left yet.
pub struct KeptMessage {
    request: RequestId,
    pub number: u64,
    bytes: Vec<u64>,
}

/// A message that is sent from where it lies.
#[derive(Clone, Copy)]
pub struct Leaving(RequestId);

impl PandaWorld {
    fn envelope(&self, Label { what, beside }: Label) -> Envelope {
        Envelope { context: MESSAGES, tag: what.tag(), source: beside }
    }

    /// Sends at once, if it can leave whole.
    #[inline]
    pub fn try_send(&mut self, to: Peer, label: Label, bytes: &[u8]) -> bool {
        // Messages of one sender do not overtake each other.
        if bytes.len() > WHOLE_BYTES {
            return false;
        }
        let envelope = self.envelope(label);
        // SAFETY: the bytes are here.
        unsafe { self.endpoint.try_send(to, envelope, bytes.as_ptr(), bytes.len()) }
    }

    fn keep(&mut self, to: Peer, envelope: Envelope, bytes: Vec<u64>, length: usize) -> u64 {
        // SAFETY: the bytes are in `kept`, where nobody touches them, until the request is complete.
        let request =
            unsafe { self.endpoint.post_send(to, envelope, bytes.as_ptr().cast(), length, SendMode::Standard) };
        self.numbers += 1;
        self.kept_bytes += 8 * bytes.len();
        self.kept.push(KeptMessage { request, number: self.numbers, bytes });
        self.numbers
    }

    /// Where the bytes of a message go: announced, if it is long.
    fn envelope_of_bytes(&mut self, to: Peer, label: Label, length: usize) -> Envelope {
        let envelope = self.envelope(label);
        if length <= WHOLE_BYTES {
            return envelope;
        }
        self.announced_numbers = (self.announced_numbers + 1) & i32::MAX;
        let number = self.announced_numbers;
        let apart = Envelope { tag: envelope.tag | What::APART, ..envelope };
        self.keep(to, apart, vec![length as u64, number as u64], 16);
        Envelope { context: BYTES, tag: number, ..envelope }
    }

    /// Sends bytes that are given away, and does not wait. The number of those that have not left yet.
    pub fn give(&mut self, to: Peer, label: Label, content: Content) -> Option<u64> {
        if self.try_send(to, label, content.bytes()) {
            return None;
        }
        let envelope = self.envelope_of_bytes(to, label, content.length);
        Some(self.keep(to, envelope, content.words, content.length))
    }

    /// Starts to send bytes from where they lie.
    ///
    /// # Safety
    /// They stay there until [`Self::has_left`] has said so.
    pub unsafe fn start(&mut self, to: Peer, label: Label, bytes: &[u8]) -> Leaving {
        let envelope = self.envelope_of_bytes(to, label, bytes.len());
        let (data, length) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the caller's promise.
        Leaving(unsafe { self.endpoint.post_send(to, envelope, data, length, SendMode::Standard) })
    }

    /// Whether a message has left, or never will. To be asked no more once it has.
    pub fn has_left(&mut self, Leaving(request): Leaving) -> bool {
        self.endpoint.take_outcome(request).is_some()
    }

    /// Forgets what has left.
    #[inline]
    pub fn reclaim(&mut self) {
        if !self.kept.is_empty() {
            let Self { kept, endpoint, kept_bytes, .. } = self;
            kept.retain(|message| {
                let left = endpoint.take_outcome(message.request).is_some();
                *kept_bytes -= if left { 8 * message.bytes.len() } else { 0 };
                !left
            });
        }
    }

    pub fn is_kept(&self, number: u64) -> bool {
        self.kept.iter().any(|message| message.number == number)
    }
}

pub fn waiting(call: &'static str, peer: Option<Peer>) -> Waiting {
    Waiting { call, peer, tag: None, context: MESSAGES }
}

/// Sends from where the bytes lie; returns when they have left.
#[inline]
pub fn send(call: &'static str, to: Peer, label: Label, bytes: &[u8]) {
    let mut world = WORLD.enter();
    if world.try_send(to, label, bytes) {
        return;
    }
    // SAFETY: they are borrowed until this returns.
    let leaving = unsafe { world.start(to, label, bytes) };
    drop(world);
    upcalls::barred(|| {
        WORLD.wait(waiting(call, Some(to)), |world| world.has_left(leaving).then_some(()));
    });
}

/// Sends bytes that are given away. It waits where much has not left yet, but in no upcall. The number of a message that
/// has not left yet.
pub fn give(call: &'static str, to: Peer, label: Label, content: Content) -> Option<u64> {
    if content.length as u64 > LONGEST_BYTES {
        fail(&format!("{call}: a message of {} bytes, of at most {LONGEST_BYTES}", content.length));
    }
    let mut world = WORLD.enter();
    let number = world.give(to, label, content)?;
    if world.kept_bytes > KEPT_BYTES && !upcalls::is_in_one() {
        drop(world);
        settle(call, KEPT_BYTES);
    }
    Some(number)
}

/// Waits until no more bytes than so many have not left.
pub fn settle(call: &'static str, most: usize) {
    upcalls::barred(|| {
        WORLD.wait(waiting(call, None), |world| {
            world.reclaim();
            (world.kept_bytes <= most).then_some(())
        });
    });
}

/// What a message that announces another says: how many bytes, and the number they come with.
pub fn announced(words: &[u64], length: usize) -> Option<(usize, i32)> {
    let bytes = bytes_of(words, length);
    let word = |at: usize| bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map(u64::from_le_bytes);
    let (length, number) = word(0).zip(word(8)).filter(|(length, _)| *length <= LONGEST_BYTES)?;
    Some((length as usize, i32::try_from(number).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_as_they_were_written() {
        let all = [What::Request, What::Reply, What::Entry(0), What::Entry(NUMBERS - 1), What::Point(7), What::Clock];
        for what in all {
            assert_eq!(What::from_tag(what.tag()), Some((what, false)));
            assert_eq!(What::from_tag(what.tag() | What::APART), Some((what, true)));
        }
        for wrong in [-1, 1, 5 << 24, What::Entry(0).tag() | NUMBERS as i32, 1 << 29] {
            assert_eq!(What::from_tag(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_announced_is_a_claim() {
        assert_eq!(announced(&[100_000, 7], 16), Some((100_000, 7)));
        for wrong in [&[u64::MAX, 7][..], &[100_000, 1 << 40], &[100_000]] {
            assert_eq!(announced(wrong, 8 * wrong.len()), None);
        }
    }
}
