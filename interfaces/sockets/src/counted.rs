//! Why a connection is with the kernel, as it is counted: for one cause at a time, from its first call on, so that the
//! counts are right whenever the process is killed.

use std::sync::atomic::Ordering;

use weft_fabric::stream::{KernelReason, Reason};

use super::conn::{Connection, FRESH};
use super::meet::STREAMS;

impl Connection {
    /// It is with the kernel for this cause, and no more for the one before; for none, it has left the kernel.
    pub fn count_as(&self, cause: Option<KernelReason>) {
        let number = cause.map_or(0, |cause| cause.reason as u32 + 1);
        let before = self.counted_as.swap(number, Ordering::Relaxed);
        if before == number {
            return;
        }
        if let Some(before) = Reason::ALL.get((before as usize).wrapping_sub(1)) {
            STREAMS.counters().moved_on(*before);
        }
        if let Some(cause) = cause {
            STREAMS.counters().fell_back(cause);
        }
    }

    /// A call has moved something by the kernel: from now on it counts as one that has not been offered yet.
    #[inline]
    pub fn begin_to_count(&self) {
        if self.counted_as.load(Ordering::Relaxed) == 0 && self.state_now() == FRESH {
            self.count_as(Some(Reason::Short.into()));
        }
    }

    /// In a child after a fork: the parent has counted it.
    pub fn forget_counts(&self) {
        self.counted_as.store(0, Ordering::Relaxed);
    }
}
