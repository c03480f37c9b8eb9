//! The rendezvous of a host is killed by which connections go to another host: both programs are told of a reset, and
//! none waits for ever.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use weft_tests::lanes::LaneHosts;
use weft_tests::{build, signal, sockets};

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

fn bouncer() -> PathBuf {
    build::c_program(Path::new("cc"), "tests/c/sockets/deserted.c")
}

fn program(hosts: &LaneHosts, number: usize, program: &Path, words: [&str; 3]) -> Started {
    Started::new(hosts.on(number, program).args(words))
}

/// The rendezvous of host `deserted` is killed under two programs that bounce messages.
fn desert(bouncer: &Path, how: &str, deserted: usize) {
    let hosts = LaneHosts::up("ld", &[]);
    let mut server = program(&hosts, 1, bouncer, ["serve", PORT, how]);
    server.expect("listening");
    let mut client = program(&hosts, 2, bouncer, [&hosts.address(1), PORT, how]);
    client.expect("going");
    server.expect("going");
    // One that stands still for a while is there still; the programs go on meanwhile.
    let killed = hosts.rendezvous(deserted);
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
    let bouncer = bouncer();
    desert(&bouncer, "block", 1);
    desert(&bouncer, "epoll", 2);
}
