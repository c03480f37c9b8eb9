//! `weft tune`: what this machine is good at. Pairs of ranks send messages of several lengths each way that there is,
//! by turns; of the turns the shortest time counts, since whatever disturbs adds to it. From the times follows what is
//! best ([`Best::of`]).

mod pair;

use crate::format::{Unit, figure, size};
use crate::process::allowed_cpus;
use crate::{progress, table};
use anyhow::{Context, ensure};
pub use pair::{TunePairArgs, run as run_tune_pair};
use std::collections::BTreeMap;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};
use weft_fabric::selector::machine::{Best, PACKETS, Times};

/// Lengths of the messages.
const LENGTHS: [usize; 9] = [2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20];
/// Lengths of copies inside one process: as they fit into each cache, and into none.
const COPIES: [usize; 4] = [16 << 10, 256 << 10, 4 << 20, 64 << 20];
/// How often each way has its turn.
const TURNS: u32 = 5;
const LEAST: Duration = Duration::from_millis(5);

/// One way to send messages, as a job of two ranks takes it.
struct Trial {
    name: String,
    environment: Vec<(&'static str, String)>,
    shown: bool,
    lengths: Vec<usize>,
    /// Where the second rank runs, if not on the core beside.
    far: Option<usize>,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Tuned {
    pub best: Best,
    /// What it is, and nanoseconds.
    pub figures: Vec<(String, u64)>,
    /// Of their time, what ranks did not get of their processors.
    pub busy_percent: u32,
}

/// Measures. It takes some seconds.
///
/// # Errors
/// There is one processor only, or no pair of ranks could be started.
pub fn tune() -> anyhow::Result<Tuned> {
    let processors = allowed_cpus();
    ensure!(processors.len() >= 2, "two processors are needed, and this process may use {}", processors.len());
    let trials = trials(&processors);
    let bar = progress::bar(u64::from(TURNS) * trials.len() as u64);
    let (mut least, mut usage) = (BTreeMap::new(), Usage::default());
    for turn in 0..TURNS {
        for trial in &trials {
            bar.set_message(format!("turn {}: {}", turn + 1, trial.name));
            take_turn(trial, &mut least, &mut usage)?;
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    own_figures(&mut least)?;
    let best = Best::of(&LENGTHS.map(|length| times(&least, length)));
    Ok(Tuned { best, figures: least.into_iter().collect(), busy_percent: usage.lost_percent() })
}

fn take_turn(trial: &Trial, least: &mut BTreeMap<String, u64>, usage: &mut Usage) -> anyhow::Result<()> {
    let measured = trial.run();
    // Copies may be forbidden; what goes without them must work.
    let Some(said) = (if trial.may_fail() { measured.ok() } else { Some(measured?) }) else { return Ok(()) };
    for line in said.lines() {
        let (what, rest) = line.split_once(' ').with_context(|| format!("{}: '{line}' is no figure", trial.name))?;
        if what == pair::USED {
            usage.add(rest).with_context(|| format!("{}: '{line}' is no time", trial.name))?;
            continue;
        }
        let (length, ns): (usize, u64) = (what.parse()?, rest.parse()?);
        let figure = least.entry(format!("{}/{length}", trial.name)).or_insert(ns);
        *figure = ns.min(*figure);
    }
    Ok(())
}

fn trials(processors: &[usize]) -> Vec<Trial> {
    let usual = Best::default();
    let machine = |best: Best| ("WEFT_MACHINE", best.to_string());
    let setting = |name, value: &str| (name, value.to_owned());
    let trial = |name: &str, shown, environment| Trial {
        name: name.into(),
        environment,
        shown,
        lengths: LENGTHS.to_vec(),
        far: None,
    };
    let streams = setting("WEFT_SINGLE_COPY", "off");
    let rings = PACKETS.iter().map(|packet| Trial {
        lengths: LENGTHS.into_iter().filter(|length| *packet < 2 * length || *packet == PACKETS[0]).collect(),
        ..trial(&format!("ring/{packet}"), false, vec![streams.clone(), machine(usual.with_packets(*packet))])
    });
    let asked = setting("WEFT_EAGER_BYTES", "48");
    let copies = vec![setting("WEFT_SINGLE_COPY", "on"), setting("WEFT_SINGLE_COPY_BYTES", "0"), asked.clone()];
    let alone = vec![asked.clone(), machine(usual.with_shown(usize::MAX))];
    let shared = vec![asked, machine(usual.with_shown(0))];
    let others = [trial("copied", false, copies), trial("shown", true, alone), trial("shared", true, shared)];
    let line = |name, far| Trial { lengths: vec![8], far, ..trial(name, false, vec![streams.clone()]) };
    let lines = [line("near", None), line("far", processors.last().copied())];
    rings.chain(others).chain(lines).collect()
}

impl Trial {
    fn may_fail(&self) -> bool {
        matches!(&*self.name, "copied" | "shown" | "shared")
    }

    /// What the ranks print: nanoseconds one way by length, and what each had of its processor.
    fn run(&self) -> anyhow::Result<String> {
        let weft = std::env::current_exe().context("this program is not found")?;
        let mut command = Command::new(&weft);
        command.args(["run", "--bind", "core", "-n", "2"]).arg(&weft).args(["bench", "tune-pair"]);
        command.args(self.shown.then_some("--shown"));
        if let Some(far) = self.far {
            command.arg("--far").arg(far.to_string());
        }
        command.arg("--milliseconds").arg(LEAST.as_millis().to_string());
        command.args(self.lengths.iter().map(usize::to_string));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"WEFT_")) {
            command.env_remove(name);
        }
        let output = command.envs(self.environment.iter().cloned()).output().context("weft run does not start")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {}", self.name, said.lines().next().unwrap_or("it failed"));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// What ranks had of their processors while they measured, nanoseconds.
#[derive(Default)]
struct Usage {
    had: u64,
    wall: u64,
}

impl Usage {
    fn add(&mut self, line: &str) -> Option<()> {
        let (had, wall) = line.split_once(' ')?;
        (self.had, self.wall) = (self.had + had.parse::<u64>().ok()?, self.wall + wall.parse::<u64>().ok()?);
        Some(())
    }

    /// They never sleep for long, so what they did not get others had.
    fn lost_percent(&self) -> u32 {
        let lost = self.wall.saturating_sub(self.had);
        (100 * lost).checked_div(self.wall).map_or(100, |percent| percent as u32)
    }
}

/// What this process can measure alone.
fn own_figures(figures: &mut BTreeMap<String, u64>) -> anyhow::Result<()> {
    for bytes in COPIES {
        figures.insert(format!("copy/{bytes}"), copy_ns(bytes));
    }
    figures.insert("system call".into(), pair::system_call_ns());
    figures.insert("wake-up".into(), wake_ns()?);
    Ok(())
}

/// The shortest of some times, nanoseconds.
fn least_of(tries: u32, mut time: impl FnMut() -> Duration) -> u64 {
    (0..tries).map(|_| time().as_nanos() as u64).min().unwrap_or_default()
}

fn copy_ns(bytes: usize) -> u64 {
    let (from, mut into) = (vec![1u8; bytes], vec![0u8; bytes]);
    least_of(if bytes > 8 << 20 { 5 } else { 200 }, || {
        let began = Instant::now();
        into.copy_from_slice(&from);
        std::hint::black_box(&mut into);
        began.elapsed()
    })
}

/// Half the way of a byte to another thread that sleeps, and back.
fn wake_ns() -> anyhow::Result<u64> {
    let ((mut here, mut to_us), (mut there, mut to_them)) = (std::io::pipe()?, std::io::pipe()?);
    let pass_on = |from: &mut PipeReader, to: &mut PipeWriter| {
        let mut byte = [0];
        while from.read(&mut byte).is_ok_and(|bytes| bytes == 1) && to.write_all(&byte).is_ok() {}
    };
    std::thread::scope(|scope| {
        scope.spawn(move || pass_on(&mut there, &mut to_us));
        let ns = least_of(50, || {
            let (began, mut byte) = (Instant::now(), [0]);
            let _ = to_them.write_all(&byte).and_then(|()| here.read_exact(&mut byte));
            began.elapsed()
        });
        // Ends the other thread.
        drop(to_them);
        Ok(ns / 2)
    })
}

fn times(figures: &BTreeMap<String, u64>, length: usize) -> Times {
    let of = |name: &str| figures.get(&format!("{name}/{length}")).copied();
    Times {
        length,
        ring: PACKETS.map(|packet| of(&format!("ring/{packet}"))),
        copied: of("copied"),
        shown: of("shown"),
        shared: of("shared"),
    }
}

/// Two tables for people: messages by length, one way, and all else.
pub fn shown(figures: &[(String, u64)]) -> String {
    let ns = |ns: &u64| figure(*ns as f64 * 1e-9, Unit::Seconds);
    let find = |name: &str| figures.iter().find(|(known, _)| known == name).map_or("-".into(), |(_, found)| ns(found));
    let ways = PACKETS.iter().map(|packet| format!("ring/{packet}"));
    let ways: Vec<String> = ways.chain(["copied", "shown", "shared"].map(str::to_owned)).collect();
    let heads = PACKETS.iter().map(|packet| format!("packets of {}", size(*packet as u64)));
    let heads = ["one way".to_owned()].into_iter().chain(heads);
    let mut rows = vec![heads.chain(["copied", "shown", "shown to both"].map(str::to_owned)).collect::<Vec<_>>()];
    for length in LENGTHS {
        let found = ways.iter().map(|way| find(&format!("{way}/{length}")));
        rows.push([size(length as u64)].into_iter().chain(found).collect());
    }
    let is_other = |name: &str| !ways.iter().any(|way| name.starts_with(&format!("{way}/")));
    let named = |name: &str| match name.split_once('/') {
        Some((name, bytes)) => format!("{name}, {}", bytes.parse().map_or(bytes.to_owned(), size)),
        None => name.to_owned(),
    };
    let others = figures.iter().filter(|(name, _)| is_other(name)).map(|(name, found)| vec![named(name), ns(found)]);
    let others: Vec<Vec<String>> = [vec!["what".to_owned(), "least".to_owned()]].into_iter().chain(others).collect();
    format!("{}\n{}", table::aligned(&rows), table::aligned(&others))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_use_is_known() {
        let mut usage = Usage::default();
        assert_eq!(usage.lost_percent(), 100, "nothing was measured");
        assert!(usage.add("900 1000").is_some() && usage.add("700 1000").is_some());
        assert_eq!(usage.lost_percent(), 20);
        assert!(usage.add("7").is_none() && usage.add("a b").is_none());
        assert_eq!(Usage { had: 1001, wall: 1000 }.lost_percent(), 0);
    }

    #[test]
    fn every_trial_is_a_thing_that_can_be_told_apart() {
        let mut names: Vec<String> = trials(&[0, 3]).into_iter().map(|trial| trial.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert!(names.len() == count && count == 9, "{names:?}");
    }

    #[test]
    fn a_sleeper_is_woken_and_copies_take_time() {
        assert!(wake_ns().expect("pipes") > 0 && copy_ns(1 << 20) > copy_ns(16 << 10));
    }
}
