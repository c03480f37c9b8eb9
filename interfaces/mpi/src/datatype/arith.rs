//! Checks of counts and lengths.

use crate::error::{Class, Error, Result};

impl From<weft_data::Overflow> for Error {
    fn from(overflow: weft_data::Overflow) -> Self {
        Self::new(Class::Count, overflow.to_string())
    }
}

/// The value, or an error that names the argument when it is negative.
pub(super) fn non_negative(class: Class, name: &str, value: i64) -> Result<i64> {
    if value >= 0 {
        return Ok(value);
    }
    Err(Error::new(class, format!("{name} is {value}; it must be 0 or more")))
}

/// As [`non_negative`] for the members of an array argument.
pub(super) fn all_non_negative(class: Class, name: &str, values: &[i64]) -> Result<()> {
    match values.iter().position(|&value| value < 0) {
        None => Ok(()),
        Some(at) => non_negative(class, &format!("{name}[{at}]"), values[at]).map(drop),
    }
}

/// Refuses arrays of different lengths.
pub(super) fn same_length(name: &str, found: usize, wanted: usize) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(Error::new(Class::Arg, format!("{name} has {found} members; it must have {wanted}")))
}
