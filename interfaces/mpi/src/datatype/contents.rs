//! How a datatype was made: the answer to envelope and contents (MPI 5.0, section 5.1.13).

use std::fmt;

use super::Datatype;
use crate::error::{Class, Error, Result};

/// Which constructor made a type, with the numbers of the standard ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Combiner {
    Named = 101,
    Dup = 102,
    Contiguous = 103,
    Vector = 104,
    Hvector = 105,
    Indexed = 106,
    Hindexed = 107,
    IndexedBlock = 108,
    HindexedBlock = 109,
    Struct = 110,
    Subarray = 111,
    Darray = 112,
    F90Real = 113,
    F90Complex = 114,
    F90Integer = 115,
    Resized = 116,
    ValueIndex = 117,
}

impl fmt::Display for Combiner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// Which form of a constructor was called. The results are the same but for what envelope and contents report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstructorForm {
    /// Counts are C `int`s.
    Int,
    /// Counts are 64 bits wide.
    Count,
}

/// How many values of each kind [`Contents`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentsEnvelope {
    pub combiner: Combiner,
    pub integers: usize,
    pub addresses: usize,
    /// Not 0 only for types made with 64-bit counts; only the large form of the queries can report these.
    pub counts: usize,
    pub datatypes: usize,
}

/// The arguments of the constructor call, in the order that the standard gives for each combiner.
#[derive(Clone, Debug)]
pub struct Contents {
    pub combiner: Combiner,
    pub integers: Vec<i64>,
    pub addresses: Vec<i64>,
    pub counts: Vec<i64>,
    pub datatypes: Vec<Datatype>,
}

impl Contents {
    pub(super) fn new(combiner: Combiner) -> Self {
        Self { combiner, integers: Vec::new(), addresses: Vec::new(), counts: Vec::new(), datatypes: Vec::new() }
    }

    /// Counts and lengths: integers, or counts of the large form.
    pub(super) fn numbers(mut self, width: ConstructorForm, values: &[i64]) -> Self {
        match width {
            ConstructorForm::Int => self.integers.extend_from_slice(values),
            ConstructorForm::Count => self.counts.extend_from_slice(values),
        }
        self
    }

    /// Displacements in bytes: addresses, or counts of the large form.
    pub(super) fn bytes(mut self, width: ConstructorForm, values: &[i64]) -> Self {
        match width {
            ConstructorForm::Int => self.addresses.extend_from_slice(values),
            ConstructorForm::Count => self.counts.extend_from_slice(values),
        }
        self
    }

    /// Values that are integers in both forms.
    pub(super) fn integers(mut self, values: &[i64]) -> Self {
        self.integers.extend_from_slice(values);
        self
    }

    pub(super) fn datatypes(mut self, types: &[Datatype]) -> Self {
        self.datatypes.extend_from_slice(types);
        self
    }
}

impl Datatype {
    /// Which constructor made the type.
    pub fn combiner(&self) -> Combiner {
        self.0.contents.combiner
    }

    /// Which constructor made the type and how many arguments [`Datatype::contents`] will give.
    pub fn envelope(&self) -> ContentsEnvelope {
        let Contents { combiner, integers, addresses, counts, datatypes } = &self.0.contents;
        ContentsEnvelope {
            combiner: *combiner,
            integers: integers.len(),
            addresses: addresses.len(),
            counts: counts.len(),
            datatypes: datatypes.len(),
        }
    }

    /// The arguments that the type was made with. A predefined type has none and is an error.
    pub fn contents(&self) -> Result<&Contents> {
        if self.combiner() == Combiner::Named {
            return Err(Error::new(
                Class::Type,
                format!("datatype {self:?} is predefined: it has no contents to decode"),
            ));
        }
        Ok(&self.0.contents)
    }
}
