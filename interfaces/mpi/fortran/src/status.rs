//! Statuses of Fortran as C meets them (MPI 5.0, section 19.3.5): what `mpi.h` declares beside the ABI.
//!
//! All three have one layout. A status that stands for none has nothing to convert.
#![allow(
    non_snake_case,
    non_upper_case_globals,
    clippy::missing_safety_doc,
    reason = "the names are the standard's, and so is what they ask"
)]

use crate::sentinel::{self, SentinelBlock};

const SUCCESS: i32 = 0;
const ERR_ARG: i32 = 13;

type Status = [i32; 8];

/// The blocks by which Fortran names "no status". The dynamic linker fills in which copy of a block counts.
macro_rules! none {
    ($($name:ident = $block:ident;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub static $name: &SentinelBlock = &sentinel::$block;
        )*
    };
}

none! {
    MPI_F_STATUS_IGNORE = weft_status_ignore_;
    MPI_F_STATUSES_IGNORE = weft_statuses_ignore_;
    MPI_F08_STATUS_IGNORE = weft_f08_status_ignore_;
    MPI_F08_STATUSES_IGNORE = weft_f08_statuses_ignore_;
}

unsafe fn copied(from: *const Status, to: *mut Status) -> i32 {
    if sentinel::status(from.cast_mut().cast()).is_null() || sentinel::status(to.cast()).is_null() {
        return ERR_ARG;
    }
    // SAFETY: the program's statuses.
    unsafe { *to = *from };
    SUCCESS
}

macro_rules! conversions {
    ($($name:ident, $profiled:ident;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(from: *const Status, to: *mut Status) -> i32 {
                // SAFETY: as the caller says.
                unsafe { copied(from, to) }
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $profiled(from: *const Status, to: *mut Status) -> i32 {
                // SAFETY: as the caller says.
                unsafe { copied(from, to) }
            }
        )*
    };
}

conversions! {
    MPI_Status_c2f, PMPI_Status_c2f;
    MPI_Status_f2c, PMPI_Status_f2c;
    MPI_Status_c2f08, PMPI_Status_c2f08;
    MPI_Status_f082c, PMPI_Status_f082c;
    MPI_Status_f2f08, PMPI_Status_f2f08;
    MPI_Status_f082f, PMPI_Status_f082f;
}
