//! What the options of a front come to, while they are read, and the job that is made of it.

use super::hosts::{self, ListedHosts};
use super::{FrontWish, Slip};
use crate::defaults::Defaults;
use crate::run;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weft_agent::{Destination, Job, JobId, RankOutput, TimeLimit};
use weft_cluster::hosts::RankMap;
use weft_cluster::job::{Program, StdinTo, parse_count, parse_environment, parse_stdin, size};
use weft_cluster::placement::Bind;

/// One of several programs, with what was said for it alone.
#[derive(Default)]
pub struct ProgramPart {
    pub program: Program,
    pub ranks: Option<usize>,
    pub hosts: Option<ListedHosts>,
}

impl ProgramPart {
    /// Hosts that an option has listed.
    pub fn add_hosts(&mut self, listed: ListedHosts) -> Result<(), Slip> {
        self.hosts = Some(listed.behind(self.hosts.take())?);
        Ok(())
    }
}

/// A job in the making.
pub struct Draft {
    pub front: String,
    pub parts: Vec<ProgramPart>,
    /// The program whose options are being read.
    pub part: ProgramPart,
    /// For all ranks.
    pub environment: Vec<(String, String)>,
    pub bind: Bind,
    /// Cores that a rank needs.
    pub threads: usize,
    pub map: RankMap,
    pub per_host: Option<usize>,
    pub oversubscribe: bool,
    /// An option that gives a number of ranks in units that are not known here.
    pub countless: Option<String>,
    pub tag: bool,
    pub stdin: Option<String>,
    /// Who gets standard input where nothing is said.
    pub stdin_default: StdinTo,
    /// Patterns or paths for standard output and standard error.
    pub streams: [Destination; 2],
    /// Patterns for the same, each with its option, that are opened when all options are read.
    pub patterns: [Option<(String, PathBuf)>; 2],
    /// Files with options that were read.
    pub files: Vec<PathBuf>,
    pub keep_going: bool,
    pub timeout: Option<Duration>,
    pub verbose: bool,
    /// What was ignored, and why.
    pub notes: Vec<String>,
    /// The answer where no job is wanted.
    pub text: Option<String>,
    pub defaults: Defaults,
}

impl Draft {
    pub fn new(front: &str) -> Self {
        let defaults = Defaults::of_environment();
        Self {
            front: front.to_owned(),
            parts: Vec::new(),
            part: ProgramPart::default(),
            environment: Vec::new(),
            bind: defaults.bind,
            threads: 1,
            map: RankMap::Slot,
            per_host: None,
            oversubscribe: false,
            countless: None,
            tag: defaults.tag,
            stdin: None,
            stdin_default: StdinTo::Rank(0),
            streams: Default::default(),
            patterns: Default::default(),
            files: Vec::new(),
            keep_going: defaults.keep_going,
            timeout: defaults.timeout,
            verbose: false,
            notes: Vec::new(),
            text: None,
            defaults,
        }
    }

    pub fn ignore(&mut self, what: impl std::fmt::Display, reason: &str) {
        self.notes.push(format!("{what} is ignored: {reason}"));
    }

    pub fn set_ranks(&mut self, option: &str, given: &str) -> Result<(), Slip> {
        self.part.ranks = Some(parse_count(given).map_err(|error| format!("{option}: {error}"))?);
        Ok(())
    }

    pub fn set_per_host(&mut self, option: &str, given: &str) -> Result<(), Slip> {
        self.per_host = Some(parse_count(given).map_err(|error| format!("{option}: {error}"))?);
        Ok(())
    }

    pub fn set_timeout(&mut self, option: &str, given: &str) -> Result<(), Slip> {
        self.timeout = Some(run::parse_time(given).map_err(|error| format!("{option} '{given}': {error}"))?);
        Ok(())
    }

    /// For all ranks.
    pub fn set_variable(&mut self, option: &str, name: &str, value: &str) -> Result<(), Slip> {
        self.environment.push(pair(option, name, value)?);
        Ok(())
    }

    /// For the ranks of the program that comes.
    pub fn set_own_variable(&mut self, option: &str, name: &str, value: &str) -> Result<(), Slip> {
        self.part.program.environment.push(pair(option, name, value)?);
        Ok(())
    }

    pub fn keep_going(&mut self) {
        self.keep_going = true;
        self.environment.push((run::KEEP_GOING_VARIABLE.to_owned(), "on".to_owned()));
    }

    pub fn set_directory(&mut self, given: &str) {
        self.part.program.directory = Some(PathBuf::from(given));
    }

    /// Each rank has files of its own in a directory.
    pub fn write_files_in(&mut self, directory: &str) {
        self.streams = RankOutput::files_in(Path::new(directory)).streams;
    }

    /// The program, with what follows it.
    pub fn finish_part(&mut self, name: &OsString, arguments: Vec<OsString>) {
        self.part.program.program = name.to_string_lossy().into_owned();
        self.part.program.arguments = arguments;
        self.parts.push(std::mem::take(&mut self.part));
    }

    /// The job; or what else was wanted.
    pub fn finish(mut self) -> Result<FrontWish, Slip> {
        if let Some(text) = self.text.take() {
            return Ok(FrontWish::Text(text));
        }
        self.count_ranks()?;
        let mut programs: Vec<Program> = self.parts.iter().map(|part| part.program.clone()).collect();
        // What is said for one program goes before what is said for all.
        for program in &mut programs {
            let own = std::mem::replace(&mut program.environment, self.environment.clone());
            program.environment.extend(own);
        }
        let size = size(&programs).map_err(|error| error.to_string())?;
        let stdin = match &self.stdin {
            Some(given) => parse_stdin(given, size).map_err(|error| error.to_string())?,
            None => self.stdin_default,
        };
        let hosts = hosts::of(&self)?;
        if self.threads > 1 && self.bind != Bind::None {
            let (threads, reason) =
                (self.threads, "ranks are bound to one core each or not at all, so they are not bound");
            self.ignore(format!("binding of {threads} cores for a rank"), reason);
            self.bind = Bind::None;
        }
        if self.verbose {
            self.notes.iter().for_each(|note| eprintln!("{}: {note}", self.front));
        }
        Ok(FrontWish::Job(Box::new(Job {
            front: self.front,
            id: JobId::new(),
            programs,
            bind: self.bind,
            stdin,
            output: RankOutput { tag: self.tag, streams: self.streams, log: None },
            timeout: self.timeout.map(TimeLimit::from),
            inherit: Vec::new(),
            hosts,
            keep_going: self.keep_going,
            network: false,
            partition: None,
            cores: None,
            starter: None,
        })))
    }

    /// Where no number of ranks is given: so many for each host as was said, else one for each slot, else one.
    fn count_ranks(&mut self) -> Result<(), Slip> {
        let single = self.parts.len() == 1;
        let wanted = self.parts.first().map_or(1, |part| hosts::ranks_wanted(part.hosts.as_ref(), self.per_host));
        for part in &mut self.parts {
            part.program.ranks = match (part.ranks, &self.countless) {
                (Some(ranks), _) => ranks,
                (None, Some(option)) => return Err(format!("{option} says no number of ranks here; -n N does")),
                (None, None) if single => wanted,
                (None, None) => 1,
            };
        }
        Ok(())
    }
}

fn pair(option: &str, name: &str, value: &str) -> Result<(String, String), Slip> {
    parse_environment(&format!("{name}={value}"), |_| None).map_err(|error| format!("{option}: {error}"))
}
