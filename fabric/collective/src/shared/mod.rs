//! Blocking collectives of one host, directly on shared memory.
//!
//! A [`team`] is the part of a group that lives in collective blocks: every member owns an area there with a short
//! ring of slots (one cache line each) and two buffers. A member writes its contribution into its own area and
//! publishes it with the number of the operation; the others read it where it stands. Nothing is copied twice, nothing
//! is matched, and while cores suffice nobody makes a system call.
//!
//! Whether an operation is done here has to depend only on what all members know alike (the group, the bytes, the
//! operation), so that all of them choose alike. Members that are called with different bytes all the same see it by
//! the slots and say so ([`Alike`]).
//!
//! - `owner`: what has to be known of the interface. `word`: what a slot tells. `piece`: memory of the caller.
//! - `showing`: contributions that are read where they stand (`learnt`: what is remembered of that).
//! - `barrier`, `bcast`, `reduce`, `reduce_scatter`, `rooted`, `exchange`, `nothing`: the operations.

mod barrier;
mod bcast;
mod cell;
mod exchange;
mod learnt;
mod nothing;
mod owner;
mod piece;
mod reduce;
mod reduce_scatter;
mod rooted;
mod showing;
mod team;
mod word;

pub use cell::TeamCell;
pub use owner::{CallNames, Forming, TeamOwner};
pub use piece::SharedPiece;
pub use reduce::Vector;
pub use team::{BUFFER_BYTES, Team};
pub use word::{Alike, Differs};
