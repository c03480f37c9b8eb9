//! Pure state machines of the protocols: no I/O, no clock, no threads, no memory but their own.
//!
//! - [`matching`]: which receive gets which message (port protocol).
//!
//! A machine is fed by `handle_x` and asked by `poll_x`; it never calls out. Not here: bytes and buffers (core), rings
//! (devices).
//!
//! Test: `cargo test -p weft-protocol` (against a plain list as oracle).
#![forbid(unsafe_code)]

pub mod matching;
