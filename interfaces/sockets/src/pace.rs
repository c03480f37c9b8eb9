//! How long a call spins before it sleeps.
//!
//! One bound for the process: it halves when spinning did not help and doubles when it did. If handing the core over
//! takes long, others want it: then calls sleep at once, and now and then try again.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{raw, settings};

/// Looks between two looks at the clock.
const LOOKS: u32 = 32;
/// Below this a bound is none.
const SHORTEST_NS: u64 = 1_000;
/// A trial of spinning where it did not help lately, and how many waits go by between two.
const TRIAL_NS: u64 = 2_000;
const TRIAL_EVERY: u32 = 32;
/// How often the core is offered to others, and how long that takes when nobody wants it.
const OFFER_EVERY_NS: u64 = 5_000;
const FREE_CORE_NS: u64 = 2_000;

static BOUND: AtomicU64 = AtomicU64::new(settings::SPIN_NS);
static WAITS: AtomicU32 = AtomicU32::new(0);

/// Looks until `ready`, for the time that is worth it. False: sleep.
pub fn spin(mut ready: impl FnMut() -> bool) -> bool {
    let (longest, fixed) = settings::spin_bound_ns();
    let bound = if fixed { longest } else { present_bound() };
    if bound == 0 {
        return false;
    }
    let start = raw::now_ns();
    let mut offered = start;
    loop {
        for _ in 0..LOOKS {
            if ready() {
                BOUND.store((bound * 2).min(longest), Ordering::Relaxed);
                return true;
            }
            std::hint::spin_loop();
        }
        let now = raw::now_ns();
        if now - start >= bound {
            BOUND.store(if bound / 2 < SHORTEST_NS { 0 } else { bound / 2 }, Ordering::Relaxed);
            return false;
        }
        if !fixed && now - offered >= OFFER_EVERY_NS {
            if !core_is_free() {
                BOUND.store(0, Ordering::Relaxed);
                return ready();
            }
            offered = now;
        }
    }
}

fn present_bound() -> u64 {
    match BOUND.load(Ordering::Relaxed) {
        0 if WAITS.fetch_add(1, Ordering::Relaxed).is_multiple_of(TRIAL_EVERY) => TRIAL_NS,
        bound => bound,
    }
}

fn core_is_free() -> bool {
    let before = raw::now_ns();
    raw::yield_core();
    raw::now_ns() - before < FREE_CORE_NS
}
