//! How long a call spins before it sleeps.
//!
//! For the whole process: a call spins up to the bound until that has not helped a few times in a row, or until handing
//! the core over took long, because others want it. Then calls sleep at once, and now and then try again.
//!
//! Two ends that both sleep wait much longer for each other than two that spin: each wait then has a wake-up of the
//! other one in it. So one wait in vain says little, for it makes the next one of the other end longer; and short
//! trials never see that it could be otherwise, so some trials are long enough for the other end to be woken. They
//! become rare where they lead to nothing.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{raw, settings};

/// Looks between two looks at the clock.
const LOOKS: u32 = 32;
/// The same where each look is a system call.
const FAR_LOOKS: u32 = 4;
/// So many waits in a row that spinning did not end are the last that spin.
const MISSES: u32 = 4;
/// A trial of spinning where it did not help lately, and how many waits go by between two.
const TRIAL_NS: u64 = 2_000;
const TRIAL_EVERY: u32 = 32;
/// A long trial takes so many times as long as spinning otherwise may.
const LONG_TRIAL_TIMES: u64 = 4;
/// How many waits go by between two long trials, at least and at most.
const LONG_TRIAL_EVERY: u32 = 32;
const LONG_TRIAL_SELDOM: u32 = 8192;
/// How often the core is offered to others, and how long that may take when nobody wants it for more than a moment, as
/// the kernel's own threads do.
const OFFER_EVERY_NS: u64 = 5_000;
const FREE_CORE_NS: u64 = 20_000;

static PACE: ProcessPace = ProcessPace::new(LOOKS);
/// Of connections to other hosts: what they teach says nothing about rings, nor the other way round.
static FAR: ProcessPace = ProcessPace::new(FAR_LOOKS);

/// What the process has learnt.
struct ProcessPace {
    /// Waits in a row that spinning did not end. From [`MISSES`] on it does not help.
    misses: AtomicU32,
    /// Waits since then, and since the last long trial.
    waits: AtomicU32,
    since_long: AtomicU32,
    /// Waits until the next one.
    long_every: AtomicU32,
    /// Looks between two looks at the clock.
    looks: u32,
}

/// How long one call may spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spin {
    Bound(u64),
    Trial(u64),
    LongTrial(u64),
}

impl ProcessPace {
    const fn new(looks: u32) -> Self {
        Self {
            looks,
            misses: AtomicU32::new(0),
            waits: AtomicU32::new(0),
            since_long: AtomicU32::new(0),
            long_every: AtomicU32::new(LONG_TRIAL_EVERY),
        }
    }

    fn present(&self, longest: u64) -> Spin {
        if self.misses.load(Ordering::Relaxed) < MISSES {
            return Spin::Bound(longest);
        }
        let waits = self.waits.fetch_add(1, Ordering::Relaxed);
        if self.since_long.fetch_add(1, Ordering::Relaxed) >= self.long_every.load(Ordering::Relaxed) {
            self.since_long.store(0, Ordering::Relaxed);
            return Spin::LongTrial(longest * LONG_TRIAL_TIMES);
        }
        Spin::Trial(if waits.is_multiple_of(TRIAL_EVERY) { TRIAL_NS.min(longest) } else { 0 })
    }

    fn helped(&self, spin: Spin) {
        if matches!(spin, Spin::Bound(_)) {
            self.long_every.store(LONG_TRIAL_EVERY, Ordering::Relaxed);
        }
        self.misses.store(0, Ordering::Relaxed);
    }

    fn failed(&self, spin: Spin) {
        match spin {
            Spin::Bound(_) => _ = self.misses.fetch_add(1, Ordering::Relaxed),
            // It says nothing about anything longer.
            Spin::Trial(_) => {}
            Spin::LongTrial(_) => {
                let every = self.long_every.load(Ordering::Relaxed);
                self.long_every.store((every * 2).min(LONG_TRIAL_SELDOM), Ordering::Relaxed);
            }
        }
    }

    /// Others want the core.
    fn give_way(&self) {
        self.misses.store(MISSES, Ordering::Relaxed);
    }

    /// How long the next wait may spin, if at all.
    fn next(&self) -> Option<Spin> {
        let (longest, fixed) = settings::spin_bound_ns();
        let spin = if fixed { Spin::Bound(longest) } else { self.present(longest) };
        (spin.ns() > 0).then_some(spin)
    }

    fn spin(&self, spin: Spin, mut ready: impl FnMut() -> bool) -> bool {
        let (_, fixed) = settings::spin_bound_ns();
        let bound = spin.ns();
        // Where the core is handed over to work of others it comes back a time slice later: trials do not do that.
        let offers = !fixed && matches!(spin, Spin::Bound(_));
        let start = raw::now_ns();
        let mut offered = start;
        loop {
            for _ in 0..self.looks {
                if ready() {
                    self.helped(spin);
                    return true;
                }
                std::hint::spin_loop();
            }
            let now = raw::now_ns();
            if now - start >= bound {
                self.failed(spin);
                return false;
            }
            if offers && now - offered >= OFFER_EVERY_NS {
                if !core_is_free() {
                    self.give_way();
                    return ready();
                }
                offered = now;
            }
        }
    }
}

impl Spin {
    fn ns(self) -> u64 {
        match self {
            Spin::Bound(ns) | Spin::Trial(ns) | Spin::LongTrial(ns) => ns,
        }
    }
}

/// Looks until `ready`, for the time that is worth it. False: sleep.
pub fn spin(ready: impl FnMut() -> bool) -> bool {
    PACE.next().is_some_and(|spin| PACE.spin(spin, ready))
}

/// The same where the kernel is asked about a connection to another host. What is there at once teaches nothing.
pub fn spin_far(mut ready: impl FnMut() -> bool) -> bool {
    match FAR.next() {
        Some(spin) => ready() || FAR.spin(spin, ready),
        None => false,
    }
}

fn core_is_free() -> bool {
    let before = raw::now_ns();
    raw::yield_core();
    raw::now_ns() - before < FREE_CORE_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: u64 = settings::SPIN_NS;

    /// Waits until a spin of full length is tried.
    fn waits_to_a_long_trial(pace: &ProcessPace) -> u32 {
        (0..).find(|_| matches!(pace.present(LONGEST), Spin::LongTrial(ns) if ns > LONGEST)).expect("some time")
    }

    fn fail_until_asleep(pace: &ProcessPace) {
        while let spin @ Spin::Bound(_) = pace.present(LONGEST) {
            pace.failed(spin);
        }
    }

    #[test]
    fn spinning_that_does_not_help_a_few_times_in_a_row_ends_and_is_tried_for_long_later() {
        let pace = ProcessPace::new(LOOKS);
        for _ in 1..MISSES {
            pace.failed(pace.present(LONGEST));
        }
        assert_eq!(pace.present(LONGEST), Spin::Bound(LONGEST), "fewer say little");
        pace.helped(Spin::Bound(LONGEST));
        for _ in 0..MISSES {
            assert_eq!(pace.present(LONGEST), Spin::Bound(LONGEST), "only those in a row count");
            pace.failed(Spin::Bound(LONGEST));
        }
        assert!(!matches!(pace.present(LONGEST), Spin::Bound(_)));
        assert!(waits_to_a_long_trial(&pace) <= LONG_TRIAL_EVERY);
        pace.helped(Spin::LongTrial(LONGEST));
        assert_eq!(pace.present(LONGEST), Spin::Bound(LONGEST), "one that helped is believed");
    }

    #[test]
    fn who_gives_way_sleeps_at_once() {
        let pace = ProcessPace::new(LOOKS);
        pace.give_way();
        assert!(!matches!(pace.present(LONGEST), Spin::Bound(_)));
    }

    #[test]
    fn long_trials_that_lead_to_nothing_become_rare_until_spinning_helps_again() {
        let pace = ProcessPace::new(LOOKS);
        fail_until_asleep(&pace);
        for _ in 0..20 {
            waits_to_a_long_trial(&pace);
            pace.failed(Spin::LongTrial(LONGEST * LONG_TRIAL_TIMES));
        }
        assert!(waits_to_a_long_trial(&pace) > LONG_TRIAL_SELDOM / 2);
        pace.helped(Spin::Bound(LONGEST));
        fail_until_asleep(&pace);
        assert!(waits_to_a_long_trial(&pace) <= LONG_TRIAL_EVERY);
    }
}
