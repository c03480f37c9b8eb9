//! `mpiexec`, `mpirun` and `weft mpiexec`: what scripts for Open MPI, MPICH and Intel MPI say to theirs.

use super::draft::Draft;
use super::options::{GivenOption, OptionSection, OptionTable, Spelling, Words, known};
use super::{FrontWish, Slip, for_all, hosts, placing, read_options, version};
use crate::run;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use weft_agent::Destination;
use weft_cluster::hosts::words;
use weft_cluster::job::parse_environment;

/// What an option comes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Becomes {
    Ranks,
    Variable,
    Own,
    ForAll,
    Directory,
    Hosts,
    HostFile,
    PerHost,
    OnePerHost,
    PerSocket,
    Map,
    ByHost,
    Threads,
    Oversubscribe,
    Bind,
    BindCore,
    BindSocket,
    BindNone,
    Tag,
    Output,
    Files,
    Pattern(usize),
    Stdin,
    Timeout,
    KeepGoing,
    Universe,
    ConfigFile,
    Verbose,
    Version,
    Help,
    /// For the reason that the help gives.
    Ignored,
}

use Becomes as B;

pub(super) const TABLE: OptionTable<Becomes> = OptionTable {
    spelling: Spelling::AnyDashes,
    sections: &[
        OptionSection {
            title: "For each program",
            options: &[
                known("n np c", "N", B::Ranks, "number of ranks (else one for each slot, or 1)"),
                known("env", "NAME VALUE", B::Own, "set a variable for its ranks"),
                known("x", "NAME[=VALUE]", B::Variable, "the same, or pass on one that is set here"),
                known("wdir wd", "DIR", B::Directory, "directory to start in"),
                known("H host hosts", "LIST", B::Hosts, "hosts, NAME or NAME:SLOTS, with commas; several -host add up"),
                known(
                    "f hostfile machinefile default-hostfile",
                    "FILE",
                    B::HostFile,
                    "the same, one a line; or NAME slots=SLOTS",
                ),
            ],
        },
        OptionSection {
            title: "For the job",
            options: &[
                known("configfile", "FILE", B::ConfigFile, "programs with their options, one a line"),
                known("genv", "NAME VALUE", B::ForAll, "set a variable for all ranks"),
                known("ppn perhost grr N npernode", "N", B::PerHost, "ranks for each host"),
                known("pernode rr", "", B::OnePerHost, "one rank for each host"),
                known("npersocket", "N", B::PerSocket, "ranks are spread over hosts only; needs -n"),
                known(
                    "map-by",
                    "HOW",
                    B::Map,
                    "slot, node (one for each host in turn) or ppr:N:node; all else as slot",
                ),
                known("bynode", "", B::ByHost, "as -map-by node"),
                known("oversubscribe", "", B::Oversubscribe, "more ranks than slots"),
                known(
                    "bind-to",
                    "HOW",
                    B::Bind,
                    "core; hwthread, a core each if all find a free one; none, socket, numa: not bound",
                ),
                known("bind-to-core", "", B::BindCore, "as -bind-to core"),
                known("bind-to-socket", "", B::BindSocket, "as -bind-to socket"),
                known("bind-to-none", "", B::BindNone, "as -bind-to none"),
                known(
                    "cpus-per-proc cpus-per-rank",
                    "N",
                    B::Threads,
                    "cores that a rank needs: of more than one, it is not bound",
                ),
                known("l prepend-rank tag-output", "", B::Tag, "begin every line of output with its rank"),
                known("prepend-pattern", "TEXT", B::Tag, "the same; the text is not looked at"),
                known("output", "LIST", B::Output, "tag, dir=DIR or file=DIR; all else is ignored"),
                known(
                    "output-filename",
                    "DIR",
                    B::Files,
                    "write each rank's output to DIR/rank-N.out and DIR/rank-N.err",
                ),
                known(
                    "outfile-pattern",
                    "FILE",
                    B::Pattern(0),
                    "write each rank's standard output there; %r is the rank (without it, one file for all)",
                ),
                known("errfile-pattern", "FILE", B::Pattern(1), "the same for standard error"),
                known("s stdin", "WHO", B::Stdin, "who gets standard input: a rank, all or none (0)"),
                known(
                    "timeout",
                    "SECONDS",
                    B::Timeout,
                    "end the job after this time (else WEFT_TIMEOUT or MPIEXEC_TIMEOUT)",
                ),
                known(
                    "disable-auto-cleanup enable-recovery continuous",
                    "",
                    B::KeepGoing,
                    "when a rank is lost, let the others go on",
                ),
                known("usize", "N", B::Universe, "what MPI_UNIVERSE_SIZE promises; SYSTEM and INFINITE: as without it"),
                known("v verbose", "", B::Verbose, "say what is ignored"),
                known("V version info", "", B::Version, "say which version this is"),
                known("h help", "", B::Help, "say this"),
            ],
        },
        OptionSection { title: "Ignored, for the reason that stands there", options: &IGNORED },
    ],
};

const WHOLE: &str = "the whole environment is passed on";
const HOW_REACHED: &str = "other hosts are reached by ssh, or as WEFT_LAUNCH says";
const PARAMETER: &str = "parameters of Open MPI mean nothing here; weft info lists the settings";
const NOT_SHOWN: &str = "placement is not shown; weft ps shows each rank while the job runs";
const CHOSEN: &str = "ranks are numbered host by host, and cores are chosen by the launcher";
const SAID_ANYWAY: &str = "the rank that fails first is reported with its code, always";
const STREAMS: &str = "lines go out as they are written; only the rank can stand before them";
const NO_DEBUGGER: &str = "the launcher starts no debugger or tool; a program may be started by one";
const NO_TOPOLOGY: &str = "placement of memory and devices is left to the system";
const NO_SERVICE: &str = "there is no such service beside the launcher";
const AS_IT_IS: &str = "it is so, or makes no difference here";

const IGNORED: [super::options::KnownOption<Becomes>; 32] = [
    known("genvall genvnone envall envnone", "", B::Ignored, WHOLE),
    known("genvlist genvexcl envlist envexcl unset-env", "LIST", B::Ignored, WHOLE),
    known("mca gmca omca prtemca pmixmca gpmixmca", "NAME VALUE", B::Ignored, PARAMETER),
    known("am tune", "FILE", B::Ignored, PARAMETER),
    known("launcher bootstrap launcher-exec bootstrap-exec rmk launch-agent plm", "HOW", B::Ignored, HOW_REACHED),
    known(
        "report-bindings display-map display-allocation display-devel-map display-topo print-rank-map prot",
        "",
        B::Ignored,
        NOT_SHOWN,
    ),
    known("display", "LIST", B::Ignored, NOT_SHOWN),
    known("rank-by rankmap order-nodes rankfile rf cpu-set cpu-list cpu-bind", "HOW", B::Ignored, CHOSEN),
    known("byslot bycore bysocket use-hwthread-cpus hetero-nodes", "", B::Ignored, CHOSEN),
    known("nolocal skip-launch-node novm", "", B::Ignored, "ranks run where the hosts are listed"),
    known("nooversubscribe no-oversubscribe", "", B::Ignored, "it is so where slots are given for other hosts"),
    known("membind topolib gpus-per-proc gpu-support memory-alloc-kinds", "HOW", B::Ignored, NO_TOPOLOGY),
    known(
        "iface localhost nameserver demux tmpdir ofi-provider",
        "WHAT",
        B::Ignored,
        "addresses are found by the ranks; weft info lists the settings",
    ),
    known("print-all-exitcodes silent-abort report-child-jobs-separately show-progress", "", B::Ignored, SAID_ANYWAY),
    known("timestamp-output prepend-timestamp xml merge-stderr-to-stdout", "", B::Ignored, STREAMS),
    known("stream-buffering", "N", B::Ignored, STREAMS),
    known("gdb debug tv aps mps profile", "", B::Ignored, NO_DEBUGGER),
    known("gtool gtoolfile xterm debugger", "WHAT", B::Ignored, NO_DEBUGGER),
    known("report-pid report-uri dvm forward-signals", "WHAT", B::Ignored, NO_SERVICE),
    known(
        "prefix path pmix-prefix app-pmix-prefix",
        "DIR",
        B::Ignored,
        "programs are found by PATH, and Weft where it is installed",
    ),
    known("noprefix no-app-prefix", "", B::Ignored, "programs are found by PATH, and Weft where it is installed"),
    known("personality tune-file max-vm-size max-restarts pset", "WHAT", B::Ignored, AS_IT_IS),
    known("runtime-options rtos", "LIST", B::Ignored, AS_IT_IS),
    known("allow-run-as-root q quiet do-not-resolve leave-session-attached pmi-port set-sid", "", B::Ignored, AS_IT_IS),
    known("enable-x disable-x disable-hostname-propagation hybrid-hosts disable-recovery", "", B::Ignored, AS_IT_IS),
    known(
        "get-stack-traces report-state-on-timeout debug-daemons debug-devel",
        "",
        B::Ignored,
        "weft ps shows what each rank does",
    ),
    known("preload-binary", "", B::Ignored, "programs are not copied"),
    known("preload-files", "LIST", B::Ignored, "files are not copied"),
    known("trace check-mpi ilp64 ordered-output noconf cleanup use-app-topology", "", B::Ignored, AS_IT_IS),
    known("ib rdma ofi dapl psm2 tcp", "", B::Ignored, "devices are chosen by WEFT_DEVICE"),
    known("branch-count spawn-timeout bootstrap-exec-args", "WHAT", B::Ignored, HOW_REACHED),
    known("stop-on-exec stop-in-init stop-in-app", "", B::Ignored, NO_DEBUGGER),
];

/// Whether `mpiexec` has an option that is written so.
pub fn has(option: &str) -> bool {
    TABLE.has(option.trim_start_matches('-').split('=').next().unwrap_or_default())
}

/// What `mpiexec -help` and the manual say.
pub fn help() -> String {
    format!(
        "\
Starts parallel programs with the options of other launchers (see also: weft run --help).

Usage: mpiexec [OPTIONS] PROGRAM [ARGUMENTS]... [: [OPTIONS] PROGRAM [ARGUMENTS]...]...

Names stand behind one dash or two. What is ignored is told in a line where -v is given.
{}",
        TABLE.help()
    )
}

/// Reads the command line, runs the job, answers the exit code. `front` is the name that the user typed.
pub fn main(front: &str, arguments: &[OsString]) -> i32 {
    super::start(front, read(front, arguments))
}

pub(super) fn read(front: &str, arguments: &[OsString]) -> Result<FrontWish, Vec<Slip>> {
    let mut draft = Draft::new(front);
    draft.timeout = draft.timeout.or_else(timeout_of_others);
    let mut words: Words = arguments.iter().cloned().collect();
    loop {
        let slips = read_options(&TABLE, &mut words, "-help", |given, words| apply(&mut draft, given, words));
        if !slips.is_empty() {
            return Err(slips);
        }
        match words.pop_front() {
            _ if draft.text.is_some() => break,
            None if draft.parts.is_empty() => return Err(vec!["no program given; -help shows the options".to_owned()]),
            None => return Err(vec!["a program is missing after ':'".to_owned()]),
            Some(word) if word == ":" => return Err(vec!["a program is missing before ':'".to_owned()]),
            Some(program) => {
                let end = words.iter().position(|word| word == ":");
                let arguments = words.drain(..end.unwrap_or(words.len())).collect();
                draft.finish_part(&program, arguments);
                if words.pop_front().is_none() {
                    break;
                }
            }
        }
    }
    open_patterns(&mut draft).map_err(|slip| vec![slip])?;
    draft.finish().map_err(|slip| vec![slip])
}

fn apply(draft: &mut Draft, given: &GivenOption<Becomes>, words: &mut Words) -> Result<(), Slip> {
    let (option, value) = (given.option.as_str(), given.value());
    match given.known.becomes {
        B::Ranks => draft.set_ranks(option, value)?,
        B::Variable => pass_on(draft, given)?,
        B::Own => draft.set_own_variable(option, value, &given.values[1])?,
        B::ForAll => draft.set_variable(option, value, &given.values[1])?,
        B::Directory => draft.set_directory(value),
        B::Hosts => draft.part.add_hosts(hosts::read_list(option, value)?)?,
        B::HostFile => draft.part.add_hosts(hosts::read_file(option, value)?)?,
        B::PerHost => draft.set_per_host(option, value)?,
        B::OnePerHost => draft.per_host = Some(1),
        B::PerSocket => draft.countless = Some(option.to_owned()),
        B::Map => placing::map(draft, option, value)?,
        B::ByHost => placing::map(draft, option, "node")?,
        B::Threads => draft.threads = placing::threads(option, value)?,
        B::Oversubscribe => draft.oversubscribe = true,
        B::Bind => placing::bind(draft, option, value)?,
        B::BindCore => placing::bind(draft, option, "core")?,
        B::BindSocket => placing::bind(draft, option, "socket")?,
        B::BindNone => placing::bind(draft, option, "none")?,
        B::Tag => draft.tag = true,
        B::Output => write_output(draft, option, value),
        B::Files => draft.write_files_in(value),
        B::Pattern(stream) => draft.patterns[stream] = Some((option.to_owned(), pattern(option, value)?)),
        B::Stdin => draft.stdin = Some(value.to_owned()),
        B::Timeout => draft.set_timeout(option, value)?,
        B::KeepGoing => draft.keep_going(),
        B::Universe => promise(draft, option, value)?,
        B::ConfigFile => insert_file(draft, option, value, words)?,
        B::Verbose => draft.verbose = true,
        B::Version => draft.text = Some(version(&draft.front)),
        B::Help => draft.text = Some(help()),
        B::Ignored => draft.ignore(given, given.known.meaning),
    }
    Ok(())
}

/// `NAME=VALUE`, or a `NAME` that is set here; scripts name variables that are not set.
fn pass_on(draft: &mut Draft, given: &GivenOption<Becomes>) -> Result<(), Slip> {
    let (option, variable) = (&given.option, given.value());
    if !variable.contains('=') && std::env::var_os(variable).is_none() {
        draft.ignore(given, "it is not set here");
        return Ok(());
    }
    let variable = parse_environment(variable, |name| std::env::var(name).ok());
    draft.part.program.environment.push(variable.map_err(|error| format!("{option}: {error}"))?);
    Ok(())
}

/// Open MPI's list for output.
fn write_output(draft: &mut Draft, option: &str, list: &str) {
    for word in list.split(',') {
        let (word, _) = word.split_once(':').unwrap_or((word, ""));
        match word.split_once('=') {
            Some(("dir" | "directory" | "file", directory)) => draft.write_files_in(directory),
            None if word.to_lowercase().starts_with("tag") => draft.tag = true,
            _ => draft.ignore(format!("{option} {word}"), STREAMS),
        }
    }
}

/// With the rank in it a pattern is a file for each rank, which its host writes. Another one is a file for all, which
/// the launcher writes; both streams may share it.
fn open_patterns(draft: &mut Draft) -> Result<(), Slip> {
    let patterns = std::mem::take(&mut draft.patterns).map(|given| given.filter(|_| draft.text.is_none()));
    let same = matches!(&patterns, [Some((_, out)), Some((_, err))] if out == err);
    for (stream, given) in patterns.into_iter().enumerate() {
        let Some((option, path)) = given else { continue };
        draft.streams[stream] = match &draft.streams[0] {
            _ if path.to_string_lossy().contains("%r") => Destination::Each(path),
            Destination::MergedInto(file) if same && stream == 1 => {
                Destination::MergedInto(file.try_clone().map_err(|error| format!("{option}: {error}"))?)
            }
            _ => for_all(&option, &path)?,
        };
    }
    Ok(())
}

/// Hydra's pattern in ours.
fn pattern(option: &str, given: &str) -> Result<PathBuf, Slip> {
    let mut after = given.split('%').skip(1);
    let sound = after.all(|rest| rest.starts_with('r'));
    let slip = || format!("{option} '{given}': behind % only r is known, the rank");
    sound.then(|| PathBuf::from(given)).ok_or_else(slip)
}

fn promise(draft: &mut Draft, option: &str, given: &str) -> Result<(), Slip> {
    let number = given.parse::<u32>().ok().filter(|number| *number > 0);
    match (given.to_uppercase().as_str(), number) {
        ("SYSTEM" | "INFINITE", _) => Ok(()),
        (_, Some(number)) => draft.set_variable(option, run::UNIVERSE_VARIABLE, &number.to_string()),
        _ => Err(format!("{option} '{given}' is not SYSTEM, INFINITE or a number above 0")),
    }
}

/// The programs of a file come where the option stands, with `:` between them. A backslash at the end of a line joins
/// it with the next one.
fn insert_file(draft: &mut Draft, option: &str, file: &str, rest: &mut Words) -> Result<(), Slip> {
    let unreadable = |error| format!("{option} '{file}' cannot be read: {error}");
    let path = std::fs::canonicalize(file).map_err(unreadable)?;
    if draft.files.contains(&path) {
        return Err(format!("{option} '{file}' was read before; such a file is read once and may not name itself"));
    }
    let text = std::fs::read_to_string(&path).map_err(unreadable)?;
    draft.files.push(path);
    let mut inserted = Words::new();
    let text = text.replace("\\\n", " ");
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words = words(line).ok_or_else(|| format!("{option} '{file}': '{line}' ends within quotes"))?;
        if !inserted.is_empty() {
            inserted.push_back(":".into());
        }
        inserted.extend(words.into_iter().map(OsString::from));
    }
    inserted.append(rest);
    *rest = inserted;
    Ok(())
}

/// What scripts for MPICH's launcher say in place of an option.
fn timeout_of_others() -> Option<Duration> {
    run::parse_time(&std::env::var("MPIEXEC_TIMEOUT").ok()?).ok()
}
