//! Schedules that run beside the program: nonblocking and persistent collectives.

use crate::error::{Class, Error, Result};
use std::cell::RefCell;
use weft_collective::run::{CollectiveRun, OutsideFold, RunFailure, RunTurn};
use weft_collective::schedule::Schedule;
use weft_fabric::{Endpoint, Fault};

/// A collective operation known to [`Active`]; never reused while its request lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveId(u32);

/// Where an operation is.
enum OperationState {
    /// Not started, or done and its end taken: a persistent operation.
    Idle,
    Running,
    /// A fold has to be performed outside, by whoever comes next.
    Wanting(OutsideFold),
    /// A fold is being performed outside.
    Away,
    Done,
}

impl OperationState {
    fn after(turn: RunTurn) -> Self {
        match turn {
            RunTurn::Blocked => Self::Running,
            RunTurn::Outside(fold) => Self::Wanting(fold),
            RunTurn::Done => Self::Done,
        }
    }
}

struct ActiveOperation {
    run: CollectiveRun,
    /// What is wrong with this rank's own part, each time.
    own: Option<Error>,
    state: OperationState,
    persistent: bool,
    /// The request is gone; the operation goes when it is done.
    released: bool,
}

/// Operations under way and persistent ones.
#[derive(Default)]
pub struct Active {
    operations: Vec<Option<Box<ActiveOperation>>>,
    free: Vec<u32>,
    /// The numbers of those running, wanting or away.
    moving: Vec<u32>,
    /// Memory of schedules that are over.
    spares: RefCell<Vec<Schedule>>,
}

/// Schedules whose memory is kept.
const MOST_SPARES: usize = 16;
/// Steps of which one is kept at most.
const MOST_STEPS: usize = 256;

impl Active {
    /// A schedule without steps, to be filled.
    pub fn empty_schedule(&self) -> Schedule {
        self.spares.borrow_mut().pop().unwrap_or_default()
    }

    /// The schedule is over, and its memory may be used again.
    pub fn recycle(&self, mut schedule: Schedule) {
        let mut spares = self.spares.borrow_mut();
        if spares.len() < MOST_SPARES && schedule.steps.len() <= MOST_STEPS {
            schedule.clear();
            spares.push(schedule);
        }
    }

    /// Takes a nonblocking operation and starts it; `None` if it is complete by that, and went well.
    pub fn start(
        &mut self,
        mut run: CollectiveRun,
        own: Option<Error>,
        endpoint: &mut Endpoint,
    ) -> Option<CollectiveId> {
        let state = OperationState::after(run.advance(endpoint));
        let is_done = matches!(state, OperationState::Done);
        if is_done && own.is_none() && run.failure().is_none() {
            self.recycle(run.take_schedule());
            return None;
        }
        let id = self.insert(run, own, false, state);
        if !is_done {
            self.moving.push(id.0);
        }
        Some(id)
    }

    /// Takes a persistent operation, which stays until [`Self::release`].
    pub fn keep(&mut self, run: CollectiveRun, own: Option<Error>) -> CollectiveId {
        self.insert(run, own, true, OperationState::Idle)
    }

    fn insert(
        &mut self,
        run: CollectiveRun,
        own: Option<Error>,
        persistent: bool,
        state: OperationState,
    ) -> CollectiveId {
        let operation = Some(Box::new(ActiveOperation { run, own, state, persistent, released: false }));
        match self.free.pop() {
            Some(index) => {
                self.operations[index as usize] = operation;
                CollectiveId(index)
            }
            None => {
                self.operations.push(operation);
                CollectiveId(self.operations.len() as u32 - 1)
            }
        }
    }

    fn get(&mut self, id: CollectiveId) -> &mut ActiveOperation {
        self.operations[id.0 as usize].as_mut().expect("a request keeps its operation alive")
    }

    /// Starts an operation that is idle (`MPI_Start`).
    pub fn restart(&mut self, id: CollectiveId, endpoint: &mut Endpoint) {
        let operation = self.get(id);
        debug_assert!(matches!(operation.state, OperationState::Idle));
        operation.run.rewind();
        operation.state = OperationState::Running;
        operation.step(endpoint);
        self.moving.push(id.0);
        self.settle();
    }

    /// Whether there is an end to take. An idle persistent operation has none.
    pub fn is_complete(&self, id: CollectiveId) -> bool {
        matches!(self.operations[id.0 as usize].as_ref().map(|operation| &operation.state), Some(OperationState::Done))
    }

    /// How the operation ended; `None` while it is under way. A nonblocking one is forgotten with that, a persistent
    /// one is idle again.
    pub fn take(&mut self, id: CollectiveId) -> Option<Result<()>> {
        if !self.is_complete(id) {
            return None;
        }
        let operation = self.get(id);
        let result = outcome(operation.run.failure(), operation.own.clone());
        operation.state = OperationState::Idle;
        if !operation.persistent {
            self.forget(id.0);
        }
        Some(result)
    }

    /// The request is freed: the operation is forgotten as soon as it is not under way.
    pub fn release(&mut self, id: CollectiveId) {
        let operation = self.get(id);
        operation.released = true;
        if matches!(operation.state, OperationState::Idle | OperationState::Done) {
            self.forget(id.0);
        }
    }

    fn forget(&mut self, index: u32) {
        let operation = self.operations[index as usize].take();
        self.free.push(index);
        if let Some(mut operation) = operation {
            self.recycle(operation.run.take_schedule());
        }
    }

    /// Whether nothing is under way on this context.
    pub fn is_quiet_on(&self, context: u32) -> bool {
        let operation = |index: &u32| self.operations[*index as usize].as_ref();
        self.moving.iter().filter_map(operation).all(|operation| operation.run.context() != context)
    }

    /// Moves everything that can move; one fold that has to be performed outside is handed out.
    #[inline]
    pub fn advance(&mut self, endpoint: &mut Endpoint) -> Option<(CollectiveId, OutsideFold)> {
        if self.moving.is_empty() { None } else { self.advance_all(endpoint) }
    }

    fn advance_all(&mut self, endpoint: &mut Endpoint) -> Option<(CollectiveId, OutsideFold)> {
        let mut outside = None;
        for &index in &self.moving {
            let Some(operation) = self.operations[index as usize].as_mut() else { continue };
            operation.step(endpoint);
            if outside.is_none() && matches!(operation.state, OperationState::Wanting(_)) {
                let OperationState::Wanting(fold) = std::mem::replace(&mut operation.state, OperationState::Away)
                else {
                    continue;
                };
                outside = Some((CollectiveId(index), fold));
            }
        }
        self.settle();
        outside
    }

    /// Takes what is done off the list.
    fn settle(&mut self) {
        let mut at = 0;
        while at < self.moving.len() {
            let index = self.moving[at];
            match &self.operations[index as usize] {
                Some(operation) if !matches!(operation.state, OperationState::Done) => at += 1,
                operation => {
                    let released = operation.as_ref().is_some_and(|operation| operation.released);
                    self.moving.swap_remove(at);
                    if released {
                        self.forget(index);
                    }
                }
            }
        }
    }

    /// After a fold outside: the next one of the same operation, if it comes to one at once.
    pub fn come_back(&mut self, id: CollectiveId, endpoint: &mut Endpoint) -> Option<OutsideFold> {
        let operation = self.get(id);
        operation.state = OperationState::Running;
        operation.step(endpoint);
        if matches!(operation.state, OperationState::Wanting(_))
            && let OperationState::Wanting(fold) = std::mem::replace(&mut operation.state, OperationState::Away)
        {
            return Some(fold);
        }
        self.settle();
        None
    }
}

impl ActiveOperation {
    fn step(&mut self, endpoint: &mut Endpoint) {
        if matches!(self.state, OperationState::Running) {
            self.state = OperationState::after(self.run.advance(endpoint));
        }
    }
}

/// How an operation ends: what is wrong with this rank's own part may be why it does not meet the others.
pub(super) fn outcome(failure: Option<RunFailure>, own: Option<Error>) -> Result<()> {
    match (failure, own) {
        (None, None) => Ok(()),
        (Some(RunFailure::Stopped(fault)), _) => Err(crate::failure::closed(fault)),
        (_, Some(own)) => Err(own),
        (Some(RunFailure::Message { fault, length, expected }), None) => Err(message_error(fault, length, expected)),
    }
}

#[cold]
fn message_error(fault: Fault, length: u64, expected: usize) -> Error {
    match fault {
        Fault::Truncated => {
            let detail = format!(
                "a message of the collective has {length} bytes, and this rank's counts and types expect {expected}; all \
                 ranks have to pass the same"
            );
            Error::new(Class::Truncate, detail)
        }
        Fault::Cancelled => Error::new(Class::Intern, "a message of the collective was cancelled"),
        Fault::PeerLost | Fault::NoMemory | Fault::Withdrawn => crate::failure::closed(fault),
    }
}
