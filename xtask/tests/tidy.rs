//! Rules that no compiler knows, held against every file of the repository.

mod tree;

use tree::root;

/// No file of any kind grows beyond this; those of Rust have a closer limit in `limits.rs`.
const LONGEST: usize = 700;

/// A generated file says so in its first lines, and is exempt from the limit.
const GENERATED: &str = "Generated from ";

/// No line of a page or a comment is longer, in characters.
const WIDEST: usize = 120;

/// Here rows of tables may be longer: they are what a benchmark has printed, with a column for each library.
const PRINTED: &str = "docs/measurements/";

struct File {
    path: String,
    text: String,
}

/// Every text file that git keeps or would keep.
fn files() -> Vec<File> {
    tree::texts("*").into_iter().map(|(path, text)| File { path, text }).collect()
}

fn is_source(file: &File) -> bool {
    [".rs", ".c", ".h", ".cpp", ".py", ".sh", ".toml", ".md"].iter().any(|ending| file.path.ends_with(ending))
}

fn is_generated(file: &File) -> bool {
    file.path == "Cargo.lock" || file.text.lines().take(5).any(|line| line.contains(GENERATED))
}

fn too_long(file: &File) -> Option<String> {
    let lines = file.text.lines().count();
    (is_source(file) && !is_generated(file) && lines > LONGEST)
        .then(|| format!("{}: {lines} lines, {LONGEST} are allowed", file.path))
}

/// The first line of a crate that says something says what the crate is.
fn without_crate_doc(file: &File) -> Option<String> {
    let is_crate = file.path.ends_with("src/lib.rs") || file.path.ends_with("src/main.rs");
    (is_crate && !file.text.starts_with("//! ")).then(|| format!("{}: must begin with a `//!` line", file.path))
}

/// Marks of unfinished work. Written in two parts, so that this file does not hold them.
fn unfinished(file: &File) -> Option<String> {
    let marks =
        [["tod", "o!("], ["unimple", "mented!("], ["FIX", "ME"], ["TO", "DO"], ["XX", "X:"]].map(|m| m.concat());
    let mark = marks.iter().find(|mark| file.text.contains(mark.as_str()))?;
    Some(format!("{}: holds {mark:?}", file.path))
}

/// Paths that exist on one machine only.
fn machine_path(file: &File) -> Option<String> {
    let places = [["/ho", "me/"], ["/ro", "ot/"], ["/wo", "rk/"], ["/Use", "rs/"]].map(|place| place.concat());
    let line = file.text.lines().find(|line| places.iter().any(|place| begins_path(line, place)))?;
    Some(format!("{}: names a place of one machine: {}", file.path, line.trim()))
}

/// Whether `place` stands in the line as the beginning of a path, not in the middle of one.
fn begins_path(line: &str, place: &str) -> bool {
    let in_path = |c: char| c.is_alphanumeric() || "/._-}~)".contains(c);
    line.match_indices(place).any(|(at, _)| !line[..at].ends_with(in_path))
}

fn ends_badly(file: &File) -> Option<String> {
    let trailing = file.text.lines().any(|line| line.ends_with([' ', '\t']));
    (is_source(file) && (trailing || !file.text.is_empty() && !file.text.ends_with('\n')))
        .then(|| format!("{}: has white space at the end of a line, or no end of its last line", file.path))
}

/// A page is read in a terminal and in a diff. Tables count as well: what does not fit into a cell stands below the
/// table.
fn too_wide(file: &File) -> Option<String> {
    let is_prose = |line: &str| match file.path.rsplit('.').next() {
        Some("md") => !(file.path.starts_with(PRINTED) && line.starts_with('|')),
        Some("rs") => line.trim_start().starts_with("//"),
        _ => false,
    };
    let number = file.text.lines().position(|line| line.chars().count() > WIDEST && is_prose(line))? + 1;
    Some(format!("{}:{number}: longer than {WIDEST} characters", file.path))
}

/// A path of the repository between back quotes, on the map of the house, leads somewhere.
fn leads_nowhere(file: &File) -> Option<String> {
    let is_path = |text: &&str| {
        ["fabric/", "interfaces/", "cluster/", "tools/", "apps/", "xtask/"].iter().any(|room| text.starts_with(room))
    };
    let quoted = file.text.split('`').skip(1).step_by(2).filter(is_path);
    let missing: Vec<&str> = quoted.filter(|path| !root().join(path).exists()).collect();
    (file.path == "ARCHITECTURE.md" && !missing.is_empty()).then(|| format!("{}: no such file: {missing:?}", file.path))
}

fn all(rule: fn(&File) -> Option<String>) -> Vec<String> {
    files().iter().filter_map(rule).collect()
}

#[test]
fn no_file_is_too_long() {
    assert_eq!(all(too_long), Vec::<String>::new());
}

#[test]
fn every_crate_says_what_it_is() {
    assert_eq!(all(without_crate_doc), Vec::<String>::new());
}

#[test]
fn nothing_is_left_unfinished() {
    assert_eq!(all(unfinished), Vec::<String>::new());
}

#[test]
fn no_file_names_a_place_of_one_machine() {
    assert_eq!(all(machine_path), Vec::<String>::new());
}

#[test]
fn lines_and_files_end_cleanly() {
    assert_eq!(all(ends_badly), Vec::<String>::new());
}

#[test]
fn no_line_of_a_page_is_too_wide() {
    assert_eq!(all(too_wide), Vec::<String>::new());
}

#[test]
fn every_file_on_the_map_is_there() {
    assert_eq!(all(leads_nowhere), Vec::<String>::new());
}

#[test]
fn each_rule_sees_what_it_is_there_for() {
    let file = |path: &str, text: String| File { path: path.to_owned(), text };
    let long = "x\n".repeat(LONGEST + 1);
    assert!(too_long(&file("a.rs", long.clone())).is_some());
    assert!(too_long(&file("a.rs", format!("// {GENERATED}b\n{long}"))).is_none());
    assert!(without_crate_doc(&file("a/src/lib.rs", "pub mod b;\n".into())).is_some());
    assert!(unfinished(&file("a.rs", ["tod", "o!()"].concat())).is_some());
    assert!(machine_path(&file("a.rs", ["\"/ho", "me/b\""].concat())).is_some());
    assert!(machine_path(&file("a.rs", ["target/ho", "me/b"].concat())).is_none());
    assert!(ends_badly(&file("a.md", "line \n".into())).is_some());
    assert!(ends_badly(&file("a.md", "line".into())).is_some());
    let wide = "x".repeat(WIDEST + 1);
    assert!(too_wide(&file("a.md", format!("a\n{wide}\n"))).is_some_and(|line| line.contains("a.md:2:")));
    assert!(too_wide(&file("a.md", format!("|{wide}\n"))).is_some() && too_wide(&file("a.rs", wide.clone())).is_none());
    assert!(too_wide(&file("docs/measurements/a.md", format!("|{wide}\n"))).is_none());
    assert!(too_wide(&file("docs/measurements/a.md", wide.clone())).is_some());
    assert!(too_wide(&file("a.rs", format!("    // {wide}\n"))).is_some());
    assert!(leads_nowhere(&file("ARCHITECTURE.md", "see `fabric/core/src/none.rs`".into())).is_some());
    assert!(leads_nowhere(&file("ARCHITECTURE.md", "see `fabric/core/src/lib.rs`, `fabric`".into())).is_none());
}
