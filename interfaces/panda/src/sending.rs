//! What leaves.

use crate::failure::fail;
use crate::labels::{BYTES, KeptSend, LONGEST_BYTES, MESSAGES, MessageLabel, MessagePurpose, WHOLE_BYTES, waiting};
use crate::message::Content;
use crate::upcalls;
use crate::world::{PandaWorld, WORLD};
use weft_fabric::{Envelope, Peer, RequestId, SendMode};

/// With more bytes that have not left yet who sends waits.
const KEPT_BYTES: usize = 1 << 26;

/// A message that is sent from where it lies.
#[derive(Clone, Copy)]
pub struct LeavingSend(RequestId);

impl PandaWorld {
    fn envelope(&self, MessageLabel { what, beside }: MessageLabel) -> Envelope {
        Envelope { context: MESSAGES, tag: what.tag(), source: beside }
    }

    /// Sends at once, if it can leave whole.
    #[inline]
    pub fn try_send(&mut self, to: Peer, label: MessageLabel, bytes: &[u8]) -> bool {
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
        self.kept.push(KeptSend { request, to, number: self.numbers, bytes });
        self.numbers
    }

    /// Where the bytes of a message go: announced, if it is long.
    fn envelope_of_bytes(&mut self, to: Peer, label: MessageLabel, length: usize) -> Envelope {
        let envelope = self.envelope(label);
        if length <= WHOLE_BYTES {
            return envelope;
        }
        self.announced_numbers = (self.announced_numbers + 1) & i32::MAX;
        let number = self.announced_numbers;
        let apart = Envelope { tag: envelope.tag | MessagePurpose::APART, ..envelope };
        self.keep(to, apart, vec![length as u64, number as u64], 16);
        Envelope { context: BYTES, tag: number, ..envelope }
    }

    /// Sends bytes that are given away, and does not wait. The number of those that have not left yet.
    pub fn give(&mut self, to: Peer, label: MessageLabel, content: Content) -> Option<u64> {
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
    pub unsafe fn start(&mut self, to: Peer, label: MessageLabel, bytes: &[u8]) -> LeavingSend {
        let envelope = self.envelope_of_bytes(to, label, bytes.len());
        let (data, length) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the caller's promise.
        let request = unsafe { self.endpoint.post_send(to, envelope, data, length, SendMode::Standard) };
        self.started.push((request, to));
        LeavingSend(request)
    }

    /// Whether a message has left, or never will. To be asked no more once it has.
    pub fn has_left(&mut self, LeavingSend(request): LeavingSend) -> bool {
        let has_left = self.endpoint.take_outcome(request).is_some();
        if has_left {
            self.started.retain(|(started, _)| *started != request);
        }
        has_left
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

/// Sends from where the bytes lie; returns when they have left.
#[inline]
pub fn send(call: &'static str, to: Peer, label: MessageLabel, bytes: &[u8]) {
    check_length(call, bytes.len());
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

/// A longer one would not be taken.
pub fn check_length(call: &'static str, length: usize) {
    if length as u64 > LONGEST_BYTES {
        fail(&format!("{call}: a message of {length} bytes, of at most {LONGEST_BYTES}"));
    }
}

/// Sends bytes that are given away. It waits where much has not left yet, but in no upcall. The number of a message
/// that has not left yet.
pub fn give(call: &'static str, to: Peer, label: MessageLabel, content: Content) -> Option<u64> {
    check_length(call, content.length);
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
