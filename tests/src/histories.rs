//! Jobs whose members write what they have delivered (`weft-group`'s example `history`), and what must be true of that.

use crate::{build, signal, tree};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// A job of that program.
pub fn history(arguments: &[&str], messages: usize, bytes: usize, folder: &Path) -> Command {
    let mut command = Command::new(tree().join("bin/weft"));
    command.args(["run", "--timeout", "60"]).args(arguments).arg(build::example("history"));
    command.args([messages.to_string(), bytes.to_string()]).arg(folder).stdin(Stdio::null());
    command
}

/// Of each process that came to its end what it has delivered: place, origin, and which of that.
pub fn histories(folder: &Path) -> Vec<Vec<[u64; 3]>> {
    let files = fs::read_dir(folder).expect("a folder").flatten().map(|entry| fs::read_to_string(entry.path()));
    let line = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        <[u64; 3]>::try_from(numbers).expect("three numbers")
    };
    let whole = files.map(|text| text.expect("text")).filter_map(|text| Some(text.strip_suffix("end\n")?.to_owned()));
    whole.map(|text| text.lines().map(line).collect()).collect()
}

/// All that two of them have both seen is the same; nothing is missing between, and nothing is there twice.
pub fn assert_one_order(histories: &[Vec<[u64; 3]>], what: &str) {
    for history in histories {
        assert!(history.windows(2).all(|two| two[1][0] == two[0][0] + 1), "{what}: places follow on each other");
        let messages: BTreeSet<_> = history.iter().map(|[_, origin, number]| (origin, number)).collect();
        assert_eq!(messages.len(), history.len(), "{what}: each once");
        let first = histories[0].first().map_or(0, |first| first[0]).max(history.first().map_or(0, |first| first[0]));
        let tail = |history: &[[u64; 3]]| history.iter().filter(|line| line[0] >= first).copied().collect::<Vec<_>>();
        assert_eq!(tail(history), tail(&histories[0]), "{what}: the same order");
    }
}

/// SplitMix64: neighbouring seeds have nothing in common.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Starts a job of members that go on without each other; the processes, once all are members.
pub fn start(arguments: &[&str], ranks: usize, messages: usize, bytes: usize, folder: &Path) -> (Child, Vec<i32>) {
    let mut command = history(&[&["--keep-going"], arguments].concat(), messages, bytes, folder);
    let mut job = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weft can be started");
    let lines = BufReader::new(job.stdout.take().expect("a pipe")).lines();
    let members = lines.take(ranks).map(|line| line.expect("text").parse().expect("a process")).collect();
    (job, members)
}

/// Jobs of which members are killed.
pub struct KillRounds<'a> {
    /// What `weft run` is told of where they run.
    pub arguments: &'a [&'a str],
    pub ranks: usize,
    /// Of each member.
    pub messages: usize,
    /// One of these for each job.
    pub lengths: &'a [usize],
}

impl KillRounds<'_> {
    /// So many rounds, or as many as `WEFT_TEST_ROUNDS` says, from the seed `WEFT_TEST_SEED` on.
    pub fn run(&self, rounds: u64) {
        let number = |name| std::env::var(name).ok().map(|text: String| text.parse::<u64>().expect("a number"));
        let first = number("WEFT_TEST_SEED").unwrap_or(1);
        (first..first + number("WEFT_TEST_ROUNDS").unwrap_or(rounds)).for_each(|seed| self.round(seed));
    }

    /// Kills some of the members while all send; the others come to their end.
    fn round(&self, seed: u64) {
        let what = format!("seed {seed}");
        let mut state = seed;
        let folder = TempDir::new().expect("there is room for a folder");
        let bytes = self.lengths[random(&mut state) as usize % self.lengths.len()];
        let (job, mut members) = start(self.arguments, self.ranks, self.messages, bytes, folder.path());
        let victims = 1 + random(&mut state) as usize % 3;
        for _ in 0..victims {
            thread::sleep(Duration::from_micros(random(&mut state) % 60_000));
            let victim = members.swap_remove(random(&mut state) as usize % members.len());
            // Who has come to its end before has a history like the others.
            signal::try_send(victim, 9);
        }
        let output = job.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("panicked") && !text.contains("taking longer"), "{what}: {text}");
        let histories = histories(folder.path());
        assert!(
            histories.len() >= members.len(),
            "{what}: {} of {} ended well: {text}",
            histories.len(),
            members.len()
        );
        assert_one_order(&histories, &what);
    }
}
