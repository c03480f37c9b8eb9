//! MPI on two hosts, which are network namespaces: the programs under tests/c/mpi, with two ranks on each.

use std::process::{Command, Stdio};
use weft_tests::namespaces::Namespaces;
use weft_tests::{build, tree};

/// Runs the program on both hosts with these devices: it ends well, and says nothing but that.
fn passes(name: &str, devices: &str) {
    let program = build::c_program(&tree().join("bin/mpicc"), &format!("tests/c/mpi/{name}.c"));
    let hosts = Namespaces::pair();
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--bind", "none", "--timeout", "100", "--launch", "ip netns exec {host}", "--hosts"]);
    command.arg(format!("{}:2,{}:2", hosts.name(1), hosts.name(2))).args(["--device", devices]).arg(program);
    // A host may take long to answer: the machine may be loaded.
    command.env("WEFT_LAUNCH_TIMEOUT", "100").stdin(Stdio::null());
    let output = command.output().expect("the launcher can be started");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let quiet = ["", "ok"].contains(&said.trim());
    assert!(output.status.success() && quiet, "{name}, {devices}: {}\n{said}", output.status);
}

macro_rules! programs {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                for devices in ["shm,tcp", "shm,udp", "auto"] {
                    passes(stringify!($name), devices);
                }
            }
        )*
    };
}

weft_tests::programs_between_hosts!(programs);
programs!(hosts_split);
