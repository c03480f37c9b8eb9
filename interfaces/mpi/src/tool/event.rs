//! Events: what happens inside, as it happens.
//!
//! Callbacks run where the event is, inside the interface: they are such as call nothing of MPI but the tool interface
//! (`MPI_T_CB_REQUIRE_MPI_RESTRICTED` and above). A registration that has none of those drops the event and counts it.
//! All events come about with the world held, one after the other; so their one source is ordered.

use super::{ToolGuard, ToolHandles, ToolState, state};
use crate::abi::{INT, T_ERR_INVALID, UNSIGNED_LONG_LONG};
use std::ffi::c_void;
use std::fmt::Write;
use std::sync::OnceLock;
use weft_fabric::Outcome;
use weft_fabric::events::{self, Event, EventKind};
use weft_fabric::settings::Algorithms;

/// A kind of event. Its values are integers, but for `bytes`, which is the last where there is one.
pub struct Type {
    pub name: &'static str,
    pub elements: &'static [&'static str],
    meaning: &'static str,
}

const COLLECTIVE: usize = EventKind::OTHERS as usize;

/// In the order of [`EventKind`].
pub const TYPES: [Type; COLLECTIVE + 1] = [
    Type {
        name: "unexpected_message",
        elements: &["source", "tag", "context", "process", "bytes"],
        meaning: "a message has arrived before its receive was posted; source is the sender's rank in the communicator, \
                  process its rank in the job",
    },
    Type {
        name: "unexpected_taken",
        elements: &["source", "tag", "context", "process", "bytes"],
        meaning: "a message that had arrived unexpectedly has met its receive or matched probe",
    },
    Type {
        name: "rendezvous",
        elements: &["process", "tag", "context", "offered", "bytes"],
        meaning: "a message to a process (its rank in the job) is announced first; offered is 1 where it may be fetched at \
                  once",
    },
    Type {
        name: "process_lost",
        elements: &["process"],
        meaning: "nothing goes to or comes from a process (its rank in the job) any more",
    },
    Type {
        name: "way_changed",
        elements: &["process", "from", "to"],
        meaning: "another device leads to a process (its rank in the job; -1: all that the first led to); devices are 0 \
                  shm, 1 xdp, 2 udp, 3 tcp",
    },
    Type {
        name: "collective",
        elements: &["operation", "algorithm", "context", "ranks", "bytes"],
        meaning: "how a collective operation, or a level of it, is done among so many ranks, chosen by so many bytes; \
                  algorithm 0 is shared memory, and otherwise one of messages:",
    },
];

/// The collective operations whose way is told, in the order of their numbers: one without messages of a choice, and
/// those of the table of algorithms.
fn operations() -> impl Iterator<Item = &'static str> {
    ["barrier"].into_iter().chain(Algorithms::TABLE.iter().map(|(operation, _)| *operation))
}

impl Type {
    /// Where the element lies in the data, and its datatype.
    pub fn element(&self, index: usize) -> Option<(usize, usize)> {
        match *self.elements.get(index)? {
            "bytes" => Some((std::mem::offset_of!(Data, bytes), UNSIGNED_LONG_LONG)),
            _ => Some((4 * index, INT)),
        }
    }

    /// Bytes of the data.
    pub fn size(&self) -> usize {
        if self.elements.contains(&"bytes") { size_of::<Data>() } else { 4 * self.elements.len() }
    }
}

pub fn meaning(index: usize) -> &'static str {
    static OF_COLLECTIVES: OnceLock<String> = OnceLock::new();
    if index != COLLECTIVE {
        return TYPES[index].meaning;
    }
    OF_COLLECTIVES.get_or_init(|| {
        let mut text = TYPES[COLLECTIVE].meaning.to_owned();
        for (number, operation) in operations().enumerate() {
            let _ = write!(text, "{} operation {number} {operation}", if number > 0 { ";" } else { "" });
            let algorithms =
                Algorithms::TABLE.iter().find(|known| known.0 == operation).map_or(&[][..], |known| known.1);
            for (place, (word, _)) in algorithms.iter().enumerate() {
                let _ = write!(text, ", {} {word}", place + 1);
            }
        }
        text
    })
}

/// What is known of one event.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Data {
    integers: [i32; 4],
    bytes: u64,
}

/// An event while its callbacks run.
pub struct Instance {
    pub kind: usize,
    pub data: Data,
    pub timestamp: i64,
}

/// How safe a callback has to be for where it is called, by the number of the level.
pub const LEVELS: [i32; 4] = [0, 3, 15, 63];
/// What is asked of those that run where an event is.
const RESTRICTED: usize = 1;

pub fn level(safety: i32) -> super::Answer<usize> {
    LEVELS.iter().position(|level| *level == safety).ok_or(T_ERR_INVALID)
}

/// A function of the program, by its address, and what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callback {
    pub function: usize,
    pub user_data: *mut c_void,
}

// SAFETY: the pointer is the program's, and only handed back to it.
unsafe impl Send for Callback {}

/// One interest in a kind of event.
pub struct EventRegistration {
    pub kind: usize,
    pub callbacks: [Option<Callback>; LEVELS.len()],
    /// The address of the function that is told of dropped events; 0: none.
    pub dropped_handler: usize,
    dropped: i64,
    /// Callbacks that run now, or are about to.
    running: u32,
    /// It is freed, and this is called when no callback runs any more.
    freed: Option<Callback>,
}

impl EventRegistration {
    pub fn new(kind: usize) -> Self {
        Self { kind, callbacks: [None; LEVELS.len()], dropped_handler: 0, dropped: 0, running: 0, freed: None }
    }

    pub fn is_live(&self) -> bool {
        self.freed.is_none()
    }

    /// The callback that asks for least among those that may run where an event is.
    fn callback(&self) -> Option<Callback> {
        self.callbacks[RESTRICTED..].iter().flatten().next().copied()
    }

    fn is_interested(&self) -> bool {
        self.is_live() && (self.dropped_handler != 0 || self.callback().is_some())
    }

    /// What the dropped handler is to be told, if it is.
    fn take_dropped(&mut self) -> Option<(usize, i64)> {
        let dropped = std::mem::take(&mut self.dropped);
        (dropped > 0 && self.dropped_handler != 0).then_some((self.dropped_handler, dropped))
    }
}

impl ToolState {
    /// Events of those kinds are told from now on that somebody wants to hear of.
    pub fn settle_interest(&self) {
        let interested = self.registrations.live.values().filter(|registration| registration.is_interested());
        events::hear(interested.fold(0, |kinds, registration| kinds | 1 << registration.kind), listen);
    }
}

/// The time of events, nanoseconds.
pub fn now() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Whether somebody wants to hear how collectives are done.
#[inline]
pub fn wants_collectives() -> bool {
    events::is_heard(COLLECTIVE as u32)
}

/// Tells how a collective is done: on shared memory where no algorithm is named. The world is held.
#[cold]
pub fn tell_collective(operation: &str, algorithm: Option<&str>, context: u32, ranks: u32, bytes: u64) {
    let Some(number) = operations().position(|known| known == operation) else { return };
    let of = |named: &str| {
        let known = Algorithms::TABLE.iter().find(|known| known.0 == operation)?.1;
        known.iter().position(|known| known.0 == named).map(|place| place + 1)
    };
    let algorithm = algorithm.map_or(Some(0), of).map_or(-1, |number| number as i32);
    deliver(COLLECTIVE, Data { integers: [number as i32, algorithm, context as i32, ranks as i32], bytes });
}

fn listen(event: &Event) {
    let of_message = |context: u32, message: &Outcome| Data {
        integers: [message.source as i32, message.tag, context as i32, message.peer.0 as i32],
        bytes: message.length,
    };
    let few = |first: i32, second: i32, third: i32| Data { integers: [first, second, third, 0], bytes: 0 };
    let (kind, data) = match event {
        Event::Unexpected { context, message } => (EventKind::Unexpected, of_message(*context, message)),
        Event::Taken { context, message } => (EventKind::Taken, of_message(*context, message)),
        Event::Rendezvous { context, peer, tag, bytes, offered } => {
            let integers = [*peer as i32, *tag, *context as i32, i32::from(*offered)];
            (EventKind::Rendezvous, Data { integers, bytes: *bytes })
        }
        Event::Lost { peer } => (EventKind::Lost, few(*peer as i32, 0, 0)),
        Event::Way { peer, from, to } => {
            (EventKind::Way, few(peer.map_or(-1, |peer| peer as i32), *from as i32, *to as i32))
        }
    };
    deliver(kind as usize, data);
}

/// A registration whose callback is to run, and what its dropped handler is to be told before.
struct CallbackCall {
    registration: usize,
    dropped: Option<(usize, i64)>,
}

fn deliver(kind: usize, data: Data) {
    let timestamp = now();
    let mut state = state();
    let mut calls = Vec::new();
    for (&handle, registration) in &mut state.registrations.live {
        if registration.kind != kind || !registration.is_interested() {
            continue;
        }
        match registration.callback() {
            None => registration.dropped += 1,
            Some(_) => {
                registration.running += 1;
                calls.push(CallbackCall { registration: handle, dropped: registration.take_dropped() });
            }
        }
    }
    if calls.is_empty() {
        return;
    }
    calls.sort_by_key(|call| call.registration);
    let instance = state.instances.insert(Instance { kind, data, timestamp });
    drop(state);
    let safety = crate::program::safety(LEVELS[RESTRICTED]);
    for CallbackCall { registration, dropped } in calls {
        // As it is now: the callback before may have replaced it, and given up what it was told.
        let now =
            super::state().registrations.live.get(&registration).filter(|r| r.is_live()).and_then(|r| r.callback());
        if let Some(callback) = now {
            // SAFETY: the program said that these are functions of their types.
            unsafe {
                if let Some((handler, count)) = dropped {
                    tell_dropped(handler, count, registration, safety, callback.user_data);
                }
                let function: unsafe extern "C" fn(usize, usize, i32, *mut c_void) =
                    std::mem::transmute(callback.function);
                function(instance, registration, safety, callback.user_data);
            }
        }
        end_call(registration, safety);
    }
    super::state().instances.live.remove(&instance);
}

/// A callback has run. If its registration was freed meanwhile, that ends now.
fn end_call(handle: usize, safety: i32) {
    let mut state = state();
    let Some(registration) = state.registrations.live.get_mut(&handle) else { return };
    registration.running -= 1;
    if registration.running > 0 {
        return;
    }
    if let Some(freed) = registration.freed {
        state.registrations.live.remove(&handle);
        drop(state);
        // SAFETY: as the program said.
        unsafe { tell_freed(freed, handle, safety) };
    }
}

/// # Safety
/// `handler` is the address of a function of this kind.
unsafe fn tell_dropped(handler: usize, count: i64, registration: usize, safety: i32, user_data: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe {
        let function: unsafe extern "C" fn(i64, usize, i32, i32, *mut c_void) = std::mem::transmute(handler);
        function(count, registration, 0, safety, user_data);
    }
}

/// # Safety
/// The function is of this kind, or its address is 0.
unsafe fn tell_freed(freed: Callback, registration: usize, safety: i32) {
    if freed.function != 0 {
        // SAFETY: the caller's promise.
        unsafe {
            let function: unsafe extern "C" fn(usize, i32, *mut c_void) = std::mem::transmute(freed.function);
            function(registration, safety, freed.user_data);
        }
    }
}

/// Frees a registration: at once, or when the callbacks that run now have ended. What was dropped is told before.
///
/// # Safety
/// The functions are of their kinds.
pub unsafe fn free(mut state: ToolGuard, handle: usize, freed: Callback) {
    let Some(registration) = state.registrations.live.get_mut(&handle) else { return };
    let dropped = registration.take_dropped();
    let user_data = registration.callbacks.iter().flatten().next().map_or(std::ptr::null_mut(), |one| one.user_data);
    registration.freed = Some(freed);
    let at_once = registration.running == 0;
    if at_once {
        state.registrations.live.remove(&handle);
    }
    state.settle_interest();
    drop(state);
    let safety = crate::program::safety(LEVELS[0]);
    // SAFETY: the caller's promise.
    unsafe {
        if let Some((handler, count)) = dropped {
            tell_dropped(handler, count, handle, safety, user_data);
        }
        if at_once {
            tell_freed(freed, handle, safety);
        }
    }
}

impl ToolHandles<EventRegistration> {
    /// One that is not freed.
    pub fn find(&mut self, handle: usize) -> super::Answer<&mut EventRegistration> {
        let found = self.live.get_mut(&handle).filter(|registration| registration.is_live());
        found.ok_or(crate::abi::T_ERR_INVALID_HANDLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_where_its_number_says_and_its_values_lie_in_the_data() {
        let kinds = [EventKind::Unexpected, EventKind::Taken, EventKind::Rendezvous, EventKind::Lost, EventKind::Way];
        assert!(kinds.iter().zip(0..EventKind::OTHERS).all(|(kind, number)| *kind as u32 == number));
        for kind in &TYPES {
            for (index, name) in kind.elements.iter().enumerate() {
                let (at, datatype) = kind.element(index).expect("an element");
                let bytes = if datatype == INT { 4 } else { 8 };
                assert!(at + bytes <= kind.size() && at % bytes == 0, "{} {name}", kind.name);
            }
            assert!(kind.element(kind.elements.len()).is_none());
        }
        let text = meaning(COLLECTIVE);
        assert!(text.contains("operation 0 barrier; operation 1 bcast, 1 binomial, 2 scatter-allgather"), "{text}");
    }
}
