//! What a process knows of one object.

use super::tally::UseTally;
use crate::copy::{AttemptEnd, Replica};
use crate::fault::ObjectFault;
use crate::message::{CallId, ObjectCall, ObjectPlacement, ProcessId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// An answer, and whose call it is for.
pub struct Answered {
    pub origin: ProcessId,
    pub call: CallId,
    pub answer: Result<Vec<u8>, ObjectFault>,
}

/// An object. What stands above the line is the same on all processes that have handled the same events.
pub struct ObjectRecord {
    pub name: String,
    pub kind: String,
    pub placement: ObjectPlacement,
    /// Where it should be: it goes there as soon as it can.
    pub wanted: ObjectPlacement,
    /// Somebody has said where it is to be, so counting moves it no more.
    pub is_fixed: bool,
    /// Who can be asked for its state, or be given it.
    pub holders: BTreeSet<ProcessId>,
    pub tally: UseTally,
    /// The process with which the last copy has ended.
    pub lost: Option<ProcessId>,
    // ------------------------------------------------------------------
    /// Where this process has opened it.
    pub copy: Option<Arc<dyn Replica>>,
    /// Operations whose guard was false, in the order in which they came. The same wherever the state is.
    pub waiting: Vec<ObjectCall>,
    /// Reads of this process on its replica whose guard was false: nobody else knows them.
    pub reading: Vec<ObjectCall>,
    /// Calls of this process that open it.
    pub opening: Vec<CallId>,
    pub filling: Option<AwaitedCopy>,
    /// The state is on its way elsewhere, so nothing changes it here.
    pub is_leaving: bool,
    /// What has come meanwhile.
    pub held_back: Vec<ObjectCall>,
    /// A proposal of this process is on its way.
    pub has_proposed: bool,
}

/// A copy that this process waits for.
pub struct AwaitedCopy {
    /// The event at which it was asked for.
    pub since: u64,
    pub provider: ProcessId,
    /// What has changed the object since.
    pub later: Vec<Change>,
}

/// A change that a copy which is on its way does not have.
pub enum Change {
    Operation(ObjectCall),
    Gone(ProcessId),
}

impl ObjectRecord {
    /// An object that this process has just created.
    pub fn new((name, kind): (String, String), creator: ProcessId, is_fixed: bool) -> Self {
        Self {
            name,
            kind,
            placement: ObjectPlacement::Replicated,
            wanted: ObjectPlacement::Replicated,
            is_fixed,
            holders: BTreeSet::from([creator]),
            tally: UseTally::default(),
            lost: None,
            copy: None,
            waiting: Vec::new(),
            reading: Vec::new(),
            opening: Vec::new(),
            filling: None,
            is_leaving: false,
            held_back: Vec::new(),
            has_proposed: false,
        }
    }

    /// That the object has ended with a process, if it has.
    pub fn loss(&self) -> Option<ObjectFault> {
        self.lost.map(|process| ObjectFault::OwnerLost { name: self.name.clone(), process })
    }

    pub fn writes(&self, number: u16) -> bool {
        self.copy.as_ref().is_some_and(|copy| copy.writes(number))
    }

    /// Whether the process `me` writes the answer to an operation of `origin`.
    fn is_answered(&self, me: ProcessId, origin: ProcessId) -> bool {
        origin == me || self.placement == ObjectPlacement::Single(me)
    }

    /// Tries an operation, and after one that writes all that wait; what is over by that.
    pub fn execute(&mut self, me: ProcessId, operation: ObjectCall) -> Vec<Answered> {
        let mut over = Vec::new();
        let writes = self.writes(operation.number);
        match self.attempt(me, &operation) {
            None => self.waiting.push(operation),
            Some(answered) => {
                over.push(answered);
                if writes {
                    self.retry(me, &mut over);
                }
            }
        }
        over
    }

    fn attempt(&self, me: ProcessId, operation: &ObjectCall) -> Option<Answered> {
        let ObjectCall { origin, call, number, arguments } = operation;
        let copy = self.copy.as_ref()?;
        match copy.try_operation(*number, &arguments.0, self.is_answered(me, *origin)) {
            AttemptEnd::Waits => None,
            AttemptEnd::Over(answer) => Some(Answered { origin: *origin, call: *call, answer }),
        }
    }

    /// Tries what waits in the order in which it came, from the beginning after each one that writes.
    fn retry(&mut self, me: ProcessId, over: &mut Vec<Answered>) {
        let mut at = 0;
        while at < self.waiting.len() {
            let Some(answered) = self.attempt(me, &self.waiting[at]) else {
                at += 1;
                continue;
            };
            let operation = self.waiting.remove(at);
            over.push(answered);
            if self.writes(operation.number) {
                at = 0;
            }
        }
        let reading = std::mem::take(&mut self.reading);
        for read in reading {
            match self.attempt(me, &read) {
                None => self.reading.push(read),
                Some(answered) => over.push(answered),
            }
        }
    }

    /// Tries a read of this process on its replica, or has it wait for the next write.
    pub fn read(&mut self, me: ProcessId, operation: ObjectCall) -> Vec<Answered> {
        let answered = self.attempt(me, &operation);
        if answered.is_none() {
            self.reading.push(operation);
        }
        answered.into_iter().collect()
    }

    /// Takes a state over with what waits there.
    pub fn install(&mut self, state: Option<&[u8]>, waiting: Vec<ObjectCall>) {
        if let Some(copy) = &self.copy {
            copy.install(state);
            self.waiting = waiting;
        }
    }

    /// Gives the state up.
    pub fn forget(&mut self) {
        if let Some(copy) = &self.copy {
            copy.forget();
        }
        self.waiting.clear();
    }

    /// A process has ended: nobody waits for its operations.
    pub fn drop_operations_of(&mut self, process: ProcessId) {
        self.waiting.retain(|operation| operation.origin != process);
        self.held_back.retain(|operation| operation.origin != process);
        if let Some(filling) = &mut self.filling {
            filling.later.push(Change::Gone(process));
        }
    }
}
