//! What only Fortran has, and what needs no function of C.
#![allow(clippy::missing_safety_doc, reason = "they ask what the standard asks of the program")]

use std::ffi::c_void;

use crate::section::ArrayDescriptor;

unsafe fn set<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: as the caller says.
        unsafe { *place = value };
    }
}

/// Defines a procedure under its name and under that for tools.
macro_rules! both {
    ($(#[$doc:meta] $name:ident, $profiled:ident($($argument:ident: $kind:ty),*) $body:block)*) => {
        $(
            #[$doc]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $kind),*) $body

            #[$doc]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $profiled($($argument: $kind),*) {
                // SAFETY: as the caller says.
                unsafe { $name($($argument),*) }
            }
        )*
    };
}

both! {
    /// `MPI_SIZEOF`: bytes of one element.
    mpi_sizeof_, pmpi_sizeof_(x: *const ArrayDescriptor, size: *mut i32, ierror: *mut i32) {
        // SAFETY: the compiler's descriptor and the program's places.
        unsafe {
            set(size, (*x).element as i32);
            set(ierror, 0);
        }
    }
    /// `MPI_F_SYNC_REG`: that it might touch the buffer is all it does.
    mpi_f_sync_reg_, pmpi_f_sync_reg_(_buffer: *mut c_void) {}
    /// `MPI_Status_f2f08`: both have one layout.
    mpi_status_f2f08_, pmpi_status_f2f08_(from: *const [i32; 8], to: *mut [i32; 8], ierror: *mut i32) {
        // SAFETY: the program's statuses.
        unsafe {
            *to = *from;
            set(ierror, 0);
        }
    }
    /// `MPI_Status_f082f`
    mpi_status_f082f_, pmpi_status_f082f_(from: *const [i32; 8], to: *mut [i32; 8], ierror: *mut i32) {
        // SAFETY: as above.
        unsafe { mpi_status_f2f08_(from, to, ierror) };
    }
}

macro_rules! attribute_functions {
    ($($value:ty: $null_copy:ident, $dup:ident, $null_delete:ident;)*) => {
        $(
            /// Copies nothing.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $null_copy(
                _object: *const i32,
                _keyval: *const i32,
                _state: *const c_void,
                _value: *const $value,
                _copied: *mut $value,
                flag: *mut i32,
                ierror: *mut i32,
            ) {
                // SAFETY: places for the results.
                unsafe {
                    set(flag, 0);
                    set(ierror, 0);
                }
            }

            /// Copies the value.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $dup(
                _object: *const i32,
                _keyval: *const i32,
                _state: *const c_void,
                value: *const $value,
                copied: *mut $value,
                flag: *mut i32,
                ierror: *mut i32,
            ) {
                // SAFETY: places for the results.
                unsafe {
                    set(copied, *value);
                    set(flag, 1);
                    set(ierror, 0);
                }
            }

            /// Does nothing.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $null_delete(
                _object: *const i32,
                _keyval: *const i32,
                _value: *const $value,
                _state: *const c_void,
                ierror: *mut i32,
            ) {
                // SAFETY: a place for the result.
                unsafe { set(ierror, 0) };
            }
        )*
    };
}

attribute_functions! {
    i32: mpi_null_copy_fn_, mpi_dup_fn_, mpi_null_delete_fn_;
    isize: mpi_comm_null_copy_fn_, mpi_comm_dup_fn_, mpi_comm_null_delete_fn_;
    isize: mpi_type_null_copy_fn_, mpi_type_dup_fn_, mpi_type_null_delete_fn_;
    isize: mpi_win_null_copy_fn_, mpi_win_dup_fn_, mpi_win_null_delete_fn_;
}

/// Stands for no conversion; only its address counts.
#[unsafe(no_mangle)]
pub extern "C" fn mpi_conversion_fn_null_() {
    std::hint::black_box(1);
}

/// The same for large counts.
#[unsafe(no_mangle)]
pub extern "C" fn mpi_conversion_fn_null_c_() {
    std::hint::black_box(2);
}

macro_rules! comparisons {
    ($($equal:ident $differ:ident)*) => {
        $(
            /// `==` of handles.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $equal(left: *const i32, right: *const i32) -> i32 {
                // SAFETY: the program's handles.
                unsafe { i32::from(*left == *right) }
            }

            /// `/=` of handles.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $differ(left: *const i32, right: *const i32) -> i32 {
                // SAFETY: the program's handles.
                unsafe { i32::from(*left != *right) }
            }
        )*
    };
}

comparisons! {
    weft_eq_comm_ weft_ne_comm_
    weft_eq_group_ weft_ne_group_
    weft_eq_datatype_ weft_ne_datatype_
    weft_eq_op_ weft_ne_op_
    weft_eq_request_ weft_ne_request_
    weft_eq_message_ weft_ne_message_
    weft_eq_info_ weft_ne_info_
    weft_eq_errhandler_ weft_ne_errhandler_
    weft_eq_win_ weft_ne_win_
    weft_eq_file_ weft_ne_file_
    weft_eq_session_ weft_ne_session_
}
