//! The words of the house: `GLOSSARY.md` against the code, and names of types that stand for several things.
//!
//! `same_names.txt` lists the names of types that more than one definition has, with how many. The list may only get
//! shorter: rename a type, then `WEFT_UPDATE=1 cargo test -p xtask --test words`, which lowers numbers and raises none.

mod tree;

use std::collections::BTreeMap;
use std::fs;
use tree::{root, sources};

const LIST: &str = "xtask/tests/same_names.txt";
const GLOSSARY: &str = "GLOSSARY.md";
const LONGEST: usize = 120;

/// The text of every source, up to its unit tests.
fn codes() -> Vec<String> {
    sources().iter().map(|(_, text)| without_tests(text).to_owned()).collect()
}

fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests {").map_or(text, |end| &text[..end])
}

/// The terms of the first table.
fn terms(glossary: &str) -> Vec<String> {
    let rows = glossary.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let cell = |row: &str| row.split('|').nth(1).unwrap_or_default().trim().to_lowercase();
    rows.take_while(|line| line.starts_with('|')).map(cell).collect()
}

/// A text as its words in lower case, a blank between each two and at both ends; `CopySlot` and `copy_slot` are two.
fn words(text: &str) -> String {
    let mut words = String::from(" ");
    let mut was_lower = false;
    for c in text.chars() {
        let begins = !c.is_alphanumeric() || c.is_uppercase() && was_lower;
        if begins && !words.ends_with(' ') {
            words.push(' ');
        }
        if c.is_alphanumeric() {
            words.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    if !words.ends_with(' ') {
        words.push(' ');
    }
    words
}

/// Terms that the code does not use, and terms that stand there twice.
fn wrong_terms(glossary: &str, code: &[String]) -> Vec<String> {
    let terms = terms(glossary);
    let is_used = |term: &String| {
        let phrase = words(term.trim_end_matches(" queue"));
        let plural = format!("{}s ", phrase.trim_end());
        code.iter().any(|text| text.contains(&phrase) || text.contains(&plural))
    };
    let unused = terms.iter().filter(|term| !is_used(term)).map(|term| format!("'{term}' is nowhere in the code"));
    let twice = terms.iter().enumerate().filter(|(at, term)| terms[..*at].contains(term));
    unused.chain(twice.map(|(_, term)| format!("'{term}' stands there twice"))).collect()
}

/// The name of the type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let code = match code.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => code,
    };
    let code = code.strip_prefix("unsafe ").unwrap_or(code);
    let kinds = ["struct ", "enum ", "trait ", "union "];
    let rest = kinds.iter().find_map(|kind| code.strip_prefix(kind))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

/// Every name with more than one definition, and how many it has.
fn same_names(sources: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in sources.iter().flat_map(|text| text.lines()).filter_map(defined) {
        *counts.entry(name.to_owned()).or_insert(0) += 1;
    }
    counts.retain(|_, count| *count > 1);
    counts
}

fn parse(list: &str) -> BTreeMap<String, usize> {
    let entry = |line: &str| {
        let (name, count) = line.split_once(' ').expect("a name and a number");
        (name.to_owned(), count.parse().expect("a number"))
    };
    list.lines().map(entry).collect()
}

/// What of `found` the list does not allow, and what of the list is no longer so.
fn differences(found: &BTreeMap<String, usize>, listed: &BTreeMap<String, usize>) -> Vec<String> {
    let more = found.iter().filter(|(name, count)| listed.get(*name).is_none_or(|most| *count > most));
    let more = more.map(|(name, count)| format!("{count} types are called {name}: find another name for the new one"));
    let fewer = listed.iter().filter(|(name, most)| found.get(*name).is_none_or(|count| count < most));
    more.chain(fewer.map(|(name, _)| format!("fewer types than listed are called {name}: shorten {LIST}"))).collect()
}

/// The list with the numbers of now where these are smaller.
fn lowered(found: &BTreeMap<String, usize>, listed: &BTreeMap<String, usize>) -> String {
    let now = listed.iter().filter_map(|(name, most)| Some((name, *found.get(name)?.min(most))));
    now.map(|(name, count)| format!("{name} {count}\n")).collect()
}

#[test]
fn every_word_of_the_glossary_is_a_word_of_the_code() {
    let glossary = fs::read_to_string(root().join(GLOSSARY)).expect("the glossary");
    assert!(terms(&glossary).len() > 50, "the table of words was not found");
    let code: Vec<String> = codes().iter().map(|text| words(text)).collect();
    assert_eq!(wrong_terms(&glossary, &code), Vec::<String>::new());
    assert!(glossary.lines().count() <= LONGEST, "{GLOSSARY} has more than {LONGEST} lines");
}

#[test]
fn no_further_type_shares_its_name_with_another() {
    let found = same_names(&codes());
    let listed = parse(&fs::read_to_string(root().join(LIST)).expect("the list"));
    if std::env::var_os("WEFT_UPDATE").is_some() {
        fs::write(root().join(LIST), lowered(&found, &listed)).expect("the list can be written");
        return;
    }
    assert_eq!(differences(&found, &listed), Vec::<String>::new());
}

#[test]
fn a_word_is_found_however_it_is_written() {
    assert_eq!(words("let a: CopySlot = copy_slot;"), " let a copy slot copy slot ");
    let glossary =
        "| word | what |\n|---|---|\n| copy slot | a |\n| copy slot | b |\n| posted queue | c |\n| none | d |\n";
    let code = [words("struct CopySlots { posted: u32 }")];
    assert_eq!(wrong_terms(glossary, &code), ["'none' is nowhere in the code", "'copy slot' stands there twice"]);
}

#[test]
fn definitions_are_seen_in_every_form() {
    for line in [
        "struct Way {",
        "pub enum Way {",
        "    pub(super) struct Way(u32);",
        "unsafe trait Way {}",
        "pub(in crate::a) enum Way<T> {",
    ] {
        assert_eq!(defined(line), Some("Way"), "{line}");
    }
    for line in ["// struct Way", "impl Way {", "let structure = 1;", "pub fn way() {"] {
        assert_eq!(defined(line), None, "{line}");
    }
}

#[test]
fn the_list_only_gets_shorter() {
    let counts = |entries: &[(&str, usize)]| entries.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    let (found, listed) = (counts(&[("A", 3), ("B", 2), ("C", 2)]), counts(&[("A", 2), ("B", 3), ("D", 2)]));
    let lines = differences(&found, &listed);
    assert!(lines.len() == 4 && lines[0].contains('A') && lines[1].contains('C'), "{lines:?}");
    assert_eq!(lowered(&found, &listed), "A 2\nB 2\n");
    assert_eq!(differences(&listed, &listed), Vec::<String>::new());
}
