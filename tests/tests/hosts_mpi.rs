//! MPI on two hosts, which are network namespaces: the programs under tests/c/mpi, with two ranks on each.

use std::process::{Command, Stdio};
use weft_tests::namespaces::Namespaces;
use weft_tests::{build, tree};

const LAUNCH: &str = "ip netns exec {host}";

/// Runs the program on both hosts: it ends well, and says nothing but that.
fn passes(name: &str) {
    passes_with(name, LAUNCH);
}

fn passes_with(name: &str, launch: &str) {
    let program = build::c_program(&tree().join("bin/mpicc"), &format!("tests/c/mpi/{name}.c"));
    let hosts = Namespaces::pair();
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--bind", "none", "--timeout", "100", "--launch", launch, "--hosts"]);
    command.arg(format!("{}:2,{}:2", hosts.name(1), hosts.name(2))).arg(program);
    // A host may take long to answer: the machine may be loaded.
    command.env("WEFT_LAUNCH_TIMEOUT", "100").stdin(Stdio::null());
    let output = command.output().expect("the launcher can be started");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && ["", "ok"].contains(&said.trim()), "{name}: {}\n{said}", output.status);
}

/// Where sockets for IPv6 take no connections by IPv4 unless they are told to. The setting is the namespace's own.
#[test]
fn hosts_whose_sockets_are_of_one_family_are_reached() {
    let setting = "sh -c 'echo 1 > /proc/sys/net/ipv6/bindv6only; exec \"$@\"' sh";
    passes_with("point_exchange", &format!("{LAUNCH} {setting}"));
}

macro_rules! programs {
    ($($name:ident)*) => { $(#[test] fn $name() { passes(stringify!($name)); })* };
}

programs! {
    coll_inter
    coll_move
    coll_neighbor
    coll_reduce
    coll_threads
    hosts_split
    objects_inter
    objects_threads
    objects_topology
    point_ask
    point_buffered
    point_complete
    point_exchange
    point_modes
    point_persistent
    point_probe
    point_threads
    point_types
}
