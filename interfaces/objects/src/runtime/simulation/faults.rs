//! What goes wrong, one thing at a time: who is told, and that all others go on.

use super::Rule;
use super::network::{Dice, MadeUpNetwork};
use crate::copy::LocalCopy;
use crate::kind::StaticKind;
use crate::message::ObjectPlacement::{Replicated, Single};
use crate::message::{CallId, ObjectId, Strategy};
use crate::object::{ObjectType, decode, encode};
use crate::standard::{IntegerObject, JobQueueObject};
use crate::{ObjectFault, object};
use serde::{Deserialize, Serialize};
use std::any::type_name;
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
struct FragileObject {
    value: u32,
}

#[object]
impl FragileObject {
    #[operation(write)]
    fn add(&mut self, by: u32) -> u32 {
        self.value += by;
        self.value
    }

    #[operation(write)]
    fn fall(&mut self) {
        self.value = 0;
        panic!("as asked");
    }

    #[operation(read)]
    fn stumble(&self) -> u32 {
        panic!("at {}", self.value);
    }

    #[operation(write, guard = self.value > 100)]
    fn wait(&mut self) {}

    #[operation(write, guard = self.value >= 10)]
    fn lift(&mut self) {
        self.value = 200;
    }
}

const ADD: u16 = 0;
const FALL: u16 = 1;
const STUMBLE: u16 = 2;
const WAIT: u16 = 3;
const LIFT: u16 = 4;

/// Processes that do one thing after the other.
struct FaultScene {
    cluster: MadeUpNetwork,
    dice: Dice,
}

impl FaultScene {
    fn new(size: usize) -> Self {
        let mut dice = Dice::new(5);
        Self { cluster: MadeUpNetwork::new(size, Rule::default(), &mut dice), dice }
    }

    fn settle(&mut self) {
        while self.cluster.step(&mut self.dice) {}
    }

    fn answer(&mut self, process: usize, call: CallId) -> Option<Result<Vec<u8>, ObjectFault>> {
        self.settle();
        self.cluster.machines[process].poll_answer(call)
    }

    fn open<T: ObjectType>(&mut self, process: usize, name: &str, state: Option<&T>) -> Result<ObjectId, ObjectFault> {
        let state = state.map(|state| encode(state).expect("a form"));
        let copy = Arc::new(LocalCopy::new(name, Arc::new(StaticKind::<T>::new())));
        let call = self.cluster.machines[process].handle_open(name, type_name::<T>(), state, copy);
        let answer = self.answer(process, call).expect("it is opened")?;
        Ok(decode(&answer).expect("a number"))
    }

    /// Opens an object in all processes.
    fn open_everywhere<T: ObjectType>(&mut self, name: &str, state: &T) -> ObjectId {
        let size = self.cluster.machines.len();
        (0..size).map(|process| self.open(process, name, Some(state)).expect("it opens")).last().expect("a process")
    }

    fn begin(&mut self, process: usize, object: ObjectId, number: u16, arguments: &impl Serialize) -> CallId {
        let arguments = encode(arguments).expect("a form");
        self.cluster.machines[process].handle_call(object, number, arguments)
    }

    fn call(
        &mut self,
        process: usize,
        object: ObjectId,
        number: u16,
        arguments: &impl Serialize,
    ) -> Result<u32, ObjectFault> {
        let call = self.begin(process, object, number, arguments);
        let answer = self.answer(process, call).expect("it does not wait")?;
        Ok(decode(&answer).unwrap_or(0))
    }

    fn place(&mut self, process: usize, object: ObjectId, strategy: Strategy) -> Result<(), ObjectFault> {
        let call = self.cluster.machines[process].handle_place(object, strategy);
        self.answer(process, call).expect("it is placed").map(drop)
    }
}

fn lost(name: &str, process: u32) -> ObjectFault {
    ObjectFault::OwnerLost { name: name.to_owned(), process }
}

fn panicked(operation: &str, message: &str) -> ObjectFault {
    ObjectFault::Panicked { operation: operation.to_owned(), message: message.to_owned() }
}

#[test]
fn a_read_that_panics_is_an_error_to_its_caller_only() {
    for placement in [Replicated, Single(1)] {
        let mut scene = FaultScene::new(3);
        let object = scene.open_everywhere("trouble", &FragileObject { value: 3 });
        scene.place(0, object, Strategy::Fixed(placement)).expect("it can be there");
        assert_eq!(scene.call(0, object, STUMBLE, &()), Err(panicked("stumble", "at 3")));
        assert_eq!(scene.call(2, object, ADD, &(4_u32,)), Ok(7));
    }
}

#[test]
fn a_write_that_panics_ends_its_object_and_no_other() {
    for placement in [Replicated, Single(1)] {
        let mut scene = FaultScene::new(3);
        let object = scene.open_everywhere("trouble", &FragileObject { value: 3 });
        let other = scene.open_everywhere("other", &FragileObject { value: 10 });
        scene.place(0, object, Strategy::Fixed(placement)).expect("it can be there");
        let waits = scene.begin(2, object, WAIT, &());
        let poisoned = ObjectFault::Poisoned { name: "trouble".to_owned() };
        assert_eq!(scene.answer(2, waits), None);
        assert_eq!(scene.call(0, object, FALL, &()), Err(panicked("fall", "as asked")));
        assert_eq!(scene.answer(2, waits), Some(Err(poisoned.clone())));
        for process in 0..3 {
            assert_eq!(scene.call(process, object, ADD, &(1_u32,)), Err(poisoned.clone()));
        }
        // It stays so wherever it goes.
        scene.place(0, object, Strategy::Fixed(Single(2))).expect("it can be there");
        assert_eq!(scene.call(2, object, ADD, &(1_u32,)), Err(poisoned.clone()));
        assert_eq!(scene.call(1, other, ADD, &(1_u32,)), Ok(11));
    }
}

#[test]
fn arguments_that_do_not_decode_change_nothing() {
    for placement in [Replicated, Single(1)] {
        let mut scene = FaultScene::new(2);
        let object = scene.open_everywhere("trouble", &FragileObject { value: 3 });
        scene.place(0, object, Strategy::Fixed(placement)).expect("it can be there");
        for (number, arguments) in [(ADD, vec![]), (ADD, vec![1, 2]), (77, vec![])] {
            let call = scene.cluster.machines[0].handle_call(object, number, arguments);
            let answer = scene.answer(0, call).expect("it is over");
            let is_told = match number {
                77 => answer
                    .is_err_and(|fault| fault.to_string().ends_with("operation 77: its type has operations 0 to 4")),
                _ => matches!(answer, Err(ObjectFault::Format(..))),
            };
            assert!(is_told, "{number}");
        }
        assert_eq!(scene.call(1, object, ADD, &(1_u32,)), Ok(4));
        scene.cluster.machines[0].handle_direct(1, &[0xff; 9]);
        scene.cluster.machines[0].handle_ordered(1000, 1, &[0xff; 9]);
    }
}

#[test]
fn a_name_is_one_object_of_one_type() {
    let mut scene = FaultScene::new(2);
    assert_eq!(scene.open::<FragileObject>(0, "it", None), Err(ObjectFault::Unknown("it".to_owned())));
    let object = scene.open(0, "it", Some(&FragileObject { value: 3 })).expect("it is created");
    assert_eq!(scene.open(1, "it", Some(&FragileObject { value: 9 })), Ok(object));
    assert_eq!(scene.open::<FragileObject>(1, "it", None), Ok(object));
    assert_eq!(scene.call(1, object, ADD, &(0_u32,)), Ok(3));
    let fault = scene.open(1, "it", Some(&IntegerObject::new(0)));
    assert!(matches!(fault, Err(ObjectFault::OtherType { .. })), "{fault:?}");
}

#[test]
fn an_object_can_be_only_where_it_was_opened() {
    let mut scene = FaultScene::new(3);
    let object = scene.open(0, "it", Some(&FragileObject { value: 3 })).expect("it is created");
    assert_eq!(
        scene.place(0, object, Strategy::Fixed(Single(2))),
        Err(ObjectFault::NotOpened { name: "it".to_owned(), process: 2 })
    );
    let nobody = ObjectFault::NoProcess { name: "it".to_owned(), process: 3, size: 3 };
    assert_eq!(nobody.to_string(), "object 'it' cannot be placed on process 3: the job has processes 0 to 2");
    assert_eq!(scene.place(0, object, Strategy::Fixed(Single(3))), Err(nobody));
    assert_eq!(scene.open(2, "it", Some(&FragileObject { value: 3 })), Ok(object));
    assert_eq!(scene.place(0, object, Strategy::Fixed(Single(2))), Ok(()));
    assert_eq!(scene.cluster.machines[1].placement(object), Some(Single(2)));
}

#[test]
fn what_only_the_dead_had_is_lost_and_what_they_waited_for_is_dropped() {
    let mut scene = FaultScene::new(3);
    let object = scene.open_everywhere("it", &FragileObject { value: 3 });
    let queue = scene.open_everywhere("jobs", &JobQueueObject::<u32>::default());
    scene.place(0, object, Strategy::Fixed(Single(2))).expect("it can be there");
    let (asks, takes) = (scene.begin(0, object, WAIT, &()), scene.begin(2, queue, 2, &()));
    assert_eq!((scene.answer(0, asks), scene.answer(2, takes)), (None, None));
    scene.cluster.end(2, &mut scene.dice);
    scene.cluster.announce_end(2);
    assert_eq!(scene.answer(0, asks), Some(Err(lost("it", 2))));
    assert_eq!(scene.call(1, object, ADD, &(1_u32,)), Err(lost("it", 2)));
    assert_eq!(scene.open::<FragileObject>(1, "it", None), Err(lost("it", 2)));
    // The queue is replicated, and the job is not for the dead.
    scene.call(0, queue, 0, &(7_u32,)).expect("a queue");
    let length = scene.begin(1, queue, 3, &());
    assert_eq!(scene.answer(1, length), Some(Ok(vec![1])));
}

#[test]
fn who_shares_the_name_of_a_lost_object_creates_it_anew() {
    let mut scene = FaultScene::new(3);
    let object = scene.open_everywhere("it", &FragileObject { value: 3 });
    scene.place(0, object, Strategy::Fixed(Single(2))).expect("it can be there");
    scene.cluster.end(2, &mut scene.dice);
    scene.cluster.announce_end(2);
    let anew = scene.open(0, "it", Some(&FragileObject { value: 20 })).expect("it is created");
    assert_eq!(scene.open(1, "it", Some(&FragileObject { value: 30 })), Ok(anew));
    assert_eq!(scene.call(1, anew, ADD, &(1_u32,)), Ok(21));
    assert_eq!(scene.call(0, anew, ADD, &(1_u32,)), Ok(22));
    assert_eq!(scene.call(0, object, ADD, &(1_u32,)), Err(lost("it", 2)), "the handle is of the lost one");
    // One that its only holder has begun to hand over is created anew by who waits for it.
    let other = scene.open(0, "other", Some(&FragileObject { value: 3 })).expect("it is created");
    scene.cluster.end(0, &mut scene.dice);
    let state = encode(&FragileObject { value: 40 }).expect("a form");
    let copy = Arc::new(LocalCopy::new("other", Arc::new(StaticKind::<FragileObject>::new())));
    let waits = scene.cluster.machines[1].handle_open("other", type_name::<FragileObject>(), Some(state), copy);
    assert_eq!(scene.answer(1, waits), None);
    scene.cluster.announce_end(0);
    let anew = decode(&scene.answer(1, waits).expect("it is over").expect("it is opened")).expect("a number");
    assert_ne!(anew, other);
    assert_eq!(scene.call(1, anew, ADD, &(1_u32,)), Ok(41));
}

#[test]
fn where_processes_go_on_no_object_is_on_one_unless_somebody_says_so() {
    for keeps in [false, true] {
        let mut scene = FaultScene::new(3);
        let machines = std::mem::take(&mut scene.cluster.machines);
        scene.cluster.machines = machines.into_iter().map(|machine| machine.keeping_replicas(keeps)).collect();
        let object = scene.open_everywhere("it", &FragileObject { value: 3 });
        let write = |scene: &mut FaultScene| {
            (0..200).for_each(|_| drop(scene.call(1, object, ADD, &(1_u32,))));
            scene.cluster.machines[2].placement(object)
        };
        let placement = if keeps { Replicated } else { Single(1) };
        assert_eq!(write(&mut scene), Some(placement));
        scene.place(0, object, Strategy::Automatic).expect("it is there");
        assert_eq!(write(&mut scene), Some(Single(1)), "who says so has it counted");
    }
}

#[test]
fn closing_waits_for_all_that_live() {
    let mut scene = FaultScene::new(3);
    let first = scene.cluster.machines[0].handle_close();
    assert_eq!(scene.answer(0, first), None);
    let second = scene.cluster.machines[1].handle_close();
    assert_eq!(scene.answer(1, second), None);
    scene.cluster.end(2, &mut scene.dice);
    scene.cluster.announce_end(2);
    assert_eq!((scene.answer(0, first), scene.answer(1, second)), (Some(Ok(vec![])), Some(Ok(vec![]))));
}

#[test]
fn what_waits_is_tried_in_the_order_of_coming_and_again_after_each_write() {
    for placement in [Replicated, Single(1)] {
        let mut scene = FaultScene::new(3);
        let object = scene.open_everywhere("it", &FragileObject { value: 3 });
        let jobs = scene.open_everywhere("jobs", &JobQueueObject::<u32>::default());
        scene.place(0, object, Strategy::Fixed(placement)).expect("it can be there");
        scene.place(0, jobs, Strategy::Fixed(placement)).expect("it can be there");
        // The second one that waits makes the guard of the first one true.
        let first = scene.begin(0, object, WAIT, &());
        scene.settle();
        let second = scene.begin(2, object, LIFT, &());
        assert_eq!((scene.answer(0, first), scene.answer(2, second)), (None, None));
        assert_eq!(scene.call(1, object, ADD, &(7_u32,)), Ok(10));
        assert_eq!((scene.answer(0, first), scene.answer(2, second)), (Some(Ok(vec![])), Some(Ok(vec![]))));
        // Who came first gets the first job.
        let early = scene.begin(2, jobs, 2, &());
        scene.settle();
        let late = scene.begin(0, jobs, 2, &());
        scene.settle();
        for job in [7_u32, 8] {
            scene.call(1, jobs, 0, &(job,)).expect("a queue");
        }
        assert_eq!((scene.answer(2, early), scene.answer(0, late)), (Some(Ok(vec![1, 7])), Some(Ok(vec![1, 8]))));
    }
}
