//! The rendezvous' half of connections between hosts by lanes: the *guardian*.
//!
//! It calls the rendezvous of other hosts about the ends that programs here have shown, proves the way by the lanes,
//! tells the programs, and then looks after their connections while they do not: it repeats, acknowledges, and finishes
//! what a program has left that closed or was killed. The kernel's end of a connection is held back until the other
//! host knows everything.
//!
//! The programs' half is in `weft_fabric::stream`. Nothing of this here is in what programs load.
//!
//! It runs in the rendezvous process only, in one thread. What is decided stands in `meetings` and `stage`, pure; bytes
//! are moved by `weft_device`'s gateways. The rendezvous knows only [`Guardian`], so that it can be tested with another
//! one.
//!
//! What holds:
//! - nothing without a valid tag is answered, and of what has one only what a program here has shown;
//! - what is kept is bounded: ends for each process and in all, and each has its time;
//! - nobody is waited for.
//!
//! When the rendezvous ends, nothing comes by the lanes of its host any more, and nobody would say so. So at each tick
//! the guardian leaves a *beat* in the gateway. A process that waits for another host, asleep or not, looks about once
//! a second whether it has changed. Where five looks in a row find the same one, the process resets all its connections
//! that need the lane, and the kernel carries that to the other end.
//!
//! Test: `cargo test -p weft-lanes`.

#![deny(unsafe_code)]

mod far;
mod guardian;
pub mod key;
mod meetings;
mod seat;
mod slots;
mod stage;
#[allow(unsafe_code)]
mod sys;

pub use far::{Client, FarConnection, FarTurn, Guardian, ProcessMail};
pub use guardian::{GuardianPlan, LaneGuardian, Refused};
