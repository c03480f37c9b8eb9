//! Statuses of Fortran, and the symbols that Fortran layers read.
#![allow(
    non_snake_case,
    clippy::missing_safety_doc,
    reason = "the names are the ABI's, and what they ask is the standard's"
)]

use crate::status::MpichStatus;
use crate::values;
use std::cell::UnsafeCell;

/// A pointer that other libraries may set.
#[repr(transparent)]
pub struct SharedPointer(UnsafeCell<usize>);

// SAFETY: the library itself never reads or writes it.
unsafe impl Sync for SharedPointer {}

macro_rules! symbols {
    ($($name:ident = $value:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub static $name: SharedPointer = SharedPointer(UnsafeCell::new($value));
        )*
    };
}

// The values of the standard ABI, so that nothing has to be converted.
symbols! {
    MPI_UNWEIGHTED = weft_mpi::abi::UNWEIGHTED;
    MPI_WEIGHTS_EMPTY = weft_mpi::abi::WEIGHTS_EMPTY;
    MPI_T_PVAR_ALL_HANDLES = weft_mpi::abi::T_PVAR_ALL_HANDLES;
    MPI_F_STATUS_IGNORE = values::STATUS_IGNORE;
    MPI_F_STATUSES_IGNORE = values::STATUSES_IGNORE;
}

/// A status of Fortran 2008 that stands for "none"; its address is what counts.
#[unsafe(no_mangle)]
pub static MPIR_F08_MPI_STATUS_IGNORE_OBJ: Nowhere = Nowhere(UnsafeCell::new([0; 5]));
/// The same for arrays.
#[unsafe(no_mangle)]
pub static MPIR_F08_MPI_STATUSES_IGNORE_OBJ: Nowhere = Nowhere(UnsafeCell::new([0; 5]));

#[unsafe(no_mangle)]
pub static MPI_F08_STATUS_IGNORE: &Nowhere = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;
#[unsafe(no_mangle)]
pub static MPI_F08_STATUSES_IGNORE: &Nowhere = &MPIR_F08_MPI_STATUSES_IGNORE_OBJ;

/// Memory for a status that nobody reads.
#[repr(transparent)]
pub struct Nowhere(UnsafeCell<[i32; 5]>);

// SAFETY: the library itself never reads or writes it.
unsafe impl Sync for Nowhere {}

macro_rules! copies {
    ($($name:ident, $profiled:ident;)*) => {
        $(
            /// Statuses of C and of both Fortrans have the same layout.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(from: *const MpichStatus, to: *mut MpichStatus) -> i32 {
                // SAFETY: the program's statuses.
                unsafe { *to = *from };
                values::SUCCESS
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $profiled(from: *const MpichStatus, to: *mut MpichStatus) -> i32 {
                // SAFETY: as above.
                unsafe { $name(from, to) }
            }
        )*
    };
}

copies! {
    MPI_Status_c2f, PMPI_Status_c2f;
    MPI_Status_f2c, PMPI_Status_f2c;
    MPI_Status_c2f08, PMPI_Status_c2f08;
    MPI_Status_f082c, PMPI_Status_f082c;
    MPI_Status_f2f08, PMPI_Status_f2f08;
    MPI_Status_f082f, PMPI_Status_f082f;
}
