//! `libweft_mpifort.so.1`: the entry points of Fortran (MPI 5.0, chapter 19), over the functions of the standard ABI.
//!
//! `mpif.h`, the module `mpi` and the module `mpi_f08` differ in what the compiler checks. What they call is the same:
//! handles are integers there and structures of one integer here, statuses have one layout in all, and an error code
//! that the caller leaves out is a null pointer. So there is one entry for each function and form, generated from the
//! table in `interfaces/mpi/abi`, and the modules are interfaces without code ([decision
//! 22](../../../../docs/decisions/0022-fortran-is-one-set-of-entries.md)).
//!
//! - `handle`: integers and handles. `text`: strings. `sentinel`: arguments that stand for something else.
//! - `attribute`: values that Fortran caches. `callback`: procedures of the program behind functions of C.
//! - `special`: what no rule of the generator fits. `small`: what only Fortran has. `status`: what C gets of Fortran's
//!   statuses. `section`: memory that is not contiguous.
//!
//! What calls `mpi_x_` comes to `MPI_X` of C, so that a tool written in C sees it; `pmpi_x_` comes to `PMPI_X`.
//!
//! Not here: any other compiler than gfortran, and integers of 8 bytes by default (`-fdefault-integer-8`).
//!
//! Test: `cargo test -p weft-mpi-fortran`; programs against the installed library: `cargo test -p weft-tests --test
//! mpi_fortran`, after `cargo xtask tree`.
#![cfg_attr(test, allow(dead_code, reason = "entries cannot be linked into a test: the functions of C lie elsewhere"))]

#[cfg(not(test))]
mod attribute;
#[cfg(not(test))]
mod callback;
mod cell;
#[cfg(not(test))]
mod entries;
#[cfg(not(test))]
mod handle;
#[cfg(not(test))]
mod section;
#[cfg(not(test))]
mod sentinel;
#[cfg(not(test))]
mod small;
#[cfg(not(test))]
mod special;
#[cfg(not(test))]
mod status;
mod text;
