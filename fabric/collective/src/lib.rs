//! Collective operations of a group of endpoints, for whatever interface has such a group.
//!
//! An operation is compiled into a [`schedule::Schedule`], a small program of sends, receives, waits, copies and folds
//! for one member, and a [`run::CollectiveRun`] moves it, over an endpoint or whatever else is a [`run::Network`].
//!
//! - [`algorithm`]: the builders, pure functions of ranks, sizes and views.
//! - [`schedule`]: what they build. Which algorithms are prescribed stands in the schedule that they are given.
//! - [`shape`]: what a schedule has to know of data that do not lie in one block: measures, and how to pack them.
//! - [`run`]: one operation under way.
//! - [`shared`]: the blocking collectives of one host, on memory that the members share, without messages.
//!
//! Deliberately not here: groups and their ranks (a [`run::RankRoute`] says which peer a rank is), handles and the
//! checking of arguments, datatypes and operations (a shape and a function stand for them), who calls `advance` and
//! when, and which operations go through shared memory.
//!
//! Invariants:
//! - A builder looks only at what all members know alike, so that all come to schedules that meet.
//! - A member never sends to itself; it copies.
//! - Both sides of a pair start their messages in the same order.
//! - A function of the program is handed out ([`run::RunTurn::Outside`]) and never called while a run moves.
//!
//! Test: `cargo test -p weft-collective`. `simulate` runs the schedules of all members over a network in memory whose
//! order a seed decides; the tests of `algorithm` hold every builder against what its operation is defined to do.

pub mod algorithm;
pub mod run;
pub mod schedule;
pub mod shape;
pub mod shared;
#[cfg(test)]
mod simulate;
