//! How operations end.

use crate::abi::{ANY_TAG, PROC_NULL, Status};
use crate::error::Error;

/// How an operation ended.
pub struct OperationEnd {
    pub status: Status,
    pub error: Option<Box<Error>>,
}

impl OperationEnd {
    /// Nothing to tell, as of sends and of inactive requests.
    pub const EMPTY: Self = Self::good(Status::EMPTY);
    /// As of a receive from `MPI_PROC_NULL`.
    pub const NO_PROC: Self = Self::good(Status::new(PROC_NULL, ANY_TAG, 0));

    pub const fn good(status: Status) -> Self {
        Self { status, error: None }
    }
}
