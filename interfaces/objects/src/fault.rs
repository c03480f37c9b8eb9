//! Why an operation did not do what it was asked to.

use serde::{Deserialize, Serialize};

/// Why an operation did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ObjectFault {
    /// It was this operation that panicked. If it writes, the object cannot be used any more.
    #[error("operation '{operation}' panicked: {message}")]
    Panicked { operation: String, message: String },
    /// An earlier operation panicked while it wrote.
    #[error("object '{name}' cannot be used: an operation that writes has failed")]
    Poisoned { name: String },
    /// Arguments, an answer or a state are not what the type of the object says. Nothing has changed.
    #[error("{0} cannot be written or read: {1}")]
    Format(String, String),
    /// The object was on this process only. An operation that was on its way may have been done.
    #[error(
        "object '{name}' was on process {process} only, which has ended: share it again to create it anew; one that is \
         replicated goes on"
    )]
    OwnerLost { name: String, process: u32 },
    /// Nobody has created it.
    #[error("no object is called '{0}'")]
    Unknown(String),
    /// It was created with another type.
    #[error("object '{name}' is of type {}, not {}", short(is, asked), short(asked, is))]
    OtherType { name: String, is: String, asked: String },
    /// An object can be placed only on a process that has opened it.
    #[error("process {process} has not opened object '{name}', so it cannot be placed there")]
    NotOpened { name: String, process: u32 },
    /// There is no such process.
    #[error(
        "object '{name}' cannot be placed on process {process}: the job has processes 0 to {}",
        .size.saturating_sub(1)
    )]
    NoProcess { name: String, process: u32, size: u32 },
    /// The type of the object has fewer operations.
    #[error(
        "object '{name}' has no operation {number}: its type has operations 0 to {}",
        .operations.saturating_sub(1)
    )]
    NoOperation { name: String, number: u16, operations: u16 },
    /// Objects have names.
    #[error("the name of an object is empty: it has one byte at least")]
    NoName,
    /// A barrier was created for another number of callers.
    #[error("barrier '{name}' is for {callers} callers, not {asked}")]
    OtherCallers { name: String, callers: u32, asked: u32 },
    /// An operation may use its own object only.
    #[error("an operation uses its own object and its arguments only: it calls no objects")]
    Nested,
    /// The processes have no order, or none any more.
    #[error("the processes cannot work together: {0}")]
    Group(String),
    /// This operation has said that it failed. If it writes, the object cannot be used any more.
    #[error("operation '{operation}' failed: {message}")]
    Failed { operation: String, message: String },
}

/// The name of a type without the modules that it stands in, unless that is the other one's, too.
fn short(name: &str, other: &str) -> String {
    let last = |name: &str| {
        let mut short = String::new();
        for part in name.split_inclusive("::") {
            // What stands before the module stays, such as the bracket of an argument.
            let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            short += part.strip_suffix("::").map_or(part, |module| module.trim_end_matches(is_of_name));
        }
        short
    };
    let (short, others) = (last(name), last(other));
    if short == others { name.to_owned() } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told_without_their_modules() {
        let is = "weft_objects::standard::job_queue::JobQueueObject<alloc::vec::Vec<u8>>".to_owned();
        let fault = ObjectFault::OtherType { name: "i".to_owned(), is, asked: "mine with a, b (writes)".to_owned() };
        assert_eq!(fault.to_string(), "object 'i' is of type JobQueueObject<Vec<u8>>, not mine with a, b (writes)");
        let (is, asked) = ("one::Count".to_owned(), "other::Count".to_owned());
        let fault = ObjectFault::OtherType { name: "i".to_owned(), is, asked };
        assert_eq!(fault.to_string(), "object 'i' is of type one::Count, not other::Count");
    }
}
