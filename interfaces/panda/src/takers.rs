//! Threads that wait in the library, or poll, and run upcalls: the switch between polling and delivery.
//!
//! While there is one it takes what comes, and the thread that delivers keeps out of its way. When there is none that
//! thread sleeps until something comes. The program says nothing of it.

use crate::upcalls;
use crate::world::{PandaWorld, WORLD};
use std::sync::atomic::Ordering;
use weft_fabric::Waiting;

/// Waits, and runs upcalls meanwhile where the thread may.
#[inline]
pub fn wait<R>(what: Waiting, done: impl FnMut(&mut PandaWorld) -> Option<R>) -> R {
    upcalls::catch_up();
    let takes = u32::from(!upcalls::are_barred());
    upcalls::WAITING.fetch_add(takes, Ordering::Relaxed);
    let answer = WORLD.wait(what, done);
    upcalls::WAITING.fetch_sub(takes, Ordering::Relaxed);
    answer
}

/// Runs upcalls of what has come, if any.
pub fn poll() {
    // One that is not counted has no effect.
    upcalls::POLLS[0].store(upcalls::POLLS[0].load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    upcalls::catch_up();
    WORLD.poll();
}
