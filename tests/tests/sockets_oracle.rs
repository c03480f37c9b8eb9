//! Random socket operations under preload, with kernel TCP as the oracle (`tests/c/sockets/oracle`).
//!
//! Every run has a fixed seed and a fresh one, which it prints. To replay one:
//!
//!     ORACLE_SEED=17 cargo xtask test tree sockets
//!
//! and for a long run, with `ORACLE_SEED` or a fresh seed:
//!
//!     ORACLE_OPERATIONS=1000000 cargo xtask test tree sockets

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use weft_tests::{root, sockets};

/// Operations of a run, few enough for every change: some ten seconds each on a machine that does nothing else.
const LOCKSTEP: u64 = 40_000;
const FREE: u64 = 150_000;
/// So many are enough to find every lie.
const LIES: u64 = 5000;
/// A sequence that is the same in each run.
const FIXED_SEED: u64 = 7;
/// One in which a process takes a connection back to the kernel that waits for room in a set of another.
const TAKEN_BACK: u64 = 2910430068537102574;

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is '{text}', accepted is a number")))
}

fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| weft_tests::build::c_folder("tests/c/sockets/oracle"))
}

/// What a run has said; `None` where not even the kernel's own connections do what the oracle expects.
fn run(only: &str, budget: u64, seed: Option<u64>) -> Option<String> {
    let mut command = Command::new(program());
    let operations = variable("ORACLE_OPERATIONS").unwrap_or(budget).to_string();
    command.args(["--only", only, "--operations", &operations]);
    sockets::ensure_rendezvous();
    command.arg("--preload").arg(sockets::library());
    command.args(seed.map(|seed| seed.to_string()));
    sockets::oracle_says(&mut command)
}

fn passes(only: &str, budget: u64, seed: u64) {
    run(only, budget, Some(seed)).expect("the oracle is right about the kernel");
}

/// A seed with which the kernel's connections do not do what the oracle expects says nothing about the library: then
/// others are tried.
fn passes_with_a_fresh_seed(only: &str, budget: u64) {
    let seed = variable("ORACLE_SEED");
    (0..3).find_map(|_| run(only, budget, seed)).expect("a seed with which the oracle is right about the kernel");
}

#[test]
fn calls_in_lockstep_answer_what_the_kernel_answers() {
    passes("lockstep", LOCKSTEP, variable("ORACLE_SEED").unwrap_or(FIXED_SEED));
}

#[test]
fn a_set_shows_room_in_what_another_process_took_back() {
    passes("lockstep", LOCKSTEP, TAKEN_BACK);
}

#[test]
fn calls_in_lockstep_answer_so_with_a_fresh_seed() {
    passes_with_a_fresh_seed("lockstep", LOCKSTEP);
}

#[test]
fn both_sides_at_once_lose_nothing() {
    passes("free", FREE, variable("ORACLE_SEED").unwrap_or(FIXED_SEED));
}

#[test]
fn both_sides_at_once_lose_nothing_with_a_fresh_seed() {
    passes_with_a_fresh_seed("free", FREE);
}

/// Steps of a run of the order oracle.
const ORDERLY: u64 = 60_000;
const WITH_STRANGERS: u64 = 20_000;
/// A library that does not keep to the order is wrong in every seventh. Where a process shares no memory with the
/// receiver, what it does by the kernel has no time (see `epoll/order.rs` of the library): then one in so many may be
/// wrong.
const OUT_OF_ORDER_ONE_IN: u64 = 5000;

/// How many of so many steps a set tells of in another order than they were made in, with the kernel's connections and
/// with rings: several senders make one after the other, on connections of all kinds.
fn out_of_order(kind: &str, steps: u64, seed: u64) -> [u64; 2] {
    let program = weft_tests::build::c_folders("tests/c/sockets/order", &["tests/c/sockets/cases"]);
    let says = |command: &mut Command| {
        let arguments = [kind, &steps.to_string(), &seed.to_string()];
        let output = command.args(arguments).env("ORDER_LOUD", "1").output().expect("a program");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        println!("{said}");
        let wrong = said.lines().find_map(|line| line.split_once(" wrong of ")?.0.parse().ok());
        (wrong.unwrap_or_else(|| panic!("{}: {said}", output.status)), said)
    };
    let (by_kernel, _) = says(&mut Command::new(&program));
    let (by_ring, said) = says(&mut sockets::sock(&program));
    assert!(sockets::Moved::of(&said).by_ring > 0, "{said}");
    [by_kernel, by_ring]
}

fn steps(few: u64) -> u64 {
    variable("ORACLE_OPERATIONS").unwrap_or(few)
}

/// But for the end of a connection that a rendezvous without a core still has: one in so many.
const LATE_ONE_IN: u64 = 30_000;

fn tells_in_order(seed: u64) {
    let all = steps(ORDERLY);
    let [by_kernel, by_ring] = out_of_order("random", all, seed);
    let is_right = by_kernel == 0 && by_ring * LATE_ONE_IN <= all;
    assert!(is_right, "by the kernel {by_kernel} and by rings {by_ring} of {all} (again with ORACLE_SEED={seed})");
}

#[test]
fn a_set_tells_in_the_order_in_which_things_happen() {
    tells_in_order(variable("ORACLE_SEED").unwrap_or(FIXED_SEED));
}

#[test]
fn a_set_tells_in_order_with_a_fresh_seed() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
    tells_in_order(variable("ORACLE_SEED").unwrap_or(now.as_nanos() as u64));
}

#[test]
fn a_set_tells_nearly_in_order_of_what_strangers_do() {
    let (seed, all) = (variable("ORACLE_SEED").unwrap_or(FIXED_SEED), steps(WITH_STRANGERS));
    let wrong = out_of_order("strangers", all, seed);
    let is_right = wrong.iter().all(|wrong| wrong * OUT_OF_ORDER_ONE_IN <= all);
    assert!(is_right, "by the kernel and by rings {wrong:?} of {all} (again with ORACLE_SEED={seed})");
}

/// Libraries that break TCP in one way each.
#[test]
fn an_oracle_that_is_lied_to_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("liar.so");
    let compiled = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(root().join("tests/c/sockets/liar.c"))
        .output()
        .expect("a C compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ends_well = |lie: &str, only: &str| -> bool {
        let mut command = Command::new(program());
        command
            .args(["--only", only, "--operations", &LIES.to_string(), "--preload"])
            .arg(&library)
            .arg("7")
            .env("LIE", lie);
        // What it leaves behind for a person to look at goes with the folder.
        command.env("TMPDIR", folder.path()).output().expect("the oracle can be started").status.success()
    };
    assert!(ends_well("nothing", "lockstep") && ends_well("nothing", "free"));
    for lie in ["lost", "swapped", "ended", "errno", "twice"] {
        assert!(!ends_well(lie, "lockstep"), "{lie}");
    }
    for lie in ["lost", "swapped"] {
        assert!(!ends_well(lie, "free"), "{lie}");
    }
}
