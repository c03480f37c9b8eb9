//! What one process sends to another.

use super::record::Change;
use super::{Runtime, UnfinishedCall};
use crate::message::{DirectMessage, ObjectCall, ObjectId, ObjectPlacement, Octets, OrderedEvent, ProcessId, Tagged};
use crate::object::decode;

impl Runtime {
    /// Handles a message, or keeps it until all events have been handled that its sender had.
    pub fn handle_direct(&mut self, from: ProcessId, bytes: &[u8]) {
        if let Ok(message) = decode(bytes) {
            self.take_in(from, message);
        }
    }

    pub(super) fn take_in(&mut self, from: ProcessId, tagged: Tagged) {
        if tagged.after > self.handled && self.is_delayed(&tagged.message) {
            self.delayed.push((from, tagged));
        } else {
            self.on_direct(from, tagged.message);
        }
    }

    #[cfg(not(test))]
    fn is_delayed(&self, _: &DirectMessage) -> bool {
        true
    }

    #[cfg(test)]
    fn is_delayed(&self, message: &DirectMessage) -> bool {
        self.rule.delays(message)
    }

    fn on_direct(&mut self, from: ProcessId, message: DirectMessage) {
        match message {
            DirectMessage::Request { object, call, number, arguments } => {
                self.on_request(object, ObjectCall { origin: from, call, number, arguments });
            }
            DirectMessage::Reply { call, answer } => {
                if self.is_own_operation(call) {
                    self.finish(call, answer.map(|bytes| bytes.0));
                }
            }
            DirectMessage::Moved { object, call, number, arguments } => {
                if self.is_own_operation(call) {
                    self.route(object, ObjectCall { origin: self.me, call, number, arguments });
                }
            }
            DirectMessage::Copy { object, at, state, waiting } => self.on_copy(object, at, state, waiting),
        }
    }

    fn is_own_operation(&self, call: u64) -> bool {
        matches!(self.calls.get(&call), Some(UnfinishedCall::Operation { .. }))
    }

    fn on_request(&mut self, object: ObjectId, operation: ObjectCall) {
        if self.gone.contains(&operation.origin) {
            return;
        }
        let here = ObjectPlacement::Single(self.me);
        let is_here = self.objects.get(&object).is_some_and(|record| record.placement == here);
        if is_here { self.serve(object, operation) } else { self.send_back(object, operation) }
    }

    /// Has the caller ask again where the object is now; it handles that after it has heard where that is.
    pub(super) fn send_back(&mut self, object: ObjectId, operation: ObjectCall) {
        let ObjectCall { origin, call, number, arguments } = operation;
        self.send(origin, DirectMessage::Moved { object, call, number, arguments });
    }

    /// The state that this process has waited for, and what has changed it meanwhile.
    fn on_copy(&mut self, object: ObjectId, at: u64, state: Option<Octets>, waiting: Vec<ObjectCall>) {
        let me = self.me;
        let Some(record) = self.objects.get_mut(&object) else { return };
        let Some(filling) = record.filling.take_if(|filling| filling.since == at) else { return };
        record.install(state.as_ref().map(|bytes| &bytes.0[..]), waiting);
        for change in filling.later {
            match change {
                // Nobody here waits for them, since this process had no handle yet.
                Change::Operation(operation) => drop(record.execute(me, operation)),
                Change::Gone(process) => record.drop_operations_of(process),
            }
        }
        self.order(&OrderedEvent::Holds { object });
    }
}
