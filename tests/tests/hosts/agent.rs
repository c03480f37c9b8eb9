//! The agent alone, spoken to by the test in the place of a launcher.

use crate::launcher::kill;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use weft_cluster::frame::{Channel, Frame, Frames, GREETING_BYTES, HostStart, RankStream, greeting};
use weft_cluster::job::{Program, StdinTo};
use weft_cluster::placement::Bind;
use weft_tests::build;
use weft_tests::namespaces::Namespaces;
use weft_wire::job_map::{Host, JobMap, MappedRank};

/// An agent in the first namespace, with a pipe that all processes of the job hold open.
struct Agent {
    process: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    frames: Frames,
    witness: std::io::PipeReader,
}

impl Agent {
    fn start() -> Self {
        // Before there is a witness, which what looks after them would hold open.
        let host = Namespaces::pair().name(1);
        let (witness, held) = std::io::pipe().unwrap();
        // SAFETY: no memory is passed.
        assert_eq!(unsafe { libc::fcntl(held.as_raw_fd(), libc::F_SETFD, 0) }, 0);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &host]).arg(build::weft()).arg("agent");
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, mut output) = (process.stdin.take(), process.stdout.take().unwrap());
        let mut bytes = [0; GREETING_BYTES];
        output.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, greeting());
        Self { process, input, output, frames: Frames::default(), witness }
    }

    fn say(&mut self, frame: &Frame) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.input.as_mut().unwrap().write_all(&bytes).unwrap();
    }

    fn hear(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.frames.poll_frame().unwrap() {
                return Some(frame);
            }
            let mut bytes = [0; 4096];
            match self.output.read(&mut bytes).unwrap() {
                0 => return None,
                count => self.frames.handle_bytes(&bytes[..count]),
            }
        }
    }

    /// Starts two ranks of this script and lets them go.
    fn job(&mut self, script: &str) {
        let Some(Frame::Hello(hello)) = self.hear() else { panic!("a hello") };
        let host = Host { name: "a".into(), addresses: hello.addresses };
        self.say(&start(script));
        let Some(Frame::Ready(ports)) = self.hear() else { panic!("ready") };
        let rank = |(member, (tcp_port, udp_port)): (usize, &(u16, u16))| MappedRank {
            host: 0,
            member: member as u32,
            tcp_port: *tcp_port,
            udp_port: *udp_port,
        };
        let ranks = ports.iter().enumerate().map(rank).collect();
        self.say(&Frame::Go(JobMap { key: [7; 16], hosts: vec![host], ranks }.encode()));
    }

    /// What the ranks write, up to so many bytes. That they have started may be heard before or after it.
    fn output_of(&mut self, bytes: usize) -> String {
        let mut text = Vec::new();
        while text.len() < bytes {
            match self.hear().expect("a job that runs") {
                Frame::Data { channel: Channel { stream: RankStream::Output, .. }, bytes } => text.extend(bytes),
                Frame::Started { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        String::from_utf8(text).unwrap()
    }

    /// Returns when no process of the job lives, and answers the agent's exit code.
    fn wait_until_nothing_lives(mut self) -> Option<i32> {
        drop(self.input.take());
        self.witness.read_to_end(&mut Vec::new()).unwrap();
        self.process.wait().unwrap().code()
    }
}

fn start(script: &str) -> Frame {
    start_program("bash", vec!["-c".into(), script.into()])
}

fn start_program(program: &str, arguments: Vec<std::ffi::OsString>) -> Frame {
    let program = Program { program: program.into(), arguments, ranks: 2, ..Program::default() };
    Frame::Start(Box::new(HostStart {
        job: "test".into(),
        secret: 7,
        front: "test".into(),
        size: 2,
        ranks: vec![0, 1],
        hosts: vec!["a".into()],
        places: vec![0, 0],
        programs: vec![program],
        environment: std::env::vars_os().filter(|(name, _)| name == "PATH").collect(),
        directory: "/".into(),
        bind: Bind::None,
        stdin: StdinTo::Nobody,
        output: [None, None],
        cores: None,
    }))
}

#[test]
fn agent_that_loses_the_launcher_ends_its_ranks() {
    let mut agent = Agent::start();
    // The ranks neither read nor write: nothing else tells them.
    agent.job("trap '' TERM HUP INT PIPE; (setsid bash -c 'sleep 1000' &); echo up; exec sleep 1000");
    assert_eq!(agent.output_of(6), "up\nup\n");
    drop(agent.input.take());
    assert_eq!(agent.wait_until_nothing_lives(), Some(1));
}

/// Neither can do the other's work then.
#[test]
fn agent_and_keeper_killed_at_once_leave_no_rank() {
    for _ in 0..4 {
        let mut agent = Agent::start();
        agent.job("echo $PPID; exec sleep 1000");
        let mut said = String::new();
        while said.lines().count() < 2 || !said.ends_with('\n') {
            said += &agent.output_of(1);
        }
        let keeper: i32 = said.lines().next().and_then(|line| line.parse().ok()).expect("a number");
        // Stopped first, so that neither sees the other's end.
        let both = [keeper, agent.process.id() as i32];
        for signal in [libc::SIGSTOP, libc::SIGKILL] {
            both.into_iter().for_each(|process| kill(process, signal));
        }
        assert_eq!(agent.wait_until_nothing_lives(), None);
    }
}

#[test]
fn agent_that_is_talked_to_in_nonsense_ends_its_ranks() {
    let mut agent = Agent::start();
    agent.job("echo up; exec sleep 1000");
    assert_eq!(agent.output_of(6), "up\nup\n");
    agent.input.as_mut().unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    while let Some(frame) = agent.hear() {
        assert!(matches!(frame, Frame::Started { .. }), "{frame:?}");
    }
    assert_eq!(agent.wait_until_nothing_lives(), Some(1));
}

#[test]
fn agent_whose_launcher_leaves_before_the_start_is_gone() {
    let agent = Agent::start();
    assert_eq!(agent.wait_until_nothing_lives(), Some(1));
}

#[test]
fn job_map_that_is_none_is_refused() {
    let mut agent = Agent::start();
    assert!(matches!(agent.hear(), Some(Frame::Hello(_))));
    agent.say(&start("echo up"));
    assert!(matches!(agent.hear(), Some(Frame::Ready(_))));
    agent.say(&Frame::Go(b"no map".to_vec()));
    let Some(Frame::Refused { code: 1, reason }) = agent.hear() else { panic!("refused") };
    assert!(reason.contains("job map"), "{reason}");
    assert_eq!(agent.wait_until_nothing_lives(), Some(1));
}

#[test]
fn a_whole_job_says_each_thing_once_and_then_goodbye() {
    let mut agent = Agent::start();
    agent.job("exit $PMI_RANK");
    let mut seen = [0; 4];
    let leftovers = loop {
        match agent.hear().expect("a goodbye") {
            Frame::Started { .. } => seen[0] += 1,
            Frame::Ended { member, exit } => {
                assert_eq!(exit, weft_cluster::state::Exit::Code(member as i32));
                seen[1] += 1;
            }
            Frame::End { .. } => seen[2] += 1,
            Frame::Used { .. } => seen[3] += 1,
            Frame::Over { leftovers } => break leftovers,
            other => panic!("{other:?}"),
        }
    };
    // Two ranks with two outputs and a socket each.
    assert_eq!((seen, leftovers), ([2, 2, 6, 2], 0));
    assert_eq!(agent.hear(), None);
    assert_eq!(agent.wait_until_nothing_lives(), Some(0));
}

/// What no rank can be is said before any host is told to go.
#[test]
fn program_of_another_mpi_is_refused_before_anything_runs() {
    let directory = tempfile::tempdir().unwrap();
    let compile = |arguments: &[&str], text: &str| {
        std::fs::write(directory.path().join("a.c"), text).unwrap();
        let mut compiler = Command::new("cc");
        compiler.arg("a.c").args(arguments).current_dir(directory.path());
        assert!(compiler.status().unwrap().success());
    };
    compile(&["-shared", "-Wl,-soname,libmpi.so.40", "-o", "libmpi.so.40"], "int a;");
    compile(&["-Wl,--no-as-needed", "./libmpi.so.40", "-o", "program"], "int main(void) { return 0; }");
    let mut agent = Agent::start();
    assert!(matches!(agent.hear(), Some(Frame::Hello(_))));
    let mut start = start_program(&directory.path().join("program").to_string_lossy(), Vec::new());
    if let Frame::Start(start) = &mut start {
        start.environment.push(("WEFT_PMIX".into(), "off".into()));
    }
    agent.say(&start);
    let Some(Frame::Refused { code: 1, reason }) = agent.hear() else { panic!("refused") };
    assert!(reason.contains("Open MPI (libmpi.so.40)"), "{reason}");
    assert_eq!(agent.wait_until_nothing_lives(), Some(1));
}
