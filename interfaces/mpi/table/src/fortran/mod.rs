//! Writes what a Fortran compiler reads: `mpif.h`, and the sources of the modules `mpi` and `mpi_f08`.
//!
//! The modules hold interfaces and constants and no code, so that the compiler makes files of them and nothing has to
//! be linked: all that is called lies in `libweft_mpifort`.

mod constants;
mod modules;
pub mod rules;
mod synopsis;

pub use synopsis::synopsis;

use std::path::Path;

/// Name and text of each file. `abi` is the folder of the table.
pub fn write(abi: &Path) -> [(&'static str, String); 2] {
    let table = crate::read(abi);
    [("mpif.h", constants::mpif(&table)), ("weft_mpi.f90", modules::write(&table))]
}
