//! Dynamic processes, in C: ports within a job and between two, spawned processes, names, joined sockets.

use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weft_fabric::door::Talk;
use weft_fabric::foreign::CARD_WORDS;
use weft_tests::peers::Peer;
use weft_tests::{root, tree};

/// Compiles one of the C programs; it goes with the folder.
fn program(folder: &TempDir, name: &str) -> PathBuf {
    let program = folder.path().join(name);
    let source = root().join("tests/c/mpi").join(name).with_extension("c");
    let flags = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-o"];
    let output = Command::new(tree().join("bin/mpicc")).args(flags).arg(&program).arg(source).output();
    let output = output.expect("mpicc can be started");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

fn command(program: &Path, ranks: u32, arguments: &[&str]) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--timeout", "60", "-n", &ranks.to_string()]).arg(program).args(arguments);
    command
}

fn says_ok(output: &Output, what: &str) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out == "ok\n", "{what}: {}\n{out}{err}", output.status);
}

#[test]
fn ports_names_and_sockets_inside_a_job() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = program(&folder, "spawn_ports");
    for ranks in [1, 2, 3] {
        let output = command(&program, ranks, &[]).output().expect("weft can be started");
        says_ok(&output, &format!("{ranks} ranks"));
    }
    let mut impatient = command(&program, 1, &[]);
    says_ok(&impatient.env("WEFT_CONNECT_TIMEOUT", "1").output().expect("weft can be started"), "impatient");
}

#[test]
fn two_jobs_meet_at_a_port() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = program(&folder, "spawn_ports");
    let port = folder.path().join("port");
    let port = port.to_str().expect("a plain path");
    let mut serve = command(&program, 2, &["serve", port]);
    let serve = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weft can be started");
    let connect = command(&program, 3, &["connect", port]).output().expect("weft can be started");
    says_ok(&serve.wait_with_output().expect("it ends"), "who accepts");
    says_ok(&connect, "who connects");
}

/// Ranks that a launcher of somebody else has started know that they are of one job.
#[test]
fn ports_inside_a_job_of_another_launcher() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = program(&folder, "spawn_ports");
    for (peer, name) in [(Peer::Mpich, "mpiexec"), (Peer::IntelMpi, "mpiexec.hydra")] {
        let mut command = Command::new(peer.command(name));
        let output = command.args(["-n", "2"]).arg(&program).stdin(Stdio::null()).output().expect("it can be started");
        says_ok(&output, name);
    }
}

/// The port in a file, once another program has written it.
fn port_in(file: &Path) -> String {
    let begun = Instant::now();
    loop {
        if let Ok(port) = std::fs::read_to_string(file) {
            return port;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "no port is told");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Somebody has knocked first, was asked in, and says nothing more, as a process that is stopped.
#[test]
fn who_was_asked_in_and_is_silent_keeps_nobody_out() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = program(&folder, "spawn_ports");
    let file = folder.path().join("port");
    let port = file.to_str().expect("a plain path");
    let mut serve = command(&program, 2, &["serve", port]);
    let serve = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weft can be started");
    let mut silent = Talk::call(&port_in(&file)).expect("a port");
    let loopback = Ipv4Addr::LOCALHOST.to_ipv6_mapped().to_bits();
    let mut card = [0u64; CARD_WORDS];
    card[..6].copy_from_slice(&[7, 1 << 32 | 1 << 48, 8, 9, loopback as u64, (loopback >> 64) as u64]);
    silent.say(&std::iter::once(b'c').chain(card.into_iter().flat_map(u64::to_le_bytes)).collect::<Vec<u8>>());
    let begun = Instant::now();
    while silent.poll().expect("it is asked in").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it is not asked in");
        std::thread::sleep(Duration::from_millis(1));
    }
    let connect = command(&program, 3, &["connect", port]).output().expect("weft can be started");
    says_ok(&serve.wait_with_output().expect("it ends"), "who accepts");
    says_ok(&connect, "who connects");
}

#[test]
fn processes_are_spawned_and_failures_are_told() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = program(&folder, "spawn");
    for ranks in [1, 2] {
        let output = command(&program, ranks, &[]).output().expect("weft can be started");
        says_ok(&output, &format!("{ranks} ranks"));
    }
}

#[test]
fn a_process_that_nobody_has_launched_spawns_too() {
    let folder = TempDir::new().expect("there is room for a folder");
    let output = Command::new(program(&folder, "spawn")).arg("short").output().expect("it can be started");
    says_ok(&output, "alone");
}

/// Nothing that two jobs of one host say to each other goes through a socket; where shared memory is not allowed, all
/// does.
#[test]
fn spawned_processes_and_their_parents_share_memory() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = program(&folder, "spawn_shared");
    for ranks in [1, 2, 3] {
        let output = command(&program, ranks, &[]).output().expect("weft can be started");
        says_ok(&output, &format!("{ranks} ranks"));
    }
    let mut copies = command(&program, 2, &["copies"]);
    let copies = copies.env("WEFT_SINGLE_COPY_BYTES", "64K").output().expect("weft can be started");
    says_ok(&copies, "copies");
    let mut tcp = command(&program, 1, &["tcp"]);
    says_ok(&tcp.env("WEFT_DEVICE", "tcp").output().expect("weft can be started"), "over connections");
}

/// Whoever comes to a job that serves leaves nothing there, whether it takes its leave or is killed.
#[test]
fn nothing_is_left_of_those_who_come_and_go() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = program(&folder, "spawn_ends");
    for (how, count) in [("left", 200), ("killed", 20)] {
        let port = folder.path().join(how);
        let port = port.to_str().expect("a plain path");
        let mut serve = command(&program, 1, &["serve", port, &count.to_string(), how]);
        let serve = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weft can be started");
        for _ in 0..count {
            let output = Command::new(&program).args(["connect", port, how]).output().expect("it can be started");
            match how {
                "left" => says_ok(&output, "who connects"),
                _ => assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{output:?}"),
            }
        }
        says_ok(&serve.wait_with_output().expect("it ends"), how);
    }
}

/// More than a listener's queue has room for by itself, and than are heard before they have proven anything.
#[test]
fn a_crowd_that_comes_at_once_is_served_one_after_the_other() {
    const CROWD: usize = 150;
    let folder = TempDir::new().expect("there is room for a folder");
    let program = program(&folder, "spawn_crowd");
    let port = folder.path().join("port");
    let port = port.to_str().expect("a plain path");
    let mut serve = command(&program, 1, &["serve", port, &CROWD.to_string()]);
    let serve = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weft can be started");
    let mut connect = Command::new(&program);
    connect.args(["connect", port]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let crowd: Vec<_> = (0..CROWD).map(|_| connect.spawn().expect("it can be started")).collect();
    crowd.into_iter().for_each(|one| says_ok(&one.wait_with_output().expect("it ends"), "one of a crowd"));
    says_ok(&serve.wait_with_output().expect("it ends"), "who serves a crowd");
}

/// Processes whose command line begins with the program's name.
fn living(program: &Path) -> usize {
    let processes = std::fs::read_dir("/proc").expect("processes can be listed");
    let line = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
    let name = program.to_str().expect("a plain path").as_bytes();
    processes.filter_map(|entry| line(entry.ok()?)).filter(|line| line.starts_with(name)).count()
}

fn wait_for(program: &Path, wanted: usize) {
    let begun = Instant::now();
    while living(program) != wanted {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} processes live, not {wanted}", living(program));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn spawned_processes_end_with_the_launcher() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = program(&folder, "spawn_stay");
    for signal in [libc::SIGKILL, libc::SIGINT] {
        let mut launcher = command(&program, 1, &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("weft");
        wait_for(&program, 3);
        // SAFETY: a signal for a child of ours that was not waited for.
        unsafe { libc::kill(launcher.id() as i32, signal) };
        let status = launcher.wait().expect("it ends");
        assert!(!status.success(), "{status}");
        wait_for(&program, 0);
    }
}

#[test]
fn the_exit_code_of_a_spawned_job_counts() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = program(&folder, "spawn_stay");
    let output = command(&program, 1, &["code"]).output().expect("weft can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(7), "{out}{err}");
    assert!(out.contains("a word of a child\n") && err.contains("exited with code 7"), "{out}{err}");
}

/// The other parents and the children see its loss by the end of a connection, and abort; that may be before the
/// launcher hears of it. `WEFT_TEST_ROUNDS` runs more.
#[test]
fn a_parent_that_kills_itself_is_the_cause_and_no_abort_for_want_of_it() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = program(&folder, "spawn_lost");
    let rounds = std::env::var("WEFT_TEST_ROUNDS").map_or(38, |text| text.parse().expect("a number"));
    for round in 0..rounds {
        let (ranks, words) = (2 + round as u32 % 2, [&[][..], &["inter"]][round / 2 % 2]);
        let output = command(&program, ranks, words).output().expect("weft can be started");
        let err = String::from_utf8_lossy(&output.stderr);
        let told: Vec<&str> = err.lines().filter(|line| line.starts_with("weft run: ")).collect();
        let is_cause = |line: &str| line.starts_with("weft run: rank 0 (pid ") && line.contains("signal 9");
        assert!(told.first().is_some_and(|line| is_cause(line)), "round {round}: {err}");
        assert!(!told.iter().any(|line| line.contains("MPI_Abort")), "round {round}: {err}");
        assert_eq!(output.status.code(), Some(128 + 9), "round {round}: {err}");
    }
}
