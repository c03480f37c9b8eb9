//! Checked 64-bit arithmetic on counts, sizes and displacements.

use std::fmt;

/// A size or a displacement does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the datatype's size or a displacement in it exceeds 2^63-1 bytes")
    }
}

impl std::error::Error for Overflow {}

pub type Result<T> = std::result::Result<T, Overflow>;

pub fn add(a: i64, b: i64) -> Result<i64> {
    a.checked_add(b).ok_or(Overflow)
}

pub fn sub(a: i64, b: i64) -> Result<i64> {
    a.checked_sub(b).ok_or(Overflow)
}

pub fn mul(a: i64, b: i64) -> Result<i64> {
    a.checked_mul(b).ok_or(Overflow)
}
