//! Tests that say nothing for long: something hangs. Who hangs is told, and ended, so that the other tests are run.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Longer than any build or test is silent.
pub const LIMIT: Duration = Duration::from_mins(15);

/// A process, as `/proc` tells of it.
struct SeenProcess {
    id: u32,
    parent: u32,
    command: String,
    /// Where in the kernel it waits.
    waits_in: String,
}

impl SeenProcess {
    fn read(folder: &Path) -> Option<Self> {
        let id = folder.file_name()?.to_str()?.parse().ok()?;
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        // The name in parentheses may hold anything.
        let parent = read("stat").rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        let command = read("cmdline").replace('\0', " ").trim().to_owned();
        Some(Self { id, parent, command, waits_in: read("wchan") })
    }
}

/// The processes that `top` has started, they themselves, and so on: parents first.
fn below(top: u32) -> Vec<SeenProcess> {
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut others: Vec<SeenProcess> = folders.filter_map(|folder| SeenProcess::read(&folder.path())).collect();
    let mut found: Vec<SeenProcess> = Vec::new();
    loop {
        let is_below =
            |process: &SeenProcess| process.parent == top || found.iter().any(|one| one.id == process.parent);
        let (next, rest) = others.into_iter().partition(is_below);
        others = rest;
        found.extend::<Vec<_>>(next);
        if !others.iter().any(|process| found.iter().any(|one| one.id == process.parent)) {
            return found;
        }
    }
}

/// Tells which processes below `top` there are, and kills the last ones, which nobody of them waits for: those above
/// see how they ended.
pub fn end_who_hangs(top: u32) {
    let all = below(top);
    println!("nothing was said for {} minutes; there are", LIMIT.as_secs() / 60);
    for SeenProcess { id, command, waits_in, .. } in &all {
        println!("  {id} in {waits_in}: {command}");
    }
    for process in all.iter().filter(|process| !all.iter().any(|other| other.parent == process.id)) {
        println!("{} is killed", process.id);
        if let Err(error) = Command::new("sh").args(["-c", &format!("kill -9 {}", process.id)]).status() {
            println!("{} could not be killed: {error}", process.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn the_last_of_a_family_is_found_and_ended() {
        let mut shell = Command::new("sh");
        let mut top = shell.args(["-c", "sh -c 'sleep 1000; exit 3'; exit $?"]).stdin(Stdio::null()).spawn().unwrap();
        while !below(std::process::id()).iter().any(|process| process.command == "sleep 1000") {
            assert!(top.try_wait().unwrap().is_none());
        }
        assert!(below(top.id()).len() >= 2);
        end_who_hangs(top.id());
        assert_eq!(top.wait().unwrap().code(), Some(3));
    }
}
