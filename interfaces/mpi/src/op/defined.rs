//! Which types each predefined operation is defined for, and the loop that does it.

use super::kernels;
use super::pairs;
use super::predefined::PredefinedOperation::{self, *};
use crate::datatype::TypeGroup::{self, *};
use crate::datatype::{Datatype, NamedType};
use crate::error::{Class, Error, Result};
use weft_collective::run::Kernel;

impl PredefinedOperation {
    /// The groups of types that it is defined for (MPI 5.0, section 6.9.2).
    fn groups(self) -> &'static [TypeGroup] {
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

    fn kernel_for(self, named: &NamedType) -> Option<Kernel> {
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

fn group_name(group: TypeGroup) -> &'static str {
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
