//! Errors of the MPI interface: the standard's error class plus one line that says what was wrong.

pub mod abi;
mod added;
pub mod recent;
mod tool;

use crate::errhandler::handler::Handler;
use std::fmt::Display;
use std::sync::Arc;

pub use added::last_used;

macro_rules! classes {
    ($($variant:ident = $number:literal, $name:literal, $text:literal;)*) => {
        /// Error classes (MPI 5.0, section 9.4) with the numbers of the standard ABI.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        pub enum Class {
            $($variant = $number,)*
        }

        impl Class {
            /// The class with this number.
            pub fn from_number(number: i32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The name that a C program knows.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// One line for `MPI_Error_string`.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

classes! {
    Success = 0, "MPI_SUCCESS", "no error";
    Buffer = 1, "MPI_ERR_BUFFER", "the buffer pointer cannot be used";
    Count = 2, "MPI_ERR_COUNT", "the count is negative or too large";
    Type = 3, "MPI_ERR_TYPE", "the datatype is not valid here";
    Tag = 4, "MPI_ERR_TAG", "the tag is negative or above MPI_TAG_UB";
    Comm = 5, "MPI_ERR_COMM", "the communicator is not valid";
    Rank = 6, "MPI_ERR_RANK", "the rank is outside the communicator";
    Request = 7, "MPI_ERR_REQUEST", "the request is not valid";
    Root = 8, "MPI_ERR_ROOT", "the root is not a rank of the communicator";
    Group = 9, "MPI_ERR_GROUP", "the group is not valid";
    Op = 10, "MPI_ERR_OP", "the operation is not valid here";
    Topology = 11, "MPI_ERR_TOPOLOGY", "the communicator has no such topology";
    Dims = 12, "MPI_ERR_DIMS", "the dimensions do not fit";
    Arg = 13, "MPI_ERR_ARG", "an argument is not valid";
    Unknown = 14, "MPI_ERR_UNKNOWN", "an error without a class of its own";
    Truncate = 15, "MPI_ERR_TRUNCATE", "the message was longer than the receive buffer";
    Other = 16, "MPI_ERR_OTHER", "an error that only its text explains";
    Intern = 17, "MPI_ERR_INTERN", "a fault inside the library";
    Pending = 18, "MPI_ERR_PENDING", "the request has not been completed";
    InStatus = 19, "MPI_ERR_IN_STATUS", "the error code stands in the status";
    Access = 20, "MPI_ERR_ACCESS", "access to the file was refused";
    Amode = 21, "MPI_ERR_AMODE", "the access mode is not valid";
    Assert = 22, "MPI_ERR_ASSERT", "the assertion is not valid";
    BadFile = 23, "MPI_ERR_BAD_FILE", "the file name is not valid";
    Base = 24, "MPI_ERR_BASE", "the window base is not valid";
    Conversion = 25, "MPI_ERR_CONVERSION", "a conversion function failed";
    Disp = 26, "MPI_ERR_DISP", "the displacement is not valid";
    DupDatarep = 27, "MPI_ERR_DUP_DATAREP", "the data representation exists already";
    FileExists = 28, "MPI_ERR_FILE_EXISTS", "the file exists already";
    FileInUse = 29, "MPI_ERR_FILE_IN_USE", "the file is in use";
    File = 30, "MPI_ERR_FILE", "the file handle is not valid";
    InfoKey = 31, "MPI_ERR_INFO_KEY", "the info key is longer than MPI_MAX_INFO_KEY";
    InfoNokey = 32, "MPI_ERR_INFO_NOKEY", "the info object has no such key";
    InfoValue = 33, "MPI_ERR_INFO_VALUE", "the info value is longer than MPI_MAX_INFO_VAL or not allowed for its key";
    Info = 34, "MPI_ERR_INFO", "the info object is not valid";
    Io = 35, "MPI_ERR_IO", "an input or output operation failed";
    Keyval = 36, "MPI_ERR_KEYVAL", "the attribute key is not valid";
    Locktype = 37, "MPI_ERR_LOCKTYPE", "the lock type is not valid";
    Name = 38, "MPI_ERR_NAME", "the service name is not known";
    NoMem = 39, "MPI_ERR_NO_MEM", "there is not enough memory";
    NotSame = 40, "MPI_ERR_NOT_SAME", "a collective argument differs between processes";
    NoSpace = 41, "MPI_ERR_NO_SPACE", "there is not enough space on the device";
    NoSuchFile = 42, "MPI_ERR_NO_SUCH_FILE", "there is no such file";
    Port = 43, "MPI_ERR_PORT", "the port name is not valid";
    Quota = 44, "MPI_ERR_QUOTA", "the quota is used up";
    ReadOnly = 45, "MPI_ERR_READ_ONLY", "the file or file system is read-only";
    RmaAttach = 46, "MPI_ERR_RMA_ATTACH", "memory cannot be attached to the window";
    RmaConflict = 47, "MPI_ERR_RMA_CONFLICT", "accesses to a window conflict";
    RmaRange = 48, "MPI_ERR_RMA_RANGE", "the target memory is outside the window";
    RmaShared = 49, "MPI_ERR_RMA_SHARED", "memory cannot be shared";
    RmaSync = 50, "MPI_ERR_RMA_SYNC", "the window synchronisation is wrong";
    Service = 51, "MPI_ERR_SERVICE", "the service name cannot be published or withdrawn";
    Size = 52, "MPI_ERR_SIZE", "the window size is not valid";
    Spawn = 53, "MPI_ERR_SPAWN", "processes could not be started";
    UnsupportedDatarep = 54, "MPI_ERR_UNSUPPORTED_DATAREP", "the data representation is not supported";
    UnsupportedOperation = 55, "MPI_ERR_UNSUPPORTED_OPERATION", "the operation is not supported";
    Win = 56, "MPI_ERR_WIN", "the window is not valid";
    RmaFlavor = 57, "MPI_ERR_RMA_FLAVOR", "the window's flavor does not allow this";
    ProcAborted = 58, "MPI_ERR_PROC_ABORTED", "a peer process has ended";
    ValueTooLarge = 59, "MPI_ERR_VALUE_TOO_LARGE", "the value does not fit its type";
    Session = 60, "MPI_ERR_SESSION", "the session is not valid";
    Errhandler = 61, "MPI_ERR_ERRHANDLER", "the error handler is not valid";
    Abi = 62, "MPI_ERR_ABI", "the ABI does not allow this";
    ProcFailed = 101, "MPIX_ERR_PROC_FAILED", "a process of the communicator is lost";
    ProcFailedPending = 102, "MPIX_ERR_PROC_FAILED_PENDING", "a process is lost that might have sent what the receive waits for";
    Revoked = 103, "MPIX_ERR_REVOKED", "the communicator is revoked";
}

impl Class {
    /// Whether it says that a process is lost.
    pub fn is_loss(self) -> bool {
        matches!(self, Self::ProcAborted | Self::ProcFailed | Self::ProcFailedPending)
    }
}

/// What a call that failed reports: the class for the program, the detail for the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub class: Class,
    /// What the call returns: the class's number, or a code that the program itself added.
    pub code: i32,
    /// One lower-case line naming the argument, its value and what is allowed.
    pub detail: String,
    /// The communicator (file, window) whose error handler is called; `None`: the one among the call's arguments.
    pub on: Option<usize>,
    /// The error handler that the call itself was given, which goes before all others.
    pub through: Option<Arc<Handler>>,
}

impl Error {
    #[cold]
    pub fn new(class: Class, detail: impl Into<String>) -> Self {
        Self { class, code: class as i32, detail: detail.into(), on: None, through: None }
    }

    /// The error of a number that is none of the first `count` ones.
    #[cold]
    pub fn outside(class: Class, given: impl Display, whose: impl Display, unit: Unit, count: usize) -> Self {
        Self::new(class, outside(given, whose, unit, count))
    }

    /// The error of a user's callback that returned `code`.
    #[cold]
    pub fn from_code(code: i32, detail: impl Into<String>) -> Self {
        let class = Class::from_number(code).unwrap_or(Class::Other);
        Self { class, code, detail: detail.into(), on: None, through: None }
    }

    /// Says which error handler is to be called, where a call is given one for what it makes.
    pub fn through(mut self, handler: &Arc<Handler>) -> Self {
        self.through = Some(handler.clone());
        self
    }

    /// Says which object's error handler is to be called.
    pub fn on(mut self, handle: usize) -> Self {
        self.on = Some(handle);
        self
    }
}

pub type Result<T> = std::result::Result<T, Error>;

/// The error of a null pointer where a result must go.
#[cold]
pub fn null_place(argument: &str) -> Error {
    Error::new(Class::Arg, format!("{argument} is a null pointer; the call stores its result there"))
}

/// Whether a pointer leads nowhere: it is null, or has the value of a predefined handle, whose address the program
/// meant to give. Nothing is ever mapped there.
#[inline]
pub fn is_no_place<T>(at: *const T) -> bool {
    at.addr() < crate::handle::kind::FIRST_USER
}

/// The error of such a pointer where a result must go.
#[cold]
pub fn no_place<T>(argument: &str, at: *const T) -> Error {
    if at.is_null() {
        return null_place(argument);
    }
    let detail = format!("{argument} ({:#x}) is no address of a place; the call stores its result there", at.addr());
    Error::new(Class::Arg, detail)
}

/// What is numbered from 0 on: the word for one and for several.
pub type Unit = (&'static str, &'static str);

pub const RANKS: Unit = ("rank", "ranks");

/// Says that what was given is none of the numbers from 0 on, as people say it: "rank 42, but MPI_COMM_WORLD has
/// ranks 0 to 1".
fn outside(given: impl Display, whose: impl Display, (one, several): Unit, count: usize) -> String {
    match count {
        0 => format!("{given}, but {whose} has no {several}"),
        1 => format!("{given}, but {whose} has {one} 0 only"),
        _ => format!("{given}, but {whose} has {several} 0 to {}", count - 1),
    }
}

/// The name of a class or code for messages to people.
pub fn name(code: i32) -> String {
    match Class::from_number(code) {
        Some(class) => class.name().to_owned(),
        None => tool::of(code).map_or_else(|| format!("code {code}"), |class| class.0.to_owned()),
    }
}

/// One line that explains a class or code.
pub fn text(code: i32) -> String {
    let added = || added::entry(code).map_or_else(|| format!("unknown error code {code}"), |entry| entry.text);
    let known = Class::from_number(code).map(Class::text).or_else(|| tool::of(code).map(|class| class.1));
    known.map_or_else(added, str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_said_as_people_say_them() {
        assert_eq!(outside("rank 42", "MPI_COMM_WORLD", RANKS, 2), "rank 42, but MPI_COMM_WORLD has ranks 0 to 1");
        assert_eq!(outside("rank 1", "MPI_COMM_SELF", RANKS, 1), "rank 1, but MPI_COMM_SELF has rank 0 only");
        assert_eq!(outside("rank 0", "the group", RANKS, 0), "rank 0, but the group has no ranks");
    }
}
