//! Sockets between hosts, which are network namespaces: they stay with the kernel, and who waits for an answer looks
//! for it before it sleeps.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use weft_tests::namespaces::Namespaces;
use weft_tests::{build, root, signal, sockets, tree};

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

/// What the one that is killed does, and what the other one does meanwhile.
const LEFT: [[&str; 2]; 10] = [
    ["all", "recv"],
    ["all", "poll"],
    ["all", "select"],
    ["all", "epoll"],
    ["some", "recv"],
    ["some", "poll"],
    ["some", "select"],
    ["some", "epoll"],
    ["some", "send"],
    ["bouncing", "bounce"],
];

/// A process on a host that says what it does.
struct Told {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Told {
    fn on(number: usize, words: &[&OsStr]) -> Self {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &Namespaces::pair().name(number)]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Which the library would not know.
        let mut process = command.env_remove("WEFT_TEST_ROUNDS").spawn().expect("ip can be started");
        let lines = BufReader::new(process.stdout.take().expect("piped"));
        Self { process, lines }
    }

    /// One that is there for `weft sock` and has no lanes, which ends soon if nobody kills it.
    fn rendezvous(number: usize) -> Self {
        let words = [tree().join("bin/weft").into_os_string(), "rendezvous".into(), "--idle".into(), "10".into()];
        let started = Self::on(number, &words.each_ref().map(|word| word.as_os_str()));
        let sockets = format!("/proc/{}/net/unix", started.process.id());
        let begin = Instant::now();
        while !std::fs::read_to_string(&sockets).expect("it lives").contains("@weft-rendezvous") {
            assert!(begin.elapsed() < Duration::from_secs(20), "the rendezvous of host {number} does not come up");
            std::thread::sleep(Duration::from_millis(5));
        }
        started
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    /// What it says besides until its end.
    fn end(mut self) -> String {
        let mut said = String::new();
        self.process.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        said
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Two programs behind `front` of which one is killed: what the other one is told, and how long after. The library says
/// of itself that it was there, if it has to be.
fn left_by([dying, left]: [&str; 2], front: &[&OsStr], port: &str, server_dies: bool) -> (String, Duration) {
    let address = Namespaces::pair().address(1).to_string();
    let start = |number, to: &str, how: &str| Told::on(number, &[front, &[to, port, how].map(OsStr::new)].concat());
    let (of_server, of_client) = if server_dies { (dying, left) } else { (left, dying) };
    let mut server = start(1, "serve", of_server);
    assert_eq!(server.line(), "listening");
    let client = start(2, &address, of_client);
    let (mut killed, mut left) = if server_dies { (server, client) } else { (client, server) };
    assert_eq!(killed.line(), "here");
    // The other one sleeps by then, or it is somewhere among the messages; what it is told is the same otherwise.
    std::thread::sleep(Duration::from_millis(5));
    let begin = Instant::now();
    signal::send(killed.process.id() as i32, libc::SIGKILL);
    let (told, time) = (left.line(), begin.elapsed());
    let moved = sockets::Moved::of(&left.end());
    assert!((moved.by_kernel > 0) == (front.len() > 1), "{front:?}: {moved:?}");
    (told, time)
}

fn middle_and_longest(mut times: Vec<Duration>) -> [Duration; 2] {
    times.sort();
    [times[times.len() / 2], times[times.len() - 1]]
}

/// Says how long it took; `WEFT_TEST_ROUNDS` are more rounds, by turns.
#[test]
fn who_is_left_by_a_killed_peer_is_told_what_the_kernel_tells() {
    let rounds = std::env::var("WEFT_TEST_ROUNDS").map_or(2, |text| text.parse().expect("a number"));
    let program = build::c_program(Path::new("cc"), "tests/c/sockets/left.c");
    let weft = tree().join("bin/weft");
    let _rendezvous = [1, 2].map(Told::rendezvous);
    let kernel = [program.as_os_str()];
    let ours = [weft.as_os_str(), OsStr::new("sock"), OsStr::new("--stats"), OsStr::new("--"), program.as_os_str()];
    for scene in LEFT {
        let mut times = [Vec::new(), Vec::new()];
        let mut heard = BTreeSet::new();
        for round in 0..rounds {
            let both = [&kernel[..], &ours].map(|front| left_by(scene, front, "7400", round % 2 == 0));
            // Where messages go to and fro, it is chance whether one of them was unread.
            let is_chance = scene[0] == "bouncing" && both.iter().all(|(said, _)| said.ends_with(", again 0, over"));
            assert!(is_chance || both[0].0 == both[1].0, "{scene:?}, kernel TCP and under weft sock: {both:?}");
            assert!(both[0].0.ends_with(", over"), "{scene:?}: {both:?}");
            times.iter_mut().zip(&both).for_each(|(times, (_, time))| times.push(*time));
            heard.extend(both.map(|(said, _)| said));
        }
        let [kernel, ours] = times.map(middle_and_longest);
        println!("{scene:?}: {heard:?}; middle and longest: kernel TCP {kernel:?}, under weft sock {ours:?}");
    }
}
