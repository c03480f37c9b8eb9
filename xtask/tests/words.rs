//! The words of the house: `GLOSSARY.md` against the code, and that no name of a type stands for several things.

mod tree;

use std::collections::BTreeMap;
use std::fs;
use tree::{root, sources};

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

/// Every name with more than one definition, with the places of all.
fn same_names(sources: &[(String, String)]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, text) in sources {
        for name in without_tests(text).lines().filter_map(defined) {
            places.entry(name).or_default().push(path);
        }
    }
    let same = places.into_iter().filter(|(_, places)| places.len() > 1);
    same.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect()
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
fn no_two_types_have_one_name() {
    assert_eq!(same_names(&sources()), Vec::<String>::new(), "find another name for the new one");
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
fn two_types_of_one_name_are_found() {
    let source = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let inside = "#[cfg(test)]\nmod tests {\n    struct A;\n}\n";
    let all = [source("one", "struct A;\nenum B {}\n"), source("two", "pub struct C;\n"), source("three", inside)];
    assert_eq!(same_names(&all), Vec::<String>::new());
    assert_eq!(same_names(&[&all[..], &[source("four", "trait A {}\n")]].concat()), ["A: one, four"]);
}
