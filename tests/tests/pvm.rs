//! PVM: tasks alone, spawned, and as ranks of a job.

use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use weft_tests::pvm::compiled;
use weft_tests::{ranks, tree};

/// Each test has a virtual machine of its own.
fn machine(name: &str) -> String {
    format!("test-{}-{name}", std::process::id())
}

fn alone(name: &str) -> Output {
    let folder = TempDir::new().expect("there is room for a folder");
    let mut command = Command::new("timeout");
    command.arg("60").arg(compiled(&folder, name)).env("PVM_VMID", machine(name));
    command.output().expect("it can be started")
}

#[test]
fn a_task_spawns_another_one_and_they_talk() {
    ranks::assert_ok("thin", &alone("thin"));
}

#[test]
fn what_a_task_has_sent_that_ends_at_once_is_received() {
    ranks::assert_ok("brief", &alone("brief"));
}

#[test]
fn who_waits_for_one_task_goes_on_waiting_while_others_are_met() {
    ranks::assert_ok("trade", &alone("trade"));
}

#[test]
fn ends_are_told_functions_are_called_and_nonsense_is_refused() {
    ranks::assert_ok("faults", &alone("faults"));
}

#[test]
fn ranks_of_a_job_are_siblings() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(&folder, "ring");
    for ranks in [2, 4] {
        let output = ranks::command(&program, ranks, &[]).env("PVM_VMID", machine("ring")).output();
        ranks::assert_ok(&format!("ring on {ranks} ranks"), &output.expect("weft can be started"));
    }
}

/// The groups of ranks of one host meet in shared memory.
#[test]
fn groups_of_ranks_change_between_barriers_and_in_them() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(&folder, "groups");
    // Who waits sleeps at once, or the daemon has the barriers.
    let sleepy = [("WEFT_SPIN_US", "0"), ("WEFT_YIELD_US", "0")];
    let across = [("WEFT_DEVICE", "tcp"), ("WEFT_YIELD_US", "0")];
    for (ranks, settings) in [(3, &[][..]), (8, &[]), (4, &sleepy), (3, &across)] {
        let mut command = ranks::command(&program, ranks, &["changes"]);
        let output = command.envs(settings.iter().copied()).env("PVM_VMID", machine("groups")).output();
        ranks::assert_ok(&format!("{ranks} ranks with {settings:?}"), &output.expect("weft can be started"));
    }
}

#[test]
fn ranks_that_end_with_long_messages_to_each_other_end() {
    let folder = TempDir::new().expect("there is room for a folder");
    let mut command = ranks::command(&compiled(&folder, "groups"), 4, &["ends"]);
    let output = command.env("PVM_VMID", machine("ends")).output().expect("weft can be started");
    ranks::assert_ok("ends", &output);
}

/// In a group that may change the others go on without it; a frozen one is no group any more.
#[test]
fn a_rank_that_is_killed_while_others_wait_for_it_in_a_barrier_is_noticed() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(&folder, "groups");
    for word in ["killed", "frozen"] {
        let mut command = Command::new(tree().join("bin/weft"));
        command.args(["run", "--keep-going", "--timeout", "30", "-n", "4"]).arg(&program).arg(word);
        let output = command.env("PVM_VMID", machine(word)).output().expect("weft can be started");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(out == "ok\n", "{word}: {out}{err}");
    }
}

#[test]
fn the_console_shows_starts_and_ends_tasks() {
    let mut command = Command::new("sh");
    let script =
        "printf 'conf\\nspawn -2 -> /bin/echo said\\nspawn /bin/sleep 60\\nps\\nhalt\\n' | timeout 30 \"$0\" pvm";
    let output = command.args(["-c", script]).arg(tree().join("bin/weft")).env("PVM_VMID", machine("console")).output();
    let output = output.expect("a shell");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    for wanted in ["1 host", "2 successful", "1 successful", "sleep", "LINUX64"] {
        assert!(out.contains(wanted), "{wanted}: {out}{err}");
    }
}

#[test]
fn whoever_is_killed_holds_up_nobody_and_leaves_nothing() {
    let folder = TempDir::new().expect("there is room for a folder");
    let program = compiled(&folder, "kills");
    let name = machine("kills");
    for round in 0..8 {
        let victim = if round % 4 == 3 { "daemon" } else { "tasks" };
        let mut command = Command::new("timeout");
        command.arg("60").arg(&program).args([&round.to_string(), victim]).env("PVM_VMID", &name);
        let output = command.output().expect("it can be started");
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && out == "ok\n", "{round}: {}\n{out}", output.status);
        let is_left = || std::fs::read_to_string("/proc/net/unix").expect("sockets").contains(&name);
        assert!(
            (0..100).any(|_| !is_left() || {
                std::thread::sleep(Duration::from_millis(20));
                false
            }),
            "{round}"
        );
    }
}

/// Descriptors are few, and more tasks come than there are: one has two at the daemon. It sleeps meanwhile.
#[test]
fn a_daemon_that_can_let_nobody_in_does_not_spin() {
    for limit in [24, 25] {
        let ticks = ticks_among_many(limit);
        assert!(ticks < 10, "{ticks} of 50 with {limit} descriptors");
    }
}

/// How long the daemon is busy in half a second, in hundredths.
fn ticks_among_many(limit: u32) -> u64 {
    let name = machine(&format!("few{limit}"));
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" pvm --daemon")]).arg(tree().join("bin/weft"));
    command.env("PVM_VMID", &name).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut daemon = command.spawn().expect("a shell");
    daemon.stdout.take().expect("piped").read_exact(&mut [0]).expect("it listens");
    let user = std::fs::metadata("/proc/self").expect("a process").uid();
    let door = SocketAddr::from_abstract_name(format!("weft-pvm-{user}.{name}")).expect("a name");
    let _visitors: Vec<_> = (0..40).map(|_| UnixStream::connect_addr(&door).expect("there is room")).collect();
    let busy = || -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", daemon.id())).expect("it runs");
        let after = stat.rsplit(')').next().expect("a name").split_whitespace();
        after.skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
    };
    std::thread::sleep(Duration::from_millis(100));
    let before = busy();
    std::thread::sleep(Duration::from_millis(500));
    let ticks = busy() - before;
    daemon.kill().and_then(|()| daemon.wait()).expect("it ends");
    ticks
}
