//! What a thread that waits in one interface does for the others of its process.
//!
//! While it polls it moves them, and before it sleeps it arms their doorbells beside its own. It holds no lock of its
//! own interface meanwhile, and waits for none of theirs: who cannot be entered is being moved by somebody else.
//!
//! No wake-up is lost: each interface is armed, and looked at once more after that, before anybody sleeps. Beside
//! a thread that watches one of them it sleeps until that one has ended its wait.

use super::table::{self, BESIDE, COMPANY, ENDLESS, LOOK_AGAIN, MonitorCalls, ON_PLACE, ProcessTable, SleepPlace};
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::time::Duration;
use weft_device::{kernel, sleep, sys};

/// Longest sleep where not all places to sleep on can be slept on at once.
const SHORT_SLEEP: Duration = Duration::from_millis(1);

/// The other interfaces of the process.
#[derive(Clone, Copy)]
pub(crate) struct OtherInterfaces(&'static ProcessTable);

/// The other interfaces, if there are any.
#[inline(always)]
pub(crate) fn company() -> Option<OtherInterfaces> {
    table::known(COMPANY.load(Ordering::Relaxed)).map(OtherInterfaces)
}

impl OtherInterfaces {
    /// The interfaces but `me`.
    fn others(self, me: *const c_void) -> impl Iterator<Item = (&'static MonitorCalls, *const c_void)> {
        self.0.slots().iter().filter_map(|slot| slot.calls()).filter(move |(_, context)| *context != me)
    }

    /// Moves the others; true if anything moved.
    pub fn progress(self, me: *const c_void) -> bool {
        self.others(me).fold(false, |moved, (calls, context)| (calls.progress)(context) != 0 || moved)
    }

    /// Sleeps on the caller's own place, which is armed, and on those of the others.
    pub fn sleep(self, me: *const c_void, own: SleepPlace) {
        let mut places = [own; sleep::MOST];
        let mut armed: [Option<(&MonitorCalls, *const c_void, u32)>; sleep::MOST] = [None; sleep::MOST];
        let (mut count, mut may_sleep) = (1, true);
        for (calls, context) in self.others(me) {
            match (calls.arm)(context, &mut places[count]) {
                how @ (ON_PLACE | BESIDE) => {
                    armed[count] = Some((calls, context, how));
                    count += 1;
                }
                LOOK_AGAIN => {
                    may_sleep = false;
                    break;
                }
                _ => {}
            }
        }
        if may_sleep {
            sleep_on(&places[..count]);
        }
        armed.iter().flatten().for_each(|(calls, context, how)| (calls.disarm)(*context, *how));
        // What has ended the sleep may be theirs.
        if !self.progress(me) && !may_sleep {
            sys::yield_core();
        }
    }
}

fn sleep_on(places: &[SleepPlace]) {
    let limit_ns = places.iter().map(|place| place.limit_ns).min().unwrap_or(ENDLESS);
    let limit = (limit_ns != ENDLESS).then(|| Duration::from_nanos(limit_ns));
    let words: Vec<_> = places.iter().filter_map(SleepPlace::word).collect();
    let descriptors: Vec<_> =
        places.iter().filter(|place| place.word.is_null()).map(|place| place.descriptor).collect();
    if words.is_empty() {
        return sleep::on_descriptors(&descriptors, limit);
    }
    if descriptors.is_empty() && sleep::on_words(&words, limit) {
        return;
    }
    let short = Some(limit.map_or(SHORT_SLEEP, |limit| limit.min(SHORT_SLEEP)));
    match descriptors.is_empty() {
        true => kernel::futex_wait(words[0].0, words[0].1, short),
        false => sleep::on_descriptors(&descriptors, short),
    }
}
