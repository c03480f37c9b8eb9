//! What was measured, held against the bars, as text, Markdown and JSON.

use super::lines::{self, SockBar, SockLine, SockWay};
use crate::format::{Unit, bullets, digits, failed, figure, padded, tally};
use crate::machine::MeasuredMachine;
use crate::output::Presented;
use crate::state::{self, CacheState, Sample};
use crate::stats::Summary;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Samples by way, one per turn.
pub type Samples = BTreeMap<SockWay, Vec<Sample>>;

#[derive(Clone, Debug, Serialize)]
pub struct SockBarReport {
    pub text: String,
    /// `None`: it, or what it is held against, was not measured.
    pub met: Option<bool>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SockLineReport {
    pub id: &'static str,
    pub title: &'static str,
    pub unit: Unit,
    /// In which state the samples that count were taken.
    pub state: CacheState,
    /// Samples count whose cache lines both lie between this and `state::NEAR` times this; none: all samples count.
    pub shared_from_ns: Option<f64>,
    /// All there are, one per turn and way.
    pub samples: Samples,
    /// How many times better ours is than kernel TCP.
    pub ratio: Option<f64>,
    pub bars: Vec<SockBarReport>,
    /// The Debian package without which the line cannot be measured.
    pub wants: Option<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SockReport {
    pub machine: MeasuredMachine,
    /// Asked for. Lines that were not measured in one state so often took more.
    pub turns: u32,
    pub turns_taken: u32,
    pub seconds: f64,
    pub took_s: f64,
    /// One way from core to core, measured once per turn.
    pub cache_line_s: Option<f64>,
    /// The shortest on both sides of a sample; what begins within `state::NEAR` times this is called near.
    pub shortest_line_ns: Option<f64>,
    pub lines: Vec<SockLineReport>,
    pub failures: Vec<String>,
}

impl SockLineReport {
    /// Judges the samples of `line` in a run of so many `turns` with this shortest cache line.
    pub fn of(line: &SockLine, samples: &Samples, turns: u32, shortest_ns: f64) -> Self {
        let all: Vec<&[Sample]> = samples.values().map(Vec::as_slice).collect();
        let shared_from_ns = state::shared_from_ns(&all, turns);
        let mut report = Self {
            id: line.id,
            title: line.title,
            unit: line.unit,
            state: state::named(shared_from_ns, shortest_ns),
            shared_from_ns,
            samples: samples.clone(),
            ratio: None,
            bars: Vec::new(),
            wants: None,
        };
        report.ratio =
            report.times_better(SockWay::Kernel).filter(|_| !matches!(line.unit, Unit::Bytes | Unit::Percent));
        let bars = line.bars.iter().map(|bar| SockBarReport { text: bar_text(*bar, line.unit), met: report.met(*bar) });
        report.bars = bars.collect();
        report
    }

    /// A line that nobody could measure: its bars are not met.
    pub fn left_out(line: &SockLine, package: &'static str) -> Self {
        Self { wants: Some(package), ..Self::of(line, &Samples::new(), 1, f64::INFINITY) }
    }

    fn counted(&self, way: SockWay) -> impl Iterator<Item = &Sample> {
        let samples = self.samples.get(&way).map_or(&[][..], Vec::as_slice);
        state::counted(samples, self.shared_from_ns)
    }

    fn summary(&self, way: SockWay) -> Option<Summary> {
        Summary::of(&self.counted(way).map(|sample| sample.value).collect::<Vec<_>>())
    }

    fn median(&self, way: SockWay) -> Option<f64> {
        self.summary(way).map(|summary| summary.median)
    }

    fn times_better(&self, than: SockWay) -> Option<f64> {
        let (ours, theirs) = (self.median(SockWay::Weft)?, self.median(than)?);
        Some(if self.unit.higher_is_better() { ours / theirs } else { theirs / ours })
    }

    /// As it was beside our samples that count.
    fn cache_line_s(&self) -> Option<f64> {
        let lines_ns: Vec<f64> = self.counted(SockWay::Weft).flat_map(Sample::lines_ns).collect();
        Summary::of(&lines_ns).map(|summary| summary.median * 1e-9)
    }

    fn met(&self, bar: SockBar) -> Option<bool> {
        match bar {
            SockBar::Times(times, way) => self.times_better(way).map(|ratio| ratio >= times),
            SockBar::CacheLines(times) => Some(self.median(SockWay::Weft)? <= times * self.cache_line_s()?),
            SockBar::AtMost(most) => self.median(SockWay::Weft).map(|ours| ours <= most),
        }
    }

    fn cell(&self, way: SockWay) -> String {
        let Some(summary) = self.summary(way) else { return String::new() };
        format!("{} ±{:.0}%", value(summary.median, self.unit), summary.spread_percent())
    }

    /// How many samples count, and in which state they were taken.
    fn samples_text(&self) -> String {
        if let Some(package) = self.wants {
            return format!("wants the Debian package {package}");
        }
        let counts = self.samples.keys().map(|way| self.counted(*way).count());
        state::counts_text(counts, self.state, self.shared_from_ns).unwrap_or_else(|| "failed".into())
    }

    fn row(&self) -> Vec<String> {
        let mut row = vec![self.title.to_owned()];
        row.extend(SockWay::ALL.map(|way| self.cell(way)));
        row.push(self.ratio.filter(|ratio| ratio.is_finite()).map_or(String::new(), digits));
        row.push(self.samples_text());
        let verdict = |bar: &SockBarReport| match bar.met {
            Some(true) => format!("{} PASS", bar.text),
            Some(false) => format!("{} MISS", bar.text),
            None => format!("{} not measured", bar.text),
        };
        row.push(self.bars.iter().map(verdict).collect::<Vec<_>>().join(", "));
        row
    }
}

/// A connection's memory is small beside what the other table shows in MiB.
fn value(value: f64, unit: Unit) -> String {
    if unit == Unit::Bytes { format!("{} KiB", digits(value / 1024.0)) } else { figure(value, unit) }
}

fn bar_text(bar: SockBar, unit: Unit) -> String {
    match bar {
        SockBar::Times(times, way) => format!(">= {times} x {}", way.title()),
        SockBar::CacheLines(times) => format!("<= {times} cache lines"),
        SockBar::AtMost(most) => format!("<= {}", value(most, unit)),
    }
}

const HEAD: [&str; 8] = ["what", "Weft", "kernel TCP", "TCP polled", "Unix socket", "times", "samples", "must be"];

impl SockReport {
    fn rows(&self) -> Vec<Vec<String>> {
        let head = HEAD.map(str::to_owned).to_vec();
        std::iter::once(head).chain(self.lines.iter().map(SockLineReport::row)).collect()
    }

    fn heading(&self) -> Vec<String> {
        let more = state::more_turns(self.turns, self.turns_taken, "lines");
        let mut lines = vec![
            format!("{}, {}", self.machine.text(), self.machine.date),
            format!(
                "median of {} turns{more} of {} s, by turns, ± half the range; {:.0} s in all; load average before: {}",
                self.turns, self.seconds, self.took_s, self.machine.load_before
            ),
        ];
        if let Some(line) = self.cache_line_s {
            lines.push(format!("cache line one way between two cores: {}", figure(line, Unit::Seconds)));
        }
        lines.extend(state::legend("samples", self.shortest_line_ns));
        lines
    }

    fn remarks(&self) -> Vec<String> {
        let bars = self.lines.iter().flat_map(|line| line.bars.iter().map(|bar| (line.title, &*bar.text, bar.met)));
        let mut lines = tally(bars);
        let wants = |line: &SockLineReport| Some(format!("{} wants the Debian package {}", line.title, line.wants?));
        lines.extend(self.lines.iter().filter_map(wants).map(|what| format!("not measured: {what}")));
        lines.extend(failed(&self.failures));
        lines
    }
}

impl Presented for SockReport {
    fn text(&self) -> String {
        let table = padded(&self.rows(), |column| matches!(column, 0 | 6 | 7));
        format!("{}\n\n{table}\n{}\n", self.heading().join("\n"), self.remarks().join("\n"))
    }

    fn markdown(&self) -> String {
        let mut text = bullets(&self.heading()) + "\n";
        for (at, row) in self.rows().iter().enumerate() {
            let _ = writeln!(text, "| {} |", row.join(" | "));
            if at == 0 {
                text.push_str("|---|--:|--:|--:|--:|--:|---|---|\n");
            }
        }
        text + "\n" + &bullets(&self.remarks())
    }

    fn failed(&self) -> usize {
        self.failures.len()
    }
}

/// Every line with its bars.
pub fn list() -> String {
    let bars = |line: &SockLine| line.bars.iter().map(|bar| bar_text(*bar, line.unit)).collect::<Vec<_>>().join(", ");
    lines::all().iter().map(|line| format!("{:<16} {:<38} {}\n", line.id, line.title, bars(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str) -> SockLine {
        lines::all().into_iter().find(|line| line.id == id).expect("a line")
    }

    /// A sample beside a cache line of so many nanoseconds.
    fn beside(value: f64, line_ns: f64) -> Sample {
        Sample { value, line_ns_before: Some(line_ns), line_ns_after: Some(line_ns) }
    }

    fn report(id: &str, ours: f64, kernel: f64) -> SockLineReport {
        let samples =
            [(SockWay::Weft, vec![ours]), (SockWay::Kernel, vec![kernel; 3]), (SockWay::Polled, vec![kernel / 6.0])];
        let plain = samples.map(|(way, values)| (way, values.into_iter().map(|v| beside(v, 70.0)).collect()));
        SockLineReport::of(&line(id), &plain.into(), 1, 70.0)
    }

    fn verdicts(report: &SockLineReport) -> Vec<Option<bool>> {
        report.bars.iter().map(|bar| bar.met).collect()
    }

    #[test]
    fn a_shorter_time_is_better_and_each_bar_has_its_own_measure() {
        let got = report("pingpong-64", 0.4e-6, 24e-6);
        assert_eq!(got.ratio.map(f64::round), Some(60.0));
        assert_eq!(verdicts(&got), [Some(true), Some(true), Some(false)], "0.4 us are more than five cache lines");
    }

    #[test]
    fn a_higher_rate_is_better() {
        assert_eq!(verdicts(&report("redis-50", 3e5, 2e5)), [Some(true)]);
        assert_eq!(verdicts(&report("redis-50", 2.9e5, 2e5)), [Some(false)]);
    }

    #[test]
    fn only_samples_of_one_state_count_and_lines_are_those_beside_them() {
        let ours = vec![beside(0.3e-6, 60.0), beside(1.3e-6, 280.0), beside(0.31e-6, 61.0)];
        let kernel = vec![beside(24e-6, 60.0), beside(25e-6, 62.0), beside(60e-6, 280.0)];
        let got = SockLineReport::of(
            &line("pingpong-64"),
            &[(SockWay::Weft, ours), (SockWay::Kernel, kernel)].into(),
            2,
            60.0,
        );
        assert_eq!((got.state, got.samples_text().as_str()), (CacheState::Near, "2 near, 60 ns"));
        assert_eq!(got.ratio.map(f64::round), Some(80.0));
        assert_eq!(verdicts(&got), [Some(true), None, Some(false)], "0.305 us are more than 5 x 60.5 ns");
    }

    #[test]
    fn without_us_nothing_is_claimed() {
        let got = SockLineReport::of(&line("connect"), &[(SockWay::Kernel, vec![Sample::plain(1e5)])].into(), 1, 70.0);
        assert_eq!((got.ratio, verdicts(&got)), (None, vec![None]));
    }

    #[test]
    fn misses_failures_and_programs_that_are_missing_stand_below_the_table() {
        let report = SockReport {
            machine: MeasuredMachine::default(),
            turns: 3,
            turns_taken: 3,
            seconds: 1.0,
            took_s: 1.0,
            cache_line_s: Some(60e-9),
            shortest_line_ns: None,
            lines: vec![report("redis-50", 1e5, 2e5), SockLineReport::left_out(&line("nginx-1"), "wrk")],
            failures: vec!["connect: no".into()],
        };
        let text = report.text();
        assert!(text.contains("0 of 2 bars met, 1 not measured\nmissed: redis GET, 50 clients: >= 1.5 x"), "{text}");
        assert!(text.contains("not measured: nginx + wrk 600 B, 1 client wants the Debian package wrk"), "{text}");
        assert!(text.contains(">= 1.5 x kernel TCP MISS") && text.contains("failed: connect: no"), "{text}");
        assert!(report.markdown().contains("| redis GET, 50 clients | 100 k/s ±0% |"), "{}", report.markdown());
    }
}
