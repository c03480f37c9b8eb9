//! Handles as integers (MPI 5.0, chapter 20). Handles fit 31 bits, so nothing needs to be translated.

pub mod abi;
