//! How our MPI programs find their job: under our launcher, under MPICH's and Intel MPI's, alone, and where something
//! is in the way; what does not disturb them; and what `weft ps` shows of them.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use weft_tests::peers::Peer;
use weft_tests::{build, tree};

fn member() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build::c_program(&tree().join("bin/mpicc"), "tests/c/join/member.c"))
}

/// A program with a second interface beside MPI, and where its library is.
fn together(name: &str) -> (PathBuf, PathBuf) {
    let program = build::c_program(&tree().join("bin/mpicc"), &format!("tests/c/together/{name}.c"));
    (program, build::example_library("native"))
}

fn weft(arguments: &str) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(arguments.split_whitespace()).stdin(Stdio::null());
    command
}

/// Input that nobody writes, and that does not end: where it ends at once MPICH's launcher is now and then killed by a
/// SIGPIPE of its own, whatever it starts (on a busy machine 61 of 953 runs of `true`).
fn endless_input() -> Stdio {
    static PIPE: OnceLock<(PipeReader, PipeWriter)> = OnceLock::new();
    let (reader, _writer) = PIPE.get_or_init(|| std::io::pipe().expect("a pipe"));
    reader.try_clone().expect("another descriptor").into()
}

/// The launchers that speak PMI-1, told to start `ranks`.
fn launchers(ranks: usize) -> [(&'static str, Command); 3] {
    let foreign = |peer: Peer, name| {
        let mut command = Command::new(peer.command(name));
        command.args(["-n", &ranks.to_string()]).stdin(endless_input());
        command
    };
    [
        ("weft run", weft(&format!("run --bind none --timeout 60 -n {ranks}"))),
        ("MPICH", foreign(Peer::Mpich, "mpiexec")),
        ("Intel MPI", foreign(Peer::IntelMpi, "mpiexec.hydra")),
    ]
}

struct Finished {
    code: i32,
    out: String,
    err: String,
}

fn finish(command: &mut Command) -> Finished {
    let Output { status, stdout, stderr } = command.output().expect("the launcher can be started");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Finished { code: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn every_launcher_makes_one_job_of_its_ranks() {
    for ranks in [1usize, 2, 4] {
        let sum = ranks * (ranks + 1) / 2;
        let expected: Vec<String> = (0..ranks).map(|rank| format!("rank {rank} of {ranks} sum {sum}")).collect();
        for (name, mut launcher) in launchers(ranks) {
            let done = finish(launcher.arg(member()));
            assert_eq!(
                (done.code, sorted(&done.out)),
                (0, expected.iter().map(String::as_str).collect()),
                "{name}: {}",
                done.err
            );
        }
    }
}

#[test]
fn alone_is_a_job_of_one() {
    let done = finish(&mut Command::new(member()));
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "rank 0 of 1 sum 1\n", ""));
}

#[test]
fn what_a_rank_starts_is_a_job_of_its_own() {
    for (name, mut launcher) in launchers(2) {
        let done = finish(launcher.arg(member()).arg("child"));
        let expected = vec!["rank 0 of 1 sum 1", "rank 0 of 2 sum 3", "rank 1 of 2 sum 3"];
        assert_eq!((done.code, sorted(&done.out)), (0, expected), "{name}: {}", done.err);
    }
}

#[test]
fn abort_ends_the_job_with_its_code() {
    for (name, mut launcher) in launchers(3) {
        let done = finish(launcher.arg(member()).arg("abort"));
        assert_eq!(done.code, 7, "{name}: {}", done.err);
        assert!(done.err.contains("rank 2: MPI_Abort was called with code 7"), "{name}: {}", done.err);
    }
}

#[test]
fn a_rank_that_ends_without_finalize_is_named() {
    let done = finish(weft("run --bind none -n 3").arg(member()).arg("leave"));
    assert_eq!(done.code, 1, "{}", done.err);
    let line = done.err.lines().next().unwrap_or_default();
    assert!(line.starts_with("weft run: rank 2 (pid") && line.contains("without MPI_Finalize"), "{}", done.err);
}

/// A job that runs while the test goes on, with its ranks.
struct Running {
    launcher: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut launcher = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a launcher");
        let out = BufReader::new(launcher.stdout.take().expect("piped"));
        Self { launcher, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    fn ranks(&mut self, count: usize) -> Vec<Process> {
        (0..count).map(|_| Process::of(self.line().parse().expect("a process id"))).collect()
    }

    /// Kills the launcher and waits for it.
    fn kill(mut self) {
        self.launcher.kill().expect("it lives");
        self.launcher.wait().expect("it was started");
    }
}

/// A process of a job, which cannot be mistaken for a later one of the same number.
struct Process {
    handle: OwnedFd,
}

impl Process {
    fn of(pid: i32) -> Self {
        // SAFETY: no memory is passed; the descriptor answered is new and ours.
        let handle = unsafe {
            let fd = libc::syscall(libc::SYS_pidfd_open, libc::c_long::from(pid), 0 as libc::c_long);
            assert!(fd >= 0, "no process {pid}");
            OwnedFd::from_raw_fd(fd as i32)
        };
        Self { handle }
    }

    fn kill(&self) {
        let (fd, signal) = (libc::c_long::from(self.handle.as_raw_fd()), libc::c_long::from(libc::SIGKILL));
        // SAFETY: no memory is passed.
        let result =
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, 0 as libc::c_long, 0 as libc::c_long) };
        assert_eq!(result, 0, "the process lives");
    }

    /// Waits for its end.
    fn assert_ends(&self) {
        let mut poll = libc::pollfd { fd: self.handle.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry.
        assert_eq!(unsafe { libc::poll(&mut poll, 1, 30_000) }, 1, "the process still lives after 30 s");
    }
}

#[test]
fn a_killed_rank_ends_the_others_under_every_launcher() {
    for (_, mut launcher) in launchers(3) {
        let mut job = Running::start(launcher.arg(member()).arg("pid"));
        let ranks = job.ranks(3);
        ranks[1].kill();
        ranks.iter().for_each(Process::assert_ends);
        assert!(!job.launcher.wait().expect("it was started").success());
    }
}

#[test]
fn a_killed_launcher_leaves_no_rank() {
    for (_, mut launcher) in launchers(3) {
        let mut job = Running::start(launcher.arg(member()).arg("pid"));
        let ranks = job.ranks(3);
        job.kill();
        ranks.iter().for_each(Process::assert_ends);
    }
}

#[test]
fn too_little_of_something_is_one_line() {
    let cases = [
        ("ulimit -v 60000", "cannot create shared memory of"),
        ("ulimit -f 16", "files may have"),
        ("ulimit -n 24", "need"),
    ];
    for (limit, words) in cases {
        let script =
            format!("{limit}; exec {} run --bind none -n 4 {}", tree().join("bin/weft").display(), member().display());
        let done = finish(Command::new("bash").args(["-c", &script]));
        assert_eq!((done.code, done.out.as_str(), done.err.lines().count()), (1, "", 1), "{limit}: {}", done.err);
        assert!(done.err.starts_with("weft run: ") && done.err.contains(words), "{limit}: {}", done.err);
    }
    let script = format!("ulimit -v 60000; exec {}", member().display());
    let done = finish(Command::new("bash").args(["-c", &script]));
    assert_eq!((done.out.as_str(), done.err.lines().count()), ("", 1), "{}", done.err);
    assert!(done.code != 0 && done.err.contains("cannot create shared memory"), "{}", done.err);
}

#[test]
fn a_closed_descriptor_is_an_error_and_not_many_jobs_of_one() {
    let script = format!("eval \"exec {} $WEFT_SEGMENT>&-\"", member().display());
    let done = finish(weft("run --bind none -n 2").args(["bash", "-c", &script]));
    assert_ne!(done.code, 0, "{}", done.out);
    assert!(done.err.contains("of WEFT_SEGMENT cannot be used: it is not open"), "{}", done.err);
}

#[test]
fn a_launcher_without_pmi_1_is_refused_by_name() {
    let done = finish(Command::new(member()).env("OMPI_COMM_WORLD_SIZE", "2"));
    assert_eq!((done.out.as_str(), done.err.lines().count()), ("", 1), "{}", done.err);
    assert!(
        done.code != 0 && done.err.contains("Open MPI's mpirun without PMIx (OMPI_COMM_WORLD_SIZE=2)"),
        "{}",
        done.err
    );
}

#[test]
fn a_wrong_setting_is_said_once_and_nothing_starts() {
    let (name, value) = ("WEFT_EAGER_BYTES", "many");
    let done = finish(weft("run --bind none -n 4").arg(member()).env(name, value));
    assert_eq!((done.code, done.out.as_str(), done.err.lines().count()), (2, "", 1), "{}", done.err);
    assert!(done.err.contains(name) && done.err.contains(value), "{}", done.err);
    let alone = finish(Command::new(member()).env(name, value));
    assert!(alone.code != 0 && alone.out.is_empty() && alone.err.contains(name), "{}", alone.err);
}

/// As a site may set it in a module file.
const STRANGER: (&str, &str) = ("WEFT_SPIN_ROOT", "/opt/weft");

#[test]
fn an_unknown_variable_is_told_once_and_the_program_goes_on() {
    let (name, value) = STRANGER;
    for (launcher, mut command) in launchers(4) {
        let done = finish(command.arg(member()).env(name, value));
        assert_eq!((done.code, done.out.lines().count()), (0, 4), "{launcher}: {}{}", done.out, done.err);
        assert_eq!(done.err.matches(name).count(), 1, "{launcher}: {}", done.err);
        assert!(!done.err.contains("nearest"), "{launcher}: a third of the name differs: {}", done.err);
    }
    let alone = finish(Command::new(member()).env(name, value));
    assert_eq!((alone.code, alone.err.matches(name).count()), (0, 1), "{}", alone.err);
    // What a rank starts is a job of its own, but the same user's at the same time.
    let below = finish(
        weft("run --bind none -n 2").args(["sh", "-c", &format!("{0}; {0}", member().display())]).env(name, value),
    );
    assert_eq!(below.err.matches(name).count(), 1, "{}", below.err);
}

#[test]
fn the_socket_library_tells_no_process_of_an_unknown_variable() {
    let (name, value) = STRANGER;
    let done = finish(weft("sock").args(["sh", "-c", "sh -c 'cat /dev/null; true'; cat /dev/null"]).env(name, value));
    assert_eq!((done.code, done.err.lines().count()), (0, 1), "{}", done.err);
    assert!(done.err.starts_with("weft sock: warning: unknown setting WEFT_SPIN_ROOT"), "{}", done.err);
}

#[test]
fn an_unknown_variable_is_refused_where_that_is_asked_for() {
    let (name, value) = STRANGER;
    for arguments in ["run --strict --bind none -n 2", "sock --strict"] {
        let done = finish(weft(arguments).arg(member()).env(name, value));
        assert_eq!((done.code, done.out.as_str(), done.err.lines().count()), (2, "", 1), "{}", done.err);
        assert!(done.err.contains(name), "{}", done.err);
        let done = finish(weft(arguments).arg("true").env("WEFT_SPIN_US", "5"));
        assert_eq!((done.code, done.err.as_str()), (0, ""));
    }
}

#[test]
fn a_wrong_setting_is_said_by_one_rank_under_launchers_that_do_not_know_it() {
    for (name, mut launcher) in launchers(4) {
        let done = finish(launcher.arg(member()).env("WEFT_SPIN_US", "many"));
        assert_ne!(done.code, 0, "{name}");
        let said = done.out.matches("WEFT_SPIN_US").count() + done.err.matches("WEFT_SPIN_US").count();
        assert_eq!(said, 1, "{name}: {}{}", done.out, done.err);
    }
}

#[test]
fn a_setting_that_is_wrong_for_a_later_rank_is_said_by_it() {
    let script = format!("[ $PMI_RANK = 0 ] || export WEFT_SPIN_US=many; exec {}", member().display());
    for (name, mut launcher) in launchers(2) {
        let done = finish(launcher.args(["sh", "-c", &script]));
        assert_ne!(done.code, 0, "{name}");
        assert_eq!(done.err.matches("WEFT_SPIN_US").count(), 1, "{name}: {}", done.err);
    }
}

#[test]
fn forked_children_that_end_do_not_disturb_their_rank() {
    let program = build::c_program(&tree().join("bin/mpicc"), "tests/c/join/forked.c");
    let expected: Vec<String> = (0..3).map(|rank| format!("rank {rank} of 3 goes on")).collect();
    for (name, mut launcher) in launchers(3) {
        let done = finish(launcher.arg(&program));
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{name}: {}", done.out);
        assert_eq!(sorted(&done.out), expected, "{name}");
    }
    let alone = finish(&mut Command::new(&program));
    assert_eq!((alone.code, alone.out.as_str(), alone.err.as_str()), (0, "rank 0 of 1 goes on\n", ""));
}

/// Each rank has two children that end by `exit` and by `return`.
#[test]
fn the_end_of_the_interface_in_a_forked_child_is_said_and_ends_nothing() {
    let program = build::c_program(&tree().join("bin/mpicc"), "tests/c/join/forked.c");
    let expected: Vec<String> = (0..3).map(|rank| format!("rank {rank} of 3 goes on")).collect();
    for (name, mut launcher) in launchers(3) {
        let done = finish(launcher.arg(&program).arg("finalize"));
        assert_eq!(done.code, 0, "{name}: {}{}", done.out, done.err);
        assert_eq!(sorted(&done.out), expected, "{name}");
        for rank in 0..3 {
            let said = format!("weft: rank {rank}: MPI_Finalize was called in process ");
            assert_eq!(done.err.matches(&said).count(), 2, "{name}: {}", done.err);
        }
        assert_eq!(done.err.lines().count(), 6, "{name}: {}", done.err);
    }
}

#[test]
fn the_launcher_follows_its_settings_and_flags_win() {
    let tagged = finish(weft("run --bind none -n 1").arg(member()).env("WEFT_TAG_OUTPUT", "on"));
    assert_eq!((tagged.code, tagged.out.as_str()), (0, "[0] rank 0 of 1 sum 1\n"), "{}", tagged.err);
    let late =
        |flag| finish(weft(&format!("run --bind none -n 2 {flag}")).arg(member()).arg("wait").env("WEFT_TIMEOUT", "1"));
    assert_eq!(late("").code, 124);
    let early = late("--timeout 200ms");
    assert!(early.code == 124 && early.err.contains("0.2 s"), "{}", early.err);
}

#[test]
fn at_the_time_limit_it_is_told_what_each_rank_does() {
    let mut command = weft("run --bind none --timeout 4s -n 3");
    let done = finish(command.arg(member()).arg("wait"));
    assert_eq!(done.code, 124, "{}", done.err);
    let lines: Vec<&str> = done.err.lines().collect();
    let begins = [
        "weft run: ranks 0,2: blocked in MPI_Barrier, MPI_COMM_WORLD for up to ",
        "weft run: rank 1: blocked in MPI_Recv from rank 0, tag 7, MPI_COMM_WORLD for ",
        "weft run: the job took longer than the time limit of 4 s",
    ];
    let fits = begins.iter().zip(&lines).all(|(begin, line)| line.starts_with(begin));
    assert!(fits && lines.len() == 4, "{}", done.err);
}

/// A busy machine may take its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// What `weft ps` says of the job started by this launcher, once `holds` is true of it.
fn shown(job: &Running, options: &str, holds: impl Fn(&str) -> bool) -> String {
    let name = format!("job {}-", job.launcher.id());
    let given_up = Instant::now() + PATIENCE;
    while Instant::now() < given_up {
        let done = finish(weft("ps").args(options.split_whitespace()));
        assert_eq!(done.code, 0, "{}", done.err);
        let ours = done.out.split("\n\n").find(|text| text.trim_start().starts_with(&name)).unwrap_or_default();
        if holds(ours) {
            return ours.to_owned();
        }
    }
    panic!("weft ps does not come to show it");
}

#[test]
fn a_blocked_rank_is_shown_with_call_peer_and_tag() {
    let mut job = Running::start(weft("run --bind none --timeout 60 -n 3").arg(member()).arg("wait"));
    let text = shown(&job, "", |text| {
        // On their way there the ranks may be seen blocked in what the start or the first barrier does.
        text.matches("blocked in MPI_Barrier").count() == 2 && text.contains("blocked in MPI_Recv")
    });
    let receives = text.lines().find(|line| line.contains("MPI_Recv")).expect("a rank receives");
    assert!(receives.trim_start().starts_with("1 "), "{text}");
    assert!(receives.contains("blocked in MPI_Recv from rank 0, tag 7, MPI_COMM_WORLD for "), "{text}");
    assert_eq!(text.matches("blocked in MPI_Barrier, MPI_COMM_WORLD").count(), 2, "{text}");
    job.line();
    job.kill();
}

#[test]
fn a_second_interface_is_of_the_job_of_whoever_has_started_the_process() {
    let (program, native) = together("thin");
    for (launcher, mut command) in launchers(3) {
        let done = finish(command.arg(&program).env("NATIVE", &native));
        assert_eq!((done.code, done.out.as_str()), (0, "ok\n"), "{launcher}: {}", done.err);
    }
}

#[test]
fn a_rank_that_is_blocked_in_its_second_interface_is_shown_so() {
    let (program, native) = together("lost");
    let job = Running::start(weft("run --bind none --timeout 60 -n 3").arg(program).env("NATIVE", native));
    let words = "blocked in native_receive from rank 0, tag 2 for ";
    let text = shown(&job, "", |text| text.matches(words).count() == 3);
    assert!(!text.contains("MPI_COMM_WORLD"), "{text}");
    job.kill();
}

#[test]
fn ranks_that_have_closed_descriptors_which_they_do_not_know_are_shown_as_they_are() {
    let job = Running::start(weft("run --bind none --timeout 60 -n 3").arg(member()).arg("closed"));
    let text = shown(&job, "", |text| text.contains("blocked in MPI_Recv"));
    assert!(!text.contains("gone"), "{text}");
    job.kill();
}

#[test]
fn many_ranks_are_shown_together() {
    let job = Running::start(weft("run --bind none --timeout 60 -n 20").arg(member()).arg("wait"));
    let text = shown(&job, "", |text| text.contains("blocked in MPI_Barrier") && text.contains("19  0,2-19"));
    assert!(text.lines().count() < 8, "{text}");
    job.kill();
}

#[test]
fn a_page_that_is_off_is_not_shown() {
    let job =
        Running::start(weft("run --bind none --timeout 60 -n 2").arg(member()).arg("wait").env("WEFT_STATUS", "off"));
    let launcher = job.launcher.id();
    let given_up = Instant::now() + PATIENCE;
    while Instant::now() < given_up {
        let done = finish(&mut weft("ps"));
        // Without pages the job's name is not known either.
        if done.out.contains("shows no status page (WEFT_STATUS=off, or another version of Weft)") {
            assert!(!done.out.contains(&format!("job {launcher}-")), "{}", done.out);
            return job.kill();
        }
    }
    panic!("weft ps does not come to show it");
}
