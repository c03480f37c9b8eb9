//! The tables of a file, entry by entry: each key is asked for by its kind, and what nobody asks for is a mistake.
//!
//! Values of a wrong kind are mistakes as all others are, so that one of them does not hide the rest.

use crate::reservation::{moment, read_moment};
use std::cell::RefCell;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// The first is 1.
    pub line: usize,
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// The mistakes of a text, and where its lines begin.
pub struct Mistakes {
    begins: Vec<usize>,
    told: RefCell<Vec<Mistake>>,
}

impl Mistakes {
    pub fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let begins = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { begins, told: RefCell::default() }
    }

    pub fn line(&self, span: Range<usize>) -> usize {
        self.begins.partition_point(|begin| *begin <= span.start)
    }

    pub fn tell(&self, line: usize, what: String) {
        self.told.borrow_mut().push(Mistake { line, what });
    }

    /// In the order of their lines.
    pub fn into_sorted(self) -> Vec<Mistake> {
        let mut told = self.told.into_inner();
        told.sort();
        told
    }
}

/// A value with its line.
#[derive(Clone)]
pub struct Lined<T> {
    pub line: usize,
    pub value: T,
}

/// A table of the file that is being read.
pub struct Entries<'t> {
    /// What it describes, with its article.
    of: &'static str,
    pub line: usize,
    table: &'t DeTable<'t>,
    mistakes: &'t Mistakes,
    asked: Vec<&'static str>,
}

impl<'t> Entries<'t> {
    pub fn new(of: &'static str, table: &'t Spanned<DeTable<'t>>, mistakes: &'t Mistakes) -> Self {
        let line = mistakes.line(table.span());
        Self { of, line, table: table.as_ref(), mistakes, asked: Vec::new() }
    }

    fn find(&mut self, key: &'static str) -> Option<Lined<&'t DeValue<'t>>> {
        self.asked.push(key);
        let found = self.table.get(key)?;
        Some(Lined { line: self.mistakes.line(found.span()), value: found.as_ref() })
    }

    fn refuse<T>(&self, line: usize, key: &str, found: &DeValue<'_>, allowed: &str) -> Option<T> {
        let kind = found.type_str();
        self.mistakes.tell(line, format!("{key} is of the kind {kind}, allowed is {allowed}"));
        None
    }

    pub fn text(&mut self, key: &'static str) -> Option<Lined<String>> {
        let Lined { line, value } = self.find(key)?;
        match value.as_str() {
            Some(text) => Some(Lined { line, value: text.to_owned() }),
            None => self.refuse(line, key, value, "text, as in \"text\""),
        }
    }

    /// The same where the table cannot be without it.
    pub fn needed_text(&mut self, key: &'static str) -> Option<Lined<String>> {
        if self.table.get(key).is_none() {
            self.mistakes.tell(self.line, format!("{} needs a {key}", self.of));
        }
        self.text(key)
    }

    /// A moment, as a date with its time and offset, plain or as text; the table cannot be without it.
    pub fn needed_moment(&mut self, key: &'static str) -> Option<Lined<u64>> {
        let Some(Lined { line, value }) = self.find(key) else {
            self.mistakes.tell(self.line, format!("{} needs a {key}", self.of));
            return None;
        };
        let read = match value {
            DeValue::Datetime(given) => moment(*given),
            DeValue::String(given) => read_moment(given),
            _ => None,
        };
        if read.is_none() {
            self.mistakes.tell(line, format!("{key} is no moment, allowed are such as 2026-11-27T09:00:00+01:00"));
        }
        read.map(|value| Lined { line, value })
    }

    pub fn number(&mut self, key: &'static str, allowed: RangeInclusive<i64>) -> Option<Lined<i64>> {
        let Lined { line, value } = self.find(key)?;
        let (least, most) = (allowed.start(), allowed.end());
        let Some(written) = value.as_integer() else {
            return self.refuse(line, key, value, &format!("{least} to {most}"));
        };
        let read = i64::from_str_radix(written.as_str(), written.radix()).ok().filter(|read| allowed.contains(read));
        if read.is_none() {
            self.mistakes.tell(line, format!("{key} = {}, allowed is {least} to {most}", written.as_str()));
        }
        read.map(|value| Lined { line, value })
    }

    /// The same of what is counted.
    pub fn count(&mut self, key: &'static str, allowed: RangeInclusive<usize>) -> Option<usize> {
        let (least, most) = allowed.into_inner();
        let bound = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.number(key, bound(least)..=bound(most)).and_then(|count| usize::try_from(count.value).ok())
    }

    pub fn is_set(&mut self, key: &'static str) -> bool {
        let Some(Lined { line, value }) = self.find(key) else { return false };
        value.as_bool().or_else(|| self.refuse(line, key, value, "true or false")).unwrap_or_default()
    }

    /// A list of texts.
    pub fn texts(&mut self, key: &'static str) -> Option<Lined<Vec<Lined<String>>>> {
        let found = self.find(key)?;
        match found.value {
            DeValue::Array(_) => Some(self.elements(key, &found)),
            other => self.refuse(found.line, key, other, "a list, as in [\"a\", \"b\"]"),
        }
    }

    /// One text, or a list.
    pub fn text_or_texts(&mut self, key: &'static str) -> Option<Lined<Vec<Lined<String>>>> {
        let found = self.find(key)?;
        match found.value {
            DeValue::Array(_) => Some(self.elements(key, &found)),
            DeValue::String(text) => {
                let one = Lined { line: found.line, value: text.to_string() };
                Some(Lined { line: found.line, value: vec![one] })
            }
            other => self.refuse(found.line, key, other, "\"a\" or [\"a\", \"b\"]"),
        }
    }

    fn elements(&self, key: &str, found: &Lined<&'t DeValue<'t>>) -> Lined<Vec<Lined<String>>> {
        let array = found.value.as_array().into_iter().flat_map(|array| array.iter());
        let texts = array.filter_map(|element| {
            let line = self.mistakes.line(element.span());
            match element.as_ref().as_str() {
                Some(text) => Some(Lined { line, value: text.to_owned() }),
                None => self.refuse(line, &format!("an element of {key}"), element.as_ref(), "text"),
            }
        });
        Lined { line: found.line, value: texts.collect() }
    }

    /// The tables under `[[key]]`.
    pub fn tables(&mut self, key: &'static str, of: &'static str) -> Vec<Entries<'t>> {
        let Some(found) = self.find(key) else { return Vec::new() };
        let allowed = format!("[[{key}]] for each");
        let Some(array) = found.value.as_array() else {
            self.refuse::<()>(found.line, key, found.value, &allowed);
            return Vec::new();
        };
        let tables = array.iter().filter_map(|element| {
            let line = self.mistakes.line(element.span());
            let Some(table) = element.as_ref().as_table() else {
                return self.refuse(line, key, element.as_ref(), &allowed);
            };
            Some(Entries { of, line, table, mistakes: self.mistakes, asked: Vec::new() })
        });
        tables.collect()
    }

    /// What nobody has asked for is no key of this table.
    pub fn end(self) {
        for key in self.table.keys().filter(|key| !self.asked.contains(&key.as_ref().as_ref())) {
            let line = self.mistakes.line(key.span());
            let allowed = self.asked.join(", ");
            self.mistakes.tell(line, format!("{} has no '{}', allowed are {allowed}", self.of, key.as_ref()));
        }
    }
}
