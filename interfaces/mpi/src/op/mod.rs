//! Reduction operations.

/// A reduction operation.
#[derive(Clone, Debug)]
pub struct Op {}
