//! What the processes of a rank have used, as keepers and agents tell it.

/// In the place of a member: processes of which nobody knows whose they were.
pub const NOBODY: u32 = u32::MAX;

/// Time and memory of a process with all that it had started and waited for. Of a rank there may be more than one:
/// those that it has left behind come later, and are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankUsage {
    /// From the start to the end; 0 for processes that it has left behind.
    pub wall_us: u64,
    pub user_us: u64,
    pub system_us: u64,
    /// The largest that one process was in memory.
    pub peak_bytes: u64,
}

/// What a rank has sent, as it says itself: bytes by the device that carried them, and the messages that they were of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentBytes {
    pub shm: u64,
    pub tcp: u64,
    pub udp: u64,
    /// Copied straight out of a sender's memory.
    pub copied: u64,
    pub messages: u64,
    /// In those messages, whatever they were wrapped in.
    pub message_bytes: u64,
}

impl RankUsage {
    /// With what another process of the rank has used.
    pub fn add(&mut self, other: Self) {
        self.wall_us = self.wall_us.max(other.wall_us);
        self.user_us = self.user_us.saturating_add(other.user_us);
        self.system_us = self.system_us.saturating_add(other.system_us);
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
    }
}
