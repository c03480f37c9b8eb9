//! Sockets between hosts, which are network namespaces: they stay with the kernel, and who waits for an answer looks for
//! it before it sleeps.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;
use weft_tests::namespaces::Namespaces;
use weft_tests::{root, sockets};

const ROUNDS: u32 = 200;
const PORT: &str = "7300";

fn compiled(folder: &Path) -> std::path::PathBuf {
    let program = folder.join("far");
    let mut command = Command::new("cc");
    command.args(["-O2", "-o"]).arg(&program).arg(root().join("tests/c/sockets/far.c"));
    sockets::run(&mut command);
    program
}

/// `program` with the library, on host `number`, with a second for each look.
fn on_host(number: usize, program: &Path, words: [&str; 4]) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &Namespaces::pair().name(number), "env", "WEFT_SOCK_SPIN_US=1000000"]);
    // By hand: nobody on that host is needed for it, and a rendezvous would live longer than the host.
    command.arg(format!("LD_PRELOAD={}", sockets::library().display())).arg(program).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// How often it has slept, by its own word.
fn slept(said: &str) -> u32 {
    let word = said.lines().find_map(|line| line.strip_prefix("slept "));
    word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("it does not say how often it has slept: {said}"))
}

fn bounce(program: &Path, how: &str) {
    let rounds = ROUNDS.to_string();
    let mut server = on_host(1, program, ["serve", PORT, how, &rounds]).spawn().expect("ip can be started");
    let mut lines = BufReader::new(server.stdout.take().expect("piped"));
    let mut said = String::new();
    lines.read_line(&mut said).expect("text");
    assert_eq!(said, "listening\n", "{how}");
    let address = Namespaces::pair().address(1).to_string();
    let client = sockets::run(&mut on_host(2, program, [&address, PORT, how, &rounds])).text();
    lines.read_to_string(&mut said).expect("text");
    assert!(server.wait().expect("it ends").success(), "{how}: {said}");
    // Only an answer that takes longer than a second is slept for.
    for said in [said, client] {
        assert!(slept(&said) < ROUNDS / 10, "{how}: {said}");
    }
}

#[test]
fn who_awaits_an_answer_of_another_host_looks_before_it_sleeps() {
    let folder = TempDir::new().expect("a folder");
    let program = compiled(folder.path());
    for how in ["block", "poll", "select", "epoll"] {
        bounce(&program, how);
    }
}
