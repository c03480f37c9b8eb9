//! What the program says of one thing in several arguments, which bodies get as one.

use super::Counts;
use std::ffi::c_void;

/// A buffer of equal elements.
#[derive(Clone, Copy)]
pub struct Described {
    pub buffer: *const c_void,
    pub count: i64,
    pub datatype: usize,
}

/// A buffer of blocks with their own counts and displacements.
#[derive(Clone, Copy)]
pub struct Various {
    pub buffer: *const c_void,
    pub counts: Counts,
    pub displacements: Counts,
    pub datatype: usize,
}

/// The target of an operation on a window.
#[derive(Clone, Copy)]
pub struct Aim {
    pub rank: i32,
    pub disp: isize,
    pub count: i64,
    pub datatype: usize,
}
