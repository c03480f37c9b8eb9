//! What a run found: the one structure behind table, JSON and plot.

use crate::bars::{Against, Bar, Verdict};
use crate::format::Unit;
use crate::library::LibraryName;
use crate::limits::{self, Limit};
use crate::lines::{BenchLine, LineGroup};
use crate::machine::MeasuredMachine;
use crate::state::{self, CacheState, Sample};
use crate::stats::Summary;
use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// Of this structure; changes when a field changes its meaning.
    pub format: u32,
    pub machine: MeasuredMachine,
    /// The command that made this.
    pub command: String,
    /// Asked for. Lines whose libraries were not measured in one state so often took more.
    pub turns: u32,
    pub turns_taken: u32,
    /// The shortest cache line on both sides of a sample; what begins within `state::NEAR` times this is called near.
    pub shortest_line_ns: Option<f64>,
    pub seconds_per_line: f64,
    pub took_s: f64,
    pub libraries: Vec<LibraryReport>,
    /// Who could not take part, and why.
    pub left_out: Vec<LeftOut>,
    pub limits: Vec<Limit>,
    pub lines: Vec<LineReport>,
    pub failures: Vec<BenchFailure>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LibraryReport {
    pub name: LibraryName,
    /// The name and version that the loaded library gave itself, else the package's.
    pub version: String,
    /// How the two-rank and the crowded jobs are started.
    pub pair: String,
    pub crowd: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct LeftOut {
    pub name: LibraryName,
    pub reason: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct BenchFailure {
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
    pub group: LineGroup,
    pub unit: Unit,
    /// In which state the samples that count were taken.
    pub state: CacheState,
    /// Samples count whose cache lines both lie between this and `state::NEAR` times this; none: all samples count.
    pub shared_from_ns: Option<f64>,
    pub results: Vec<LibraryResult>,
    /// Weft's median over the best peer's.
    pub ratio: Option<f64>,
    /// Median over all turns, whatever the state, of Weft's sample over the best peer's of the same turn: tells whether
    /// a machine that changed its speed on the way has bent `ratio`, which the bars use.
    pub ratio_by_turn: Option<f64>,
    pub best_peer: Option<LibraryName>,
    pub bars: Vec<BarReport>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LibraryResult {
    pub name: LibraryName,
    /// These three are of the samples that count.
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub counted: usize,
    /// All there are, one per turn (start-up: several).
    pub samples: Vec<Sample>,
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

/// What the lines of a run have in common.
pub struct Conditions<'a> {
    pub limits: &'a [Limit],
    pub turns: u32,
    pub shortest_line_ns: f64,
}

impl LineReport {
    /// Judges the samples of `line`. Libraries without samples that count do not appear.
    pub fn of(line: &BenchLine, samples: &[(LibraryName, &[Sample])], run: &Conditions) -> Self {
        let all: Vec<_> = samples.iter().map(|(_, samples)| *samples).collect();
        let from_ns = state::shared_from_ns(&all, run.turns);
        let result = |(name, samples): &(LibraryName, &[Sample])| {
            let values: Vec<_> = state::counted(samples, from_ns).map(|s| s.value).collect();
            let Summary { median, min, max } = Summary::of(&values)?;
            Some(LibraryResult { name: *name, median, min, max, counted: values.len(), samples: samples.to_vec() })
        };
        let results: Vec<_> = samples.iter().filter_map(result).collect();
        let better = |a: &&LibraryResult, b: &&LibraryResult| match line.unit.higher_is_better() {
            true => b.median.total_cmp(&a.median),
            false => a.median.total_cmp(&b.median),
        };
        let best = results.iter().filter(|r| r.name.is_peer()).min_by(better);
        let weft = results.iter().find(|r| r.name == LibraryName::Weft);
        let ours = weft.map(|r| r.median);
        let by_turn = |(ours, best): (&LibraryResult, &LibraryResult)| {
            let pairs = ours.samples.iter().zip(&best.samples).filter(|(_, b)| b.value > 0.0);
            Summary::of(&pairs.map(|(a, b)| a.value / b.value).collect::<Vec<_>>()).map(|s| s.median)
        };
        // A figure is held against the cache line as it was beside the samples that make it.
        let cache_line_s = |r: &LibraryResult| {
            let lines_ns = state::counted(&r.samples, from_ns).flat_map(Sample::lines_ns);
            Summary::of(&lines_ns.collect::<Vec<_>>()).map(|s| s.median * 1e-9)
        };
        let limits = limits::against(run.limits);
        let against = Against {
            best_peer: best.map(|r| r.median),
            cache_line_s: weft.and_then(cache_line_s).or(limits.cache_line_s),
            ..limits
        };
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
            state: state::named(from_ns, run.shortest_line_ns),
            shared_from_ns: from_ns,
            ratio: ours.zip(against.best_peer).filter(|(_, best)| *best > 0.0).map(|(ours, best)| ours / best),
            ratio_by_turn: weft.zip(best).and_then(by_turn),
            best_peer: best.map(|r| r.name),
            bars: line.bars.iter().map(bar).collect(),
            results,
        }
    }

    pub fn result(&self, name: LibraryName) -> Option<&LibraryResult> {
        self.results.iter().find(|r| r.name == name)
    }
}

impl BenchReport {
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
    use crate::state::tests::sample;

    const QUIET: Conditions = Conditions { limits: &[], turns: 1, shortest_line_ns: 60.0 };

    /// Samples beside near cache lines of 62 ns.
    fn near(values: &[f64]) -> Vec<Sample> {
        values.iter().map(|v| sample(*v, 62.0, 62.0)).collect()
    }

    /// A small report with all four libraries: Weft is twice as fast as MPICH, the others lie between.
    pub fn sample_report() -> BenchReport {
        let mut limits = limits::all();
        limits[0].samples = vec![60e-9, 61e-9, 62e-9];
        limits[1].samples = vec![2e-6];
        let samples_of = |unit: Unit, size: f64| {
            let value = |factor: f64| match unit.higher_is_better() {
                true => 1e9 / factor,
                false => (100e-9 + size * 1e-10) * factor,
            };
            let row = |(name, factor)| (name, near(&[value(factor), value(factor) * 1.01, value(factor) * 0.99]));
            [
                (LibraryName::Weft, 1.0),
                (LibraryName::Mpich, 2.0),
                (LibraryName::Openmpi, 1.5),
                (LibraryName::Intel, 1.8),
            ]
            .map(row)
        };
        let line = |l: &BenchLine| {
            let size = l.id.rsplit('/').next().and_then(|s| s.parse().ok()).unwrap_or(0.0);
            let samples = samples_of(l.unit, size);
            let samples: Vec<_> = samples.iter().map(|(name, samples)| (*name, samples.as_slice())).collect();
            LineReport::of(l, &samples, &Conditions { limits: &limits, turns: 3, shortest_line_ns: 60.0 })
        };
        let library = |name: LibraryName| LibraryReport {
            name,
            version: format!("{} 1.2", name.title()),
            pair: "mpiexec -n 2".into(),
            crowd: "mpiexec -n 8".into(),
        };
        BenchReport {
            format: 2,
            machine: MeasuredMachine {
                cpu: "Test <CPU> & more".into(),
                date: "2026-01-02".into(),
                ..MeasuredMachine::default()
            },
            command: "weft bench".into(),
            turns: 3,
            turns_taken: 3,
            shortest_line_ns: Some(60.0),
            seconds_per_line: 1.0,
            took_s: 12.0,
            libraries: LibraryName::ALL.map(library).to_vec(),
            left_out: Vec::new(),
            lines: lines::all(10.0).iter().map(line).collect(),
            limits,
            failures: Vec::new(),
        }
    }

    #[test]
    fn the_best_peer_is_the_fastest_one_and_never_ourselves() {
        for line in sample_report().lines {
            assert_eq!(line.best_peer, Some(LibraryName::Openmpi), "{}", line.id);
            let want = if line.unit.higher_is_better() { 1.5 } else { 1.0 / 1.5 };
            assert!((line.ratio.unwrap() - want).abs() < 1e-9, "{}: {:?}", line.id, line.ratio);
        }
    }

    #[test]
    fn a_machine_that_slowed_down_on_the_way_does_not_bend_the_ratio_by_turn() {
        let line = &lines::all(10.0)[0];
        // Both run at a third of their speed from the third turn on; ours is half of theirs in each turn.
        let (ours, theirs) = (near(&[1.0, 1.0, 3.0, 3.0, 3.0]), near(&[2.0, 2.0, 6.0, 6.0, 6.0]));
        let report = LineReport::of(line, &[(LibraryName::Weft, &ours), (LibraryName::Mpich, &theirs[..3])], &QUIET);
        assert_eq!((report.ratio, report.ratio_by_turn), (Some(1.5), Some(0.5)));
    }

    #[test]
    fn figures_ratio_and_bar_are_of_the_state_that_all_libraries_share() {
        let lines = lines::all(10.0);
        let line = lines.iter().find(|l| l.id == "latency/8").unwrap();
        // Weft was measured near once only, MPICH three times; by all samples Weft would lose.
        let ours = [sample(400e-9, 280.0, 270.0), sample(100e-9, 61.0, 63.0), sample(390e-9, 260.0, 270.0)];
        let theirs = [sample(200e-9, 60.0, 60.0), sample(210e-9, 60.0, 61.0), sample(900e-9, 60.0, 280.0)];
        let samples: [(_, &[Sample]); 2] = [(LibraryName::Weft, &ours), (LibraryName::Mpich, &theirs)];
        let report = LineReport::of(line, &samples, &QUIET);
        assert_eq!((report.state, report.result(LibraryName::Weft).unwrap().counted), (CacheState::Near, 1));
        let mpich = report.result(LibraryName::Mpich).unwrap();
        assert_eq!((mpich.counted, mpich.max, mpich.samples.len()), (2, 210e-9, 3));
        assert!((report.ratio.unwrap() - 100.0 / 205.0).abs() < 1e-9);
        let line_bar = report.bars.iter().find(|b| matches!(b.bar, Bar::CacheLinePlus(_))).unwrap();
        assert!((line_bar.threshold.unwrap() - 132e-9).abs() < 1e-15, "{line_bar:?}");

        let report = LineReport::of(line, &samples, &Conditions { turns: 2, ..QUIET });
        assert_eq!((report.state, report.result(LibraryName::Weft).unwrap().median), (CacheState::Any, 390e-9));
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
        let report = LineReport::of(&line, &[(LibraryName::Weft, &[]), (LibraryName::Mpich, &near(&[1e-6]))], &QUIET);
        assert!(report.result(LibraryName::Weft).is_none() && report.ratio.is_none());
        assert_eq!(report.best_peer, Some(LibraryName::Mpich));
    }
}
