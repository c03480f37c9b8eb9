//! Sessions of ranks, and what is typed at a terminal.

use super::support::{finish, wait_for_state};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::ptr::{null, null_mut};
use weft_tests::build::weft;

/// A terminal of our own: the user's side, and the side that becomes a program's controlling terminal.
fn terminal() -> (std::fs::File, std::fs::File) {
    use std::os::fd::FromRawFd;
    let (mut user, mut program) = (0, 0);
    // SAFETY: two valid places for descriptors; neither name, settings nor size is wanted.
    let opened = unsafe { libc::openpty(&mut user, &mut program, null_mut(), null(), null()) };
    assert_eq!(opened, 0);
    // SAFETY: two new descriptors that nobody else owns.
    unsafe { (std::fs::File::from_raw_fd(user), std::fs::File::from_raw_fd(program)) }
}

/// A shell with job control in a session of its own, seen from its terminal.
struct Terminal {
    user: File,
    shell: Child,
    seen: Vec<u8>,
}

impl Terminal {
    fn run(script: &str) -> Self {
        let (user, program) = terminal();
        let mut shell = Command::new("bash");
        shell.args(["--norc", "-mc", script]);
        shell.stdin(program.try_clone().unwrap()).stdout(program.try_clone().unwrap()).stderr(program);
        // SAFETY: the closure only makes two system calls.
        unsafe {
            shell.pre_exec(|| {
                let took = libc::setsid() > 0 && libc::ioctl(0, libc::TIOCSCTTY, 0) == 0;
                took.then_some(()).ok_or_else(std::io::Error::last_os_error)
            });
        }
        let running = shell.spawn().unwrap();
        // The command, which goes here, held the program's side, whose end is what ends our reading.
        Self { user, shell: running, seen: Vec::new() }
    }

    fn type_in(&mut self, bytes: &[u8]) {
        self.user.write_all(bytes).unwrap();
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// False at the end: a terminal whose other side is closed gives an error in its place.
    fn read_on(&mut self) -> bool {
        let mut bytes = [0; 1024];
        let count = self.user.read(&mut bytes).unwrap_or(0);
        self.seen.extend_from_slice(&bytes[..count]);
        count > 0
    }

    /// Waits until `words` have been seen so many times.
    fn wait_for(&mut self, words: &str, times: usize) {
        while self.text().matches(words).count() < times {
            assert!(self.read_on(), "'{words}' was not seen {times} times: {}", self.text());
        }
    }

    /// All that was seen until the shell has ended.
    fn finish(mut self) -> String {
        while self.read_on() {}
        self.shell.wait().unwrap();
        self.text()
    }

    /// The numbers after `word`.
    fn pids(&self, word: &str) -> Vec<i32> {
        let text = self.text();
        let after = text.split(word).skip(1).map(|rest| rest.split_whitespace().next().unwrap_or_default());
        after.map(|pid| pid.parse().expect("a process id")).collect()
    }
}

fn on_terminal(script: &str, typed: &[u8]) -> String {
    let mut terminal = Terminal::run(script);
    terminal.type_in(typed);
    terminal.finish()
}

#[test]
fn job_in_the_background_neither_stops_nor_takes_what_is_typed() {
    let weft = weft().display();
    let script = format!(
        "{weft} run --bind none -n 2 sh -c 'test $PMI_RANK = 1 && echo ranks-up' & wait $!; read -r x; echo \"shell got $x\""
    );
    let seen = on_terminal(&script, b"typed\n");
    assert!(seen.contains("ranks-up") && seen.contains("shell got typed"), "{seen}");
}

#[test]
fn question_without_line_end_is_shown_on_a_terminal() {
    let weft = weft().display();
    let script = format!("{weft} run --bind none -n 1 sh -c 'printf \"name? \"; read -r n; echo \"hello $n\"'");
    let seen = on_terminal(&script, b"joe\n");
    let question = seen.find("name? ").expect("the question");
    assert!(seen[question..].contains("hello joe"), "{seen}");
}

/// The session of the process that runs this in a shell.
const SESSION: &str = "cut -d' ' -f6 /proc/self/stat";

fn own_session() -> String {
    let output = Command::new("sh").args(["-c", SESSION]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn processors() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

/// The sessions of the ranks of a job.
fn sessions(options: &[&str]) -> BTreeSet<String> {
    let done = finish(Command::new(weft()).arg("run").args(options).args(["sh", "-c", SESSION]));
    assert_eq!(done.code, 0, "{options:?}: {}", done.err);
    done.out.lines().map(str::to_owned).collect()
}

#[test]
fn each_rank_has_a_session_of_its_own() {
    // Where processor time is shared by session, a job of many ranks would otherwise have the share of one process.
    let sessions = sessions(&["-n", &processors().to_string()]);
    assert_eq!(sessions.len(), processors(), "{sessions:?}");
    assert!(!sessions.contains(&own_session()), "{sessions:?}");
}

#[test]
fn ranks_that_may_share_a_processor_stay_in_one_session() {
    // The kernel lets a process give way to those of its session alone.
    let more = (processors() + 1).to_string();
    let hosts = ["--hosts", "a,b,c", "--launch", "env AT={host}"];
    for options in [&["-n", &*more][..], &["--bind", "none", "-n", "2"], &hosts] {
        assert_eq!(sessions(options), BTreeSet::from([own_session()]), "{options:?}");
    }
}

#[test]
fn ranks_of_a_job_that_is_nice_stay_in_the_caller_s_session() {
    // Where processor time is shared by session, niceness counts within one only.
    let mut command = Command::new("nice");
    command.args(["-n", "5"]).arg(weft()).args(["run", "--bind", "none", "-n", "2", "sh", "-c", SESSION]);
    assert_eq!(finish(&mut command).out, format!("{0}\n{0}\n", own_session()));
}

#[test]
fn a_rank_that_asks_at_the_terminal_itself_gets_an_error_and_does_not_stop() {
    let ask = "read x < /dev/tty || echo no-terminal-here";
    let ranks = processors().min(2);
    let seen = on_terminal(&format!("{} run --timeout 20 -n {ranks} sh -c '{ask}'", weft().display()), b"");
    assert_eq!(seen.matches("no-terminal-here").count(), ranks, "{seen}");
}

/// Two ranks on this host, and on two that an agent each serves (both are this one).
const PLACES: [&str; 2] = ["-n 2", "--hosts a,b --launch \"env AT={host}\""];

/// `weft run` of two ranks that say "up", their process id and the keys that reach them.
fn listening(place: &str) -> String {
    let keys = "trap \"echo int; exit 0\" INT; trap \"echo quit; exit 0\" QUIT; echo up: $$";
    format!("{} run --timeout 60 {place} sh -c '{keys}; while :; do read x < /dev/null; done'", weft().display())
}

#[test]
fn keys_that_end_reach_every_rank() {
    let keys = [(b"\x03", "int"), (b"\x1c", "quit")];
    for (place, (key, word)) in PLACES.into_iter().flat_map(|place| keys.map(|key| (place, key))) {
        let mut terminal = Terminal::run(&format!("{}; echo code $?", listening(place)));
        terminal.wait_for("up: ", 2);
        terminal.wait_for("\n", 2);
        terminal.type_in(key);
        let seen = terminal.finish();
        assert!(said(&seen, word) == 2 && seen.contains("code 0"), "{seen}");
    }
}

/// How many lines end with this word; the shell shows the whole command, too.
fn said(seen: &str, word: &str) -> usize {
    seen.lines().filter(|line| line.trim_end().ends_with(word)).count()
}

/// A job stopped by a key, with its ranks; the script goes on with `then` when a line is typed.
fn stopped(place: &str, then: &str) -> (Terminal, Vec<i32>) {
    let mut terminal = Terminal::run(&format!("{}; echo shell has it; read -r x; {then}", listening(place)));
    terminal.wait_for("up: ", 2);
    terminal.wait_for("\n", 2);
    let ranks = terminal.pids("up: ");
    terminal.type_in(b"\x1a");
    terminal.wait_for("shell has it", 1);
    ranks.iter().for_each(|rank| wait_for_state(*rank, |state| state == 'T'));
    (terminal, ranks)
}

#[test]
fn stopped_job_goes_on_in_the_foreground_and_hears_keys_there() {
    for place in PLACES {
        let (mut terminal, ranks) = stopped(place, "fg; echo code $?");
        terminal.type_in(b"\n");
        ranks.iter().for_each(|rank| wait_for_state(*rank, |state| state != 'T'));
        terminal.type_in(b"\x03");
        let seen = terminal.finish();
        assert!(said(&seen, "int") == 2 && seen.contains("code 0"), "{seen}");
    }
}

#[test]
fn stopped_job_goes_on_in_the_background_and_hears_none() {
    let (mut terminal, ranks) =
        stopped("-n 2", "trap 'echo shell heard it' INT; bg; read -r x; kill -QUIT $!; wait; echo code $?");
    terminal.type_in(b"\n");
    ranks.iter().for_each(|rank| wait_for_state(*rank, |state| state != 'T'));
    terminal.type_in(b"\x03");
    terminal.wait_for("shell heard it", 1);
    terminal.type_in(b"\n");
    let seen = terminal.finish();
    assert!(said(&seen, "int") == 0 && said(&seen, "quit") == 2, "{seen}");
}
