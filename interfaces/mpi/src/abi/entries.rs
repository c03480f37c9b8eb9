//! The entry points, generated from the table: `MPI_X` and `PMPI_X` for each function.
#![allow(unused_variables, clippy::missing_safety_doc, clippy::too_many_arguments, non_snake_case)]

use std::ffi::{c_char, c_void};

include!(concat!(env!("OUT_DIR"), "/entries.rs"));
