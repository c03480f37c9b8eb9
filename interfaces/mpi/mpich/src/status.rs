//! The status of this ABI: 20 bytes.

use crate::number;
use weft_mpi::abi::Status as Ours;

/// `MPI_Status`. The count of bytes has 63 bits; the lowest bit of the second word says that the request was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct MpichStatus {
    count_low: u32,
    count_high_and_cancelled: u32,
    pub source: i32,
    pub tag: i32,
    pub error: i32,
}

impl MpichStatus {
    /// What a request without a message has.
    pub const EMPTY: Self = Self {
        count_low: 0,
        count_high_and_cancelled: 0,
        source: crate::values::ANY_SOURCE,
        tag: crate::values::ANY_TAG,
        error: crate::values::SUCCESS,
    };

    pub fn ours(&self) -> Ours {
        let bytes = u64::from(self.count_low) | u64::from(self.count_high_and_cancelled >> 1) << 32;
        let mut status = Ours::new(number::rank_ours(self.source), number::tag_ours(self.tag), bytes);
        status.set_cancelled(self.count_high_and_cancelled & 1 != 0);
        status.error = number::code_ours(self.error);
        status
    }

    /// Takes over what a call changed.
    pub fn take_over(&mut self, before: &Ours, after: &Ours) {
        if after == before {
            return;
        }
        let bytes = after.bytes();
        self.count_low = bytes as u32;
        self.count_high_and_cancelled = ((bytes >> 32) as u32) << 1 | u32::from(after.is_cancelled());
        self.source = number::rank_theirs(after.source);
        self.tag = number::tag_theirs(after.tag);
        if after.error != before.error {
            self.error = number::code_theirs(after.error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_keeps_counts_above_32_bits_and_the_error_that_nobody_set() {
        let mut status =
            MpichStatus { count_low: u32::MAX, count_high_and_cancelled: 7, source: -2, tag: -1, error: 12345 };
        let before = status.ours();
        assert_eq!((before.bytes(), before.is_cancelled()), (u64::from(u32::MAX) | 3 << 32, true));
        assert_eq!((before.source, before.tag), (weft_mpi::abi::ANY_SOURCE, weft_mpi::abi::ANY_TAG));
        let garbage = status;
        status.take_over(&before, &before);
        assert_eq!(status, garbage);
        let mut after = Ours::new(weft_mpi::abi::PROC_NULL, 5, 1 << 40);
        after.error = before.error;
        status.take_over(&before, &after);
        assert_eq!((status.count_low, status.count_high_and_cancelled), (0, 1 << 9));
        assert_eq!((status.source, status.tag, status.error), (-1, 5, 12345));
        assert_eq!(size_of::<MpichStatus>(), 20);
    }
}
