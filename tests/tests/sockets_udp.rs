//! What programs may see of UDP sockets (`tests/c/sockets/udp`), once on the kernel and once with the library, which takes
//! datagrams over when it is told to; and random datagrams between processes (`tests/c/sockets/udp_random`).
//!
//! To replay a seed, or to run longer: `UDP_SEED=17 UDP_DATAGRAMS=1000000 cargo xtask test sockets`.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;
use weft_tests::sockets::{Moved, sock};

/// Cases that withdraw a socket, lose a peer, or sleep all the time: less than half may go by ring.
const BY_KERNEL: [&str; 11] = [
    "closed_peer_refuses",
    "killed_peer_refuses",
    "killed_while_asleep",
    "two_threads",
    "options",
    "forked",
    "shut",
    "passed_on",
    "polled_asleep",
    "selected",
    "sets_asleep",
];
/// Datagrams of each sender in a random run.
const DATAGRAMS: u64 = 10_000;
/// Sequences that are the same in each run.
const FIXED_SEEDS: [u64; 3] = [1, 2, 3];

fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| weft_tests::build::c_folders("tests/c/sockets/udp", &["tests/c/sockets/cases"]))
}

fn random() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| weft_tests::build::c_folder("tests/c/sockets/udp_random"))
}

fn run(command: &mut Command) -> (bool, String) {
    let Output { status, stdout, stderr } = command.output().expect("a program of ours can be started");
    (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

/// A program with the library, which takes datagrams over.
fn preloaded(program: &PathBuf) -> Command {
    let mut command = sock(program);
    command.env("WEFT_SOCK_UDP", "on");
    command
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is '{text}', accepted is a number")))
}

#[test]
fn every_case_of_datagrams_holds_on_the_kernel() {
    let (well, said) = run(Command::new(program()).arg("all"));
    assert!(well, "{said}");
}

#[test]
fn every_case_of_datagrams_holds_with_the_library() {
    let cases = run(Command::new(program()).arg("list")).1;
    BY_KERNEL.iter().for_each(|known| assert!(cases.lines().any(|case| case == *known), "there is no case {known}"));
    let mut failed = Vec::new();
    for case in cases.lines() {
        let (well, said) = run(preloaded(program()).arg(case));
        let moved = Moved::of(&said);
        println!("{case}: {moved:?}");
        // Every case begins with a talk that is long enough for the library to take the sockets over.
        let as_meant = moved.accelerated > 0 && moved.by_ring > 0;
        if !well || !as_meant || !(BY_KERNEL.contains(&case) || moved.by_ring > moved.by_kernel) {
            failed.push(format!("{case}: {moved:?}\n{said}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn datagrams_stay_with_the_kernel_where_nobody_asks_for_rings() {
    let (well, said) = run(sock(program()).arg("polled"));
    assert!(well && Moved::of(&said) == Moved::default(), "{said}");
}

#[test]
fn random_datagrams_come_once_whole_and_all() {
    let fresh = std::process::id().into();
    let seeds = variable("UDP_SEED").map_or_else(|| [&FIXED_SEEDS[..], &[fresh]].concat(), |seed| vec![seed]);
    for seed in seeds {
        let mut command = preloaded(random());
        command.arg(seed.to_string()).arg(variable("UDP_DATAGRAMS").unwrap_or(DATAGRAMS).to_string());
        let (well, said) = run(&mut command);
        let moved = Moved::of(&said);
        println!("seed {seed}: {moved:?}");
        assert!(well, "seed {seed}: {said}");
        assert!(moved.accelerated > 0 && moved.by_ring > 0, "seed {seed}: {moved:?}\n{said}");
    }
}
