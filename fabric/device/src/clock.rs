//! The monotonic clock, read for the most part by the processor's counter, which takes less than half as long.
//!
//! The kernel's clock is asked every [`MOST_TICKS`], some 50 to 250 microseconds. In between time goes on by the
//! counter, at the pace that the two have had in the last second. So whatever the counter does, be it another one on
//! each core or one that begins anew, time is off by no more than such a span. It never goes back.

use crate::sys::{now_ns, ticks};

/// After so many ticks the kernel's clock is asked again.
const MOST_TICKS: u64 = 1 << 18;
/// The pace is known once the kernel's clock has gone so far.
const LEAST_NS: u64 = 2_000_000;
/// And is measured from a later begin after this.
const MOST_NS: u64 = 1_000_000_000;
/// A pace that differs by more than one part of so many from what it was is measured anew.
const STEADY: u64 = 8;
/// The pace is nanoseconds of two to so many ticks, and a tick counts as one nanosecond at most: with a slower counter
/// time goes by looks.
const SHIFT: u32 = 32;

/// The clock, for one reader at a time.
pub struct Clock {
    /// Counter and clock when the pace began to be measured.
    first: (u64, u64),
    /// Both at the last look.
    looked: (u64, u64),
    /// 0: not known.
    pace: u64,
    told_ns: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(ticks(), now_ns())
    }
}

impl Clock {
    fn new(ticks: u64, now_ns: u64) -> Self {
        Self { first: (ticks, now_ns), looked: (ticks, now_ns), pace: 0, told_ns: now_ns }
    }

    /// Nanoseconds of the monotonic clock.
    #[inline]
    pub fn now_ns(&mut self) -> u64 {
        self.at(ticks())
    }

    /// The same, where the counter has been read only just.
    #[inline]
    pub fn at(&mut self, ticks: u64) -> u64 {
        self.tell(ticks, || {
            // In this order: should somebody else have the core in between, time is late for a while. Were it early, it
            // would have to stand still after, and round trips would take no time.
            let now_ns = now_ns();
            (self::ticks(), now_ns)
        })
    }

    /// `ask` answers the counter and the kernel's clock.
    #[inline]
    fn tell(&mut self, ticks: u64, ask: impl FnOnce() -> (u64, u64)) -> u64 {
        let gone = ticks.wrapping_sub(self.looked.0);
        if gone >= MOST_TICKS || self.pace == 0 {
            let (ticks, now_ns) = ask();
            self.look(ticks, now_ns);
        } else {
            self.told_ns = self.told_ns.max(self.looked.1 + ((gone * self.pace) >> SHIFT));
        }
        self.told_ns
    }

    #[cold]
    fn look(&mut self, ticks: u64, now_ns: u64) {
        self.looked = (ticks, now_ns);
        self.told_ns = self.told_ns.max(now_ns);
        let (gone, gone_ns) = (ticks.wrapping_sub(self.first.0), now_ns.saturating_sub(self.first.1));
        if gone_ns < LEAST_NS {
            return;
        }
        let pace = (u128::from(gone_ns) << SHIFT) / u128::from(gone.max(1));
        let pace = u64::try_from(pace).unwrap_or(0).clamp(1, 1 << SHIFT);
        let is_steady = self.pace == 0 || pace.abs_diff(self.pace) <= self.pace / STEADY;
        self.pace = if is_steady { pace } else { 0 };
        if !is_steady || gone_ns >= MOST_NS {
            self.first = self.looked;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of three ticks in a nanosecond.
    const TICKS: u64 = 3;

    /// The clock that was asked until the pace is known; the time.
    fn settled() -> (Clock, u64) {
        let (mut clock, mut now) = (Clock::new(u64::MAX - 1000, 5_000), 5_000);
        while clock.pace == 0 {
            now += 50_000;
            assert_eq!(
                clock.tell(counter(now), || (counter(now), now)),
                now,
                "the kernel's own while the pace is not known"
            );
        }
        assert!((LEAST_NS..LEAST_NS + 100_000).contains(&(now - 5_000)));
        (clock, now)
    }

    fn counter(now_ns: u64) -> u64 {
        (u64::MAX - 1000).wrapping_add(TICKS * (now_ns - 5_000))
    }

    #[test]
    fn between_looks_time_goes_by_the_counter() {
        let (mut clock, begin) = settled();
        for now in (begin..begin + MOST_TICKS / TICKS).step_by(777) {
            let told = clock.tell(counter(now), || panic!("nobody need be asked"));
            assert!(told.abs_diff(now) <= 1, "{told} at {now}");
        }
        let late = begin + 10 * MOST_TICKS;
        assert_eq!(clock.tell(counter(late), || (counter(late), late)), late);
    }

    #[test]
    fn a_counter_that_jumps_moves_time_by_a_span_at_most_and_never_back() {
        let (mut clock, mut now) = settled();
        let (mut told, mut seed) = (now, 7u64);
        for _ in 0..100_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            now += seed >> 50;
            let ticks = if seed >> 40 & 7 == 0 { seed } else { counter(now) };
            let next = clock.tell(ticks, || (ticks, now));
            assert!(next >= told && next <= now + MOST_TICKS, "{told} {next} at {now}");
            assert!(now - next.min(now) <= MOST_TICKS, "{next} at {now}");
            told = next;
        }
    }

    /// Who has the core for a while between clock and counter.
    #[test]
    fn a_late_look_makes_time_late_and_not_early() {
        let (mut clock, begin) = settled();
        let (now, away) = (begin + 100_000, 20_000);
        assert_eq!(clock.tell(counter(now), || (counter(now + away), now)), now);
        for later in [away, away + 5_000, away + 10_000] {
            let told = clock.tell(counter(now + later), || panic!("not yet"));
            assert!(told.abs_diff(now + later - away) <= 200, "{told}: it goes on all the time");
        }
    }

    #[test]
    fn a_pace_that_changes_is_measured_anew() {
        let (mut clock, begin) = settled();
        let slow = |now: u64| counter(begin).wrapping_add(now - begin);
        let mut now = begin;
        while now < begin + 3 * MOST_NS {
            now += 300_000;
            clock.tell(slow(now), || (slow(now), now));
        }
        assert_eq!(clock.pace, 1 << SHIFT);
        assert!(clock.tell(slow(now + 1000), || panic!("it is known")).abs_diff(now + 1000) <= 1);
    }

    #[test]
    fn it_is_the_kernels_clock() {
        let (mut clock, mut last) = (Clock::default(), 0);
        let end = now_ns() + 10 * LEAST_NS;
        while last < end {
            let before = now_ns();
            let told = clock.now_ns();
            // Between the two the kernel may have given the core to somebody else.
            let after = now_ns();
            assert!(told >= last && told + 1_000_000 > before && told < after + 1_000_000, "{before} {told} {after}");
            last = told;
        }
        assert!(clock.pace > 0);
    }
}
