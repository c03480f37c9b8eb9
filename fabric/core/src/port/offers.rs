//! Messages that may be sent without asking, and are offered all the same where that is faster.
//!
//! A sender that *offers* a message lets the receiver copy it out of its memory at once, whether a receive is there or not:
//! the promise of a message sent without asking, that it needs nothing but a receiver which polls, holds. What it costs the
//! sender is a wait. As in [`super::choice`] it depends on machine and program which is faster, and on both sides at once:
//! who copies for another one sends nothing meanwhile, and a receiver that computes keeps its senders waiting. So a sender
//! measures what counts in the end, how fast its program goes on: the time from one message to another one of about that
//! length, so many later, is a sample for the way that those between have gone.

use super::choice::{CLASSES, Class, Way, class_of, per_byte};
use crate::api::RequestId;

/// Messages of a period. It goes on while the last one is under way: in a window of many, the last ones pay for all.
const PERIOD_MESSAGES: u32 = 8;
/// Here it ends in any case.
const MOST_MESSAGES: u32 = 64;

/// What a sender has learnt of messages of about one length, and the period that is under way.
#[derive(Clone, Copy, Default)]
struct Pace {
    class: Class,
    offers: bool,
    since_ns: u64,
    messages: u32,
    bytes: u64,
    last: Option<RequestId>,
}

impl Pace {
    fn begin_period(&mut self, now_ns: u64) {
        if self.messages > 0 {
            let way = if self.offers { Way::Copy } else { Way::Stream };
            self.class.record(way, per_byte(now_ns.saturating_sub(self.since_ns), self.bytes));
        }
        self.offers = self.class.pick() == Way::Copy;
        (self.since_ns, self.messages, self.bytes) = (now_ns, 0, 0);
    }
}

/// What a process has learnt as a sender.
#[derive(Default)]
pub(super) struct Offers {
    paces: [Pace; CLASSES],
}

impl Offers {
    /// Whether a message is to be offered; `under_way` tells of an earlier one whether it still is.
    pub fn pick(&mut self, bytes: u64, now_ns: u64, under_way: impl FnOnce(RequestId) -> bool) -> bool {
        let pace = &mut self.paces[class_of(bytes)];
        let may_end = match pace.messages {
            0 | MOST_MESSAGES.. => true,
            messages => messages >= PERIOD_MESSAGES && !pace.last.is_some_and(under_way),
        };
        if may_end {
            pace.begin_period(now_ns);
        }
        pace.messages += 1;
        pace.bytes += bytes;
        pace.offers
    }

    /// The message that was picked for has this request. It may be another one's by the time somebody asks for it, which
    /// makes a period longer or shorter than it should be, and does no harm.
    pub fn note(&mut self, bytes: u64, request: RequestId) {
        self.paces[class_of(bytes)].last = Some(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 64 << 10;

    /// A program that sends one message after the other, and does something for `pause_ns` before each; answers how many
    /// were offered.
    fn exchange(
        offers: &mut Offers,
        now: &mut u64,
        messages: u32,
        stream_ns: u64,
        offer_ns: u64,
        pause_ns: u64,
    ) -> u32 {
        (0..messages)
            .filter(|_| {
                *now += pause_ns;
                let offered = offers.pick(BYTES, *now, |_| false);
                *now += if offered { offer_ns } else { stream_ns };
                offered
            })
            .count() as u32
    }

    #[test]
    fn offers_where_that_is_faster() {
        let (mut offers, mut now) = (Offers::default(), 0);
        let offered = exchange(&mut offers, &mut now, 10_000, 7_000, 5_000, 100);
        assert!(offered > 9_800, "{offered} of 10000 were offered");
        let offered = exchange(&mut offers, &mut now, 100_000, 7_000, 20_000, 100);
        assert!(offered < 1_000, "{offered} of 100000 were offered after offers had become slow");
    }

    #[test]
    fn streams_become_fast() {
        let (mut offers, mut now) = (Offers::default(), 0);
        exchange(&mut offers, &mut now, 10_000, 7_000, 5_000, 100);
        let offered = exchange(&mut offers, &mut now, 80_000, 1_500, 5_000, 100);
        assert!(offered < 40_000, "{offered} of 80000 were offered after streams had become fast");
    }

    #[test]
    fn where_it_makes_no_difference_nothing_is_offered() {
        let (mut offers, mut now) = (Offers::default(), 0);
        let offered = exchange(&mut offers, &mut now, 100_000, 7_000, 6_800, 1_000_000);
        assert!(offered < 1_000, "{offered} of 100000");
    }

    /// Whoever waits does so behind the last message of a window, which may be offered for another reason than the first.
    #[test]
    fn a_window_is_one_period() {
        let (mut offers, mut now, mut offered) = (Offers::default(), 0, 0);
        for _ in 0..1_000 {
            let mut ways = Vec::new();
            for message in 0..20 {
                ways.push(offers.pick(BYTES, now, |last| last.0 != 19));
                offers.note(BYTES, RequestId(message));
                now += 10;
            }
            assert!(ways.iter().all(|way| *way == ways[0]), "one window, one way");
            now += if ways[0] { 60_000 } else { 100_000 };
            offered += u32::from(ways[0]);
        }
        assert!(offered > 950, "{offered} of 1000 windows");
    }

    #[test]
    fn messages_without_end_are_decided_anew() {
        let (mut offers, mut now, mut offered) = (Offers::default(), 0, 0);
        for _ in 0..10_000 {
            let way = offers.pick(BYTES, now, |_| true);
            offers.note(BYTES, RequestId(0));
            now += if way { 5_000 } else { 10_000 };
            offered += u32::from(way);
        }
        assert!(offered > 9_000, "{offered} of 10000");
    }
}
