//! What can go wrong, by the numbers that C programs see.

use std::borrow::Cow;
use std::fmt;
use weft_ports::Fault;

/// What kind of error it is. The numbers are those of `weft.h`, and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum ErrorKind {
    /// The process has not joined, has left, or is inside a handler.
    State = -1,
    Argument = -2,
    /// There is no process of this number.
    Process = -3,
    /// The port is not open, or open already.
    Port = -4,
    /// The message was longer than the room for it, which holds its beginning.
    Truncated = -5,
    /// The other process has ended or is lost.
    Lost = -6,
    /// A name is taken, or nobody has it.
    Name = -7,
    /// The time is over.
    Timeout = -8,
    /// There is no such registered memory, or it ends before that.
    Memory = -9,
    /// The system refuses.
    System = -10,
    /// The process cannot join its job.
    Join = -11,
    /// Processes cannot be started.
    Start = -12,
}

/// Why a call did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeError {
    pub kind: ErrorKind,
    text: Cow<'static, str>,
}

pub(crate) type Result<T> = std::result::Result<T, NativeError>;

impl NativeError {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, text: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, text: text.into() }
    }

    #[cold]
    pub(crate) fn argument(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Argument, text)
    }

    #[cold]
    pub(crate) fn system(what: &str, error: &std::io::Error) -> Self {
        Self::new(ErrorKind::System, format!("{what}: {error}"))
    }
}

impl fmt::Display for NativeError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.text)
    }
}

impl std::error::Error for NativeError {}

impl From<Fault> for NativeError {
    #[cold]
    fn from(fault: Fault) -> Self {
        let (kind, text) = match fault {
            Fault::Truncated => (ErrorKind::Truncated, "the message is longer than the room for it"),
            Fault::PeerLost | Fault::Cancelled => (ErrorKind::Lost, "the other process has ended or is lost"),
            Fault::NoMemory => (ErrorKind::Lost, "there is no shared memory for messages to the other process"),
            Fault::Withdrawn => (ErrorKind::Port, "the port was closed"),
        };
        Self::new(kind, text)
    }
}
