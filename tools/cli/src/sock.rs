//! `weft sock`: an unmodified network program with the socket library preloaded.
//!
//! Nothing stays between the user and the program: the environment is prepared, the rendezvous of this user is started
//! if none runs, and this process becomes the program. Only where it has something to say at the end (`--stats`) it
//! stays, and the program is its child.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use weft_agent::beside::{self, Tally};
use weft_cluster::job::Program;
use weft_wire::settings::unknown;
use weft_wire::stream::tally::{Sums, VARIABLE as TALLY_VARIABLE, WANTED_VARIABLE, WantedTally};

use crate::EXIT_USAGE;
use crate::registered::registered;
use weft_requests::RegisteredKind;

const FRONT: &str = "weft sock";
const LIBRARY: &str = "libweft_sockets.so";
const PRELOAD: &str = "LD_PRELOAD";

/// What `weft sock --help` begins with.
pub const LONG_ABOUT: &str = "\
Runs a network program, unmodified, with its TCP connections to other such programs of this host going through shared \
memory.

Both ends of a connection must be started so; with everybody else the program talks as ever, through the kernel. Programs \
that it starts are treated as it is. A program into which no library can be preloaded (linked statically, set-user-id, \
written in Go) is named, and runs without.

  weft sock redis-server --port 7000 &
  weft sock redis-benchmark -p 7000";

/// Options of `weft sock`.
#[derive(clap::Args)]
pub struct SockArguments {
    /// Say at the end what was accelerated in all processes of the command, what was not and why, and the bytes each
    /// way; on the standard error output, or in a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    stats: Option<PathBuf>,

    /// Accelerate only connections with one of these ports at one end: 80,7000-7010
    #[arg(long, value_name = "PORTS", value_parser = parse_ports)]
    only: Option<String>,

    /// Leave programs of this name alone, also where another one starts them (may be given more than once)
    #[arg(long, value_name = "PROGRAM", value_parser = parse_name)]
    not: Vec<String>,

    /// Longest busy wait before a call sleeps: microseconds, or auto
    #[arg(long, value_name = "US", value_parser = parse_spin)]
    spin: Option<String>,

    /// Refuse variables that begin with WEFT_ and that nobody knows, instead of a warning
    #[arg(long)]
    strict: bool,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Becomes the program; answers an exit code only when that fails.
pub fn main(given: SockArguments) -> i32 {
    match start(given) {
        Ok(never) => match never {},
        Err(slip) => {
            eprintln!("{FRONT}: {}", slip.text);
            slip.code
        }
    }
}

struct Slip {
    code: i32,
    text: String,
}

impl Slip {
    fn new(code: i32, text: impl ToString) -> Self {
        Self { code, text: text.to_string() }
    }
}

fn start(given: SockArguments) -> Result<Infallible, Slip> {
    // Here, once, and not in each process that the library is loaded into.
    let unknown = unknown(std::env::vars_os());
    if given.strict && !unknown.is_empty() {
        let lines: Vec<String> = unknown.iter().map(ToString::to_string).collect();
        return Err(Slip::new(EXIT_USAGE, lines.join("; ")));
    }
    unknown.iter().for_each(|unknown| eprintln!("{FRONT}: {}", unknown.warning()));
    let wanted = Program { program: given.command[0].to_string_lossy().into_owned(), ..Program::default() };
    let path = weft_agent::find(&wanted).map_err(|error| Slip::new(error.exit_code(), error))?;
    let mut command = Command::new(&path);
    command.arg0(&given.command[0]).args(&given.command[1..]);
    let excluded = is_excluded(&path, &given.not);
    if !excluded {
        warn_of_obstacle(FRONT, &path);
        let library = library().map_err(|text| Slip::new(1, text))?;
        command.env(PRELOAD, preload(&library, std::env::var_os(PRELOAD).as_deref()));
        command.envs(settings(&given));
        ensure_rendezvous(FRONT);
        registered(RegisteredKind::Sockets, &given.command);
    }
    let failed = |error| Slip::new(126, format!("program '{}' cannot be started: {error}", path.display()));
    match ReportTarget::wanted(&given)? {
        Some(report) => {
            let tally = Tally::new().map_err(|error| Slip::new(1, format!("no memory for --stats: {error}")))?;
            // What stays for the user alone is not for the library.
            command.env_remove(WANTED_VARIABLE);
            let end = beside::run(&mut command, &tally, report.descriptor().as_slice()).map_err(failed)?;
            report.write(&tally.sums());
            end.imitate()
        }
        None => Err(failed(command.exec())),
    }
}

/// Where it is said what was counted.
enum ReportTarget {
    Said,
    File(File),
}

impl ReportTarget {
    /// What the option says, or else the variable. Not a command inside another one that adds up for both.
    fn wanted(given: &SockArguments) -> Result<Option<Self>, Slip> {
        let variable = std::env::var_os(WANTED_VARIABLE).unwrap_or_default();
        let path = match &given.stats {
            Some(path) if path.as_os_str() == "-" => return Ok(Some(Self::Said)),
            Some(path) => path.as_path(),
            None => match WantedTally::of(&variable) {
                _ if std::env::var_os(TALLY_VARIABLE).is_some() => return Ok(None),
                WantedTally::Nothing => return Ok(None),
                WantedTally::Said => return Ok(Some(Self::Said)),
                WantedTally::File(path) => Path::new(path),
            },
        };
        let file = File::create(path).map_err(|error| {
            Slip::new(1, format!("the file '{}' for --stats cannot be written: {error}", path.display()))
        })?;
        Ok(Some(Self::File(file)))
    }

    fn descriptor(&self) -> Option<RawFd> {
        match self {
            Self::Said => None,
            Self::File(file) => Some(file.as_raw_fd()),
        }
    }

    fn write(&self, sums: &Sums) {
        let text = summary(sums);
        // Nobody is left to be told where it cannot be written.
        let _ = match self {
            Self::Said => std::io::stderr().write_all(text.as_bytes()),
            Self::File(file) => (&*file).write_all(text.as_bytes()),
        };
    }
}

fn summary(sums: &Sums) -> String {
    let mut text = String::new();
    sums.lines(|line| text += &format!("{FRONT}: {line}\n"));
    text
}

/// The rules as the library reads them.
fn settings(given: &SockArguments) -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    settings.extend(given.only.iter().map(|ports| ("WEFT_SOCK_ONLY", ports.clone())));
    settings.extend(given.spin.iter().map(|us| ("WEFT_SOCK_SPIN_US", us.clone())));
    if !given.not.is_empty() {
        settings.push(("WEFT_SOCK_NOT", given.not.join(",")));
    }
    settings
}

fn is_excluded(program: &Path, names: &[String]) -> bool {
    program.file_name().is_some_and(|name| names.iter().any(|not| OsStr::new(not) == name))
}

/// One line when preloading will have no effect; the program runs all the same.
pub fn warn_of_obstacle(front: &str, program: &Path) {
    if let Some(obstacle) = weft_agent::obstacle(program) {
        eprintln!("{front}: {obstacle}; its connections stay with the kernel");
    }
}

/// The library to preload: in `lib` beside the `bin` of this command, or where cargo builds both.
///
/// # Errors
/// It is in neither place, or its path cannot stand in a list of libraries.
pub fn library() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find this command's own file: {error}"))?;
    let folder = own.parent().unwrap_or(Path::new("/"));
    let installed = folder.parent().unwrap_or(folder).join("lib").join(LIBRARY);
    let built = folder.join(LIBRARY);
    let found = [&installed, &built].into_iter().find(|path| path.is_file());
    let found = found.ok_or_else(|| format!("the library '{}' is missing; install Weft again", installed.display()))?;
    // Blanks and colons separate the names in LD_PRELOAD, and nothing quotes them.
    match found.to_str() {
        Some(text) if !text.contains([' ', ':']) => Ok(found.clone()),
        _ => {
            Err(format!("the library '{}' cannot be preloaded: its path has a blank or a colon in it", found.display()))
        }
    }
}

/// What stands in `LD_PRELOAD`: ours first, then what was there.
pub fn preload(library: &Path, before: Option<&OsStr>) -> OsString {
    let before = before.map(|list| list.to_string_lossy().into_owned()).unwrap_or_default();
    let others = before.split([' ', ':']).filter(|name| !name.is_empty() && Path::new(name) != library);
    let mut list = library.as_os_str().to_owned();
    for other in others {
        list.push(":");
        list.push(other);
    }
    list
}

/// Starts the process through which programs find each other, if none runs for this user. Without it everything works,
/// through the kernel; so failing is said, and no error.
pub fn ensure_rendezvous(front: &str) {
    if let Err(error) = weft_agent::rendezvous::ensure() {
        eprintln!("{front}: the rendezvous cannot be started: {error}; connections stay with the kernel");
    }
}

fn parse_ports(given: &str) -> Result<String, String> {
    let is_port = |text: &str| text.parse::<u16>().ok();
    let fits = |part: &str| match part.split_once('-') {
        Some((first, last)) => matches!((is_port(first), is_port(last)), (Some(first), Some(last)) if first <= last),
        None => is_port(part).is_some(),
    };
    if given.split(',').all(fits) {
        return Ok(given.to_owned());
    }
    Err("accepted are ports from 0 to 65535 and ranges of them, with commas: 80,7000-7010".to_owned())
}

fn parse_spin(given: &str) -> Result<String, String> {
    match given.parse::<u64>() {
        Ok(us) if us <= 1_000_000 => Ok(given.to_owned()),
        _ if given == "auto" => Ok(given.to_owned()),
        _ => Err("accepted are auto and a number of microseconds from 0 to 1000000".to_owned()),
    }
}

/// The name of a program's file, without its folder.
fn parse_name(given: &str) -> Result<String, String> {
    let name = Path::new(given).file_name().and_then(OsStr::to_str).unwrap_or_default();
    if name.is_empty() || name.contains(',') {
        return Err("accepted is the name of a program's file, without commas".to_owned());
    }
    Ok(name.to_owned())
}

/// What `weft run --sockets` adds to the environment of its ranks.
///
/// # Errors
/// The library cannot be preloaded.
pub fn for_ranks(programs: &mut [Program]) -> Result<(), String> {
    let library = library()?;
    for program in programs {
        let own =
            program.environment.iter().rev().find(|(name, _)| name == PRELOAD).map(|(_, list)| OsString::from(list));
        let list = preload(&library, own.or_else(|| std::env::var_os(PRELOAD)).as_deref());
        program.environment.push((PRELOAD.to_owned(), list.to_string_lossy().into_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        sock: SockArguments,
    }

    fn parse(line: &str) -> Result<SockArguments, clap::Error> {
        Cli::try_parse_from(line.split(' ')).map(|cli| cli.sock)
    }

    #[test]
    fn rules_become_settings_of_the_library() {
        let given =
            parse("sock --stats --only 80,7000-7010 --not /bin/ssh --not git --spin 20 -- prog -x --stats").unwrap();
        let expected = [("WEFT_SOCK_ONLY", "80,7000-7010"), ("WEFT_SOCK_SPIN_US", "20"), ("WEFT_SOCK_NOT", "ssh,git")];
        assert_eq!(settings(&given), expected.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(given.command, ["prog", "-x", "--stats"]);
        assert!(settings(&parse("sock prog --stats").unwrap()).is_empty(), "what follows the program is the program's");
    }

    #[test]
    fn what_is_counted_is_said_or_written_to_a_file() {
        let stats = |line: &str| parse(line).unwrap().stats;
        assert_eq!(stats("sock prog --stats"), None);
        assert_eq!(stats("sock --stats prog"), Some(PathBuf::from("-")), "without a file");
        assert_eq!(stats("sock --stats=out prog"), Some(PathBuf::from("out")));
        assert_eq!(parse("sock --stats prog").unwrap().command, ["prog"]);
    }

    #[test]
    fn slips_say_what_is_accepted() {
        for bad in [
            "--only 80- p",
            "--only 9-8 p",
            "--only x p",
            "--only 65536 p",
            "--spin -1 p",
            "--spin 2s p",
            "--not a,b p",
        ] {
            let text = parse(&format!("sock {bad}")).err().unwrap_or_else(|| panic!("{bad} was accepted")).to_string();
            assert!(text.contains("accepted") || text.contains("unexpected"), "{bad}: {text}");
        }
        assert!(parse("sock --spin auto p").is_ok() && parse("sock --only 0-65535 p").is_ok());
    }

    #[test]
    fn a_preload_that_is_there_stays_behind_ours() {
        let ours = Path::new("/p/lib/libweft_sockets.so");
        let list = |before: &str| preload(ours, Some(OsStr::new(before))).into_string().unwrap();
        assert_eq!(preload(ours, None), "/p/lib/libweft_sockets.so");
        assert_eq!(list("/a.so b.so"), "/p/lib/libweft_sockets.so:/a.so:b.so");
        assert_eq!(list("/a.so:/p/lib/libweft_sockets.so"), "/p/lib/libweft_sockets.so:/a.so", "once is enough");
    }

    #[test]
    fn excluded_programs_are_compared_by_the_name_of_their_file() {
        assert!(is_excluded(Path::new("/usr/bin/ssh"), &["git".into(), "ssh".into()]));
        assert!(!is_excluded(Path::new("/usr/bin/sshd"), &["ssh".into()]));
    }
}
