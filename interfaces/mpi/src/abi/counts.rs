//! Counts and displacements: `int` in a function, 64 bits in its `_c` twin; bodies see both as one.

use std::ffi::c_void;

/// An array of counts or displacements.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub at: *const c_void,
    /// 64-bit elements.
    pub wide: bool,
}

impl Counts {
    /// Whether the program passed a null pointer.
    pub fn is_null(self) -> bool {
        self.at.is_null()
    }

    /// The element at `index`.
    ///
    /// # Safety
    /// The array has more than `index` elements.
    #[inline]
    pub unsafe fn get(self, index: usize) -> i64 {
        // SAFETY: within the array, as the caller says.
        unsafe { if self.wide { *self.at.cast::<i64>().add(index) } else { *self.at.cast::<i32>().add(index) as i64 } }
    }
}

/// Where a count (or an array of them) is to be stored.
#[derive(Clone, Copy, Debug)]
pub struct CountOut {
    pub at: *mut c_void,
    /// 64-bit elements.
    pub wide: bool,
}

impl CountOut {
    pub fn is_null(self) -> bool {
        self.at.is_null()
    }

    /// The count that is there, such as the position in a buffer.
    ///
    /// # Safety
    /// The program has set it.
    #[inline]
    pub unsafe fn get(self) -> i64 {
        let counts = Counts { at: self.at, wide: self.wide };
        // SAFETY: as the caller says.
        unsafe { counts.get(0) }
    }

    /// Stores a count; one that does not fit becomes `MPI_UNDEFINED`, as the standard wants it.
    ///
    /// # Safety
    /// The pointer is the program's own place for the count.
    #[inline]
    pub unsafe fn set(self, value: i64) {
        // SAFETY: as the caller says.
        unsafe { self.set_at(0, value) }
    }

    /// Stores element `index` of an array, like [`Self::set`].
    ///
    /// # Safety
    /// The array has more than `index` elements.
    #[inline]
    pub unsafe fn set_at(self, index: usize, value: i64) {
        // SAFETY: within the array, as the caller says.
        unsafe {
            if self.wide {
                *self.at.cast::<i64>().add(index) = value;
            } else {
                *self.at.cast::<i32>().add(index) = i32::try_from(value).unwrap_or(super::UNDEFINED);
            }
        }
    }
}

/// A user's function whose type differs between a function and its `_c` twin.
#[derive(Clone, Copy, Debug)]
pub struct CountCallback {
    pub at: usize,
    /// The function takes `MPI_Count`.
    pub wide: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_and_wide_arrays_read_the_same() {
        let (narrow, wide) = ([1i32, -2, 3], [1i64, -2, 1 << 40]);
        let narrow = Counts { at: narrow.as_ptr().cast(), wide: false };
        let wide = Counts { at: wide.as_ptr().cast(), wide: true };
        // SAFETY: both arrays have three elements.
        unsafe {
            assert_eq!((narrow.get(0), narrow.get(1), narrow.get(2)), (1, -2, 3));
            assert_eq!((wide.get(0), wide.get(1), wide.get(2)), (1, -2, 1 << 40));
        }
    }

    #[test]
    fn a_count_that_does_not_fit_becomes_undefined() {
        let mut small = 0i32;
        let out = CountOut { at: (&raw mut small).cast(), wide: false };
        // SAFETY: `out` points to `small`.
        unsafe { out.set(1 << 31) };
        assert_eq!(small, super::super::UNDEFINED);
    }
}
