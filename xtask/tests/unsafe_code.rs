//! Where unsafe code stands: in the files that `unsafe_files.txt` lists, and in no other. Tests and examples are not
//! counted. A file that begins to need it, or needs it no more, shows as one line of the list in its change.
//!
//! After such a change: `WEFT_UPDATE=1 cargo test -p xtask --test unsafe_code`.

mod tree;

use std::collections::BTreeSet;
use std::fs;
use tree::{root, sources};

const LIST: &str = "xtask/tests/unsafe_files.txt";

/// The files of modules that exist in tests only: a `mod NAME;` under a `cfg` that asks for it.
fn test_modules(sources: &[(String, String)]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in sources {
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let Some(name) = module(pair[1]) else { continue };
            if is_test_only(pair[0]) {
                found.extend(places(path, name));
            }
        }
    }
    found
}

fn module(line: &str) -> Option<&str> {
    line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')
}

fn is_test_only(attribute: &str) -> bool {
    let attribute = attribute.replace("not(loom)", "");
    attribute.starts_with("#[cfg(")
        && !attribute.contains("not(")
        && (attribute.contains("test") || attribute.contains("loom"))
}

/// Where the file of a module may lie that `path` declares.
fn places(path: &str, name: &str) -> [String; 2] {
    let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.trim_end_matches(".rs");
    let own = if ["mod", "lib", "main"].contains(&stem) { directory.to_owned() } else { format!("{directory}/{stem}") };
    [format!("{own}/{name}.rs"), format!("{own}/{name}/mod.rs")]
}

/// Whether there is unsafe code besides comments, lint levels, texts, and the tests at the end of the file.
fn has_unsafe(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let tests = lines
        .windows(2)
        .position(|pair| is_test_only(pair[0]) && pair[1].starts_with("mod ") && pair[1].ends_with('{'));
    lines[..tests.unwrap_or(lines.len())].iter().any(|line| is_unsafe(line))
}

fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    // What stands between quotation marks is text.
    let outside: String = code.split('"').step_by(2).collect();
    outside.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
}

fn found() -> BTreeSet<String> {
    let sources = sources();
    assert!(sources.len() > 500, "git told of {} sources only", sources.len());
    let tests = test_modules(&sources);
    sources
        .iter()
        .filter(|(path, text)| !tests.contains(path) && has_unsafe(text))
        .map(|(path, _)| path.clone())
        .collect()
}

#[test]
fn unsafe_code_stands_in_the_files_of_the_list_and_nowhere_else() {
    let found: String = found().iter().map(|path| format!("{path}\n")).collect();
    if std::env::var_os("WEFT_UPDATE").is_some() {
        fs::write(root().join(LIST), &found).expect("the list can be written");
    }
    let listed = fs::read_to_string(root().join(LIST)).expect("the list");
    let set = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (found, listed) = (set(&found), set(&listed));
    assert_eq!(found.difference(&listed).collect::<Vec<_>>(), Vec::<&String>::new(), "unsafe, and not in {LIST}");
    assert_eq!(listed.difference(&found).collect::<Vec<_>>(), Vec::<&String>::new(), "in {LIST}, and not unsafe");
}

#[test]
fn unsafe_code_is_seen_where_it_is_code() {
    for code in ["    unsafe { x() }", "pub unsafe fn a() {", "unsafe impl Send for A {}", "f(\"a\", unsafe { x() })"] {
        assert!(is_unsafe(code), "{code}");
    }
    for other in ["// unsafe", "#![forbid(unsafe_code)]", "say(\"unsafe\")", "let a = 1; // unsafe here"] {
        assert!(!is_unsafe(other), "{other}");
    }
    assert!(!has_unsafe("fn a() {}\n#[cfg(test)]\nmod tests {\n    unsafe fn b() {}\n}\n"));
    assert!(has_unsafe("#[cfg(test)]\nmod tests;\nunsafe fn a() {}\n"));
}

#[test]
fn modules_of_tests_are_known_by_their_declaration() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let sources = [
        file("a/src/shm/mod.rs", "#[cfg(all(test, loom))]\nmod models;\n#[cfg(not(test))]\nmod real;\n"),
        file("a/src/ring.rs", "#[cfg(test)]\nmod properties;\n"),
    ];
    let tests = test_modules(&sources);
    assert!(tests.contains("a/src/shm/models.rs") && tests.contains("a/src/ring/properties.rs"));
    assert!(!tests.contains("a/src/shm/real.rs"));
}
