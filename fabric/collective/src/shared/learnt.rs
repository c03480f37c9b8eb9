//! What a team has learnt of the memory that its members show.

use std::sync::Mutex;

/// Sets of regions that all are known to see.
pub(super) const SETS: usize = 8;

/// What a team has learnt, alike in all members.
#[derive(Default)]
pub struct Showing {
    /// The operation from which on showing is tried.
    pub(super) due: u64,
    pub(super) rest: u64,
    /// Sets of regions that everybody sees, the last ones.
    pub(super) seen: [u64; SETS],
    pub(super) next: usize,
    /// Somebody could not read what was shown. Not all take note of it at a time.
    pub(super) somebody_is_blind: bool,
}

pub type ShowingCell = Mutex<Showing>;
