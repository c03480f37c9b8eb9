//! What threads do: scripts of operations on integers and queues, and what was answered.

use super::Rule;
use super::network::{Dice, MadeUpNetwork};
use crate::copy::{LocalCopy, Replica};
use crate::fault::ObjectFault;
use crate::kind::StaticKind;
use crate::message::{CallId, ObjectId, ObjectPlacement, Strategy};
use crate::object::{decode, encode};
use crate::standard::{IntegerObject, JobQueueObject};
use std::any::type_name;
use std::sync::Arc;

/// One operation of a script: the object's place among the integers or queues, and its argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScriptStep {
    Value(usize),
    AwaitAtLeast(usize, i64),
    Assign(usize, i64),
    Add(usize, i64),
    Put(usize, i64),
    Take(usize),
    Length(usize),
    Place(usize, Strategy),
}

/// An operation that is over, and what it answered: a number where it has one.
pub type Done = (ScriptStep, Result<i64, ObjectFault>);

/// An object as one process has opened it.
enum OpenedObject {
    Integer(ObjectId, Arc<LocalCopy<StaticKind<IntegerObject>>>),
    Queue(ObjectId, Arc<LocalCopy<StaticKind<JobQueueObject<i64>>>>),
}

impl OpenedObject {
    fn object(&self) -> ObjectId {
        match self {
            Self::Integer(object, _) | Self::Queue(object, _) => *object,
        }
    }

    fn replica(&self) -> Arc<dyn Replica> {
        match self {
            Self::Integer(_, copy) => copy.clone(),
            Self::Queue(_, copy) => copy.clone(),
        }
    }
}

/// A thread of a process: it opens all objects, and then does what its script says.
pub struct Worker {
    pub process: usize,
    pub script: Vec<ScriptStep>,
    pub done: Vec<Done>,
    opened: Vec<OpenedObject>,
    waits: Option<CallId>,
}

/// A course that takes more steps does not end.
const MOST: usize = 1_000_000;

/// Workers on a cluster, with that many integers and then that many queues.
pub struct Course {
    pub cluster: MadeUpNetwork,
    pub workers: Vec<Worker>,
    pub dice: Dice,
    integers: usize,
    queues: usize,
    steps: usize,
}

impl Course {
    pub fn new(seed: u64, size: usize, (integers, queues): (usize, usize), rule: Rule) -> Self {
        let mut dice = Dice::new(seed);
        Self {
            cluster: MadeUpNetwork::new(size, rule, &mut dice),
            workers: Vec::new(),
            dice,
            integers,
            queues,
            steps: 0,
        }
    }

    pub fn add_worker(&mut self, process: usize, script: Vec<ScriptStep>) {
        self.workers.push(Worker { process, script, done: Vec::new(), opened: Vec::new(), waits: None });
    }

    /// Runs until nothing moves; whether all workers on living processes have done all. What all know must be the same
    /// then.
    pub fn run(&mut self) -> bool {
        while self.step() {
            self.steps += 1;
            if self.steps > MOST {
                return false;
            }
        }
        let known = self.cluster.knowledge();
        assert!(known.windows(2).all(|pair| pair[0] == pair[1]), "they know different things: {known:#?}");
        for waiting in self.cluster.waiting().values() {
            assert!(waiting.windows(2).all(|pair| pair[0] == pair[1]), "different calls wait: {waiting:?}");
        }
        let lives = |worker: &&Worker| !self.cluster.has_ended[worker.process];
        self.workers.iter().filter(lives).all(|worker| worker.done.len() == worker.script.len())
    }

    /// Does one thing, of a worker or of the network; false if there is none.
    pub fn step(&mut self) -> bool {
        let ready: Vec<usize> = (0..self.workers.len()).filter(|at| self.is_ready(*at)).collect();
        if !ready.is_empty() && self.dice.is_one_of(3) {
            let at = ready[self.dice.below(ready.len())];
            self.act(at);
            return true;
        }
        self.cluster.step(&mut self.dice) || ready.first().map(|at| self.act(*at)).is_some()
    }

    /// Whether the worker can do something: its call is over, or it has none.
    fn is_ready(&mut self, at: usize) -> bool {
        let worker = &mut self.workers[at];
        if self.cluster.has_ended[worker.process] {
            return false;
        }
        let machine = &mut self.cluster.machines[worker.process];
        if let Some(call) = worker.waits {
            let Some(answer) = machine.poll_answer(call) else { return false };
            worker.waits = None;
            let is_opening = worker.opened.len() < self.integers + self.queues;
            if is_opening {
                let Ok(answer) = answer else {
                    // It was lost with its only process: this worker has nothing to do.
                    worker.script.clear();
                    return false;
                };
                let object = decode(&answer).expect("a number");
                let copy: Arc<dyn std::any::Any + Send + Sync> = machine.copy(object).expect("a copy");
                worker.opened.push(match worker.opened.len() < self.integers {
                    true => OpenedObject::Integer(object, copy.downcast().expect("an integer")),
                    false => OpenedObject::Queue(object, copy.downcast().expect("a queue")),
                });
            } else {
                let deed = worker.script[worker.done.len()];
                worker.done.push((deed, answer.map(|bytes| number(deed, &bytes))));
            }
        }
        worker.done.len() < worker.script.len()
    }

    fn act(&mut self, at: usize) {
        let next = self.workers[at].opened.len();
        if next < self.integers + self.queues {
            let is_integer = next < self.integers;
            let name = format!("o{next}");
            let machine = &mut self.cluster.machines[self.workers[at].process];
            let call = match is_integer {
                true => {
                    let state = encode(&IntegerObject::new(0)).expect("a form");
                    let copy = Arc::new(LocalCopy::new(&name, Arc::new(StaticKind::<IntegerObject>::new())));
                    machine.handle_open(&name, type_name::<IntegerObject>(), Some(state), copy)
                }
                false => {
                    let state = encode(&JobQueueObject::<i64>::default()).expect("a form");
                    let copy = Arc::new(LocalCopy::new(&name, Arc::new(StaticKind::<JobQueueObject<i64>>::new())));
                    machine.handle_open(&name, type_name::<JobQueueObject<i64>>(), Some(state), copy)
                }
            };
            self.workers[at].waits = Some(call);
            return;
        }
        self.operate(at);
    }

    /// Does the next operation, as a handle does: a read on the copy, if that is here.
    fn operate(&mut self, at: usize) {
        let worker = &mut self.workers[at];
        let deed = worker.script[worker.done.len()];
        let machine = &mut self.cluster.machines[worker.process];
        if let ScriptStep::Place(object, strategy) = deed {
            worker.waits = Some(machine.handle_place(worker.opened[object].object(), strategy));
            return;
        }
        let (place, operation, arguments) = encoded(deed, self.integers);
        let opened = &worker.opened[place];
        let read = match (opened, deed) {
            (OpenedObject::Integer(_, copy), ScriptStep::Value(_)) => copy.read(operation, |state| Some(state.value())),
            (OpenedObject::Queue(_, copy), ScriptStep::Length(_)) => {
                copy.read(operation, |state| Some(state.length() as i64))
            }
            _ => Ok(None),
        };
        match read.expect("no panic") {
            Some((answer, _)) => worker.done.push((deed, Ok(answer))),
            None => worker.waits = Some(machine.handle_call(opened.object(), operation, arguments)),
        }
    }

    /// The states of an object in all living processes that have it.
    pub fn states(&self, object: usize) -> Vec<Vec<u8>> {
        let lives = |worker: &&Worker| !self.cluster.has_ended[worker.process] && worker.opened.len() > object;
        self.workers.iter().filter(lives).filter_map(|worker| worker.opened[object].replica().state()).collect()
    }

    pub fn placement(&self, process: usize, object: usize) -> Option<ObjectPlacement> {
        let worker = self.workers.iter().find(|worker| worker.process == process)?;
        self.cluster.machines[process].placement(worker.opened[object].object())
    }
}

/// The object of an operation, the operation's number and its arguments.
fn encoded(deed: ScriptStep, integers: usize) -> (usize, u16, Vec<u8>) {
    let argument = |value: i64| encode(&(value,)).expect("a form");
    match deed {
        ScriptStep::Value(at) => (at, 0, Vec::new()),
        ScriptStep::AwaitAtLeast(at, value) => (at, 2, argument(value)),
        ScriptStep::Assign(at, value) => (at, 3, argument(value)),
        ScriptStep::Add(at, value) => (at, 4, argument(value)),
        ScriptStep::Put(at, value) => (integers + at, 0, argument(value)),
        ScriptStep::Take(at) => (integers + at, 2, Vec::new()),
        ScriptStep::Length(at) => (integers + at, 3, Vec::new()),
        ScriptStep::Place(..) => unreachable!("no operation of the object"),
    }
}

/// What an operation answered, as a number.
fn number(deed: ScriptStep, answer: &[u8]) -> i64 {
    match deed {
        ScriptStep::Value(_) | ScriptStep::AwaitAtLeast(..) | ScriptStep::Assign(..) | ScriptStep::Add(..) => {
            decode(answer).expect("a number")
        }
        ScriptStep::Put(..) => i64::from(decode::<bool>(answer).expect("a truth")),
        ScriptStep::Take(_) => decode::<Option<i64>>(answer).expect("a job").expect("the queue is not closed"),
        ScriptStep::Length(_) => decode::<u64>(answer).expect("a length") as i64,
        ScriptStep::Place(..) => 0,
    }
}
