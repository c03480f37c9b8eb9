//! Pure state machines of the protocols: no I/O, no clock, no threads, no memory but their own.
//!
//! - [`consensus`]: agreement of members of which some may die.
//! - [`matching`]: which receive gets which message (port protocol).
//! - [`ordered`]: groups whose members deliver the same messages in the same order.
//! - [`selector`]: how a message goes, and what is learned of that.
//! - [`reliable`]: packets in order, each once, over datagrams that may be lost.
//!
//! A machine is fed by `handle_x` and asked by `poll_x`; it never calls out. Not here: bytes and buffers (core), rings
//! (devices).
//!
//! Test: `cargo test -p weft-protocol` (agreement in any order of words and deaths; matching against a plain
//! list as oracle; links over a simulated network; the selector against the thresholds that it replaced).
#![forbid(unsafe_code)]

pub mod consensus;
pub mod matching;
pub mod ordered;
pub mod reliable;
pub mod selector;
