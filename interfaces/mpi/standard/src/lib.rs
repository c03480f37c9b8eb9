//! `libmpi_abi.so.1`: the entry points of the standard ABI (MPI 5.0, chapter 20), generated from the table in
//! `interfaces/mpi/abi`. Each calls one body of `weft-mpi`, whose types are those of this ABI, and turns an error into
//! the call of the right error handler.
//!
//! It is a crate of its own because whatever a library exports comes out of every shared object that it is linked into.
//!
//! Test: `cargo test -p weft-tests --test mpi_abi`, after `cargo xtask tree`.
#![allow(unused_variables, clippy::missing_safety_doc, clippy::too_many_arguments, non_snake_case)]

use std::ffi::{c_char, c_void};

/// What the process still owes the job when it ends.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = weft_mpi::start::at_exit;

/// A program that is started by its own name may be a whole job.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    weft_mpi::start::by_name(c"MPI_Init", MPI_Init as *const ());
}

include!(concat!(env!("OUT_DIR"), "/entries.rs"));
