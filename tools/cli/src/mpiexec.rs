//! The front that takes the common options of other launchers: `mpiexec`, `mpirun`, `weft mpiexec`.

use crate::defaults::Defaults;
use crate::{EXIT_USAGE, run};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use weft_agent::{Job, JobId, Output};
use weft_cluster::job::{Program, StdinTo, parse_count, parse_environment, parse_stdin, size};
use weft_cluster::placement::Bind;

/// Whatever stands after `weft mpiexec`: its options are read by hand, since they have long names behind one dash.
#[derive(Args)]
pub struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// What `mpiexec -help` and the manual say.
pub const HELP: &str = "\
Starts parallel programs on this host, with the options of other launchers (see also: weft run --help).

Usage: mpiexec [OPTIONS] PROGRAM [ARGUMENTS]... [: [OPTIONS] PROGRAM [ARGUMENTS]...]...

For each program:
  -n, -np, -c N                 number of ranks (1)
  -env NAME VALUE               set a variable for its ranks
  -x NAME[=VALUE]               the same, or pass on one that is set here
  -wdir, -wd, --wdir DIR        directory to start in

For the job:
  -genv NAME VALUE              set a variable for all ranks
  -genvall                      pass on the whole environment (always done)
  -bind-to, --bind-to HOW       core or none (default: WEFT_BIND, else a core each if all find a free one)
  -l, -prepend-rank, --tag-output   begin every line of output with its rank
  -s, --stdin WHO               who gets standard input: a rank, all or none (0)
  -timeout, --timeout SECONDS   end the job after this time (default: WEFT_TIMEOUT, or else MPIEXEC_TIMEOUT)
  -disable-auto-cleanup         when a rank is lost, let the others go on
  -host, -hosts, -f, -hostfile, -machinefile   where to run: this host only; weft run --hosts takes others
  -ppn, -N, -map-by, -rank-by, --oversubscribe, --allow-run-as-root   accepted; one host has no choice there
";

/// Reads the command line, runs the job, answers the exit code. `front` is the name that the user typed.
pub fn main(front: &str, arguments: &[OsString]) -> i32 {
    match Reader::new(arguments).read(front) {
        Ok(Some(job)) => run::start(job),
        Ok(None) => {
            print!("{HELP}");
            0
        }
        Err(error) => {
            eprintln!("{front}: {error}");
            EXIT_USAGE
        }
    }
}

/// A slip on the command line, in one line.
type Slip = String;

struct Reader<'a> {
    words: std::slice::Iter<'a, OsString>,
    programs: Vec<Program>,
    /// The program whose options are being read.
    program: Program,
    /// For all ranks.
    environment: Vec<(String, String)>,
    bind: Bind,
    tag: bool,
    stdin: Option<String>,
    keep_going: bool,
    timeout: Option<Duration>,
    help: bool,
    /// A program has been given and no `:` after it.
    complete: bool,
    notes: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(arguments: &'a [OsString]) -> Self {
        let defaults = Defaults::of_environment();
        let one = Program { ranks: 1, ..Program::default() };
        Self {
            words: arguments.iter(),
            programs: Vec::new(),
            program: one,
            environment: Vec::new(),
            bind: defaults.bind,
            tag: defaults.tag,
            stdin: None,
            keep_going: defaults.keep_going,
            timeout: defaults.timeout.or_else(timeout_of_others),
            help: false,
            complete: false,
            notes: Vec::new(),
        }
    }

    /// `None`: help is wanted.
    fn read(mut self, front: &str) -> Result<Option<Job>, Slip> {
        while let Some(word) = self.words.next() {
            match word.to_str() {
                Some(option) if option.starts_with('-') && option.len() > 1 => self.read_option(option)?,
                Some(":") => return Err("a program is missing before ':'".to_owned()),
                _ => self.read_program(word)?,
            }
            if self.help {
                return Ok(None);
            }
        }
        if !self.complete {
            return Err("no program given; -help shows the options".to_owned());
        }
        self.notes.iter().for_each(|note| eprintln!("{front}: {note}"));
        self.job(front).map(Some)
    }

    /// The program's name and its arguments up to the next `:`.
    fn read_program(&mut self, name: &OsString) -> Result<(), Slip> {
        self.program.program = name.to_string_lossy().into_owned();
        self.complete = true;
        for word in self.words.by_ref() {
            if word == ":" {
                self.complete = false;
                break;
            }
            self.program.arguments.push(word.clone());
        }
        let next = Program { ranks: 1, ..Program::default() };
        self.programs.push(std::mem::replace(&mut self.program, next));
        Ok(())
    }

    fn read_option(&mut self, given: &str) -> Result<(), Slip> {
        let (option, joined) = match given.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value)),
            _ => (given, None),
        };
        match option.trim_start_matches('-') {
            "n" | "np" | "c" => {
                let count = self.value(option, joined)?;
                self.program.ranks = parse_count(&count).map_err(|error| format!("{option}: {error}"))?;
            }
            "x" => self.read_variable(option, joined)?,
            "env" => {
                let variable = self.pair(option)?;
                self.program.environment.push(variable);
            }
            "genv" => {
                let variable = self.pair(option)?;
                self.environment.push(variable);
            }
            "wdir" | "wd" => self.program.directory = Some(PathBuf::from(self.value(option, joined)?)),
            "bind-to" | "bind-to-core" | "bind-to-none" => self.read_bind(option, joined)?,
            "l" | "prepend-rank" | "tag-output" => self.tag = true,
            "s" | "stdin" => self.stdin = Some(self.value(option, joined)?),
            "timeout" => {
                let time = self.value(option, joined)?;
                self.timeout = Some(run::parse_time(&time).map_err(|error| format!("{option} '{time}': {error}"))?);
            }
            "host" | "hosts" | "H" => {
                let hosts = self.value(option, joined)?;
                check_hosts(option, hosts.split(','))?;
            }
            "f" | "hostfile" | "machinefile" | "machine" => {
                let file = self.value(option, joined)?;
                check_hostfile(option, &file)?;
            }
            "ppn" | "perhost" | "N" | "npernode" => {
                let count = self.value(option, joined)?;
                parse_count(&count).map_err(|error| format!("{option}: {error}"))?;
            }
            "map-by" | "rank-by" => {
                let value = self.value(option, joined)?;
                self.notes.push(format!("{option} {value} is ignored: one host has no choice there"));
            }
            "disable-auto-cleanup" => {
                self.keep_going = true;
                self.environment.push((run::KEEP_GOING_VARIABLE.to_owned(), "on".to_owned()));
            }
            "genvall" | "envall" | "oversubscribe" | "allow-run-as-root" => {}
            "help" | "h" => self.help = true,
            _ => return Err(format!("option '{given}' is not known; -help shows those that are")),
        }
        Ok(())
    }

    fn value(&mut self, option: &str, joined: Option<&str>) -> Result<String, Slip> {
        let value = joined.map(str::to_owned).or_else(|| self.words.next().map(|w| w.to_string_lossy().into_owned()));
        value.ok_or_else(|| format!("{option} needs a value"))
    }

    fn pair(&mut self, option: &str) -> Result<(String, String), Slip> {
        let name = self.value(option, None)?;
        let value = self.value(option, None)?;
        let checked = parse_environment(&format!("{name}={value}"), |_| None);
        checked.map_err(|error| format!("{option}: {error}"))
    }

    fn read_variable(&mut self, option: &str, joined: Option<&str>) -> Result<(), Slip> {
        let given = self.value(option, joined)?;
        let variable = parse_environment(&given, |name| std::env::var(name).ok());
        self.program.environment.push(variable.map_err(|error| format!("{option}: {error}"))?);
        Ok(())
    }

    fn read_bind(&mut self, option: &str, joined: Option<&str>) -> Result<(), Slip> {
        let value = match option.trim_start_matches('-').strip_prefix("bind-to-") {
            Some(value) => value.to_owned(),
            None => self.value(option, joined)?,
        };
        // Qualifiers such as `core:overload-allowed` say how to go on when cores are short; auto does go on.
        self.bind = match value.split(':').next().unwrap_or_default() {
            "core" if value.contains(':') => Bind::Auto,
            "core" => Bind::Core,
            "none" => Bind::None,
            _ => return Err(format!("{option} '{value}' is not known; accepted are core and none")),
        };
        Ok(())
    }

    fn job(mut self, front: &str) -> Result<Job, Slip> {
        let size = size(&self.programs).map_err(|error| error.to_string())?;
        let stdin = match &self.stdin {
            Some(given) => parse_stdin(given, size).map_err(|error| error.to_string())?,
            None => StdinTo::Rank(0),
        };
        // What is said for one program goes before what is said for all.
        for program in &mut self.programs {
            let own = std::mem::replace(&mut program.environment, self.environment.clone());
            program.environment.extend(own);
        }
        Ok(Job {
            front: front.to_owned(),
            id: JobId::new(),
            programs: self.programs,
            bind: self.bind,
            stdin,
            output: Output::Merged { tag: self.tag },
            timeout: self.timeout,
            inherit: Vec::new(),
            hosts: None,
            keep_going: self.keep_going,
            network: false,
        })
    }
}

/// What scripts for MPICH's launcher say in place of an option.
fn timeout_of_others() -> Option<Duration> {
    run::parse_time(&std::env::var("MPIEXEC_TIMEOUT").ok()?).ok()
}

/// Every host must be this one. A number of slots after `:` is accepted.
fn check_hosts<'a>(option: &str, hosts: impl Iterator<Item = &'a str>) -> Result<(), Slip> {
    let here = weft_agent::host_name();
    let short = here.split('.').next().unwrap_or_default().to_owned();
    for host in hosts.map(|host| host.split(':').next().unwrap_or_default().trim()) {
        let is_here = ["localhost", "127.0.0.1", "::1", here.as_str(), short.as_str()].contains(&host);
        if !is_here {
            return Err(format!(
                "{option}: host '{host}' is not this one ('{here}'); weft run --hosts starts on other hosts"
            ));
        }
    }
    Ok(())
}

/// Lines such as `host`, `host:4` or `host slots=4`, with comments after `#`.
fn check_hostfile(option: &str, file: &str) -> Result<(), Slip> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{option} '{file}' cannot be read: {error}"))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let hosts = lines.filter_map(|line| line.split_whitespace().next());
    check_hosts(&format!("{option} {file}"), hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Job, Slip> {
        let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        Reader::new(&words).read("mpiexec").map(|job| job.expect("no help asked for"))
    }

    #[test]
    fn options_of_the_others_are_understood() {
        let job =
            read("-genv A 1 -np 2 -env B 2 -wdir /tmp -l -ppn 2 ./a -n 5 : -x C=3 --bind-to none -n 3 ./b").unwrap();
        assert_eq!(job.programs.len(), 2);
        let first = &job.programs[0];
        assert_eq!((first.ranks, first.program.as_str()), (2, "./a"));
        assert_eq!(first.arguments, ["-n", "5"]);
        assert_eq!(first.environment, [("A".into(), "1".into()), ("B".into(), "2".into())]);
        assert_eq!(job.programs[1].environment, [("A".into(), "1".into()), ("C".into(), "3".into())]);
        assert_eq!(job.bind, Bind::None);
        assert_eq!(job.output, Output::Merged { tag: true });
    }

    #[test]
    fn slips_are_named() {
        let slip = |text| read(text).unwrap_err();
        assert!(slip("-frobnicate 3 ./a").contains("'-frobnicate'"));
        assert!(slip("-n 0 ./a").contains("'0'") && slip("-n 0 ./a").contains("1 to 4096"));
        assert!(slip("-n 2").contains("no program"));
        assert!(slip("-n").contains("needs a value"));
        assert!(slip("./a : -n 2").contains("no program"));
        assert!(slip("-host localhost,far ./a").contains("'far'"));
        assert!(slip("-bind-to socket ./a").contains("'socket'"));
        assert!(slip("-s 1 ./a").contains("0 to 0"));
        assert!(slip("-f /no/such/file ./a").contains("/no/such/file"));
    }

    #[test]
    fn this_host_is_accepted_with_slots() {
        assert!(read("-host localhost:4,localhost -n 1 ./a").is_ok());
    }
}
