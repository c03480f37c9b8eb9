//! What was measured, held against the bars, as text, Markdown and JSON.

use super::lines::{self, Bar, Line, Way};
use crate::format::{digits, figure};
use crate::lines::Unit;
use crate::machine::Machine;
use crate::stats::Summary;
use anyhow::Context;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

#[derive(Clone, Debug, Serialize)]
pub struct BarReport {
    pub text: String,
    /// `None`: what it is held against was not measured.
    pub met: Option<bool>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LineReport {
    pub id: &'static str,
    pub title: &'static str,
    pub unit: Unit,
    /// One per turn and way, base units.
    pub samples: BTreeMap<Way, Vec<f64>>,
    /// How many times better ours is than kernel TCP.
    pub ratio: Option<f64>,
    pub bars: Vec<BarReport>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub turns: u32,
    pub seconds: f64,
    /// One way from core to core, measured in the same run.
    pub cache_line_s: Option<f64>,
    pub lines: Vec<LineReport>,
    /// Lines that were left out, and why.
    pub left_out: Vec<String>,
    pub failures: Vec<String>,
}

impl LineReport {
    pub fn of(line: &Line, samples: BTreeMap<Way, Vec<f64>>, cache_line_s: Option<f64>) -> Self {
        let median =
            |way: Way| samples.get(&way).and_then(|samples| Summary::of(samples)).map(|summary| summary.median);
        let better = |than: Way| Some(times_better(median(Way::Weft)?, median(than)?, line.unit));
        let bars = line.bars.iter().map(|bar| BarReport {
            text: bar_text(*bar, line.unit),
            met: match *bar {
                Bar::Times(times, way) => better(way).map(|ratio| ratio >= times),
                Bar::CacheLines(times) => median(Way::Weft).zip(cache_line_s).map(|(ours, line)| ours <= times * line),
                Bar::AtMost(most) => median(Way::Weft).map(|ours| ours <= most),
            },
        });
        let bars = bars.collect();
        Self { id: line.id, title: line.title, unit: line.unit, ratio: better(Way::Kernel), bars, samples }
    }

    fn cell(&self, way: Way) -> String {
        let Some(summary) = self.samples.get(&way).and_then(|samples| Summary::of(samples)) else {
            return String::new();
        };
        format!("{} ±{:.0}%", value(summary.median, self.unit), summary.spread_percent())
    }

    fn row(&self) -> Vec<String> {
        let mut row = vec![self.title.to_owned()];
        row.extend(Way::ALL.map(|way| self.cell(way)));
        row.push(self.ratio.filter(|ratio| ratio.is_finite()).map_or(String::new(), digits));
        let verdict = |bar: &BarReport| match bar.met {
            Some(true) => format!("{} PASS", bar.text),
            Some(false) => format!("{} MISS", bar.text),
            None => bar.text.clone(),
        };
        row.push(self.bars.iter().map(verdict).collect::<Vec<_>>().join(", "));
        row
    }
}

/// A connection's memory is small beside what the other table shows in MiB.
fn value(value: f64, unit: Unit) -> String {
    if unit == Unit::Bytes { format!("{} KiB", digits(value / 1024.0)) } else { figure(value, unit) }
}

fn times_better(ours: f64, theirs: f64, unit: Unit) -> f64 {
    if unit.higher_is_better() { ours / theirs } else { theirs / ours }
}

fn bar_text(bar: Bar, unit: Unit) -> String {
    match bar {
        Bar::Times(times, way) => format!(">= {times} x {}", way.title()),
        Bar::CacheLines(times) => format!("<= {times} cache lines"),
        Bar::AtMost(most) => format!("<= {}", value(most, unit)),
    }
}

const HEAD: [&str; 7] = ["what", "Weft", "kernel TCP", "TCP polled", "Unix socket", "times", "must be"];

impl Report {
    fn rows(&self) -> Vec<Vec<String>> {
        let head = HEAD.map(str::to_owned).to_vec();
        std::iter::once(head).chain(self.lines.iter().map(LineReport::row)).collect()
    }

    fn heading(&self) -> String {
        let mut text = format!("{}, {}\n", self.machine.text(), self.machine.date);
        let _ = writeln!(text, "median of {} turns of {} s by turns, ± half the range", self.turns, self.seconds);
        if let Some(line) = self.cache_line_s {
            let _ = writeln!(text, "cache line one way between two cores: {}", figure(line, Unit::Seconds));
        }
        text
    }

    fn remarks(&self) -> String {
        let missed = self.lines.iter().flat_map(|line| {
            let missed = line.bars.iter().filter(|bar| bar.met == Some(false));
            missed.map(move |bar| format!("missed: {}: {}\n", line.title, bar.text))
        });
        let left_out = self.left_out.iter().map(|what| format!("left out: {what}\n"));
        let failures = self.failures.iter().map(|what| format!("failed: {what}\n"));
        missed.chain(left_out).chain(failures).collect()
    }

    pub fn text(&self) -> String {
        let rows = self.rows();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let mut text = self.heading() + "\n";
        for row in &rows {
            for (column, cell) in row.iter().enumerate() {
                let width = width(column);
                let _ = match column {
                    0 => write!(text, "{cell:<width$}"),
                    6 => write!(text, "  {cell}"),
                    _ => write!(text, "  {cell:>width$}"),
                };
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text + "\n" + &self.remarks()
    }

    pub fn markdown(&self) -> String {
        let mut text = self.heading() + "\n";
        for (at, row) in self.rows().iter().enumerate() {
            let _ = writeln!(text, "| {} |", row.join(" | "));
            if at == 0 {
                text.push_str("|---|--:|--:|--:|--:|--:|---|\n");
            }
        }
        let remarks: String = self.remarks().lines().map(|line| format!("- {line}\n")).collect();
        text + "\n" + &remarks
    }

    pub fn write_json(&self, path: &Path) -> anyhow::Result<()> {
        let json = serde_json::to_string_pretty(self).context("report to JSON")?;
        std::fs::write(path, json + "\n").with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Every line with its bars.
pub fn list() -> String {
    let bars = |line: &Line| line.bars.iter().map(|bar| bar_text(*bar, line.unit)).collect::<Vec<_>>().join(", ");
    lines::all().iter().map(|line| format!("{:<16} {:<38} {}\n", line.id, line.title, bars(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str) -> Line {
        lines::all().into_iter().find(|line| line.id == id).expect("a line")
    }

    fn report(id: &str, ours: f64, kernel: f64, cache_line_s: Option<f64>) -> LineReport {
        let samples = [(Way::Weft, vec![ours]), (Way::Kernel, vec![kernel; 3]), (Way::Polled, vec![kernel / 6.0])];
        LineReport::of(&line(id), samples.into(), cache_line_s)
    }

    #[test]
    fn a_shorter_time_is_better_and_each_bar_has_its_own_measure() {
        let got = report("pingpong-64", 0.4e-6, 24e-6, Some(70e-9));
        assert_eq!(got.ratio.map(f64::round), Some(60.0));
        let verdicts: Vec<_> = got.bars.iter().map(|bar| bar.met).collect();
        assert_eq!(verdicts, [Some(true), Some(true), Some(false)], "0.4 us are more than five cache lines");
    }

    #[test]
    fn a_higher_rate_is_better() {
        assert_eq!(report("redis-50", 3e5, 2e5, None).bars[0].met, Some(true));
        assert_eq!(report("redis-50", 2.9e5, 2e5, None).bars[0].met, Some(false));
    }

    #[test]
    fn without_us_nothing_is_claimed() {
        let got = LineReport::of(&line("connect"), [(Way::Kernel, vec![1e5])].into(), None);
        assert_eq!((got.ratio, got.bars[0].met), (None, None));
    }

    #[test]
    fn misses_and_failures_stand_below_the_table() {
        let report = Report {
            machine: Machine::default(),
            turns: 3,
            seconds: 1.0,
            cache_line_s: Some(60e-9),
            lines: vec![report("redis-50", 1e5, 2e5, None)],
            left_out: vec!["nginx-1: not installed".into()],
            failures: vec![],
        };
        let text = report.text();
        assert!(text.contains("missed: redis GET, 50 clients: >= 1.5 x kernel TCP"), "{text}");
        assert!(text.contains("0.500  >= 1.5 x kernel TCP MISS") && text.contains("left out: nginx-1"), "{text}");
        assert!(report.markdown().contains("| redis GET, 50 clients | 100 k/s ±0% |"), "{}", report.markdown());
    }
}
