//! What goes through the order: all processes handle it alike.

use super::record::{AwaitedCopy, Change, ObjectRecord};
use super::{Runtime, UnfinishedCall};
use crate::fault::ObjectFault;
use crate::message::{CallId, DirectMessage, ObjectCall, ObjectId, ObjectPlacement, Octets, OrderedEvent, ProcessId};
use crate::object::{decode, encode};

/// What an event says that opens an object.
struct OpenEvent {
    call: CallId,
    name: String,
    kind: String,
    initial: Option<Octets>,
}

impl Runtime {
    /// Handles the next event of the order. Its number is greater than that of all before.
    pub fn handle_ordered(&mut self, number: u64, origin: ProcessId, bytes: &[u8]) {
        self.handled = number;
        if let Ok(event) = decode(bytes)
            && !self.gone.contains(&origin)
        {
            self.on_event(origin, event);
        }
        self.settle_delayed();
    }

    fn on_event(&mut self, origin: ProcessId, event: OrderedEvent) {
        match event {
            OrderedEvent::Open { call, name, kind, initial } => {
                self.on_open(origin, OpenEvent { call, name, kind, initial });
            }
            OrderedEvent::Holds { object } => self.on_holds(origin, object),
            OrderedEvent::Write { object, call, number, arguments, reads } => {
                self.on_write(object, ObjectCall { origin, call, number, arguments }, reads);
            }
            OrderedEvent::Reads { object, reads } => {
                if let Some(record) = self.objects.get_mut(&object) {
                    record.tally.add_reads(origin, reads);
                }
            }
            OrderedEvent::Place { object, call, strategy } => self.on_place(origin, object, call, strategy),
            OrderedEvent::Propose { object, to } => self.on_propose(origin, object, to),
            OrderedEvent::Leave { object, to, state, waiting } => self.on_leave(origin, object, to, state, waiting),
            OrderedEvent::Close => {
                self.closed.insert(origin);
                self.settle_closing();
            }
        }
    }

    fn on_open(&mut self, origin: ProcessId, opened: OpenEvent) {
        let is_own = origin == self.me;
        let there = self.names.get(&opened.name).copied();
        // A lost one gives way to who brings a state, as all know at this place of the order.
        let gives_way = |object: &ObjectId| opened.initial.is_some() && self.objects[object].lost.is_some();
        if let Some(object) = there.filter(|object| !gives_way(object)) {
            let is = &self.objects[&object].kind;
            if *is == opened.kind {
                self.on_opened(origin, object, opened.call);
            } else if is_own {
                let OpenEvent { name, kind: asked, .. } = opened;
                let fault = ObjectFault::OtherType { name, is: is.clone(), asked };
                self.finish(opened.call, Err(fault));
            }
            return;
        }
        let OpenEvent { call, name, kind, initial } = opened;
        let Some(state) = initial else {
            if is_own {
                self.finish(call, Err(ObjectFault::Unknown(name)));
            }
            return;
        };
        let object = self.handled;
        self.names.insert(name.clone(), object);
        let mut record = ObjectRecord::new((name, kind), origin, self.keeps_replicas);
        if is_own && let Some(UnfinishedCall::Open { copy, .. }) = self.calls.get(&call) {
            record.copy = Some(copy.clone());
            record.install(Some(&state.0), Vec::new());
        }
        self.objects.insert(object, record);
        if is_own {
            self.finish_opening(object, call);
        }
    }

    fn finish_opening(&mut self, object: ObjectId, call: CallId) {
        let answer = encode(&object).expect("a number has a form");
        self.finish(call, Ok(answer));
    }

    /// Somebody opens an object that is there.
    fn on_opened(&mut self, origin: ProcessId, object: ObjectId, call: CallId) {
        let (me, at) = (self.me, self.handled);
        let is_own = origin == me;
        let Some(record) = self.objects.get_mut(&object) else { return };
        if let Some(lost) = record.loss() {
            if is_own {
                self.finish(call, Err(lost));
            }
            return;
        }
        let provider = match record.placement {
            ObjectPlacement::Replicated if !record.holders.contains(&origin) => record.holders.first().copied(),
            _ => None,
        };
        if provider.is_none() {
            record.holders.insert(origin);
        }
        if is_own {
            let is_filled = record.copy.is_some() && record.filling.is_none();
            if let Some(UnfinishedCall::Open { copy, .. }) = self.calls.get(&call) {
                record.copy.get_or_insert_with(|| copy.clone());
            }
            match provider {
                None => return self.finish_opening(object, call),
                // Another call of this process is about to have opened it.
                Some(_) if is_filled => {}
                Some(provider) => record.filling = Some(AwaitedCopy { since: at, provider, later: Vec::new() }),
            }
            record.opening.push(call);
        } else if provider == Some(me) {
            let state = record.copy.as_ref().and_then(|copy| copy.state()).map(Octets);
            let waiting = record.waiting.clone();
            self.send(origin, DirectMessage::Copy { object, at, state, waiting });
        }
    }

    fn on_holds(&mut self, origin: ProcessId, object: ObjectId) {
        let Some(record) = self.objects.get_mut(&object) else { return };
        if record.lost.is_some() {
            return;
        }
        record.holders.insert(origin);
        if origin == self.me {
            for call in std::mem::take(&mut record.opening) {
                self.finish_opening(object, call);
            }
        }
    }

    fn on_write(&mut self, object: ObjectId, operation: ObjectCall, reads: u64) {
        let (me, is_own) = (self.me, operation.origin == self.me);
        let Some(record) = self.objects.get_mut(&object) else { return };
        if record.placement != ObjectPlacement::Replicated || record.lost.is_some() {
            // It was sent before the object moved. Nobody does it, and its caller asks where the object is now.
            if is_own {
                self.route(object, operation);
            }
            return;
        }
        record.tally.add_reads(operation.origin, reads);
        record.tally.add_write(operation.origin);
        let is_over = record.tally.add_operation();
        if let Some(filling) = &mut record.filling {
            filling.later.push(Change::Operation(operation));
        } else if record.copy.is_some() {
            let over = record.execute(me, operation);
            self.conclude(over, false);
        }
        if is_over {
            self.end_window(object);
        }
    }

    /// A process has ended. All hear that between the same two events.
    pub fn handle_gone(&mut self, process: ProcessId) {
        if !self.gone.insert(process) {
            return;
        }
        let mut reopened = Vec::new();
        for record in self.objects.values_mut() {
            record.drop_operations_of(process);
            record.holders.remove(&process);
            if record.wanted == ObjectPlacement::Single(process) {
                record.wanted = record.placement;
            }
            let is_lost = match record.placement {
                ObjectPlacement::Single(on) => on == process,
                ObjectPlacement::Replicated => record.holders.is_empty(),
            };
            if is_lost && record.lost.is_none() {
                record.lost = Some(process);
                record.forget();
                record.filling = None;
                reopened.append(&mut record.opening);
            } else if record.filling.as_ref().is_some_and(|filling| filling.provider == process) {
                reopened.append(&mut record.opening);
            }
        }
        self.fail_calls(process);
        reopened.into_iter().for_each(|call| self.open_again(call));
        self.settle_closing();
    }

    /// Ends the calls that wait until nobody uses objects any more.
    fn settle_closing(&mut self) {
        if self.is_closed() {
            let closing = self.calls.iter().filter(|(_, call)| matches!(call, UnfinishedCall::Close));
            let closing: Vec<CallId> = closing.map(|(id, _)| *id).collect();
            closing.into_iter().for_each(|call| self.finish(call, Ok(Vec::new())));
        }
    }

    /// Ends the operations that the process was asked for, and those of objects that have ended with it.
    fn fail_calls(&mut self, process: ProcessId) {
        let failed = self.calls.iter().filter_map(|(id, call)| {
            let UnfinishedCall::Operation { object, asked, .. } = call else { return None };
            let record = self.objects.get(object)?;
            let fails = *asked == Some(process) || record.lost.is_some();
            fails.then(|| (*id, ObjectFault::OwnerLost { name: record.name.clone(), process }))
        });
        let failed: Vec<(CallId, ObjectFault)> = failed.collect();
        failed.into_iter().for_each(|(call, lost)| self.finish(call, Err(lost)));
    }

    /// Asks once more for a copy that will not come.
    fn open_again(&mut self, call: CallId) {
        if let Some(UnfinishedCall::Open { name, kind, initial, .. }) = self.calls.get(&call) {
            let (name, kind, initial) = (name.clone(), kind.clone(), initial.clone());
            self.order(&OrderedEvent::Open { call, name, kind, initial });
        }
    }
}
