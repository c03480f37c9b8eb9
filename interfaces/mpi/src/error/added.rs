//! Error classes and codes that the program adds (MPI 5.0, section 9.5).

use super::{Class, Error, Result, tool};
use crate::abi::ERR_LASTCODE;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug)]
pub struct AddedError {
    /// The class; a class is its own.
    pub class: i32,
    pub text: String,
}

/// Place `i` is number `ERR_LASTCODE + 1 + i`. A number that was removed is given out again, so that a program that
/// adds and removes for ever does not fill memory.
static ADDED: Mutex<Vec<Option<AddedError>>> = Mutex::new(Vec::new());

fn added() -> MutexGuard<'static, Vec<Option<AddedError>>> {
    ADDED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn place(number: i32) -> Option<usize> {
    usize::try_from(i64::from(number) - i64::from(ERR_LASTCODE) - 1).ok()
}

/// What was added under this number.
pub fn entry(number: i32) -> Option<AddedError> {
    added().get(place(number)?)?.clone()
}

/// The highest number in use (`MPI_LASTUSEDCODE`).
pub fn last_used() -> i32 {
    ERR_LASTCODE + added().len() as i32
}

fn push(class: Option<i32>) -> i32 {
    let mut added = added();
    let place = added.iter().position(Option::is_none).unwrap_or(added.len());
    if place == added.len() {
        added.push(None);
    }
    let number = ERR_LASTCODE + 1 + place as i32;
    added[place] = Some(AddedError { class: class.unwrap_or(number), text: String::new() });
    let last_used = ERR_LASTCODE + added.len() as i32;
    drop(added);
    crate::attribute::set_last_used_code(last_used);
    number
}

pub fn add_class() -> i32 {
    push(None)
}

/// The class of a class or code.
pub fn class_of(number: i32) -> Result<i32> {
    if Class::from_number(number).is_some() || tool::of(number).is_some() {
        return Ok(number);
    }
    let unknown = || Error::new(Class::Arg, format!("errorcode {number} is no error class or code"));
    entry(number).map(|entry| entry.class).ok_or_else(unknown)
}

pub fn add_code(class: i32) -> Result<i32> {
    if class_of(class).ok() != Some(class) {
        return Err(Error::new(Class::Arg, format!("errorclass {class} is no error class")));
    }
    Ok(push(Some(class)))
}

pub fn set_text(number: i32, text: String) -> Result<()> {
    with(number, "errorcode", |slot| slot.as_mut().expect("`with` checked it").text = text)
}

/// Forgets a class (`is_class`) or a code; a class that still has codes stays, and either while it has a string
/// (MPI 5.0, section 9.5).
pub fn remove(number: i32, is_class: bool) -> Result<()> {
    let what = if is_class { "errorclass" } else { "errorcode" };
    let entry = entry(number).ok_or_else(|| foreign(number, what))?;
    if (entry.class == number) != is_class {
        let kind = if is_class { "a code, not a class" } else { "a class, not a code" };
        return Err(Error::new(Class::Arg, format!("{what} {number} is {kind}")));
    }
    if !entry.text.is_empty() {
        return Err(Error::new(Class::Arg, format!("{what} {number} still has its string")));
    }
    let has_codes = added().iter().flatten().filter(|entry| entry.class == number).count() > 1;
    if is_class && has_codes {
        return Err(Error::new(Class::Arg, format!("{what} {number} still has codes")));
    }
    with(number, what, |slot| *slot = None)
}

fn with(number: i32, what: &str, change: impl FnOnce(&mut Option<AddedError>)) -> Result<()> {
    let mut added = added();
    let slot = place(number).and_then(|place| added.get_mut(place)).filter(|slot| slot.is_some());
    change(slot.ok_or_else(|| foreign(number, what))?);
    Ok(())
}

fn foreign(number: i32, what: &str) -> Error {
    Error::new(Class::Arg, format!("{what} {number} was not added by the program"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_with_codes_stays_until_they_are_gone() {
        let class = add_class();
        let code = add_code(class).unwrap();
        assert!(class > ERR_LASTCODE && code > class && last_used() >= code);
        set_text(code, "the tank is empty".to_owned()).unwrap();
        assert_eq!((class_of(code), super::super::text(code)), (Ok(class), "the tank is empty".to_owned()));
        assert!(remove(class, true).is_err() && remove(code, true).is_err());
        let detail = remove(code, false).unwrap_err().detail;
        assert_eq!(detail, format!("errorcode {code} still has its string"));
        set_text(code, String::new()).unwrap();
        remove(code, false).unwrap();
        remove(class, true).unwrap();
        assert!(class_of(class).is_err() && set_text(code, String::new()).is_err());
    }

    #[test]
    fn predefined_classes_cannot_be_changed() {
        let rank = Class::Rank as i32;
        assert_eq!(remove(rank, true).unwrap_err().detail, "errorclass 6 was not added by the program");
        assert!(set_text(rank, String::new()).is_err());
        assert!(add_code(add_code(rank).unwrap()).is_err());
    }
}
