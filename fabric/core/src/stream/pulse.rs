//! Whether the other side of a memory is there still, as one sees who looks now and then at a word that the other one
//! changes.
//!
//! Looks are counted, not only time: where this process itself stood still (a machine that slept, a group of processes
//! that was frozen) the other one did, too, and has had no time to say anything.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Between two looks that count.
const LOOK_NS: u64 = 900_000_000;
/// So many looks in a row that found nothing new mean that nobody is there.
const MOST_LOOKS: u32 = 5;

pub struct Pulse {
    beat: AtomicU64,
    looked_at: AtomicU64,
    same: AtomicU32,
}

impl Pulse {
    pub const fn new() -> Self {
        Self { beat: AtomicU64::new(0), looked_at: AtomicU64::new(0), same: AtomicU32::new(0) }
    }

    /// A look at the time `now_ns`, which finds `beat`. True for those that count and find that nobody is there.
    pub fn has_stopped(&self, now_ns: u64, beat: impl FnOnce() -> u64) -> bool {
        let before = self.looked_at.load(Ordering::Relaxed);
        if now_ns.saturating_sub(before) < LOOK_NS {
            return false;
        }
        // Another thread looks just now.
        if self.looked_at.compare_exchange(before, now_ns, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        let beat = beat();
        if self.beat.swap(beat, Ordering::Relaxed) != beat {
            self.same.store(0, Ordering::Relaxed);
            return false;
        }
        let same = self.same.load(Ordering::Relaxed).saturating_add(1);
        self.same.store(same, Ordering::Relaxed);
        same >= MOST_LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn who_says_nothing_for_some_seconds_is_gone_until_he_says_something() {
        let pulse = Pulse::new();
        let found: Vec<bool> = (1..9).map(|second| pulse.has_stopped(second * SECOND_NS, || 7)).collect();
        assert_eq!(found, [false, false, false, false, false, true, true, true]);
        assert!(!pulse.has_stopped(9 * SECOND_NS, || 8) && !pulse.has_stopped(10 * SECOND_NS, || 8));
    }

    #[test]
    fn who_speaks_now_and_then_is_there() {
        let pulse = Pulse::new();
        assert!((1..1000).all(|second| !pulse.has_stopped(second * SECOND_NS, || second / 4)));
    }

    #[test]
    fn many_looks_at_once_and_a_clock_that_jumps_count_once() {
        let pulse = Pulse::new();
        assert!((0..1000).all(|look| !pulse.has_stopped(SECOND_NS + look * 1000, || 7)));
        assert!(!pulse.has_stopped(1000 * SECOND_NS, || 7), "we may have stood still as long");
    }
}
