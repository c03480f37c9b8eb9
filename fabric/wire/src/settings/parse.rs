//! From the environment and the flags to checked values.

use std::ffi::OsStr;

use thiserror::Error;

use super::kind::Value;
use super::{COUNT, DEFINITIONS, Definition, OTHER_VARIABLES, Origin, PREFIX, nearest};

/// A setting that is refused. Blast radius: the process does not start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingError {
    #[error("unknown setting {name} = {value:?} (the nearest known name is {nearest}; `weft info` lists all)")]
    Unknown { name: String, value: String, nearest: &'static str },
    #[error("setting {}: {source_name} is {value:?}, accepted is: {}{}", definition.name, definition.kind, meant(*nearest))]
    Refused { definition: &'static Definition, source_name: String, value: String, nearest: Option<&'static str> },
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map(|word| format!(" (nearest is {word})")).unwrap_or_default()
}

/// The checked values and where each came from, in the order of the table.
#[derive(Debug)]
pub(super) struct Values {
    pub given: [Option<(Value, Origin)>; COUNT],
    pub errors: Vec<SettingError>,
}

impl Values {
    pub fn new() -> Self {
        Self { given: [None; COUNT], errors: Vec::new() }
    }

    /// Takes every variable of ours out of the environment. Others are not looked at, so they may be any bytes.
    pub fn read_env<K: AsRef<OsStr>, V: AsRef<OsStr>>(&mut self, env: impl IntoIterator<Item = (K, V)>) {
        for (name, value) in env {
            let name = name.as_ref().to_string_lossy();
            if name.starts_with(PREFIX) {
                self.read_variable(&name, &value.as_ref().to_string_lossy());
            }
        }
    }

    fn read_variable(&mut self, name: &str, value: &str) {
        if OTHER_VARIABLES.iter().any(|(known, _)| *known == name) {
            return;
        }
        match DEFINITIONS.iter().position(|definition| definition.env == name) {
            Some(index) => self.accept(index, name, value, Origin::Environment),
            None => self.refuse_unknown(name, value, known_variables()),
        }
    }

    /// Takes flags given as (name without dashes, value).
    pub fn read_flags<K: AsRef<str>, V: AsRef<str>>(&mut self, flags: impl IntoIterator<Item = (K, V)>) {
        for (flag, value) in flags {
            let (flag, value) = (flag.as_ref(), value.as_ref());
            match DEFINITIONS.iter().position(|definition| definition.flag == Some(flag)) {
                Some(index) => self.accept(index, &format!("--{flag}"), value, Origin::Flag),
                None => self.refuse_unknown(flag, value, DEFINITIONS.iter().filter_map(|d| d.flag)),
            }
        }
    }

    fn accept(&mut self, index: usize, source_name: &str, value: &str, origin: Origin) {
        let definition = &DEFINITIONS[index];
        match definition.kind.parse(value.trim()) {
            Some(parsed) => self.given[index] = Some((parsed, origin)),
            None => self.errors.push(SettingError::Refused {
                definition,
                source_name: source_name.to_owned(),
                value: value.to_owned(),
                nearest: nearest_word(value, definition),
            }),
        }
    }

    fn refuse_unknown(&mut self, name: &str, value: &str, known: impl Iterator<Item = &'static str>) {
        let nearest = nearest(name, known).unwrap_or("none");
        self.errors.push(SettingError::Unknown { name: name.to_owned(), value: value.to_owned(), nearest });
    }
}

/// The accepted word that `value` may have meant; a number that is out of range meant none.
fn nearest_word(value: &str, definition: &Definition) -> Option<&'static str> {
    let is_word = value.trim().starts_with(char::is_alphabetic);
    is_word.then(|| nearest(value, definition.kind.words())).flatten()
}

fn known_variables() -> impl Iterator<Item = &'static str> {
    DEFINITIONS.iter().map(|d| d.env).chain(OTHER_VARIABLES.iter().map(|(name, _)| *name))
}
