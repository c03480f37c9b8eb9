//! Starting `weft` and looking at what it did.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;
use weft_tests::build;

/// What a finished job left.
#[derive(Debug)]
pub struct Finished {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// `weft run` with these arguments, cut at blanks, not bound, so that tests do not fight for cores.
pub fn weft_run(arguments: &str) -> Command {
    let mut command = Command::new(build::weft());
    command.args(["run", "--bind", "none"]).args(arguments.split_whitespace());
    command.stdin(Stdio::null());
    command
}

/// Runs a shell script on each rank, after `options`.
pub fn on_ranks(options: &str, script: &str) -> Command {
    let mut command = weft_run(options);
    command.args(["sh", "-c", script]);
    command
}

pub fn finish(command: &mut Command) -> Finished {
    let Output { status, stdout, stderr } = command.output().expect("weft can be started");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Finished { code: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) }
}

pub fn lines_sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// A job that runs while the test goes on.
pub struct Running {
    pub weft: Child,
    pub out: BufReader<ChildStdout>,
    /// Reads its end when every process that inherited the other end is gone.
    witness: std::io::PipeReader,
}

impl Running {
    /// Starts the job with a descriptor that all its processes inherit.
    pub fn start(command: &mut Command) -> Self {
        let (witness, held) = std::io::pipe().expect("a pipe");
        let held = inheritable(held.into());
        let mut weft = command.stdout(Stdio::piped()).spawn().expect("weft can be started");
        drop(held);
        let out = BufReader::new(weft.stdout.take().expect("piped"));
        Self { weft, out, witness }
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    /// Sends a signal to the launcher.
    pub fn signal(&self, signal: i32) {
        kill(self.weft.id() as i32, signal);
    }

    /// Returns when no process of the job lives.
    pub fn wait_until_nothing_lives(&mut self) {
        let mut nothing = Vec::new();
        self.witness.read_to_end(&mut nothing).expect("the end of the pipe");
    }

    /// Whether no process of the job lives before so much time has passed.
    #[allow(dead_code)]
    pub fn nothing_lives_within(&self, time: std::time::Duration) -> bool {
        let mut end = libc::pollfd { fd: self.witness.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one place, which is valid.
        unsafe { libc::poll(&mut end, 1, time.as_millis() as i32) == 1 }
    }

    /// Waits for the launcher; the code, or 128 + signal.
    pub fn code(&mut self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        let status = self.weft.wait().expect("weft was started");
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }
}

pub fn kill(pid: i32, signal: i32) {
    assert!(pid > 1, "a process of ours");
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "kill {pid}");
}

/// Waits until the state of a process is one that is wanted. The kernel tells a stop only to the parent, which we are
/// not for a rank: looked at until it shows.
#[allow(dead_code)]
pub fn wait_for_state(pid: i32, wanted: impl Fn(char) -> bool) {
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a living process");
        if stat[stat.rfind(')').unwrap()..].chars().nth(2).is_some_and(&wanted) {
            return;
        }
        std::thread::yield_now();
    }
}

/// Lets `fd` go to the programs that are started. Those of other tests may get it too; they end by themselves.
fn inheritable(fd: OwnedFd) -> OwnedFd {
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0) }, 0);
    fd
}

/// The children of a process.
pub fn children(pid: i32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("a living process");
    list.split_whitespace().map(|pid| pid.parse().expect("a number")).collect()
}

/// The program with orphans in other sessions.
pub fn family() -> &'static PathBuf {
    static FAMILY: OnceLock<PathBuf> = OnceLock::new();
    FAMILY.get_or_init(|| build::c_program("cc".as_ref(), "tests/c/launcher/family.c"))
}
