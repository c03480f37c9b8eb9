//! The names of the C library that we stand in front of. Each turns its arguments into ours and calls one function.
//!
//! Every function here has the contract of the C function of its name; that is what its `Safety` section would say.
#![allow(clippy::missing_safety_doc, non_snake_case)]

mod by_number;
mod data;
mod descriptors;
pub mod heirs;
mod multiplex;
mod process;
mod sleeping;
mod variadic;
