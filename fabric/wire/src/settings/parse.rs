//! From the environment and the flags to checked values.

use std::ffi::OsStr;

use thiserror::Error;

use super::kind::SettingValue;
use super::{COUNT, DEFINITIONS, Definition, OTHER_VARIABLES, Origin, PREFIX, nearest};

/// A setting that is refused. Blast radius: the process does not start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingError {
    #[error("unknown setting --{name} = {value:?} ({}`weft info` lists all)", known(*nearest))]
    UnknownFlag { name: String, value: String, nearest: Option<&'static str> },
    #[error("setting {}: {source_name} is {value:?}, accepted is: {}{}", definition.name, definition.kind, meant(*nearest))]
    Refused { definition: &'static Definition, source_name: String, value: String, nearest: Option<&'static str> },
}

fn known(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("the nearest known name is {name}; ")).unwrap_or_default()
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map(|word| format!(" (nearest is {word})")).unwrap_or_default()
}

/// A variable with our prefix that nobody knows. It is told once for each job, and does no harm.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unknown {
    pub name: String,
    pub value: String,
    /// The known name that may have been meant.
    pub nearest: Option<&'static str>,
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, value, nearest } = self;
        write!(f, "unknown setting {name} = {value:?} ({}`weft info` lists all)", known(*nearest))
    }
}

impl Unknown {
    /// The line where the program goes on all the same.
    pub fn warning(&self) -> String {
        format!("warning: {self} is ignored")
    }
}

/// The variables of ours in an environment that nobody knows, in the order of their names.
pub fn unknown<K: AsRef<OsStr>, V: AsRef<OsStr>>(env: impl IntoIterator<Item = (K, V)>) -> Vec<Unknown> {
    let ours = env.into_iter().filter(|(name, _)| name.as_ref().as_encoded_bytes().starts_with(PREFIX.as_bytes()));
    let named = ours.map(|(name, value)| {
        let text = |given: &OsStr| given.to_string_lossy().into_owned();
        (text(name.as_ref()), text(value.as_ref()))
    });
    let stranger = |name: &str| known_variables().all(|known| known != name);
    let mut unknown: Vec<Unknown> = named
        .filter(|(name, _)| stranger(name))
        .map(|(name, value)| Unknown { nearest: nearest_variable(&name), name, value })
        .collect();
    unknown.sort();
    unknown
}

/// The checked values and where each came from, in the order of the table.
#[derive(Debug)]
pub(super) struct SettingValues {
    pub given: [Option<(SettingValue, Origin)>; COUNT],
    pub errors: Vec<SettingError>,
}

impl SettingValues {
    pub fn new() -> Self {
        Self { given: [None; COUNT], errors: Vec::new() }
    }

    /// Takes every setting out of the environment. Other variables are not looked at, so they may be any bytes.
    pub fn read_env<K: AsRef<OsStr>, V: AsRef<OsStr>>(&mut self, env: impl IntoIterator<Item = (K, V)>) {
        for (name, value) in env {
            let name = name.as_ref();
            if let Some(index) = DEFINITIONS.iter().position(|definition| definition.env == name) {
                let value = value.as_ref().to_string_lossy();
                self.accept(index, DEFINITIONS[index].env, &value, Origin::Environment);
            }
        }
    }

    /// Takes flags given as (name without dashes, value).
    pub fn read_flags<K: AsRef<str>, V: AsRef<str>>(&mut self, flags: impl IntoIterator<Item = (K, V)>) {
        for (flag, value) in flags {
            let (flag, value) = (flag.as_ref(), value.as_ref());
            match DEFINITIONS.iter().position(|definition| definition.flag == Some(flag)) {
                Some(index) => self.accept(index, &format!("--{flag}"), value, Origin::Flag),
                None => self.refuse_unknown(flag, value),
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

    fn refuse_unknown(&mut self, name: &str, value: &str) {
        let nearest = nearest(name, DEFINITIONS.iter().filter_map(|definition| definition.flag));
        self.errors.push(SettingError::UnknownFlag { name: name.to_owned(), value: value.to_owned(), nearest });
    }
}

/// The accepted word that `value` may have meant; a number that is out of range meant none.
fn nearest_word(value: &str, definition: &Definition) -> Option<&'static str> {
    let is_word = value.trim().starts_with(char::is_alphabetic);
    is_word.then(|| nearest(value, definition.kind.words())).flatten()
}

/// The variable whose name may have been meant; the prefix, which all have, counts for nothing.
fn nearest_variable(wrong: &str) -> Option<&'static str> {
    let found = nearest(bare(wrong), known_variables().map(bare))?;
    known_variables().find(|name| bare(name) == found)
}

fn bare(variable: &str) -> &str {
    variable.strip_prefix(PREFIX).unwrap_or(variable)
}

fn known_variables() -> impl Iterator<Item = &'static str> {
    DEFINITIONS.iter().map(|d| d.env).chain(OTHER_VARIABLES.iter().map(|(name, _)| *name))
}
