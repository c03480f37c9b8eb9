//! `weft pvm`: the console of the user's virtual machine, and its daemon.

mod console;
mod far;
mod hostfile;

use crate::registered::registered;
use anyhow::{Context, Result};
use std::process::Command;
use weft_pvm_machine::daemon::{self, DaemonPlan, host_name};
use weft_requests::RegisteredKind;

pub const LONG_ABOUT: &str = "Look after this user's virtual machine of PVM.

Starts the virtual machine where there is none, and reads commands: `help` lists them. Programs need no console: the first task \
that calls PVM starts a machine, and it ends with the last one. One that a console has started stays until `halt`.";

#[derive(clap::Args, Clone)]
pub struct MachineArguments {
    /// Hosts to begin with, a line each: a name, and behind it lo=USER, ip=ADDRESS, dx=WEFT, ep=PATH, wd=FOLDER,
    /// sp=SPEED.
    #[arg(value_name = "HOSTFILE")]
    hosts: Option<std::path::PathBuf>,
    /// Start the daemon in the background, and return when it answers.
    #[arg(long)]
    start: bool,
    /// The command that starts a program on a host, {host} being its name; its standard input and output must reach
    /// the program [default: WEFT_LAUNCH, else ssh with -o BatchMode=yes and time limits]
    #[arg(long, value_name = "COMMAND")]
    launch: Option<weft_cluster::hosts::Launch>,
    /// The daemon does not end with its last task.
    #[arg(long)]
    stay: bool,
    /// Be the daemon.
    #[arg(long, hide = true, conflicts_with_all = ["start", "far"])]
    daemon: bool,
    /// Be the daemon of another host: started by the first one, through the launch command.
    #[arg(long, hide = true)]
    far: bool,
    /// Options of the original's daemon, which are not needed here.
    #[arg(short = 'n', value_name = "NAME", hide = true)]
    name: Option<String>,
}

/// The commands of the console, a line each.
pub fn commands() -> String {
    console::commands::all()
}

pub fn main(given: &MachineArguments) -> Result<i32> {
    if given.daemon || given.far {
        registered(RegisteredKind::Pvm, &std::env::args_os().collect::<Vec<_>>());
    }
    if given.daemon {
        let name = given.name.clone().unwrap_or_else(host_name);
        let ends_with = std::env::var(weft_agent::JOB_VARIABLE).unwrap_or_default();
        let plan = DaemonPlan { name, stays: given.stay, ends_with, far: Box::new(far::command) };
        daemon::run(plan).context("cannot be the daemon of a virtual machine")?;
    } else if given.far {
        daemon::serve_far().context("cannot be the daemon of a virtual machine")?;
    } else {
        let lines = given.hosts.as_deref().map(|file| {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read '{}'", file.display()))?;
            hostfile::read(&text).map_err(|wrong| anyhow::anyhow!("'{}': {wrong}", file.display()))
        });
        let lines = lines.transpose()?.unwrap_or_default();
        start(given, given.stay || !given.start)?;
        if given.start && lines.is_empty() {
            return Ok(0);
        }
        let mut console = console::Console::open()?;
        console.add_hosts(lines)?;
        if given.start {
            return Ok(0);
        }
        console.run_start_file();
        console.run()?;
    }
    Ok(0)
}

/// Starts a daemon, unless there is one.
fn start(given: &MachineArguments, stays: bool) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["pvm", "--daemon"]);
    if stays {
        command.arg("--stay");
    }
    if let Some(launch) = &given.launch {
        command.env("WEFT_LAUNCH", launch.to_string());
    }
    if let Some(name) = &given.name {
        command.args(["-n", name]);
    }
    daemon::start(command).context("the daemon of the virtual machine does not start")
}
