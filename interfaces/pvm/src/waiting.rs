//! The one place where this task waits, and what it is woken for besides messages.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};
use weft_fabric::Endpoint;
use weft_ports::{Companion, Messenger};

/// The task's access to the fabric. Open from its first enrolling to the end of the process.
pub static FABRIC: Messenger<Wakes> = Messenger::new();

/// What a thread that sleeps is woken for besides messages.
#[derive(Default)]
pub struct Wakes {
    pub daemon: Option<RawFd>,
    until: Option<Instant>,
    /// It waits for one other task, and looks now and then whether that still is.
    looks: bool,
    /// It waits for the machine.
    hears: bool,
    /// How often it has slept in this wait.
    sleeps: u32,
    /// It has heard the machine while it slept since this was last looked at.
    slept: bool,
    passes: u32,
    looked: Option<Instant>,
}

/// Who waits for another task sleeps so often without hearing the machine, and so long each time: to be woken by a task
/// costs a third of what it does where a descriptor is slept on, too.
const DEAF_SLEEPS: u32 = 2;
const DEAF: Duration = Duration::from_millis(1);
/// How long a thread sleeps that waits for one other task.
const LOOK: Duration = Duration::from_millis(20);
/// So many passes without a sleep between two looks at the clock, and so long between two at what is rare, which take
/// system calls.
const PASSES_PER_LOOK: u32 = 1024;
const LOOK_AWAKE: Duration = Duration::from_millis(5);

impl Wakes {
    /// Whether it is time to look at what the machine says, and who has ended.
    #[inline]
    pub fn is_time(&mut self) -> bool {
        self.passes = self.passes.wrapping_add(1);
        std::mem::take(&mut self.slept) || self.passes.is_multiple_of(PASSES_PER_LOOK) && self.was_long_ago()
    }

    /// A wait begins.
    pub fn begin(&mut self, until: Option<Instant>, looks: bool, hears: bool) {
        (self.until, self.looks, self.hears, self.sleeps) = (until, looks, hears, 0);
    }

    fn is_deaf(&self) -> bool {
        !self.hears && self.sleeps <= DEAF_SLEEPS
    }

    #[cold]
    fn was_long_ago(&mut self) -> bool {
        let now = Instant::now();
        let long_ago = self.looked.is_none_or(|looked| now.duration_since(looked) >= LOOK_AWAKE);
        self.looked = if long_ago { Some(now) } else { self.looked };
        long_ago
    }
}

impl Companion for Wakes {
    fn idle(&mut self, _: &mut Endpoint, sleeps: bool) -> bool {
        self.sleeps += u32::from(sleeps);
        self.slept |= sleeps && !self.is_deaf();
        false
    }

    fn attended(&self) -> Option<RawFd> {
        self.daemon.filter(|_| !self.is_deaf())
    }

    fn longest_sleep(&self) -> Option<Duration> {
        let rest = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        rest.into_iter().chain(self.looks.then_some(LOOK)).chain(self.is_deaf().then_some(DEAF)).min()
    }
}

/// As [`wait_until`], for what another task stores into shared memory before it wakes this one.
pub fn wait_for_memory<R>(call: &'static str, mut done: impl FnMut(&mut Endpoint, bool) -> Option<R>) -> R {
    let what = weft_ports::Waiting { call, peer: None, tag: None, context: 0 };
    FABRIC.with_both(|_, wakes| wakes.begin(None, false, false));
    FABRIC.wait_both_for_memory(what, |endpoint, wakes| {
        let is_time = wakes.is_time();
        done(endpoint, is_time)
    })
}

/// Waits until `done` answers. A thread that sleeps wakes up at `until`, and now and then where it `looks`; `done` is
/// told when it is time to look at what is rare.
#[inline]
pub fn wait_until<R>(
    call: &'static str,
    until: Option<Instant>,
    looks: bool,
    done: impl FnMut(&mut Endpoint, bool) -> Option<R>,
) -> R {
    FABRIC.with_both(|_, wakes| wakes.begin(until, looks, false));
    wait(call, done)
}

/// As [`wait_until`] without an end, for what the machine says.
pub fn wait_for_machine<R>(call: &'static str, done: impl FnMut(&mut Endpoint, bool) -> Option<R>) -> R {
    FABRIC.with_both(|_, wakes| wakes.begin(None, false, true));
    wait(call, done)
}

#[inline]
fn wait<R>(call: &'static str, mut done: impl FnMut(&mut Endpoint, bool) -> Option<R>) -> R {
    let what = weft_ports::Waiting { call, peer: None, tag: None, context: 0 };
    FABRIC.wait_both(what, |endpoint, wakes| {
        let is_time = wakes.is_time();
        done(endpoint, is_time)
    })
}
