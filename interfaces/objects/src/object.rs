//! Types that can be shared, and the form of their arguments, answers and states: postcard's.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What arguments, answers and parts of a state can be.
pub trait Shareable: Serialize + DeserializeOwned + Clone + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + Send + 'static> Shareable for T {}

/// A type whose values can be shared: written by `#[object]`.
pub trait ObjectType: Serialize + DeserializeOwned + Send + 'static {
    /// By number: as they stand in the `impl`.
    const OPERATIONS: &'static [ObjectOperation<Self>];
}

/// One operation, on arguments as bytes.
pub struct ObjectOperation<T> {
    pub name: &'static str,
    pub writes: bool,
    pub run: RunOperation<T>,
}

/// Runs an operation on the state. `None`: its guard is false. The answer is written only if somebody `is_answered`.
pub type RunOperation<T> =
    fn(state: &mut T, arguments: &[u8], is_answered: bool) -> Result<Option<Vec<u8>>, FormatFault>;

/// Bytes and values that do not fit each other.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct FormatFault(#[from] postcard::Error);

/// A value as bytes.
///
/// # Errors
/// The value has no form, such as a map of unknown length.
pub fn encode(value: &impl Serialize) -> Result<Vec<u8>, FormatFault> {
    // Most are short: this saves growing the memory byte by byte.
    Ok(postcard::to_extend(value, Vec::with_capacity(64))?)
}

/// A value out of all of these bytes.
///
/// # Errors
/// They are of another type, or of more than one value.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FormatFault> {
    match postcard::take_from_bytes(bytes)? {
        (value, []) => Ok(value),
        _ => Err(postcard::Error::DeserializeBadEncoding.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_another_type_are_refused() {
        let bytes = encode(&("a".to_owned(), 300_i64)).expect("a form");
        assert_eq!(bytes, [1, b'a', 0xd8, 4]);
        assert_eq!(decode::<(String, i64)>(&bytes).expect("what was written"), ("a".to_owned(), 300));
        assert!(decode::<(String,)>(&bytes).is_err());
        assert!(decode::<(String, i64, u8)>(&bytes).is_err());
        assert!(decode::<String>(&[200, 1]).is_err());
    }
}
