//! `weft bench net`: what it writes, and that its hosts go with it, however it ends.

use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use weft_tests::build::target_directory;
use weft_tests::peers::Peer;
use weft_tests::{signal, tree};

/// On a quiet machine it takes a second; only one that is stuck takes this long.
const STUCK: Duration = Duration::from_secs(120);

fn bench(options: &str) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["bench", "net"]).args(options.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The namespaces of the run whose process this was.
fn hosts_of(pid: u32) -> Vec<String> {
    let list = Command::new("ip").args(["netns", "list"]).output().expect("ip can be started");
    let list = String::from_utf8(list.stdout).expect("text");
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| name.starts_with(&format!("wb{pid}x"))).map(String::from).collect()
}

/// Looks until there are `count` of them.
fn wait_for_hosts(pid: u32, count: usize) {
    let end = Instant::now() + STUCK;
    while hosts_of(pid).len() != count {
        assert!(Instant::now() < end, "{:?}, where {count} are expected", hosts_of(pid));
        std::thread::yield_now();
    }
}

fn end_of(child: Child) -> (u32, Output) {
    let pid = child.id();
    (pid, child.wait_with_output().expect("it ends"))
}

#[test]
fn lines_of_all_tables_are_measured_and_nothing_is_left() {
    Peer::Mpich.command("mpicc");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let json = folder.path().join("net.json");
    let only = "plain/latency/8,xdp/rate/8,xdp/sock/ping,native/latency/8";
    let mut command = bench(&format!("--quick --turns 1 --seconds 0.02 --offline --only {only}"));
    command.arg("--peers-dir").arg(target_directory().join("peers")).arg("--json").arg(&json);
    let (pid, output) = end_of(command.spawn().expect("weft can be started"));
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    assert_eq!(hosts_of(pid), Vec::<String>::new());
    for title in ["the bare cable\n", "with Weft's XDP filter attached", "with a native XDP program attached"] {
        assert!(said.contains(title), "{said}");
    }

    let report: Value = serde_json::from_slice(&std::fs::read(json).expect("it was written")).expect("JSON");
    let lines = report["lines"].as_array().expect("lines");
    let ways = |line: &Value| line["medians"].as_object().expect("medians").keys().cloned().collect::<Vec<_>>();
    let measured: Vec<_> = lines.iter().map(|line| (line["id"].as_str().expect("a name"), ways(line))).collect();
    let mpich = ["mpich-ofi", "mpich-ucx"];
    let mpi = |ours: [&str; 4]| ours.iter().chain(&mpich).map(|way| (*way).to_owned()).collect::<Vec<_>>();
    let mut expected = [
        ("plain/latency/8", mpi(["weft-default", "weft-encrypted", "weft-udp", "weft-tcp"])),
        ("xdp/rate/8", mpi(["weft-xdp", "weft-all", "weft-all-encrypted", "weft-default"])),
        ("xdp/sock/ping", ["weft-sock", "weft-sock-lane", "kernel-tcp", "polled-tcp"].map(String::from).to_vec()),
        ("native/latency/8", mpi(["weft-xdp", "weft-all", "weft-all-encrypted", "weft-default"])),
    ];
    // The names of an object stand in their own order.
    expected.iter_mut().for_each(|(_, ways)| ways.sort());
    assert_eq!(measured, expected, "{report:#}");
    let medians = lines.iter().flat_map(|line| line["medians"].as_object().expect("medians").values());
    assert!(medians.map(|median| median.as_f64().expect("a number")).all(|median| median > 0.0), "{report:#}");
    let bars = |line: &Value| line["bars"].as_array().expect("bars").clone();
    assert_eq!(lines.iter().map(|line| bars(line).len()).collect::<Vec<_>>(), [1, 1, 2, 1], "{report:#}");
    for bar in lines.iter().flat_map(bars) {
        assert!(bar["ratio"].as_f64() > Some(0.0) && bar["met"].is_boolean(), "{report:#}");
    }
    assert_eq!(report["failures"].as_array().map(Vec::len), Some(0));
}

#[test]
fn kernels_among_many_hosts_and_every_pair_of_them_are_measured() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let json = folder.path().join("net.json");
    let mut command = bench("--hosts 3 --quick --turns 1 --seconds 0.02 --without-peers --only hosts");
    let (pid, output) = end_of(command.arg("--json").arg(&json).spawn().expect("weft can be started"));
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    assert_eq!(hosts_of(pid), Vec::<String>::new());
    for title in ["kernels among all hosts\n", "latency 8 B between two hosts", "bandwidth 64 KiB between two hosts"] {
        assert!(said.contains(title), "{said}");
    }
    let report: Value = serde_json::from_slice(&std::fs::read(json).expect("it was written")).expect("JSON");
    let lines = report["lines"].as_array().expect("lines");
    let id = |line: &Value| line["id"].as_str().expect("a name").to_owned();
    let ids: Vec<_> = lines.iter().map(id).collect();
    for wanted in ["ring/8", "allgather/8", "alltoall/65536", "bcast/8192", "barrier", "incast/65536"] {
        assert!(ids.contains(&format!("hosts/{wanted}")), "{ids:?}");
    }
    assert_eq!(ids.iter().filter(|id| id.starts_with("hosts/latency-")).count(), 3);
    for line in lines {
        let medians = line["medians"].as_object().expect("medians");
        let ways = if id(line).contains('-') { 1 } else { 3 };
        assert!(medians.len() == ways && medians.values().all(|median| median.as_f64() > Some(0.0)), "{line:#}");
    }
}

#[test]
fn an_application_is_measured_and_predicted_over_each_device_between_hosts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let json = folder.path().join("apps.json");
    let mut command = Command::new(tree().join("bin/weft"));
    command.args("bench apps --quick --only mg --device xdp,udp,tcp --json".split(' ')).arg(&json);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (pid, output) = end_of(command.spawn().expect("weft can be started"));
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    assert_eq!(hosts_of(pid), Vec::<String>::new());
    let report: Value = serde_json::from_slice(&std::fs::read(json).expect("it was written")).expect("JSON");
    let devices = report["applications"][0]["devices"].as_array().expect("devices");
    let names: Vec<&str> = devices.iter().filter_map(|device| device["via"].as_str()).collect();
    assert_eq!(names, ["xdp", "udp", "tcp"]);
    for device in devices {
        let is_positive = |value: &Value| value.as_f64() > Some(0.0);
        assert!(is_positive(&device["efficiency"]) && is_positive(&device["predicted"]["efficiency"]), "{device:#}");
    }
}

#[test]
fn hosts_go_with_a_run_that_is_interrupted_or_killed() {
    // Who is killed leaves his temporary files there.
    let folder = tempfile::tempdir().expect("a temporary folder");
    for number in [libc::SIGINT, libc::SIGKILL] {
        // Long enough to be in the middle of it whenever the signal comes.
        let mut command = bench("--seconds 3600 --without-peers --only plain/latency/8");
        let child = command.env("TMPDIR", folder.path()).spawn().expect("weft can be started");
        wait_for_hosts(child.id(), 2);
        signal::send(child.id() as i32, number);
        let (pid, output) = end_of(child);
        assert!(!output.status.success());
        if number == libc::SIGINT {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("interrupted"), "{said}");
            assert_eq!(hosts_of(pid), Vec::<String>::new());
        }
        wait_for_hosts(pid, 0);
    }
}
