//! Datatypes: what a program's buffer looks like.
//!
//! A [`Datatype`] is immutable but for its commit flag and cheap to clone. It is a [`Form`] of `weft-data`, which knows
//! its bytes and how to copy them, with what the standard adds: names, how it was made, and whether it may be used in
//! communication.
//!
//! Not here: handles, communication, type signatures across processes. Numeric codes are those of the predefined
//! handles of the standard ABI (`predefined`). Source: MPI 5.0, chapter 5 and section 19.1.9 (parametrised Fortran
//! types).
//!
//! Tests: `tests`; packing is tested in `weft-data`.

pub mod abi;
mod arith;
mod array;
mod construct;
mod contents;
mod f90;
mod predefined;

#[cfg(test)]
mod tests;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use array::{ArrayOrder, Distribution};
pub use contents::{Combiner, ConstructorForm, Contents, ContentsEnvelope};
pub use f90::TypeClass;
pub use predefined::{C_FLOAT16, NamedType, TypeGroup};
pub use weft_data::Scalar;

use crate::error::{Class, Error, Result};
use weft_data::Form;

/// A datatype. Clones are the same type: see [`Datatype::same`].
#[derive(Clone)]
pub struct Datatype(Arc<DatatypeInner>);

struct DatatypeInner {
    form: Form,
    size: i64,
    extent: i64,
    /// All copies of the type lie side by side without gaps.
    dense: bool,
    /// The predefined type that predefined operations see in it.
    named: Option<&'static NamedType>,
    contents: Contents,
    committed: AtomicBool,
}

impl Datatype {
    /// A new type, not yet committed.
    fn derived(form: Form, contents: Contents) -> Self {
        Self::build(form, None, contents, false)
    }

    fn build(form: Form, named: Option<&'static NamedType>, contents: Contents, committed: bool) -> Self {
        let (size, extent) = (form.size(), form.extent());
        let dense = size == 0 || (form.is_run() && size == extent);
        let committed = AtomicBool::new(committed);
        Self(Arc::new(DatatypeInner { form, size, extent, dense, named, contents, committed }))
    }

    /// Bytes of data in one element (without gaps); 0 for a predefined type that this platform lacks.
    #[inline]
    pub fn size(&self) -> i64 {
        self.0.size
    }

    /// Distance between one element and the next, in bytes.
    #[inline]
    pub fn extent(&self) -> i64 {
        self.0.extent
    }

    /// Whether `count` elements are one run of memory.
    #[inline]
    pub fn is_contiguous(&self, count: i64) -> bool {
        self.0.dense || count == 0 || (count == 1 && self.0.form.is_run())
    }

    /// Where `count` elements lie if they are one run: displacement from the buffer's address and length in bytes.
    #[inline]
    pub fn contiguous_span(&self, count: i64) -> Option<(i64, u64)> {
        if !self.is_contiguous(count) {
            return None;
        }
        Some((self.0.form.run_begin(), self.packed_size(count)?))
    }

    /// Makes the type ready for communication.
    pub fn commit(&self) {
        self.0.committed.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub fn is_committed(&self) -> bool {
        self.0.committed.load(Ordering::Relaxed)
    }

    /// Refuses a type that may not be used in communication: not committed, or with parts that this platform lacks.
    #[inline]
    pub fn check_communication(&self) -> Result<()> {
        if self.is_committed() && self.0.form.missing.is_none() {
            return Ok(());
        }
        Err(self.unusable())
    }

    #[cold]
    fn unusable(&self) -> Error {
        let detail = match self.0.form.missing {
            Some(name) => format!("datatype {name} is not supported on this platform (its size is 0)"),
            None => format!("datatype {self:?} is not committed; commit it before it is used in communication"),
        };
        Error::new(Class::Type, detail)
    }

    /// Whether two handles are one type.
    #[inline]
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number that identifies the type while any clone of it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The predefined type behind a predefined or parametrised Fortran type; none for derived types.
    #[inline]
    pub fn named(&self) -> Option<&'static NamedType> {
        self.0.named
    }

    /// The largest alignment that the C ABI asks for among its members.
    pub fn alignment(&self) -> i64 {
        self.0.form.align
    }

    fn form(&self) -> &Form {
        &self.0.form
    }
}

/// Everything that a type is in memory.
impl Deref for Datatype {
    type Target = Form;

    #[inline]
    fn deref(&self) -> &Form {
        &self.0.form
    }
}

impl std::fmt::Debug for Datatype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.named(), self.0.contents.combiner) {
            (Some(named), Combiner::Named) => f.write_str(named.name),
            (_, combiner) => write!(f, "{combiner} of {} bytes in {}", self.size(), self.extent()),
        }
    }
}
