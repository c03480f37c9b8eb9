//! Values of the MPICH ABI and what they are in the standard one, generated from the tables.
#![allow(dead_code, reason = "all values are there, used or not")]

pub use crate::handle::File;
use crate::handle::PredefinedHandles;
use weft_mpi::handle::HandleKind;

include!(concat!(env!("OUT_DIR"), "/values.rs"));
