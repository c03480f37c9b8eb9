//! Which of two methods is faster for messages of about one length: both are tried, and what was faster is gone on
//! with.
//!
//! Both are tried when a length is new, and now and then after, more and more rarely. At the end of a trial the better
//! median of the last three samples decides, so one odd sample means nothing.

/// Lengths are told apart by powers of two from this one on.
const SHORTEST_LOG2: u32 = 10;
pub(super) const CLASSES: usize = 17;
/// Periods of a trial, one after the other: the first copy of a buffer may find it in the other core's cache, and the
/// next ones not, if it has not been written in between. What counts is how the program goes on.
const TRIAL: u32 = 3;
/// Periods between two trials of the other method, at first and at last.
const FIRST_GAP: u32 = 16;
const LAST_GAP: u32 = 4096;

/// By which of two methods bytes move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// In pieces through what both share, as the sender writes them.
    Stream,
    /// Out of the sender's memory, once.
    Copy,
}

impl Method {
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
pub(super) struct LengthClass {
    stream: Recent,
    copy: Recent,
    method: Method,
    /// How often that method is still picked before the other one is tried, or, in a trial, before it ends.
    left: u32,
    in_trial: bool,
    gap: u32,
}

impl Default for LengthClass {
    fn default() -> Self {
        let (stream, copy) = (Recent::default(), Recent::default());
        Self { stream, copy, method: Method::Stream, left: TRIAL, in_trial: false, gap: TRIAL }
    }
}

impl LengthClass {
    pub fn median(&self, method: Method) -> Option<u64> {
        match method {
            Method::Stream => self.stream.median(),
            Method::Copy => self.copy.median(),
        }
    }

    /// Whether a method is faster than the other one, and not by a little: the other side makes its choice, too, and
    /// its trials are in our samples.
    fn is_faster(&self, method: Method) -> bool {
        let (this, other) = (self.median(method), self.median(method.other()));
        this.zip(other).is_some_and(|(this, other)| this < other - other / 16)
    }

    /// The method that is not on trial.
    pub fn settled(&self) -> Method {
        if self.in_trial { self.method.other() } else { self.method }
    }

    pub fn pick(&mut self) -> Method {
        if self.in_trial && self.left == 0 {
            self.end_trial();
        } else if !self.in_trial && (self.left == 0 || self.has_become_slow()) {
            (self.method, self.left, self.in_trial) = (self.method.other(), TRIAL, true);
        }
        self.left -= 1;
        self.method
    }

    /// What the other method took is known from its last trial. That may be long ago, so it gets another one and no
    /// more.
    fn has_become_slow(&self) -> bool {
        self.gap - self.left >= FIRST_GAP && self.is_faster(self.method.other())
    }

    fn end_trial(&mut self) {
        self.in_trial = false;
        if self.is_faster(self.method) {
            self.gap = FIRST_GAP;
        } else {
            self.method = self.method.other();
            self.gap = (2 * self.gap).clamp(FIRST_GAP, LAST_GAP);
        }
        self.left = self.gap;
    }

    pub fn record(&mut self, method: Method, sample: u64) {
        match method {
            Method::Stream => self.stream.push(sample),
            Method::Copy => self.copy.push(sample),
        }
    }
}

/// The index of a length's class.
pub(super) fn class_of(bytes: u64) -> usize {
    (bytes.max(1).ilog2().saturating_sub(SHORTEST_LOG2) as usize).min(CLASSES - 1)
}

/// A sample: picoseconds a byte.
pub(super) fn per_byte(ns: u64, bytes: u64) -> u64 {
    ns.saturating_mul(1000) / bytes.max(1)
}
