//! `weft ps --watch` on a terminal: what stands there while jobs come and go, and what is left of it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use weft_tests::{build, tree};

/// A busy machine may take its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// How each picture begins and ends: at the top, and with the rest of the screen cleared.
const TOP: &str = "\x1b[H";
const REST: &str = "\x1b[J";

/// A pseudo terminal: our side of it, and the programs'.
struct Terminal {
    ours: File,
    theirs: File,
    text: String,
}

impl Terminal {
    fn open() -> Self {
        let (mut ours, mut theirs) = (-1, -1);
        let size = libc::winsize { ws_row: 50, ws_col: 150, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: valid places for the descriptors, which are new and ours.
        let (ours, theirs) = unsafe {
            let nothing = std::ptr::null_mut();
            assert_eq!(libc::openpty(&mut ours, &mut theirs, nothing, std::ptr::null(), &size), 0, "a terminal");
            for fd in [ours, theirs] {
                assert_eq!(libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC), 0);
            }
            (File::from_raw_fd(ours), File::from_raw_fd(theirs))
        };
        Self { ours, theirs, text: String::new() }
    }

    /// Starts a program that has this as its terminal.
    fn start(&self, command: &mut Command) -> Child {
        let stream = || Stdio::from(self.theirs.try_clone().expect("a descriptor"));
        command.stdin(stream()).stdout(stream()).stderr(stream());
        // SAFETY: two system calls between fork and exec.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        command.spawn().expect("the program starts")
    }

    /// How the terminal treats lines, echo and signals.
    fn modes(&self) -> (u32, u32, u32, u32) {
        // SAFETY: plain data, and a valid place for the answer.
        let modes = unsafe {
            let mut modes: libc::termios = std::mem::zeroed();
            assert_eq!(libc::tcgetattr(self.theirs.as_raw_fd(), &mut modes), 0);
            modes
        };
        (modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag)
    }

    /// Takes in what has been written, if anything comes within a moment.
    fn listen(&mut self) {
        let mut poll = libc::pollfd { fd: self.ours.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry.
        if unsafe { libc::poll(&mut poll, 1, 200) } == 1 {
            let mut bytes = [0; 65536];
            let count = self.ours.read(&mut bytes).expect("the terminal is open on the other side");
            self.text.push_str(std::str::from_utf8(&bytes[..count]).expect("plain characters"));
        }
    }

    /// The whole pictures so far.
    fn pictures(&self) -> impl Iterator<Item = &str> {
        self.text.split(TOP).filter_map(|picture| picture.strip_suffix(REST))
    }

    fn listen_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let given_up = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(
                Instant::now() < given_up,
                "not seen: {what}; last:\n{}",
                self.pictures().last().unwrap_or_default()
            );
            self.listen();
        }
    }
}

/// The part of a picture that is about the job of this launcher.
fn part_of(launcher: u32, picture: &str) -> Option<&str> {
    let start = picture.find(&format!("job {launcher}-"))?;
    let end = picture[start..].find("\x1b[K\r\n\x1b[K\r\n").map_or(picture.len(), |at| start + at);
    Some(&picture[start..end])
}

/// What a job's receiving rank is said to be blocked in, such as `... for 1.2 s`.
fn receives(launcher: u32, picture: &str) -> Option<&str> {
    let line = part_of(launcher, picture)?.lines().find(|line| line.contains("blocked in MPI_Recv"))?;
    line.split("\x1b[K").next()
}

#[test]
fn jobs_are_followed_until_interrupted_and_the_terminal_is_left_as_it_was() {
    let member = build::c_program(&tree().join("bin/mpicc"), "tests/c/join/member.c");
    let mut terminal = Terminal::open();
    let before = terminal.modes();
    let weft = tree().join("bin/weft");
    let mut watch = terminal.start(Command::new(&weft).args(["ps", "--watch", "0.1"]));
    terminal.listen_until("a first picture", |terminal| terminal.pictures().next().is_some());

    let mut job = Command::new(&weft);
    job.args(["run", "--bind", "none", "--timeout", "100", "-n", "2"]).arg(&member).arg("wait");
    let mut job = job.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a launcher");
    let launcher = job.id();
    terminal.listen_until("a blocked rank whose time goes on", |terminal| {
        let mut lines = terminal.pictures().filter_map(|picture| receives(launcher, picture));
        let first = lines.next();
        lines.any(|line| Some(line) != first)
    });
    let line = terminal.pictures().find_map(|picture| receives(launcher, picture)).expect("just seen");
    assert!(line.contains("1 ") && line.contains("MPI_Recv from rank 0, tag 7, MPI_COMM_WORLD for "), "{line}");
    let last = terminal.pictures().last().expect("a picture");
    assert_eq!(last.matches(&format!("job {launcher}-")).count(), 1, "each job once: {last}");
    // What stood in a line before is cleared with it.
    assert!(last.split_terminator("\r\n").all(|line| line.ends_with("\x1b[K")), "{last:?}");

    job.kill().expect("it lives");
    job.wait().expect("it was started");
    terminal.listen_until("that the job is gone", |terminal| {
        terminal.pictures().last().is_some_and(|picture| !picture.is_empty() && part_of(launcher, picture).is_none())
    });

    // Ctrl-C, as somebody types it.
    terminal.ours.write_all(b"\x03").expect("typed");
    let status = watch.wait().expect("it was started");
    assert_eq!(status.signal(), Some(libc::SIGINT), "{status}");
    assert_eq!(terminal.modes(), before);
    terminal.listen();
    assert!(!terminal.text.contains("\x1b[?"), "no mode of the screen was changed, so none has to be restored");
}
