//! libfm: Illinois Fast Messages over the fabric: streams of pieces (2.x), and the calls of 1.1.
//!
//! A message of FM is one of the fabric's port: the handler's number is its tag. Pieces are put together where the
//! message ends, and the handler runs when all of it has come, so that a handler that receives in pieces never waits.
//! Messages that are longer than a receive that stands ready are announced, and their bytes follow.
//!
//! - `streams`: messages that are being sent, and the one that is being received. - `moving`: sending, and taking in
//!   what comes. - `abi`: the functions of C.
//!
//! Invariants:
//! - A handler runs in `FM_extract` only, while nothing of ours is held; in the order in which its sender sent.
//! - Who sends outside of handlers waits until the bytes have left, and receives meanwhile; in handlers nothing waits.
//! - What a peer says is checked: a handler that is not registered costs its message and a line.
//!
//! Test: `cargo test -p weft-fm`; `tests/tests/fm.rs`.

mod abi;
mod moving;
mod streams;
