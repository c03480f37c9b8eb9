//! Everything that connects the ranks of this host with the launcher, or with the agent that stands for it: made before
//! the keeper is forked, then split into two halves.

use crate::faults::{self, FaultPlan};
use crate::keeper::{RankInput, RankStart};
use crate::pmix::{BeginningPmix, Environments, PmixServer};
use crate::sys::Apart;
use crate::{Destination, JOB_VARIABLE, Job, LaunchError, RankOutput, elf, libraries, program, sys, tuning};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use weft_cluster::job::{StdinTo, is_reserved, programs_by_rank};
use weft_cluster::placement::{Bind, Core};
use weft_pmix::{LIBRARY, LIBRARY_VARIABLE, PmixJob};
use weft_wire::settings::Settings;

/// Descriptors per rank while both halves are in one process: two pipes, a socket pair, perhaps one for input.
const PER_RANK: u64 = 12;
/// What a rank reads that gets no input.
const NOTHING: &str = "/dev/null";
/// Descriptors of the launcher itself, and what it inherited.
const OWN: u64 = 64;

/// The ranks of a job that this host runs.
#[derive(Default)]
pub struct Here {
    /// Their numbers in the job, in the order of their members.
    pub ranks: Vec<usize>,
    /// Ranks of the whole job.
    pub size: usize,
    /// What their environment is made from.
    pub environment: HashMap<OsString, OsString>,
    /// Descriptors for one member each, with the variables that tell their numbers.
    pub own: Vec<Vec<(&'static str, OwnedFd)>>,
    /// Our standard input is the user's.
    pub with_the_user: bool,
    /// The names of all hosts, and the number of each rank's; none where it is this one alone.
    pub hosts: (Vec<String>, Vec<usize>),
    /// The PMIx server, if it has begun, and what it has its ranks told.
    pub pmix: Option<(PmixServer, Environments)>,
}

impl Here {
    /// All ranks of a job on the launcher's own host.
    pub fn all(size: usize) -> Self {
        let own = (0..size).map(|_| Vec::new()).collect();
        let environment = std::env::vars_os().collect();
        let (ranks, hosts) = ((0..size).collect(), Default::default());
        Self { ranks, size, environment, own, with_the_user: true, hosts, pmix: None }
    }
}

impl Here {
    /// Starts the ranks' PMIx server. `brought`: the library that comes with a program; the job may name another one.
    pub fn begin_pmix(&self, job: &Job, brought: Option<PathBuf>) -> Result<BeginningPmix, LaunchError> {
        let named = self.environment.get(OsStr::new(LIBRARY_VARIABLE)).filter(|name| !name.is_empty());
        let usual = || brought.map(OsString::from).into_iter().chain([LIBRARY.into()]).collect();
        let libraries = named.map_or_else(usual, |name| vec![name.clone()]);
        PmixServer::begin(&self.pmix_job(job), &libraries)
    }

    /// What the server is told.
    fn pmix_job(&self, job: &Job) -> PmixJob {
        let (hosts, places) = match &self.hosts {
            (names, _) if names.is_empty() => (vec![sys::host_name()], vec![0; self.size]),
            (names, places) => (names.clone(), places.clone()),
        };
        let here = self.ranks.first().map_or(0, |rank| places[*rank]);
        let name = job.id.as_str();
        let (namespace, servers) = (format!("weft-{name}-{:016x}", job.id.secret()), format!("weft-{name}-servers"));
        PmixJob { namespace, servers, hosts, places, here, programs: programs_by_rank(&job.programs) }
    }
}

/// A stream of one rank, as it is read.
pub struct RankSource {
    /// In the launcher the rank, in an agent the member.
    pub rank: usize,
    /// 0 for standard output, 1 for standard error.
    pub sink: usize,
    pub pipe: OwnedFd,
}

/// What stays with the launcher or agent. Members are counted as in [`Here::ranks`].
#[derive(Default)]
pub struct OurHalf {
    /// One for each member.
    pub pmi: Vec<UnixStream>,
    pub sources: Vec<RankSource>,
    /// Where the standard input of a member is written, unless it reads nothing or the user's own.
    pub inputs: Vec<(usize, OwnedFd)>,
    /// Where the ranks have a PMIx server.
    pub pmix: Option<PmixServer>,
}

/// Raises the soft limit of descriptors as far as `ranks` ranks need, and answers the limits as they were.
pub fn make_room(ranks: usize) -> Result<(u64, u64), LaunchError> {
    let (soft, hard) = weft_kernel::limits(libc::RLIMIT_NOFILE).map_err(LaunchError::system("limit of descriptors"))?;
    let needed = ranks as u64 * PER_RANK + OWN;
    if needed > hard {
        return Err(LaunchError::TooFewDescriptors { ranks, needed, limit: hard });
    }
    if needed > soft {
        weft_kernel::set_limits(libc::RLIMIT_NOFILE, needed, hard)
            .map_err(LaunchError::system("limit of descriptors"))?;
    }
    Ok((soft, hard))
}

/// Keeps from our ranks what a launcher above has handed to this process alone: they are not of that job, and would
/// hold its socket and its shared memory open.
pub fn keep_the_outer_jobs() {
    for name in [
        "PMI_FD",
        "WEFT_SEGMENT",
        "WEFT_JOB_MAP",
        "WEFT_TCP_LISTENER",
        "WEFT_UDP_SOCKET",
        "WEFT_XDP_MEMORY",
        "WEFT_XDP_RECEIVER",
        "WEFT_XDP_SENDER",
    ] {
        let number = std::env::var(name).ok().and_then(|number| number.parse().ok());
        if let Some(number) = number.filter(|number| *number > 2) {
            sys::keep_to_ourselves(number);
        }
    }
}

/// Makes both halves for the ranks that run here.
pub fn connect(
    job: &Job,
    mut here: Here,
    cores: Option<Vec<Core>>,
) -> Result<(OurHalf, Vec<RankStart>, FaultPlan), LaunchError> {
    let mut plan = FaultPlan { ranks: here.ranks.clone(), ..FaultPlan::default() };
    plan.cores = job.cores.as_ref().map(|cores| cores.join(job.id.as_str()));
    // Without a socket nobody can call, and all else is as ever.
    let (distress, socket) = faults::socket(job.id.as_str()).ok().unzip();
    plan.socket = socket;
    let mut templates = templates(job, &here, distress.as_deref())?;
    let programs = programs_by_rank(&job.programs);
    let mut ours = OurHalf::default();
    let mut of_pmix = Vec::new().into_iter();
    if here.pmix.is_none() && templates.iter().any(|template| template.wants_pmix) {
        let brought = templates.iter().find_map(|template| libraries::pmix_of(&template.path));
        here.pmix = Some(here.begin_pmix(job, brought)?.wait()?);
    }
    if let Some((server, environments)) = here.pmix.take() {
        (ours.pmix, of_pmix) = (Some(server), environments.into_iter());
        templates.iter_mut().for_each(Template::leave_to_pmix);
    }
    let direct = here.with_the_user && gets_input_directly(job.stdin);
    // Said here, it is not taken for a fault of the program.
    if starts_without_input(job.stdin, &here.ranks) {
        File::open(NOTHING).map_err(LaunchError::system(NOTHING))?;
    }
    let apart = apart(job, here.ranks.len(), here.size)?;
    let mut cores = cores.map(Vec::into_iter);
    let begun_in = std::env::current_dir().unwrap_or_default();
    let mut starts = Vec::new();
    for ((member, rank), mut own) in here.ranks.into_iter().enumerate().zip(here.own) {
        let of_pmix = of_pmix.next();
        let command = templates[programs[rank]].command(rank, member, programs[rank], of_pmix.as_deref());
        let own_directory = templates[programs[rank]].directory.as_ref();
        plan.directories.push(own_directory.map_or_else(|| begun_in.clone(), |own| begun_in.join(own)));
        let mut output = |sink| output(&job.output, sink, rank, here.size, member, &mut ours);
        let outputs = [output(0)?, output(1)?];
        let (near, far) = UnixStream::pair().map_err(LaunchError::system("socket pair"))?;
        near.set_nonblocking(true).map_err(LaunchError::system("socket pair"))?;
        ours.pmi.push(near);
        if of_pmix.is_none() {
            own.push(("PMI_FD", far.into()));
        }
        let input = match reads(job.stdin, rank) {
            false => RankInput::Nothing,
            true if direct => RankInput::Ours,
            true => RankInput::Pipe(input(member, &mut ours)?),
        };
        let core = cores.as_mut().and_then(Iterator::next);
        starts.push(RankStart { command, core, input, apart, outputs, own });
    }
    Ok((ours, starts, plan))
}

fn output(
    output: &RankOutput,
    sink: usize,
    rank: usize,
    size: usize,
    member: usize,
    ours: &mut OurHalf,
) -> Result<OwnedFd, LaunchError> {
    if let Destination::Each(pattern) = &output.streams[sink] {
        return open(pattern, rank, size).map(OwnedFd::from);
    }
    let (reader, writer) = std::io::pipe().map_err(LaunchError::system("pipe"))?;
    sys::set_nonblocking(&reader).map_err(LaunchError::system("pipe"))?;
    ours.sources.push(RankSource { rank: member, sink, pipe: reader.into() });
    Ok(writer.into())
}

fn input(member: usize, ours: &mut OurHalf) -> Result<OwnedFd, LaunchError> {
    let (reader, writer) = std::io::pipe().map_err(LaunchError::system("pipe"))?;
    ours.inputs.push((member, writer.into()));
    Ok(reader.into())
}

/// Where the kernel shares processor time by session (`sched_autogroup`), a job whose ranks are all in the caller's has
/// the share of one process. But it hands a core over (`sched_yield`) inside a session only, which ranks that share one
/// live by: those that outnumber the processors, those that are bound to none, and those whose hosts may be containers
/// of one machine. And how nice one is counts there only. All these stay in the caller's.
fn apart(job: &Job, ranks: usize, size: usize) -> Result<Apart, LaunchError> {
    let processors = weft_kernel::affinity().map_err(LaunchError::system("affinity mask"))?.len();
    let may_share = ranks > processors || ranks < size || job.bind == Bind::None;
    Ok(if may_share || sys::is_nice() { Apart::Group } else { Apart::Session })
}

/// Whether some of these ranks read nothing.
fn starts_without_input(stdin: StdinTo, ranks: &[usize]) -> bool {
    !ranks.iter().all(|rank| reads(stdin, *rank))
}

/// Whether `rank` gets standard input.
pub fn reads(stdin: StdinTo, rank: usize) -> bool {
    match stdin {
        StdinTo::All => true,
        StdinTo::Nobody => false,
        StdinTo::Rank(chosen) => chosen == rank,
    }
}

/// One rank and no terminal: the rank gets our own standard input, nothing is copied and nothing read in vain.
fn gets_input_directly(stdin: StdinTo) -> bool {
    matches!(stdin, StdinTo::Rank(_)) && sys::kind(0) != sys::DescriptorKind::Terminal
}

/// What the ranks of one program have in common.
struct Template {
    path: PathBuf,
    name: String,
    arguments: Vec<OsString>,
    directory: Option<PathBuf>,
    environment: HashMap<OsString, OsString>,
    wants_pmix: bool,
}

fn templates(job: &Job, here: &Here, distress: Option<&str>) -> Result<Vec<Template>, LaunchError> {
    // What another process manager told us is not for our ranks.
    let mut common = here.environment.clone();
    common.retain(|name, _| !name.to_str().is_some_and(is_reserved));
    libraries::lead(&mut common);
    let best = tuning::best(&common);
    let mut set = |name: &str, value: String| common.insert(name.into(), value.into());
    set(JOB_VARIABLE, job.id.as_str().to_owned());
    set("PMI_SIZE", here.size.to_string());
    set("MPI_LOCALNRANKS", here.ranks.len().to_string());
    if let Some(best) = best {
        set(tuning::VARIABLE, best);
    }
    for (name, fd) in &job.inherit {
        set(name, fd.as_raw_fd().to_string());
    }
    let template = |given: &weft_cluster::job::Program| {
        let mut environment = common.clone();
        environment.extend(given.environment.iter().map(|(name, value)| (name.into(), value.into())));
        let settings = Settings::from_env(&environment).ok();
        // Who switches it off is not asked again by the ranks.
        if let Some(name) = distress.filter(|_| settings.as_ref().is_some_and(|all| all.backtrace)) {
            environment.insert(weft_wire::distress::VARIABLE.into(), name.into());
        }
        let path = program::find(given)?;
        let linked = elf::linked(&path).unwrap_or_default();
        let wants_pmix = program::wants_pmix(&path, &linked.needed, here.size, settings.unwrap_or_default().pmix)?;
        // Who names the path of a program means it.
        if !given.environment.iter().any(|(name, _)| name == libraries::VARIABLE)
            && let Some(line) = libraries::warning(&path, &linked)
        {
            eprintln!("weft run: {line}");
        }
        let (name, arguments) = (given.program.clone(), given.arguments.clone());
        Ok(Template { path, name, arguments, directory: given.directory.clone(), environment, wants_pmix })
    };
    job.programs.iter().map(template).collect()
}

impl Template {
    /// A rank that is told of its job in two ways would believe the wrong one.
    fn leave_to_pmix(&mut self) {
        for name in ["PMI_SIZE", crate::SEGMENT_VARIABLE, "WEFT_JOB_MAP"] {
            self.environment.remove(OsStr::new(name));
        }
        // Open MPI 4 takes PMIx only of launchers that it knows. The one that is known by this offers nothing else.
        self.environment.insert("JSM_JSRUN_PORT".into(), "0".into());
    }

    fn command(&self, rank: usize, member: usize, program: usize, of_pmix: Option<&[(String, String)]>) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(&self.path);
        command.arg0(&self.name).args(&self.arguments).env_clear().envs(&self.environment);
        command.env("MPI_LOCALRANKID", member.to_string());
        match of_pmix {
            Some(told) => command.envs(told.iter().map(|(name, value)| (name, value))),
            None => command.env("PMI_RANK", rank.to_string()).env("PMI_APPNUM", program.to_string()),
        };
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }
}

/// The file that the rank writes itself. Both its streams may have one file, so they append.
fn open(pattern: &Path, rank: usize, size: usize) -> Result<File, LaunchError> {
    let path = filled(pattern, rank, size);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        std::fs::create_dir_all(parent).map_err(output_error(parent))?;
    }
    let file = File::options().create(true).append(true).open(&path).map_err(output_error(&path))?;
    // What is no file, such as /dev/null, cannot be cut.
    let _ = file.set_len(0);
    Ok(file)
}

/// The path that a pattern (see [`Destination::Each`]) means for a rank.
fn filled(pattern: &Path, rank: usize, size: usize) -> PathBuf {
    // Ranks have as many digits as the last one, so that the files sort.
    let digits = (size - 1).to_string().len();
    let mut rest = pattern.as_os_str().as_bytes();
    let mut path = Vec::new();
    while let Some((first, after)) = rest.split_first() {
        let (word, length) = match rest {
            [b'%', b'%', ..] => ("%".to_owned(), 2),
            [b'%', b'r', ..] => (rank.to_string(), 2),
            [b'%', b'0', b'r', ..] => (format!("{rank:0digits$}"), 3),
            _ => (String::new(), 0),
        };
        path.extend(word.as_bytes());
        if length == 0 {
            path.push(*first);
        }
        rest = if length == 0 { after } else { &rest[length..] };
    }
    OsString::from_vec(path).into()
}

/// A path as it stands in a pattern.
pub fn escaped(path: &Path) -> Vec<u8> {
    let percent = |byte: &u8| [*byte, b'%'].into_iter().take(if *byte == b'%' { 2 } else { 1 }).collect::<Vec<_>>();
    path.as_os_str().as_bytes().iter().flat_map(percent).collect()
}

fn output_error(path: &Path) -> impl Fn(std::io::Error) -> LaunchError {
    move |error| LaunchError::Output { path: path.to_path_buf(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_a_file_for_each_rank() {
        let path = |pattern: &str| filled(Path::new(pattern), 7, 100).to_string_lossy().into_owned();
        assert_eq!(path("out.%r"), "out.7");
        assert_eq!(path("d/%0r.err"), "d/07.err");
        assert_eq!(path("100%%r%"), "100%r%");
        let directory = OsString::from_vec(escaped(Path::new("a%r")));
        assert_eq!(filled(Path::new(&directory), 7, 9), Path::new("a%r"));
    }
}
