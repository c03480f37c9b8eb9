//! Buffers of nonblocking calls, which the compiler may not copy: it passes a descriptor (Fortran 2018, section
//! 18.5.3), and where that is not contiguous, a datatype says what it is.
//!
//! The program's count and datatype speak of the elements one behind the other. A type is made for as many as they are:
//! loops over the dimensions, and one begun row at the end. What cannot be said so, a datatype with gaps or one that is
//! larger than an element, becomes no datatype at all, which the call refuses as it refuses others.

#![allow(clashing_extern_declarations, reason = "the generated declarations write all pointers alike")]

use std::ffi::c_void;

use crate::handle;

const DATATYPE_NULL: i32 = 0x200;

unsafe extern "C" {
    fn PMPI_Type_size_c(datatype: usize, size: *mut i64) -> i32;
    fn PMPI_Type_get_extent_c(datatype: usize, low: *mut i64, extent: *mut i64) -> i32;
    fn PMPI_Type_contiguous_c(count: i64, old: usize, new: *mut usize) -> i32;
    fn PMPI_Type_create_hvector_c(count: i64, block: i64, stride: i64, old: usize, new: *mut usize) -> i32;
    fn PMPI_Type_create_struct_c(
        count: i64,
        blocks: *const i64,
        places: *const i64,
        old: *const usize,
        new: *mut usize,
    ) -> i32;
    fn PMPI_Type_commit(datatype: *mut usize) -> i32;
    fn PMPI_Type_free(datatype: *mut usize) -> i32;
}

/// What the compiler passes for an argument of any type and rank; the dimensions follow, the innermost first.
#[repr(C)]
pub struct ArrayDescriptor {
    base: *mut c_void,
    /// Bytes of one element.
    pub element: usize,
    version: i32,
    rank: i8,
    attribute: i8,
    kind: i16,
    dimensions: [Dimension; 0],
}

#[repr(C)]
struct Dimension {
    lower: isize,
    /// -1 where the caller does not know it.
    extent: isize,
    /// Bytes from one element to the next.
    stride: isize,
}

impl ArrayDescriptor {
    fn dimensions(&self) -> &[Dimension] {
        let rank = usize::try_from(self.rank).unwrap_or(0);
        // SAFETY: the compiler puts as many behind the rest.
        unsafe { std::slice::from_raw_parts(self.dimensions.as_ptr(), rank) }
    }

    fn is_contiguous(&self) -> bool {
        let mut next = self.element as isize;
        let dimensions = self.dimensions();
        let is_next = |dimension: &Dimension| {
            let fits = dimension.extent == 1 || dimension.stride == next;
            next = next.saturating_mul(dimension.extent);
            fits
        };
        let is_nothing = self.element == 0 || dimensions.iter().any(|dimension| dimension.extent == 0);
        is_nothing || dimensions.iter().all(is_next)
    }

    /// A type of `count` elements of `datatype`, and one of it, for memory that is not contiguous.
    fn described(&self, count: i64, datatype: usize) -> Option<Made> {
        let (mut size, mut low, mut extent) = (0, 0, 0);
        // SAFETY: places for the results; the functions look at the handle first.
        let codes = unsafe {
            (PMPI_Type_size_c(datatype, &raw mut size), PMPI_Type_get_extent_c(datatype, &raw mut low, &raw mut extent))
        };
        let element = self.element as i64;
        if codes != (0, 0) || size <= 0 || (low, extent) != (0, size) || element % size != 0 {
            return None;
        }
        let bytes = count.checked_mul(size).filter(|bytes| bytes % element == 0)?;
        let there = self.dimensions().iter().map(|dimension| dimension.extent as i64).product();
        let wanted = Some(bytes / element).filter(|wanted| (0..=there).contains(wanted))?;
        // SAFETY: a valid handle, as was just seen, and a place for the result.
        let one = Made::new(|new| unsafe { PMPI_Type_contiguous_c(element / size, datatype, new) })?;
        let mut all = rows(self.dimensions(), &one, wanted)?;
        // SAFETY: a handle that was just made.
        (unsafe { PMPI_Type_commit(&raw mut all.0) } == 0).then_some(all)
    }
}

/// A datatype that is freed when it is not needed here; what was started with it goes on.
struct Made(usize);

impl Made {
    fn new(make: impl FnOnce(*mut usize) -> i32) -> Option<Self> {
        let mut new = 0;
        (make(&raw mut new) == 0).then_some(Self(new))
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // SAFETY: it was made here, and nobody else frees it.
        unsafe { PMPI_Type_free(&raw mut self.0) };
    }
}

/// The first `count` elements of a section.
fn rows(dimensions: &[Dimension], one: &Made, count: i64) -> Option<Made> {
    let (outer, inner) = dimensions.split_last()?;
    let stride = outer.stride as i64;
    // SAFETY: valid handles and places for the results, here and below.
    let copies =
        |count, row: &Made| Made::new(|new| unsafe { PMPI_Type_create_hvector_c(count, 1, stride, row.0, new) });
    if inner.is_empty() {
        return copies(count, one);
    }
    let row = inner.iter().map(|dimension| dimension.extent as i64).product();
    let whole = copies(count / row, &rows(inner, one, row)?)?;
    if count % row == 0 {
        return Some(whole);
    }
    let begun = rows(inner, one, count % row)?;
    let (blocks, places, old) = ([1, 1], [0, count / row * stride], [whole.0, begun.0]);
    // SAFETY: two of each.
    Made::new(|new| unsafe { PMPI_Type_create_struct_c(2, blocks.as_ptr(), places.as_ptr(), old.as_ptr(), new) })
}

/// A buffer with the count and the datatype that describe it.
pub struct ArraySection {
    pub base: *mut c_void,
    pub count: i64,
    pub datatype: i32,
    _made: Option<Made>,
}

impl ArraySection {
    /// # Safety
    /// A descriptor of the compiler.
    pub unsafe fn new(buffer: *const ArrayDescriptor, count: i64, datatype: i32) -> Self {
        // SAFETY: as the caller says.
        let buffer = unsafe { &*buffer };
        if buffer.is_contiguous() {
            return Self { base: buffer.base, count, datatype, _made: None };
        }
        let made = buffer.described(count, handle::Datatype::c(datatype));
        let datatype = made.as_ref().map_or(DATATYPE_NULL, |made| handle::Datatype::f(made.0));
        Self { base: buffer.base, count: 1, datatype, _made: made }
    }
}
