//! `weft spawned`: the launcher of processes that a running job has asked for.

use crate::defaults::Defaults;
use crate::run;
use crate::run::hosts::HostArguments;
use clap::Args;
use std::os::fd::RawFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use weft_agent::{Job, JobId, RankOutput, Starter, StarterSays};
use weft_cluster::job::{StdinTo, size};
use weft_cluster::spawn::{ORDER_VARIABLE, SignalWish, SpawnOrder, SpawnWord};
use weft_cluster::state::Exit;
use weft_fabric::door::{DoorError, Talk};

/// How long those who have spawned may take to say what they want.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Args)]
pub struct SpawnedArguments {
    #[command(flatten)]
    hosts: HostArguments,

    /// Return at once, and leave the work to a process of its own
    #[arg(long)]
    apart: bool,

    #[arg(long)]
    tag_output: bool,
}

/// Runs the job and answers the exit code. What goes wrong before its start is told to those who have spawned.
pub fn main(given: SpawnedArguments) -> i32 {
    weft_agent::take_signals_back();
    let Ok(door) = std::env::var(ORDER_VARIABLE) else {
        eprintln!("weft spawned: {ORDER_VARIABLE} is not set; a job that spawns processes starts this command");
        return crate::EXIT_USAGE;
    };
    if given.apart {
        return apart();
    }
    let (mut talk, order) = match ask(&door) {
        Ok(asked) => asked,
        // They are gone, so nobody wants the processes any more.
        Err(DoorError::Nobody(_) | DoorError::Closed) => return 0,
        Err(error) => {
            eprintln!("weft spawned: {error}");
            return 1;
        }
    };
    let watched = order.watched;
    match job(given, order) {
        Ok(mut job) => {
            talk.say(&SpawnWord::Started.encode());
            let mut silent = Some(talk);
            if watched {
                job.starter = silent.take().map(|talk| Box::new(Watcher(talk)) as Box<dyn Starter>);
            }
            // What nobody knows of the environment was told when the first processes of this job were started.
            let code = run::carry_out(job, run::room::Listeners::of_environment());
            drop(silent);
            // Who is told how each process ends judges by that.
            if watched { 0 } else { code }
        }
        Err(text) => {
            talk.say(&SpawnWord::Failed { text }.encode());
            let begun = Instant::now();
            // Until they have heard it.
            while begun.elapsed() < PATIENCE && talk.poll().is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
            0
        }
    }
}

/// Those who have spawned, where they watch.
struct Watcher(Talk);

impl std::fmt::Debug for Watcher {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Watcher")
    }
}

impl Starter for Watcher {
    fn descriptor(&self) -> RawFd {
        // It has spoken, so it is there.
        self.0.descriptor().unwrap_or(-1)
    }

    fn tell(&mut self, rank: usize, exit: Exit) {
        self.0.say(&SpawnWord::Ended { rank: rank as u32, exit }.encode());
    }

    fn poll(&mut self) -> StarterSays {
        match self.0.poll() {
            Ok(None) => StarterSays::Nothing,
            // What is no wish of a signal is said by none of ours.
            Ok(Some(piece)) => SignalWish::decode(&piece).map_or(StarterSays::Gone, StarterSays::Wants),
            Err(_) => StarterSays::Gone,
        }
    }
}

/// Starts this command once more, as nobody's child.
fn apart() -> i32 {
    let started = std::env::current_exe().and_then(|us| Command::new(us).arg("spawned").stdin(Stdio::null()).spawn());
    started.map_or_else(
        |error| {
            eprintln!("weft spawned: {error}");
            1
        },
        |_| 0,
    )
}

fn ask(door: &str) -> Result<(Talk, SpawnOrder), DoorError> {
    let mut talk = Talk::call(door)?;
    talk.say(SpawnOrder::asking());
    let begun = Instant::now();
    loop {
        if let Some(piece) = talk.poll()? {
            let order = SpawnOrder::decode(&piece).map_err(|_| DoorError::Nonsense)?;
            return Ok((talk, order));
        }
        if begun.elapsed() > PATIENCE {
            return Err(DoorError::Nobody("it says nothing".to_owned()));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// The job, or why it cannot be started.
fn job(given: SpawnedArguments, order: SpawnOrder) -> Result<Job, String> {
    let defaults = Defaults::of_environment();
    let SpawnOrder { mut programs, host, watched } = order;
    for program in &programs {
        weft_agent::find(program).map_err(|error| error.to_string())?;
    }
    let ranks = size(&programs).map_err(|error| error.to_string())?;
    let mut hosts = given.hosts.read(&defaults).map_err(|errors| errors.join("; "))?;
    let here = weft_agent::host_name();
    match (&mut hosts, host) {
        (Some(hosts), Some(host)) => hosts.keep_only(&host)?,
        (None, Some(host)) if host != here => {
            return Err(format!("host '{host}' is none of this job's, which is on '{here}' alone"));
        }
        _ => {}
    }
    if watched {
        let goes_on = || (run::KEEP_GOING_VARIABLE.to_owned(), "on".to_owned());
        programs.iter_mut().for_each(|program| program.environment.push(goes_on()));
    }
    let hosts = hosts.map(|hosts| hosts.spread(ranks)).transpose().map_err(|errors| errors.join("; "))?.flatten();
    Ok(Job {
        front: "weft run (spawned)".to_owned(),
        id: JobId::new(),
        programs,
        bind: defaults.bind,
        stdin: StdinTo::Nobody,
        output: RankOutput::merged(given.tag_output),
        timeout: None,
        inherit: Vec::new(),
        hosts,
        network: false,
        partition: None,
        cores: None,
        keep_going: defaults.keep_going || watched,
        starter: None,
    })
}
