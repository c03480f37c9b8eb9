//! What programs may see of UDP sockets (`tests/c/sockets/udp`), once on the kernel and once with the library; and
//! random datagrams between processes (`tests/c/sockets/udp_random`).
//!
//! To replay a seed, or to run longer: `UDP_SEED=17 UDP_DATAGRAMS=1000000 cargo xtask test sockets`.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;
use weft_tests::sockets::{Moved, sock};

/// Cases in which nobody sleeps, and at least so many bytes go by ring, however slow the machine is. In the others
/// datagrams do while nobody sleeps.
const BY_RING: [(&str, u64); 6] =
    [("six", 1000), ("sizes", 200_000), ("nonblocking", 3000), ("polled", 14_000), ("sets", 14_000), ("edges", 7000)];
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

/// A program with the library, which it expects to take datagrams over.
fn preloaded(program: &PathBuf) -> Command {
    let mut command = sock(program);
    command.env("UDP_RINGS", "1");
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
    BY_RING.iter().for_each(|(known, _)| assert!(cases.lines().any(|case| case == *known), "there is no case {known}"));
    let mut failed = Vec::new();
    for case in cases.lines() {
        let (well, said) = run(preloaded(program()).arg(case));
        let moved = Moved::of(&said);
        println!("{case}: {moved:?}");
        // Every case begins with a talk that goes on until it goes by ring.
        let least = BY_RING.iter().find(|(known, _)| *known == case).map_or(1, |(_, bytes)| *bytes);
        if !well || moved.accelerated == 0 || moved.by_ring < least {
            failed.push(format!("{case}: {moved:?}\n{said}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn datagrams_stay_with_the_kernel_where_the_setting_says_so() {
    let (well, said) = run(sock(program()).env("WEFT_SOCK_UDP", "off").arg("polled"));
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
