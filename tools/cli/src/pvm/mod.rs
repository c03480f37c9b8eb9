//! `weft pvm`: the console of the user's virtual machine, and its daemon.

mod console;
mod far;

use anyhow::{Context, Result};
use std::process::Command;
use weft_pvm_machine::daemon::{self, DaemonPlan, host_name};

pub const LONG_ABOUT: &str = "Look after this user's virtual machine of PVM.

Starts the virtual machine where there is none, and reads commands: `help` lists them. Programs need no console: the first task \
that calls PVM starts a machine, and it ends with the last one. One that a console has started stays until `halt`.";

#[derive(clap::Args, Clone)]
pub struct MachineArguments {
    /// Hosts to begin with, a line each: a name, and options as in PVM's hostfiles.
    #[arg(value_name = "HOSTFILE")]
    hosts: Option<std::path::PathBuf>,
    /// Start the daemon in the background, and return when it answers.
    #[arg(long)]
    start: bool,
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

pub fn main(given: &MachineArguments) -> Result<i32> {
    if given.daemon {
        let name = given.name.clone().unwrap_or_else(host_name);
        let plan = DaemonPlan { name, stays: given.stay, far: Box::new(far::command) };
        daemon::run(plan).context("cannot be the daemon of a virtual machine")?;
    } else if given.far {
        daemon::serve_far().context("cannot be the daemon of a virtual machine")?;
    } else if given.start {
        start(given)?;
    } else {
        start(&MachineArguments { stay: true, ..given.clone() })?;
        let mut console = console::Console::open()?;
        if let Some(file) = &given.hosts {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read '{}'", file.display()))?;
            for line in hostfile(&text) {
                console.run_line(&format!("add {line}"));
            }
        }
        console.run_start_file();
        console.run()?;
    }
    Ok(0)
}

/// Starts a daemon, unless there is one.
fn start(given: &MachineArguments) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["pvm", "--daemon"]);
    if given.stay {
        command.arg("--stay");
    }
    if let Some(name) = &given.name {
        command.args(["-n", name]);
    }
    daemon::start(command).context("the daemon of the virtual machine does not start")
}

/// Hosts of a hostfile: the first word of a line is a name, the others are options. `#` begins a comment, `*` stands before
/// options for the hosts that follow, and `&` before a host that is to be added later.
fn hostfile(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let hosts = lines.filter(|line| !line.is_empty() && !line.starts_with(['*', '&']));
    hosts.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}
