//! Daemons on other hosts.

use std::io;
use std::process::Command;
use weft_cluster::hosts::Launch;

/// The command that starts the daemon of another host, which is named as in a hostfile: with `so=` and the like, of which
/// none is needed here, and `dx=` for the program that is `weft` there.
pub fn command(line: &str) -> io::Result<Command> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let given = words.find_map(|word| word.strip_prefix("dx=")).map(str::to_owned);
    let ours = std::env::current_exe()?.to_string_lossy().into_owned();
    let launch = match std::env::var("WEFT_LAUNCH") {
        Ok(given) => given.parse::<Launch>().map_err(|error| io::Error::other(error.to_string()))?,
        Err(_) => Launch::default(),
    };
    let words = launch.command(name, &[given.unwrap_or(ours), "pvm".to_owned(), "--far".to_owned()]);
    let (program, arguments) = words.split_first().ok_or_else(|| io::Error::other("there is no launch command"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}
