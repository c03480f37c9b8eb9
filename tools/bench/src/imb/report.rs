//! What a run found: ratios line by line, their geometric mean and the worst of them, suite by suite.

use super::ImbArgs;
use super::suites::{Suite, SuiteBar};
use crate::format::{Unit, bullets, digits, failed, figure, size};
use crate::library::{Library, LibraryName, Placement};
use crate::machine::MeasuredMachine;
use crate::output::Presented;
use crate::stats::Summary;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What one benchmark took at one length, by library and turn.
pub type Samples = BTreeMap<(Suite, String, Option<u64>), BTreeMap<LibraryName, Vec<f64>>>;

/// How many of the worst lines of a suite are shown.
const SHOWN: usize = 8;

#[derive(Clone, Debug, Serialize)]
pub struct ImbLibraryReport {
    pub name: LibraryName,
    pub version: String,
    pub launcher: String,
}

/// A benchmark at a length.
#[derive(Clone, Debug, Serialize)]
pub struct ImbLine {
    pub name: String,
    pub bytes: Option<u64>,
    pub unit: Unit,
    pub medians: BTreeMap<LibraryName, f64>,
    pub samples: BTreeMap<LibraryName, Vec<f64>>,
    pub best_peer: Option<LibraryName>,
    /// Our time to the best peer's, whatever the unit: below 1 we are faster.
    pub ratio: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SuiteReport {
    pub suite: Suite,
    pub ranks: u32,
    pub bar: Option<SuiteBar>,
    pub geometric_mean: Option<f64>,
    pub lines: Vec<ImbLine>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ImbReport {
    pub machine: MeasuredMachine,
    pub turns: u32,
    /// Most time of a benchmark at one length.
    pub seconds: f64,
    pub took_s: f64,
    pub libraries: Vec<ImbLibraryReport>,
    pub left_out: Vec<String>,
    pub suites: Vec<SuiteReport>,
    pub failures: Vec<String>,
}

impl ImbLibraryReport {
    pub fn of(library: &Library, args: &ImbArgs) -> Self {
        let launcher = library.launch_text(Placement { ranks: args.ranks, bound: true });
        Self { name: library.name, version: library.version.clone(), launcher }
    }
}

impl ImbLine {
    fn of(suite: Suite, name: &str, bytes: Option<u64>, samples: &BTreeMap<LibraryName, Vec<f64>>) -> Self {
        let median = |samples: &Vec<f64>| Some(Summary::of(samples)?.median);
        let medians: BTreeMap<LibraryName, f64> =
            samples.iter().filter_map(|(name, samples)| Some((*name, median(samples)?))).collect();
        let unit = if suite.is_rate() { Unit::Flops } else { Unit::Seconds };
        let time = |value: f64| if suite.is_rate() { 1.0 / value } else { value };
        let peers = medians.iter().filter(|(name, _)| name.is_peer());
        let best = peers.min_by(|a, b| time(*a.1).total_cmp(&time(*b.1))).map(|(name, value)| (*name, *value));
        let ratio = medians.get(&LibraryName::Weft).zip(best).map(|(ours, (_, best))| time(*ours) / time(best));
        Self {
            name: name.into(),
            bytes,
            unit,
            medians,
            samples: samples.clone(),
            best_peer: best.map(|(name, _)| name),
            ratio,
        }
    }

    fn title(&self) -> String {
        match self.bytes {
            Some(bytes) => format!("{}, {}", self.name, size(bytes)),
            None => self.name.clone(),
        }
    }

    fn cell(&self, name: LibraryName) -> String {
        let mark = if self.best_peer == Some(name) { " *" } else { "" };
        self.medians.get(&name).map_or("-".into(), |median| figure(*median, self.unit) + mark)
    }
}

/// `None` of nothing.
fn geometric_mean(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = ratios.map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

impl SuiteReport {
    pub fn of(suite: Suite, ranks: u32, samples: &Samples) -> Self {
        let own = samples.iter().filter(|((of, ..), _)| *of == suite);
        let lines: Vec<ImbLine> =
            own.map(|((_, name, bytes), samples)| ImbLine::of(suite, name, *bytes, samples)).collect();
        let geometric_mean = geometric_mean(lines.iter().filter_map(|line| line.ratio));
        Self { suite, ranks, bar: suite.bar(), geometric_mean, lines }
    }

    /// Lines with a ratio, the worst first.
    fn worst(&self) -> Vec<(f64, &ImbLine)> {
        let mut lines: Vec<(f64, &ImbLine)> = self.lines.iter().filter_map(|line| Some((line.ratio?, line))).collect();
        lines.sort_by(|a, b| b.0.total_cmp(&a.0));
        lines
    }

    fn verdicts(&self) -> String {
        let Some(bar) = self.bar else { return String::new() };
        let verdict = |met: bool| if met { "PASS" } else { "MISS" };
        let mean = self.geometric_mean.map_or("-", |mean| verdict(mean <= bar.mean));
        let mut text = format!("mean <= {} {mean}", bar.mean);
        if let Some(most) = bar.worst {
            let above = self.worst().iter().filter(|(ratio, _)| *ratio > most).count();
            let _ = write!(text, ", none above {most} {}", verdict(above == 0));
            if above > 0 {
                let _ = write!(text, " ({above} are)");
            }
        }
        text
    }

    fn summary(&self) -> Vec<String> {
        let worst = self.worst();
        vec![
            format!("{}, {} rank{}", self.suite.title(), self.ranks, if self.ranks == 1 { "" } else { "s" }),
            worst.len().to_string(),
            self.geometric_mean.map_or("-".into(), digits),
            worst.first().map_or("-".into(), |(ratio, line)| format!("{} ({})", digits(*ratio), line.title())),
            self.verdicts(),
        ]
    }

    /// Benchmark by benchmark: mean and worst over the lengths.
    fn by_benchmark(&self) -> Vec<Vec<String>> {
        let mut names: Vec<&str> = self.lines.iter().map(|line| line.name.as_str()).collect();
        names.dedup();
        let row = |name: &&str| {
            let of = || self.lines.iter().filter(|line| line.name == **name);
            let mean = geometric_mean(of().filter_map(|line| line.ratio))?;
            let worst = of().max_by(|a, b| a.ratio.unwrap_or(0.0).total_cmp(&b.ratio.unwrap_or(0.0)))?;
            let at = worst.bytes.map_or(String::new(), |bytes| format!(" ({})", size(bytes)));
            Some(vec![name.to_string(), digits(mean), format!("{}{at}", digits(worst.ratio?))])
        };
        let head = [self.suite.title(), "mean ratio", "worst"].map(String::from).to_vec();
        std::iter::once(head).chain(names.iter().filter_map(row)).collect()
    }

    /// Single lines: the worst of many, or all of few.
    fn single(&self, libraries: &[LibraryName]) -> Vec<Vec<String>> {
        let few = self.lines.iter().all(|line| line.bytes.is_none()) || self.suite == Suite::Mpi4py;
        let lines: Vec<&ImbLine> = match few {
            true => self.lines.iter().collect(),
            false => self.worst().into_iter().take(SHOWN).map(|(_, line)| line).collect(),
        };
        let first = if few { self.suite.title().to_owned() } else { format!("worst of {}", self.suite.title()) };
        let names = libraries.iter().map(|name| name.title().to_owned());
        let head = std::iter::once(first).chain(names).chain(["ratio".into()]).collect();
        let row = |line: &&ImbLine| {
            let cells = libraries.iter().map(|name| line.cell(*name));
            let ratio = line.ratio.map_or("-".into(), digits);
            std::iter::once(line.title()).chain(cells).chain([ratio]).collect()
        };
        std::iter::once(head).chain(lines.iter().map(row)).collect()
    }
}

impl ImbReport {
    fn heading(&self) -> Vec<String> {
        let mut lines = vec![
            format!("{}, {}", self.machine.text(), self.machine.date),
            format!(
                "median of {} turn(s), by turns, at most {} s for a benchmark and length; {:.0} s in all; load average \
                 before: {}",
                self.turns, self.seconds, self.took_s, self.machine.load_before
            ),
        ];
        let library = |l: &ImbLibraryReport| format!("{}: {}; {}", l.name.title(), l.version, l.launcher);
        lines.extend(self.libraries.iter().map(library));
        lines.extend(self.left_out.iter().cloned());
        if self.libraries.iter().any(|library| library.name == LibraryName::Openmpi) {
            lines.push("Open MPI cannot run Intel's programs and Debian's: they are built for the ABI of MPICH".into());
        }
        lines
    }

    fn tables(&self) -> Vec<Vec<Vec<String>>> {
        let head = ["suite", "lines", "mean ratio", "worst", "bar"].map(String::from).to_vec();
        let mut tables = vec![std::iter::once(head).chain(self.suites.iter().map(SuiteReport::summary)).collect()];
        let libraries: Vec<LibraryName> = self.libraries.iter().map(|library| library.name).collect();
        for suite in &self.suites {
            if suite.suite.intel_program().is_some() {
                tables.push(suite.by_benchmark());
            }
            tables.push(suite.single(&libraries));
        }
        tables
    }

    fn remarks(&self) -> Vec<String> {
        let mut lines = vec![
            "ratio: our time to that of the best other library (*); mean: geometric, over benchmarks and lengths"
                .into(),
        ];
        lines.extend(failed(&self.failures));
        lines
    }
}

impl Presented for ImbReport {
    fn text(&self) -> String {
        let tables = self.tables().iter().map(|table| crate::table::aligned(table) + "\n").collect::<String>();
        format!("{}\n\n{tables}{}\n", self.heading().join("\n"), self.remarks().join("\n"))
    }

    fn markdown(&self) -> String {
        let tables = self.tables().iter().map(|table| crate::table::piped(table) + "\n").collect::<String>();
        format!("{}\n{tables}{}", bullets(&self.heading()), bullets(&self.remarks()))
    }

    fn failed(&self) -> usize {
        self.failures.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(suite: Suite, lines: &[(&str, f64, f64, f64)]) -> Samples {
        let line = |&(name, ours, mpich, intel): &(&str, f64, f64, f64)| {
            let by = [(LibraryName::Weft, ours), (LibraryName::Mpich, mpich), (LibraryName::Intel, intel)];
            ((suite, name.to_owned(), None), by.map(|(name, value)| (name, vec![value])).into())
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn a_suite_is_judged_by_its_geometric_mean_and_its_worst_line() {
        let lines = [("Bcast", 1e-6, 2e-6, 3e-6), ("Reduce", 4e-6, 9e-6, 2e-6)];
        let suite = SuiteReport::of(Suite::Mpi1, 2, &samples(Suite::Mpi1, &lines));
        assert!((suite.geometric_mean.unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(suite.worst()[0].1.name, "Reduce");
        assert_eq!(suite.verdicts(), "mean <= 1 PASS, none above 1.5 MISS (1 are)");
    }

    #[test]
    fn of_rates_more_is_better() {
        let suite = SuiteReport::of(Suite::Xdlu, 2, &samples(Suite::Xdlu, &[("n=500", 5e9, 4e9, 3e9)]));
        assert!((suite.lines[0].ratio.unwrap() - 0.8).abs() < 1e-9);
        assert_eq!(suite.lines[0].best_peer, Some(LibraryName::Mpich));
        assert_eq!(suite.verdicts(), "mean <= 1 PASS");
    }

    #[test]
    fn without_a_peer_nothing_is_claimed() {
        let mut samples = samples(Suite::Mpi1, &[("Bcast", 1e-6, 2e-6, 3e-6)]);
        samples.values_mut().for_each(|by| by.retain(|name, _| *name == LibraryName::Weft));
        let suite = SuiteReport::of(Suite::Mpi1, 2, &samples);
        assert_eq!((suite.geometric_mean, suite.worst().len()), (None, 0));
        assert!(suite.verdicts().starts_with("mean <= 1 -"), "{}", suite.verdicts());
    }
}
