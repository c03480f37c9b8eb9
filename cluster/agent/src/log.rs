//! What the ranks have written lately, for `weft logs`: in memory of ours that the daemon of this host finds.

use crate::sys;
use std::fs::File;
use std::os::unix::fs::FileExt;
use weft_cluster::job_log::{LogRing, MEMORY_NAME};

/// The launcher's. It is there as long as the launcher, or who has opened it.
#[derive(Debug)]
pub struct JobLog {
    memory: File,
    ring: LogRing,
}

impl JobLog {
    /// Of so many bytes. A daemon that is told of the job after this finds it.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(bytes: u64) -> std::io::Result<Self> {
        let (memory, ring) = (File::from(sys::growing_memory(MEMORY_NAME)?), LogRing::new(bytes));
        memory.write_all_at(&ring.head(), 0)?;
        Ok(Self { memory, ring })
    }

    /// A rank has written this. Where there is no room for it, the job goes on without.
    pub(crate) fn add(&mut self, rank: usize, is_error: bool, bytes: &[u8]) {
        for (at, bytes) in self.ring.add(rank as u32, is_error, bytes) {
            if self.memory.write_all_at(&bytes, at).is_err() {
                return;
            }
        }
    }
}
