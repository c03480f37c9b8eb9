//! `docs/wire` and the code that it describes: each page names its sources, with a hash of each, so that no layout
//! changes without somebody who reads its page.
//!
//! A page has a line for each source, in this form:
//!
//! ```text
//! Describes: fabric/wire/src/segment.rs (0123456789abcdef)
//! Describes: fabric/device/src/shm/ring.rs#Credits (0123456789abcdef)
//! ```
//! Behind `#` stands the one struct that counts. Comments, white space and unit tests do not count. Whoever changes a
//! source reads the page, corrects it, and renews its hashes with `cargo xtask wire-docs PAGE`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::command::root;

const PAGES: &str = "docs/wire";
const MARK: &str = "Describes: ";

/// Renews the hashes of the pages of these names, or says which pages are stale; `false` if some are.
pub fn run(names: &[String]) -> Result<bool> {
    for name in names {
        let path = root().join(PAGES).join(format!("{}.md", name.trim_end_matches(".md")));
        let page = fs::read_to_string(&path).with_context(|| format!("no page '{name}' in {PAGES}"))?;
        fs::write(&path, renewed(&page, &hash_of_source)?)?;
    }
    let stale = stale_pages()?;
    stale.iter().for_each(|line| println!("{line}"));
    Ok(stale.is_empty())
}

/// A line for each source that has changed since its page was read, and for each page that names none.
fn stale_pages() -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(root().join(PAGES))? {
        let path = entry?.path();
        let page = fs::read_to_string(&path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        lines.extend(stale_lines(&name, &page, &hash_of_source)?);
    }
    lines.sort();
    Ok(lines)
}

/// The same for one page.
fn stale_lines(name: &str, page: &str, hash: &dyn Fn(&str) -> Result<String>) -> Result<Vec<String>> {
    let sources = sources(page)?;
    if sources.is_empty() {
        return Ok(vec![format!("{PAGES}/{name}.md: has no line '{MARK}SOURCE (HASH)'")]);
    }
    let mut lines = Vec::new();
    for (source, noted) in sources {
        if hash(source)? != noted {
            lines.push(format!(
                "{PAGES}/{name}.md: {source} has changed; read the page, then: cargo xtask wire-docs {name}"
            ));
        }
    }
    Ok(lines)
}

/// What the page describes, each with the hash that it notes.
fn sources(page: &str) -> Result<Vec<(&str, &str)>> {
    page.lines().filter_map(|line| line.strip_prefix(MARK)).map(source).collect()
}

fn source(line: &str) -> Result<(&str, &str)> {
    let parts = line.strip_suffix(')').and_then(|line| line.split_once(" ("));
    parts.with_context(|| format!("'{MARK}{line}' is not of the form '{MARK}SOURCE (HASH)'"))
}

/// The page with the hashes of now.
fn renewed(page: &str, hash: &dyn Fn(&str) -> Result<String>) -> Result<String> {
    let mut text = String::new();
    for line in page.lines() {
        match line.strip_prefix(MARK) {
            None => text.push_str(line),
            Some(rest) => {
                let (source, _) = source(rest)?;
                text.push_str(&format!("{MARK}{source} ({})", hash(source)?));
            }
        }
        text.push('\n');
    }
    Ok(text)
}

fn hash_of_source(source: &str) -> Result<String> {
    let (path, item) = source.split_once('#').map_or((source, None), |(path, item)| (path, Some(item)));
    let text = fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))?;
    let Some(item) = item else { return Ok(hash(path, &text)) };
    let Some(item) = item_of(&text, item) else { bail!("{path} has no struct '{item}'") };
    Ok(hash(path, &item))
}

/// The lines of a struct, from its name to the end of its braces.
fn item_of(text: &str, name: &str) -> Option<String> {
    let begins = |line: &&str| line.ends_with(&format!("struct {name} {{"));
    let lines: Vec<&str> = text.lines().skip_while(|line| !begins(line)).collect();
    let end = lines.iter().position(|line| *line == "}")?;
    Some(lines[..=end].join("\n"))
}

/// FNV-1a with 64 bits over what counts in a source.
fn hash(path: &str, text: &str) -> String {
    let comment = if Path::new(path).extension().is_some_and(|ending| ending == "rs") { "//" } else { "#" };
    let code = what_counts(text, comment);
    let hash = code
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

/// The text up to its unit tests, without lines of comments and without white space.
fn what_counts(text: &str, comment: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" && lines.peek().is_some_and(|next| next.starts_with("mod ")) {
            break;
        }
        if !line.trim_start().starts_with(comment) {
            code.extend(line.split_whitespace());
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRE: &str = "fabric/wire/src";
    /// What of the wire's crate no page describes: it is no layout.
    const NOT_DESCRIBED: [&str; 3] = ["settings", "lib.rs", "mod.rs"];

    #[test]
    fn no_page_is_older_than_the_code_that_it_describes() {
        assert_eq!(stale_pages().expect("pages can be read"), Vec::<String>::new());
    }

    #[test]
    fn every_layout_has_a_page() {
        let pages: String = fs::read_dir(root().join(PAGES))
            .expect("the pages")
            .map(|page| fs::read_to_string(page.expect("a page").path()).expect("text"))
            .collect();
        let missing: Vec<String> = files(WIRE)
            .into_iter()
            .filter(|path| path.ends_with(".rs") && !path.ends_with("tests.rs"))
            .filter(|path| !path.split('/').any(|part| NOT_DESCRIBED.contains(&part)))
            .filter(|path| !pages.contains(&format!("{MARK}{path} (")))
            .collect();
        assert_eq!(missing, Vec::<String>::new(), "name the page that describes it");
    }

    fn files(under: &str) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(root().join(under)).expect("a directory") {
            let name = entry.expect("an entry").file_name().into_string().expect("text");
            let path = format!("{under}/{name}");
            if root().join(&path).is_dir() { found.extend(files(&path)) } else { found.push(path) }
        }
        found
    }

    const CODE: &str = "//! Head.\n\npub struct A {\n    /// One.\n    x: u32,\n}\n\npub const B: u32 = 1;\n";

    #[test]
    fn comments_white_space_and_tests_do_not_count() {
        let other = format!("{}#[cfg(test)]\nmod tests;\n", CODE.replace("One", "Two").replace("u32,", "u32 ,\n"));
        assert_eq!(hash("a.rs", CODE), hash("a.rs", &other));
        assert_ne!(hash("a.rs", CODE), hash("a.rs", &CODE.replace("= 1", "= 2")));
    }

    #[test]
    fn of_a_struct_only_its_own_lines_count() {
        let item = item_of(CODE, "A").expect("it is there");
        assert!(item.contains("x: u32") && !item.contains('B'), "{item}");
        assert_eq!(item_of(CODE, "C"), None);
    }

    #[test]
    fn a_source_that_has_changed_makes_its_page_stale_until_that_is_renewed() {
        let page = "# A page\n\nDescribes: a.rs (1)\nDescribes: b.rs (2)\n";
        let now = |source: &str| Ok(if source == "a.rs" { "1" } else { "3" }.to_owned());
        let stale = stale_lines("page", page, &now).expect("a page");
        assert!(stale.len() == 1 && stale[0].contains("b.rs"), "{stale:?}");
        let renewed = renewed(page, &now).expect("a page");
        assert_eq!(stale_lines("page", &renewed, &now).expect("a page"), Vec::<String>::new());
        assert_eq!(stale_lines("page", "# A page\n", &now).expect("a page").len(), 1);
        assert!(stale_lines("page", "Describes: a.rs\n", &now).is_err());
    }
}
