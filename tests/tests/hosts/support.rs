//! Starting jobs on the two hosts.

use crate::launcher::{Finished, finish, weft_run};
use std::process::Command;
use weft_tests::namespaces::Namespaces;

/// How the hosts are reached.
pub const LAUNCH: &str = "ip netns exec {host}";

/// `weft run` with so many slots on each of the two hosts. A host may take long to answer: the machine may be loaded.
pub fn on_hosts(slots: usize, options: &str) -> Command {
    let hosts = Namespaces::pair();
    with_hosts(&format!("{}:{slots},{}:{slots}", hosts.name(1), hosts.name(2)), LAUNCH, options)
}

/// `weft run` on these hosts, reached by this command.
pub fn with_hosts(hosts: &str, launch: &str, options: &str) -> Command {
    let mut command = weft_run(options);
    command.args(["--hosts", hosts, "--launch", launch]).env("WEFT_LAUNCH_TIMEOUT", "120");
    command
}

/// A shell script on each rank.
pub fn script(mut command: Command, text: &str) -> Command {
    command.args(["bash", "-c", text]);
    command
}

/// Runs a shell script on one or more ranks of each host, to its end.
pub fn run(slots: usize, options: &str, text: &str) -> Finished {
    finish(&mut script(on_hosts(slots, options), text))
}
