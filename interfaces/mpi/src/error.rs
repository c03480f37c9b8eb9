//! Errors of the MPI interface: the standard's error class plus one line that says what was wrong.

/// Error classes (MPI 5.0, section 9.4) with the numbers of the standard ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Class {
    Success = 0,
    Buffer = 1,
    Count = 2,
    Type = 3,
    Tag = 4,
    Comm = 5,
    Rank = 6,
    Request = 7,
    Root = 8,
    Group = 9,
    Op = 10,
    Topology = 11,
    Dims = 12,
    Arg = 13,
    Unknown = 14,
    Truncate = 15,
    Other = 16,
    Intern = 17,
}

/// What a call that failed reports: the class for the program, the detail for the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub class: Class,
    /// One lower-case line naming the argument, its value and what is allowed.
    pub detail: String,
}

impl Error {
    pub fn new(class: Class, detail: impl Into<String>) -> Self {
        Self { class, detail: detail.into() }
    }
}

pub type Result<T> = std::result::Result<T, Error>;
