//! The rendezvous of a host is killed by which connections go to another host: both programs are told of a reset, and
//! none waits for ever.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use weft_tests::namespaces::Namespaces;
use weft_tests::{root, signal, sockets, tree};

const PORT: &str = "7301";
/// Programs notice within six seconds, where they have the machine for themselves.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process on a host, killed when it is dropped.
struct Started {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Started {
    fn new(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("ip can be started");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, lines }
    }

    fn expect(&mut self, line: &str) {
        let mut said = String::new();
        self.lines.read_line(&mut said).expect("text");
        if said.trim_end() != line {
            let _ = self.child.kill();
            let mut errors = String::new();
            self.child.stderr.take().expect("piped").read_to_string(&mut errors).expect("text");
            panic!("it says {said:?} in the place of {line:?}: {errors}");
        }
    }

    /// All that it says until it ends, and whether it has ended well.
    fn end_until(mut self, until: Instant) -> (String, bool) {
        while self.child.try_wait().expect("our child").is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let ended = self.child.wait().expect("our child").success();
        let mut said = String::new();
        self.lines.read_to_string(&mut said).expect("text");
        self.child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        (said, ended)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn on_host(number: usize) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &Namespaces::pair().name(number)]);
    command
}

fn key(folder: &Path) -> PathBuf {
    let key = folder.join("key");
    sockets::run(Command::new(tree().join("bin/weft")).args(["rendezvous", "--make-key"]).arg(&key));
    key
}

/// A rendezvous that is killed when our end of its guard's standard input is closed, however that comes.
struct Rendezvous {
    guard: Child,
    pid: i32,
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

fn rendezvous(number: usize, key: &Path) -> Rendezvous {
    let mut command = on_host(number);
    command.args(["sh", "-c", "\"$@\" & echo $!; cat > /dev/null; kill -9 $!; wait", "sh"]);
    command.arg(tree().join("bin/weft")).args(["rendezvous", "--lanes", "eth0", "--key"]).arg(key);
    let mut guard = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("ip can be started");
    let mut said = String::new();
    BufReader::new(guard.stdout.take().expect("piped")).read_line(&mut said).expect("text");
    let started = Rendezvous { guard, pid: said.trim().parse().expect("a number") };
    let until = Instant::now() + PATIENCE;
    while !listens(number) {
        assert!(Instant::now() < until, "the rendezvous of host {number} does not come up");
        std::thread::sleep(Duration::from_millis(20));
    }
    started
}

/// Whether a rendezvous waits for processes on that host.
fn listens(number: usize) -> bool {
    sockets::run(on_host(number).args(["cat", "/proc/net/unix"])).text().contains("@weft-rendezvous")
}

fn compiled(folder: &Path) -> PathBuf {
    let program = folder.join("deserted");
    let mut command = Command::new("cc");
    command.args(["-O2", "-o"]).arg(&program).arg(root().join("tests/c/sockets/deserted.c"));
    sockets::run(&mut command);
    program
}

fn program(number: usize, program: &Path, words: [&str; 3]) -> Started {
    let mut command = on_host(number);
    command.args(["env", "WEFT_SOCK_STATS=1"]).arg(format!("LD_PRELOAD={}", sockets::library().display()));
    Started::new(command.arg(program).args(words))
}

/// The rendezvous of host `deserted` is killed under two programs that bounce messages.
fn desert(bouncer: &Path, key: &Path, how: &str, deserted: usize) {
    let [first, second] = [1, 2].map(|number| rendezvous(number, key));
    let mut server = program(1, bouncer, ["serve", PORT, how]);
    server.expect("listening");
    let mut client = program(2, bouncer, [&Namespaces::pair().address(1).to_string(), PORT, how]);
    client.expect("going");
    server.expect("going");
    // One that stands still for a while is there still; the programs go on meanwhile.
    let killed = [&first, &second][deserted - 1].pid;
    signal::send(killed, libc::SIGSTOP);
    std::thread::sleep(Duration::from_secs(2));
    signal::send(killed, libc::SIGCONT);
    std::thread::sleep(Duration::from_secs(1));
    for one in [&mut server, &mut client] {
        assert!(one.child.try_wait().expect("our child").is_none(), "{how}: it has ended too soon");
    }
    signal::send(killed, libc::SIGKILL);
    let until = Instant::now() + PATIENCE;
    for (name, one) in [("server", server), ("client", client)] {
        let (said, ended) = one.end_until(until);
        assert!(ended && said.lines().any(|line| line == "reset"), "{how}, the {name}: {said}");
        let moved = sockets::Moved::of(&said);
        assert!(moved.accelerated == 1 && moved.by_ring > moved.by_kernel, "{how}: not by lane, {moved:?}");
    }
}

#[test]
fn both_programs_are_told_of_a_reset_where_the_rendezvous_of_one_host_is_killed() {
    let folder = TempDir::new().expect("a folder");
    let (bouncer, key) = (compiled(folder.path()), key(folder.path()));
    desert(&bouncer, &key, "block", 1);
    desert(&bouncer, &key, "epoll", 2);
}
