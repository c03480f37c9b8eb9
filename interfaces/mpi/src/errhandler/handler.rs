//! What happens after an error: errors and objects carry it.

use crate::abi::{ERRORS_ABORT, ERRORS_ARE_FATAL, ERRORS_RETURN};
use crate::handle::kind::HandleKind;

/// What happens after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// What objects have until the program gives them, or one that they inherit from, a handler: that of the process,
    /// which is fatal unless the program has changed it. As in MPICH, so that a program that gives only
    /// `MPI_COMM_WORLD` a handler hears of all errors, whatever it made before.
    Initial,
    /// Ends the job.
    Fatal,
    /// Ends the processes of the communicator; where the job does not go on without them, all.
    Abort,
    /// The call returns the code.
    Return,
    /// The program's function, for objects of one kind.
    User { function: usize, kind: HandleKind },
}

impl Handler {
    pub(super) fn predefined(handle: usize) -> Option<Self> {
        match handle {
            ERRORS_ARE_FATAL => Some(Self::Fatal),
            ERRORS_ABORT => Some(Self::Abort),
            ERRORS_RETURN => Some(Self::Return),
            _ => None,
        }
    }

    /// The null handle of the objects that it is for.
    pub(super) fn null(&self) -> usize {
        match self {
            Self::User { kind, .. } => kind.null(),
            _ => HandleKind::Comm.null(),
        }
    }
}
