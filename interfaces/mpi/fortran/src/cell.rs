//! Values that Fortran caches on objects (MPI 5.0, section 19.3.7).
//!
//! To Fortran an attribute is an integer, to C a pointer; and C is to find a pointer to the integer that Fortran has
//! set. So what is cached is the address of a *cell*, which holds the integer for ever. There is one for each value and
//! width, so their number is that of the different values a program sets. By its address Fortran knows its own values
//! again; any other address was set by C, and is itself the integer.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// How wide the integer is that C finds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CellWidth {
    /// `INTEGER`, of functions of MPI 1.
    Small,
    /// `INTEGER(KIND=MPI_ADDRESS_KIND)`.
    Address,
}

#[derive(Default)]
struct Cells {
    by_value: HashMap<(isize, CellWidth), usize>,
    widths: HashMap<usize, CellWidth>,
}

fn cells() -> &'static Mutex<Cells> {
    static CELLS: OnceLock<Mutex<Cells>> = OnceLock::new();
    CELLS.get_or_init(Mutex::default)
}

/// The address of the cell with this value.
pub fn of(value: isize, width: CellWidth) -> usize {
    let mut cells = cells().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&address) = cells.by_value.get(&(value, width)) {
        return address;
    }
    // A processor whose low bytes come first finds an `INTEGER` at the same address.
    let address = std::ptr::from_ref(Box::leak(Box::new(value))) as usize;
    cells.by_value.insert((value, width), address);
    cells.widths.insert(address, width);
    address
}

/// The integer behind what is cached.
pub fn value(cached: usize) -> isize {
    let cells = cells().lock().unwrap_or_else(PoisonError::into_inner);
    if !cells.widths.contains_key(&cached) {
        return cached as isize;
    }
    // SAFETY: the address of a cell, which is never freed.
    unsafe { *(cached as *const isize) }
}

/// How wide the integer is that Fortran has set; `None` for what C has set.
#[allow(dead_code, reason = "one of the two libraries with cells asks")]
pub fn width(cached: usize) -> Option<CellWidth> {
    cells().lock().unwrap_or_else(PoisonError::into_inner).widths.get(&cached).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_c_finds_them_at_the_address() {
        let (small, wide) = (of(-7, CellWidth::Small), of(-7, CellWidth::Address));
        assert_ne!(small, wide);
        assert_eq!((value(small), value(wide)), (-7, -7));
        // SAFETY: cells.
        unsafe { assert_eq!((*(small as *const i32), *(wide as *const isize)), (-7, -7)) };
        assert_eq!(of(-7, CellWidth::Address), wide, "one cell for each value");
    }

    #[test]
    fn what_c_has_set_is_the_integer_itself() {
        assert_eq!(value(0x1234_5678), 0x1234_5678);
        assert_eq!(value(0), 0);
    }
}
