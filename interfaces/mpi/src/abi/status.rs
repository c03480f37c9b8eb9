//! The status of the C interface.

/// `MPI_Status`: 32 bytes; the last five integers are the library's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Status {
    pub source: i32,
    pub tag: i32,
    pub error: i32,
    bytes_low: u32,
    bytes_high: u32,
    cancelled: i32,
    unused: [i32; 2],
}

impl Status {
    /// What a call that waited for nothing answers (MPI 5.0, section 3.7.3).
    pub const EMPTY: Self = Self::new(super::ANY_SOURCE, super::ANY_TAG, 0);

    /// A status with no error.
    pub const fn new(source: i32, tag: i32, bytes: u64) -> Self {
        Self {
            source,
            tag,
            error: super::SUCCESS,
            bytes_low: bytes as u32,
            bytes_high: (bytes >> 32) as u32,
            cancelled: 0,
            unused: [0; 2],
        }
    }

    /// Bytes received.
    pub const fn bytes(&self) -> u64 {
        self.bytes_low as u64 | (self.bytes_high as u64) << 32
    }

    pub fn set_bytes(&mut self, bytes: u64) {
        (self.bytes_low, self.bytes_high) = (bytes as u32, (bytes >> 32) as u32);
    }

    pub const fn is_cancelled(&self) -> bool {
        self.cancelled != 0
    }

    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.cancelled = cancelled as i32;
    }

    /// The same with no error.
    #[inline]
    pub const fn without_error(self) -> Self {
        Self { error: super::SUCCESS, ..self }
    }

    /// Stores everything but the error, which only the calls that complete several requests set
    /// (MPI 5.0, section 3.2.5). A null `at` is `MPI_STATUS_IGNORE`.
    ///
    /// # Safety
    /// `at` is null or points to a status.
    #[inline]
    pub unsafe fn store(self, at: *mut Status) {
        if !at.is_null() {
            // SAFETY: the caller says that it points to a status.
            unsafe { *at = Self { error: (*at).error, ..self } };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_the_size_of_the_abi_and_keeps_counts_above_32_bits() {
        assert_eq!((size_of::<Status>(), align_of::<Status>()), (32, 4));
        let mut status = Status::new(3, 4, 0x1_2345_6789);
        assert_eq!(status.bytes(), 0x1_2345_6789);
        status.set_bytes(u64::MAX);
        status.set_cancelled(true);
        assert_eq!((status.bytes(), status.is_cancelled(), status.source, status.tag), (u64::MAX, true, 3, 4));
    }

    #[test]
    fn storing_leaves_the_error_field_alone() {
        let mut target = Status { error: 77, ..Status::EMPTY };
        // SAFETY: `target` is a status.
        unsafe { Status::new(1, 2, 8).store(&mut target) };
        assert_eq!((target.source, target.tag, target.error, target.bytes()), (1, 2, 77, 8));
    }
}
