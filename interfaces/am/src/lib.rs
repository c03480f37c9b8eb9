//! libam: Active Messages (AM-II) over the fabric, with the calls of AMUDP that start jobs.
//!
//! A message of AM is one of the fabric's port, to a receive that stands ready (`inbound`): a word says whose handler
//! it is for (`message`), and `call` runs that while nothing of ours is held. Bytes of a long message that do not fit
//! beside the word follow straight into the receiver's segment. Active messages of the fabric would not do here: AM's
//! handlers call functions of AM, long messages land in memory of the program, and a process has several endpoints.
//!
//! - `tables`: bundles and endpoints. - `outbound`: requests and replies. - `spmd`: barrier, gathering, the end of a
//!   job.
//! - `launch`: a program that was started by hand becomes a job. - `abi`: the functions of C.
//!
//! Invariants:
//! - A handler runs while the monitor is left, in the thread that polls its bundle or waits in a call of AM.
//! - A call that cannot proceed polls meanwhile. A reply never waits: what has no room is kept.
//! - What a peer says is checked before it is used; a request that does not fit goes back to its sender.
//! - Pointers that programs hold are numbers, so that wrong ones are errors.
//!
//! Test: `cargo test -p weft-am`; `tests/tests/am.rs`.

mod abi;
mod arrived;
mod call;
mod ending;
mod failure;
mod inbound;
mod kept;
mod launch;
mod life;
mod meeting;
mod message;
mod name;
mod outbound;
mod polling;
mod returned;
mod sending;
mod spmd;
mod stats;
mod tables;
mod token;
mod world;
