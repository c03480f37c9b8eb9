//! The predefined datatypes of the standard ABI with their handle codes (MPI 5.0, sections 3.2.2, 6.9.4 and 20.3).

use std::sync::LazyLock;

use super::contents::{Combiner, Contents};
use super::{Datatype, Scalar};
use weft_data::Form;

/// What predefined operations know about a predefined type (MPI 5.0, section 6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeGroup {
    /// Integers of C. Plain `char` is among them although the standard leaves it out: programs that work elsewhere
    /// reduce it.
    CInteger,
    FortranInteger,
    Floating,
    Logical,
    Complex,
    Byte,
    /// Address, count and offset.
    MultiLanguage,
    /// A value and an index.
    Pair,
    /// No operation but replacement.
    Opaque,
}

/// One predefined type.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedType {
    /// The numeric value of its handle.
    pub code: u16,
    /// Its name without the prefix.
    pub name: &'static str,
    pub group: TypeGroup,
    /// One scalar, two for a pair, none when this platform lacks the type.
    pub scalars: &'static [Scalar],
}

const fn row(code: u16, name: &'static str, group: TypeGroup, scalars: &'static [Scalar]) -> NamedType {
    NamedType { code, name, group, scalars }
}

use Scalar::*;
use TypeGroup::*;

/// The two-byte real number of C, which binaries built for MPICH know.
pub const C_FLOAT16: u16 = 0x2f0;

/// Fortran types have the sizes that gfortran gives them by default.
#[rustfmt::skip]
static TABLE: [NamedType; 71] = [
    row(0x201, "AINT", MultiLanguage, &[I64]),
    row(0x202, "COUNT", MultiLanguage, &[I64]),
    row(0x203, "OFFSET", MultiLanguage, &[I64]),
    row(0x207, "PACKED", Opaque, &[Packed]),
    row(0x208, "SHORT", CInteger, &[I16]),
    row(0x209, "INT", CInteger, &[I32]),
    row(0x20a, "LONG", CInteger, &[Long]),
    row(0x20b, "LONG_LONG", CInteger, &[I64]),
    row(0x20c, "UNSIGNED_SHORT", CInteger, &[U16]),
    row(0x20d, "UNSIGNED", CInteger, &[U32]),
    row(0x20e, "UNSIGNED_LONG", CInteger, &[Ulong]),
    row(0x20f, "UNSIGNED_LONG_LONG", CInteger, &[U64]),
    row(0x210, "FLOAT", Floating, &[F32]),
    row(0x212, "C_FLOAT_COMPLEX", Complex, &[C32]),
    row(0x213, "CXX_FLOAT_COMPLEX", Complex, &[C32]),
    row(0x214, "DOUBLE", Floating, &[F64]),
    row(0x216, "C_DOUBLE_COMPLEX", Complex, &[C64]),
    row(0x217, "CXX_DOUBLE_COMPLEX", Complex, &[C64]),
    row(0x218, "LOGICAL", Logical, &[Logical4]),
    row(0x219, "INTEGER", FortranInteger, &[I32]),
    row(0x21a, "REAL", Floating, &[F32]),
    row(0x21b, "COMPLEX", Complex, &[C32]),
    row(0x21c, "DOUBLE_PRECISION", Floating, &[F64]),
    row(0x21d, "DOUBLE_COMPLEX", Complex, &[C64]),
    row(0x21e, "CHARACTER", Opaque, &[Character]),
    row(0x220, "LONG_DOUBLE", Floating, &[F80]),
    row(0x224, "C_LONG_DOUBLE_COMPLEX", Complex, &[C80]),
    row(0x225, "CXX_LONG_DOUBLE_COMPLEX", Complex, &[C80]),
    row(0x228, "FLOAT_INT", Pair, &[F32, I32]),
    row(0x229, "DOUBLE_INT", Pair, &[F64, I32]),
    row(0x22a, "LONG_INT", Pair, &[Long, I32]),
    row(0x22b, "2INT", Pair, &[I32, I32]),
    row(0x22c, "SHORT_INT", Pair, &[I16, I32]),
    row(0x22d, "LONG_DOUBLE_INT", Pair, &[F80, I32]),
    row(0x230, "2REAL", Pair, &[F32, F32]),
    row(0x231, "2DOUBLE_PRECISION", Pair, &[F64, F64]),
    row(0x232, "2INTEGER", Pair, &[I32, I32]),
    row(0x238, "C_BOOL", Logical, &[Bool]),
    row(0x239, "CXX_BOOL", Logical, &[Bool]),
    row(0x23c, "WCHAR", Opaque, &[Wchar]),
    row(0x240, "INT8_T", CInteger, &[I8]),
    row(0x241, "UINT8_T", CInteger, &[U8]),
    row(0x243, "CHAR", CInteger, &[Char]),
    row(0x244, "SIGNED_CHAR", CInteger, &[I8]),
    row(0x245, "UNSIGNED_CHAR", CInteger, &[U8]),
    row(0x247, "BYTE", TypeGroup::Byte, &[Scalar::Byte]),
    row(0x248, "INT16_T", CInteger, &[I16]),
    row(0x249, "UINT16_T", CInteger, &[U16]),
    row(0x250, "INT32_T", CInteger, &[I32]),
    row(0x251, "UINT32_T", CInteger, &[U32]),
    row(0x258, "INT64_T", CInteger, &[I64]),
    row(0x259, "UINT64_T", CInteger, &[U64]),
    row(0x2c0, "LOGICAL1", Logical, &[Logical1]),
    row(0x2c1, "INTEGER1", FortranInteger, &[I8]),
    row(0x2c8, "LOGICAL2", Logical, &[Logical2]),
    row(0x2c9, "INTEGER2", FortranInteger, &[I16]),
    row(0x2ca, "REAL2", Floating, &[F16]),
    row(0x2d0, "LOGICAL4", Logical, &[Logical4]),
    row(0x2d1, "INTEGER4", FortranInteger, &[I32]),
    row(0x2d2, "REAL4", Floating, &[F32]),
    row(0x2d3, "COMPLEX4", Complex, &[]),
    row(0x2d8, "LOGICAL8", Logical, &[Logical8]),
    row(0x2d9, "INTEGER8", FortranInteger, &[I64]),
    row(0x2da, "REAL8", Floating, &[F64]),
    row(0x2db, "COMPLEX8", Complex, &[C32]),
    row(0x2e0, "LOGICAL16", Logical, &[]),
    row(0x2e1, "INTEGER16", FortranInteger, &[]),
    row(0x2e2, "REAL16", Floating, &[]),
    row(0x2e3, "COMPLEX16", Complex, &[C64]),
    row(0x2eb, "COMPLEX32", Complex, &[]),
    // Not of the standard: MPIX_C_FLOAT16 of MPICH, which gives it this code in the standard's ABI.
    row(C_FLOAT16, "C_FLOAT16", Floating, &[F16]),
];

/// The pairs that value_index answers, by the codes of value, index and pair.
static PAIRS: [(u16, u16, u16); 9] = [
    (0x210, 0x209, 0x228),
    (0x214, 0x209, 0x229),
    (0x20a, 0x209, 0x22a),
    (0x209, 0x209, 0x22b),
    (0x208, 0x209, 0x22c),
    (0x220, 0x209, 0x22d),
    (0x21a, 0x21a, 0x230),
    (0x21c, 0x21c, 0x231),
    (0x219, 0x219, 0x232),
];

/// Handle codes of datatypes are 0x200 to 0x3ff.
const CODES: usize = 512;

static BY_CODE: LazyLock<Vec<Option<Datatype>>> = LazyLock::new(|| {
    let mut types: Vec<Option<Datatype>> = vec![None; CODES];
    for named in &TABLE {
        let datatype = Datatype::build(form(named), Some(named), Contents::new(Combiner::Named), true);
        types[usize::from(named.code) & (CODES - 1)] = Some(datatype);
    }
    types
});

impl Datatype {
    /// The predefined type with this handle code; none for the null handle and for numbers that are no datatype.
    #[inline]
    pub fn predefined(code: usize) -> Option<&'static Self> {
        if code & !(CODES - 1) != 0x200 {
            return None;
        }
        BY_CODE[code & (CODES - 1)].as_ref()
    }

    /// All predefined types, in the order of their codes.
    pub fn all_predefined() -> impl Iterator<Item = &'static Self> {
        BY_CODE.iter().flatten()
    }

    /// The numeric handle of a predefined type; none for all others, also for parametrised Fortran types.
    pub fn code(&self) -> Option<u16> {
        let named = self.named()?;
        (self.combiner() == Combiner::Named).then_some(named.code)
    }

    /// The type with this code, which must be one of the table.
    pub(super) fn known(code: u16) -> &'static Self {
        Self::predefined(usize::from(code)).expect("the code stands in the table of predefined types")
    }
}

/// The predefined pair of these two.
pub(super) fn pair(value: &NamedType, index: &NamedType) -> Option<&'static Datatype> {
    let found = PAIRS.iter().find(|pair| (pair.0, pair.1) == (value.code, index.code))?;
    Some(Datatype::known(found.2))
}

/// Pairs are laid out as the C struct of both members: sizes are powers of two, so the index follows at once or at its
/// alignment.
fn form(named: &'static NamedType) -> Form {
    let made = match named.scalars {
        [] => Ok(Form::missing(named.name)),
        [one] => Ok(Form::scalar(*one)),
        [value, index, ..] => {
            let (value, index) = (Form::scalar(*value), Form::scalar(*index));
            let at = value.extent().max(index.align);
            index.shifted(at).and_then(|index| Form::sequence(&[value, index]))
        }
    };
    made.expect("predefined types are small")
}
