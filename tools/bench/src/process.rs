//! Starting programs and making sure that none outlives us. The one file of this crate with unsafe code.
//!
//! Every process that a job starts inherits a variable with a value of this run. Launchers put their ranks into
//! sessions of their own, daemonise, or die before their children, but they pass the environment on: so the
//! variable finds exactly the processes that are ours, whoever their parent is by now.

use anyhow::{Context, bail};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static JOBS: AtomicU64 = AtomicU64::new(0);

const MARK: &str = "MPIBENCH_JOB";
/// Names the file in which the measuring program repeats what is wrong: launchers drop what an aborting rank wrote
/// last.
const ERRORS: &str = "MPIBENCH_ERRORS";
/// Between asking a job to end and killing what is left of it.
const GRACE: Duration = Duration::from_secs(5);
/// How often a waiting run looks at the interrupt flag and the clock. Output and exit wake it at once.
const LOOK_MS: i32 = 200;

/// What became of a job.
#[derive(Debug)]
pub struct JobOutcome {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// What the measuring program itself said to be wrong.
    errors: String,
    /// From before the start to after the end of the launcher.
    pub seconds: f64,
}

impl JobOutcome {
    /// An error that says how the job ended, with the last lines of what it wrote to standard error.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.status.success() {
            return Ok(());
        }
        let how = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or(0)),
        };
        bail!("{how}{}", self.said())
    }

    fn said(&self) -> String {
        let text = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        // What the measuring program itself says comes before what launchers say about it.
        let own = self.errors.lines().chain(text.lines()).find(|l| l.contains(": error: "));
        let mut lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        lines.drain(..lines.len().saturating_sub(3));
        match own {
            Some(line) => format!(": {}", line.trim()),
            None if lines.is_empty() => String::new(),
            None => format!(": {}", lines.join(" | ")),
        }
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP end the run in order: jobs first, then temporary files, then us.
pub fn watch_for_interrupts() {
    extern "C" fn note(_: libc::c_int) {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: `note` only stores to an atomic, which is allowed in a signal handler.
        unsafe { libc::signal(signal, note as *const () as libc::sighandler_t) };
    }
}

/// An error when the user wants the run to end.
pub fn check_interrupt() -> anyhow::Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        bail!("interrupted")
    }
    Ok(())
}

/// The processors this process may run on.
pub fn allowed_cpus() -> Vec<usize> {
    weft_kernel::affinity().unwrap_or_default()
}

/// Makes `command` run on `cpus` only, and everything it starts.
pub fn confine(command: &mut Command, cpus: &[usize]) {
    let cpus = cpus.to_vec();
    // SAFETY: between fork and exec only one system call is made and nothing is allocated.
    unsafe { command.pre_exec(move || weft_kernel::set_affinity(&cpus)) };
}

/// Runs a compiler, or what else takes no longer than one.
///
/// # Errors
/// It cannot be run, takes too long, or fails.
pub fn compile(command: Command) -> anyhow::Result<()> {
    run(command, Duration::from_secs(120))?.check()
}

/// Runs `command` to its end. A job that outlasts `limit`, or that the user interrupts, is ended with all its
/// processes and is an error.
pub fn run(mut command: Command, limit: Duration) -> anyhow::Result<JobOutcome> {
    check_interrupt()?;
    let mark = format!("{}-{}", std::process::id(), JOBS.fetch_add(1, Ordering::Relaxed));
    let errors = tempfile::NamedTempFile::new().context("cannot make a temporary file")?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env(MARK, &mark).env(ERRORS, errors.path());
    // A group of its own: Ctrl-C on the terminal reaches us alone, and we end the job.
    command.process_group(0);
    // SAFETY: one system call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            Ok(())
        })
    };
    let program = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
    let finished = collect(&mut child, start + limit);
    if finished.is_err() {
        end_job(&mut child, &mark);
    }
    let (stdout, stderr) = finished?;
    let status = child.wait()?;
    let seconds = start.elapsed().as_secs_f64();
    // What outlives its launcher gets a moment to tidy up.
    let deadline = Instant::now() + GRACE;
    while kill_marked(&mark, 0) > 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_marked(&mark, libc::SIGKILL);
    let errors = std::fs::read_to_string(errors.path())?;
    Ok(JobOutcome { status, stdout, stderr, errors, seconds })
}

/// Reads both streams until they end.
fn collect(child: &mut Child, deadline: Instant) -> anyhow::Result<(String, String)> {
    let mut out = JobStream::new(child.stdout.take().expect("stdout is piped"));
    let mut err = JobStream::new(child.stderr.take().expect("stderr is piped"));
    while out.open || err.open {
        check_interrupt()?;
        if Instant::now() > deadline {
            bail!("it did not end in time and was killed");
        }
        let mut fds = [out.poll_fd(), err.poll_fd()];
        // SAFETY: `fds` is an array of two pollfd; closed streams carry descriptor -1, which poll passes over.
        unsafe { libc::poll(fds.as_mut_ptr(), 2, LOOK_MS) };
        out.read_if(fds[0].revents)?;
        err.read_if(fds[1].revents)?;
        // A daemon that kept our pipe must not hold us up: the launcher's end is the job's end.
        if fds[0].revents == 0 && fds[1].revents == 0 && child.try_wait()?.is_some() {
            break;
        }
    }
    Ok((out.text(), err.text()))
}

struct JobStream<R> {
    from: R,
    bytes: Vec<u8>,
    open: bool,
}

impl<R: Read + AsRawFd> JobStream<R> {
    fn new(from: R) -> Self {
        Self { from, bytes: Vec::new(), open: true }
    }

    fn poll_fd(&self) -> libc::pollfd {
        libc::pollfd { fd: if self.open { self.from.as_raw_fd() } else { -1 }, events: libc::POLLIN, revents: 0 }
    }

    fn read_if(&mut self, revents: i16) -> anyhow::Result<()> {
        if revents == 0 {
            return Ok(());
        }
        let mut part = [0; 4096];
        match self.from.read(&mut part)? {
            0 => self.open = false,
            n => self.bytes.extend_from_slice(&part[..n]),
        }
        Ok(())
    }

    fn text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// TERM to the launcher, which knows best how to clean up; then KILL to whatever is left of the job.
fn end_job(child: &mut Child, mark: &str) {
    // SAFETY: the child is ours and not yet waited for, so its number is still its own.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline && !matches!(child.try_wait(), Ok(Some(_))) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Twice: a process may fork between the listing and the signal.
    for _ in 0..2 {
        kill_marked(mark, libc::SIGKILL);
    }
    // Reaps it; after KILL this cannot take long.
    let _ = child.wait();
}

/// Sends `signal` to every process of this user that carries `mark`. Returns how many there were.
fn kill_marked(mark: &str, signal: i32) -> usize {
    let wanted = format!("{MARK}={mark}");
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<libc::pid_t>().ok());
    let ours = |pid: &libc::pid_t| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(|v| v == wanted.as_bytes())
    };
    let found: Vec<_> = pids.filter(ours).collect();
    for &pid in &found {
        // SAFETY: no memory is involved; the number was just seen to be a process of this job.
        unsafe { libc::kill(pid, signal) };
    }
    found.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_streams_and_the_exit_code_arrive() {
        let outcome = run(shell("echo out; echo err >&2; exit 3"), Duration::from_secs(60)).unwrap();
        assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("out\n", "err\n"));
        let e = outcome.check().unwrap_err().to_string();
        assert!(e.contains("exit code 3") && e.contains("err"), "{e}");
    }

    #[test]
    fn an_error_that_the_launcher_dropped_is_still_named() {
        let outcome =
            run(shell("echo 'x: error: lost' >> $MPIBENCH_ERRORS; echo noise; exit 3"), Duration::from_secs(60));
        assert_eq!(outcome.unwrap().check().unwrap_err().to_string(), "exit code 3: x: error: lost");
    }

    #[test]
    fn output_larger_than_a_pipe_does_not_block() {
        let outcome = run(shell("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2"), Duration::from_secs(60));
        let outcome = outcome.unwrap();
        assert_eq!((outcome.stdout.len(), outcome.stderr.len()), (1_000_000, 1_000_000));
    }

    #[test]
    fn a_job_that_hangs_is_ended_with_its_detached_children() {
        let next = JOBS.load(Ordering::Relaxed);
        let e = run(shell("setsid sleep 1000 & trap '' TERM; sleep 1000 & wait; wait"), Duration::from_millis(100));
        assert!(e.unwrap_err().to_string().contains("in time"));
        // Other tests start jobs too, so the mark of this one is one of the next few.
        for job in next..JOBS.load(Ordering::Relaxed) {
            let mark = format!("{}-{job}", std::process::id());
            let left = || kill_marked(&mark, 0);
            // Killed processes vanish from the list as soon as the kernel gets to it.
            while left() > 0 && job == next {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let e = run(Command::new("/nonexistent/mpiexec"), Duration::from_secs(1)).unwrap_err();
        assert!(format!("{e:#}").contains("/nonexistent/mpiexec"), "{e:#}");
    }

    #[test]
    fn a_confined_program_sees_the_cpus_it_was_given() {
        let cpu = allowed_cpus()[0];
        let mut command = shell("grep Cpus_allowed_list /proc/self/status");
        confine(&mut command, &[cpu]);
        let outcome = run(command, Duration::from_secs(60)).unwrap();
        assert_eq!(outcome.stdout.split_whitespace().last(), Some(cpu.to_string().as_str()));
    }
}
