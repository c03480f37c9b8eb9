//! Who we are: the process's place in its job, what it has to say, and since when.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;
use weft_ports::{Messenger, Peer, Selector, Subject};

pub static MESSENGER: Messenger = Messenger::new();

static ME: AtomicU32 = AtomicU32::new(0);
static SIZE: AtomicU32 = AtomicU32::new(1);
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// What a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum TcgmsgContext {
    /// `SND` and `RCV`.
    Messages = 0,
    /// What all do together.
    Together = 1,
    Counter = 2,
}

impl TcgmsgContext {
    pub fn subject(self, kind: i32) -> Subject {
        Subject { context: self as u32, tag: kind }
    }

    /// The next message of `peer`, of whatever type.
    pub fn from(self, peer: Option<Peer>) -> Selector {
        Selector { context: self as u32, peer, tag: None }
    }
}

/// Says which place this process has.
pub fn settle(me: u32, size: u32) {
    ME.store(me, Ordering::Relaxed);
    SIZE.store(size, Ordering::Relaxed);
}

/// Says that this process has begun; whether it had before.
pub fn note_begin() -> bool {
    HAS_BEGUN.swap(true, Ordering::Relaxed)
}

/// This process's number; 0 before it takes part.
#[inline]
pub fn me() -> u32 {
    ME.load(Ordering::Relaxed)
}

/// Processes of the job; 1 before this one takes part.
#[inline]
pub fn size() -> u32 {
    SIZE.load(Ordering::Relaxed)
}

pub fn has_begun() -> bool {
    HAS_BEGUN.load(Ordering::Relaxed)
}

/// Seconds since the process first asked.
pub fn seconds() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}
