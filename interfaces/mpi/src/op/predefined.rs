//! The predefined operations: names, codes, and which types each is defined for.

use super::kernels::{self, Kernel};
use super::pairs;
use crate::datatype::{Datatype, Group, Named, Scalar};
use crate::error::{Class, Error, Result};

/// A predefined operation, with the numeric value of its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Predefined {
    Sum = 0x21,
    Min = 0x22,
    Max = 0x23,
    Prod = 0x24,
    Band = 0x28,
    Bor = 0x29,
    Bxor = 0x2a,
    Land = 0x30,
    Lor = 0x31,
    Lxor = 0x32,
    Minloc = 0x38,
    Maxloc = 0x39,
    Replace = 0x3c,
    NoOp = 0x3d,
}

use Group::*;
use Predefined::*;

impl Predefined {
    pub const ALL: [Self; 14] = [Sum, Min, Max, Prod, Band, Bor, Bxor, Land, Lor, Lxor, Minloc, Maxloc, Replace, NoOp];

    /// The operation with this handle code; none for the null handle and for numbers that are no operation.
    pub fn from_code(code: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|op| *op as usize == code)
    }

    /// Its name without the prefix.
    pub fn name(self) -> &'static str {
        match self {
            Sum => "SUM",
            Min => "MIN",
            Max => "MAX",
            Prod => "PROD",
            Band => "BAND",
            Bor => "BOR",
            Bxor => "BXOR",
            Land => "LAND",
            Lor => "LOR",
            Lxor => "LXOR",
            Minloc => "MINLOC",
            Maxloc => "MAXLOC",
            Replace => "REPLACE",
            NoOp => "NO_OP",
        }
    }

    /// The groups of types that it is defined for (MPI 5.0, section 6.9.2).
    fn groups(self) -> &'static [Group] {
        match self {
            Min | Max => &[CInteger, FortranInteger, Floating, MultiLanguage],
            Sum | Prod => &[CInteger, FortranInteger, Floating, Complex, MultiLanguage],
            Land | Lor | Lxor => &[CInteger, Logical, MultiLanguage],
            Band | Bor | Bxor => &[CInteger, FortranInteger, Byte, MultiLanguage],
            Minloc | Maxloc => &[Pair],
            Replace | NoOp => {
                &[CInteger, FortranInteger, Floating, Logical, Complex, Byte, MultiLanguage, Pair, Opaque]
            }
        }
    }

    /// Refuses types that the operation is not defined for.
    #[inline]
    pub fn check(self, datatype: &Datatype) -> Result<()> {
        self.kernel(datatype).map(drop)
    }

    /// The loop that does it.
    #[inline]
    pub fn kernel(self, datatype: &Datatype) -> Result<Kernel> {
        let found = datatype.named().filter(|named| self.groups().contains(&named.group));
        found.and_then(|named| self.kernel_for(named)).ok_or_else(|| self.refusal(datatype))
    }

    fn kernel_for(self, named: &Named) -> Option<Kernel> {
        match (self, named.scalars) {
            (_, []) => None,
            (NoOp, scalars) => Some(kernels::keep(scalars)),
            (Replace, scalars) => Some(kernels::replace(scalars)),
            (Minloc | Maxloc, &[value, index]) => pairs::kernel(self, value, index),
            (_, &[scalar]) => kernels::scalar(self, scalar),
            _ => None,
        }
    }

    #[cold]
    fn refusal(self, datatype: &Datatype) -> Error {
        let name = self.name();
        let detail = match datatype.named() {
            None => format!(
                "operation {name} does not apply to a derived datatype ({datatype:?}); use a predefined type or a user operation"
            ),
            Some(named) if named.scalars.is_empty() => {
                format!("operation {name} on datatype {}: the type is not supported on this platform", named.name)
            }
            Some(named) => {
                let groups: Vec<&str> = self.groups().iter().map(|group| group_name(*group)).collect();
                format!("operation {name} does not apply to datatype {}; it takes {}", named.name, groups.join(", "))
            }
        };
        Error::new(Class::Op, detail)
    }
}

fn group_name(group: Group) -> &'static str {
    match group {
        CInteger => "C integers",
        FortranInteger => "Fortran integers",
        Floating => "floating-point numbers",
        Logical => "logical values",
        Complex => "complex numbers",
        Byte => "bytes",
        MultiLanguage => "addresses, counts and offsets",
        Pair => "pairs of value and index",
        Opaque => "opaque types",
    }
}

/// The size in memory of a predefined element with its padding.
pub(super) fn stride_of(scalars: &[Scalar]) -> usize {
    let align = scalars.iter().map(|scalar| scalar.align()).max().unwrap_or(1);
    let end = scalars.iter().fold(0, |end: i64, scalar| up(end, scalar.align()) + scalar.size());
    up(end, align) as usize
}

fn up(value: i64, align: i64) -> i64 {
    (value + align - 1) / align * align
}
