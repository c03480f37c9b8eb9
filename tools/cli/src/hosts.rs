//! `weft hosts check`: whether jobs can run on some hosts, and how far apart these are.
//!
//! Each host is asked through the launch command, by the command that starts agents too. The way between two hosts is
//! measured by a job of two ranks, started as any other. So what is checked is what `weft run --hosts` does.

mod ask;
mod show;

pub use ask::line;

use crate::EXIT_USAGE;
use crate::defaults::Defaults;
use crate::reach::is_here;
use serde::{Deserialize, Serialize};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use weft_bench::Distance;
use weft_cluster::hosts::{HostsError, Launch, SlotHost, parse_file, parse_list};
use weft_fabric::ProbeReport;

const FRONT: &str = "weft hosts check";
/// Filters are attached for these, and long messages go by TCP.
const FILTERED: [&str; 2] = ["--device", "shm,xdp,udp,tcp"];
/// How they are, unless the user says: so that no card is reset for it.
const MODE: (&str, &str) = ("WEFT_XDP_MODE", "generic");

#[derive(clap::Subcommand)]
pub enum HostsCommand {
    /// Say for each host whether it can be used and why not, and measure the way between every two.
    Check(HostsArguments),
}

#[derive(clap::Args, Default)]
pub struct HostsArguments {
    /// The hosts
    #[arg(value_name = "HOST", required_unless_present = "hostfile", conflicts_with = "hostfile")]
    hosts: Vec<String>,

    /// The hosts of a file, one a line, as weft run has it
    #[arg(long, value_name = "FILE")]
    hostfile: Option<PathBuf>,

    /// The command that starts a program on a host, {host} being its name [default: WEFT_LAUNCH, else ssh]
    #[arg(long, value_name = "COMMAND")]
    launch: Option<String>,

    /// Copy Weft to hosts where it is missing, or where another build is, as weft run does
    #[arg(long)]
    stage: bool,

    /// Attach no XDP filter, so that it is not told what xdp brings and costs
    #[arg(long)]
    without_xdp: bool,

    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// What a host says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct HostAbout {
    version: String,
    /// Of the executable, in hexadecimal digits.
    checksum: String,
    cores: usize,
    addresses: Vec<String>,
    devices: Vec<HostDevice>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct HostDevice {
    name: String,
    usable: bool,
    reasons: Vec<String>,
}

/// A host, or a pair, and what was found or is wrong.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum FoundHost<T> {
    Good(T),
    Bad(String),
}

#[derive(Debug, Serialize)]
struct Checked {
    hosts: Vec<(String, FoundHost<HostAbout>)>,
    pairs: Vec<(String, String, FoundHost<Distance>)>,
    /// Those of the pairs whose hosts both can have XDP filters, once more with these attached: what is short goes past
    /// the kernel then, and what is long by TCP, as other traffic of the interfaces does.
    filtered: Vec<(String, String, FoundHost<Distance>)>,
}

/// What `weft about` prints.
///
/// # Errors
/// This program cannot be read.
pub fn about(probe: impl FnOnce() -> Vec<ProbeReport>) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(&HostAbout::here(probe())?)?);
    Ok(())
}

impl HostAbout {
    fn here(devices: Vec<ProbeReport>) -> anyhow::Result<Self> {
        let about = weft_agent::about()?;
        let device = |report: ProbeReport| HostDevice {
            name: report.name.to_string(),
            usable: report.usable,
            reasons: report.reasons.iter().map(ToString::to_string).collect(),
        };
        Ok(Self {
            version: about.version.to_owned(),
            checksum: format!("{:016x}", about.checksum),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            addresses: about.addresses.iter().map(ToString::to_string).collect(),
            devices: devices.into_iter().map(device).collect(),
        })
    }
}

pub fn main(HostsCommand::Check(given): HostsCommand) -> i32 {
    match given.read() {
        Ok((names, launch)) => tell(&names, &launch, &given),
        Err(errors) => {
            errors.iter().for_each(|error| eprintln!("{FRONT}: {error}"));
            EXIT_USAGE
        }
    }
}

/// Looks at hosts that are reached so.
pub fn look_at(names: &[String], launch: &Launch) -> i32 {
    tell(names, launch, &HostsArguments::through(launch))
}

/// The same for programs: whether all is good, and what was found.
///
/// # Errors
/// This program cannot be read.
pub fn find(names: &[String], launch: &Launch) -> Result<(bool, serde_json::Value), String> {
    let checked = check(names, launch, &HostsArguments::through(launch)).map_err(|error| format!("{error:#}"))?;
    Ok((checked.is_good(), serde_json::to_value(&checked).map_err(|error| error.to_string())?))
}

/// How many cores each of these hosts has, or why that is not known.
///
/// # Errors
/// This program cannot be read.
pub fn cores(names: &[String], launch: &Launch) -> anyhow::Result<Vec<(String, Result<usize, String>)>> {
    let program = std::env::current_exe()?;
    let program = program.to_string_lossy();
    let question = |name: &String| match is_here(name) {
        true => vec![program.to_string(), "about".to_owned()],
        false => launch.command(name, &[&program, "about"]),
    };
    let commands: Vec<_> = names.iter().map(question).collect();
    let found = ask::all(&commands, Defaults::of_environment().launch_timeout).into_iter();
    let cores = found.map(|found| match found {
        FoundHost::Good(about) => Ok(about.cores),
        FoundHost::Bad(why) => Err(why),
    });
    Ok(names.iter().cloned().zip(cores).collect())
}

fn tell(names: &[String], launch: &Launch, given: &HostsArguments) -> i32 {
    match check(names, launch, given) {
        Ok(checked) => {
            match given.json.then(|| serde_json::to_string_pretty(&checked)) {
                Some(json) => println!("{}", json.unwrap_or_default()),
                None => print!("{}", show::text(&checked)),
            }
            i32::from(!checked.is_good())
        }
        Err(error) => {
            eprintln!("{FRONT}: {error:#}");
            1
        }
    }
}

impl HostsArguments {
    fn through(launch: &Launch) -> Self {
        Self { launch: Some(launch.to_string()), ..Self::default() }
    }

    fn read(&self) -> Result<(Vec<String>, Launch), Vec<String>> {
        let hosts = match &self.hostfile {
            None => parse_list(&self.hosts.join(",")).map_err(|error| vec![error.to_string()])?,
            Some(file) => {
                let front = format!("--hostfile '{}'", file.display());
                let text = std::fs::read_to_string(file).map_err(|error| vec![format!("{front}: {error}")])?;
                let told = |errors: Vec<HostsError>| errors.iter().map(|error| format!("{front}: {error}")).collect();
                parse_file(&text).map_err(|errors| -> Vec<String> { told(errors) })?
            }
        };
        let launch = match self.launch.clone().or_else(|| std::env::var("WEFT_LAUNCH").ok()) {
            None => Launch::default(),
            Some(given) => given.parse().map_err(|error: HostsError| vec![error.to_string()])?,
        };
        Ok((hosts.into_iter().map(|SlotHost { name, .. }| name).collect(), launch))
    }

    /// A job with a rank on each of the hosts, which is this program with that word.
    fn job(&self, program: &Path, hosts: &str, options: &[&str], word: &str) -> Vec<String> {
        let program = program.to_string_lossy().into_owned();
        let first = [&program, "run", "--bind", "none", "--stdin", "none", "--timeout", "60", "--hosts", hosts];
        let mut words: Vec<String> = first.map(str::to_owned).to_vec();
        words.extend(self.launch.iter().flat_map(|launch| ["--launch".to_owned(), launch.clone()]));
        words.extend(self.stage.then(|| "--stage".to_owned()));
        words.extend(options.iter().map(|&option| option.to_owned()));
        words.extend([program, word.to_owned()]);
        words
    }
}

fn check(names: &[String], launch: &Launch, given: &HostsArguments) -> anyhow::Result<Checked> {
    let program = std::env::current_exe()?;
    let ours = weft_agent::about()?;
    let ours = (ours.version, format!("{:016x}", ours.checksum));
    let patience = Defaults::of_environment().launch_timeout;
    let mut bar = ProgressBar::new(1 + names.len() * (names.len() - 1) / 2);
    bar.show("asking the hosts");
    let question = |name: &String| match given.stage {
        // What copies is a job, whose rank answers.
        true => given.job(&program, name, &[], "about"),
        false => launch.command(name, &[&program.to_string_lossy(), "about"]),
    };
    let found = ask::all(&names.iter().map(question).collect::<Vec<_>>(), patience);
    let hosts: Vec<_> = names.iter().cloned().zip(found.into_iter().map(|found| same_build(found, &ours))).collect();
    let good = |(name, found): &(String, FoundHost<HostAbout>)| match found {
        FoundHost::Good(about) => Some((name.clone(), !given.without_xdp && about.has("xdp"))),
        FoundHost::Bad(_) => None,
    };
    let good: Vec<_> = hosts.iter().filter_map(good).collect();
    let (mut pairs, mut filtered) = (Vec::new(), Vec::new());
    for (at, (first, first_has_xdp)) in good.iter().enumerate() {
        for (second, second_has_xdp) in &good[at + 1..] {
            bar.show(&format!("{first} and {second}"));
            let measure = |options| {
                let job = given.job(&program, &format!("{first},{second}"), options, "distance");
                let found = distance(&job, !options.is_empty());
                (first.clone(), second.clone(), found)
            };
            pairs.push(measure(&[]));
            if *first_has_xdp && *second_has_xdp {
                filtered.push(measure(&FILTERED));
            }
        }
    }
    bar.clear();
    Ok(Checked { hosts, pairs, filtered })
}

fn same_build(found: FoundHost<HostAbout>, (version, checksum): &(&str, String)) -> FoundHost<HostAbout> {
    match found {
        FoundHost::Good(about) if about.version != *version => FoundHost::Bad(format!(
            "its weft is version {}, this one {version}; install the same on both",
            ask::shown(&about.version)
        )),
        FoundHost::Good(about) if about.checksum != *checksum => {
            FoundHost::Bad(format!("its weft {version} is another build than this one; install the same on both"))
        }
        other => other,
    }
}

/// Runs two ranks, one on each host. With a filter nothing counts that has not gone by it.
fn distance(job: &[String], with_filter: bool) -> FoundHost<Distance> {
    let mut process = Process::new(&job[0]);
    if std::env::var_os(MODE.0).is_none() {
        process.env(MODE.0, MODE.1);
    }
    // It is no job of anybody's, of which a daemon would keep a record.
    process.env(weft_requests::client::VARIABLE, "off");
    let output = match process.args(&job[1..]).output() {
        Ok(output) => output,
        Err(error) => return FoundHost::Bad(error.to_string()),
    };
    match serde_json::from_slice(&output.stdout) {
        Ok(Distance { xdp_datagrams: 0, .. }) if output.status.success() && with_filter => {
            FoundHost::Bad(ask::line(&output.stderr, false).unwrap_or_else(|| "no filter was attached".to_owned()))
        }
        Ok(distance) if output.status.success() => FoundHost::Good(distance),
        // The first line is the cause, what follows are its consequences.
        _ => FoundHost::Bad(ask::line(&output.stderr, false).unwrap_or_else(|| "nothing was measured".to_owned())),
    }
}

impl HostAbout {
    fn has(&self, device: &str) -> bool {
        self.devices.iter().any(|found| found.name == device && found.usable)
    }
}

impl<T> FoundHost<T> {
    fn is_good(&self) -> bool {
        matches!(self, Self::Good(_))
    }
}

impl Checked {
    fn is_good(&self) -> bool {
        self.hosts.iter().all(|(_, found)| found.is_good()) && self.pairs.iter().all(|(_, _, found)| found.is_good())
    }
}

/// How far it is, on a terminal.
struct ProgressBar {
    done: usize,
    all: usize,
    visible: bool,
}

impl ProgressBar {
    fn new(all: usize) -> Self {
        Self { done: 0, all, visible: std::io::stderr().is_terminal() }
    }

    /// What is begun.
    fn show(&mut self, what: &str) {
        const WIDTH: usize = 24;
        let filled = WIDTH * self.done / self.all.max(1);
        if self.visible {
            eprint!("\r\x1b[K[{}{}] {what}", "#".repeat(filled), "-".repeat(WIDTH - filled));
            let _ = std::io::stderr().flush();
        }
        self.done = (self.done + 1).min(self.all);
    }

    fn clear(&self) {
        if self.visible {
            eprint!("\r\x1b[K");
        }
    }
}
