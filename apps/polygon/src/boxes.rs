//! Boxes with their sides along the axes: the polygons of a map.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// From a corner to the opposite one, which is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct MapBox {
    pub left: u16,
    pub low: u16,
    pub right: u16,
    pub high: u16,
}

impl MapBox {
    pub const fn new(left: u16, low: u16, right: u16, high: u16) -> Self {
        Self { left, low, right, high }
    }

    /// What is in both. It is hollow, or inside out, if nothing is.
    #[inline]
    pub fn common(self, other: Self) -> Self {
        Self {
            left: self.left.max(other.left),
            low: self.low.max(other.low),
            right: self.right.min(other.right),
            high: self.high.min(other.high),
        }
    }

    #[inline]
    pub fn is_hollow(self) -> bool {
        self.left >= self.right || self.low >= self.high
    }

    /// Of one that is not inside out.
    #[inline]
    pub fn area(self) -> u32 {
        u32::from(self.right - self.left) * u32::from(self.high - self.low)
    }

    fn bytes(self) -> [u8; BYTES] {
        let sides = [self.left, self.low, self.right, self.high].map(u16::to_le_bytes);
        std::array::from_fn(|at| sides[at / 2][at % 2])
    }

    fn from_bytes(bytes: &[u8; BYTES]) -> Self {
        let side = |at: usize| u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]);
        Self::new(side(0), side(1), side(2), side(3))
    }
}

const BYTES: usize = 8;

/// Boxes as arguments of operations: as bytes, and not side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoxList(pub Vec<MapBox>);

impl Serialize for BoxList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = vec![0; self.0.len() * BYTES];
        for (place, one) in bytes.as_chunks_mut().0.iter_mut().zip(&self.0) {
            *place = one.bytes();
        }
        serializer.serialize_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for BoxList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BoxBytes;
        impl Visitor<'_> for BoxBytes {
            type Value = BoxList;

            fn expecting(&self, form: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                form.write_str("boxes of eight bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<BoxList, E> {
                let (boxes, rest) = bytes.as_chunks::<BYTES>();
                if !rest.is_empty() {
                    return Err(E::invalid_length(bytes.len(), &self));
                }
                Ok(BoxList(boxes.iter().map(MapBox::from_bytes).collect()))
            }
        }
        deserializer.deserialize_bytes(BoxBytes)
    }
}
