//! The values of the standard ABI (MPI 5.0, chapter 20), generated from the table: names lose `MPI_`.

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
