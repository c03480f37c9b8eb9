//! Whoever is killed with SIGKILL, at whatever moment: every process of the job ends on every host, one line names host
//! and cause, and no file is left.
//!
//! `WEFT_TEST_ROUNDS=1000` runs as many rounds; `WEFT_TEST_SEED=N` begins with the round of that seed.

use launcher::{Running, kill};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use weft_tests::namespaces::Namespaces;
use weft_tests::{build, tree};

#[allow(dead_code)]
#[path = "launcher/support.rs"]
mod launcher;

/// On a quiet machine it takes less than five seconds; only one that is stuck takes this long.
const STUCK: Duration = Duration::from_secs(60);
const ROUNDS: u64 = 100;

#[derive(Clone, Copy, Debug)]
enum Victim {
    Launcher,
    /// The keeper of the launch commands.
    Guard,
    Agent(usize),
    Keeper(usize),
    Rank(usize),
}

/// What happens in the round of a seed.
struct Round {
    victim: Victim,
    /// After the victim was there.
    delay: Duration,
}

impl Round {
    fn new(seed: u64) -> Self {
        // SplitMix64: neighbouring seeds have nothing in common.
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        };
        let host = random() as usize % 2;
        let victim = match random() % 5 {
            0 => Victim::Launcher,
            1 => Victim::Guard,
            2 => Victim::Agent(host),
            3 => Victim::Keeper(host),
            _ => Victim::Rank(host),
        };
        // Half of them early, while the job comes to be.
        let delay = if random() % 2 == 0 { random() % 5_000 } else { random() % 300_000 };
        Self { victim, delay: Duration::from_micros(delay) }
    }
}

impl Victim {
    /// Its process, once there is one.
    fn find(self, launcher: i32) -> Option<i32> {
        let child = |pid: i32, number: usize| children_of(pid).get(number).copied();
        let guard = || child(launcher, 0);
        let agent = |host| child(guard()?, host);
        // Before it is the agent, the process is the launch command, which has no children.
        let keeper = |host| child(agent(host)?, 0);
        match self {
            Self::Launcher => Some(launcher),
            Self::Guard => guard(),
            Self::Agent(host) => agent(host),
            Self::Keeper(host) => keeper(host),
            Self::Rank(host) => child(keeper(host)?, 0),
        }
    }

    /// Whether the line names it and its host.
    fn is_named_in(self, line: &str) -> bool {
        let host = |number: usize| line.contains(&Namespaces::pair().name(number + 1));
        line.starts_with("weft")
            && match self {
                Self::Launcher => true,
                // Its end is theirs, and they may be noticed first.
                Self::Guard => line.contains("launch commands") || host(0) || host(1),
                Self::Agent(number) | Self::Keeper(number) | Self::Rank(number) => host(number),
            }
    }
}

/// None where the process is gone or has just begun.
fn children_of(pid: i32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn files(directory: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| directory != Path::new("/dev/shm") || name.contains("weft")).collect()
}

fn play(seed: u64, program: &Path) {
    let Round { victim, delay } = Round::new(seed);
    println!("WEFT_TEST_SEED={seed}: {victim:?} is killed after {delay:?}");
    let hosts = Namespaces::pair();
    let directory = tempfile::tempdir().expect("a directory");
    let shared = files(Path::new("/dev/shm"));
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--bind", "none", "--launch", "ip netns exec {host}", "--hosts"]);
    command.arg(format!("{}:2,{}:2", hosts.name(1), hosts.name(2))).arg(program);
    command.env("WEFT_LAUNCH_TIMEOUT", "100").env("TMPDIR", directory.path());
    // Settings that Weft does not know it refuses.
    command.env_remove("WEFT_TEST_ROUNDS").env_remove("WEFT_TEST_SEED");
    let mut job = Running::start(command.stdin(Stdio::null()).stderr(Stdio::piped()));
    let start = Instant::now();
    let process = loop {
        if let Some(process) = victim.find(job.weft.id() as i32) {
            break process;
        }
        let ended = job.weft.try_wait().expect("our child");
        assert!(ended.is_none() && start.elapsed() < STUCK, "the job does not come to be: {ended:?}");
        std::thread::yield_now();
    };
    // Not to wait for something: the moment is what is tried out.
    std::thread::sleep(delay);
    kill(process, libc::SIGKILL);
    assert!(job.nothing_lives_within(STUCK), "seed {seed}: something of the job lives on");
    let mut said = String::new();
    std::io::Read::read_to_string(&mut job.weft.stderr.take().expect("piped"), &mut said).expect("text");
    assert_ne!(job.code(), 0, "seed {seed}");
    let named = said.lines().any(|line| victim.is_named_in(line));
    assert!(named || matches!(victim, Victim::Launcher), "seed {seed}: {victim:?} is not named:\n{said}");
    assert_eq!(files(directory.path()), BTreeSet::new(), "seed {seed}");
    let left: Vec<_> = files(Path::new("/dev/shm")).difference(&shared).cloned().collect();
    assert!(left.is_empty(), "seed {seed}: {left:?}");
}

#[test]
fn whoever_is_killed_at_any_moment_nothing_is_left_and_one_line_says_why() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let program = build::c_program(&tree().join("bin/mpicc"), "tests/c/mpi/hosts_endless.c");
    // Before there is a witness, which what looks after them would hold open.
    Namespaces::pair();
    let (seed, rounds) = (number("WEFT_TEST_SEED"), number("WEFT_TEST_ROUNDS"));
    let first = seed.unwrap_or_else(|| u64::from(std::process::id()) << 20);
    let rounds = rounds.unwrap_or(if seed.is_some() { 1 } else { ROUNDS });
    (first..first + rounds).for_each(|seed| play(seed, &program));
}

/// A control group of this process's with little memory, deleted with this value.
struct LittleMemory(PathBuf);

impl LittleMemory {
    fn new() -> Self {
        let old = Path::new("/sys/fs/cgroup/memory");
        let (root, limit) = match old.exists() {
            true => (old, "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup"), "memory.max"),
        };
        let group = root.join(format!("weft-test-{}", std::process::id()));
        std::fs::create_dir(&group).expect("root may make a control group");
        let group = Self(group);
        std::fs::write(group.0.join(limit), "134217728").expect("the group has a limit of its memory");
        group
    }
}

impl Drop for LittleMemory {
    fn drop(&mut self) {
        // Nothing of the job is left in it.
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn rank_that_the_kernel_kills_for_want_of_memory_is_named_so() {
    let group = LittleMemory::new();
    let rank = "if test $PMI_RANK = 1; then exec tail /dev/zero; fi; exec sleep 1000";
    let job = format!("echo $$ > {}/cgroup.procs; exec \"$0\" run --bind none -n 2 sh -c '{rank}'", group.0.display());
    let done = launcher::finish(Command::new("sh").args(["-c", &job]).arg(build::weft()));
    assert_eq!(done.code, 137, "{}", done.err);
    let line = done.err.lines().next().unwrap_or_default();
    assert!(line.starts_with("weft run: rank 1 (pid "), "{}", done.err);
    assert!(
        line.ends_with("was killed by the kernel (signal 9), because the memory of its control group ran out"),
        "{line}"
    );
}
