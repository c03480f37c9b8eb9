//! The elements that every datatype is made of, in memory (x86-64 and other LP64 machines) and in external32.

/// One basic element. The names say the representation, not the language: several predefined types share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Bytes without meaning: no arithmetic, no byte order.
    Byte,
    /// Bytes made by a pack call.
    Packed,
    /// A character of C.
    Char,
    /// A character of Fortran.
    Character,
    /// A wide character: 4 bytes in memory, 2 in external32.
    Wchar,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    /// C `long`: 8 bytes in memory, 4 in external32.
    Long,
    /// C `unsigned long`: as `Long`.
    Ulong,
    /// A real number of two bytes (binary16).
    F16,
    F32,
    F64,
    /// The 80-bit float of the x87 in 16 bytes; a binary128 in external32.
    F80,
    /// Two floats.
    C32,
    C64,
    C80,
    /// `bool` of C and C++.
    Bool,
    /// LOGICAL of Fortran in 1, 2, 4 or 8 bytes.
    Logical1,
    Logical2,
    Logical4,
    Logical8,
}

impl Scalar {
    /// Bytes in memory.
    pub const fn size(self) -> i64 {
        use Scalar::*;
        match self {
            Byte | Packed | Char | Character | I8 | U8 | Bool | Logical1 => 1,
            I16 | U16 | F16 | Logical2 => 2,
            Wchar | I32 | U32 | F32 | Logical4 => 4,
            I64 | U64 | Long | Ulong | F64 | C32 | Logical8 => 8,
            F80 | C64 => 16,
            C80 => 32,
        }
    }

    /// The alignment that the C ABI gives it, in bytes.
    pub const fn align(self) -> i64 {
        match self {
            Scalar::C32 => 4,
            Scalar::C64 => 8,
            Scalar::C80 => 16,
            other => other.size(),
        }
    }

    /// Bytes in external32 (MPI 5.0, section 14.5.2).
    pub const fn external_size(self) -> i64 {
        match self {
            Scalar::Wchar => 2,
            Scalar::Long | Scalar::Ulong => 4,
            other => other.size(),
        }
    }

    /// How many numbers it is made of: 2 for the complex ones.
    pub const fn components(self) -> i64 {
        match self {
            Scalar::C32 | Scalar::C64 | Scalar::C80 => 2,
            _ => 1,
        }
    }
}
