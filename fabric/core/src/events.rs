//! What happens inside the fabric, for tools of this process that have asked to hear of it.
//!
//! Who asks says which kinds ([`hear`]). While nobody has asked for a kind, an event of it costs one look at a word
//! that nobody writes, and there is no such look where a short message meets the receive that waits for it.

use crate::api::Outcome;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use weft_wire::settings::DeviceName;

/// The kinds that are told of here. Interfaces may have further ones, of numbers from [`EventKind::OTHERS`] on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Unexpected,
    Taken,
    Rendezvous,
    Lost,
    Way,
}

impl EventKind {
    pub const OTHERS: u32 = 5;
}

/// What has happened. Processes are numbered as [`crate::Peer`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message has arrived for which no receive was posted. Those of the interface's own conversations count as well.
    Unexpected { context: u32, message: Outcome },
    /// Such a message, or one to the process itself, has met its receive, or a probe that takes it.
    Taken { context: u32, message: Outcome },
    /// A message to `peer` was announced first: it waits in this process to be asked for, or, `offered`, to be fetched.
    Rendezvous { context: u32, peer: u32, tag: i32, bytes: u64, offered: bool },
    /// Nothing goes to or comes from the process any more.
    Lost { peer: u32 },
    /// Another device leads to a process, or, without one, to all that were reached by the first.
    Way { peer: Option<u32>, from: DeviceName, to: DeviceName },
}

/// A bit for each kind that somebody has asked for.
static HEARD: AtomicU32 = AtomicU32::new(0);

static LISTENER: OnceLock<fn(&Event)> = OnceLock::new();

/// From now on `listener` is called for events of those kinds whose bits `kinds` has, and of no others. There is one
/// listener in a process: the first that was given. It is called with the endpoint in use, which it must not want.
pub fn hear(kinds: u32, listener: fn(&Event)) {
    LISTENER.get_or_init(|| listener);
    HEARD.store(kinds, Ordering::Relaxed);
}

/// Whether somebody has asked for the kind with this number.
#[inline]
pub fn is_heard(kind: u32) -> bool {
    HEARD.load(Ordering::Relaxed) & 1 << kind != 0
}

/// Tells of an event, if somebody has asked for its kind.
#[inline]
pub(crate) fn tell(kind: EventKind, event: impl FnOnce() -> Event) {
    if is_heard(kind as u32) {
        tell_now(&event());
    }
}

#[cold]
fn tell_now(event: &Event) {
    if let Some(listener) = LISTENER.get() {
        listener(event);
    }
}
