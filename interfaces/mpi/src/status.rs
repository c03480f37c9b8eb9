//! Statuses: what is known of a message that was received (MPI 5.0, sections 3.2.5, 3.8.4, 5.1.11 and 13.3).

pub mod abi;
