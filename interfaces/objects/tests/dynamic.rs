//! Objects of a kind that is made while the program runs, as doors for other languages make them.

use std::sync::Arc;
use std::time::Duration;
use weft_objects::dynamic::DynamicHandle;
use weft_objects::kind::{KnownOperation, ObjectKind, RunFault};
use weft_objects::standard::SharedInteger;
use weft_objects::{ObjectFault, Space};

/// A text with as many operations as it has words: that of number n adds its word, and the last reads.
struct Words(Vec<&'static str>);

impl ObjectKind for Words {
    type State = String;

    fn name(&self) -> String {
        format!("words {}", self.0.join(" "))
    }

    fn operation(&self, number: u16) -> Option<KnownOperation<'_>> {
        let name = self.0.get(usize::from(number))?;
        Some(KnownOperation { name, writes: usize::from(number) + 1 < self.0.len() })
    }

    fn run(
        &self,
        number: u16,
        state: &mut String,
        arguments: &[u8],
        answer: Option<&mut Vec<u8>>,
    ) -> Result<bool, RunFault> {
        if state.len() < arguments.len() {
            return Ok(false);
        }
        if self.0[usize::from(number)] == "fail" {
            return Err(RunFault::Failed("as it was asked to".to_owned()));
        }
        if usize::from(number) + 1 < self.0.len() {
            state.push_str(self.0[usize::from(number)]);
        }
        if let Some(answer) = answer {
            answer.extend_from_slice(state.as_bytes());
        }
        Ok(true)
    }

    fn pack(&self, state: &String) -> Option<Vec<u8>> {
        Some(state.clone().into_bytes())
    }

    fn unpack(&self, bytes: &[u8]) -> Option<String> {
        String::from_utf8(bytes.to_vec()).ok()
    }
}

const PATIENCE: Option<Duration> = Some(Duration::from_millis(1));

fn call(handle: &DynamicHandle<Words>, number: u16, arguments: &[u8]) -> Result<String, ObjectFault> {
    let mut answer = Vec::new();
    if let Some(mut started) = handle.start(number, arguments, &mut answer)? {
        answer = started.wait(None).expect("it waits without end")?;
    }
    Ok(String::from_utf8(answer).expect("text"))
}

#[test]
fn operations_have_the_numbers_and_the_meaning_that_their_kind_says() -> Result<(), ObjectFault> {
    let space = Space::alone();
    let kind = || Arc::new(Words(vec!["one", "two", "read"]));
    let words = space.open_dynamic("words", kind(), Some(b"zero".to_vec()))?;
    assert_eq!((call(&words, 1, b"")?, call(&words, 0, b"")?), ("zerotwo".to_owned(), "zerotwoone".to_owned()));
    let again = space.open_dynamic("words", kind(), None)?;
    assert_eq!(call(&again, 2, b"")?, "zerotwoone");
    let fault = ObjectFault::NoOperation { name: "words".to_owned(), number: 3, operations: 3 };
    assert_eq!(call(&again, 3, b""), Err(fault));
    assert_eq!(again.name(), "words");
    let other = space.open_dynamic("words", Arc::new(Words(vec!["one", "read"])), None).err();
    assert!(matches!(other, Some(ObjectFault::OtherType { .. })), "{other:?}");
    assert!(matches!(SharedInteger::find(&space, "words").err(), Some(ObjectFault::OtherType { .. })));
    Ok(())
}

#[test]
fn who_waits_for_some_time_hears_of_it_later_or_never() -> Result<(), ObjectFault> {
    let space = Space::alone();
    let words = space.open_dynamic("words", Arc::new(Words(vec!["one", "read"])), Some(Vec::new()))?;
    let mut answer = Vec::new();
    let mut given_up = words.start(0, b"....", &mut answer)?.expect("its guard is false");
    assert_eq!(given_up.wait(PATIENCE), None);
    drop(given_up);
    let mut read = words.start(1, b"...", &mut answer)?.expect("its guard is false");
    assert_eq!(read.wait(PATIENCE), None);
    assert_eq!(call(&words, 0, b"")?, "one");
    assert_eq!(read.wait(None), Some(Ok(b"one".to_vec())));
    // What was given up is done when it can be.
    assert_eq!(call(&words, 0, b"")?, "oneone");
    assert_eq!(call(&words, 1, b"")?, "oneoneone");
    Ok(())
}

#[test]
fn a_write_that_fails_is_the_end_of_its_object_and_a_read_is_not() -> Result<(), ObjectFault> {
    let space = Space::alone();
    let words = space.open_dynamic("words", Arc::new(Words(vec!["fail", "one", "fail"])), Some(Vec::new()))?;
    let failed = Err(ObjectFault::Failed { operation: "fail".to_owned(), message: "as it was asked to".to_owned() });
    assert_eq!(call(&words, 2, b""), failed);
    assert_eq!(call(&words, 1, b"")?, "one");
    assert_eq!(call(&words, 0, b""), failed);
    assert_eq!(call(&words, 1, b""), Err(ObjectFault::Poisoned { name: "words".to_owned() }));
    Ok(())
}
