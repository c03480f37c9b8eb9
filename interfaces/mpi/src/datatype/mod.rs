//! Datatypes.

/// A datatype.
#[derive(Clone, Debug)]
pub struct Datatype {}
pub(crate) mod abi;
