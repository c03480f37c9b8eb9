//! What goes on when processes are lost: user-level failure mitigation (the MPI Forum's ULFM proposal), and what the
//! rest of the interface owes to those who live.
//!
//! - `known`: what the process knows. `look`: how it learns. `spread`: what it tells communicators and their members.
//! - `begin`, `round`: agreements. `letters`: the messages by which they and revocations travel.
//! - `shrink`: communicators of those who live.
//! - `abi`: the bodies of the calls.
//!
//! The launcher tells who is lost (`Endpoint::look_for_lost`), in jobs that go on without. From then on operations that
//! need the process end with an error. A communicator with a lost member has no collective operations any more: their
//! context is closed, here and, as the launcher tells everybody, in all members, so that nobody waits in one for
//! somebody who has left it with an error. Receives from anybody stall until the loss is acknowledged.
//!
//! A communicator that is revoked is closed as a whole. Who hears of it first tells all other members, so that they
//! hear of it even if the first one dies in the middle.

pub mod abi;
mod begin;
mod known;
mod letters;
mod look;
mod round;
mod shrink;
mod spread;

pub(crate) use begin::finish;
pub(crate) use known::{Failures, revoked};
pub(crate) use look::look;
pub(crate) use spread::{end_members, forget};

use crate::error::{Class, Error};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use weft_fabric::{Endpoint, Fault, Peer};

/// Whether the job goes on when processes are lost.
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// The process has joined its job.
pub(crate) fn note_joined(endpoint: &Endpoint) {
    GOES_ON.store(endpoint.keeps_going(), Ordering::Relaxed);
}

/// The class of an error for want of a process that is gone.
pub(crate) fn lost_class() -> Class {
    if GOES_ON.load(Ordering::Relaxed) { Class::ProcFailed } else { Class::ProcAborted }
}

/// What failures mean for one communicator.
#[derive(Default)]
pub struct CommFailures {
    revoked: AtomicBool,
    /// How many of its lost members the program has acknowledged.
    acknowledged: AtomicU32,
    /// How many of the process's losses it has been told of.
    told: AtomicU32,
    /// Agreements that were begun on it.
    agreements: AtomicU32,
}

impl CommFailures {
    #[inline(always)]
    pub fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Relaxed)
    }
}

/// The error of an operation that needs a process where messages to it, or from it, have no memory.
#[cold]
pub fn cut_off(peer: Peer) -> Error {
    let detail = format!("there is no shared memory for messages to or from the process with world rank {}", peer.0);
    Error::new(cut_off_class(), detail)
}

/// A job that goes on takes it for lost, as the device does.
fn cut_off_class() -> Class {
    if GOES_ON.load(Ordering::Relaxed) { Class::ProcFailed } else { Class::NoMem }
}

/// The error of an operation whose context is closed in this way.
#[cold]
pub fn closed(fault: Fault) -> Error {
    match fault {
        Fault::Withdrawn => Error::new(Class::Revoked, "the communicator is revoked"),
        Fault::NoMemory => {
            let detail = "there is no shared memory for messages between processes of the communicator";
            Error::new(cut_off_class(), detail)
        }
        _ => Error::new(lost_class(), "a process of the communicator is lost"),
    }
}
