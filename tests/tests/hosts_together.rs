//! Several interfaces in one process on two hosts, which are network namespaces: the programs under tests/c/together.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use weft_tests::namespaces::Namespaces;
use weft_tests::{build, interfaces, ranks, tree};

const LAUNCH: &str = "ip netns exec {host}";

/// `weft run` on these hosts.
fn weft_run(hosts: &str) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--bind", "none", "--timeout", "100", "--launch", LAUNCH, "--hosts", hosts]);
    // A host may take long to answer: the machine may be loaded.
    command.env("WEFT_LAUNCH_TIMEOUT", "100").stdin(Stdio::null());
    command
}

/// Runs `words` on both hosts, with so many ranks on each and these settings: it ends well, and says `ok`.
fn passes(words: &[&str], each: u32, settings: &[(&str, &str)]) {
    let hosts = Namespaces::pair();
    let mut command = weft_run(&format!("{}:{each},{}:{each}", hosts.name(1), hosts.name(2)));
    command.args(words);
    command.env("NATIVE", build::example_library("native")).envs(settings.iter().copied());
    let output = command.output().expect("the launcher can be started");
    ranks::assert_ok(&format!("{words:?} with {settings:?}"), &output);
}

fn program(folder: &tempfile::TempDir, name: &str) -> PathBuf {
    ranks::compile_from("tests/c/together", folder.path(), name, &["-ldl"])
}

const SLEEPY: [(&str, &str); 2] = [("WEFT_SPIN_US", "0"), ("WEFT_YIELD_US", "0")];

#[test]
fn two_interfaces_have_the_same_place_and_messages_of_their_own() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let thin = program(&folder, "thin");
    let thin = thin.to_str().expect("text");
    for devices in ["auto", "tcp", "shm,tcp"] {
        passes(&["--device", devices, thin], 2, &[]);
    }
    passes(&[thin, "native first"], 1, &[]);
    passes(&[thin, "MPI ends first"], 2, &SLEEPY);
    passes(&["--encrypt", thin], 1, &[]);
}

#[test]
fn who_waits_in_one_interface_moves_the_other_and_is_woken_for_it() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let waits = program(&folder, "waits");
    let waits = waits.to_str().expect("text");
    for devices in ["auto", "tcp"] {
        passes(&["--device", devices, waits], 1, &[]);
        passes(&["--device", devices, waits], 1, &SLEEPY);
    }
}

#[test]
fn threads_wait_in_both_interfaces_at_the_same_time() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let threads = program(&folder, "threads");
    passes(&[threads.to_str().expect("text")], 2, &[]);
    passes(&[threads.to_str().expect("text")], 1, &SLEEPY);
}

/// P4's processes are on both hosts, and the tasks on the first.
#[test]
fn a_task_of_pvm_and_a_process_of_p4_of_another_host_meet_at_a_native_port() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let program =
        |name, more| interfaces::compile(folder.path(), &format!("tests/c/together/{name}.c"), more, &["-std=gnu99"]);
    let (tasks, processes) = (program("meet_pvm", "pvm3 weft"), program("meet_p4", "p4 weft"));
    let file = folder.path().join("address");
    let hosts = Namespaces::pair();
    let mut command = weft_run(&format!("{}:1,{}:2", hosts.name(1), hosts.name(2)));
    command.arg(&processes).arg("far").arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
    let job = command.spawn().expect("the launcher can be started");
    while !file.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let address = std::fs::read_to_string(&file).expect("an address");
    let mut command = weft_run(&format!("{}:2", hosts.name(1)));
    command.arg(&tasks).args([&address, "3"]).env("PVM_VMID", format!("far-{}", std::process::id()));
    ranks::assert_ok("tasks", &command.output().expect("the launcher can be started"));
    ranks::assert_ok("processes", &job.wait_with_output().expect("it ends"));
}

#[test]
fn mpi_and_sockets_and_the_native_interface_go_together() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let all = program(&folder, "all");
    let preload = format!("LD_PRELOAD={}", weft_tests::sockets::library().display());
    let address = Namespaces::pair().address(1).to_string();
    passes(&["env", &preload, all.to_str().expect("text"), &address], 2, &[]);
}

/// The tasks of both hosts are siblings in one virtual machine, which has the hosts of the job.
#[test]
fn mpi_and_pvm_and_sockets_go_together() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let program = ranks::compile_from("tests/c/together", folder.path(), "tasks", &["-lpvm3"]);
    let preload = format!("LD_PRELOAD={}", weft_tests::sockets::library().display());
    let address = Namespaces::pair().address(1).to_string();
    for each in [1, 2] {
        let machine = format!("tasks-{}-{each}", std::process::id());
        let settings = [("PVM_VMID", &machine[..]), ("WEFT_LAUNCH", LAUNCH)];
        passes(&["env", &preload, program.to_str().expect("text"), &address], each, &settings);
    }
}

#[test]
fn tasks_of_a_job_whose_hosts_cannot_be_added_say_so() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let program = ranks::compile_from("tests/c/together", folder.path(), "tasks", &["-lpvm3"]);
    let hosts = Namespaces::pair();
    let mut command = weft_run(&format!("{},{}", hosts.name(1), hosts.name(2)));
    command.arg(program).env("PVM_VMID", format!("none-{}", std::process::id())).env("WEFT_LAUNCH", "false {host}");
    let output = command.output().expect("the launcher can be started");
    let err = String::from_utf8_lossy(&output.stderr);
    let wanted = format!(
        "no virtual machine: the job's hosts {}, {} cannot all be in it: Can't start pvmd",
        hosts.name(1),
        hosts.name(2)
    );
    assert!(!output.status.success() && err.contains(&wanted), "{err}");
}
