//! `weft srun`: what scripts for Slurm say to its `srun`, on this host or on those of `-w`.

use super::draft::Draft;
use super::hosts::ListedHosts;
use super::options::{GivenOption, OptionSection, OptionTable, Spelling, Words, known};
use super::{FrontWish, Slip, for_all, hosts, placing, read_options, version};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weft_agent::Destination;
use weft_cluster::hosts::RankMap;
use weft_cluster::job::{StdinTo, parse_count};

/// What an option comes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SrunBecomes {
    Ranks,
    Nodes,
    PerHost,
    Threads,
    Hosts,
    Exclude,
    Distribution,
    Label,
    Output(usize),
    Input,
    Directory,
    Time,
    Export,
    Bind,
    OnBadExit,
    Verbose,
    Version,
    Help,
    /// For the reason that the help gives.
    Ignored,
}

use SrunBecomes as B;

const NO_QUEUE: &str = "there is no queue; the job starts now";
const NOTHING_RESERVED: &str = "nothing is reserved; the job takes what is there";
const BY_PMI: &str = "ranks are started by PMI-1, which our libraries and MPICH's speak";
const BY_LAUNCHER: &str = "cores are chosen by the launcher";

pub(super) const TABLE: OptionTable<SrunBecomes> = OptionTable {
    spelling: Spelling::ByLength,
    sections: &[
        OptionSection {
            title: "Options",
            options: &[
                known("n ntasks", "N", B::Ranks, "number of ranks (else those of -N, or 1)"),
                known("N nodes", "N", B::Nodes, "number of hosts; more than one needs -w"),
                known("ntasks-per-node", "N", B::PerHost, "ranks for each host"),
                known("c cpus-per-task", "N", B::Threads, "cores that a rank needs: of more than one, it is not bound"),
                known("w nodelist", "LIST", B::Hosts, "hosts, with commas; node[1-4,7] stands for several"),
                known("x exclude", "LIST", B::Exclude, "hosts of -w that are left out"),
                known(
                    "m distribution",
                    "HOW",
                    B::Distribution,
                    "block; cyclic: one for each host in turn; plane=N: N for each in turn",
                ),
                known("l label", "", B::Label, "begin every line of output with its rank"),
                known(
                    "o output",
                    "FILE",
                    B::Output(0),
                    "write the output there: %t is the rank, %j the job, %N the host, %u the user",
                ),
                known("e error", "FILE", B::Output(1), "write standard error there (else as -o)"),
                known("i input", "WHO", B::Input, "who gets standard input: a rank, all or none (all)"),
                known("D chdir", "DIR", B::Directory, "directory to start in"),
                known(
                    "t time",
                    "TIME",
                    B::Time,
                    "end the job then: minutes, minutes:seconds, hours:minutes:seconds, days-hours",
                ),
                known(
                    "export",
                    "LIST",
                    B::Export,
                    "NAME=VALUE sets a variable; the whole environment is passed on anyway",
                ),
                known("cpu-bind", "HOW", B::Bind, "cores, threads, sockets, none; all else is ignored"),
                known("K kill-on-bad-exit", "[=N]", B::OnBadExit, "it is so; 0 is ignored"),
                known("v verbose", "", B::Verbose, "say what is ignored"),
                known("V version", "", B::Version, "say which version this is"),
                known("h help", "", B::Help, "say this"),
            ],
        },
        OptionSection {
            title: "Ignored",
            options: &[
                known("mpi", "HOW", B::Ignored, BY_PMI),
                known("exclusive", "[=WHO]", B::Ignored, NOTHING_RESERVED),
                known(
                    "mem mem-per-cpu gres gpus gpus-per-node gpus-per-task tmp C constraint",
                    "WHAT",
                    B::Ignored,
                    NOTHING_RESERVED,
                ),
                known("O overcommit s oversubscribe share overlap exact spread-job", "", B::Ignored, NOTHING_RESERVED),
                known(
                    "p partition A account J job-name q qos d dependency b begin reservation comment",
                    "WHAT",
                    B::Ignored,
                    NO_QUEUE,
                ),
                known("mail-user mail-type", "WHAT", B::Ignored, NO_QUEUE),
                known("I immediate", "[=N]", B::Ignored, NO_QUEUE),
                known(
                    "hint threads-per-core mem-bind ntasks-per-core ntasks-per-socket gpu-bind",
                    "HOW",
                    B::Ignored,
                    BY_LAUNCHER,
                ),
                known("u unbuffered Q quiet X disable-status pty", "", B::Ignored, "it makes no difference here"),
                known("W wait", "N", B::Ignored, "the job ends with its last rank, or with the first that fails"),
                known("open-mode propagate network jobid", "WHAT", B::Ignored, "it makes no difference here"),
            ],
        },
    ],
};

/// What `weft srun --help` and the manual say.
pub fn help() -> String {
    format!(
        "\
Starts a parallel program with the options of Slurm's srun, without Slurm (see also: weft run --help).

Usage: weft srun [OPTIONS] PROGRAM [ARGUMENTS]...

What is ignored is told in a line where -v is given.
{}",
        TABLE.help()
    )
}

/// Reads the command line, runs the job, answers the exit code.
pub fn main(front: &str, arguments: &[OsString]) -> i32 {
    super::start(front, read(front, arguments))
}

/// What only srun has, while options are read.
#[derive(Default)]
struct SrunOwn {
    nodes: Option<usize>,
    /// So many ranks for each host in turn; otherwise hosts are filled, each with as many.
    plane: Option<usize>,
    excluded: Option<ListedHosts>,
    /// As given, for standard output and standard error.
    files: [Option<String>; 2],
}

pub(super) fn read(front: &str, arguments: &[OsString]) -> Result<FrontWish, Vec<Slip>> {
    let (mut draft, mut own) = (Draft::new(front), SrunOwn::default());
    draft.stdin_default = StdinTo::All;
    let mut words: Words = arguments.iter().cloned().collect();
    let slips = read_options(&TABLE, &mut words, "--help", |given, _| apply(&mut draft, &mut own, given));
    if !slips.is_empty() {
        return Err(slips);
    }
    match words.pop_front() {
        _ if draft.text.is_some() => {}
        None => return Err(vec!["no program given; --help shows the options".to_owned()]),
        Some(_) if words.iter().any(|word| word == ":") => {
            Err(vec!["several programs (:) are not for weft srun; weft run and mpiexec take them".to_owned()])?;
        }
        Some(program) => {
            place(&mut draft, &own).map_err(|slip| vec![slip])?;
            draft.streams = streams(&own.files).map_err(|slip| vec![slip])?;
            draft.finish_part(&program, words.into());
        }
    }
    draft.finish().map_err(|slip| vec![slip])
}

fn apply(draft: &mut Draft, own: &mut SrunOwn, given: &GivenOption<SrunBecomes>) -> Result<(), Slip> {
    let (option, value) = (given.option.as_str(), given.value());
    match given.known.becomes {
        B::Ranks => draft.set_ranks(option, value)?,
        B::Nodes => {
            // A range allows fewer.
            let least = value.split('-').next().unwrap_or_default();
            own.nodes = Some(parse_count(least).map_err(|_| format!("{option}: '{value}' is not a number of hosts"))?);
        }
        B::PerHost => draft.set_per_host(option, value)?,
        B::Threads => {
            draft.threads = placing::threads(option, value)?;
            draft.environment.push(("SLURM_CPUS_PER_TASK".to_owned(), value.to_owned()));
        }
        B::Hosts => draft.part.hosts = Some(hosts::read_node_list(option, value)?),
        B::Exclude => own.excluded = Some(hosts::read_node_list(option, value)?),
        B::Distribution => own.plane = distribution(option, value)?,
        B::Label => draft.tag = true,
        B::Output(stream) => own.files[stream] = Some(value.to_owned()),
        B::Input => draft.stdin = Some(value.to_owned()),
        B::Directory => draft.set_directory(value),
        B::Time => draft.timeout = time(option, value)?,
        B::Export => export(draft, option, value)?,
        B::Bind => bind(draft, given)?,
        B::OnBadExit if value == "0" => draft.ignore(given, "where a rank fails the others are ended"),
        B::OnBadExit => {}
        B::Verbose => draft.verbose = true,
        B::Version => draft.text = Some(version(&draft.front)),
        B::Help => draft.text = Some(help()),
        B::Ignored => draft.ignore(given, given.known.meaning),
    }
    Ok(())
}

/// How many ranks go to each host in turn, by the first word; the others are about places within a host.
fn distribution(option: &str, given: &str) -> Result<Option<usize>, Slip> {
    let first = given.split([':', ',']).next().unwrap_or_default();
    match first.to_lowercase().as_str() {
        "block" | "*" | "pack" | "nopack" => Ok(None),
        "cyclic" => Ok(Some(1)),
        word => {
            let plane = word.strip_prefix("plane=").and_then(|count| parse_count(count).ok());
            let slip = || format!("{option} '{first}' is not known; accepted are block, cyclic and plane=N");
            plane.map(Some).ok_or_else(slip)
        }
    }
}

/// Without the hosts that were excluded.
fn leave_out(listed: Option<&mut ListedHosts>, excluded: &ListedHosts) -> Result<(), Slip> {
    let option = &excluded.option;
    match listed {
        Some(listed) => {
            listed.leave_out(excluded);
            if listed.hosts.is_empty() {
                return Err(format!("{option}: no host of -w is left"));
            }
        }
        None if excluded.names_here() => {
            return Err(format!("{option}: without -w the job runs on this host, {}", weft_agent::host_name()));
        }
        None => {}
    }
    Ok(())
}

/// So many hosts of the list; where no number of ranks is given, one for each.
fn place(draft: &mut Draft, own: &SrunOwn) -> Result<(), Slip> {
    if let Some(excluded) = &own.excluded {
        leave_out(draft.part.hosts.as_mut(), excluded)?;
    }
    let listed = draft.part.hosts.as_mut();
    let names = listed.as_ref().map_or(1, |listed| listed.hosts.len());
    let nodes = own.nodes.unwrap_or(names);
    if nodes > names {
        return Err(format!("-N: {nodes} hosts, but there are {names}; -w lists others"));
    }
    if let Some(listed) = listed {
        listed.hosts.truncate(nodes);
    }
    let ranks = *draft.part.ranks.get_or_insert(nodes * draft.per_host.unwrap_or(1));
    let share = draft.per_host.unwrap_or(ranks.div_ceil(nodes));
    match own.plane {
        Some(1) => (draft.map, draft.per_host) = (RankMap::Host, None),
        plane => draft.per_host = Some(plane.unwrap_or(share)),
    }
    Ok(())
}

/// `--cpu-bind`: what is no kind of place asks to be told, or for cores by number.
fn bind(draft: &mut Draft, given: &GivenOption<SrunBecomes>) -> Result<(), Slip> {
    for word in given.value().split(',') {
        match word {
            "core" | "cores" => placing::bind(draft, &given.option, "hwthread")?,
            "thread" | "threads" | "socket" | "sockets" | "ldoms" | "none" | "no" => {
                placing::bind(draft, &given.option, word)?;
            }
            _ => draft.ignore(format!("{} {word}", given.option), BY_LAUNCHER),
        }
    }
    Ok(())
}

/// `ALL`, `NONE`, `NAME` and `NAME=VALUE`, with commas.
fn export(draft: &mut Draft, option: &str, list: &str) -> Result<(), Slip> {
    for word in list.split(',') {
        match word.split_once('=') {
            Some((name, value)) => draft.set_variable(option, name, value)?,
            None => draft.ignore(format!("{option} {word}"), "the whole environment is passed on"),
        }
    }
    Ok(())
}

/// Minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes and so on; 0 is without a limit.
fn time(option: &str, given: &str) -> Result<Option<Duration>, Slip> {
    let numbers = |text: &str| text.split(':').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<_>>>();
    let seconds = match given.split_once('-') {
        Some((days, rest)) => days.parse::<u64>().ok().zip(numbers(rest)).and_then(|(days, rest)| match rest[..] {
            [h] => Some((days, h, 0, 0)),
            [h, m] => Some((days, h, m, 0)),
            [h, m, s] => Some((days, h, m, s)),
            _ => None,
        }),
        None => numbers(given).and_then(|parts| match parts[..] {
            [m] => Some((0, 0, m, 0)),
            [m, s] => Some((0, 0, m, s)),
            [h, m, s] => Some((0, h, m, s)),
            _ => None,
        }),
    };
    let small = |&(d, h, m, s): &(u64, u64, u64, u64)| [d, h, m, s].iter().all(|part| *part < 1_000_000);
    let seconds = seconds.filter(small).map(|(d, h, m, s)| d * 86400 + h * 3600 + m * 60 + s);
    let slip = || format!("{option} '{given}' is not a time such as 90 (minutes), 5:00, 1:30:00 or 1-12");
    seconds.map(|seconds| (seconds > 0).then(|| Duration::from_secs(seconds))).ok_or_else(slip)
}

/// Standard error goes where standard output does, unless it has a place of its own.
fn streams(files: &[Option<String>; 2]) -> Result<[Destination; 2], Slip> {
    let [out, err] = files;
    let first = out.as_deref().map_or(Ok(Destination::Merged), |given| destination("-o", given))?;
    // The same file is opened once, so that one stream does not write over the other.
    let second = match (err.as_ref().filter(|given| Some(*given) != out.as_ref()), &first) {
        (Some(given), _) => destination("-e", given)?,
        (None, Destination::Each(path)) => Destination::Each(path.clone()),
        (None, Destination::MergedInto(file)) => {
            let file = file.try_clone().map_err(|error| format!("-o: {error}"))?;
            Destination::MergedInto(file)
        }
        (None, Destination::Merged) => Destination::Merged,
    };
    Ok([first, second])
}

/// A path with the rank in it is one for each rank, another one is for all.
fn destination(option: &str, given: &str) -> Result<Destination, Slip> {
    if given == "all" {
        return Ok(Destination::Merged);
    }
    if given.bytes().all(|letter| letter.is_ascii_digit()) {
        return Err(format!("{option} {given}: the output of one rank alone cannot be chosen; a file, all or none"));
    }
    let given = if given == "none" { "/dev/null" } else { given };
    let (mut path, mut each) = (String::new(), false);
    let mut letters = given.chars();
    while let Some(letter) = letters.next() {
        match (letter, if letter == '%' { letters.next() } else { None }) {
            ('%', Some('t')) => {
                path += "%r";
                each = true;
            }
            ('%', Some('j' | 'J' | 'A')) => path += &std::process::id().to_string(),
            ('%', Some('s')) => path.push('0'),
            ('%', Some('N')) => path += weft_agent::host_name().split('.').next().unwrap_or_default(),
            ('%', Some('u')) => path += &std::env::var("USER").unwrap_or_default(),
            ('%', Some('%')) => path += "%%",
            ('%', _) => return Err(format!("{option} '{given}': behind % stands one of t, j, J, A, s, N, u and %")),
            (other, _) => path.push(other),
        }
    }
    if each {
        return Ok(Destination::Each(PathBuf::from(path)));
    }
    for_all(option, Path::new(&path.replace("%%", "%")))
}
