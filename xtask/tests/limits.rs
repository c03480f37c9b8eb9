//! How large files, functions and structs may be.
//!
//! What was larger when the limits came is listed with its size, which only falls; what fits comes off the list.

mod tree;

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 60;
const STRUCT_FIELDS: usize = 20;

/// What is larger still: what it is, where, and how large.
const LEFT: &[(&str, usize)] = &[
    ("fabric/collective/src/algorithm/tests.rs", 549),
    ("fabric/core/src/status.rs struct Counters", 24),
    ("fabric/core/tests/links.rs", 533),
    ("fabric/device/src/shm/stream/mirror.rs", 564),
    ("fabric/device/src/shm/stream/mirror.rs struct Record", 25),
    ("fabric/device/src/shm/stream/properties.rs fn what_is_sent_is_received_in_order_over_every_switch", 71),
    ("fabric/device/src/tcp/tests.rs", 665),
    ("fabric/protocol/src/consensus.rs fn run", 67),
    ("interfaces/mpi/table/src/fortran/modules.rs fn callbacks", 90),
    ("interfaces/sockets/src/conn.rs", 589),
    ("interfaces/sockets/src/conn.rs struct Connection", 24),
    ("interfaces/sockets/src/epoll/control.rs", 553),
    ("interfaces/sockets/src/epoll/set.rs struct Registration", 22),
    ("interfaces/sockets/src/life.rs", 505),
    ("interfaces/sockets/src/poll.rs", 525),
    ("tools/cli/src/fronts/draft.rs struct Draft", 22),
];

/// The name of the item that a line begins, if it is one of `kind` (`fn`, `struct`).
fn name_of<'a>(line: &'a str, kind: &str) -> Option<&'a str> {
    let mut words = line.trim_start().split(' ');
    let is_before = |word: &str| {
        word.starts_with("pub")
            || ["const", "unsafe", "extern", "\"C\"", "\"C-unwind\"", "in", "crate)"].contains(&word)
    };
    let found = words.by_ref().find(|word| !is_before(word))?;
    let name = (found == kind).then(|| words.next()).flatten()?;
    let end = name.find(|letter: char| !(letter.is_alphanumeric() || letter == '_')).unwrap_or(name.len());
    Some(&name[..end])
}

/// How many lines an item has that begins with the first of these, as rustfmt sets it: it ends with a brace that
/// stands as far to the right as its beginning.
fn lines_of(lines: &[&str]) -> Option<usize> {
    let indent = lines[0].len() - lines[0].trim_start().len();
    let end = format!("{}}}", " ".repeat(indent));
    let is_declared = |line: &str| line.ends_with(';') && line.len() - line.trim_start().len() == indent;
    let at = lines.iter().position(|line| **line == end || is_declared(line) || line.ends_with(" {}"))?;
    (lines[at] == end).then_some(at + 1)
}

/// The fields of a struct that begins with the first of these lines.
fn fields_of(lines: &[&str]) -> usize {
    let Some(count) = lines_of(lines) else { return 0 };
    let indent = lines[0].len() - lines[0].trim_start().len() + 4;
    let is_field = |line: &&&str| {
        let text = line.trim_start();
        line.len() - text.len() == indent && !text.starts_with(['/', '#', '}', ')']) && text.contains(": ")
    };
    lines[1..count].iter().filter(is_field).count()
}

/// Everything in a source that is larger than it may be.
fn too_large(path: &str, text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    if lines.len() > FILE_LINES && !lines[..5].iter().any(|line| line.contains("Generated from ")) {
        found.push((path.to_owned(), lines.len()));
    }
    for (at, line) in lines.iter().enumerate() {
        if let Some(name) = name_of(line, "fn")
            && let Some(count) = lines_of(&lines[at..]).filter(|count| *count > FUNCTION_LINES)
        {
            found.push((format!("{path} fn {name}"), count));
        }
        if let Some(name) = name_of(line, "struct").filter(|_| line.ends_with('{')) {
            let fields = fields_of(&lines[at..]);
            if fields > STRUCT_FIELDS {
                found.push((format!("{path} struct {name}"), fields));
            }
        }
    }
    found
}

#[test]
fn nothing_is_larger_than_it_may_be() {
    let found: Vec<(String, usize)> =
        tree::texts("*.rs").iter().flat_map(|(path, text)| too_large(path, text)).collect();
    let listed = |what: &str| LEFT.iter().find(|(name, _)| *name == what).map(|(_, size)| *size);
    let grown: Vec<_> = found.iter().filter(|(what, size)| listed(what).is_none_or(|left| *size > left)).collect();
    assert!(
        grown.is_empty(),
        "files have {FILE_LINES} lines at most, functions {FUNCTION_LINES}, structs \
        {STRUCT_FIELDS} fields: {grown:#?}"
    );
    let fits: Vec<_> = LEFT.iter().filter(|(name, _)| !found.iter().any(|(what, _)| what == name)).collect();
    assert!(fits.is_empty(), "these fit now and come off the list: {fits:#?}");
}

#[test]
fn what_is_too_large_is_seen() {
    let body = "        g();\n".repeat(FUNCTION_LINES);
    let fields = (0..=STRUCT_FIELDS).map(|n| format!("    /// A: b.\n    pub f{n}: u8,\n")).collect::<String>();
    let text = format!(
        "pub(crate) struct S {{\n{fields}}}\n\nimpl S {{\n    fn a();\n    pub unsafe fn f(\n        x: u8,\n    ) {{\n{body}    }}\n}}\n"
    );
    let found = too_large("a.rs", &text);
    let names: Vec<&str> = found.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(names, ["a.rs struct S", "a.rs fn f"]);
    assert!(too_large("a.rs", "fn f() {\n    g();\n}\n").is_empty());
    assert_eq!(too_large("a.rs", &"// a\n".repeat(FILE_LINES + 1)), [("a.rs".to_owned(), FILE_LINES + 1)]);
}
