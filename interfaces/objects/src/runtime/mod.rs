//! The run-time system of one process, as a pure machine: no thread, clock or network. The only locks are those of the
//! copies, which handles share.
//!
//! Input is what this process calls (`handle_open`, `handle_call`, `handle_place`), what the group delivers to all in
//! one order, its sender included (`handle_ordered`), that a process has ended, at a place of the same order
//! (`handle_gone`), and what another process sends to this one (`handle_direct`). Output is what is to be sent
//! ([`Runtime::poll_effect`]) and what became of a call ([`Runtime::poll_answer`]).
//!
//! - `events`: what goes through the order. - `direct`: requests and replies. - `placing`: where objects are.
//! - `record`: what is known of an object. - `tally`: what is counted.
//!
//! Why all processes see the operations in one order that each program agrees with (sequential consistency):
//! - Each event is handled whole, before the next. What it changes of an object is seen at once.
//! - A write of a replicated object is over when this process has handled its event, so what the process does next is
//!   after it. Its reads are those of a moment between two events.
//! - A message is not handled before its receiver has handled all that its sender had when it sent. Without that a
//!   request could be done before a write that its sender has seen, and an answer tell what only a later event
//!   explains.
//!
//! Whatever decides where an object is goes through the order, so all agree on it. A call that came too late for a move
//! is not done there, and is made again where the object is now.
//!
//! Test: `cargo test -p weft-objects`: `simulation` runs several of them over a made-up network.

mod direct;
mod events;
mod placing;
mod record;
#[cfg(test)]
mod simulation;
mod tally;

use crate::copy::Replica;
use crate::fault::ObjectFault;
use crate::message::{
    CallId, DirectMessage, ObjectCall, ObjectId, ObjectPlacement, Octets, OrderedEvent, ProcessId, Strategy, Tagged,
};
use crate::object::encode;
use record::{Answered, ObjectRecord};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What the machine would have done.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Deliver this to all processes, this one included, in the one order.
    Order(Vec<u8>),
    /// Deliver this to one other process.
    Send(ProcessId, Vec<u8>),
}

/// A call that is not over.
enum UnfinishedCall {
    Open {
        name: String,
        kind: String,
        initial: Option<Octets>,
        copy: Arc<dyn Replica>,
    },
    /// An operation, and who was asked to do it.
    Operation {
        object: ObjectId,
        number: u16,
        asked: Option<ProcessId>,
    },
    Place,
    Close,
}

/// The run-time system of one process.
pub struct Runtime {
    me: ProcessId,
    size: u32,
    /// The number of the last event that was handled.
    handled: u64,
    objects: BTreeMap<ObjectId, ObjectRecord>,
    names: BTreeMap<String, ObjectId>,
    gone: BTreeSet<ProcessId>,
    /// Objects stay replicated until somebody says where they are to be. The same on all processes.
    keeps_replicas: bool,
    /// Why this process has no part in the order any more.
    broken: Option<ObjectFault>,
    /// Those that use no object any more.
    closed: BTreeSet<ProcessId>,
    calls: BTreeMap<CallId, UnfinishedCall>,
    next_call: CallId,
    answers: BTreeMap<CallId, Result<Vec<u8>, ObjectFault>>,
    /// Messages of those who have handled more than this process, in the order in which they came.
    delayed: Vec<(ProcessId, Tagged)>,
    effects: VecDeque<Effect>,
    /// For tests that must see what goes wrong without: which messages are delayed.
    #[cfg(test)]
    rule: simulation::Rule,
}

impl Runtime {
    /// That of process `me` of `size`.
    pub fn new(me: ProcessId, size: u32) -> Self {
        Self {
            me,
            size,
            handled: 0,
            objects: BTreeMap::new(),
            names: BTreeMap::new(),
            gone: BTreeSet::new(),
            keeps_replicas: false,
            broken: None,
            closed: BTreeSet::new(),
            calls: BTreeMap::new(),
            next_call: 0,
            answers: BTreeMap::new(),
            delayed: Vec::new(),
            effects: VecDeque::new(),
            #[cfg(test)]
            rule: simulation::Rule::default(),
        }
    }

    /// The same where processes go on when one has ended: no object is on one process unless somebody says so.
    pub fn keeping_replicas(self, keeps_replicas: bool) -> Self {
        Self { keeps_replicas, ..self }
    }

    /// Opens the object of this name, or creates it if there is an initial state. It will be in `copy`. The answer is
    /// its number.
    pub fn handle_open(&mut self, name: &str, kind: &str, initial: Option<Vec<u8>>, copy: Arc<dyn Replica>) -> CallId {
        let initial = initial.map(Octets);
        let (name, kind) = (name.to_owned(), kind.to_owned());
        let open = UnfinishedCall::Open { name: name.clone(), kind: kind.clone(), initial: initial.clone(), copy };
        let call = self.begin(open);
        self.order(&OrderedEvent::Open { call, name, kind, initial });
        call
    }

    /// Starts an operation of an object that this process has opened. The answer is that of the operation.
    pub fn handle_call(&mut self, object: ObjectId, number: u16, arguments: Vec<u8>) -> CallId {
        let call = self.begin(UnfinishedCall::Operation { object, number, asked: None });
        self.route(object, ObjectCall { origin: self.me, call, number, arguments: Octets(arguments) });
        call
    }

    /// Asks for a strategy of an object. The answer is empty; from then on all processes know it, though the state may
    /// still be on its way.
    pub fn handle_place(&mut self, object: ObjectId, strategy: Strategy) -> CallId {
        let call = self.begin(UnfinishedCall::Place);
        self.order(&OrderedEvent::Place { object, call, strategy });
        call
    }

    /// This process will use no object any more. The call is over when that is so of all that live: until then others
    /// may need what is here.
    pub fn handle_close(&mut self) -> CallId {
        let call = self.begin(UnfinishedCall::Close);
        self.order(&OrderedEvent::Close);
        call
    }

    /// Nobody waits for a call any more.
    pub fn handle_given_up(&mut self, call: CallId) {
        self.calls.remove(&call);
        self.answers.remove(&call);
    }

    /// The order is at its end: nothing that needs it will be over.
    pub fn handle_broken_order(&mut self, why: &str) {
        let fault = ObjectFault::Group(why.to_owned());
        self.broken = Some(fault.clone());
        let calls: Vec<CallId> = self.calls.keys().copied().collect();
        calls.into_iter().for_each(|call| self.finish(call, Err(fault.clone())));
    }

    /// Whether no process that lives uses objects any more.
    pub fn is_closed(&self) -> bool {
        (0..self.size).all(|process| self.closed.contains(&process) || self.gone.contains(&process))
    }

    /// What is to be sent next.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// What became of a call, if it is over; told once.
    pub fn poll_answer(&mut self, call: CallId) -> Option<Result<Vec<u8>, ObjectFault>> {
        self.answers.remove(&call)
    }

    /// The operation that a call of this process waits for: object, number, and who was asked to do it.
    pub fn awaited(&self, call: CallId) -> Option<(ObjectId, u16, Option<ProcessId>)> {
        match self.calls.get(&call)? {
            UnfinishedCall::Operation { object, number, asked } => Some((*object, *number, *asked)),
            _ => None,
        }
    }

    /// What a call is, where it is no operation.
    pub fn call_name(&self, call: CallId) -> &'static str {
        match self.calls.get(&call) {
            Some(UnfinishedCall::Open { .. }) => "opening an object",
            Some(UnfinishedCall::Place) => "placing an object",
            Some(UnfinishedCall::Close) => "closing",
            _ => "operation",
        }
    }

    /// An operation of an object by the names of both.
    pub fn name_of(&self, object: ObjectId, number: u16) -> Option<String> {
        let record = self.objects.get(&object)?;
        Some(format!("{}.{}", record.name, record.copy.as_ref()?.name_of(number)))
    }

    /// The copy of an object that this process has opened.
    pub fn copy(&self, object: ObjectId) -> Option<Arc<dyn Replica>> {
        self.objects.get(&object)?.copy.clone()
    }

    /// Where an object is, as far as this process has heard.
    pub fn placement(&self, object: ObjectId) -> Option<ObjectPlacement> {
        Some(self.objects.get(&object)?.placement)
    }

    /// This process, and how many there are.
    pub fn place(&self) -> (ProcessId, u32) {
        (self.me, self.size)
    }

    /// The number of the last event that was handled.
    pub fn handled(&self) -> u64 {
        self.handled
    }

    fn begin(&mut self, call: UnfinishedCall) -> CallId {
        self.next_call += 1;
        self.calls.insert(self.next_call, call);
        self.next_call
    }

    /// Ends a call; one that is over already stays so.
    fn finish(&mut self, call: CallId, answer: Result<Vec<u8>, ObjectFault>) {
        if self.calls.remove(&call).is_some() {
            self.answers.insert(call, answer);
        }
    }

    fn order(&mut self, event: &OrderedEvent) {
        let bytes = encode(event).expect("events have a form");
        self.effects.push_back(Effect::Order(bytes));
    }

    fn send(&mut self, to: ProcessId, message: DirectMessage) {
        let bytes = encode(&Tagged { after: self.handled, message }).expect("messages have a form");
        self.effects.push_back(Effect::Send(to, bytes));
    }

    /// Has an operation of this process done where the object is.
    fn route(&mut self, object: ObjectId, operation: ObjectCall) {
        if let Some(fault) = self.broken.clone() {
            return self.finish(operation.call, Err(fault));
        }
        let Some(record) = self.objects.get_mut(&object) else {
            return self.finish(operation.call, Err(ObjectFault::Unknown(object.to_string())));
        };
        if let Some(lost) = record.loss() {
            return self.finish(operation.call, Err(lost));
        }
        let ObjectCall { call, number, .. } = operation;
        match record.placement {
            ObjectPlacement::Replicated if record.writes(number) => {
                let reads = record.copy.as_ref().map_or(0, |copy| copy.take_reads());
                self.ask(call, None);
                let arguments = operation.arguments;
                self.order(&OrderedEvent::Write { object, call, number, arguments, reads });
            }
            ObjectPlacement::Replicated => {
                let over = record.read(self.me, operation);
                self.conclude(over, false);
            }
            ObjectPlacement::Single(on) if on == self.me => {
                self.ask(call, None);
                self.serve(object, operation);
            }
            ObjectPlacement::Single(on) => {
                self.ask(call, Some(on));
                self.send(on, DirectMessage::Request { object, call, number, arguments: operation.arguments });
            }
        }
    }

    fn ask(&mut self, call: CallId, whom: Option<ProcessId>) {
        if let Some(UnfinishedCall::Operation { asked, .. }) = self.calls.get_mut(&call) {
            *asked = whom;
        }
    }

    /// Does an operation on an object that is here only, or keeps it while the object leaves.
    fn serve(&mut self, object: ObjectId, operation: ObjectCall) {
        let me = self.me;
        let Some(record) = self.objects.get_mut(&object) else { return };
        if record.is_leaving {
            return record.held_back.push(operation);
        }
        if record.writes(operation.number) {
            record.tally.add_write(operation.origin);
        } else {
            record.tally.add_reads(operation.origin, 1);
        }
        let is_over = record.tally.add_operation();
        let over = record.execute(me, operation);
        self.conclude(over, true);
        if is_over {
            self.propose(object);
        }
    }

    /// Answers what is over: own calls here, others by a message if this process alone `answers` them.
    fn conclude(&mut self, over: Vec<Answered>, answers: bool) {
        for Answered { origin, call, answer } in over {
            if origin == self.me {
                self.finish(call, answer);
            } else if answers {
                self.send(origin, DirectMessage::Reply { call, answer: answer.map(Octets) });
            }
        }
    }

    /// Handles the messages that only waited for events which have been handled.
    fn settle_delayed(&mut self) {
        for (from, message) in std::mem::take(&mut self.delayed) {
            self.take_in(from, message);
        }
    }
}
