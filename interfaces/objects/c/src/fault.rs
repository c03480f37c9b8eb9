//! What can go wrong, by the numbers that C programs see.

use std::borrow::Cow;
use weft_objects::ObjectFault;

/// What kind of error it is. The numbers are those of `weft_objects.h`, and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum FaultNumber {
    State = -1,
    Argument = -2,
    Name = -3,
    Type = -4,
    Truncated = -5,
    Lost = -6,
    Failed = -7,
    Broken = -8,
    Timeout = -9,
    Group = -10,
}

/// Why a call did not do what it was asked to.
#[derive(Debug)]
pub struct CallFault {
    pub number: FaultNumber,
    pub text: Cow<'static, str>,
}

pub type Result<T> = std::result::Result<T, CallFault>;

impl CallFault {
    #[cold]
    pub fn new(number: FaultNumber, text: impl Into<Cow<'static, str>>) -> Self {
        Self { number, text: text.into() }
    }

    #[cold]
    pub fn argument(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(FaultNumber::Argument, text)
    }
}

impl From<ObjectFault> for CallFault {
    #[cold]
    fn from(fault: ObjectFault) -> Self {
        let number = match &fault {
            ObjectFault::Nested => FaultNumber::State,
            ObjectFault::Format(..)
            | ObjectFault::NotOpened { .. }
            | ObjectFault::NoProcess { .. }
            | ObjectFault::NoOperation { .. }
            | ObjectFault::NoName
            | ObjectFault::OtherCallers { .. } => FaultNumber::Argument,
            ObjectFault::Unknown(_) => FaultNumber::Name,
            ObjectFault::OtherType { .. } => FaultNumber::Type,
            ObjectFault::OwnerLost { .. } => FaultNumber::Lost,
            ObjectFault::Panicked { .. } | ObjectFault::Failed { .. } => FaultNumber::Failed,
            ObjectFault::Poisoned { .. } => FaultNumber::Broken,
            ObjectFault::Group(_) => FaultNumber::Group,
        };
        Self::new(number, fault.to_string())
    }
}
