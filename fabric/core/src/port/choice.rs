//! Which way long messages go: streamed through shared memory, or copied out of the sender's memory.
//!
//! Neither is faster everywhere. A stream lives on the time that a cache line takes from core to core, a copy on what the
//! kernel takes to reach into another process; machines differ by a factor of four in both directions, and a virtual one
//! changes while it runs. A sender that computes holds up a stream, but no copy. So the receiver, who decides, measures:
//! a *period* begins when a long message is granted while none is under way, and ends when none is, or after
//! [`PERIOD_MESSAGES`]. All messages of a period that are about as long as its first go the same way, and what a KiB of them
//! took is a sample. Both ways are tried when a length is new and now and then after, more and more rarely. At the end of a
//! trial the better median of the last three samples decides, so one odd sample means nothing.

/// Lengths are told apart by powers of two from this one on.
const SHORTEST_LOG2: u32 = 10;
pub(super) const CLASSES: usize = 17;
/// Periods of a trial, one after the other: the first copy of a buffer may find it in the other core's cache, and the next
/// ones not, if it has not been written in between. What counts is how the program goes on.
const TRIAL: u32 = 3;
/// Periods between two trials of the other way, at first and at last.
const FIRST_GAP: u32 = 16;
const LAST_GAP: u32 = 4096;
/// Messages after which a period ends although some are under way.
const PERIOD_MESSAGES: u32 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Stream,
    Copy,
}

impl Way {
    fn other(self) -> Self {
        match self {
            Self::Stream => Self::Copy,
            Self::Copy => Self::Stream,
        }
    }
}

/// The last three samples, picoseconds a byte.
#[derive(Clone, Copy, Default)]
struct Recent {
    samples: [u64; 3],
    taken: u32,
}

impl Recent {
    fn push(&mut self, sample: u64) {
        self.samples[self.taken as usize % 3] = sample;
        self.taken = self.taken.wrapping_add(1).max(1);
    }

    fn median(&self) -> Option<u64> {
        let [a, b, c] = self.samples;
        (self.taken >= TRIAL).then(|| a.max(b).min(a.min(b).max(c)))
    }
}

/// Messages of about one length.
#[derive(Clone, Copy)]
pub(super) struct Class {
    stream: Recent,
    copy: Recent,
    way: Way,
    /// How often that way is still picked before the other one is tried, or, in a trial, before it ends.
    left: u32,
    in_trial: bool,
    gap: u32,
}

impl Default for Class {
    fn default() -> Self {
        let (stream, copy) = (Recent::default(), Recent::default());
        Self { stream, copy, way: Way::Stream, left: TRIAL, in_trial: false, gap: TRIAL }
    }
}

impl Class {
    fn median(&self, way: Way) -> Option<u64> {
        match way {
            Way::Stream => self.stream.median(),
            Way::Copy => self.copy.median(),
        }
    }

    /// Whether a way is faster than the other one, and not by a little: the other side makes its choice, too, and its
    /// trials are in our samples.
    fn is_faster(&self, way: Way) -> bool {
        let (this, other) = (self.median(way), self.median(way.other()));
        this.zip(other).is_some_and(|(this, other)| this < other - other / 16)
    }

    /// The way that is not on trial.
    fn settled(&self) -> Way {
        if self.in_trial { self.way.other() } else { self.way }
    }

    pub fn pick(&mut self) -> Way {
        if self.in_trial && self.left == 0 {
            self.end_trial();
        } else if !self.in_trial && (self.left == 0 || self.has_become_slow()) {
            (self.way, self.left, self.in_trial) = (self.way.other(), TRIAL, true);
        }
        self.left -= 1;
        self.way
    }

    /// What the other way took is known from its last trial. That may be long ago, so it gets another one and no more.
    fn has_become_slow(&self) -> bool {
        self.gap - self.left >= FIRST_GAP && self.is_faster(self.way.other())
    }

    fn end_trial(&mut self) {
        self.in_trial = false;
        if self.is_faster(self.way) {
            self.gap = FIRST_GAP;
        } else {
            self.way = self.way.other();
            self.gap = (2 * self.gap).clamp(FIRST_GAP, LAST_GAP);
        }
        self.left = self.gap;
    }

    pub fn record(&mut self, way: Way, sample: u64) {
        match way {
            Way::Stream => self.stream.push(sample),
            Way::Copy => self.copy.push(sample),
        }
    }
}

/// See the module.
struct Period {
    class: usize,
    way: Way,
    since_ns: u64,
    messages: u32,
    bytes: u64,
    /// Something in it makes it no sample: another length, a lost peer.
    spoilt: bool,
}

/// What has been learnt, and the period that is under way. Clocks are the caller's.
#[derive(Default)]
pub(super) struct Choice {
    classes: [Class; CLASSES],
    under_way: u32,
    period: Option<Period>,
}

/// The index of a length's class.
pub(super) fn class_of(bytes: u64) -> usize {
    (bytes.max(1).ilog2().saturating_sub(SHORTEST_LOG2) as usize).min(CLASSES - 1)
}

/// A sample.
pub(super) fn per_byte(ns: u64, bytes: u64) -> u64 {
    ns.saturating_mul(1000) / bytes.max(1)
}

impl Choice {
    /// A message is granted; answers which way. [`Self::end`] or [`Self::abandon`] follows.
    pub fn begin(&mut self, bytes: u64, now_ns: u64) -> Way {
        self.under_way += 1;
        let class = class_of(bytes);
        if self.period.as_ref().is_some_and(|period| period.messages >= PERIOD_MESSAGES) {
            self.close(now_ns);
        }
        match &mut self.period {
            Some(period) if period.class == class => {
                period.messages += 1;
                period.way
            }
            Some(period) => {
                period.spoilt = true;
                period.messages += 1;
                self.classes[class].settled()
            }
            None => {
                let way = self.classes[class].pick();
                self.period = Some(Period { class, way, since_ns: now_ns, messages: 1, bytes: 0, spoilt: false });
                way
            }
        }
    }

    /// All bytes of a message have come.
    pub fn end(&mut self, bytes: u64, now_ns: u64) {
        self.under_way = self.under_way.saturating_sub(1);
        if let Some(period) = &mut self.period {
            period.bytes += bytes;
        }
        if self.under_way == 0 {
            self.close(now_ns);
        }
    }

    /// A message will not come, or goes another way than it was told.
    pub fn abandon(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
        if let Some(period) = &mut self.period {
            period.spoilt = true;
        }
        if self.under_way == 0 {
            self.period = None;
        }
    }

    fn close(&mut self, now_ns: u64) {
        let Some(period) = self.period.take() else { return };
        if !period.spoilt && period.bytes > 0 {
            let ns = now_ns.saturating_sub(period.since_ns);
            self.classes[period.class].record(period.way, per_byte(ns, period.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 256 << 10;

    /// Messages one after the other that take so long by each way; answers how many of them were copied.
    fn exchange(choice: &mut Choice, messages: u32, stream_ns: u64, copy_ns: u64) -> u32 {
        let mut now = 0;
        (0..messages)
            .filter(|_| {
                let way = choice.begin(BYTES, now);
                now += if way == Way::Copy { copy_ns } else { stream_ns };
                choice.end(BYTES, now);
                way == Way::Copy
            })
            .count() as u32
    }

    #[test]
    fn goes_the_faster_way_and_seldom_tries_the_other() {
        let mut choice = Choice::default();
        assert_eq!(exchange(&mut choice, 6, 10_000, 20_000), 3, "both are tried when the length is new");
        let copied = exchange(&mut choice, 100_000, 10_000, 20_000);
        assert!((50..130).contains(&copied), "{copied} of 100000 went the slower way");
    }

    #[test]
    fn follows_a_machine_that_changes() {
        let mut choice = Choice::default();
        exchange(&mut choice, 10_000, 10_000, 20_000);
        let copied = exchange(&mut choice, 10_000, 40_000, 20_000);
        assert!(copied > 9_900, "{copied} of 10000 went the faster way after the other had become slow");
        let copied = exchange(&mut choice, 10_000, 10_000, 20_000);
        assert!(copied < 5_000, "{copied} of 10000 went the slower way after the other had become fast");
    }

    #[test]
    fn one_odd_sample_changes_nothing() {
        let mut choice = Choice::default();
        exchange(&mut choice, 10, 10_000, 20_000);
        exchange(&mut choice, 1, 10_000_000, 20_000);
        assert_eq!(exchange(&mut choice, 1, 10_000, 20_000), 0);
    }

    /// A program that does not write its buffer: a copy is slow only where the message before was no copy.
    #[test]
    fn a_trial_sees_how_it_would_go_on() {
        let (mut choice, mut now, mut last, mut copied) = (Choice::default(), 0, Way::Stream, 0);
        for _ in 0..10_000 {
            let way = choice.begin(BYTES, now);
            now += match (way, last) {
                (Way::Stream, _) => 7_500,
                (Way::Copy, Way::Stream) => 20_000,
                (Way::Copy, Way::Copy) => 4_500,
            };
            choice.end(BYTES, now);
            copied += u32::from(way == Way::Copy);
            last = way;
        }
        assert!(copied > 9_900, "{copied} of 10000 were copied");
    }

    #[test]
    fn a_window_of_messages_is_one_sample() {
        let mut choice = Choice::default();
        for window in 0..50 {
            let ways: Vec<Way> = (0..20).map(|_| choice.begin(BYTES, window * 1_000_000)).collect();
            assert!(ways.iter().all(|way| *way == ways[0]), "one window, one way");
            let ns = if ways[0] == Way::Copy { 100_000 } else { 400_000 };
            (0..20).for_each(|_| choice.end(BYTES, window * 1_000_000 + ns));
            let tried = window < 3 || (22..25).contains(&window);
            assert_eq!(ways[0] == Way::Copy, !tried, "window {window}");
        }
    }

    #[test]
    fn messages_without_end_are_decided_anew() {
        let mut choice = Choice::default();
        let (mut now, mut last) = (0, Way::Stream);
        choice.begin(BYTES, now);
        for _ in 0..2_000 {
            last = choice.begin(BYTES, now);
            now += if last == Way::Copy { 5_000 } else { 10_000 };
            choice.end(BYTES, now);
        }
        assert_eq!(last, Way::Copy);
    }

    #[test]
    fn a_lost_peer_spoils_the_period() {
        let mut choice = Choice::default();
        for _ in 0..100 {
            choice.begin(BYTES, 0);
            choice.begin(BYTES, 0);
            choice.abandon();
            choice.end(BYTES, 1);
        }
        let class = &choice.classes[class_of(BYTES)];
        assert!(class.median(Way::Stream).is_none() && class.median(Way::Copy).is_none());
        assert_eq!(choice.under_way, 0);
    }
}
