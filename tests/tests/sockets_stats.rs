//! What `weft sock --stats` says: once for each command, of all its processes however they ended, and why connections
//! stayed with the kernel (`tests/c/sockets/counted.c`).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use weft_tests::sockets::{ForAll, Moved, sock};
use weft_tests::{build, signal, tree};

const UNANSWERED: &str = "the other end has not been shown: it is not preloaded, or has moved too little";
const UNTAKEN: &str = "the other end is there, and no call has taken it up yet";
const APART: &str = "in another process namespace than the rendezvous";
const STALE: &str = "the rendezvous process is of another version; a new one is started when it has ended";

fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build::c_program(Path::new("cc"), "tests/c/sockets/counted.c"))
}

/// The port of somebody who has no library, and echoes.
fn echo() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.expect("a connection");
            std::thread::spawn(move || {
                let mut bytes = [0; 64];
                while let Ok(count @ 1..) = connection.read(&mut bytes) {
                    let _ = connection.write_all(&bytes[..count]);
                }
            });
        }
    });
    port.to_string()
}

/// The lines of sums among what was said.
fn sums(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.starts_with("weft")).collect()
}

/// What a command says, which is one summary and nothing else; and how it ended.
fn summary(command: &mut Command) -> (Vec<String>, ExitStatus) {
    let Output { status, stderr, .. } = command.output().expect("a program of ours can be started");
    let said = String::from_utf8_lossy(&stderr).into_owned();
    let lines = sums(&said);
    assert_eq!(lines.len(), said.lines().count(), "{said}");
    assert!(lines.iter().all(|line| line.starts_with("weft sock: ")), "{said}");
    (lines.into_iter().map(str::to_owned).collect(), status)
}

fn stayed(times: u32, why: &str) -> String {
    format!("weft sock: sockets: stayed with the kernel {times}: {why}")
}

#[test]
fn a_connection_whose_other_end_is_not_preloaded_is_counted_however_its_process_ends() {
    let port = echo();
    for ending in ["return", "_exit", "kill", "exec"] {
        let (said, status) = summary(sock(program()).args([&port, ending]));
        assert!(said[0].ends_with("processes with sockets: 1"), "{ending}: {said:?}");
        let why = if ending == "exec" { "it stays open over exec" } else { UNANSWERED };
        assert_eq!(said[1..], [stayed(1, why)], "{ending}");
        let moved = Moved::of(&said[0]);
        assert_eq!((moved.accelerated, moved.by_ring, moved.by_kernel), (0, 0, 3200), "{ending}: {said:?}");
        let expected = match ending {
            "kill" => (None, Some(libc::SIGKILL)),
            "exec" => (Some(0), None),
            _ => (Some(7), None),
        };
        assert_eq!((status.code(), status.signal()), expected, "the command ends as the program does");
    }
}

#[test]
fn processes_without_sockets_say_nothing_and_the_others_are_summed_up() {
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do env true; done; \"$0\" \"$1\" _exit; \"$0\" \"$1\" return";
    let (said, status) = summary(sock("sh").args(["-c", script]).arg(program()).arg(echo()));
    assert_eq!(status.code(), Some(7));
    assert!(said[0].ends_with("processes with sockets: 2"), "{said:?}");
    assert_eq!(said[1..], [stayed(2, UNANSWERED)]);
    let (said, _) = summary(&mut sock("true"));
    assert_eq!(said, ["weft sock: sockets: no process has moved anything over a TCP or UDP socket"]);
}

#[test]
fn two_ends_of_one_command_are_accelerated_and_have_no_reason() {
    let (said, _) = summary(sock(program()).args(["pair", "50000"]));
    let moved = Moved::of(&said[0]);
    assert!(moved.accelerated == 2 && moved.by_ring > 0 && said.len() == 1, "{said:?}");
}

#[test]
fn an_option_that_keeps_a_connection_with_the_kernel_is_named() {
    let (said, _) = summary(sock(program()).args([&echo(), "return", "inq"]));
    // Where the option keeps nothing any more, the other end is still not preloaded.
    assert!(said[1..] == [stayed(1, "option TCP_INQ")] || said[1..] == [stayed(1, UNANSWERED)], "{said:?}");
}

#[test]
fn another_process_namespace_is_a_reason() {
    for mounts in [&["--mount-proc"][..], &[]] {
        let mut command = sock("unshare");
        command.args(["--pid", "--fork"]).args(mounts).arg(program()).args(["pair", "200"]);
        let (said, status) = summary(&mut command);
        assert!(status.success(), "{said:?}");
        assert_eq!(said[1..], [stayed(2, APART)], "{mounts:?}: {said:?}");
    }
}

/// (`tests/c/sockets/stale.c`.) Needs root, for a network of its own.
#[test]
fn a_rendezvous_of_another_version_is_named() {
    let stale = build::c_program(Path::new("cc"), "tests/c/sockets/stale.c");
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", "ip link set lo up; exec \"$@\"", "sh"]).arg(stale).arg("weft-rendezvous-v5-0");
    command.arg(tree().join("bin/weft")).args(["sock", "--stats", "--"]).arg(program()).args(["pair", "200"]);
    let (said, status) = summary(&mut command);
    assert!(status.success(), "{said:?}");
    assert_eq!(said[1..], [stayed(2, STALE)], "{said:?}");
}

#[test]
fn the_log_says_that_the_other_end_does_not_come() {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["sock", "--"]).arg(program()).args([&echo(), "return"]).env("WEFT_SOCK_LOG", "fallbacks");
    let said = String::from_utf8_lossy(&command.output().expect("a program of ours").stderr).into_owned();
    assert!(said.ends_with(&format!(": stays with the kernel: {UNANSWERED}\n")) && said.lines().count() == 1, "{said}");
}

#[test]
fn a_file_takes_the_summary_and_the_standard_error_is_the_program_s() {
    let folder = tempfile::tempdir().expect("a folder");
    let (port, weft) = (echo(), tree().join("bin/weft"));
    let by_option = folder.path().join("option");
    let mut command = Command::new(&weft);
    command.args(["sock", &format!("--stats={}", by_option.display()), "--"]).arg(program()).args([&port, "kill"]);
    let by_variable = folder.path().join("variable");
    let mut other = Command::new(&weft);
    other.args(["sock", "--"]).arg(program()).args([&port, "kill"]).env("WEFT_SOCK_STATS", &by_variable);
    for (command, file) in [(&mut command, by_option), (&mut other, by_variable)] {
        let Output { stdout, stderr, .. } = command.output().expect("a program of ours");
        assert!(stdout.is_empty() && stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
        let said = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(said.lines().skip(1).collect::<Vec<_>>(), [stayed(1, UNANSWERED)]);
    }
    let mut nowhere = Command::new(&weft);
    nowhere.args(["sock", "--stats=/nowhere/at/all", "--"]).arg("true");
    let Output { status, stderr, .. } = nowhere.output().expect("a program of ours");
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.code() == Some(1) && said.contains("'/nowhere/at/all'") && said.lines().count() == 1, "{said}");
}

#[test]
fn who_becomes_another_user_that_cannot_read_the_library_goes_without_and_that_is_said_once() {
    let program = build::c_program(Path::new("cc"), "tests/c/sockets/other_user.c");
    for (mode, lines) in [(0o700, 1), (0o755, 0)] {
        let copy = ForAll::copy_with_mode(mode);
        let mut command = Command::new(copy.folder().join("bin/weft"));
        command.args(["sock", "--"]).arg(&program).arg("65534").env("LD_PRELOAD", "/lib/x86_64-linux-gnu/libdl.so.2");
        let Output { status, stderr, .. } = command.output().expect("a program of ours");
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.success() && said.lines().count() == lines, "{mode:o}: {said}");
        let library = copy.folder().join("lib/libweft_sockets.so");
        let expected = format!("user 65534 cannot read the library '{}'", library.display());
        assert_eq!(said.matches(&expected).count(), lines, "{mode:o}: {said}");
    }
}

#[test]
fn programs_get_no_descriptor_of_the_memory_in_which_they_count() {
    let copy = ForAll::copy();
    let descriptors = |user: u32, options: &[&str], words: &[&str]| {
        let mut command = Command::new(copy.folder().join("bin/weft"));
        command.arg("sock").args(options).arg("--").args(words).args(["-l", "/proc/self/fd"]).uid(user).gid(user);
        let Output { stdout, .. } = command.output().expect("a program of ours");
        String::from_utf8_lossy(&stdout).lines().filter(|line| line.contains("weft-tally")).count()
    };
    assert_eq!(descriptors(65534, &["--stats"], &["ls"]), 0);
    assert_eq!(descriptors(0, &["--stats"], &["env", "-u", "LD_PRELOAD", "ls"]), 0, "without the library");
    assert_eq!((descriptors(0, &["--stats"], &["ls"]), descriptors(0, &[], &["ls"])), (1, 0), "root keeps one");
}

/// Of a process that is not root any more nobody may open the command's descriptors.
#[test]
fn what_another_user_does_is_counted() {
    let copy = ForAll::copy();
    let script =
        format!("exec 3<>/dev/tcp/127.0.0.1/{}; echo word >&3; read word <&3; bash -c 'cat /dev/null'", echo());
    let mut command = Command::new(copy.folder().join("bin/weft"));
    command.args(["sock", "--stats", "--", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    let (said, status) = summary(command.args(["bash", "-c", &script]));
    assert!(status.success() && !said[0].contains("no process"), "{said:?}");
}

/// The program behind the command `parent`, once it is ready.
fn ready(ending: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = sock(program());
    command.args([&echo(), ending]).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Beside its parent's group: the kernel stops nobody in a group that no parent looks after.
    command.process_group(0);
    let mut parent = command.spawn().expect("a program of ours");
    let mut out = BufReader::new(parent.stdout.take().expect("piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("text");
    assert_eq!(line, "ready\n");
    (parent, out)
}

#[test]
fn signals_reach_the_program_and_the_command_ends_as_it_does() {
    let (parent, _out) = ready("term");
    signal::send(parent.id() as i32, libc::SIGTERM);
    let Output { status, stderr, .. } = parent.wait_with_output().expect("our child");
    assert_eq!(status.code(), Some(3));
    assert!(String::from_utf8_lossy(&stderr).contains(&stayed(1, UNANSWERED)));
    let (parent, _out) = ready("term");
    signal::send(parent.id() as i32, libc::SIGUSR2);
    let Output { status, stderr, .. } = parent.wait_with_output().expect("our child");
    assert_eq!(status.signal(), Some(libc::SIGUSR2), "of what the program does not handle");
    assert!(String::from_utf8_lossy(&stderr).contains(&stayed(1, UNANSWERED)));
}

/// Of a program with a connection on which nothing is done any more since both its ends were shown, and whose answer
/// has come: what is said of it when it has sent so many messages on another one.
fn after_a_quiet_connection(messages: &str) -> (Moved, Vec<String>) {
    let mut command = sock(program());
    command.args(["quiet", messages]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut parent = command.spawn().expect("a program of ours");
    let mut line = String::new();
    BufReader::new(parent.stdout.take().expect("piped")).read_line(&mut line).expect("text");
    let pid: u64 = line.trim().parse().expect("a number");
    wait_until("the ends do not meet", || {
        let listed = Command::new(tree().join("bin/weft")).args(["ps", "--sockets", "--json"]).output();
        let listed: serde_json::Value = serde_json::from_slice(&listed.expect("our command").stdout).expect("JSON");
        let connections = listed["connections"].as_array().expect("a list");
        connections.iter().any(|one| one[0]["pid"] == pid)
    });
    parent.stdin.take().expect("piped").write_all(b"\n").expect("it reads");
    let said = String::from_utf8_lossy(&parent.wait_with_output().expect("our child").stderr).into_owned();
    let lines: Vec<String> = sums(&said).into_iter().map(str::to_owned).collect();
    (Moved::of(&lines[0]), lines[1..].to_vec())
}

#[test]
fn an_answer_that_no_call_has_taken_is_no_end_that_was_not_shown() {
    let (moved, reasons) = after_a_quiet_connection("0");
    assert_eq!((moved.accelerated, reasons), (0, vec![stayed(2, UNTAKEN)]));
}

/// Threads of a connection may be without a core for long, or have nothing to say; the other end waits for this one.
#[test]
fn a_quiet_connection_is_attached_by_whoever_reads_the_mail() {
    let (moved, reasons) = after_a_quiet_connection("5000");
    assert_eq!((moved.accelerated, reasons), (4, vec![]));
}

/// State of a process, as `/proc` has it.
fn state(pid: i32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('?')
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !holds() {
        assert!(std::time::Instant::now() < end, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_program_that_stops_stops_the_command_which_goes_on_with_it() {
    let (parent, _out) = ready("stop");
    let pid = parent.id() as i32;
    wait_until("the command does not stop", || state(pid) == 'T');
    signal::send(pid, libc::SIGCONT);
    assert_eq!(parent.wait_with_output().expect("our child").status.code(), Some(4));
}

fn stopping() -> PathBuf {
    build::c_program(Path::new("cc"), "tests/c/sockets/stopping.c")
}

#[test]
fn a_signal_to_the_process_group_reaches_the_program_once() {
    let program = stopping();
    for (to_group, alone) in [(1, 0), (0, 1), (3, 0), (0, 3)] {
        let mut command = Command::new(tree().join("bin/weft"));
        command.args(["sock", "--stats", "--"]).arg(&program).arg("count").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut parent = command.process_group(0).spawn().expect("a program of ours");
        let mut out = BufReader::new(parent.stdout.take().expect("piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("text");
        assert_eq!(line, "ready\n");
        let (pid, counted) = (parent.id() as i32, libc::SIGRTMIN());
        // Who passes one on has all that it needs for the others.
        signal::send(pid, counted);
        line.clear();
        out.read_line(&mut line).expect("text");
        assert_eq!(line, "one\n");
        for (times, whom) in [(to_group, -pid), (alone, pid)] {
            // SAFETY: numbers only; our child, or its group.
            (0..times).for_each(|_| assert_eq!(unsafe { libc::kill(whom, counted) }, 0));
        }
        signal::send(pid, counted + 1);
        line.clear();
        out.read_line(&mut line).expect("text");
        assert_eq!(line, format!("{}\n", 1 + to_group + alone), "{to_group} to the group, {alone} to the command");
        assert_eq!(parent.wait().expect("our child").code(), Some(0));
    }
}

/// As many that take all keys do it: nobody else sends the signal, and it is not the terminal's.
#[test]
fn a_program_that_stops_itself_gives_the_terminal_back_and_gets_it_again() {
    let program = stopping();
    for kind in ["alone", "apart"] {
        let mut command = Command::new(&program);
        command
            .arg("shell")
            .arg(tree().join("bin/weft"))
            .args(["sock", "--stats=/dev/null", "--"])
            .arg(&program)
            .arg(kind);
        let Output { stderr, .. } = command.output().expect("a program of ours");
        assert_eq!(String::from_utf8_lossy(&stderr), "stopped\ngoes on with the terminal\ncode 3\n", "{kind}");
    }
}

#[test]
fn the_end_of_the_program_is_seen_where_ends_of_children_are_ignored() {
    let mut command = sock(program());
    command.args([&echo(), "stop"]).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: a system call: fit to run between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            Ok(())
        });
    }
    let mut parent = command.process_group(0).spawn().expect("a program of ours");
    let pid = parent.id() as i32;
    wait_until("the command does not stop", || state(pid) == 'T');
    signal::send(pid, libc::SIGCONT);
    assert_eq!(parent.wait().expect("our child").code(), Some(4));
}

#[test]
fn who_kills_the_command_kills_the_program() {
    let (mut parent, mut out) = ready("term");
    parent.kill().expect("our child");
    parent.wait().expect("our child");
    let mut rest = String::new();
    // The program holds the other end until it ends.
    out.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, "");
}
