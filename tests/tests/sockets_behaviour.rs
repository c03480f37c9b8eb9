//! What programs may see of TCP sockets (`tests/c/sockets/behaviour`), once on plain kernel TCP and once with the
//! library preloaded: the same must hold, and with the library the bytes must go through rings where a case is about
//! rings.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;
use weft_tests::sockets::{Moved, sock};
use weft_tests::tree;

/// Cases whose connections stay accelerated to their end. The others hand them to somebody who bypasses the library.
const BY_RING: [&str; 31] = [
    "end_follows_data",
    "closed_peer_gives_epipe",
    "broken_pipe_signal",
    "timeouts",
    "interrupted",
    "flags",
    "duplicates",
    "forked",
    "shut_by_a_thread",
    "cancelled",
    "readiness",
    "sets",
    "edges",
    "nested_sets",
    "short_answers",
    "long_answers",
    "two_sleepers",
    "registered_beside",
    "filled_beside",
    "killed_behind_a_full_ring",
    "answers_of_two_threads",
    "all_else_closed",
    "numbers_of_nobody",
    "headers",
    "told_what_is_left",
    "handed_to_a_worker",
    "registered_by_requests",
    "put_into_a_set_beside",
    "told_on_two_levels",
    "looked_at_beside",
    "jumped_out",
];

/// Lives whose bytes must have gone through rings, and how many at least: both ways, of one process.
const LIVES_BY_RING: [(&str, u64); 14] = [
    ("signals_that_interrupt", 8 << 20),
    ("signals_that_restart", 8 << 20),
    ("signals_of_both_kinds", 8 << 20),
    ("signals_under_waits", 8 << 20),
    ("forks_in_masses", 4_000_000),
    ("handlers_that_use_sets", 20_000),
    ("many_sets", 160 * 30),
    ("many_receivers", 2 * 530),
    ("many_processes", 200_000),
    ("set_of_two_processes", 100),
    ("killed_while_sending", 1 << 20),
    ("left_unread", 200),
    // Five of seven times a mebibyte, sent and received: not those of the connection that nobody could be shown.
    ("rendezvous_killed", 10 << 20),
    // Half of the bytes of its rounds, both ways.
    ("port_used_again", 8000),
];

/// What both programs share.
const CASES: &str = "tests/c/sockets/cases";

fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| weft_tests::build::c_folders("tests/c/sockets/behaviour", &[CASES]))
}

/// How connections begin, end, and pass to other programs.
fn lives() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| weft_tests::build::c_folders("tests/c/sockets/life", &[CASES]))
}

fn run(mut command: Command) -> (bool, String) {
    run_with(&mut command, &[])
}

fn cases(program: &PathBuf) -> Vec<String> {
    let mut list = Command::new(program);
    list.arg("list");
    run(list).1.lines().map(str::to_owned).collect()
}

#[test]
fn every_case_holds_on_the_kernel() {
    let mut all = Command::new(program());
    all.arg("all");
    let (well, said) = run(all);
    assert!(well, "{said}");
}

#[test]
fn every_case_holds_with_the_library() {
    let cases = cases(program());
    BY_RING.iter().for_each(|known| assert!(cases.iter().any(|case| case == known), "there is no case {known}"));
    let mut failed = Vec::new();
    for case in &cases {
        let mut command = sock(program());
        command.arg(case);
        let (well, said) = run(command);
        let moved = Moved::of(&said);
        println!("{case}: {moved:?}");
        // Every case begins with a talk that is long enough for the library to take the connection over.
        let as_meant = moved.accelerated > 0 && moved.by_ring > 0;
        let by_ring = !BY_RING.contains(&case.as_str()) || moved.by_ring > moved.by_kernel;
        if !well || !as_meant || !by_ring {
            failed.push(format!("{case}: {moved:?}\n{said}"));
        }
    }
    assert!(failed.is_empty(), "{} of {} cases: {}", failed.len(), cases.len(), failed.join("\n"));
}

/// What is done on the first of two connections always comes before what is done on the second; by which way each goes.
const ORDERS: [(&str, &str); 7] = [
    ("ring,ring", "send"),
    ("ring,kernel", "send"),
    ("kernel,ring", "send"),
    ("ring,ring", "close"),
    ("kernel,ring", "close"),
    ("fresh,ring", "close"),
    ("ring,fresh", "close"),
];

#[test]
fn a_set_tells_of_what_came_first_before_what_came_later() {
    let program = weft_tests::build::c_folders("tests/c/sockets/order", &[CASES]);
    let mut failed = Vec::new();
    for (kinds, act) in ORDERS {
        for (mode, place) in ["level", "edge", "once"].iter().flat_map(|mode| [(mode, "process"), (mode, "thread")]) {
            let words = ["variant", kinds, act, mode, place, "200"];
            let (mut plain, mut preloaded) = (Command::new(&program), sock(&program));
            let (by_kernel, by_library) = (run_with(&mut plain, &words), run_with(&mut preloaded, &words));
            if !by_kernel.0 || !by_library.0 || Moved::of(&by_library.1).accelerated == 0 {
                failed.push(format!("{words:?}: on the kernel {by_kernel:?}, with the library {by_library:?}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}: {}", failed.len(), failed.join("\n"));
}

fn run_with(command: &mut Command, words: &[&str]) -> (bool, String) {
    let Output { status, stdout, stderr } = command.args(words).output().expect("a program of ours can be started");
    (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

/// Who spins asks the kernel meanwhile, and does not come to the sleep that this is about.
#[test]
fn bytes_behind_those_of_the_kernel_are_told_to_who_does_not_spin() {
    let mut command = sock(program());
    command.env("WEFT_SOCK_SPIN_US", "0").arg("behind_the_kernel");
    let (well, said) = run(command);
    let moved = Moved::of(&said);
    assert!(well && moved.by_ring > 0, "{moved:?}\n{said}");
}

#[test]
fn every_life_is_lived_on_the_kernel_and_with_the_library() {
    let cases = cases(lives());
    LIVES_BY_RING.iter().for_each(|(known, _)| assert!(cases.iter().any(|case| case == known), "no life {known}"));
    let mut failed = Vec::new();
    for case in &cases {
        let mut plain = Command::new(lives());
        plain.arg(case);
        let mut preloaded = sock(lives());
        preloaded.arg(case);
        let (by_kernel, by_library) = (run(plain), run(preloaded));
        let moved = Moved::of(&by_library.1);
        println!("{case}: {moved:?}");
        let least = LIVES_BY_RING.iter().find(|(known, _)| known == case).map_or(0, |(_, least)| *least);
        if !by_kernel.0 || !by_library.0 || moved.by_ring < least {
            failed.push(format!("{case}: on the kernel {by_kernel:?}, with the library {by_library:?}"));
        }
    }
    assert!(failed.is_empty(), "{} of {} cases: {}", failed.len(), cases.len(), failed.join("\n"));
}

/// Lives in which some are numbered in another way, how many ends are accelerated, and more bytes than go by rings.
const NUMBERED_OTHERWISE: [(&str, u64, u64); 2] = [("other_numbers", 0, 1), ("forked_into_other_numbers", 2, 100_000)];

#[test]
fn who_is_numbered_otherwise_shares_no_ring() {
    for (case, ends, bytes) in NUMBERED_OTHERWISE {
        let mut preloaded = sock(lives());
        preloaded.arg(case);
        // SAFETY: only system calls.
        unsafe { preloaded.pre_exec(alone_in_the_network) };
        let (well, said) = run(preloaded);
        let moved = Moved::of(&said);
        assert!(well && moved.accelerated == ends && moved.by_ring < bytes, "{case}: {moved:?}\n{said}");
    }
}

/// A network of its own, with a loopback, and so a rendezvous of its own; the same network where that is not allowed.
fn alone_in_the_network() -> std::io::Result<()> {
    // SAFETY: system calls with numbers and valid places.
    unsafe {
        if libc::unshare(libc::CLONE_NEWNET) != 0 && libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) != 0 {
            return Ok(());
        }
        let mut interface: libc::ifreq = std::mem::zeroed();
        (interface.ifr_name[0], interface.ifr_name[1]) = (b'l' as libc::c_char, b'o' as libc::c_char);
        interface.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let answer = libc::ioctl(socket, libc::SIOCSIFFLAGS, &interface);
        if answer == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }
}

#[test]
fn what_killed_processes_have_counted_is_in_the_sums() {
    let mut both = Command::new("sh");
    both.args(["-c", "$0 sock --stats -- $1 killed_while_sending && exec $0 ps --sockets --json"]);
    both.arg(tree().join("bin/weft")).arg(lives());
    // SAFETY: only system calls.
    unsafe { both.pre_exec(alone_in_the_network) };
    let Output { status, stdout, stderr } = both.output().expect("a shell");
    let (said, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{said}{errors}");
    // By the rendezvous, and by the command itself.
    let moved = Moved::of(&errors);
    let json = said.find('{').map_or("", |at| &said[at..]);
    let sums: serde_json::Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {said}"));
    let ended = &sums["ended"];
    let count = |name: &str| ended["counters"][name].as_u64().unwrap_or(0);
    let sums = [count("bytes_ring_in"), count("bytes_ring_out")];
    // What the one that lived has received was sent by those that were killed.
    assert!(sums[0] > 1 << 20 && sums[1] > sums[0] / 2 && moved.by_ring == sums[0] + sums[1], "{moved:?}, {ended}");
    assert!(ended["processes"].as_u64() > Some(12), "{ended}");
}
