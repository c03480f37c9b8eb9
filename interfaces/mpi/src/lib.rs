//! The MPI 5.0 standard ABI over the fabric.

pub mod datatype;
pub mod error;
pub mod op;
