//! Where the kernel writes cores: what `kernel.core_pattern` says.

use std::path::{Path, PathBuf};

/// The pattern of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorePattern {
    /// A program reads them.
    Piped(String),
    /// The directory, relative to that of the process, and what names begin to look like.
    File { directory: PathBuf, name: Vec<NamePart>, text: String },
}

/// A piece of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamePart {
    Text(String),
    /// The number of the process.
    Pid,
    /// Something that is not known any more: a time, the name of a thread.
    Anything,
}

impl CorePattern {
    /// As this host's kernel has it.
    pub fn of_this_host() -> Self {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        let with_pid = read("core_uses_pid").trim() == "1";
        Self::parse(read("core_pattern").trim(), with_pid)
    }

    /// `with_pid`: the number follows a name that does not have it.
    pub fn parse(text: &str, with_pid: bool) -> Self {
        if let Some(program) = text.strip_prefix('|') {
            return Self::Piped(program.to_owned());
        }
        let text = if text.is_empty() { "core" } else { text };
        let (directory, name) = text.rsplit_once('/').map_or(("", text), |(directory, name)| (directory, name));
        let directory = if text.starts_with('/') { format!("{directory}/") } else { directory.to_owned() };
        let mut parts = parts(name);
        if with_pid && !parts.contains(&NamePart::Pid) {
            parts.extend([NamePart::Text(".".to_owned()), NamePart::Pid]);
        }
        Self::File { directory: directory.into(), name: parts, text: text.to_owned() }
    }

    /// The files in the directory of a process, or elsewhere, that may be its core.
    pub fn candidates(&self, start: &Path) -> Vec<PathBuf> {
        let Self::File { directory, name, .. } = self else { return Vec::new() };
        let folder = start.join(directory);
        let Ok(entries) = std::fs::read_dir(&folder) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|given| matches(name, given)).map(|name| folder.join(name)).collect()
    }
}

fn parts(name: &str) -> Vec<NamePart> {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some(at) = rest.find('%') {
        let (text, after) = rest.split_at(at);
        if !text.is_empty() {
            parts.push(NamePart::Text(text.to_owned()));
        }
        let mut letters = after[1..].chars();
        match letters.next() {
            Some('p') => parts.push(NamePart::Pid),
            Some('%') => parts.push(NamePart::Text("%".to_owned())),
            Some(_) => parts.push(NamePart::Anything),
            None => {}
        }
        rest = letters.as_str();
    }
    if !rest.is_empty() {
        parts.push(NamePart::Text(rest.to_owned()));
    }
    parts
}

/// A wrapper's number is not that of the program that it runs, so any number will do; whose it is the core itself says.
fn matches(parts: &[NamePart], name: &str) -> bool {
    match parts {
        [] => name.is_empty(),
        [NamePart::Text(text), rest @ ..] => name.strip_prefix(text.as_str()).is_some_and(|name| matches(rest, name)),
        [NamePart::Pid, rest @ ..] => {
            let digits = name.len() - name.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
            digits > 0 && matches(rest, &name[digits..])
        }
        [NamePart::Anything, rest @ ..] => {
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| matches(rest, &name[at..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, with_pid: bool, names: &[&str]) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        names.iter().for_each(|name| std::fs::write(folder.path().join(name), "").expect("written"));
        let mut found: Vec<String> = CorePattern::parse(pattern, with_pid)
            .candidates(folder.path())
            .iter()
            .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
            .collect();
        found.sort();
        found
    }

    #[test]
    fn names_are_found_whatever_the_kernel_puts_in() {
        let names = ["core", "core.7", "core.x", "core.prog.7.1800000000", "other"];
        assert_eq!(found("core", false, &names), ["core"]);
        assert_eq!(found("core", true, &names), ["core.7"]);
        assert_eq!(found("core.%p", true, &names), ["core.7"]);
        assert_eq!(found("core.%e.%p.%t", false, &names), ["core.prog.7.1800000000"]);
        assert_eq!(found("", false, &names), ["core"]);
        assert!(found("|/usr/lib/catch %p", false, &names).is_empty());
    }

    #[test]
    fn directories_are_the_pattern_s() {
        let CorePattern::File { directory, .. } = CorePattern::parse("/var/cores/core.%p", false) else { panic!() };
        assert_eq!(Path::new("/start").join(directory), Path::new("/var/cores/"));
        let CorePattern::File { directory, .. } = CorePattern::parse("cores/c", false) else { panic!() };
        assert_eq!(Path::new("/start").join(directory), Path::new("/start/cores"));
    }
}
