//! A way between two hosts that is gone for a while: who is under way notices nothing but the time.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use weft_tests::namespaces::Namespaces;
use weft_tests::{build, tree};

/// Longer than the pause that the program tells, shorter than what is a fault.
const GONE: Duration = Duration::from_millis(1500);

struct Job {
    devices: &'static str,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Job {
    fn start(hosts: &Namespaces, devices: &'static str, file: &Path) -> Self {
        let program = build::c_program(&tree().join("bin/mpicc"), "tests/c/mpi/hosts_partition.c");
        let mut command = Command::new(tree().join("bin/weft"));
        command.args(["run", "--bind", "none", "--timeout", "100", "--launch", "ip netns exec {host}", "--hosts"]);
        command.arg(format!("{},{}", hosts.name(1), hosts.name(2))).args(["--device", devices]).arg(program).arg(file);
        command.env("WEFT_LAUNCH_TIMEOUT", "100").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the launcher can be started");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { devices, child, lines }
    }

    /// What it says next. While it lasts more pauses may be told: a way comes back bit by bit.
    fn says(&mut self, wanted: &str) {
        for line in self.lines.by_ref().map_while(Result::ok) {
            assert!(line == wanted || line == "paused", "{}: '{line}', not '{wanted}'", self.devices);
            if line == wanted {
                return;
            }
        }
        panic!("{}: it has ended without '{wanted}'", self.devices);
    }

    fn ends_well(mut self) {
        self.says("ok");
        assert!(self.child.wait().expect("it ends").success(), "{}", self.devices);
    }
}

/// Runs `ip` in a namespace.
fn ip(namespace: &str, arguments: &str) {
    let status = Command::new("ip").args(["-n", namespace]).args(arguments.split(' ')).status().expect("ip");
    assert!(status.success(), "ip -n {namespace} {arguments}");
}

/// First what is between them drops everything, of which nobody is told; then an interface is down, as its host knows.
#[test]
fn a_partition_that_heals_is_ridden_out() {
    let hosts = Namespaces::up(&format!("wt{}p", std::process::id()), 2);
    let folder = tempfile::TempDir::new().expect("there is room for a folder");
    let file = folder.path().join("healed");
    let mut jobs = ["tcp", "udp", "xdp", "auto"].map(|devices| Job::start(&hosts, devices, &file));
    jobs.iter_mut().for_each(|job| job.says("begun"));
    let (switch, second) = (hosts.switch(), hosts.name(2));
    let faults = [
        (&switch, "link set port2 nomaster", "link set port2 master bridge"),
        (&second, "link set eth0 down", "link set eth0 up"),
    ];
    for (place, gone, back) in faults {
        ip(place, gone);
        std::thread::sleep(GONE);
        ip(place, back);
        jobs.iter_mut().for_each(|job| job.says("paused"));
    }
    std::fs::write(&file, "").expect("written");
    jobs.into_iter().for_each(Job::ends_well);
}
