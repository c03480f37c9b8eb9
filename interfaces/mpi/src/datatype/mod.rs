//! Datatypes.

/// A datatype.
#[derive(Clone, Debug)]
pub struct Datatype {}
