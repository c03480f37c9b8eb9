//! Checked 64-bit arithmetic on counts, sizes and displacements.

use crate::error::{Class, Error, Result as Checked};
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

impl From<Overflow> for Error {
    fn from(overflow: Overflow) -> Self {
        Self::new(Class::Count, overflow.to_string())
    }
}

pub(crate) fn add(a: i64, b: i64) -> Result<i64> {
    a.checked_add(b).ok_or(Overflow)
}

pub(crate) fn sub(a: i64, b: i64) -> Result<i64> {
    a.checked_sub(b).ok_or(Overflow)
}

pub(crate) fn mul(a: i64, b: i64) -> Result<i64> {
    a.checked_mul(b).ok_or(Overflow)
}

/// The value, or an error that names the argument when it is negative.
pub(crate) fn non_negative(class: Class, name: &str, value: i64) -> Checked<i64> {
    if value >= 0 {
        return Ok(value);
    }
    Err(Error::new(class, format!("{name} is {value}; it must be 0 or more")))
}

/// As [`non_negative`] for the members of an array argument.
pub(crate) fn all_non_negative(class: Class, name: &str, values: &[i64]) -> Checked<()> {
    match values.iter().position(|&value| value < 0) {
        None => Ok(()),
        Some(at) => non_negative(class, &format!("{name}[{at}]"), values[at]).map(drop),
    }
}

/// Refuses arrays of different lengths.
pub(crate) fn same_length(name: &str, found: usize, wanted: usize) -> Checked<()> {
    if found == wanted {
        return Ok(());
    }
    Err(Error::new(Class::Arg, format!("{name} has {found} members; it must have {wanted}")))
}
