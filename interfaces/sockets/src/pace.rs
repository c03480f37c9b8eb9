//! How long a call spins before it sleeps.
//!
//! One bound for the process: it halves when spinning did not help and doubles when it did. If handing the core over
//! takes long, others want it: then calls sleep at once, and now and then try again.
//!
//! Two ends that both sleep wait much longer for each other than two that spin: each wait then has a wake-up of the other
//! one in it. Short trials never see that it could be otherwise; so some trials are as long as spinning may be at all.
//! They become rare where they lead to nothing.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{raw, settings};

/// Looks between two looks at the clock.
const LOOKS: u32 = 32;
/// The same where each look is a system call.
const FAR_LOOKS: u32 = 4;
/// Below this a bound is none.
const SHORTEST_NS: u64 = 1_000;
/// A trial of spinning where it did not help lately, and how many waits go by between two.
const TRIAL_NS: u64 = 2_000;
const TRIAL_EVERY: u32 = 32;
/// How many waits go by between two trials of full length, at least and at most.
const LONG_TRIAL_EVERY: u32 = 32;
const LONG_TRIAL_SELDOM: u32 = 8192;
/// How often the core is offered to others, and how long that takes when nobody wants it.
const OFFER_EVERY_NS: u64 = 5_000;
const FREE_CORE_NS: u64 = 2_000;

static PACE: Pace = Pace::new(LOOKS);
/// Of connections to other hosts: what they teach says nothing about rings, nor the other way round.
static FAR: Pace = Pace::new(FAR_LOOKS);

/// What the process has learnt.
struct Pace {
    /// Nanoseconds; 0: spinning does not help.
    bound: AtomicU64,
    /// Waits since then, and since the last trial of full length.
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

impl Pace {
    const fn new(looks: u32) -> Self {
        Self {
            looks,
            bound: AtomicU64::new(settings::SPIN_NS),
            waits: AtomicU32::new(0),
            since_long: AtomicU32::new(0),
            long_every: AtomicU32::new(LONG_TRIAL_EVERY),
        }
    }

    fn present(&self, longest: u64) -> Spin {
        let bound = self.bound.load(Ordering::Relaxed);
        if bound > 0 {
            return Spin::Bound(bound);
        }
        let waits = self.waits.fetch_add(1, Ordering::Relaxed);
        if self.since_long.fetch_add(1, Ordering::Relaxed) >= self.long_every.load(Ordering::Relaxed) {
            self.since_long.store(0, Ordering::Relaxed);
            return Spin::LongTrial(longest);
        }
        Spin::Trial(if waits.is_multiple_of(TRIAL_EVERY) { TRIAL_NS.min(longest) } else { 0 })
    }

    fn helped(&self, spin: Spin, longest: u64) {
        if matches!(spin, Spin::Bound(_)) {
            self.long_every.store(LONG_TRIAL_EVERY, Ordering::Relaxed);
        }
        self.bound.store((spin.ns() * 2).min(longest), Ordering::Relaxed);
    }

    fn failed(&self, spin: Spin) {
        if let Spin::LongTrial(_) = spin {
            let every = self.long_every.load(Ordering::Relaxed);
            self.long_every.store((every * 2).min(LONG_TRIAL_SELDOM), Ordering::Relaxed);
        }
        // Failed trials say nothing about anything longer.
        let bound = if matches!(spin, Spin::Bound(_)) { spin.ns() / 2 } else { 0 };
        self.bound.store(if bound < SHORTEST_NS { 0 } else { bound }, Ordering::Relaxed);
    }

    /// Others want the core.
    fn give_way(&self) {
        self.bound.store(0, Ordering::Relaxed);
    }

    /// How long the next wait may spin, if at all.
    fn next(&self) -> Option<Spin> {
        let (longest, fixed) = settings::spin_bound_ns();
        let spin = if fixed { Spin::Bound(longest) } else { self.present(longest) };
        (spin.ns() > 0).then_some(spin)
    }

    fn spin(&self, spin: Spin, mut ready: impl FnMut() -> bool) -> bool {
        let (longest, fixed) = settings::spin_bound_ns();
        let bound = spin.ns();
        // Where the core is handed over to work of others it comes back a time slice later: trials do not do that.
        let offers = !fixed && matches!(spin, Spin::Bound(_));
        let start = raw::now_ns();
        let mut offered = start;
        loop {
            for _ in 0..self.looks {
                if ready() {
                    self.helped(spin, longest);
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
    fn waits_to_a_long_trial(pace: &Pace) -> u32 {
        (0..).find(|_| matches!(pace.present(LONGEST), Spin::LongTrial(LONGEST))).expect("some time")
    }

    fn fail_until_asleep(pace: &Pace) {
        while let spin @ Spin::Bound(_) = pace.present(LONGEST) {
            pace.failed(spin);
        }
    }

    #[test]
    fn spinning_that_does_not_help_ends_soon_and_is_tried_in_full_later() {
        let pace = Pace::new(LOOKS);
        fail_until_asleep(&pace);
        assert_eq!(pace.bound.load(Ordering::Relaxed), 0);
        assert!(waits_to_a_long_trial(&pace) <= LONG_TRIAL_EVERY);
        pace.helped(Spin::LongTrial(LONGEST), LONGEST);
        assert_eq!(pace.present(LONGEST), Spin::Bound(LONGEST), "one that helped is believed");
    }

    #[test]
    fn long_trials_that_lead_to_nothing_become_rare_until_spinning_helps_again() {
        let pace = Pace::new(LOOKS);
        fail_until_asleep(&pace);
        for _ in 0..20 {
            waits_to_a_long_trial(&pace);
            pace.failed(Spin::LongTrial(LONGEST));
        }
        assert!(waits_to_a_long_trial(&pace) > LONG_TRIAL_SELDOM / 2);
        pace.helped(Spin::Bound(LONGEST), LONGEST);
        fail_until_asleep(&pace);
        assert!(waits_to_a_long_trial(&pace) <= LONG_TRIAL_EVERY);
    }
}
