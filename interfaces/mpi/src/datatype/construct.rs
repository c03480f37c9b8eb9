//! Constructors of derived types (MPI 5.0, section 5.1.2), except those of arrays (`array`).
//!
//! Every function takes 64-bit counts; `width` says which form of the call was made and matters to
//! [`Datatype::contents`] only. Displacements are in bytes unless a name says "indexed" without the h.

use super::arith::{all_non_negative, non_negative, same_length};
use super::contents::{Combiner, ConstructorForm, Contents};
use super::{Datatype, predefined};
use crate::error::{Class, Result};
use weft_data::{Form, mul};

impl Datatype {
    /// The same type again, committed if the old one is.
    pub fn dup(&self) -> Self {
        let contents = Contents::new(Combiner::Dup).datatypes(std::slice::from_ref(self));
        Self::build(self.form().clone(), None, contents, self.is_committed())
    }

    /// `count` elements side by side.
    pub fn contiguous(count: i64, old: &Self, width: ConstructorForm) -> Result<Self> {
        non_negative(Class::Count, "count", count)?;
        let contents = Contents::new(Combiner::Contiguous).numbers(width, &[count]);
        Ok(Self::derived(old.form().block(count)?, contents.datatypes(std::slice::from_ref(old))))
    }

    /// `count` blocks of `length` elements, `stride` elements apart.
    pub fn vector(count: i64, length: i64, stride: i64, old: &Self, width: ConstructorForm) -> Result<Self> {
        let form = strided(count, length, old, || Ok(mul(stride, old.extent())?))?;
        let contents = Contents::new(Combiner::Vector).numbers(width, &[count, length, stride]);
        Ok(Self::derived(form, contents.datatypes(std::slice::from_ref(old))))
    }

    /// `count` blocks of `length` elements, `stride` bytes apart.
    pub fn hvector(count: i64, length: i64, stride: i64, old: &Self, width: ConstructorForm) -> Result<Self> {
        let form = strided(count, length, old, || Ok(stride))?;
        let contents = Contents::new(Combiner::Hvector).numbers(width, &[count, length]).bytes(width, &[stride]);
        Ok(Self::derived(form, contents.datatypes(std::slice::from_ref(old))))
    }

    /// Blocks of `lengths[i]` elements at `displacements[i]` extents.
    pub fn indexed(lengths: &[i64], displacements: &[i64], old: &Self, width: ConstructorForm) -> Result<Self> {
        let form = blocks(lengths, displacements, old.extent(), old)?;
        let contents = Contents::new(Combiner::Indexed).numbers(width, &[lengths.len() as i64]);
        let contents = contents.numbers(width, lengths).numbers(width, displacements);
        Ok(Self::derived(form, contents.datatypes(std::slice::from_ref(old))))
    }

    /// Blocks of `lengths[i]` elements at `displacements[i]` bytes.
    pub fn hindexed(lengths: &[i64], displacements: &[i64], old: &Self, width: ConstructorForm) -> Result<Self> {
        let form = blocks(lengths, displacements, 1, old)?;
        let contents = Contents::new(Combiner::Hindexed).numbers(width, &[lengths.len() as i64]);
        let contents = contents.numbers(width, lengths).bytes(width, displacements);
        Ok(Self::derived(form, contents.datatypes(std::slice::from_ref(old))))
    }

    /// Blocks of `length` elements at `displacements[i]` extents.
    pub fn indexed_block(length: i64, displacements: &[i64], old: &Self, width: ConstructorForm) -> Result<Self> {
        let form = equal_blocks(length, displacements, old.extent(), old)?;
        let contents = Contents::new(Combiner::IndexedBlock).numbers(width, &[displacements.len() as i64, length]);
        let contents = contents.numbers(width, displacements);
        Ok(Self::derived(form, contents.datatypes(std::slice::from_ref(old))))
    }

    /// Blocks of `length` elements at `displacements[i]` bytes.
    pub fn hindexed_block(length: i64, displacements: &[i64], old: &Self, width: ConstructorForm) -> Result<Self> {
        let form = equal_blocks(length, displacements, 1, old)?;
        let contents = Contents::new(Combiner::HindexedBlock).numbers(width, &[displacements.len() as i64, length]);
        let contents = contents.bytes(width, displacements);
        Ok(Self::derived(form, contents.datatypes(std::slice::from_ref(old))))
    }

    /// Blocks of `lengths[i]` elements of `types[i]` at `displacements[i]` bytes. The extent is padded as a C compiler
    /// pads a struct.
    pub fn structure(lengths: &[i64], displacements: &[i64], types: &[Self], width: ConstructorForm) -> Result<Self> {
        same_length("displacements", displacements.len(), lengths.len())?;
        same_length("types", types.len(), lengths.len())?;
        all_non_negative(Class::Arg, "block length", lengths)?;
        let members = lengths.iter().zip(displacements).zip(types);
        let members = members.map(|((&length, &disp), old)| old.form().block(length)?.shifted(disp));
        let form = Form::sequence(&members.collect::<weft_data::Result<Vec<_>>>()?)?;
        let contents = Contents::new(Combiner::Struct).numbers(width, &[lengths.len() as i64]).numbers(width, lengths);
        Ok(Self::derived(form, contents.bytes(width, displacements).datatypes(types)))
    }

    /// The same data with another lower bound and extent.
    pub fn resized(old: &Self, lower_bound: i64, extent: i64, width: ConstructorForm) -> Result<Self> {
        let contents = Contents::new(Combiner::Resized).bytes(width, &[lower_bound, extent]);
        let form = old.form().resized(lower_bound, extent)?;
        Ok(Self::derived(form, contents.datatypes(std::slice::from_ref(old))))
    }

    /// The predefined type of a value followed by an index, or none when there is none (MPI 5.0, section 6.9.4).
    pub fn value_index(value: &Self, index: &Self) -> Option<Self> {
        predefined::pair(value.named()?, index.named()?).cloned()
    }
}

fn strided(count: i64, length: i64, old: &Datatype, stride: impl Fn() -> Result<i64>) -> Result<Form> {
    non_negative(Class::Count, "count", count)?;
    non_negative(Class::Arg, "block length", length)?;
    Ok(old.form().block(length)?.repeated(count, stride()?)?)
}

fn equal_blocks(length: i64, displacements: &[i64], unit: i64, old: &Datatype) -> Result<Form> {
    non_negative(Class::Arg, "block length", length)?;
    let block = old.form().block(length)?;
    let members = displacements.iter().map(|&disp| block.shifted(mul(disp, unit)?));
    Ok(Form::sequence(&members.collect::<weft_data::Result<Vec<_>>>()?)?)
}

fn blocks(lengths: &[i64], displacements: &[i64], unit: i64, old: &Datatype) -> Result<Form> {
    same_length("displacements", displacements.len(), lengths.len())?;
    all_non_negative(Class::Arg, "block length", lengths)?;
    let members = lengths.iter().zip(displacements);
    let members = members.map(|(&length, &disp)| old.form().block(length)?.shifted(mul(disp, unit)?));
    Ok(Form::sequence(&members.collect::<weft_data::Result<Vec<_>>>()?)?)
}
