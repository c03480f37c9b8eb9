//! Values of the MPICH ABI and what they are in the standard one, generated from the tables.
#![allow(dead_code, reason = "all values are there, used or not")]

use crate::handle::Predefined;
pub use crate::program::File;
use weft_mpi::handle::Kind;

include!(concat!(env!("OUT_DIR"), "/values.rs"));
