//! libtcgmsg: TCGMSG over the fabric, for C (`tcgmsg.h`, the older `sndrcv.h`) and Fortran.
//!
//! - [`start`]: from `PBEGIN` to `PEND`. [`place`]: who we are meanwhile.
//! - [`channel`]: messages between two processes, in one order for each pair. The type of a message is its tag, but not
//!   what it is selected by: the next message of the sender is received, and must have the type that was asked for.
//! - [`together`]: what all do together, over trees of messages.
//! - [`counter`]: the shared counter of `NXTVAL`, a word in shared memory; across hosts process 0 serves it.
//! - [`files`]: a file that is copied to all, and logs. [`tally`]: counts for `STATS`, and what `SETDBG` shows.
//!
//! Invariants:
//! - What the program does wrong ends the job with one line ([`failure::fail`]); so does the loss of a process.
//! - Conversations have contexts of their own ([`place::TcgmsgContext`]), so that a collective operation takes no
//!   message that is meant for `RCV`.
//! - Of an asynchronous message the library keeps the address only, until `WAITCOM`.
//!
//! Test: `cargo test -p weft-tcgmsg`, and `tests/tests/tcgmsg.rs` over the installed library.

mod abi;
mod channel;
mod counter;
mod failure;
mod files;
mod pending;
mod place;
mod start;
mod tally;
mod together;
