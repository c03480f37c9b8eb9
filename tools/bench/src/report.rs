//! What a run found: the one structure behind table, JSON and plot.

use crate::bars::{Against, Bar, Verdict};
use crate::library::Name;
use crate::limits::{self, Limit};
use crate::lines::{Group, Line, Unit};
use crate::machine::Machine;
use crate::stats::Summary;
use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Of this structure; changes when a field changes its meaning.
    pub format: u32,
    pub machine: Machine,
    /// The command that made this.
    pub command: String,
    pub turns: u32,
    pub seconds_per_line: f64,
    pub took_s: f64,
    pub libraries: Vec<LibraryReport>,
    /// Who could not take part, and why.
    pub left_out: Vec<LeftOut>,
    pub limits: Vec<Limit>,
    pub lines: Vec<LineReport>,
    pub failures: Vec<Failure>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LibraryReport {
    pub name: Name,
    /// The name and version that the loaded library gave itself, else the package's.
    pub version: String,
    /// How the two-rank and the crowded jobs are started.
    pub pair: String,
    pub crowd: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct LeftOut {
    pub name: Name,
    pub reason: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// Library and group, or the machine's limits.
    pub what: String,
    /// Counted from 1.
    pub turn: u32,
    pub reason: String,
}

/// A line and what each library reached. Values are in base units: seconds, bytes, per second.
#[derive(Clone, Debug, Serialize)]
pub struct LineReport {
    pub id: String,
    pub title: String,
    pub group: Group,
    pub unit: Unit,
    pub results: Vec<LibraryResult>,
    /// Weft's median over the best peer's.
    pub ratio: Option<f64>,
    /// Median over the turns of Weft's sample over the best peer's of the same turn: tells whether a machine that
    /// changed its speed on the way has bent `ratio`, which the bars use.
    pub ratio_by_turn: Option<f64>,
    pub best_peer: Option<Name>,
    pub bars: Vec<BarReport>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LibraryResult {
    pub name: Name,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// One per turn (start-up: several).
    pub samples: Vec<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct BarReport {
    pub bar: Bar,
    pub text: String,
    pub threshold: Option<f64>,
    pub verdict: Verdict,
}

impl LibraryResult {
    pub fn summary(&self) -> Summary {
        Summary { median: self.median, min: self.min, max: self.max }
    }
}

impl LineReport {
    /// Judges the samples of `line`. Libraries without samples do not appear.
    pub fn of(line: &Line, samples: &[(Name, Vec<f64>)], limits: &[Limit]) -> Self {
        let result = |(name, samples): &(Name, Vec<f64>)| {
            let Summary { median, min, max } = Summary::of(samples)?;
            Some(LibraryResult { name: *name, median, min, max, samples: samples.clone() })
        };
        let results: Vec<_> = samples.iter().filter_map(result).collect();
        let better = |a: &&LibraryResult, b: &&LibraryResult| match line.unit.higher_is_better() {
            true => b.median.total_cmp(&a.median),
            false => a.median.total_cmp(&b.median),
        };
        let best = results.iter().filter(|r| r.name.is_peer()).min_by(better);
        let ours = results.iter().find(|r| r.name == Name::Weft).map(|r| r.median);
        let against_best = |best: &LibraryResult| {
            let ours = results.iter().find(|r| r.name == Name::Weft)?;
            let pairs = ours.samples.iter().zip(&best.samples).filter(|(_, b)| **b > 0.0);
            Summary::of(&pairs.map(|(a, b)| a / b).collect::<Vec<_>>()).map(|s| s.median)
        };
        let against = Against { best_peer: best.map(|r| r.median), ..limits::against(limits) };
        let bar = |bar: &Bar| BarReport {
            bar: *bar,
            text: bar.text(line.unit),
            threshold: bar.threshold(&against),
            verdict: bar.verdict(ours, line.unit, &against),
        };
        Self {
            id: line.id.clone(),
            title: line.title.clone(),
            group: line.group,
            unit: line.unit,
            ratio: ours.zip(against.best_peer).filter(|(_, best)| *best > 0.0).map(|(ours, best)| ours / best),
            ratio_by_turn: best.and_then(against_best),
            best_peer: best.map(|r| r.name),
            bars: line.bars.iter().map(bar).collect(),
            results,
        }
    }

    pub fn result(&self, name: Name) -> Option<&LibraryResult> {
        self.results.iter().find(|r| r.name == name)
    }
}

impl Report {
    /// Demanded bars: (met, missed as `title: bar`). Bars that could not be judged are in neither.
    pub fn tally(&self) -> (usize, Vec<String>) {
        let bars = self.lines.iter().flat_map(|l| l.bars.iter().map(move |b| (l, b))).filter(|(_, b)| b.bar.demanded());
        let (mut met, mut missed) = (0, Vec::new());
        for (line, bar) in bars {
            match bar.verdict {
                Verdict::Pass => met += 1,
                Verdict::Miss => missed.push(format!("{}: {}", line.title, bar.text)),
                Verdict::Unknown => {}
            }
        }
        (met, missed)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::lines;

    /// A small report with all four libraries: Weft is twice as fast as MPICH, the others lie between.
    pub fn sample_report() -> Report {
        let mut limits = limits::all();
        limits[0].samples = vec![60e-9, 61e-9, 62e-9];
        limits[1].samples = vec![2e-6];
        let samples_of = |unit: Unit, size: f64| {
            let value = |factor: f64| match unit.higher_is_better() {
                true => 1e9 / factor,
                false => (100e-9 + size * 1e-10) * factor,
            };
            let row = |(name, factor)| (name, vec![value(factor), value(factor) * 1.01, value(factor) * 0.99]);
            [(Name::Weft, 1.0), (Name::Mpich, 2.0), (Name::Openmpi, 1.5), (Name::Intel, 1.8)].map(row)
        };
        let line = |l: &Line| {
            let size = l.id.rsplit('/').next().and_then(|s| s.parse().ok()).unwrap_or(0.0);
            LineReport::of(l, &samples_of(l.unit, size), &limits)
        };
        let library = |name: Name| LibraryReport {
            name,
            version: format!("{} 1.2", name.title()),
            pair: "mpiexec -n 2".into(),
            crowd: "mpiexec -n 8".into(),
        };
        Report {
            format: 1,
            machine: Machine { cpu: "Test <CPU> & more".into(), date: "2026-01-02".into(), ..Machine::default() },
            command: "weft bench".into(),
            turns: 3,
            seconds_per_line: 1.0,
            took_s: 12.0,
            libraries: Name::ALL.map(library).to_vec(),
            left_out: Vec::new(),
            lines: lines::all(10.0).iter().map(line).collect(),
            limits,
            failures: Vec::new(),
        }
    }

    #[test]
    fn the_best_peer_is_the_fastest_one_and_never_ourselves() {
        for line in sample_report().lines {
            assert_eq!(line.best_peer, Some(Name::Openmpi), "{}", line.id);
            let want = if line.unit.higher_is_better() { 1.5 } else { 1.0 / 1.5 };
            assert!((line.ratio.unwrap() - want).abs() < 1e-9, "{}: {:?}", line.id, line.ratio);
        }
    }

    #[test]
    fn a_machine_that_slowed_down_on_the_way_does_not_bend_the_ratio_by_turn() {
        let line = &lines::all(10.0)[0];
        // Both run at a third of their speed from the third turn on; ours is half of theirs in each turn.
        let (ours, theirs) = (vec![1.0, 1.0, 3.0, 3.0, 3.0], vec![2.0, 2.0, 6.0, 6.0, 6.0]);
        let report = LineReport::of(line, &[(Name::Weft, ours), (Name::Mpich, theirs[..3].to_vec())], &[]);
        assert_eq!((report.ratio, report.ratio_by_turn), (Some(1.5), Some(0.5)));
    }

    #[test]
    fn only_demanded_bars_count() {
        let mut report = sample_report();
        report.lines.retain(|l| l.id == "rate/8");
        assert_eq!(report.lines[0].bars.len(), 2);
        assert_eq!(report.tally(), (1, vec![]));
    }

    #[test]
    fn a_library_without_samples_does_not_appear() {
        let line = lines::all(10.0).remove(0);
        let report = LineReport::of(&line, &[(Name::Weft, vec![]), (Name::Mpich, vec![1e-6])], &[]);
        assert!(report.result(Name::Weft).is_none() && report.ratio.is_none());
        assert_eq!(report.best_peer, Some(Name::Mpich));
    }
}
