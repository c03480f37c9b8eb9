//! `parallel`: TCGMSG's launcher. A PROCGRP file says who runs what, where; the rest of the command line goes to all
//! programs.
//!
//! A line is `USER HOST PROCESSES PROGRAM DIRECTORY`. The file is, as with TCGMSG, the first of: the first argument
//! with `.p` behind it, the same under `pdir` in the home directory, what `PROCGRP` names, and `PROCGRP` here. Other
//! programs have the same name (GNU parallel): where there is no such file, the next one in `PATH` is meant.

use super::mpiexec;
use crate::EXIT_USAGE;
use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const ALLOWED: &str = "a line is: USER HOST PROCESSES PROGRAM DIRECTORY";

/// Most processes of one line.
const MOST: usize = 8192;

/// What `parallel --help` says.
pub fn help() -> String {
    format!(
        "Usage: parallel [NAME] [ARGUMENTS]...\n\n\
         Runs TCGMSG programs as a PROCGRP file says: NAME.p, ~/pdir/NAME.p, the file that the variable PROCGRP names, or \
         PROCGRP here. {ALLOWED}; # begins a comment. Arguments go to all programs, with NAME if it is given.\n\n\
         weft run and mpiexec start such programs without a file.\n"
    )
}

/// What is known of where the command runs.
struct ParallelPlace {
    host: String,
    directory: PathBuf,
}

pub fn main(front: &str, arguments: &[OsString]) -> i32 {
    if arguments.first().is_some_and(|word| word == "--help" || word == "-help") && !is_other_meant() {
        print!("{}", help());
        return 0;
    }
    let Some(file) = candidates(arguments).into_iter().find(|file| file.is_file()) else {
        return leave_to_other(front, arguments);
    };
    let here = ParallelPlace { host: weft_agent::host_name(), directory: std::env::current_dir().unwrap_or_default() };
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{} cannot be read: {error}", file.display()));
    match text.and_then(|text| words(&file.display().to_string(), &text, arguments, &here)) {
        Ok(words) => mpiexec::main(front, &words),
        Err(slip) => {
            eprintln!("{front}: {slip}");
            EXIT_USAGE
        }
    }
}

fn candidates(arguments: &[OsString]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if let Some(name) = arguments.first() {
        let mut name = name.clone();
        name.push(".p");
        files.push(PathBuf::from(&name));
        files.extend(std::env::var_os("HOME").map(|home| Path::new(&home).join("pdir").join(&name)));
    }
    files.extend(std::env::var_os("PROCGRP").map(PathBuf::from));
    files.push("PROCGRP".into());
    files
}

/// Another command of this name.
fn other() -> Option<PathBuf> {
    let ours = std::env::current_exe().ok()?;
    let folders = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&folders).map(|folder| folder.join("parallel")).filter(|path| path.is_file());
    found.into_iter().find(|path| path.canonicalize().is_ok_and(|path| path != ours))
}

fn is_other_meant() -> bool {
    candidates(&[]).iter().all(|file| !file.is_file()) && other().is_some()
}

fn leave_to_other(front: &str, arguments: &[OsString]) -> i32 {
    let files: Vec<String> = candidates(arguments).iter().map(|file| file.display().to_string()).collect();
    let none = format!("{front}: no PROCGRP file says what to run: there is none of {}", files.join(", "));
    match other() {
        Some(other) => eprintln!("{none}; and {} cannot be started: {}", other.display(), {
            Command::new(&other).args(arguments).exec()
        }),
        None => eprintln!("{none}"),
    }
    EXIT_USAGE
}

/// What `mpiexec` is given.
fn words(name: &str, text: &str, arguments: &[OsString], here: &ParallelPlace) -> Result<Vec<OsString>, String> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        if !fields.is_empty() {
            lines.push(read(&fields).map_err(|slip| format!("{name}:{}: {slip}; {ALLOWED}", at + 1))?);
        }
    }
    if lines.is_empty() {
        return Err(format!("{name}: no line says what to run; {ALLOWED}"));
    }
    let hosts: HashSet<&str> = lines.iter().map(|line| line.host).collect();
    let all_here = hosts.iter().all(|host| is_here(host, here));
    let mut words: Vec<OsString> = Vec::new();
    for line in &lines {
        if !words.is_empty() {
            words.push(":".into());
        }
        words.extend(["-n".into(), line.processes.to_string().into()]);
        if !all_here {
            words.extend(["-host".into(), format!("{}:{}", line.host, line.processes).into()]);
        }
        if line.directory != "." {
            words.extend(["-wdir".into(), line.directory.into()]);
        }
        // A path is one from where the command is given, wherever the program then works.
        let is_path = line.program.contains('/') || here.directory.join(line.program).is_file();
        let program = if is_path { here.directory.join(line.program).into() } else { OsString::from(line.program) };
        words.push(program);
        words.extend(arguments.iter().cloned());
    }
    Ok(words)
}

fn is_here(host: &str, here: &ParallelPlace) -> bool {
    host == "localhost" || host == here.host || here.host.split('.').next() == Some(host)
}

struct ProcgrpLine<'a> {
    host: &'a str,
    processes: usize,
    program: &'a str,
    directory: &'a str,
}

fn read<'a>(fields: &[&'a str]) -> Result<ProcgrpLine<'a>, String> {
    let &[_user, host, count, program, directory] = fields else { return Err(format!("{} words", fields.len())) };
    let processes = count.parse().ok().filter(|count| (1..=MOST).contains(count));
    let processes = processes.ok_or_else(|| format!("'{count}' is no number of processes, 1 to {MOST}"))?;
    Ok(ProcgrpLine { host, processes, program, directory })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, arguments: &[&str]) -> Result<String, String> {
        let here = ParallelPlace { host: "dirac.example".into(), directory: "/where".into() };
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        let words = words("P", text, &arguments, &here)?;
        Ok(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_file_becomes_a_command_line() {
        let local = "# two kinds\nme dirac 3 ./test.x /tmp # here\nme localhost 1 other.x .\n";
        assert_eq!(
            told(local, &["-v", "7"]).as_deref(),
            Ok("-n 3 -wdir /tmp /where/./test.x -v 7 : -n 1 other.x -v 7")
        );
        let far = "me dirac 1 /bin/a /tmp\nme boys 2 /bin/b .";
        let expected = "-n 1 -host dirac:1 -wdir /tmp /bin/a : -n 2 -host boys:2 /bin/b";
        assert_eq!(told(far, &[]).as_deref(), Ok(expected));
    }

    #[test]
    fn bad_lines_are_told_with_their_number_and_what_is_allowed() {
        let told = |text| told(text, &[]).expect_err("a slip");
        let allowed = "a line is: USER HOST PROCESSES PROGRAM DIRECTORY";
        assert_eq!(told("\nme dirac 3 a"), format!("P:2: 4 words; {allowed}"));
        assert_eq!(told("me dirac none a ."), format!("P:1: 'none' is no number of processes, 1 to 8192; {allowed}"));
        assert_eq!(told("# nothing\n"), format!("P: no line says what to run; {allowed}"));
    }
}
