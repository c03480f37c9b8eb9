//! Objects of a program, in a space of one process: what handles do.

use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use weft_objects::standard::{IntegerObject, SharedBarrier, SharedInteger};
use weft_objects::{ObjectFault, ObjectPlacement, Space, Strategy, object};

type Checked = Result<(), ObjectFault>;
type Look = fn(&Notebook) -> Result<bool, ObjectFault>;

#[derive(Serialize, Deserialize, Default)]
struct Notes {
    lines: Vec<String>,
}

/// An object that operations should leave alone, and its space.
static OTHER: OnceLock<(Space, SharedInteger)> = OnceLock::new();

#[object(handle = Notebook)]
impl Notes {
    #[operation(write)]
    pub fn write(&mut self, line: &str) -> usize {
        self.lines.push(line.to_owned());
        self.lines.len()
    }

    #[operation(write)]
    pub fn extend(&mut self, lines: &[String]) {
        self.lines.extend_from_slice(lines);
    }

    /// Those that contain the word, if there are any.
    #[operation(read, guard = self.lines.iter().any(|line| line.contains(word)))]
    pub fn lines_with(&self, word: &str) -> Vec<String> {
        self.lines.iter().filter(|line| line.contains(word)).cloned().collect()
    }

    #[operation(read)]
    pub fn line(&self, number: usize) -> String {
        self.lines[number].clone()
    }

    /// Calls another object from inside, which it may not.
    #[operation(read)]
    pub fn meddle(&self) -> Result<i64, ObjectFault> {
        other().1.value()
    }

    /// Asks where another object is, which it may not.
    #[operation(read)]
    pub fn look_around(&self) -> bool {
        other().1.placement() == ObjectPlacement::Replicated
    }

    /// The same while the machine is held, which runs what writes.
    #[operation(write)]
    pub fn look_around_and_write(&mut self) -> bool {
        self.look_around()
    }

    fn is_no_operation(&self) -> bool {
        self.lines.is_empty()
    }
}

fn other() -> &'static (Space, SharedInteger) {
    OTHER.get_or_init(|| {
        let space = Space::alone();
        let number = SharedInteger::share(&space, "number", IntegerObject::new(4)).expect("nobody else has it");
        (space, number)
    })
}

#[test]
fn arguments_behind_references_are_given_as_such() -> Checked {
    let space = Space::alone();
    assert!(Notes::default().is_no_operation());
    let notes = Notebook::share(&space, "notes", Notes::default())?;
    assert_eq!(notes.write("one and two")?, 1);
    notes.extend(&["three".to_owned(), "two again".to_owned()])?;
    assert_eq!(notes.lines_with("two")?, ["one and two", "two again"]);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| notes.lines_with("four"));
        notes.write("four")?;
        assert_eq!(waits.join().expect("no panic")?, ["four"]);
        Ok(())
    })
}

#[test]
fn a_read_that_panics_in_this_process_is_an_error_too() -> Checked {
    let notes = Notebook::share(&Space::alone(), "notes", Notes::default())?;
    let fault = notes.line(3).expect_err("there is no such line");
    assert!(fault.to_string().starts_with("operation 'line' panicked: index out of bounds"), "{fault}");
    assert_eq!(notes.write("still here")?, 1);
    Ok(())
}

#[test]
fn an_operation_cannot_call_another() -> Checked {
    let (space, number) = other();
    let notes = Notebook::share(space, "notes", Notes::default())?;
    assert_eq!(notes.meddle()?, Err(ObjectFault::Nested));
    assert_eq!(number.value()?, 4);
    Ok(())
}

/// It would wait for what it holds itself, or have others' operations done in the middle of this one.
#[test]
fn an_operation_that_asks_where_an_object_is_panics_and_does_not_hang() -> Checked {
    let (space, number) = other();
    let looks: [Look; 2] = [Notebook::look_around, Notebook::look_around_and_write];
    for (name, look) in ["reads", "writes"].into_iter().zip(looks) {
        let fault = look(&Notebook::share(space, name, Notes::default())?).expect_err("it is refused").to_string();
        assert!(fault.ends_with("panicked: an operation cannot use handles of objects"), "{fault}");
    }
    assert_eq!(number.placement(), ObjectPlacement::Replicated, "who is in none gets an answer");
    Ok(())
}

#[test]
fn a_name_leads_to_the_same_object_and_a_strategy_says_where_it_is() -> Checked {
    let space = Space::alone();
    let first = SharedInteger::share(&space, "number", IntegerObject::new(4))?;
    let second = SharedInteger::share(&space, "number", IntegerObject::new(0))?;
    assert_eq!((second.add(1)?, first.value()?), (5, 5));
    assert_eq!(Notebook::find(&space, "none").err(), Some(ObjectFault::Unknown("none".to_owned())));
    let fault = Notebook::share(&space, "number", Notes::default()).err().expect("it is an integer");
    assert!(fault.to_string().ends_with("of type IntegerObject, not Notes"), "{fault}");
    first.place(Strategy::Fixed(ObjectPlacement::Single(0)))?;
    assert_eq!((first.placement(), second.add(1)?, first.value()?), (ObjectPlacement::Single(0), 6, 6));
    assert_eq!(
        first.place(Strategy::Fixed(ObjectPlacement::Single(1))),
        Err(ObjectFault::NoProcess { name: "number".to_owned(), process: 1, size: 1 })
    );
    assert_eq!(Notebook::find(&space, "").err(), Some(ObjectFault::NoName));
    SharedBarrier::share_for(&space, "barrier", 3)?;
    let fault = SharedBarrier::share_for(&space, "barrier", 4).err().expect("it has three").to_string();
    assert_eq!(fault, "barrier 'barrier' is for 3 callers, not 4");
    Ok(())
}
