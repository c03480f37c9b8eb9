#![forbid(unsafe_code)]
//! What tests across crates share: the built `weft` command, C programs, and the MPI libraries of others.

pub mod build;
pub mod peers;
