//! How messages are written, and the types of their elements.

/// What the numbers of this processor look like, as PVM writes it down: `short`, `int` and `long` with the logarithms
/// of their sizes, `float` and `double` by their formats (IEEE single and double); the lowest byte comes first
/// everywhere.
pub const NATIVE: i32 = 1 | 2 << 5 | 3 << 10 | 1 << 15 | 2 << 21;
const XDR: i32 = 0x1000_0000;
const IN_PLACE: i32 = 0x2000_0000;

/// How a message is written. All processors that this runs on have the same numbers, so raw ones can be read
/// everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Encoding {
    /// XDR (RFC 4506): numbers in units of four bytes, the first byte the highest one.
    #[default]
    Default = 0,
    /// As it stands in memory.
    Raw = 1,
    /// As it stands in memory, where it stays until the message is sent.
    InPlace = 2,
}

impl Encoding {
    /// From the bits that travel. What was in place is raw when it has arrived.
    pub fn from_bits(bits: u32) -> Self {
        if bits & 3 == 0 { Self::Default } else { Self::Raw }
    }

    /// The number that programs know it by.
    pub fn signature(self) -> i32 {
        match self {
            Self::Default => XDR,
            Self::Raw => NATIVE,
            Self::InPlace => IN_PLACE,
        }
    }

    /// The encoding of a message within a message; none if it is another processor's.
    pub(super) fn of_signature(signature: i32) -> Option<Self> {
        match signature {
            XDR => Some(Self::Default),
            NATIVE | IN_PLACE => Some(Self::Raw),
            _ => None,
        }
    }
}

/// The type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    Byte,
    Short,
    UnsignedShort,
    /// `int`, signed or not.
    Int,
    /// `long`, signed or not.
    Long,
    Float,
    Double,
    Complex,
    DoubleComplex,
}

impl ElementKind {
    #[cfg(test)]
    pub const ALL: [Self; 9] = [
        Self::Byte,
        Self::Short,
        Self::UnsignedShort,
        Self::Int,
        Self::Long,
        Self::Float,
        Self::Double,
        Self::Complex,
        Self::DoubleComplex,
    ];

    /// ByteString in memory.
    pub const fn size(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Short | Self::UnsignedShort => 2,
            Self::Int | Self::Float => 4,
            Self::Long | Self::Double | Self::Complex => 8,
            Self::DoubleComplex => 16,
        }
    }
}
