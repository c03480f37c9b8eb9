//! MPI on two hosts, which are network namespaces: the programs under tests/c/mpi, with two ranks on each.

use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weft_tests::namespaces::Namespaces;
use weft_tests::{build, tree};

const LAUNCH: &str = "ip netns exec {host}";

/// One job at a time has lanes on an interface, and all tests here share two hosts.
static LANES: Mutex<()> = Mutex::new(());

fn alone_if(devices: &str) -> Option<MutexGuard<'static, ()>> {
    devices.contains("xdp").then(|| LANES.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs the program on both hosts with these devices: it ends well, and says nothing but that.
fn passes(name: &str, devices: &str) {
    passes_with(name, devices, LAUNCH);
}

fn passes_with(name: &str, devices: &str, launch: &str) {
    passes_on([2, 2], name, devices, launch);
}

/// With so many ranks on each of the hosts.
fn passes_on(ranks: [u32; 2], name: &str, devices: &str, launch: &str) {
    passes_given(&[], ranks, name, devices, launch);
}

/// With these arguments of the program.
fn passes_given(arguments: &[&str], ranks: [u32; 2], name: &str, devices: &str, launch: &str) {
    let program = build::c_program(&tree().join("bin/mpicc"), &format!("tests/c/mpi/{name}.c"));
    let hosts = Namespaces::pair();
    let mut command = Command::new(tree().join("bin/weft"));
    let _alone = alone_if(devices);
    command.args(["run", "--bind", "none", "--timeout", "100", "--launch", launch, "--hosts"]);
    command
        .arg(format!("{}:{},{}:{}", hosts.name(1), ranks[0], hosts.name(2), ranks[1]))
        .args(["--device", devices])
        .arg(program)
        .args(arguments);
    // A host may take long to answer: the machine may be loaded.
    command.env("WEFT_LAUNCH_TIMEOUT", "100").stdin(Stdio::null());
    let output = command.output().expect("the launcher can be started");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let quiet = ["", "ok"].contains(&said.trim());
    assert!(output.status.success() && quiet, "{name}, {devices}: {}\n{said}", output.status);
}

/// Where sockets for IPv6 take no connections by IPv4 unless they are told to. The setting is the namespace's own.
#[test]
fn hosts_whose_sockets_are_of_one_family_are_reached() {
    let setting = "sh -c 'echo 1 > /proc/sys/net/ipv6/bindv6only; exec \"$@\"' sh";
    passes_with("point_exchange", "auto", &format!("{LAUNCH} {setting}"));
}

#[test]
fn collectives_of_hosts_with_different_numbers_of_ranks_are_right() {
    for (ranks, devices) in [([3, 1], "shm,tcp"), ([1, 3], "shm,xdp"), ([3, 2], "auto")] {
        passes_on(ranks, "coll_hosts", devices, LAUNCH);
    }
}

/// Namespaces share the file system of their machine, as hosts share one over a network.
#[test]
fn files_are_one_for_the_ranks_of_several_hosts() {
    for name in ["files_shared", "files_together", "files_forms"] {
        let folder = tempfile::TempDir::new().expect("there is room for a folder");
        passes_given(&[folder.path().to_str().expect("a plain name")], [2, 1], name, "auto", LAUNCH);
    }
}

/// What `weft hosts check` says of these hosts, and its exit code.
fn check(options: &str, hosts: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["hosts", "check", "--launch", LAUNCH]).args(options.split_whitespace()).args(hosts);
    // Filters are attached for what they bring and cost.
    let _alone = alone_if("xdp");
    let output = command.env("WEFT_LAUNCH_TIMEOUT", "100").stdin(Stdio::null()).output().expect("weft can be started");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn hosts_that_can_be_used_are_told_with_the_way_between_them() {
    let [first, second] = [1, 2].map(|number| Namespaces::pair().name(number));
    let (code, text) = check("--json", &[&first, &second]);
    assert_eq!(code, Some(0), "{text}");
    let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for (at, name) in [&first, &second].into_iter().enumerate() {
        let [host, about] = [&found["hosts"][at][0], &found["hosts"][at][1]["good"]];
        assert_eq!((host.as_str(), about["version"].as_str()), (Some(&name[..]), Some(env!("CARGO_PKG_VERSION"))));
        assert!(about["addresses"].to_string().contains(&Namespaces::pair().address(at + 1).to_string()), "{text}");
    }
    let way = &found["pairs"][0][2]["good"];
    assert!(way["latency_s"].as_f64() > Some(0.0) && way["bandwidth"].as_f64() > Some(0.0), "{text}");
    assert!(way["udp_packets"].as_u64() > Some(2000), "the way is the network: {text}");
    assert_eq!(way["xdp_datagrams"].as_u64(), Some(0), "no filter is attached unasked: {text}");
    // Both hosts can do it here: what is short goes past the kernel then.
    let filtered = &found["filtered"][0][2]["good"];
    assert!(filtered["xdp_datagrams"].as_u64() > Some(2000) && filtered["bandwidth"].as_f64() > Some(0.0), "{text}");
    let (code, text) = check("--without-xdp", &[&first, &second]);
    assert!(code == Some(0) && text.contains("long messages by tcp") && !text.contains("filter"), "{text}");
}

#[test]
fn a_host_that_cannot_be_used_is_told_with_the_cause_and_the_others_are_looked_at() {
    let first = Namespaces::pair().name(1);
    let (code, text) = check("", &[&first, "nowhere"]);
    assert_eq!(code, Some(1), "{text}");
    let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).expect("a line").to_owned();
    assert!(
        line(&first).contains("usable      weft") && line("nowhere").contains("not usable  launch command"),
        "{text}"
    );
    assert!(!text.contains("pairs"), "{text}");
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                for devices in ["shm,tcp", "shm,udp", "shm,xdp", "auto"] {
                    passes(stringify!($name), devices);
                }
            }
        )*
    };
}

weft_tests::programs_between_hosts!(programs);
programs!(hosts_split coll_hosts);
