//! Bodies of the datatype functions.

pub(crate) unsafe fn aint_add(base: isize, displacement: isize) -> isize {
    base.wrapping_add(displacement)
}

pub(crate) unsafe fn aint_diff(first: isize, second: isize) -> isize {
    first.wrapping_sub(second)
}
