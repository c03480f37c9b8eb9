//! Functions of the program that the library calls: message handlers, and a matcher.

use crate::wanted::{WaitingMessage, WantedMessage};
use std::collections::VecDeque;
use std::ffi::c_int;
use weft_ports::{MatchedId, Outcome};

/// `pvm_addmhf(3PVM)`.
pub type Function = extern "C" fn(c_int) -> c_int;
/// `pvm_recvf(3PVM)`.
pub type MatchFunction = extern "C" fn(c_int, c_int, c_int) -> c_int;

/// The program's own way to choose messages.
#[derive(Clone, Copy)]
pub struct ProgramMatcher(pub MatchFunction);

impl ProgramMatcher {
    pub fn ask(self, buffer: c_int, tid: c_int, tag: c_int) -> c_int {
        (self.0)(buffer, tid, tag)
    }
}

#[derive(Clone, Copy)]
pub struct MessageHandler {
    wanted: WantedMessage,
    pub function: Function,
}

pub struct MessageHandlers {
    /// By number.
    all: Vec<Option<MessageHandler>>,
    active: usize,
    pub running: bool,
    /// A message that was taken out of the fabric for the one that is about to be called.
    pub taken: Option<(MessageHandler, MatchedId, Outcome, c_int)>,
}

impl MessageHandlers {
    pub const fn new() -> Self {
        Self { all: Vec::new(), active: 0, running: false, taken: None }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.active == 0
    }

    /// One runs: no other one does meanwhile.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Its number; `None` where there is one for some of the same messages.
    pub fn add(&mut self, wanted: WantedMessage, function: Function) -> Option<c_int> {
        let meets = |one: c_int, other: c_int| one == -1 || other == -1 || one == other;
        let overlaps = |there: &MessageHandler| {
            meets(there.wanted.tid, wanted.tid)
                && meets(there.wanted.tag, wanted.tag)
                && meets(there.wanted.context, wanted.context)
        };
        if self.all.iter().flatten().any(overlaps) {
            return None;
        }
        let handler = Some(MessageHandler { wanted, function });
        self.active += 1;
        match self.all.iter().position(Option::is_none) {
            Some(place) => {
                self.all[place] = handler;
                Some(place as c_int)
            }
            None => {
                self.all.push(handler);
                Some(self.all.len() as c_int - 1)
            }
        }
    }

    /// Whether there was one of this number.
    pub fn remove(&mut self, number: c_int) -> bool {
        let place = usize::try_from(number).ok().and_then(|number| self.all.get_mut(number));
        let was = place.and_then(Option::take).is_some();
        self.active -= usize::from(was);
        was
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.active = 0;
    }

    pub fn all(&self) -> Vec<(MessageHandler, WantedMessage)> {
        self.all.iter().flatten().map(|handler| (*handler, handler.wanted)).collect()
    }

    /// The first message that has arrived of which a handler is to be told.
    pub fn for_arrived(&self, arrived: &VecDeque<WaitingMessage>) -> Option<(usize, MessageHandler)> {
        arrived.iter().enumerate().find_map(|(place, message)| {
            let handler = self.all.iter().flatten().find(|handler| handler.wanted.is(message))?;
            Some((place, *handler))
        })
    }
}

/// A handler with its message.
pub struct PvmHandlerCall {
    pub handler: MessageHandler,
    /// 0: it is still to be received.
    pub buffer: c_int,
}
