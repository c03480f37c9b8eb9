//! Rows of numbers as arguments and answers of operations: as bytes, and not number by number.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const BYTES: usize = size_of::<f64>();

/// Numbers, written as their bytes (the lowest first), which is a copy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reals(pub Vec<f64>);

impl From<&[f64]> for Reals {
    fn from(numbers: &[f64]) -> Self {
        Self(numbers.to_vec())
    }
}

impl Serialize for Reals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = vec![0; self.0.len() * BYTES];
        for (place, number) in bytes.chunks_exact_mut(BYTES).zip(&self.0) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        serializer.serialize_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for Reals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RealsInBytes;
        impl Visitor<'_> for RealsInBytes {
            type Value = Reals;

            fn expecting(&self, form: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                form.write_str("numbers of eight bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Reals, E> {
                let (numbers, rest) = bytes.as_chunks::<BYTES>();
                if !rest.is_empty() {
                    return Err(E::invalid_length(bytes.len(), &self));
                }
                Ok(Reals(numbers.iter().map(|number| f64::from_le_bytes(*number)).collect()))
            }
        }
        deserializer.deserialize_bytes(RealsInBytes)
    }
}
