//! Finding messages: in the fabric, and among those that have arrived here.
//!
//! What has arrived here is older than what the fabric still has of the same sender and context, so it comes first, and
//! whoever takes a message out of the fabric without receiving it takes all older ones of its context too ([`drain`]).

use crate::buffer::IncomingMessage;
use crate::errors::Error;
use crate::handlers::PvmHandlerCall;
use crate::library::{PvmLibrary, enrolled, library};
use crate::source::read_source;
use crate::waiting::{FABRIC, wait_until};
use crate::wanted::WantedMessage;
use std::ffi::c_int;
use std::sync::MutexGuard;
use std::time::Instant;
use weft_fabric::Endpoint;
use weft_ports::{Fault, MatchedId, Outcome, Peer, Selector, room_of};
use weft_pvm_machine::{code, tid};

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub enum WaitPatience {
    None,
    Until(Instant),
    Forever,
}

/// What a look has found.
enum SearchFound {
    Arrived(usize),
    InFabric(MatchedId, Outcome, c_int),
    /// A handler is to be called.
    Handler(PvmHandlerCall),
    /// There is something to be done outside, then it goes on.
    Again,
    /// Something new is among what has arrived.
    News,
    Nothing,
    Failed(Error),
}

/// Waits for the message that is wanted and takes it. Message handlers run meanwhile.
///
/// # Errors
/// It can come from one task only, which has ended; the machine is gone; what a matcher says.
pub fn receive(call: &'static str, wanted: WantedMessage, patience: WaitPatience) -> Result<Option<c_int>, Error> {
    receive_in(enrolled()?, call, wanted, patience).map(|(_, buffer)| buffer)
}

/// As [`receive`], for who holds the library and goes on holding it.
///
/// # Errors
/// As [`receive`].
#[inline]
pub fn receive_in(
    mut library: MutexGuard<'static, PvmLibrary>,
    call: &'static str,
    wanted: WantedMessage,
    patience: WaitPatience,
) -> Result<(MutexGuard<'static, PvmLibrary>, Option<c_int>), Error> {
    loop {
        if library.matcher.is_some() {
            drop(library);
            let found = receive_by_matcher(call, wanted, patience)?;
            return Ok((enrolled()?, found));
        }
        match library.find(call, wanted, patience)? {
            SearchFound::Arrived(place) => {
                let found = library.arrived.remove(place).map(|message| message.buffer);
                return Ok((library, found));
            }
            SearchFound::InFabric(message, outcome, context) => {
                if let Some(incoming) = library.take(call, message, &outcome, context) {
                    let buffer = library.buffers.accept(incoming);
                    return Ok((library, Some(buffer)));
                }
            }
            SearchFound::Handler(handler) => {
                drop(library);
                handler.run();
                library = enrolled()?;
            }
            SearchFound::Again | SearchFound::News => {}
            SearchFound::Nothing => return Ok((library, None)),
            SearchFound::Failed(error) => return Err(error),
        }
    }
}

/// As [`receive`], without waiting, and leaves the message there; its buffer is the one that it will be received with.
///
/// # Errors
/// As [`receive`].
pub fn probe(wanted: WantedMessage) -> Result<Option<c_int>, Error> {
    let mut library = enrolled()?;
    if library.matcher.is_some() {
        drop(library);
        let found = look_by_matcher("pvm_probe", wanted, WaitPatience::None)?;
        return Ok(found);
    }
    for passes in 0..2 {
        library.drain("pvm_probe", wanted.context);
        while let Some(call) = FABRIC.with(|endpoint| library.look_for_handler(endpoint)) {
            drop(library);
            call.run();
            library = enrolled()?;
        }
        if let Some(place) = library.look_here(wanted) {
            return Ok(Some(library.arrived[place].buffer));
        }
        if passes == 0 {
            FABRIC.poll();
            FABRIC.with(|endpoint| library.listen(endpoint))?;
            library.task()?.flush();
        }
    }
    Ok(None)
}

/// Asks the program's own matcher for each message; the buffer of the one that it likes best.
fn look_by_matcher(call: &'static str, wanted: WantedMessage, patience: WaitPatience) -> Result<Option<c_int>, Error> {
    loop {
        let mut library = enrolled()?;
        let Some(matcher) = library.matcher else { return Ok(None) };
        library.drain(call, wanted.context);
        let buffers: Vec<c_int> = library.arrived.iter().map(|message| message.buffer).collect();
        drop(library);
        let mut best = None;
        for buffer in buffers.iter().copied() {
            match matcher.ask(buffer, wanted.tid, wanted.tag) {
                code if code < 0 => return Err(Error(code)),
                0 => {}
                1 => return Ok(Some(buffer)),
                rank if best.is_none_or(|(most, _)| rank > most) => best = Some((rank, buffer)),
                _ => {}
            }
        }
        if let Some((_, buffer)) = best {
            return Ok(Some(buffer));
        }
        match enrolled()?.await_news(call, wanted.context, buffers.len(), patience) {
            SearchFound::Nothing => return Ok(None),
            SearchFound::Failed(error) => return Err(error),
            _ => {}
        }
    }
}

fn receive_by_matcher(
    call: &'static str,
    wanted: WantedMessage,
    patience: WaitPatience,
) -> Result<Option<c_int>, Error> {
    let Some(buffer) = look_by_matcher(call, wanted, patience)? else { return Ok(None) };
    let mut library = library();
    library.arrived.retain(|message| message.buffer != buffer);
    Ok(Some(buffer))
}

impl PvmLibrary {
    /// Waits until something is found.
    fn find(
        &mut self,
        call: &'static str,
        wanted: WantedMessage,
        patience: WaitPatience,
    ) -> Result<SearchFound, Error> {
        let peer = match self.task()?.find_if_task(wanted.tid) {
            Ok(peer) => peer,
            Err(_) => return Err(self.lose_machine()),
        };
        // Nobody else can become it.
        let nobody =
            wanted.tid != -1 && tid::is_task(wanted.tid) && peer.is_none() && { !self.task()?.is_awaited(wanted.tid) };
        let contexts = self.contexts_of(wanted);
        let mut search = MessageSearch { wanted, peer, nobody, patience, passes: 0, contexts };
        loop {
            self.task()?.flush();
            let until = if let WaitPatience::Until(limit) = patience { Some(limit) } else { None };
            let looks = search.peer.is_some() && matches!(patience, WaitPatience::Forever);
            match wait_until(call, until, looks, |endpoint, is_time| self.look(endpoint, &mut search, is_time)) {
                SearchFound::Again => {
                    search.peer = match search.peer {
                        None if tid::is_task(wanted.tid) => self.task()?.known(wanted.tid),
                        peer => peer,
                    };
                }
                found => return Ok(found),
            }
        }
    }

    /// The contexts to look in: all that this task has had to do with, where it wants any.
    fn contexts_of(&self, wanted: WantedMessage) -> Vec<c_int> {
        if wanted.context != -1 { Vec::new() } else { self.options.contexts() }
    }

    fn look_here(&self, wanted: WantedMessage) -> Option<usize> {
        self.arrived.iter().position(|message| wanted.is(message))
    }

    /// One look.
    fn look(&mut self, endpoint: &mut Endpoint, search: &mut MessageSearch, is_time: bool) -> Option<SearchFound> {
        search.passes = search.passes.wrapping_add(1);
        // Who is there no more may have met this task before.
        if is_time || search.nobody || matches!(search.patience, WaitPatience::None) {
            match self.listen(endpoint) {
                Ok(true) => return Some(SearchFound::Again),
                Ok(false) => {}
                Err(error) => return Some(SearchFound::Failed(error)),
            }
            // Who was awaited may be there now.
            if search.peer.is_none() && search.wanted.tid != -1 && tid::is_task(search.wanted.tid) {
                let task = self.task.as_ref()?;
                search.peer = task.known(search.wanted.tid);
                search.nobody = search.peer.is_none() && !task.is_awaited(search.wanted.tid);
            }
        }
        if let Some(call) = self.look_for_handler(endpoint) {
            return Some(SearchFound::Handler(call));
        }
        if let Some(place) = self.look_here(search.wanted) {
            return Some(SearchFound::Arrived(place));
        }
        if let Some((message, outcome, context)) = search.take(endpoint) {
            return Some(SearchFound::InFabric(message, outcome, context));
        }
        search.end(endpoint, is_time)
    }

    fn look_for_handler(&mut self, endpoint: &mut Endpoint) -> Option<PvmHandlerCall> {
        if self.handlers.is_empty() || self.handlers.is_running() {
            return None;
        }
        if let Some((place, handler)) = self.handlers.for_arrived(&self.arrived) {
            let message = self.arrived.remove(place)?;
            return Some(PvmHandlerCall { handler, buffer: message.buffer });
        }
        for (handler, wanted) in self.handlers.all() {
            let peer = match wanted.tid {
                -1 => None,
                of => Some(self.task.as_ref()?.known(of)?),
            };
            let contexts = if wanted.context == -1 { self.options.contexts() } else { vec![wanted.context] };
            for context in contexts {
                let tag = (wanted.tag != -1).then_some(wanted.tag);
                let selector = Selector { context: context as u32, peer, tag };
                if let Some((message, outcome)) = endpoint.take_matched(selector) {
                    self.handlers.taken = Some((handler, message, outcome, context));
                    return Some(PvmHandlerCall { handler, buffer: 0 });
                }
            }
        }
        None
    }

    /// Receives a message that was taken out of matching; `None` where its sender is lost before it has come whole.
    pub fn take(
        &mut self,
        call: &'static str,
        message: MatchedId,
        outcome: &Outcome,
        context: c_int,
    ) -> Option<IncomingMessage> {
        let mut bytes = room_of(self.buffers.spare(), outcome.length).ok()?;
        let (source, encoding) = read_source(outcome.source);
        FABRIC.receive_taken(call, (message, outcome.peer), &mut bytes).ok()?;
        self.task.iter_mut().for_each(|task| task.note_taken(outcome));
        Some(IncomingMessage { encoding, bytes, source, tag: outcome.tag, context })
    }

    fn arrive(&mut self, call: &'static str, message: MatchedId, outcome: &Outcome, context: c_int) {
        if let Some(incoming) = self.take(call, message, outcome, context) {
            self.push(incoming);
        }
    }

    /// Takes all messages of a context out of the fabric.
    pub fn drain(&mut self, call: &'static str, context: c_int) {
        let contexts = if context == -1 { self.options.contexts() } else { vec![context] };
        for context in contexts {
            let selector = Selector { context: context as u32, peer: None, tag: None };
            while let Some((message, outcome)) = FABRIC.with(|endpoint| endpoint.take_matched(selector)) {
                self.arrive(call, message, &outcome, context);
            }
        }
    }

    /// Waits until more than `count` messages have arrived.
    fn await_news(&mut self, call: &'static str, context: c_int, count: usize, patience: WaitPatience) -> SearchFound {
        let any = WantedMessage { tid: -1, tag: -1, context };
        let contexts = self.contexts_of(any);
        let mut search = MessageSearch { wanted: any, peer: None, nobody: false, patience, passes: 0, contexts };
        let until = if let WaitPatience::Until(limit) = patience { Some(limit) } else { None };
        let found = wait_until(call, until, false, |endpoint, is_time| {
            search.passes = search.passes.wrapping_add(1);
            if is_time || matches!(search.patience, WaitPatience::None) {
                match self.listen(endpoint) {
                    Ok(true) => return Some(SearchFound::Again),
                    Ok(false) => {}
                    Err(error) => return Some(SearchFound::Failed(error)),
                }
            }
            if self.arrived.len() > count {
                return Some(SearchFound::News);
            }
            match search.take(endpoint) {
                Some((message, outcome, context)) => Some(SearchFound::InFabric(message, outcome, context)),
                None => search.end(endpoint, is_time),
            }
        });
        if let SearchFound::InFabric(message, outcome, context) = found {
            self.arrive(call, message, &outcome, context);
            return SearchFound::News;
        }
        found
    }
}

struct MessageSearch {
    wanted: WantedMessage,
    /// The way to the one task that is wanted.
    peer: Option<Peer>,
    /// The task that is wanted is not there, and never will be.
    nobody: bool,
    patience: WaitPatience,
    passes: u32,
    /// Where any context is wanted.
    contexts: Vec<c_int>,
}

impl MessageSearch {
    fn take(&self, endpoint: &mut Endpoint) -> Option<(MatchedId, Outcome, c_int)> {
        if self.wanted.tid != -1 && self.peer.is_none() {
            return None;
        }
        let tag = (self.wanted.tag != -1).then_some(self.wanted.tag);
        let mut take = |context: c_int| {
            let selector = Selector { context: context as u32, peer: self.peer, tag };
            let (message, outcome) = endpoint.take_matched(selector)?;
            Some((message, outcome, context))
        };
        match self.wanted.context {
            -1 => self.contexts.iter().find_map(|context| take(*context)),
            context => take(context),
        }
    }

    /// Whether it is time to give up.
    fn end(&mut self, endpoint: &mut Endpoint, is_time: bool) -> Option<SearchFound> {
        match self.patience {
            // The first pass has not taken in what is new.
            WaitPatience::None if self.passes > 1 => return Some(SearchFound::Nothing),
            WaitPatience::None => return None,
            WaitPatience::Until(limit) => return (Instant::now() >= limit).then_some(SearchFound::Nothing),
            WaitPatience::Forever => {}
        }
        // What the machine has said of it is known after the second look.
        if self.nobody && self.passes > 1 {
            return Some(SearchFound::Failed(Error(code::NO_TASK)));
        }
        let peer = self.peer.filter(|_| is_time)?;
        if endpoint.is_lost(peer) || endpoint.has_ended(peer) {
            // What it has sent has arrived, since it has ended before.
            while endpoint.progress() {}
            let last =
                self.take(endpoint).map(|(message, outcome, context)| SearchFound::InFabric(message, outcome, context));
            return Some(last.unwrap_or(SearchFound::Failed(Error(code::NO_TASK))));
        }
        None
    }
}

/// Receives straight into `room`, where nothing else has to be looked at; `None` where it has.
///
/// # Errors
/// As [`receive`].
pub fn receive_into(wanted: WantedMessage, room: &mut [u8]) -> Result<Option<(Outcome, c_int)>, Error> {
    let mut library = enrolled()?;
    let plain = library.matcher.is_none() && library.handlers.is_empty() && wanted.context != -1;
    if !plain || library.arrived.iter().any(|message| wanted.is(message)) {
        return Ok(None);
    }
    library.task()?.flush();
    let peer = match wanted.tid {
        -1 => None,
        of => {
            let found = library.task()?.find_if_task(of);
            let Ok(found) = found else { return Err(library.lose_machine()) };
            let Some(peer) = found else { return Ok(None) };
            Some(peer)
        }
    };
    let tag = (wanted.tag != -1).then_some(wanted.tag);
    let selector = Selector { context: wanted.context as u32, peer, tag };
    if let (Some(peer), Some(task)) = (peer, &mut library.task) {
        task.say_waiting(peer, tag, wanted.context as u32, room.len());
    }
    let mut failed = None;
    FABRIC.with_both(|_, wakes| wakes.begin(None, peer.is_some(), false));
    let outcome = FABRIC.receive_while("pvm_precv", selector, room, |endpoint, wakes| {
        if !wakes.is_time() {
            return true;
        }
        match library.listen(endpoint) {
            Ok(ready) => {
                let gone = peer.is_some_and(|peer| endpoint.is_lost(peer) || endpoint.has_ended(peer));
                let here = library.arrived.iter().any(|message| wanted.is(message));
                !(ready || gone || here)
            }
            Err(error) => {
                failed = Some(error);
                false
            }
        }
    });
    match (outcome, failed) {
        (Ok(outcome), _) => {
            library.task.iter_mut().for_each(|task| task.note_taken(&outcome));
            Ok(Some((outcome, wanted.context)))
        }
        (Err(_), Some(error)) => Err(error),
        // The long way sees what there is.
        (Err(Fault::Cancelled), None) => Ok(None),
        (Err(_), None) => Err(Error(code::NO_TASK)),
    }
}
