//! Where objects are, and how they move.
//!
//! All know where an object is wanted. A replicated object becomes single by that event: all others forget it. One that
//! is on a single process leaves by an event with its state. From when that is sent until it comes, nothing changes the
//! state: what comes is held back, and then asked again in the new place.

use super::Runtime;
use crate::fault::ObjectFault;
use crate::message::{CallId, ObjectCall, ObjectId, ObjectPlacement, Octets, OrderedEvent, ProcessId, Strategy};

impl Runtime {
    /// A window of writes of a replicated object is over: all decide the same, and say what they have read for the
    /// next.
    pub(super) fn end_window(&mut self, object: ObjectId) {
        let processes = u64::from(self.size) - self.gone.len() as u64;
        let Some(record) = self.objects.get_mut(&object) else { return };
        let better = record.tally.end_window(record.placement, processes);
        let reads = record.copy.as_ref().map_or(0, |copy| copy.take_reads());
        if reads > 0 {
            self.order(&OrderedEvent::Reads { object, reads });
        }
        if let Some(to) = better {
            self.want(object, to);
        }
    }

    /// The process that has an object has counted a window: it proposes what is better.
    pub(super) fn propose(&mut self, object: ObjectId) {
        let (me, processes) = (self.me, u64::from(self.size) - self.gone.len() as u64);
        let Some(record) = self.objects.get_mut(&object) else { return };
        let reads = record.copy.as_ref().map_or(0, |copy| copy.take_reads());
        record.tally.add_reads(me, reads);
        let better = record.tally.end_window(record.placement, processes);
        if let Some(to) = better
            && !record.is_fixed
            && !std::mem::replace(&mut record.has_proposed, true)
        {
            self.order(&OrderedEvent::Propose { object, to });
        }
    }

    pub(super) fn on_propose(&mut self, origin: ProcessId, object: ObjectId, to: ObjectPlacement) {
        let Some(record) = self.objects.get_mut(&object) else { return };
        if origin == self.me {
            record.has_proposed = false;
        }
        if record.placement == ObjectPlacement::Single(origin) {
            self.want(object, to);
        }
    }

    pub(super) fn on_place(&mut self, origin: ProcessId, object: ObjectId, call: CallId, strategy: Strategy) {
        let Some(record) = self.objects.get_mut(&object) else { return };
        let (name, size) = (|| record.name.clone(), self.size);
        let answer = match (record.loss(), strategy) {
            (Some(lost), _) => Err(lost),
            (None, Strategy::Fixed(ObjectPlacement::Single(process))) if process >= size => {
                Err(ObjectFault::NoProcess { name: name(), process, size })
            }
            (None, Strategy::Fixed(ObjectPlacement::Single(process))) if !record.holders.contains(&process) => {
                Err(ObjectFault::NotOpened { name: name(), process })
            }
            (None, Strategy::Fixed(to)) => {
                record.is_fixed = true;
                record.wanted = to;
                Ok(Vec::new())
            }
            (None, Strategy::Automatic) => {
                record.is_fixed = false;
                Ok(Vec::new())
            }
        };
        if origin == self.me {
            self.finish(call, answer);
        }
        self.settle(object);
    }

    /// What counting has found: it gives way to a strategy, and to what can be.
    fn want(&mut self, object: ObjectId, to: ObjectPlacement) {
        let Some(record) = self.objects.get_mut(&object) else { return };
        let can_be = match to {
            ObjectPlacement::Single(on) => record.holders.contains(&on),
            ObjectPlacement::Replicated => true,
        };
        if can_be && !record.is_fixed && record.lost.is_none() {
            record.wanted = to;
            self.settle(object);
        }
    }

    /// Moves an object to where it is wanted, if it is not.
    fn settle(&mut self, object: ObjectId) {
        let me = self.me;
        let Some(record) = self.objects.get_mut(&object) else { return };
        if record.placement == record.wanted || record.lost.is_some() {
            return;
        }
        match record.placement {
            ObjectPlacement::Replicated => {
                let to = record.wanted;
                self.arrive(object, to);
            }
            ObjectPlacement::Single(on) if on == me && !record.is_leaving => {
                record.is_leaving = true;
                let state = record.copy.as_ref().and_then(|copy| copy.state()).map(Octets);
                let (to, waiting) = (record.wanted, record.waiting.clone());
                self.order(&OrderedEvent::Leave { object, to, state, waiting });
            }
            ObjectPlacement::Single(_) => {}
        }
    }

    pub(super) fn on_leave(
        &mut self,
        origin: ProcessId,
        object: ObjectId,
        to: ObjectPlacement,
        state: Option<Octets>,
        waiting: Vec<ObjectCall>,
    ) {
        let Some(record) = self.objects.get_mut(&object) else { return };
        if record.placement != ObjectPlacement::Single(origin) {
            return;
        }
        let to = match to {
            // It has ended meanwhile, so the object stays.
            ObjectPlacement::Single(on) if self.gone.contains(&on) => ObjectPlacement::Single(origin),
            to => to,
        };
        let comes_here = to == ObjectPlacement::Replicated || to == ObjectPlacement::Single(self.me);
        if comes_here && origin != self.me {
            record.install(state.as_ref().map(|bytes| &bytes.0[..]), waiting.clone());
        }
        let me = self.me;
        let own = waiting.iter().filter(|operation| operation.origin == me);
        own.for_each(|operation| self.ask(operation.call, None));
        self.arrive(object, to);
        self.settle(object);
    }

    /// The object is there now. What this process still wants of it goes there.
    fn arrive(&mut self, object: ObjectId, to: ObjectPlacement) {
        let me = self.me;
        let Some(record) = self.objects.get_mut(&object) else { return };
        record.placement = to;
        record.is_leaving = false;
        record.tally = Default::default();
        let is_here = to == ObjectPlacement::Replicated || to == ObjectPlacement::Single(me);
        if !is_here {
            record.forget();
            if record.filling.take().is_some() {
                // The copy is not needed any more, so nothing is missing.
                self.order(&OrderedEvent::Holds { object });
            }
        }
        let Some(record) = self.objects.get_mut(&object) else { return };
        let reading = std::mem::take(&mut record.reading);
        let held_back = std::mem::take(&mut record.held_back);
        for operation in reading.into_iter().chain(held_back) {
            match operation.origin == me {
                true => self.route(object, operation),
                false if to == ObjectPlacement::Single(me) => self.serve(object, operation),
                false => self.send_back(object, operation),
            }
        }
    }
}
