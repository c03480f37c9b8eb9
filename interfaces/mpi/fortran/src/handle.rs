//! Handles: an `INTEGER` of Fortran is what `MPI_X_toint` says (MPI 5.0, section 20.3).
//!
//! Predefined handles are below 4096 and the same number on both sides, so nothing has to be asked for them.

use std::ffi::c_void;
use std::marker::PhantomData;

const FIRST_OWN: usize = 0x1000;

/// Conversion of a kind.
pub trait FortranKind {
    fn c(number: i32) -> usize;
    fn f(handle: usize) -> i32;
}

macro_rules! kinds {
    ($($kind:ident: $to:ident, $from:ident;)*) => {
        unsafe extern "C" {
            $(
                fn $to(handle: usize) -> i32;
                fn $from(number: i32) -> usize;
            )*
        }
        $(
            pub enum $kind {}

            impl FortranKind for $kind {
                #[inline]
                fn c(number: i32) -> usize {
                    Self::c(number)
                }

                #[inline]
                fn f(handle: usize) -> i32 {
                    Self::f(handle)
                }
            }

            impl $kind {
                #[inline]
                pub fn c(number: i32) -> usize {
                    let small = number as u32 as usize;
                    if small < FIRST_OWN {
                        return small;
                    }
                    // SAFETY: takes any number.
                    unsafe { $from(number) }
                }

                #[inline]
                pub fn f(handle: usize) -> i32 {
                    if handle < FIRST_OWN {
                        return handle as i32;
                    }
                    // SAFETY: takes any handle that a function has given out.
                    unsafe { $to(handle) }
                }
            }
        )*
    };
}

kinds! {
    Comm: PMPI_Comm_toint, PMPI_Comm_fromint;
    Group: PMPI_Group_toint, PMPI_Group_fromint;
    Datatype: PMPI_Type_toint, PMPI_Type_fromint;
    Op: PMPI_Op_toint, PMPI_Op_fromint;
    Request: PMPI_Request_toint, PMPI_Request_fromint;
    Message: PMPI_Message_toint, PMPI_Message_fromint;
    Info: PMPI_Info_toint, PMPI_Info_fromint;
    Errhandler: PMPI_Errhandler_toint, PMPI_Errhandler_fromint;
    Win: PMPI_Win_toint, PMPI_Win_fromint;
    File: PMPI_File_toint, PMPI_File_fromint;
    Session: PMPI_Session_toint, PMPI_Session_fromint;
}

/// Handles of C for an array of integers.
pub struct Array<K> {
    handles: Vec<usize>,
    kind: PhantomData<K>,
}

impl<K: FortranKind> Array<K> {
    /// # Safety
    /// `at` is an array of `length` integers; none if that is negative, which the function itself refuses.
    pub unsafe fn new(at: *const i32, length: i64) -> Self {
        let length = usize::try_from(length).unwrap_or(0);
        // SAFETY: as the caller says.
        let handles = (0..length).map(|index| K::c(unsafe { *at.add(index) })).collect();
        Self { handles, kind: PhantomData }
    }

    pub fn at(&mut self) -> *mut c_void {
        self.handles.as_mut_ptr().cast()
    }

    /// # Safety
    /// `at` is the array that this was made of.
    pub unsafe fn back(&self, at: *mut i32) {
        for (index, &handle) in self.handles.iter().enumerate() {
            // SAFETY: as the caller says.
            unsafe { *at.add(index) = K::f(handle) };
        }
    }
}
