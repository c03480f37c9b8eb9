//! Fortran types chosen by precision and range, or by class and size (MPI 5.0, section 19.1.9).

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::Datatype;
use super::contents::{Combiner, Contents};
use crate::error::{Class, Error, Result};

/// What kind of number to match a size with; the numbers of the standard ABI (logical is an extension).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum TypeClass {
    Logical = 191,
    Integer = 192,
    Real = 193,
    Complex = 194,
}

/// The value of an argument left open.
const UNDEFINED: i64 = -32766;

/// Decimal digits, decimal exponent range, code of the real type, code of the complex type.
const REALS: [(i64, i64, u16, u16); 2] = [(6, 37, 0x2d2, 0x2db), (15, 307, 0x2da, 0x2e3)];

/// Decimal digits, code of the integer type.
const INTEGERS: [(i64, u16); 4] = [(2, 0x2c1), (4, 0x2c9), (9, 0x2d1), (18, 0x2d9)];

type Key = (i32, i64, i64);

/// Equal requests answer the same type; the standard asks for it so that programs need not keep them.
static MADE: LazyLock<Mutex<HashMap<Key, Datatype>>> = LazyLock::new(Mutex::default);

impl TypeClass {
    pub fn from_code(code: i64) -> Result<Self> {
        match code {
            191 => Ok(Self::Logical),
            192 => Ok(Self::Integer),
            193 => Ok(Self::Real),
            194 => Ok(Self::Complex),
            _ => {
                let detail = format!("type class is {code}; it must be 192 (integer), 193 (real) or 194 (complex)");
                Err(Error::new(Class::Arg, detail))
            }
        }
    }

    /// Sizes in bytes and codes.
    const fn members(self) -> &'static [(i64, u16)] {
        match self {
            Self::Logical => &[(1, 0x2c0), (2, 0x2c8), (4, 0x2d0), (8, 0x2d8)],
            Self::Integer => &[(1, 0x2c1), (2, 0x2c9), (4, 0x2d1), (8, 0x2d9)],
            // The longest are those of C, for which the ABI has no Fortran type.
            Self::Real => &[(2, 0x2ca), (4, 0x2d2), (8, 0x2da), (16, 0x220)],
            Self::Complex => &[(8, 0x2db), (16, 0x2e3), (32, 0x224)],
        }
    }
}

impl Datatype {
    /// The predefined Fortran type of this class and size in bytes.
    pub fn match_size(class: TypeClass, size: i64) -> Result<&'static Self> {
        match class.members().iter().find(|member| member.0 == size) {
            Some(member) => Ok(Self::known(member.1)),
            None => {
                let sizes: Vec<String> = class.members().iter().map(|member| member.0.to_string()).collect();
                let kind = format!("{class:?}").to_lowercase();
                let detail = format!("no {kind} type has size {size}; sizes are {}", sizes.join(", "));
                Err(Error::new(Class::Arg, detail))
            }
        }
    }

    /// The real type with at least `precision` decimal digits and exponent range `range`; -32766 leaves one of them
    /// open.
    pub fn f90_real(precision: i64, range: i64) -> Result<Self> {
        let real = real_row(precision, range)?.2;
        Ok(cached(Combiner::F90Real, &[precision, range], real))
    }

    /// As [`Datatype::f90_real`], for complex numbers.
    pub fn f90_complex(precision: i64, range: i64) -> Result<Self> {
        let complex = real_row(precision, range)?.3;
        Ok(cached(Combiner::F90Complex, &[precision, range], complex))
    }

    /// The integer type for all numbers of `range` decimal digits.
    pub fn f90_integer(range: i64) -> Result<Self> {
        let row = INTEGERS.iter().find(|row| (0..=row.0).contains(&range));
        let detail = || format!("range is {range}; it must be 0 to 18 decimal digits");
        let row = row.ok_or_else(|| Error::new(Class::Arg, detail()))?;
        Ok(cached(Combiner::F90Integer, &[range], row.1))
    }
}

fn real_row(precision: i64, range: i64) -> Result<&'static (i64, i64, u16, u16)> {
    let fits = |wanted: i64, limit: i64| wanted == UNDEFINED || (0..=limit).contains(&wanted);
    let open = precision == UNDEFINED && range == UNDEFINED;
    let row = REALS.iter().find(|row| !open && fits(precision, row.0) && fits(range, row.1));
    row.ok_or_else(|| {
        let allowed = "precision must be 0 to 15 digits and range 0 to 307; one of them may be undefined";
        Error::new(Class::Arg, format!("no type has precision {precision} and range {range}: {allowed}"))
    })
}

fn cached(combiner: Combiner, integers: &[i64], code: u16) -> Datatype {
    let key = (combiner as i32, integers[0], *integers.last().unwrap_or(&0));
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let fresh = || {
        let base = Datatype::known(code);
        Datatype::build(base.form().clone(), base.named(), Contents::new(combiner).integers(integers), true)
    };
    made.entry(key).or_insert_with(fresh).clone()
}
