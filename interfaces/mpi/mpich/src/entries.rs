//! The entry points, generated from the tables: `MPI_X` and `PMPI_X` for each function.
#![allow(unused_variables, unused_mut, clippy::missing_safety_doc, clippy::too_many_arguments, non_snake_case)]
#![allow(clippy::let_and_return, clippy::unnecessary_cast, reason = "generated")]

use crate::status::MpichStatus;
use crate::{number, place, program, special, values};
use std::ffi::{c_char, c_void};

include!(concat!(env!("OUT_DIR"), "/entries.rs"));
