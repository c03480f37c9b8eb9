//! What the library keeps beside the endpoint, and how it takes in what has come.

use crate::calls::OpenCalls;
use crate::early::EarlyMessages;
use crate::groups::PandaGroups;
use crate::labels::{
    BYTES, GROUPS, KeptSend, MESSAGES, MessageLabel, MessagePurpose, PandaArrival, WHOLE_BYTES, announced,
};
use crate::message::{Content, words_of};
use crate::mp::{Delivered, PandaEntries};
use crate::points::Points;
use crate::upcalls::{self, Upcall, Upcalls};
use std::collections::BTreeSet;
use std::time::Duration;
use weft_fabric::{Driven, Endpoint, Monitor, Outside, Peer, RequestId, Selector};
use weft_ports::ready::{ReadyReceives, bytes_of};

pub static WORLD: Monitor<PandaWorld> = Monitor::new();

/// So many upcalls in a row, before the thread that runs them looks after what it waits for itself.
const MOST_IN_A_ROW: usize = 16;

/// How long a thread sleeps before it looks whether a server that it waits for has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Most passes in which what a platform that has ended has sent is taken.
const PASSES_TO_TAKE: u32 = 1 << 16;

/// A message whose bytes are on their way.
struct AnnouncedMessage {
    request: RequestId,
    message: PandaArrival,
}

pub struct PandaWorld {
    pub endpoint: Endpoint,
    ready: ReadyReceives,
    /// Those that came later wait behind it.
    announced: Option<AnnouncedMessage>,
    pub announced_numbers: i32,
    pub kept: Vec<KeptSend>,
    /// What leaves from where it lies, and to whom.
    pub started: Vec<(RequestId, Peer)>,
    pub kept_bytes: usize,
    pub numbers: u64,
    pub upcalls: Upcalls,
    /// What came for somebody who is not there yet.
    early: EarlyMessages<PandaArrival>,
    pub calls: OpenCalls,
    pub entries: PandaEntries,
    pub points: Points,
    pub groups: PandaGroups,
}

impl Driven for PandaWorld {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    #[inline]
    fn advance(&mut self) -> Option<Outside> {
        self.collect();
        let Self { groups, endpoint, upcalls, .. } = self;
        groups.advance(endpoint, upcalls);
        // It is a function, so the box has no memory.
        self.upcalls.begin().then(|| Box::new(run) as Outside)
    }

    /// Whether somebody who is waited for has ended is looked at here only, since the kernel is asked.
    fn idle(&mut self, sleeps: bool) -> bool {
        self.ready.post(&mut self.endpoint);
        if self.groups.idle(&mut self.endpoint, sleeps) {
            return true;
        }
        if !sleeps || !self.waits() {
            return false;
        }
        let watched = self.watched();
        watched.iter().for_each(|peer| self.endpoint.attend(*peer));
        let has_ended = |peer: &&Peer| self.endpoint.is_lost(**peer) || self.endpoint.has_ended(**peer);
        let Some(ended) = watched.iter().find(has_ended).copied() else { return false };
        // What it has sent has arrived, since it has ended before.
        let mut passes = 0;
        while self.endpoint.progress() && passes < PASSES_TO_TAKE {
            passes += 1;
        }
        self.collect();
        self.endpoint.lose_ended(ended);
        self.calls.lose(ended);
        true
    }

    fn is_awaited() -> Option<bool> {
        Some(upcalls::is_awaited())
    }

    fn longest_sleep(&self) -> Option<Duration> {
        let look = self.waits().then_some(LOOK);
        look.into_iter().chain(self.groups.longest_sleep()).min()
    }
}

impl PandaWorld {
    pub fn new(mut endpoint: Endpoint) -> Self {
        let mut ready = ReadyReceives::new(MESSAGES, WHOLE_BYTES);
        ready.post(&mut endpoint);
        let groups = PandaGroups::new(&mut endpoint, GROUPS);
        Self {
            endpoint,
            ready,
            announced: None,
            announced_numbers: 0,
            kept: Vec::new(),
            started: Vec::new(),
            kept_bytes: 0,
            numbers: 0,
            upcalls: Upcalls::default(),
            early: EarlyMessages::default(),
            calls: OpenCalls::default(),
            entries: PandaEntries::default(),
            points: Points::default(),
            groups,
        }
    }

    /// Whether anything takes another platform.
    fn waits(&self) -> bool {
        self.calls.are_open() || !self.kept.is_empty() || !self.started.is_empty() || self.announced.is_some()
    }

    /// Whom it takes.
    fn watched(&self) -> BTreeSet<Peer> {
        let sends = self.kept.iter().map(|kept| kept.to).chain(self.started.iter().map(|(_, to)| *to));
        let announced = self.announced.iter().map(|announced| announced.message.from);
        self.calls.servers().chain(sends).chain(announced).collect()
    }

    /// Leaves the job.
    pub fn leave(self) {
        let Self { mut endpoint, mut ready, announced, kept, mut groups, .. } = self;
        ready.withdraw(&mut endpoint);
        groups.withdraw(&mut endpoint);
        if let Some(AnnouncedMessage { request, message }) = announced
            && !endpoint.is_complete(request)
        {
            // It is being written into, and will be until the end.
            std::mem::forget(message);
        }
        endpoint.leave();
        drop(kept);
    }

    /// Takes in what has come, up to a message whose bytes are still on their way.
    #[inline]
    fn collect(&mut self) {
        self.reclaim();
        loop {
            if let Some(AnnouncedMessage { request, .. }) = &self.announced {
                let Some(outcome) = self.endpoint.take_outcome(*request) else { return };
                let whole = self.announced.take().filter(|_| outcome.fault.is_none());
                whole.into_iter().for_each(|announced| self.deliver(announced.message));
            }
            let Some((outcome, room)) = self.ready.next(&mut self.endpoint) else { return };
            let (from, length) = (outcome.peer, outcome.length as usize);
            let said = MessagePurpose::from_tag(outcome.tag).filter(|_| outcome.fault.is_none());
            // Others send no process of ours.
            if let Some((what, apart)) = said {
                let label = MessageLabel { what, beside: outcome.source };
                if apart {
                    self.expect(from, label, announced(&room, length));
                } else {
                    let content = Content { words: words_of(bytes_of(&room, length)), length };
                    self.deliver(PandaArrival { from, label, content });
                }
            }
            self.ready.give_back(room);
        }
    }

    /// Receives the bytes of a message that was announced.
    #[cold]
    fn expect(&mut self, from: Peer, label: MessageLabel, said: Option<(usize, i32)>) {
        let Some((length, number)) = said else { return };
        let mut content = Content { words: vec![0; length.div_ceil(8)], length };
        let from_it = Selector { context: BYTES, peer: Some(from), tag: Some(number) };
        // SAFETY: the words are kept, where nobody touches them, until the request is complete.
        let request = unsafe { self.endpoint.post_receive(from_it, content.words.as_mut_ptr().cast(), length) };
        self.announced = Some(AnnouncedMessage { request, message: PandaArrival { from, label, content } });
    }

    /// Hands a message to whom it is for, or keeps it until there is somebody.
    #[inline]
    fn deliver(&mut self, message: PandaArrival) {
        let MessageLabel { what, beside } = message.label;
        let upcall = match what {
            MessagePurpose::Reply => return self.calls.answer(beside, message.from, message.content),
            MessagePurpose::Clock => return self.answer_time(message.from, beside),
            MessagePurpose::Request => match self.calls.handler() {
                Some(handler) => Upcall::Request { handler, message },
                None => return self.keep_early(message),
            },
            MessagePurpose::Point(number) => match self.points.at(number) {
                Some(point) => Upcall::Point { point, number, message },
                None => return self.keep_early(message),
            },
            MessagePurpose::Entry(number) => match self.entries.deliver(number, message.content) {
                Delivered::ToHandler(handler, content) => Upcall::Entry { handler, number, content },
                Delivered::Taken => return,
                Delivered::TooEarly(content) => return self.keep_early(PandaArrival { content, ..message }),
            },
        };
        self.upcalls.push(upcall);
    }

    #[cold]
    fn keep_early(&mut self, message: PandaArrival) {
        let (from, what, bytes) = (message.from.0, message.label.what, message.content.length);
        self.early.keep(message, bytes, || {
            let kind = match what {
                MessagePurpose::Point(number) => format!("a fragment for service point {number}"),
                MessagePurpose::Entry(number) => format!("a message for entry {number}"),
                _ => "a call".to_owned(),
            };
            format!("{kind} of platform {from}")
        });
    }

    /// There is somebody new whom messages may be for.
    pub fn look_at_early(&mut self) {
        for message in self.early.take() {
            self.deliver(message);
        }
    }
}

/// Runs the one that was begun, and those that are there.
fn run() {
    for number in 1..=MOST_IN_A_ROW {
        if !upcalls::run_begun() {
            return;
        }
        // When it is left, others are woken that may run what is there.
        let mut world = WORLD.enter();
        if number == MOST_IN_A_ROW || !world.upcalls.begin() {
            return;
        }
    }
}
