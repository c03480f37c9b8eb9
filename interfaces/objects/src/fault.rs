//! Why an operation did not do what it was asked to.

use serde::{Deserialize, Serialize};

/// Why an operation did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ObjectFault {
    /// It was this operation that panicked. If it writes, the object cannot be used any more.
    #[error("operation '{operation}' panicked: {message}")]
    Panicked { operation: String, message: String },
    /// An earlier operation panicked while it wrote.
    #[error("the object cannot be used: an operation that writes has failed")]
    Poisoned,
    /// Arguments, an answer or a state are not what the type of the object says. Nothing has changed.
    #[error("{0} cannot be written or read: {1}")]
    Format(String, String),
    /// The object was on this process only. An operation that was on its way may have been done.
    #[error("the object was on process {0}, which has ended")]
    OwnerLost(u32),
    /// Nobody has created it.
    #[error("no object is called '{0}'")]
    Unknown(String),
    /// It was created with another type.
    #[error("object '{name}' is a {is}, not a {asked}")]
    OtherType { name: String, is: String, asked: String },
    /// An object can be placed only on a process that has opened it.
    #[error("process {0} has not opened the object, so it cannot be placed there")]
    NotOpened(u32),
    /// An operation may use its own object only.
    #[error("an operation cannot call operations of objects")]
    Nested,
    /// The processes have no order, or none any more.
    #[error("the processes cannot work together: {0}")]
    Group(String),
    /// This operation has said that it failed. If it writes, the object cannot be used any more.
    #[error("operation '{operation}' failed: {message}")]
    Failed { operation: String, message: String },
}
