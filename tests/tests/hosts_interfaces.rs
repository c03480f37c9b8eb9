//! The interfaces for messages on two hosts, which are network namespaces: their programs under `tests/c`, with the
//! answers that they give on one host.
//!
//! Which device has moved the bytes is what the kernels of the hosts have counted meanwhile: datagrams and segments
//! that they have sent, and frames that have arrived, which are those of lanes, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;
use weft_tests::namespaces::Namespaces;
use weft_tests::{interfaces, ranks, root, tree};

const LAUNCH: &str = "ip netns exec {host}";
const DEVICES: [&str; 3] = ["auto", "tcp", "shm,xdp"];

/// A job has the hosts to itself, so that what they count is its own.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hosts(each: [u32; 2]) -> String {
    let hosts = Namespaces::pair();
    format!("{}:{},{}:{}", hosts.name(1), each[0], hosts.name(2), each[1])
}

/// What both hosts have sent, and what has arrived, so far.
#[derive(Clone, Copy, Debug)]
struct Traffic {
    datagrams: u64,
    segments: u64,
    frames: u64,
}

impl Traffic {
    fn now() -> Self {
        let of = |number| {
            let files = ["/proc/net/snmp", "/sys/class/net/eth0/statistics/rx_packets"];
            let mut command = Command::new("ip");
            let command = command.args(["netns", "exec", &Namespaces::pair().name(number), "cat"]).args(files);
            String::from_utf8(command.output().expect("ip can be started").stdout).expect("text")
        };
        let texts = [of(1), of(2)];
        let sum = |of: &dyn Fn(&str) -> Option<u64>| texts.iter().map(|text| of(text).expect("a number")).sum();
        // A line of names, and one of numbers.
        let counted = |text: &str, kind: &str, name: &str| {
            let mut lines = text.lines().filter(|line| line.starts_with(kind));
            let at = lines.next()?.split(' ').position(|word| word == name)?;
            lines.next()?.split(' ').nth(at)?.parse().ok()
        };
        Self {
            datagrams: sum(&|text| counted(text, "Udp:", "OutDatagrams")),
            segments: sum(&|text| counted(text, "Tcp:", "OutSegs")),
            frames: sum(&|text| text.lines().last()?.parse().ok()),
        }
    }

    /// Asserts that what was sent since then went by these devices.
    fn assert_by(self, devices: &str, what: &str) {
        let now = Self::now();
        let [datagrams, segments, frames] =
            [now.datagrams - self.datagrams, now.segments - self.segments, now.frames - self.frames];
        let past = frames.saturating_sub(datagrams + segments);
        let good = match devices {
            // What is long may go over connections.
            "auto" => datagrams > 10,
            "tcp" => segments > 10 && datagrams == 0,
            _ => past > 10 && segments == 0,
        };
        assert!(good, "{what}: {datagrams} datagrams, {segments} segments, {frames} frames");
    }
}

/// `weft run` on both hosts, with so many ranks on each.
fn weft_run(each: [u32; 2], devices: &str) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--bind", "none", "--timeout", "60", "--launch", LAUNCH, "--hosts", &hosts(each)]);
    // A host may take long to answer: the machine may be loaded.
    command.args(["--device", devices]).env("WEFT_LAUNCH_TIMEOUT", "60").stdin(Stdio::null());
    command
}

/// Runs the program on all devices.
fn passes(program: &Path, each: [u32; 2], arguments: &[&str]) {
    passes_by(&DEVICES, program, each, arguments);
}

/// On each of these devices it ends well, says `ok`, and its messages have gone that way.
fn passes_by(devices: &[&str], program: &Path, each: [u32; 2], arguments: &[&str]) {
    let _alone = alone();
    for &devices in devices {
        let what = format!("{} {arguments:?} on {each:?} by {devices}", program.display());
        let before = Traffic::now();
        let output = weft_run(each, devices).arg(program).args(arguments).output().expect("weft can be started");
        ranks::assert_ok(&what, &output);
        before.assert_by(devices, &what);
    }
}

struct Programs(TempDir);

impl Programs {
    fn new() -> Self {
        Self(TempDir::new().expect("there is room for a folder"))
    }

    fn place(&self) -> &str {
        self.0.path().to_str().expect("text")
    }

    fn compiled(&self, source: &str, library: &str) -> PathBuf {
        let threads: &[&str] = if source.ends_with(".c") { &["-pthread", "-std=gnu11"] } else { &[] };
        interfaces::compile(self.0.path(), &format!("tests/c/{source}"), library, threads)
    }
}

fn spawn(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started")
}

fn ends_well(what: &str, child: Child) {
    ranks::assert_ok(what, &child.wait_with_output().expect("it ends"));
}

#[test]
fn native_messages_waits_memory_and_handlers() {
    let programs = Programs::new();
    for name in ["thin", "waits", "transfers", "later"] {
        passes(&programs.compiled(&format!("native/{name}.c"), "weft"), [1, 1], &[]);
    }
}

#[test]
fn native_processes_hear_how_another_one_has_ended() {
    let programs = Programs::new();
    let lost = programs.compiled("native/lost.c", "weft");
    passes(&lost, [2, 1], &["well"]);
    let _alone = alone();
    for devices in DEVICES {
        let mut command = weft_run([2, 1], devices);
        let output = command.arg("--keep-going").arg(&lost).arg("killed").output().expect("weft can be started");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(out, "ok\n", "{devices}: {}\n{err}", output.status);
    }
}

#[test]
fn native_processes_are_started_on_hosts_by_their_names() {
    let programs = Programs::new();
    let start = programs.compiled("native/start.c", "weft");
    let _alone = alone();
    for devices in ["auto", "tcp"] {
        // The launcher goes to the door of who starts, so it is on one of the hosts.
        let command = weft_run([1, 1], devices);
        let mut there = Command::new("ip");
        there.args(["netns", "exec", &Namespaces::pair().name(1)]).arg(command.get_program()).args(command.get_args());
        there.env("WEFT_LAUNCH_TIMEOUT", "60").stdin(Stdio::null());
        let output = there.arg(&start).output().expect("weft can be started");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out == "ok\n", "{devices}: {}: {out}\n{err}", output.status);
    }
}

/// Who leaves before anybody has met it is known to be gone once nobody answers any more, which takes its time.
#[test]
fn who_waits_for_a_process_that_nobody_has_met_is_told_that_it_is_gone() {
    let programs = Programs::new();
    let lost = programs.compiled("native/lost.c", "weft");
    let hosts = Namespaces::up(&format!("wu{}x", std::process::id()), 2);
    let places = format!("{}:2,{}:1", hosts.name(1), hosts.name(2));
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--timeout", "60", "--launch", LAUNCH, "--hosts", &places]).arg(&lost).arg("unmet");
    ranks::assert_ok("unmet", &command.stdin(Stdio::null()).output().expect("weft can be started"));
}

#[test]
fn native_ports_are_found_by_name_on_any_host_of_the_job() {
    let programs = Programs::new();
    let named = programs.compiled("native/named.c", "weft");
    let _alone = alone();
    for devices in DEVICES {
        let output =
            weft_run([2, 2], devices).arg(&named).args(["inside", "here"]).output().expect("weft can be started");
        ranks::assert_ok(devices, &output);
    }
}

/// The text of a file that another process makes.
fn text_of(file: &Path) -> String {
    for _ in 0..2000 {
        if let Ok(text) = fs::read_to_string(file) {
            return text;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{} does not come", file.display());
}

/// One of the guests is a process of the second host that nobody has launched.
#[test]
fn native_jobs_meet_across_hosts_at_the_address_of_a_port() {
    let programs = Programs::new();
    let (named, file) = (programs.compiled("native/named.c", "weft"), programs.0.path().join("address"));
    let _alone = alone();
    let before = Traffic::now();
    let mut owner = weft_run([1, 1], "auto");
    let owner = spawn(owner.arg(&named).args(["owner", "far", "3"]).arg(&file));
    let address = text_of(&file);
    let mut guests = weft_run([1, 1], "auto");
    let guests = spawn(guests.arg(&named).args(["guest", &address]));
    let mut single = Command::new("ip");
    single.args(["netns", "exec", &Namespaces::pair().name(2)]).arg(&named).args(["guest", &address]);
    for one in [owner, guests, spawn(&mut single)] {
        ends_well("named", one);
    }
    // Jobs talk over connections.
    assert!(Traffic::now().segments > before.segments + 100);
}

#[test]
fn ports_and_mpi_go_together() {
    let programs = Programs::new();
    let beside = ranks::compile_from("tests/c/native", programs.0.path(), "beside", &["-lweft"]);
    let _alone = alone();
    // Lanes are the first interface's.
    for devices in ["auto", "tcp", "shm,xdp,udp,tcp"] {
        let output = weft_run([1, 1], devices).arg(&beside).output().expect("weft can be started");
        ranks::assert_ok(devices, &output);
    }
}

#[test]
fn python_has_ports_objects_memory_and_coroutines() {
    let script = root().join("tests/c/native/all.py");
    let (script, name) = (script.to_str().expect("text"), format!("far {}", std::process::id()));
    let python = |mut command: Command| {
        command.args(["python3", script, &name]).env("PYTHONPATH", tree().join("lib/python"));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let _alone = alone();
    let first = Namespaces::pair().name(1);
    for devices in ["auto", "tcp"] {
        let ranks = spawn(&mut python(weft_run([1, 1], devices)));
        let mut guest = Command::new("ip");
        guest.args(["netns", "exec", &first]);
        let guest = spawn(python(guest).arg("guest"));
        for one in [ranks, guest] {
            ends_well(devices, one);
        }
    }
}

#[test]
fn active_messages_of_all_sizes_and_endpoints() {
    let programs = Programs::new();
    passes(&programs.compiled("am/pingpong.c", "am"), [1, 1], &[]);
    passes(&programs.compiled("am/endpoints.c", "am"), [2, 1], &[]);
}

#[test]
fn fast_messages_in_pieces_and_floods() {
    let programs = Programs::new();
    passes(&programs.compiled("fm/streams.c", "fm"), [1, 1], &[]);
    passes_by(&["auto"], &programs.compiled("fm/first.c", "fm"), [2, 1], &[]);
}

#[test]
fn panda_calls_in_circles_and_ordered_groups() {
    let programs = Programs::new();
    passes(&programs.compiled("panda/rpc.c", "panda"), [1, 1], &[]);
    passes_by(&["auto"], &programs.compiled("panda/mp.c", "panda"), [2, 1], &[]);
    passes(&programs.compiled("panda/group.c", "panda"), [2, 1], &[]);
}

#[test]
fn tcgmsg_in_c_and_fortran() {
    let programs = Programs::new();
    passes(&programs.compiled("tcgmsg/whole.c", "tcgmsg"), [2, 1], &["3", programs.place()]);
    passes_by(&["auto"], &programs.compiled("tcgmsg/fortran.f90", "tcgmsg"), [1, 1], &[programs.place()]);
}

/// What starts jobs by a file of its own, with the launch command of the environment.
fn by_file(program: &Path, place: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.arg("60").arg(program).current_dir(place).env("WEFT_LAUNCH", LAUNCH).env("WEFT_LAUNCH_TIMEOUT", "60");
    command.stdin(Stdio::null());
    command
}

#[test]
fn parallel_starts_what_a_procgrp_file_says_of_two_hosts() {
    let programs = Programs::new();
    let (old, place) = (programs.compiled("tcgmsg/old.c", "tcgmsg"), programs.place());
    let lines = [(1, 2), (2, 1), (1, 1)]
        .map(|(host, count)| format!("me {} {count} {} {place}\n", Namespaces::pair().name(host), old.display()));
    fs::write(programs.0.path().join("group"), lines.concat()).expect("there is room for a file");
    let _alone = alone();
    let before = Traffic::now();
    let mut command = by_file(&tree().join("bin/parallel"), programs.0.path());
    let output = command.env("PROCGRP", "group").output().expect("parallel can be started");
    ranks::assert_ok("parallel", &output);
    before.assert_by("auto", "parallel");
}

#[test]
fn p4_by_messages() {
    let programs = Programs::new();
    passes(&programs.compiled("p4/whole.c", "p4"), [2, 1], &["-p4norem", "3", "0"]);
}

#[test]
fn a_p4_program_starts_its_processes_on_two_hosts() {
    let programs = Programs::new();
    let fortran = programs.compiled("p4/fortran.f90", "p4");
    let [here, there] = [1, 2].map(|number| Namespaces::pair().name(number));
    let lines = format!("local 1\n{there} 2 {}\n", fortran.display());
    fs::write(programs.0.path().join("procgroup"), lines).expect("there is room for a file");
    let _alone = alone();
    let before = Traffic::now();
    // The program is started on the first host, whose name is that of its namespace.
    let mut command = by_file(Path::new("ip"), programs.0.path());
    command.args(["netns", "exec", &here, "unshare", "--uts", "sh", "-c"]);
    let output = command.args(["hostname \"$0\" && exec \"$1\"", &here]).arg(&fortran).output();
    ranks::assert_ok("procgroup", &output.expect("it can be started"));
    before.assert_by("auto", "procgroup");
}
