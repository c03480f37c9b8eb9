//! What a status says (MPI 5.0, sections 3.2.5 and 13.3).

pub(crate) mod abi;
