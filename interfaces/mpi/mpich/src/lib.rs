//! `libmpi.so.12`: the entry points of the MPICH ABI, which programs built for MPICH, Intel MPI and their relatives
//! use.
//!
//! Entry points are generated (`build`): each converts its arguments to the standard ABI's, calls one body of
//! `weft-mpi`, and converts the results back.
//!
//! - `handle`: handles are 32-bit integers here. Those of the program's own objects are ours with the top bit set, so
//!   that they meet no predefined one; files are pointers.
//! - `number`: integers with a meaning. `place`: memory of the program that holds values of either kind.
//! - `program`: what the program's functions see when the library calls them.
//! - `special`: what no rule fits. `fortran`: statuses of Fortran layers. `layer`: helpers that MPICH's Fortran library
//!   (`libmpichfort.so.12`) calls; `cell` is the Fortran room's.
//!
//! Invariant: a place is written back only where the call changed it, so that what the program had there stays to the
//! bit.
//!
//! Test: `cargo test -p weft-mpi-mpich` (conversions, the header against the tables); C programs against the installed
//! library: `cargo test -p weft-tests --test mpi_mpich`, after `cargo xtask tree`.

#[path = "../../fortran/src/cell.rs"]
mod cell;
mod entries;
mod fortran;
mod handle;
mod layer;
mod number;
mod place;
mod program;
mod special;
mod status;
mod values;

/// What the process still owes the job when it ends.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = weft_mpi::start::at_exit;

/// A program that is started by its own name may be a whole job.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    weft_mpi::start::by_name(c"MPI_Init", entries::MPI_Init as *const ());
}

#[cfg(test)]
mod tests {
    const COMMITTED: &str = include_str!("../include/mpi.h");
    const WRITTEN: &str = include_str!(concat!(env!("OUT_DIR"), "/mpi.h"));

    #[test]
    fn the_committed_header_is_what_the_tables_say() {
        if std::env::var_os("WEFT_UPDATE").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/include/mpi.h");
            std::fs::write(path, WRITTEN).expect("the header is writable");
            return;
        }
        assert!(COMMITTED == WRITTEN, "include/mpi.h is old: run this test with WEFT_UPDATE=1 and commit it");
    }
}
