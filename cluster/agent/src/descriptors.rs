//! Everything that connects launcher and ranks: made before the keeper is forked, then split into two halves.

use crate::keeper::{RankInput, Start};
use crate::output::{Merger, Sink};
use crate::stdin::Pump;
use crate::{JOB_VARIABLE, Job, LaunchError, Output, program, sys};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use weft_cluster::job::{StdinTo, is_reserved, programs_by_rank};
use weft_cluster::placement::Core;

/// Descriptors per rank while both halves are in one process: two pipes, a socket pair, perhaps one for input.
const PER_RANK: u64 = 8;
/// Descriptors of the launcher itself, and what it inherited.
const OWN: u64 = 64;

/// A stream of one rank, as the launcher reads it.
pub struct Source {
    pub rank: usize,
    /// 0 for standard output, 1 for standard error.
    pub sink: usize,
    pub pipe: OwnedFd,
}

/// What stays with the launcher.
pub struct LauncherHalf {
    pub pmi: Vec<UnixStream>,
    pub sources: Vec<Source>,
    pub sinks: [Sink; 2],
    pub pump: Option<Pump>,
}

/// Raises the soft limit of descriptors as far as `ranks` ranks need, and answers the limits as they were.
pub fn make_room(ranks: usize) -> Result<(u64, u64), LaunchError> {
    let (soft, hard) = sys::descriptor_limits().map_err(LaunchError::system("limit of descriptors"))?;
    let needed = ranks as u64 * PER_RANK + OWN;
    if needed > hard {
        return Err(LaunchError::TooFewDescriptors { ranks, needed, limit: hard });
    }
    if needed > soft {
        sys::set_descriptor_limits(needed, hard).map_err(LaunchError::system("limit of descriptors"))?;
    }
    Ok((soft, hard))
}

/// Keeps from our ranks what a launcher above has handed to this process alone: they are not of that job, and would hold
/// its socket and its shared memory open.
pub fn keep_the_outer_jobs() {
    for name in ["PMI_FD", "WEFT_SEGMENT"] {
        let number = std::env::var(name).ok().and_then(|number| number.parse().ok());
        if let Some(number) = number.filter(|number| *number > 2) {
            sys::keep_to_ourselves(number);
        }
    }
}

/// Makes both halves for `size` ranks.
pub fn connect(job: &Job, size: usize, cores: Option<Vec<Core>>) -> Result<(LauncherHalf, Vec<Start>), LaunchError> {
    let tag = matches!(job.output, Output::Merged { tag: true });
    let templates = templates(job, size)?;
    let files = Files::prepare(&job.output, size)?;
    let mut ours = LauncherHalf {
        pmi: Vec::new(),
        sources: Vec::new(),
        sinks: [1, 2].map(|fd| Sink::new(fd, Merger::new(size, tag))),
        pump: None,
    };
    let mut input = Input::prepare(job.stdin);
    let mut cores = cores.map(Vec::into_iter);
    let mut starts = Vec::new();
    for (rank, number) in programs_by_rank(&job.programs).into_iter().enumerate() {
        let command = templates[number].command(rank);
        let outputs = [stream(rank, 0, &files, &mut ours)?, stream(rank, 1, &files, &mut ours)?];
        let (here, there) = UnixStream::pair().map_err(LaunchError::system("socket pair"))?;
        here.set_nonblocking(true).map_err(LaunchError::system("socket pair"))?;
        ours.pmi.push(here);
        let core = cores.as_mut().and_then(Iterator::next);
        starts.push(Start { command, core, input: input.of(rank)?, outputs, pmi: there.into() });
    }
    ours.pump = input.pump()?;
    Ok((ours, starts))
}

fn stream(rank: usize, sink: usize, files: &Files, ours: &mut LauncherHalf) -> Result<OwnedFd, LaunchError> {
    if let Some(file) = files.open(rank, ["out", "err"][sink])? {
        return Ok(file.into());
    }
    let (reader, writer) = std::io::pipe().map_err(LaunchError::system("pipe"))?;
    sys::set_nonblocking(&reader).map_err(LaunchError::system("pipe"))?;
    ours.sources.push(Source { rank, sink, pipe: reader.into() });
    Ok(writer.into())
}

/// What the ranks of one program have in common.
struct Template {
    path: PathBuf,
    name: String,
    arguments: Vec<OsString>,
    directory: Option<PathBuf>,
    environment: HashMap<OsString, OsString>,
}

fn templates(job: &Job, size: usize) -> Result<Vec<Template>, LaunchError> {
    // What another process manager told us is not for our ranks.
    let mut common: HashMap<OsString, OsString> = std::env::vars_os().collect();
    common.retain(|name, _| !name.to_str().is_some_and(is_reserved));
    let mut set = |name: &str, value: String| common.insert(name.into(), value.into());
    set(JOB_VARIABLE, job.id.as_str().to_owned());
    set("PMI_SIZE", size.to_string());
    set("MPI_LOCALNRANKS", size.to_string());
    for (name, fd) in &job.inherit {
        set(name, fd.as_raw_fd().to_string());
    }
    let template = |given: &weft_cluster::job::Program| {
        let mut environment = common.clone();
        environment.extend(given.environment.iter().map(|(name, value)| (name.into(), value.into())));
        let path = program::find(given)?;
        program::check_mpi(&path, size)?;
        let (name, arguments) = (given.program.clone(), given.arguments.clone());
        Ok(Template { path, name, arguments, directory: given.directory.clone(), environment })
    };
    job.programs.iter().map(template).collect()
}

impl Template {
    fn command(&self, rank: usize) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(&self.path);
        command.arg0(&self.name).args(&self.arguments).env_clear().envs(&self.environment);
        command.env("PMI_RANK", rank.to_string()).env("MPI_LOCALRANKID", rank.to_string());
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }
}

/// Files for the output of each rank, if so wanted.
struct Files {
    directory: Option<PathBuf>,
    /// Ranks have as many digits as the last one, so that the files sort.
    digits: usize,
}

impl Files {
    fn prepare(output: &Output, size: usize) -> Result<Self, LaunchError> {
        let Output::Files(directory) = output else { return Ok(Self { directory: None, digits: 0 }) };
        std::fs::create_dir_all(directory).map_err(output_error(directory))?;
        Ok(Self { directory: Some(directory.clone()), digits: (size - 1).to_string().len() })
    }

    /// The rank writes into its file itself.
    fn open(&self, rank: usize, ending: &str) -> Result<Option<File>, LaunchError> {
        let Some(directory) = &self.directory else { return Ok(None) };
        let path = directory.join(format!("rank-{rank:0digits$}.{ending}", digits = self.digits));
        File::create(&path).map(Some).map_err(output_error(&path))
    }
}

fn output_error(path: &Path) -> impl Fn(std::io::Error) -> LaunchError {
    move |error| LaunchError::Output { directory: path.to_path_buf(), error }
}

/// Who gets standard input, and how.
struct Input {
    to: StdinTo,
    /// One rank and no terminal: the rank gets our own standard input, nothing is copied and nothing read in vain.
    direct: bool,
    pipes: Vec<OwnedFd>,
}

impl Input {
    fn prepare(to: StdinTo) -> Self {
        let direct = matches!(to, StdinTo::Rank(_)) && sys::kind(0) != sys::Kind::Terminal;
        Self { to, direct, pipes: Vec::new() }
    }

    fn of(&mut self, rank: usize) -> Result<RankInput, LaunchError> {
        let reads = match self.to {
            StdinTo::All => true,
            StdinTo::Nobody => false,
            StdinTo::Rank(chosen) => chosen == rank,
        };
        if !reads {
            return Ok(RankInput::Nothing);
        }
        if self.direct {
            return Ok(RankInput::Ours);
        }
        let (reader, writer) = std::io::pipe().map_err(LaunchError::system("pipe"))?;
        self.pipes.push(writer.into());
        Ok(RankInput::Pipe(reader.into()))
    }

    fn pump(self) -> Result<Option<Pump>, LaunchError> {
        if self.pipes.is_empty() {
            return Ok(None);
        }
        Pump::new(0, self.pipes).map(Some).map_err(LaunchError::system("standard input"))
    }
}
