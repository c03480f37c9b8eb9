//! What a process learns of its messages while it runs; the selector asks it where neither the message nor the machine
//! decides. Its memory is bounded: by length in powers of two, and a few words for each peer. Clocks are the caller's.
//!
//! *As a receiver*, of messages that were asked for. Neither a stream nor a copy is faster everywhere. A stream lives
//! on the time that a cache line takes from core to core, a copy on what the kernel takes to reach into another
//! process; machines differ by a factor of four in both directions, and a virtual one changes while it runs. A sender
//! that computes holds up a stream, but no copy. So the receiver, who decides, measures: a *period* begins when a long
//! message is granted while none is under way, and ends when none is, or after [`MOST_MESSAGES`]. All messages of a
//! period that are about as long as its first go the same way, and what a KiB of them took is a sample.
//!
//! *As a sender*, of messages that may be sent without asking, and are *offered* all the same where that is faster: an
//! offer lets the receiver copy the message out of the sender's memory at once, whether a receive is there or not, so
//! the promise of a message sent without asking, that it needs nothing but a receiver which polls, holds. What it costs
//! the sender is a wait, and on both sides at once it depends on machine and program which is faster: who copies for
//! another one sends nothing meanwhile, and a receiver that computes keeps its senders waiting. So a sender measures
//! what counts in the end, how fast its program goes on: the time from one message to another one of about that length,
//! so many later, is a sample for the way that those between have gone.
//!
//! *Of each peer*, whether it waits for long messages ([`super::waits`]).

use super::trial::{CLASSES, LengthClass, Method, class_of, per_byte};
use super::waits::Waits;

/// Messages of a sender's period. It goes on while the last one is under way: in a window of many, the last ones pay
/// for all.
const PERIOD_MESSAGES: u32 = 8;
/// Here a period ends in any case.
const MOST_MESSAGES: u32 = 64;

/// In what memory a sender has a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferKind {
    Ordinary,
    /// Made by the interface, so that its receiver can map it.
    Shown,
}

/// See the module.
#[derive(Default)]
pub struct Learner {
    grants: Grants,
    /// By kind of memory.
    offers: [Offers; 2],
    peers: Vec<Waits>,
}

impl Learner {
    pub fn new(peers: u32) -> Self {
        Self { peers: vec![Waits::default(); peers as usize], ..Self::default() }
    }

    /// One more peer, the next one after all that there are.
    pub fn add_peer(&mut self) {
        self.peers.push(Waits::default());
    }

    /// Whether a peer waits for long messages.
    pub fn waits(&mut self, peer: u32) -> &mut Waits {
        &mut self.peers[peer as usize]
    }

    /// A message is granted; answers how it is to come. [`Self::end_grant`] or [`Self::abandon_grant`] follows.
    pub fn begin_grant(&mut self, bytes: u64, now_ns: u64) -> Method {
        self.grants.begin(bytes, now_ns)
    }

    /// All bytes of a granted message have come.
    pub fn end_grant(&mut self, bytes: u64, now_ns: u64) {
        self.grants.end(bytes, now_ns);
    }

    /// A granted message will not come, or goes another way than it was told.
    pub fn abandon_grant(&mut self) {
        self.grants.abandon();
    }

    /// How a message is to leave that may go without asking; `under_way` tells of the request of an earlier one whether
    /// it still is. This one has the request `request`. It may be another message's by the time somebody asks for it,
    /// which makes a period longer or shorter than it should be, and does no harm. The clock is asked where a period
    /// ends.
    pub fn pick_offer(
        &mut self,
        kind: BufferKind,
        bytes: u64,
        request: u32,
        now_ns: impl FnOnce() -> u64,
        under_way: impl FnOnce(u32) -> bool,
    ) -> Method {
        self.offers[kind as usize].pick(bytes, request, now_ns, under_way)
    }
}

/// Messages that count together, and since when.
#[derive(Clone, Copy)]
struct Period {
    method: Method,
    since_ns: u64,
    messages: u32,
    bytes: u64,
}

impl Period {
    fn begin(method: Method, now_ns: u64) -> Self {
        Self { method, since_ns: now_ns, messages: 0, bytes: 0 }
    }

    fn end(&self, class: &mut LengthClass, now_ns: u64) {
        if self.bytes > 0 {
            class.record(self.method, per_byte(now_ns.saturating_sub(self.since_ns), self.bytes));
        }
    }
}

/// What a receiver has learned, and the period that is under way.
#[derive(Default)]
struct Grants {
    classes: [LengthClass; CLASSES],
    under_way: u32,
    period: Option<Granting>,
}

struct Granting {
    period: Period,
    class: usize,
    /// Something in it makes it no sample: another length, a lost peer.
    spoilt: bool,
}

impl Grants {
    fn begin(&mut self, bytes: u64, now_ns: u64) -> Method {
        self.under_way += 1;
        let class = class_of(bytes);
        if self.period.as_ref().is_some_and(|granting| granting.period.messages >= MOST_MESSAGES) {
            self.close(now_ns);
        }
        let classes = &mut self.classes;
        let granting = self.period.get_or_insert_with(|| {
            let period = Period::begin(classes[class].pick(), now_ns);
            Granting { period, class, spoilt: false }
        });
        granting.period.messages += 1;
        if granting.class == class {
            return granting.period.method;
        }
        granting.spoilt = true;
        self.classes[class].settled()
    }

    fn end(&mut self, bytes: u64, now_ns: u64) {
        self.under_way = self.under_way.saturating_sub(1);
        if let Some(granting) = &mut self.period {
            granting.period.bytes += bytes;
        }
        if self.under_way == 0 {
            self.close(now_ns);
        }
    }

    fn abandon(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
        if let Some(granting) = &mut self.period {
            granting.spoilt = true;
        }
        if self.under_way == 0 {
            self.period = None;
        }
    }

    fn close(&mut self, now_ns: u64) {
        if let Some(Granting { period, class, spoilt: false }) = self.period.take() {
            period.end(&mut self.classes[class], now_ns);
        }
    }
}

/// What a sender has learned, by length.
#[derive(Default)]
struct Offers {
    paces: [LearnedPace; CLASSES],
}

#[derive(Clone, Copy, Default)]
struct LearnedPace {
    class: LengthClass,
    period: Option<Period>,
    last: u32,
}

impl Offers {
    fn pick(
        &mut self,
        bytes: u64,
        request: u32,
        now_ns: impl FnOnce() -> u64,
        under_way: impl FnOnce(u32) -> bool,
    ) -> Method {
        let LearnedPace { class, period, last } = &mut self.paces[class_of(bytes)];
        let goes_on = period.filter(|period| match period.messages {
            MOST_MESSAGES.. => false,
            messages => messages < PERIOD_MESSAGES || (*last != request && under_way(*last)),
        });
        let mut now = goes_on.unwrap_or_else(|| {
            let now_ns = now_ns();
            period.iter().for_each(|period| period.end(class, now_ns));
            Period::begin(class.pick(), now_ns)
        });
        now.messages += 1;
        now.bytes += bytes;
        (*period, *last) = (Some(now), request);
        now.method
    }
}

#[cfg(test)]
mod tests;
