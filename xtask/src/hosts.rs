//! `cargo xtask hosts`: several hosts on this machine.
//!
//! They are network namespaces `weft1`, `weft2`, ... with addresses of their own on a network of their own, made by
//! `tests/namespaces.sh`. Processes and files they share with this machine. Where there are cores enough, each has some
//! to itself: `hosts enter`, the launch command that `hosts run` sets, sees to that.

use std::os::unix::process::CommandExt as _;
use std::process::Command as Process;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;

use crate::command::{ToolProgram, root, target};

const PREFIX: &str = "weft";
/// What the addresses have room for.
const MOST: usize = 200;

#[derive(Subcommand)]
pub enum TestHostsCommand {
    /// Make N hosts: weft1 to weftN, with the addresses 10.77.0.1 to 10.77.0.N
    Up {
        #[arg(value_name = "N")]
        count: usize,
    },
    /// Delete them
    Down,
    /// Run a shell command in which `weft run --hosts weft1,weft2 ...` finds them
    Run {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Run a program on one of them
    #[command(hide = true)]
    Enter {
        host: String,
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

/// Runs the command; `false` when a program that it ran failed, which that program has said.
pub fn run(command: &TestHostsCommand) -> Result<bool> {
    match command {
        TestHostsCommand::Up { count } => up(*count).map(|()| true),
        TestHostsCommand::Down => {
            permitted()?;
            script(&["down", PREFIX]).run().map(|()| true)
        }
        TestHostsCommand::Run { command } => run_there(command),
        TestHostsCommand::Enter { host, command } => enter(host, command),
    }
}

fn up(count: usize) -> Result<()> {
    permitted()?;
    if !(1..=MOST).contains(&count) {
        bail!("{count} hosts cannot be made; 1 to {MOST} can");
    }
    if let [first, ..] = existing()?[..] {
        bail!("host {PREFIX}{first} is there already; `cargo xtask hosts down` deletes it");
    }
    script(&["up", PREFIX, &count.to_string()]).run()?;
    let all: Vec<String> = (1..=count).map(|number| format!("{PREFIX}{number}")).collect();
    println!("cargo xtask hosts run 'weft run --hosts {} hostname -I'", all.join(","));
    println!("weft run --hosts {} --launch 'ip netns exec {{host}}' hostname -I", all.join(","));
    Ok(())
}

fn script(arguments: &[&str]) -> ToolProgram {
    ToolProgram::new("sh").args(["tests/namespaces.sh"]).args(arguments)
}

/// Makes a host and deletes it again.
pub fn try_out() -> Result<()> {
    permitted()?;
    let prefix = format!("weft-try{}-", std::process::id());
    let made = script(&["up", &prefix, "1"]).succeeds();
    let deleted = script(&["down", &prefix]).succeeds();
    if !(made && deleted) {
        bail!("network namespaces are not permitted here (sh tests/namespaces.sh up {prefix} 1 says why)");
    }
    Ok(())
}

/// Whether we may make namespaces, as far as that can be known without trying.
fn permitted() -> Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").context("who we are")?;
    let is_root = status.lines().any(|line| line.split_whitespace().take(3).eq(["Uid:", "0", "0"]));
    if !is_root {
        bail!("hosts are network namespaces, and only root makes those");
    }
    if !ToolProgram::new("ip").args(["-V"]).succeeds() {
        bail!("there is no `ip` here (Debian: apt-get install iproute2)");
    }
    Ok(())
}

/// The numbers of the hosts that are there, in rising order.
fn existing() -> Result<Vec<usize>> {
    Ok(numbers(&ToolProgram::new("ip").args(["netns", "list"]).output()?))
}

fn numbers(list: &str) -> Vec<usize> {
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    let mut numbers: Vec<usize> = names.filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

fn run_there(command: &[String]) -> Result<bool> {
    permitted()?;
    if existing()?.is_empty() {
        bail!("there are no hosts; `cargo xtask hosts up 2` makes two");
    }
    let us = std::env::current_exe().context("path of this program")?;
    let path = std::env::var("PATH").unwrap_or_default();
    let status = Process::new("sh")
        .args(["-c", &command.join(" ")])
        .current_dir(root())
        .env("PATH", format!("{}:{path}", target().join("weft/bin").display()))
        .env("WEFT_LAUNCH", format!("'{}' hosts enter {{host}}", us.display()))
        .status()
        .context("cannot start a shell")?;
    Ok(status.success())
}

/// Becomes the program.
fn enter(host: &str, command: &[String]) -> Result<bool> {
    let all = existing()?;
    let number = numbers(host);
    let Some(at) = number.first().and_then(|number| all.iter().position(|other| other == number)) else {
        bail!("there is no host '{host}'");
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut process = Process::new("ip");
    process.args(["netns", "exec", host]);
    if let Some((first, last)) = cores_of(at, all.len(), cores) {
        process.args(["taskset", "-c", &format!("{first}-{last}")]);
    }
    let error = process.args(command).exec();
    Err(error).context("cannot start `ip`")
}

/// First and last core of a host, counted as in the list of all; none of its own when there are too few.
fn cores_of(at: usize, hosts: usize, cores: usize) -> Option<(usize, usize)> {
    let each = cores / hosts;
    (each > 0).then(|| (at * each, at * each + each - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_from_other_namespaces() {
        assert_eq!(numbers("weft10 (id: 3)\nweft-switch\nother1\nweft2\nweftx\n"), [2, 10]);
    }

    #[test]
    fn no_two_hosts_share_a_core() {
        assert_eq!((0..3).filter_map(|at| cores_of(at, 3, 8)).collect::<Vec<_>>(), [(0, 1), (2, 3), (4, 5)]);
        assert_eq!(cores_of(0, 3, 2), None);
    }
}
