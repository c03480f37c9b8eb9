//! Layout of a gateway: the memory that a process shares with the rendezvous of its host for its connections to other
//! hosts. What goes over the wire is `parcel`; the bytes of connections are in an arena whose side 0 is the process,
//! and whose side 1 is the other host as far as it is known here.
//!
//! ```text
//! header | what a lane keeps between two uses | records of slot 0 ..
//! ```

use super::arena::{PAGE_BYTES, SLOTS};

/// `weft-gat` as little-endian bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"weft-gat");
/// Changes with every change of what stands in a gateway.
pub const VERSION: u32 = 2;

/// Offsets in the header.
pub mod header {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 8;
    /// Number of the lane in the memory of lanes (32 bits).
    pub const LANE: usize = 12;
    /// Name of the arena (64 bits).
    pub const ARENA: usize = 16;
    /// Who uses lane and records, by the number of its thread, and whether somebody waits for that (32 bits each).
    pub const LOCK: usize = 64;
    pub const CONTENDED: usize = 68;
    /// Parcels that were sent, that were sent once more, that came, and that were not believed (64 bits each).
    pub const COUNTERS: usize = 128;
    /// When the rendezvous has last looked after this, in ns of the monotonic clock, or 0 (64 bits). It says so by the
    /// way, every 25 ms at the latest while there are connections; who finds the same value for seconds is alone.
    pub const BEAT: usize = 192;
}

/// Where the lane's part begins, and how long it is.
pub const LANE_AT: usize = PAGE_BYTES;
pub const LANE_BYTES: usize = 2 * PAGE_BYTES;
const RECORDS_AT: usize = LANE_AT + LANE_BYTES;

/// Bytes of the record of one slot.
pub const RECORD_BYTES: usize = 320;

/// Where the record of a slot stands.
pub const fn record_at(slot: u32) -> usize {
    RECORDS_AT + slot as usize * RECORD_BYTES
}

/// Bytes of a gateway.
pub const BYTES: usize = record_at(SLOTS);
