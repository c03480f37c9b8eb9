//! Functions of the program that the library calls: message handlers, and a matcher.

use crate::library::{Arrived, library};
use crate::receive::Wanted;
use std::collections::VecDeque;
use std::ffi::c_int;
use weft_ports::{MatchedId, Outcome};

/// `pvm_addmhf(3PVM)`.
pub type Function = extern "C" fn(c_int) -> c_int;
/// `pvm_recvf(3PVM)`.
pub type MatchFunction = extern "C" fn(c_int, c_int, c_int) -> c_int;

/// The program's own way to choose messages.
#[derive(Clone, Copy)]
pub struct Matcher(pub MatchFunction);

impl Matcher {
    pub fn ask(self, buffer: c_int, tid: c_int, tag: c_int) -> c_int {
        (self.0)(buffer, tid, tag)
    }
}

#[derive(Clone, Copy)]
pub struct Handler {
    wanted: Wanted,
    function: Function,
}

pub struct Handlers {
    /// By number.
    all: Vec<Option<Handler>>,
    active: usize,
    running: bool,
    /// A message that was taken out of the fabric for the one that is about to be called.
    pub taken: Option<(Handler, MatchedId, Outcome, c_int)>,
}

impl Handlers {
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
    pub fn add(&mut self, wanted: Wanted, function: Function) -> Option<c_int> {
        let meets = |one: c_int, other: c_int| one == -1 || other == -1 || one == other;
        let overlaps = |there: &Handler| {
            meets(there.wanted.tid, wanted.tid)
                && meets(there.wanted.tag, wanted.tag)
                && meets(there.wanted.context, wanted.context)
        };
        if self.all.iter().flatten().any(overlaps) {
            return None;
        }
        let handler = Some(Handler { wanted, function });
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

    pub fn all(&self) -> Vec<(Handler, Wanted)> {
        self.all.iter().flatten().map(|handler| (*handler, handler.wanted)).collect()
    }

    /// The first message that has arrived of which a handler is to be told.
    pub fn for_arrived(&self, arrived: &VecDeque<Arrived>) -> Option<(usize, Handler)> {
        arrived.iter().enumerate().find_map(|(place, message)| {
            let handler = self.all.iter().flatten().find(|handler| handler.wanted.is(message))?;
            Some((place, *handler))
        })
    }
}

/// A handler with its message.
pub struct Call {
    pub handler: Handler,
    /// 0: it is still to be received.
    pub buffer: c_int,
}

impl Call {
    /// Calls the handler, with both active buffers put aside.
    pub fn run(self) {
        let mut library = library();
        let mut buffer = self.buffer;
        if let Some((_, message, outcome, context)) = library.handlers.taken.take() {
            let Some(incoming) = library.take("pvm_recv", message, &outcome, context) else { return };
            buffer = library.buffers.accept(incoming);
        }
        let receives = library.buffers.set_active_receive(buffer);
        let sends = library.buffers.set_active_send(0);
        library.handlers.running = true;
        drop(library);
        (self.handler.function)(buffer);
        let mut library = crate::library::library();
        library.handlers.running = false;
        let buffers = &mut library.buffers;
        for (before, restores) in [(receives, true), (sends, false)] {
            let Ok(before) = before else { continue };
            let left = if restores { buffers.set_active_receive(before) } else { buffers.set_active_send(before) };
            // The handler's message goes, and what it has made to send.
            if let Ok(left) = left
                && left > 0
            {
                let _ = buffers.free(left);
            }
        }
    }
}
