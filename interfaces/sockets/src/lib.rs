//! The socket interface over the fabric: preloaded into programs that know nothing of it.
//!
//! The library stands in front of the C library's calls on descriptors. TCP connections between two such programs of
//! one host move to rings in shared memory after a few calls; everything else, and every doubt, stays with the kernel.
//! The descriptor is always the kernel's own connected socket, so that its end, its errors, its addresses and its
//! options are the kernel's.
//!
//! - `table`: what each descriptor number is; `conn`: one record per socket; `meet`: counted, offered, attached;
//!   `expect`: calls meanwhile;
//!   `counted`, `tally`: what is counted of them, and what all processes of a command count;
//!   `family`, `life`: fork, exec, close, handing back to the kernel; `rescue`: bytes of a peer that is gone.
//! - `ends`: what closing, exiting and being killed do to bytes that nobody has read.
//! - `route`: where a data call goes; `outgoing`, `incoming`, `splice`: the rings; `wait`, `pace`, `signals`: waiting.
//! - `passed`: connections that another process accepted; `requests`: `io_uring`; `rest`: what is left, told
//!   (`TCP_INQ`).
//! - `poll`, `select`, `epoll`: many descriptors at once.
//! - `abi`: the names of C, and nothing else; `real`: what stood behind them; `raw`: the library's own system calls.
//!
//! - `far`: connections to other hosts: the kernel's, and looked at before a sleep.
//! - `udp`: datagrams, which have rules of their own.
//!
//! Not here: rings, bells and the rendezvous (fabric).
//!
//! Invariants:
//! - A descriptor that is no TCP connection costs one load per call.
//! - Nothing allocates, takes a lock of the C library or prints (except for the log) in a hook.
//! - `errno` is left alone by calls that succeed.
//! - No thread waits inside the kernel's receive call on an attached connection.
//! - Bytes are never handed to two ways at once: every switch is made under the lock of its direction.
//!
//! Unsafe code: `abi` has arguments of C, `raw` system calls, `real` the C library's own functions, `attend` and
//! `signals` handlers; `conn`, `cookies`, `table`, `epoll` and `udp/socket` have records; the rest touches the
//! program's buffers, addresses and environment.
//!
//! Test: `cargo test -p weft-sockets`; whole programs in `tests`.

mod abi;
mod attend;
mod conn;
mod cookies;
mod counted;
mod early;
mod ends;
mod epoll;
mod expect;
mod family;
mod far;
mod incoming;
mod kernel_counts;
mod life;
mod log;
mod meet;
mod options;
mod outgoing;
mod pace;
mod passed;
mod pieces;
mod poll;
mod raw;
mod real;
mod records;
mod requests;
mod rescue;
mod rest;
mod route;
mod select;
mod settings;
mod signals;
mod splice;
mod table;
mod tally;
mod udp;
mod wait;

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the library is at work.
static ON: AtomicBool = AtomicBool::new(false);

/// Whether new sockets are noted.
static NOTES: AtomicBool = AtomicBool::new(false);

/// Whether what we count is added up by the command that this process belongs to.
static TOGETHER: AtomicBool = AtomicBool::new(false);

/// Whether the library does more than hand on.
fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Whether connections may still be accelerated.
fn may_accelerate() -> bool {
    NOTES.load(Ordering::Relaxed)
}

/// From now on nothing more is accelerated.
fn accelerate_no_more() {
    NOTES.store(false, Ordering::Relaxed);
}

/// Runs when the library is loaded, before the program's own code. (The tests of this crate have the hooks in them, but
/// never run this: there everything is handed on.)
#[cfg_attr(test, allow(dead_code))]
extern "C" fn load() {
    real::resolve_all();
    panics_abort();
    if !settings::read() || !table::start() || !conn::start() || !cookies::start() || !epoll::start() || !udp::start() {
        return;
    }
    // SAFETY: the three functions live as long as the process.
    unsafe {
        libc::pthread_atfork(
            Some(life::before_fork as unsafe extern "C" fn()),
            Some(life::after_fork_in_parent as unsafe extern "C" fn()),
            Some(life::after_fork_in_child as unsafe extern "C" fn()),
        )
    };
    abi::heirs::start();
    TOGETHER.store(tally::join(), Ordering::Relaxed);
    // Later, with threads, this takes milliseconds, and would be done in the middle of a call.
    let _ = weft_kernel::register_for_barriers();
    life::note_process();
    ON.store(true, Ordering::Relaxed);
    NOTES.store(true, Ordering::Relaxed);
}

/// A panic of ours ends the process, whatever the profile: only the C library's cancellation of a thread may unwind
/// through these frames, and it never comes here. (This is the library's own copy of the runtime, not the program's.)
#[cfg_attr(test, allow(dead_code))]
fn panics_abort() {
    std::panic::set_hook(Box::new(|panic| {
        log::line(format_args!("{panic}"));
        std::process::abort();
    }));
}

/// Runs when the process ends by `exit`.
#[cfg_attr(test, allow(dead_code))]
extern "C" fn unload() {
    if is_on() {
        if !TOGETHER.load(Ordering::Relaxed) {
            log::sums();
        }
        meet::before_exit();
        ends::before_exit();
    }
    life::leave();
    udp::leave();
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = unload;
