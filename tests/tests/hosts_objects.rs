//! Shared objects on two hosts, which are network namespaces, over each device.

use std::process::{Command, Stdio};
use weft_tests::namespaces::Namespaces;
use weft_tests::{build, tree};

const LAUNCH: &str = "ip netns exec {host}";

/// The program of `objects` on two hosts with two processes each.
fn objects(hosts: &Namespaces, device: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--bind", "none", "--timeout", "60", "--launch", LAUNCH, "--device", device]);
    command.args(["--hosts", &format!("{}:2,{}:2", hosts.name(1), hosts.name(2))]).args(arguments);
    command.env("WEFT_LAUNCH_TIMEOUT", "60").stdin(Stdio::null());
    command
}

/// What the job says, which may end badly where a process was to.
fn said(mut command: Command, what: &str) -> String {
    let output = command.output().expect("weft can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{what}: {}\n{err}", output.status);
    out.into_owned()
}

#[test]
fn counters_queues_and_barriers_are_right_over_each_device() {
    let (hosts, program) = (Namespaces::pair(), build::example("shared_objects"));
    for device in ["tcp", "udp,tcp", "shm,xdp"] {
        let mut command = objects(hosts, device, &[]);
        command.arg(&program);
        let all = "2000 additions, 300 jobs, 50 rounds by 4 processes\n";
        assert_eq!(said(command, device), all, "{device}");
    }
}

#[test]
fn a_process_of_another_host_that_ends_takes_only_what_it_alone_had() {
    let (hosts, program) = (Namespaces::pair(), build::example("shared_objects"));
    let mut command = objects(hosts, "auto", &["--keep-going"]);
    command.arg(&program).arg("killed");
    let told = "object 'number' was on process 3 only, which has ended: share it again to create it anew; one that is \
                replicated goes on; 3 went on\n";
    assert_eq!(said(command, "killed"), told);
}
