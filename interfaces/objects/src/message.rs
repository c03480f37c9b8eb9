//! What the run-time systems of a job say to each other: events that go through the order, and messages to one process.
//!
//! All are read as claims: what does not decode is ignored, which all do alike where it went through the order.

use crate::fault::ObjectFault;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A process of the job.
pub type ProcessId = u32;

/// An object: the number in the order at which it was created.
pub type ObjectId = u64;

/// A call of a process that is not over.
pub type CallId = u64;

/// Where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectPlacement {
    /// On each process that has opened it.
    Replicated,
    /// On this process only.
    Single(ProcessId),
}

/// What somebody wants of an object's placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// There, until another strategy is given.
    Fixed(ObjectPlacement),
    /// Wherever its operations cost least, as they are counted.
    Automatic,
}

/// An operation that somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectCall {
    pub origin: ProcessId,
    pub call: CallId,
    pub number: u16,
    pub arguments: Octets,
}

/// What goes through the order.
#[derive(Debug, Serialize, Deserialize)]
pub enum OrderedEvent {
    /// Opens the object of this name, or creates it with a state.
    Open { call: CallId, name: String, kind: String, initial: Option<Octets> },
    /// The sender has what it needs to take part in an object.
    Holds { object: ObjectId },
    /// An operation that writes, with what the sender has read since it last said.
    Write { object: ObjectId, call: CallId, number: u16, arguments: Octets, reads: u64 },
    /// What the sender has read since it last said.
    Reads { object: ObjectId, reads: u64 },
    /// Somebody asks for a strategy.
    Place { object: ObjectId, call: CallId, strategy: Strategy },
    /// The process that has the object has counted, and would have it elsewhere.
    Propose { object: ObjectId, to: ObjectPlacement },
    /// The object leaves the only process that has it. Without a state it cannot be used.
    Leave { object: ObjectId, to: ObjectPlacement, state: Option<Octets>, waiting: Vec<ObjectCall> },
    /// The sender will use no object any more.
    Close,
}

/// What goes to one process.
#[derive(Debug, Serialize, Deserialize)]
pub enum DirectMessage {
    /// Do this with the object that you have.
    Request { object: ObjectId, call: CallId, number: u16, arguments: Octets },
    /// This is what became of it.
    Reply { call: CallId, answer: Result<Octets, ObjectFault> },
    /// The object is not here any more, and nothing was done: ask again.
    Moved { object: ObjectId, call: CallId, number: u16, arguments: Octets },
    /// An object as it was when the receiver opened it, which was event `at`.
    Copy { object: ObjectId, at: u64, state: Option<Octets>, waiting: Vec<ObjectCall> },
}

/// A message with the number of the last event that its sender has handled.
#[derive(Debug, Serialize, Deserialize)]
pub struct Tagged {
    pub after: u64,
    pub message: DirectMessage,
}

/// Bytes, written as such and not one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Octets(pub Vec<u8>);

impl Serialize for Octets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Octets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InBytes;
        impl Visitor<'_> for InBytes {
            type Value = Octets;

            fn expecting(&self, form: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                form.write_str("bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Octets, E> {
                Ok(Octets(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(InBytes)
    }
}
