//! `weft run`: a parallel program on this host, or on several.

use crate::defaults::Defaults;
use crate::run::hosts::HostArguments;
use crate::run::room::{JobRoom, Listeners, Wishes};
use crate::{EXIT_USAGE, jobs, sock};
use clap::{Args, Parser};
use std::collections::HashMap;
use std::ffi::OsString;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;
use weft_agent::{Job, JobId, RankOutput, TimeLimit};
use weft_cluster::job::{JobError, Program, parse_count, parse_environment, parse_stdin, size};
use weft_cluster::placement::Bind;
use weft_fabric::settings::DEFINITIONS;
use weft_fabric::{DeviceName, Lanes, Segment, Settings, XdpMode};
use weft_wire::settings::{Unknown, unknown};

pub(crate) mod hosts;
pub mod room;

const FRONT: &str = "weft run";
/// The setting that `--device` gives to the ranks.
const DEVICE_VARIABLE: &str = "WEFT_DEVICE";
/// The setting that `--encrypt` switches on for them.
const ENCRYPT_VARIABLE: &str = "WEFT_ENCRYPT";
/// The same of `--keep-going`.
pub const KEEP_GOING_VARIABLE: &str = "WEFT_KEEP_GOING";

/// The setting that says how many processes there may usefully be.
pub const UNIVERSE_VARIABLE: &str = "WEFT_UNIVERSE";

/// The directory for cores, where --cores does not name it.
const CORES_VARIABLE: &str = "WEFT_CORES";

/// How many ranks a job has that does not say it.
const RANKS_VARIABLE: &str = "WEFT_RANKS";

/// What `weft run --help` begins with.
pub const LONG_ABOUT: &str = "\
Starts N ranks of a program, on this host or on those of --hosts or --hostfile, and waits for them.

Several programs, separated by ':', form one job; their ranks are numbered through:
  weft run -n 1 ./master : -n 3 --env LEVEL=2 ./worker

On several hosts it behaves as on one. Weft must be installed there under the same path, in the same build, or is \
copied with --stage; nothing has to run there. Each host is reached over the standard input and output of one command, ssh unless --launch names \
another:
  weft run --hosts node1:2,node2:2 ./program
  weft run --hostfile hosts --launch 'ip netns exec {host}' ./program

Inside an allocation of Slurm, PBS or LSF (salloc, sbatch, qsub, bsub) its hosts and slots are taken, unless options \
name others, --no-allocation is given or WEFT_ALLOCATION is off.

The exit code is that of the first rank that fails, in time: its own code, or 128 + the number of the signal that \
killed it; 124 after --timeout. When a rank fails the others are ended (SIGTERM, SIGKILL 2 s later), and whatever the \
ranks have started and left behind is ended with the job.

Each rank has a session of its own, or, where ranks may share processors (more ranks than processors, --bind \
none, several hosts) or the job is started with nice, a process group. SIGINT, SIGTERM, SIGHUP, SIGQUIT, \
SIGUSR1, SIGUSR2 and SIGCONT are passed on to all ranks, and SIGTSTP (Ctrl-Z) stops them with the launcher, \
until fg or bg; a second Ctrl-C ends the job by force. A signal that is ignored when weft run starts stays \
ignored, by it and the ranks: SIGHUP under nohup, and SIGINT and SIGQUIT in what a script starts with '&'; \
SIGTERM ends such a job.";

/// Options of `weft run`.
#[derive(Args)]
#[command(
    override_usage = "weft run [OPTIONS] <PROGRAM> [ARGUMENTS]... [: [-n N] [--env NAME=VALUE] [--wdir DIR] <PROGRAM> [ARGUMENTS]...]..."
)]
pub struct RunArguments {
    #[command(flatten)]
    program: ProgramArguments,

    #[command(flatten)]
    hosts: HostArguments,

    /// Bind ranks to cores: a core each (core), not at all (none), or a core each if all find a free one (auto)
    /// [default: WEFT_BIND, else auto]
    #[arg(long, value_name = "HOW")]
    bind: Option<Bind>,

    /// End the job after this time: seconds, or a number with ms, s, m or h [default: WEFT_TIMEOUT]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    timeout: Option<Duration>,

    /// Which devices may carry messages, the first to be used first: shm, udp, tcp, several with commas, or auto
    /// [default: WEFT_DEVICE, else auto]
    #[arg(long, value_name = "ORDER", value_parser = parse_device)]
    device: Option<String>,

    /// Encrypt what ranks of different hosts send each other [default: WEFT_ENCRYPT, else off]
    #[arg(long)]
    encrypt: bool,

    /// When a rank is lost, let the others go on, for programs that mitigate it [default: WEFT_KEEP_GOING, else off]
    #[arg(long)]
    keep_going: bool,

    /// Begin every line of output with its rank
    #[arg(long, conflicts_with = "output")]
    tag_output: bool,

    /// Write each rank's output to DIR/rank-N.out and DIR/rank-N.err, on its host
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Gather cores: that of rank N lands in DIR/JOB/rank-N/, on its host [default: WEFT_CORES, else none are wanted]
    #[arg(long, value_name = "DIR")]
    cores: Option<PathBuf>,

    /// Append what is known of the job at its end to FILE, as a line of JSON (see weft jobs) [default: WEFT_RECORD]
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Let the ranks' TCP connections to each other go through shared memory (see weft sock)
    #[arg(long, conflicts_with_all = ["hosts", "hostfile", "partition"])]
    sockets: bool,

    /// Refuse variables that begin with WEFT_ and that nobody knows, instead of a warning
    #[arg(long)]
    strict: bool,

    /// Who gets standard input: a rank, all or none
    #[arg(long, value_name = "WHO", default_value = "0")]
    stdin: String,
}

/// Options that each of several programs has for itself.
#[derive(Args)]
struct ProgramArguments {
    /// How many ranks run the program (also -np, --np) [default: WEFT_RANKS, else 1; on several hosts, all slots]
    #[arg(short = 'n', long = "ranks", alias = "np", value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    ranks: Option<usize>,

    /// Set a variable for the ranks, or pass on one that is set here; the whole environment is passed on anyway
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = parse_variable)]
    env: Vec<(String, String)>,

    /// Start the ranks in this directory
    #[arg(long, value_name = "DIR")]
    wdir: Option<PathBuf>,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// The options after a `:`.
#[derive(Parser)]
#[command(name = "weft run ... :", no_binary_name = true, disable_help_flag = true)]
struct FurtherArguments {
    #[command(flatten)]
    program: ProgramArguments,
}

/// A command line cut at the `:` between programs.
pub struct CommandLine {
    /// Up to the first `:`.
    pub own: Vec<OsString>,
    /// One entry for each further program.
    pub further: Vec<Vec<OsString>>,
}

/// Cuts the command line of `weft run` at each `:`, and turns `-np`, which is not how the option parser sees the world,
/// into `-n`. Other subcommands are left as they are.
pub fn first_program_only(arguments: Vec<OsString>) -> CommandLine {
    if arguments.get(1).is_none_or(|name| name != "run") {
        return CommandLine { own: arguments, further: Vec::new() };
    }
    let mut parts: Vec<Vec<OsString>> = arguments.split(|word| word == ":").map(<[OsString]>::to_vec).collect();
    respell_count(&mut parts[0][2..]);
    parts[1..].iter_mut().for_each(|part| respell_count(part));
    let further = parts.split_off(1);
    CommandLine { own: parts.remove(0), further }
}

/// `-np` becomes `-n` among the options, which end where the program's name stands.
fn respell_count(part: &mut [OsString]) {
    const WITH_VALUE: [&str; 17] = [
        "-n",
        "--ranks",
        "--np",
        "--env",
        "--wdir",
        "--bind",
        "--device",
        "--timeout",
        "--output",
        "--cores",
        "--record",
        "--stdin",
        "--hosts",
        "--hostfile",
        "--partition",
        "--launch",
        "--map",
    ];
    let mut at = 0;
    while let Some(word) = part.get_mut(at).filter(|word| word.to_string_lossy().starts_with('-')) {
        if word == "-np" {
            *word = "-n".into();
        }
        let has_value = word.to_str().is_some_and(|word| WITH_VALUE.contains(&word));
        at += if has_value { 2 } else { 1 };
    }
}

/// Runs the job and answers the exit code.
pub fn main(given: RunArguments, further: &[Vec<OsString>]) -> i32 {
    let (sockets, strict, record) = (given.sockets, given.strict, given.record.clone());
    let record = record.or_else(jobs::file_of_environment);
    match job(given, further) {
        Ok((job, _)) if strict && !unknown_settings(&job).is_empty() => {
            unknown_settings(&job).iter().for_each(|unknown| eprintln!("{FRONT}: {unknown}"));
            EXIT_USAGE
        }
        Ok((job, room)) if sockets => start_with_sockets(job, Listeners { room, record }),
        Ok((job, room)) => start_for(job, Listeners { room, record }),
        Err(errors) => {
            errors.iter().for_each(|error| eprintln!("{FRONT}: {error}"));
            EXIT_USAGE
        }
    }
}

/// The same with the socket library preloaded into the ranks.
fn start_with_sockets(mut job: Job, listeners: Listeners) -> i32 {
    if let Err(error) = sock::for_ranks(&mut job.programs) {
        eprintln!("{FRONT}: {error}");
        return 1;
    }
    let paths = job.programs.iter().filter_map(|program| weft_agent::find(program).ok());
    paths.for_each(|path| sock::warn_of_obstacle(FRONT, &path));
    sock::ensure_rendezvous(FRONT);
    start_for(job, listeners)
}

/// Runs a job that was understood. Variables that nobody knows are told here, once, and by none of the ranks.
pub fn start(job: Job) -> i32 {
    start_for(job, Listeners::of_environment())
}

fn start_for(job: Job, listeners: Listeners) -> i32 {
    unknown_settings(&job).iter().for_each(|unknown| eprintln!("{}: {}", job.front, unknown.warning()));
    carry_out(job, listeners)
}

/// The same without a word about those; what keeps the job from starting is one line on standard error.
pub fn carry_out(mut job: Job, listeners: Listeners) -> i32 {
    let Listeners { room, record } = listeners;
    let front = job.front.clone();
    let record = match record.map(jobs::Appended::open).transpose() {
        Ok(record) => record,
        Err(error) => {
            eprintln!("{front}: {error:#}");
            return 1;
        }
    };
    let refused = refused_settings(&job);
    if !refused.is_empty() {
        refused.iter().for_each(|error| eprintln!("{front}: {error}"));
        return EXIT_USAGE;
    }
    job.network = job.programs.iter().any(wants_network);
    if job.hosts.is_none() && std::env::var_os(UNIVERSE_VARIABLE).is_none() {
        // A rank that is bound to a core does not see the others.
        let cores = weft_kernel::affinity().map_or(1, |mask| mask.len());
        let cores = weft_kernel::quota().map_or(cores, |quota| cores.min(quota as usize).max(1)).to_string();
        let universe = || (UNIVERSE_VARIABLE.to_owned(), cores.clone());
        job.programs.iter_mut().for_each(|program| program.environment.insert(0, universe()));
    }
    // On several hosts, each agent makes the segment of its host.
    if job.hosts.is_none()
        && let Err(error) = add_segment(&mut job)
    {
        eprintln!("{front}: {error}");
        return 1;
    }
    if job.cores.is_none() {
        job.cores = std::env::var_os(CORES_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    }
    let mut room = room.or_else(|| JobRoom::register(&job));
    job.output.log = room.as_mut().and_then(JobRoom::take_log);
    let finished = weft_agent::run(job);
    if let Some(room) = room {
        room.finish(&front, finished.as_ref().ok().map(|finished| &finished.record));
    }
    match finished {
        Ok(finished) => {
            weft_agent::told::tell(&finished.record);
            if let Some(Err(error)) = record.map(|record| record.append(&finished.record)) {
                eprintln!("{front}: {error:#}");
            }
            finished.code
        }
        Err(error) => {
            eprintln!("{front}: {error}");
            error.exit_code()
        }
    }
}

/// What a program's ranks find in their environment.
fn environment(program: &Program) -> HashMap<OsString, OsString> {
    let mut environment: HashMap<OsString, OsString> = std::env::vars_os().collect();
    environment.extend(program.environment.iter().map(|(name, value)| (name.into(), value.into())));
    environment
}

/// Whether ranks of one host are to reach each other otherwise than through shared memory.
fn wants_network(program: &Program) -> bool {
    let settings = Settings::from_env(environment(program)).unwrap_or_default();
    settings.device.names().next() != Some(DeviceName::Shm)
}

/// Settings that the ranks would refuse: said once here instead of by each of them.
fn refused_settings(job: &Job) -> Vec<String> {
    let mut refused = Vec::new();
    for program in &job.programs {
        let errors = Settings::from_env(environment(program)).err().unwrap_or_default();
        refused.extend(errors.iter().map(ToString::to_string));
    }
    refused.sort();
    refused.dedup();
    refused
}

/// What the ranks find in their environment and nobody knows.
fn unknown_settings(job: &Job) -> Vec<Unknown> {
    let mut all: Vec<Unknown> = job.programs.iter().flat_map(|program| unknown(environment(program))).collect();
    all.sort();
    all.dedup();
    all
}

/// The memory that the ranks share. It exists as long as one of them lives, whatever becomes of the launcher.
fn add_segment(job: &mut Job) -> anyhow::Result<()> {
    let segment = segment(u32::try_from(size(&job.programs)?)?).map_err(anyhow::Error::msg)?;
    job.inherit.push((weft_agent::SEGMENT_VARIABLE.to_owned(), segment));
    Ok(())
}

/// The memory for so many members of one host.
pub fn segment(members: u32) -> Result<OwnedFd, String> {
    let segment = Segment::create(members).map_err(|error| error.to_string())?;
    segment.descriptor().try_clone_to_owned().map_err(|error| error.to_string())
}

/// Lanes towards hosts at these addresses, for the ranks at these ports of this host.
pub fn lanes(others: &[IpAddr], ports: &[u16], mode: XdpMode) -> Result<weft_agent::HostLanes, String> {
    let mut lanes = Lanes::facing(others, ports, mode).map_err(|error| error.to_string())?;
    let memory = lanes.memory().try_clone_to_owned().map_err(|error| error.to_string())?;
    let sockets = (0..ports.len()).filter_map(|lane| lanes.take_sockets(lane));
    let sockets = sockets.map(|sockets| [sockets.receiver, sockets.sender]).collect();
    let note = lanes.note().map(str::to_owned);
    Ok(weft_agent::HostLanes { memory, sockets, note, attached: Box::new(lanes) })
}

/// The job. An error is one line for each slip.
fn job(given: RunArguments, further: &[Vec<OsString>]) -> Result<(Job, Option<JobRoom>), Vec<String>> {
    let defaults = Defaults::of_environment();
    let hosts = given.hosts.or_of_environment(&defaults, given.sockets)?.read(&defaults)?;
    let all_slots = hosts.as_ref().filter(|_| further.is_empty()).map(hosts::GivenHosts::ranks);
    let mut programs = vec![given.program.into_program(ranks_of_environment()?.or(all_slots).unwrap_or(1))];
    for part in further {
        // A slip after a `:` ends here, as one before it has.
        let part = crate::parse::<FurtherArguments>(part).unwrap_or_else(|error| crate::refuse(FRONT, &error));
        programs.push(part.program.into_program(1));
    }
    let one = |error: JobError| vec![error.to_string()];
    let usual =
        hosts.as_ref().and_then(hosts::GivenHosts::device).filter(|_| std::env::var_os(DEVICE_VARIABLE).is_none());
    if let Some(order) = given.device.or_else(|| usual.map(str::to_owned)) {
        programs.iter_mut().for_each(|program| program.environment.push((DEVICE_VARIABLE.to_owned(), order.clone())));
    }
    let switches = [(given.encrypt, ENCRYPT_VARIABLE), (given.keep_going, KEEP_GOING_VARIABLE)];
    for (_, name) in switches.into_iter().filter(|(is_on, _)| *is_on) {
        let on = || (name.to_owned(), "on".to_owned());
        programs.iter_mut().for_each(|program| program.environment.push(on()));
    }
    let size = size(&programs).map_err(one)?;
    let stdin = parse_stdin(&given.stdin, size).map_err(one)?;
    let timeout = given.timeout.or(defaults.timeout);
    let partition = hosts.as_ref().and_then(hosts::GivenHosts::partition);
    let id = JobId::new();
    let (room, hosts) = match hosts {
        None => (None, None),
        Some(hosts) => match hosts.ask(size, Wishes::of(id.clone(), &programs, timeout))? {
            Some((room, hosts)) => (Some(room), hosts),
            None => (None, hosts.spread(size)?),
        },
    };
    let tag = given.tag_output || defaults.tag;
    let job = Job {
        front: FRONT.to_owned(),
        id,
        programs,
        bind: given.bind.unwrap_or(defaults.bind),
        stdin,
        output: given.output.map_or(RankOutput::merged(tag), |directory| RankOutput::files_in(&directory)),
        timeout: timeout.map(TimeLimit::from).or_else(|| room.as_ref()?.time_limit()),
        inherit: Vec::new(),
        hosts,
        keep_going: given.keep_going || defaults.keep_going,
        network: false,
        partition,
        cores: given.cores,
        starter: None,
    };
    Ok((job, room))
}

/// How many ranks a program has whose command line does not say it.
fn ranks_of_environment() -> Result<Option<usize>, Vec<String>> {
    match std::env::var(RANKS_VARIABLE) {
        Ok(given) if !given.is_empty() => {
            parse_count(&given).map(Some).map_err(|error| vec![format!("{RANKS_VARIABLE}: {error}")])
        }
        _ => Ok(None),
    }
}

impl ProgramArguments {
    /// `ranks`: how many when it is not said.
    fn into_program(self, ranks: usize) -> Program {
        let mut command = self.command.into_iter();
        Program {
            program: command.next().unwrap_or_default().to_string_lossy().into_owned(),
            arguments: command.collect(),
            ranks: self.ranks.unwrap_or(ranks),
            environment: self.env,
            directory: self.wdir,
        }
    }
}

/// Refused here, and not by the ranks, it is named as it was given.
fn parse_device(given: &str) -> Result<String, String> {
    let device = DEFINITIONS.iter().find(|known| known.env == DEVICE_VARIABLE);
    match device.filter(|known| known.kind.parse(given.trim()).is_none()) {
        Some(known) => Err(format!("accepted is: {}", known.kind)),
        None => Ok(given.to_owned()),
    }
}

fn parse_variable(given: &str) -> Result<(String, String), JobError> {
    parse_environment(given, |name| std::env::var(name).ok())
}

/// Reads a time such as `90`, `1.5h`, `20s` or `300ms`.
pub fn parse_time(given: &str) -> Result<Duration, String> {
    let digits = given.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &given[digits.len()..] {
        "ms" => Some(0.001),
        "" | "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    let seconds = unit.and_then(|unit| Some(digits.parse::<f64>().ok()? * unit));
    let accepted = seconds.filter(|seconds| *seconds > 0.0 && *seconds < 1e9);
    accepted
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "not a time above 0, such as 90 or 90s (seconds), 300ms, 5m or 1.5h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn command_line_is_cut_at_colons() {
        let line = first_program_only(words("weft run --device udp -np 2 --env A=1 a -np : -np 3 b : c"));
        assert_eq!(line.own, words("weft run --device udp -n 2 --env A=1 a -np"));
        assert_eq!(line.further, [words("-n 3 b"), words("c")]);
    }

    #[test]
    fn other_subcommands_keep_their_colons() {
        assert_eq!(first_program_only(words("weft cc a : b")).own, words("weft cc a : b"));
    }

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(parse_time("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_time("300ms"), Ok(Duration::from_millis(300)));
        assert_eq!(parse_time("7"), Ok(Duration::from_secs(7)));
        for bad in ["", "0", "-1", "x", "5d", "nan", "inf", "1e300"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}
