//! The settings of this library, read once when it is loaded.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use weft_fabric::{Ports, Settings, SocketLog};

/// Spin bound where nothing is said, in nanoseconds.
pub const SPIN_NS: u64 = 50_000;

static ATTACH_CALLS: AtomicU32 = AtomicU32::new(4);
static SPIN_BOUND_NS: AtomicU64 = AtomicU64::new(SPIN_NS);
static SPIN_FIXED: AtomicBool = AtomicBool::new(false);
static ONLY: OnceLock<Ports> = OnceLock::new();
static LOG: AtomicU32 = AtomicU32::new(0);
static STATS: AtomicBool = AtomicBool::new(false);

/// Reads the environment. False when a setting is refused; what is wrong was said.
pub fn read() -> bool {
    match Settings::from_env(std::env::vars_os()) {
        Ok(settings) => {
            keep(&settings);
            true
        }
        Err(errors) => {
            for error in errors {
                super::log::line(format_args!("sockets are not accelerated: {error}"));
            }
            false
        }
    }
}

fn keep(settings: &Settings) {
    let calls = settings.sock_attach_calls.map_or(u32::MAX, |calls| calls as u32);
    ATTACH_CALLS.store(calls, Ordering::Relaxed);
    SPIN_BOUND_NS.store(settings.sock_spin_us.map_or(SPIN_NS, |us| us * 1000), Ordering::Relaxed);
    SPIN_FIXED.store(settings.sock_spin_us.is_some(), Ordering::Relaxed);
    let _ = ONLY.set(settings.sock_only);
    let level = match settings.sock_log {
        SocketLog::Off => 0,
        SocketLog::Fallbacks => 1,
        SocketLog::All => 2,
    };
    LOG.store(level, Ordering::Relaxed);
    STATS.store(settings.sock_stats, Ordering::Relaxed);
}

/// After how many data calls a connection is offered.
pub fn attach_calls() -> u32 {
    ATTACH_CALLS.load(Ordering::Relaxed)
}

/// The longest busy wait, and whether the user has said it.
pub fn spin_bound_ns() -> (u64, bool) {
    (SPIN_BOUND_NS.load(Ordering::Relaxed), SPIN_FIXED.load(Ordering::Relaxed))
}

/// Whether the user's rules allow connections with this port.
pub fn port_allowed(port: u16) -> bool {
    ONLY.get().is_none_or(|ports| ports.contains(port))
}

/// 0: nothing is logged; 1: what fell back; 2: all.
pub fn log_level() -> u32 {
    LOG.load(Ordering::Relaxed)
}

pub fn wants_stats() -> bool {
    STATS.load(Ordering::Relaxed)
}
