//! Messages that may be sent without asking, and are offered all the same where that is faster.
//!
//! A sender that *offers* a message lets the receiver copy it out of its memory at once, whether a receive is there or not:
//! the promise of a message sent without asking, that it needs nothing but a receiver which polls, holds. What it costs the
//! sender is a wait. As in [`super::choice`] it depends on machine and program which is faster, so the sender measures how
//! long its offers take, the receiver how long streams take it, and tells with each answer to an offer. A receiver that
//! computes makes offers slow, and so their sender stops making them.

use super::choice::{CLASSES, Class, Recent, TRIAL, Way, class_of, per_byte};
use crate::api::RequestId;

/// Of so many streams one is timed: a look at the clock is not free beside a short stream.
const STREAMS_PER_LOOK: u32 = 16;

/// An offer that has taken longer is not waited for to judge it.
const SLOW_NS: u64 = 1_000_000;

/// The offer that is being timed.
#[derive(Clone, Copy)]
struct Timed {
    request: RequestId,
    bytes: u64,
    since_ns: u64,
}

/// What a process has learnt as a sender and as a receiver.
#[derive(Default)]
pub(super) struct Offers {
    sent: [Class; CLASSES],
    timed: Option<Timed>,
    received: [Recent; CLASSES],
    /// Streams until one is timed that would not be for other reasons, and streams that are timed for them.
    until_look: [u32; CLASSES],
    looks: [u32; CLASSES],
}

impl Offers {
    /// Sender: whether a message is to be offered.
    pub fn pick(&mut self, bytes: u64) -> bool {
        self.sent[class_of(bytes)].pick() == Way::Copy
    }

    /// Sender: an offer has left. One at a time is timed.
    pub fn begin(&mut self, request: RequestId, bytes: u64, now_ns: impl FnOnce() -> u64) {
        let Some(timed) = &self.timed else {
            self.timed = Some(Timed { request, bytes, since_ns: now_ns() });
            return;
        };
        let now_ns = now_ns();
        let ns = now_ns.saturating_sub(timed.since_ns);
        if ns > SLOW_NS {
            // It has been slow enough to be judged.
            self.sent[class_of(timed.bytes)].record(Way::Copy, per_byte(ns, timed.bytes));
            self.timed = Some(Timed { request, bytes, since_ns: now_ns });
        }
    }

    /// Sender: the receiver has an offered message. `told` is what streams of its length take there, or 0.
    pub fn end(&mut self, request: RequestId, told: u64, now_ns: impl FnOnce() -> u64) {
        let Some(timed) = self.timed.take_if(|timed| timed.request == request) else { return };
        let class = &mut self.sent[class_of(timed.bytes)];
        class.record(Way::Copy, per_byte(now_ns().saturating_sub(timed.since_ns), timed.bytes));
        if told > 0 {
            class.record(Way::Stream, told);
        }
    }

    /// Sender: the receiver cannot copy.
    pub fn refuse(&mut self, request: RequestId) {
        if let Some(timed) = self.timed.take_if(|timed| timed.request == request) {
            let class = &mut self.sent[class_of(timed.bytes)];
            class.record(Way::Copy, u64::MAX);
            class.record(Way::Stream, 1);
        }
    }

    /// Sender: an offer has come to nothing.
    pub fn abandon(&mut self, request: RequestId) {
        self.timed.take_if(|timed| timed.request == request);
    }

    /// Receiver: whether a stream of a message that came without asking is to be timed.
    pub fn times(&mut self, bytes: u64) -> bool {
        let class = class_of(bytes);
        if self.looks[class] > 0 {
            self.looks[class] -= 1;
            return true;
        }
        self.until_look[class] = self.until_look[class].checked_sub(1).unwrap_or(STREAMS_PER_LOOK);
        self.until_look[class] == 0 || self.received[class].median().is_none()
    }

    /// Receiver: so long it took from the first of so many packets on. The sender began to write that one earlier.
    pub fn streamed(&mut self, bytes: u64, ns: u64, packets: u64) {
        self.received[class_of(bytes)].push(per_byte(ns + ns / packets.max(1), bytes));
    }

    /// Receiver: an offer is answered; what a stream of that length takes, or 0 if that is not known. Streams are rare now,
    /// so the next ones are timed.
    pub fn tell(&mut self, bytes: u64) -> u64 {
        let class = class_of(bytes);
        self.looks[class] = TRIAL;
        self.received[class].median().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 64 << 10;

    /// A sender and a receiver in one; answers how many of the messages were offered.
    fn exchange(offers: &mut Offers, messages: u32, stream_ns: u64, offer_ns: u64) -> u32 {
        (0..messages)
            .filter(|number| {
                let request = RequestId(*number);
                let offered = offers.pick(BYTES);
                if offered {
                    offers.begin(request, BYTES, || 0);
                    let told = offers.tell(BYTES);
                    offers.end(request, told, || offer_ns);
                } else if offers.times(BYTES) {
                    offers.streamed(BYTES, stream_ns * 4 / 5, 4);
                }
                offered
            })
            .count() as u32
    }

    #[test]
    fn offers_where_that_is_faster() {
        let mut offers = Offers::default();
        let offered = exchange(&mut offers, 10_000, 7_000, 5_000);
        assert!(offered > 9_900, "{offered} of 10000 were offered");
        let offered = exchange(&mut offers, 100_000, 7_000, 20_000);
        assert!(offered < 200, "{offered} of 100000 were offered after offers had become slow");
    }

    #[test]
    fn streams_become_fast() {
        let mut offers = Offers::default();
        exchange(&mut offers, 10_000, 7_000, 5_000);
        let offered = exchange(&mut offers, 20_000, 1_500, 5_000);
        assert!(offered < 8_500, "{offered} of 20000 were offered after streams had become fast");
    }

    #[test]
    fn a_receiver_that_cannot_copy_is_hardly_asked() {
        let mut offers = Offers::default();
        let mut asked = 0;
        for number in 0..10_000 {
            if offers.pick(BYTES) {
                asked += 1;
                offers.begin(RequestId(number), BYTES, || 0);
                offers.refuse(RequestId(number));
            }
        }
        assert!(asked < 30, "{asked} of 10000");
    }

    #[test]
    fn only_the_timed_offer_ends() {
        let mut offers = Offers::default();
        offers.begin(RequestId(1), BYTES, || 0);
        offers.begin(RequestId(2), BYTES, || SLOW_NS);
        offers.end(RequestId(2), 0, || panic!("not this one"));
        offers.abandon(RequestId(1));
        offers.end(RequestId(1), 0, || panic!("abandoned"));
    }

    #[test]
    fn an_offer_that_nobody_answers_is_slow_and_not_the_last_that_is_timed() {
        let mut offers = Offers::default();
        offers.begin(RequestId(1), BYTES, || 0);
        offers.begin(RequestId(2), BYTES, || SLOW_NS + 1);
        offers.end(RequestId(1), 0, || panic!("no longer timed"));
        let mut ended = false;
        offers.end(RequestId(2), 0, || {
            ended = true;
            SLOW_NS + 2
        });
        assert!(ended);
    }
}
