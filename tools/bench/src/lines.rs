//! The lines of the table: what is measured, in which job, and the bar it must reach.

use crate::bars::Bar;
use crate::format::{Unit, size};
use crate::machine::{CORES, CROWD};
use serde::Serialize;

/// One job start (or, for `Start`, a series of them) measures all lines of a group in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineGroup {
    /// Two bound ranks: ping-pong, windows of messages, collectives. Three short jobs and not one long one, so that
    /// libraries follow each other quickly: virtual machines change their speed from minute to minute.
    Latency,
    Stream,
    Collective,
    /// Eight ranks on two cores.
    Crowd,
    /// Two ranks, one of them blocked.
    Idle,
    /// As many ranks as the number says, once per run: the figure hardly varies.
    Memory(u32),
    /// Whole time of the launcher.
    Start,
}

impl LineGroup {
    pub fn ranks(self) -> u32 {
        match self {
            LineGroup::Crowd => CROWD,
            LineGroup::Memory(ranks) => ranks,
            LineGroup::Latency | LineGroup::Stream | LineGroup::Collective | LineGroup::Idle | LineGroup::Start => 2,
        }
    }

    /// Measures what passes between two cores, which depends on how near they are to each other.
    pub fn is_between_cores(self) -> bool {
        matches!(self, LineGroup::Latency | LineGroup::Stream | LineGroup::Collective)
    }
}

#[derive(Clone, Debug)]
pub struct BenchLine {
    /// Stable name, for `--only` and JSON.
    pub id: String,
    pub title: String,
    pub group: LineGroup,
    /// What the C program is told.
    pub spec: String,
    pub unit: Unit,
    pub bars: Vec<Bar>,
    /// Part of `--quick`.
    pub quick: bool,
}

const LATENCY_SIZES: [u64; 10] = [0, 8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
const BANDWIDTH_SIZES: [u64; 6] = [512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
const COLLECTIVE_SIZES: [u64; 3] = [8, 1 << 10, 1 << 20];

/// Every line, in the order of the table. `idle_seconds` is how long the idle rank is watched.
pub fn all(idle_seconds: f64) -> Vec<BenchLine> {
    let mut lines = pair_lines();
    lines.extend(crowd_lines());
    lines.push(line("idle", "CPU of a rank blocked in receive", LineGroup::Idle, Unit::Percent, &[Bar::AtMost(1.0)]));
    lines.last_mut().expect("just pushed").spec = format!("idle:{idle_seconds}");
    for ranks in [2, CROWD, 64] {
        let bars: &[Bar] = if ranks == 64 { &[Bar::AtMost(10.0 * 1024.0 * 1024.0)] } else { &[] };
        let title = format!("memory a rank adds, {ranks} ranks");
        let mut l = line(&format!("memory/{ranks}"), &title, LineGroup::Memory(ranks), Unit::Bytes, bars);
        l.spec = format!("memory:{}", 64 << 10);
        l.quick = ranks == 2;
        lines.push(l);
    }
    lines.push(line("start/true", "start: run -n 2 true", LineGroup::Start, Unit::Seconds, &[Bar::Best(1.0)]));
    let init = "start: the same with init and finalize";
    lines.push(line("start/init", init, LineGroup::Start, Unit::Seconds, &[Bar::Best(0.15)]));
    lines
}

fn pair_lines() -> Vec<BenchLine> {
    let mut lines = Vec::new();
    for bytes in LATENCY_SIZES {
        let bars: &[Bar] = match bytes {
            8 => &[Bar::Best(0.85), Bar::CacheLinePlus(70e-9)],
            512 | 4096 | 65536 | 0x10_0000 | 0x40_0000 => &[Bar::Best(1.0)],
            _ => &[],
        };
        let quick = matches!(bytes, 8 | 4096 | 65536 | 0x10_0000);
        lines.push(sized("latency", "one way", bytes, Unit::Seconds, bars, quick));
    }
    lines.push(sized(
        "rate",
        "message rate, window 64,",
        8,
        Unit::PerSecond,
        &[Bar::Best(1.0), Bar::Stretch(1.5)],
        true,
    ));
    for bytes in BANDWIDTH_SIZES {
        let bars: &[Bar] = if bytes >= 256 << 10 { &[Bar::Best(1.3)] } else { &[] };
        lines.push(sized("bandwidth", "bandwidth, window 64,", bytes, Unit::BytesPerSecond, bars, bytes == 1 << 20));
    }
    lines.push(line("barrier", "barrier", LineGroup::Collective, Unit::Seconds, &[Bar::Best(1.0)]));
    for (kind, every_size) in [("bcast", false), ("reduce", false), ("allreduce", true)] {
        for bytes in COLLECTIVE_SIZES {
            let barred = every_size || (kind == "bcast" && bytes == 8);
            let bars: &[Bar] = if barred { &[Bar::Best(1.0)] } else { &[] };
            lines.push(sized(kind, kind, bytes, Unit::Seconds, bars, bytes == 8 && kind != "reduce"));
        }
    }
    for bytes in [8, 64 << 10] {
        lines.push(sized("alltoall", "alltoall", bytes, Unit::Seconds, &[], false));
    }
    lines
}

fn crowd_lines() -> Vec<BenchLine> {
    let hard = [Bar::Best(0.65), Bar::Switches(2.0)];
    let rows: [(&str, &str, &str, &[Bar]); 4] = [
        ("crowd/barrier", "barrier", "barrier", &hard),
        ("crowd/bcast/8", "bcast:8", "bcast 8 B", &[Bar::Best(0.9)]),
        ("crowd/allreduce/8", "allreduce:8", "allreduce 8 B", &hard),
        ("crowd/latency/8", "crowded-latency:8", "one way 8 B, six in a barrier", &[Bar::Best(0.1)]),
    ];
    let row = |(id, spec, title, bars): (&str, &str, &str, &[Bar])| {
        let title = format!("{CROWD} ranks on {CORES} cores: {title}");
        let mut l = line(id, &title, LineGroup::Crowd, Unit::Seconds, bars);
        l.spec = spec.to_string();
        l
    };
    rows.into_iter().map(row).collect()
}

fn line(id: &str, title: &str, group: LineGroup, unit: Unit, bars: &[Bar]) -> BenchLine {
    BenchLine { id: id.into(), title: title.into(), group, spec: id.into(), unit, bars: bars.to_vec(), quick: true }
}

fn sized(kind: &str, title: &str, bytes: u64, unit: Unit, bars: &[Bar], quick: bool) -> BenchLine {
    let group = match kind {
        "latency" => LineGroup::Latency,
        "rate" | "bandwidth" => LineGroup::Stream,
        _ => LineGroup::Collective,
    };
    let mut l = line(&format!("{kind}/{bytes}"), &format!("{title} {}", size(bytes)), group, unit, bars);
    l.spec = format!("{kind}:{bytes}");
    l.quick = quick;
    l
}

/// The lines that a run measures: `--quick` or all, those of them that match a pattern.
pub fn select(lines: Vec<BenchLine>, quick: bool, patterns: &[String]) -> anyhow::Result<Vec<BenchLine>> {
    for pattern in patterns {
        anyhow::ensure!(
            lines.iter().any(|l| matches(pattern, &l.id)),
            "--only {pattern}: no line has such a name; --list shows them all"
        );
    }
    // Whoever names lines means those, quick or not.
    let wanted = |l: &BenchLine| match patterns {
        [] => l.quick || !quick,
        some => some.iter().any(|p| matches(p, &l.id)),
    };
    Ok(lines.into_iter().filter(wanted).collect())
}

/// A pattern is a name, the part of names before a slash, or has `*` for anything.
pub fn matches(pattern: &str, id: &str) -> bool {
    let below = || id.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('/'));
    glob(pattern.as_bytes(), id.as_bytes()) || below()
}

fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.first(), text.first()) {
        (None, None) => true,
        (Some(b'*'), _) => glob(&pattern[1..], text) || (!text.is_empty() && glob(pattern, &text[1..])),
        (Some(p), Some(t)) if p == t => glob(&pattern[1..], &text[1..]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn ids(quick: bool, patterns: &[&str]) -> Vec<String> {
        let patterns: Vec<_> = patterns.iter().map(|p| p.to_string()).collect();
        select(all(10.0), quick, &patterns).unwrap().into_iter().map(|l| l.id).collect()
    }

    #[test]
    fn names_are_unique() {
        let all = ids(false, &[]);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }

    #[test]
    fn patterns_are_names_their_first_parts_or_have_stars() {
        assert_eq!(ids(false, &["latency/8"]), ["latency/8"]);
        assert_eq!(ids(false, &["crowd"]).len(), 4);
        assert_eq!(ids(false, &["*barrier"]), ["barrier", "crowd/barrier"]);
        assert_eq!(ids(false, &["latency/4*"]), ["latency/4096", "latency/4194304"]);
        assert_eq!(ids(false, &["start/true", "idle"]), ["idle", "start/true"]);
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_refused_by_name() {
        let e = select(all(10.0), false, &["latencies".to_string()]).unwrap_err();
        assert!(e.to_string().contains("latencies"), "{e}");
    }

    #[test]
    fn quick_keeps_some_lines_and_named_lines_override_it() {
        assert!(ids(true, &[]).len() < ids(false, &[]).len());
        assert_eq!(ids(true, &["latency/262144"]), ["latency/262144"]);
    }
}
