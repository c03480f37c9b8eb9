//! Files of a crate do not import each other in circles.
//!
//! An import is a path that begins with `crate`, `super`, `self` or a module of the same file, in code that is no test.
//! What a file takes from the modules below it is not counted: it is their door. Where two files need each other, what
//! both need lies in a third below them, and what runs in both directions is registered below instead of being called
//! by name from there.

mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tree::root;

/// Files that lie in circles still, by crate. These numbers only fall.
const LEFT: [(&str, usize); 3] = [("fabric/core", 6), ("interfaces/sockets", 38), ("tools/cli", 2)];

/// A module, by its names from the root of the crate.
type Module = Vec<String>;

/// For every module, which others it imports from.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// The folders of all crates that have sources.
fn crates() -> Vec<PathBuf> {
    let manifests = tree::texts("*Cargo.toml");
    let folders = manifests.iter().filter_map(|(path, _)| Path::new(path).parent()).map(Path::to_owned);
    folders.filter(|folder| root().join(folder).join("src").is_dir()).collect()
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

fn module_of(file: &Path) -> Module {
    let mut names: Module =
        file.with_extension("").iter().map(|name| name.to_str().expect("file names are text").to_owned()).collect();
    if names.last().is_some_and(|last| last == "mod") || names == ["lib"] || names == ["main"] {
        names.pop();
    }
    names
}

/// The code without comments and without the tests at its end.
fn code_of(text: &str) -> String {
    let is_test = |line: &str| line.starts_with("#[cfg(") && line.contains("test");
    let lines: Vec<&str> = text.lines().collect();
    let begins_tests = |at: &usize| {
        let next = lines.get(at + 1).copied().unwrap_or_default();
        is_test(lines[*at]) && next.contains("mod ") && next.ends_with('{')
    };
    let end = (0..lines.len()).find(begins_tests).unwrap_or(lines.len());
    let without_comment = |line: &&str| line.split("//").next().unwrap_or_default().to_owned() + "\n";
    lines[..end].iter().map(without_comment).collect()
}

/// `a::{b, c::{d, e}}` as three paths. What is renamed keeps its own name.
fn branches(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((stem, rest)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or_default().trim().to_owned()];
    };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut begin, mut paths) = (0, 0, Vec::new());
    for (at, letter) in inner.char_indices().chain([(inner.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let below = Some(&inner[begin..at]).filter(|part| !part.trim().is_empty()).map(branches);
                paths.extend(below.into_iter().flatten().map(|path| format!("{}{path}", stem.trim())));
                begin = at + 1;
            }
            _ => {}
        }
    }
    paths
}

/// All paths in `code`: those of its `use` lines, and those that its text names in full.
fn paths_in(code: &str) -> Vec<String> {
    let (mut paths, mut rest) = (Vec::new(), String::new());
    for statement in code.split_inclusive(';') {
        let begins = statement.match_indices("use ").find(|(at, _)| {
            let before = statement[..*at].trim_end_matches(' ');
            before.is_empty() || before.ends_with(['\n', '}', ')']) || before.ends_with("pub")
        });
        match begins {
            Some((at, word)) => paths.extend(branches(statement[at + word.len()..].trim_end_matches(';'))),
            None => rest.push_str(statement),
        }
    }
    for word in ["crate::", "super::"] {
        for (at, _) in rest.match_indices(word) {
            let before = rest[..at].chars().next_back();
            if !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_' || letter == ':') {
                let ends = |letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':');
                paths.push(rest[at..].split(ends).next().unwrap_or_default().to_owned());
            }
        }
    }
    paths
}

/// The file that holds what `path` names in `module`, if it is one of this crate.
fn target(module: &Module, path: &str, modules: &BTreeMap<Module, PathBuf>) -> Option<Module> {
    let names: Vec<&str> = path.split("::").map(str::trim).collect();
    let mut full: Module = match names[0] {
        "crate" => Vec::new(),
        "self" => module.clone(),
        "super" => module[..module.len().checked_sub(1)?].to_vec(),
        first => {
            let below = [&module[..], &[first.to_owned()]].concat();
            modules.contains_key(&below).then_some(below)?
        }
    };
    for name in &names[1..] {
        if *name == "super" {
            full.pop();
        } else {
            full.push((*name).to_owned());
        }
    }
    while !modules.contains_key(&full) {
        full.pop()?;
    }
    Some(full)
}

fn imports(sources: &Path) -> Imports {
    let mut files = Vec::new();
    files_below(sources, &mut files);
    let name = |file: &PathBuf| module_of(file.strip_prefix(sources).expect("it lies there"));
    let modules: BTreeMap<Module, PathBuf> = files.iter().map(|file| (name(file), file.clone())).collect();
    let of = |(module, file): (&Module, &PathBuf)| {
        let code = code_of(&fs::read_to_string(file).expect("a source can be read"));
        let targets = paths_in(&code).into_iter().filter_map(|path| target(module, &path, &modules));
        (module.clone(), targets.filter(|target| !target.starts_with(module)).collect())
    };
    modules.iter().map(of).collect()
}

fn reached<'a>(imports: &'a Imports, from: &'a Module) -> BTreeSet<&'a Module> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(module) = left.pop() {
        left.extend(imports.get(module).into_iter().flatten().filter(|next| seen.insert(*next)));
    }
    seen
}

/// The circles, each as the names of its files.
fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        imports.keys().map(|module| (module, reached(imports, module))).collect();
    let mut circles = BTreeSet::new();
    for (module, reached) in &reach {
        if reached.contains(module) {
            let in_both = reached.iter().filter(|other| reach.get(**other).is_some_and(|back| back.contains(module)));
            circles.insert(in_both.map(|module| module.join("/")).collect::<Vec<String>>());
        }
    }
    circles.into_iter().collect()
}

#[test]
fn no_files_of_a_crate_import_each_other_in_circles() {
    let mut wrong = Vec::new();
    for folder in crates() {
        let circles = circles(&imports(&root().join(&folder).join("src")));
        let files: usize = circles.iter().map(Vec::len).sum();
        let left = LEFT.iter().find(|(name, _)| Path::new(name) == folder).map_or(0, |(_, left)| *left);
        if files != left {
            wrong.push(format!("{}: {files} files, {left} are listed: {circles:?}", folder.display()));
        }
    }
    assert!(wrong.is_empty(), "files that import each other in circles:\n{}", wrong.join("\n"));
}

#[test]
fn a_circle_is_seen_whatever_way_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir(folder.path().join("b")).unwrap();
    write("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::inner::deep;\n");
    write("a.rs", "use crate::b::{\n    Other,\n    inner::{deep, More as Much},\n};\n");
    write("b/mod.rs", "mod inner;\nfn f() {\n    super::c::g();\n}\n");
    write("b/inner.rs", "use super::super::c;\n// use crate::a;\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n");
    write("c.rs", "pub fn g() {}\n");
    assert_eq!(circles(&imports(folder.path())), Vec::<Vec<String>>::new());
    write("c.rs", "pub fn g() {\n    let _ = [crate::a::X];\n}\n");
    assert_eq!(circles(&imports(folder.path())), [["a", "b", "b/inner", "c"]]);
}
