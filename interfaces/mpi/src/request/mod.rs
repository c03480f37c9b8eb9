//! Requests and their completion.

/// An operation that a program started.
pub enum Request {}
