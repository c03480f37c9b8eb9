//! The algorithms: each appends to a schedule what one rank does. Pure functions of ranks, sizes and views.

pub mod allgather;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
pub mod gather;
pub mod inter;
pub mod levels;
pub mod reduce;
pub mod scan;
pub mod tree;

#[cfg(test)]
mod tests;
