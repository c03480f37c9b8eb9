//! Attributes as Fortran sees them.

use crate::cell::{self, CellWidth};

/// The keys whose value is an address in itself (`MPI_WIN_BASE`), an address of an address-sized integer
/// (`MPI_WIN_SIZE`), and the others that the library sets, which are addresses of an `int`.
const WIN_BASE: i32 = 601;
const WIN_SIZE: i32 = 603;
const OF_COMM: std::ops::RangeInclusive<i32> = 501..=507;
const OF_WIN: std::ops::RangeInclusive<i32> = 601..=605;

/// The value that Fortran gets for what is cached under a key.
///
/// # Safety
/// `cached` is what the library answered for this key.
pub unsafe fn read(keyval: i32, cached: usize) -> isize {
    // SAFETY: values of the library's own keys (MPI 5.0, sections 9.1.2 and 12.2.6).
    unsafe {
        match keyval {
            WIN_BASE => cached as isize,
            WIN_SIZE => *(cached as *const isize),
            _ if OF_COMM.contains(&keyval) || OF_WIN.contains(&keyval) => *(cached as *const i32) as isize,
            _ => cell::value(cached),
        }
    }
}

/// What is cached for a value of Fortran.
pub fn write(value: isize, width: CellWidth) -> usize {
    cell::of(value, width)
}
