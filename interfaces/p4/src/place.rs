//! Who we are.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Instant;
use weft_ports::{Messenger, Selector, Subject};
use weft_ports::{Peer, TreePlace};

pub static MESSENGER: Messenger = Messenger::new();

static ME: AtomicI32 = AtomicI32::new(-1);
static SIZE: AtomicU32 = AtomicU32::new(1);
/// Whether all processes are one cluster; else each is one.
static IS_CLUSTER: AtomicBool = AtomicBool::new(true);
static DEBUG_LEVEL: AtomicI32 = AtomicI32::new(0);

/// What a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Conversation {
    /// `p4_send` and `p4_recv`, and broadcasts, which are received as messages are.
    Messages = 0,
    /// Global operations.
    Together = 1,
}

impl Conversation {
    pub fn subject(self, kind: i32) -> Subject {
        Subject { context: self as u32, tag: kind }
    }

    pub fn from(self, peer: Option<Peer>, kind: Option<i32>) -> Selector {
        Selector { context: self as u32, peer, tag: kind }
    }
}

/// Says which place this process has, in a cluster of all or alone in one.
pub fn settle(me: u32, size: u32, is_cluster: bool) {
    ME.store(me as i32, Ordering::Relaxed);
    SIZE.store(size, Ordering::Relaxed);
    IS_CLUSTER.store(is_cluster, Ordering::Relaxed);
}

/// This process is none that has a number.
pub fn leave() {
    ME.store(-1, Ordering::Relaxed);
}

/// -1 where a process has no number: before `p4_initenv`, and if `p4_create` has made it.
#[inline]
pub fn me() -> i32 {
    ME.load(Ordering::Relaxed)
}

/// Whether this process sends and receives messages.
pub fn takes_part() -> bool {
    me() >= 0 && MESSENGER.is_open()
}

#[inline]
pub fn size() -> u32 {
    SIZE.load(Ordering::Relaxed)
}

/// The first and the last process of the own cluster.
pub fn cluster() -> (i32, i32) {
    if IS_CLUSTER.load(Ordering::Relaxed) { (0, size() as i32 - 1) } else { (me(), me()) }
}

/// The first process of each cluster.
pub fn masters() -> impl Iterator<Item = i32> {
    0..if IS_CLUSTER.load(Ordering::Relaxed) { 1 } else { size() as i32 }
}

pub fn tree() -> TreePlace {
    TreePlace::new(me().max(0) as u32, 0, size())
}

/// As P4 shows a process: its number, and that of the system.
pub fn name() -> String {
    match me() {
        -1 => format!("xm_{}", std::process::id()),
        me => format!("p{me}_{}", std::process::id()),
    }
}

pub fn debug_level() -> i32 {
    DEBUG_LEVEL.load(Ordering::Relaxed)
}

pub fn set_debug_level(level: i32) {
    DEBUG_LEVEL.store(level, Ordering::Relaxed);
}

/// The moment that clocks count from: when the first process began.
pub fn beginning() -> Instant {
    static BEGINNING: OnceLock<Instant> = OnceLock::new();
    *BEGINNING.get_or_init(Instant::now)
}
