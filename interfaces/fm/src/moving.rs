//! Sending, and taking in what comes.

use crate::streams::{FmStreams, ForHandler, ReceivedStream};
use std::collections::VecDeque;
use weft_fabric::{
    Driven, Endpoint, Envelope, InterfaceName, JoinError, Monitor, Outside, Peer, RequestId, Selector, SendMode,
    Waiting,
};
use weft_ports::ready::{ReadyReceives, Room, bytes_of, tight};

pub static WORLD: Monitor<FmWorld> = Monitor::new();

const MESSAGES: u32 = 0;
/// Bytes of messages that were announced, by number.
const BYTES: u32 = 1;
/// Longer messages are announced.
const WHOLE_BYTES: usize = 64 * 1024 - 64;
/// More messages than this wait in no larger rooms than they need.
const LOOSE: usize = 8;
/// Longest message, so that no peer can ask for all memory there is.
pub const LONGEST_BYTES: u64 = 1 << 31;
/// Looks in a row that found nothing, after which the core is handed over in each where others want it.
const LOOKS_BEFORE_TURNS: u32 = 64;

/// A message whose bytes are on their way.
struct Announced {
    request: RequestId,
    message: ReceivedStream,
}

/// What was sent in a handler and has not left yet.
struct KeptMessage {
    request: RequestId,
    _bytes: Vec<u8>,
}

pub struct FmWorld {
    endpoint: Endpoint,
    ready: ReadyReceives,
    /// In order: behind one whose bytes are on their way those that came later wait.
    inbox: VecDeque<ReceivedStream>,
    announced: Option<Announced>,
    kept: Vec<KeptMessage>,
    numbers: i32,
    idle_looks: u32,
    pub streams: FmStreams,
}

impl Driven for FmWorld {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    fn advance(&mut self) -> Option<Outside> {
        None
    }
}

/// Joins the job.
pub fn open() -> Result<(u32, u32), JoinError> {
    let mut endpoint = Endpoint::join_as(InterfaceName::Fm, &[])?;
    let place = (endpoint.me().0, endpoint.world_size());
    let mut ready = ReadyReceives::new(MESSAGES, WHOLE_BYTES);
    ready.post(&mut endpoint);
    let world = FmWorld {
        endpoint,
        ready,
        inbox: VecDeque::new(),
        announced: None,
        kept: Vec::new(),
        numbers: 0,
        idle_looks: 0,
        streams: FmStreams::default(),
    };
    // Several threads may send.
    WORLD.open(world, true);
    WORLD.lend();
    Ok(place)
}

/// Leaves the job, once everything has left that was sent.
pub fn close() {
    let FmWorld { mut endpoint, mut ready, kept, announced, .. } = WORLD.close();
    ready.withdraw(&mut endpoint);
    if let Some(Announced { request, message }) = announced
        && !endpoint.is_complete(request)
    {
        // It is being written into, and will be until the end.
        std::mem::forget(message);
    }
    endpoint.leave();
    drop(kept);
}

fn waiting(call: &'static str, to: u32) -> Waiting {
    Waiting { call, peer: Some(Peer(to)), tag: None, context: MESSAGES }
}

/// Sends a message; returns when its bytes may be used again. In a handler it does not wait: the bytes that have not
/// left are kept.
#[inline]
pub fn send(call: &'static str, to: u32, what: ForHandler, bytes: Vec<u8>) -> Vec<u8> {
    let mut world = WORLD.enter();
    let envelope = world.envelope(MESSAGES, what.tag());
    if bytes.len() <= WHOLE_BYTES {
        // SAFETY: the bytes are here.
        if unsafe { world.endpoint.try_send(Peer(to), envelope, bytes.as_ptr(), bytes.len()) } {
            return bytes;
        }
        drop(world);
        return post(call, to, envelope, bytes);
    }
    world.numbers = (world.numbers + 1) & i32::MAX;
    let number = world.numbers;
    let announcement = [(bytes.len() as u64).to_le_bytes(), u64::from(number as u32).to_le_bytes()].concat();
    let envelope = Envelope { tag: envelope.tag | ForHandler::APART, ..envelope };
    let follows = Envelope { context: BYTES, tag: number, ..envelope };
    drop(world);
    post(call, to, envelope, announcement);
    post(call, to, follows, bytes)
}

#[cold]
fn post(call: &'static str, to: u32, envelope: Envelope, bytes: Vec<u8>) -> Vec<u8> {
    let mut world = WORLD.enter();
    let (data, length, mode) = (bytes.as_ptr(), bytes.len(), SendMode::Standard);
    // SAFETY: the bytes are here, or in `kept`, where nobody touches them, until the request is complete.
    let request = unsafe { world.endpoint.post_send(Peer(to), envelope, data, length, mode) };
    if world.streams.is_running() || to == world.endpoint.me().0 {
        world.kept.push(KeptMessage { request, _bytes: bytes });
        return Vec::new();
    }
    drop(world);
    // What comes is taken in, since who sends it may wait for that.
    WORLD.wait(waiting(call, to), |world| {
        world.collect();
        world.endpoint.take_outcome(request)
    });
    bytes
}

/// The next message that has come, in order. `found`: there was one before it.
#[inline]
pub fn next(found: bool) -> Option<ReceivedStream> {
    let mut world = WORLD.enter();
    if let Some(message) = world.inbox.pop_front() {
        return Some(message);
    }
    drop(world);
    WORLD.poll();
    let mut world = WORLD.enter();
    world.collect();
    let next = world.inbox.pop_front();
    world.note_idle(found || next.is_some());
    next
}

impl FmWorld {
    fn envelope(&self, context: u32, tag: i32) -> Envelope {
        Envelope { context, tag, source: self.endpoint.me().0 }
    }

    /// Takes in what has come, up to a message whose bytes are still on their way.
    #[inline]
    fn collect(&mut self) {
        if !self.kept.is_empty() {
            let Self { kept, endpoint, .. } = self;
            kept.retain(|kept| endpoint.take_outcome(kept.request).is_none());
        }
        loop {
            if let Some(Announced { request, .. }) = &self.announced {
                let Some(outcome) = self.endpoint.take_outcome(*request) else { return };
                let whole = self.announced.take().filter(|_| outcome.fault.is_none());
                self.inbox.extend(whole.map(|announced| announced.message));
            }
            let Some((outcome, room)) = self.ready.next(&mut self.endpoint) else { return };
            let (from, length) = (outcome.peer.0, outcome.length as usize);
            match ForHandler::from_tag(outcome.tag).filter(|_| outcome.fault.is_none()) {
                Some((what, true)) => self.expect(from, what, room, length),
                Some((what, false)) => {
                    let message = match self.inbox.len() > LOOSE {
                        true => {
                            let message = ReceivedStream { from, what, room: tight(bytes_of(&room, length)), length };
                            self.ready.give_back(room);
                            message
                        }
                        false => ReceivedStream { from, what, room, length },
                    };
                    self.inbox.push_back(message);
                }
                // What no process of ours sends.
                None => self.ready.give_back(room),
            }
        }
    }

    /// Receives the bytes of a message that was announced.
    #[cold]
    fn expect(&mut self, from: u32, what: ForHandler, room: Room, length: usize) {
        let words = bytes_of(&room, length);
        let word = |at: usize| words.get(at..at + 8).and_then(|word| word.try_into().ok()).map(u64::from_le_bytes);
        let said = word(0).zip(word(8)).filter(|(bytes, _)| *bytes <= LONGEST_BYTES);
        self.ready.give_back(room);
        let Some((bytes, number)) = said else { return };
        let mut room: Room = vec![0; (bytes as usize).div_ceil(8)].into();
        let from_it = Selector { context: BYTES, peer: Some(Peer(from)), tag: Some(number as i32) };
        // SAFETY: the room is kept, where nobody touches it, until the request is complete.
        let request = unsafe { self.endpoint.post_receive(from_it, room.as_mut_ptr().cast(), bytes as usize) };
        self.announced =
            Some(Announced { request, message: ReceivedStream { from, what, room, length: bytes as usize } });
    }

    /// A handler has returned.
    #[inline]
    pub fn finish(&mut self) {
        if let Some(room) = self.streams.has_run() {
            self.ready.give_back(room);
        }
    }

    #[inline]
    fn note_idle(&mut self, found: bool) {
        if found {
            self.idle_looks = 0;
            return;
        }
        self.ready.post(&mut self.endpoint);
        self.idle_looks = self.idle_looks.saturating_add(1);
        if self.idle_looks >= LOOKS_BEFORE_TURNS && self.endpoint.shares_core() {
            std::thread::yield_now();
        }
    }

    pub fn processes(&self) -> u32 {
        self.endpoint.world_size()
    }
}
