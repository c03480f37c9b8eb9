//! Blocking collectives of one host, directly on shared memory.
//!
//! A [`team`] is the part of a communicator that lives in collective blocks: every member owns an area there with a
//! short ring of slots (one cache line each) and two buffers. A member writes its contribution into its own area and
//! publishes it with the number of the operation; the others read it where it stands. Nothing is copied twice, nothing
//! is matched, and while cores suffice nobody makes a system call.
//!
//! Every choice between this way and messages depends only on what all members know alike (the communicator, the bytes,
//! the operation), so that all of them choose alike. A call with a doubtful argument goes by messages, whose preparation
//! names what is wrong. Members that are called with different bytes, against the standard, see it by the slots and
//! say so ([`Alike`]).

mod barrier;
mod bcast;
mod exchange;
mod piece;
mod reduce;
mod reduce_scatter;
mod rooted;
mod showing;
mod team;
mod word;

pub use piece::Piece;
pub use reduce::Vector;
pub use team::{BUFFER_BYTES, Team, TeamCell};
pub use word::{Alike, Differs};
