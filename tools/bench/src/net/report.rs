//! What was measured, held against the bars, as text, Markdown and JSON.

mod matrix;

use super::lines::{NetBar, NetLine, PEERS, Wire};
use super::ways::NetWay;
use crate::format::{Unit, bullets, digits, failed, tally};
use crate::library::LibraryName;
use crate::machine::MeasuredMachine;
use crate::output::Presented;
use crate::state::{self, CacheState, Sample};
use crate::stats::Summary;
use crate::table::{aligned, piped};
use serde::Serialize;
use std::collections::BTreeMap;

/// Samples by way, one per turn.
pub type Samples = BTreeMap<NetWay, Vec<Sample>>;

#[derive(Clone, Debug, Serialize)]
pub struct NetReport {
    /// Of this structure; changes when a field changes its meaning.
    pub format: u32,
    pub machine: MeasuredMachine,
    pub hosts: usize,
    /// The command that made this.
    pub command: String,
    /// Asked for. Lines that were not measured in one state so often took more.
    pub turns: u32,
    pub turns_taken: u32,
    pub seconds: f64,
    pub took_s: f64,
    /// The shortest on both sides of a sample; what begins within `state::NEAR` times this is called near.
    pub shortest_line_ns: Option<f64>,
    pub ways: Vec<WayReport>,
    pub left_out: Vec<NetLeftOut>,
    pub lines: Vec<NetLineReport>,
    pub failures: Vec<String>,
}

/// A column.
#[derive(Clone, Debug, Serialize)]
pub struct WayReport {
    pub way: NetWay,
    pub title: &'static str,
    /// The name and version that the loaded library gave itself.
    pub version: Option<String>,
    pub command: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct NetLeftOut {
    pub name: LibraryName,
    pub reason: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct NetBarReport {
    pub text: String,
    /// As the bar means it. `None`: it, or what it is held against, was not measured.
    pub ratio: Option<f64>,
    pub met: Option<bool>,
}

impl NetBarReport {
    fn verdict(&self) -> String {
        match self.ratio.zip(self.met) {
            Some((ratio, true)) => format!("{}: {} PASS", self.text, digits(ratio)),
            Some((ratio, false)) => format!("{}: {} MISS", self.text, digits(ratio)),
            None => format!("{} not measured", self.text),
        }
    }
}

/// A line and what each way reached. Values are in base units: seconds, bytes per second, per second, times.
#[derive(Clone, Debug, Serialize)]
pub struct NetLineReport {
    pub id: String,
    pub title: String,
    pub wire: Wire,
    pub unit: Unit,
    /// In which state the samples that count were taken.
    pub state: CacheState,
    /// Samples count whose cache lines both lie between this and `state::NEAR` times this; none: all samples count.
    pub shared_from_ns: Option<f64>,
    /// All there are, one per turn and way.
    pub samples: Samples,
    /// The median of those that count.
    pub medians: BTreeMap<NetWay, f64>,
    pub best_peer: Option<NetWay>,
    pub bars: Vec<NetBarReport>,
}

impl NetLineReport {
    /// Judges the samples of `line` in a run of so many `turns` with this shortest cache line.
    pub fn of(line: &NetLine, samples: &Samples, turns: u32, shortest_ns: f64) -> Self {
        let all: Vec<&[Sample]> = samples.values().map(Vec::as_slice).collect();
        let shared_from_ns = state::shared_from_ns(&all, turns);
        let mut report = Self {
            id: line.id.clone(),
            title: line.title.clone(),
            wire: line.wire,
            unit: line.unit,
            state: state::named(shared_from_ns, shortest_ns),
            shared_from_ns,
            samples: samples.clone(),
            medians: Default::default(),
            best_peer: None,
            bars: Vec::new(),
        };
        let median = |way: &NetWay| Some((*way, report.summary(*way)?.median));
        report.medians = samples.keys().filter_map(median).collect();
        report.best_peer = report.best(PEERS);
        report.bars = line.bars.iter().map(|bar| report.judge(*bar)).collect();
        report
    }

    /// Who of these has the best median.
    fn best(&self, ways: &[NetWay]) -> Option<NetWay> {
        let measured = ways.iter().filter_map(|way| Some((*way, *self.medians.get(way)?)));
        let better = |a: &(NetWay, f64), b: &(NetWay, f64)| match self.unit.higher_is_better() {
            true => b.1.total_cmp(&a.1),
            false => a.1.total_cmp(&b.1),
        };
        measured.min_by(better).map(|(way, _)| way)
    }

    fn judge(&self, bar: NetBar) -> NetBarReport {
        let median = |way: Option<NetWay>| way.and_then(|way| self.medians.get(&way)).filter(|median| **median > 0.0);
        let both = median(Some(bar.ours)).zip(median(self.best(bar.theirs)));
        let ratio = both.map(|(ours, best)| bar.ratio(self.unit, *ours, *best));
        NetBarReport { text: bar.text(), ratio, met: ratio.map(|ratio| bar.is_met(ratio)) }
    }

    fn counted(&self, way: NetWay) -> impl Iterator<Item = &Sample> {
        let samples = self.samples.get(&way).map_or(&[][..], Vec::as_slice);
        state::counted(samples, self.shared_from_ns)
    }

    fn summary(&self, way: NetWay) -> Option<Summary> {
        Summary::of(&self.counted(way).map(|sample| sample.value).collect::<Vec<_>>())
    }

    fn cell(&self, way: NetWay) -> String {
        let Some(summary) = self.summary(way) else { return String::new() };
        let mark = if self.best_peer == Some(way) { " *" } else { "" };
        summary.text(self.unit) + mark
    }

    /// How many samples count, and in which state they were taken.
    fn samples_text(&self) -> String {
        let counts = self.samples.keys().map(|way| self.counted(*way).count());
        state::counts_text(counts, self.state, self.shared_from_ns).unwrap_or_else(|| "failed".into())
    }

    /// Names of ways have commas.
    fn bars_text(&self) -> String {
        self.bars.iter().map(NetBarReport::verdict).collect::<Vec<_>>().join("; ")
    }
}

impl NetReport {
    /// A table: its heading, then a row per line; columns nobody was measured in are left away.
    fn rows(&self, wire: Wire) -> Vec<Vec<String>> {
        let of_table = |line: &&NetLineReport| line.wire == wire && matrix::pair(&line.id).is_none();
        let lines: Vec<&NetLineReport> = self.lines.iter().filter(of_table).collect();
        let measured = |way: &NetWay| lines.iter().any(|line| line.samples.contains_key(way));
        let ways: Vec<NetWay> = NetWay::ALL.into_iter().filter(measured).collect();
        let mut head = vec!["what".to_owned()];
        head.extend(ways.iter().map(|way| way.title().to_owned()));
        head.extend(["samples", "must be"].map(str::to_owned));
        let row = |line: &&NetLineReport| {
            let mut row = vec![line.title.clone()];
            row.extend(ways.iter().map(|way| line.cell(*way)));
            row.extend([line.samples_text(), line.bars_text()]);
            row
        };
        std::iter::once(head).chain(lines.iter().map(row)).collect()
    }

    /// Those that have rows, with their titles.
    fn tables(&self) -> impl Iterator<Item = (String, Vec<Vec<String>>)> {
        let tables = Wire::ALL.into_iter().map(|wire| (wire.title().to_owned(), self.rows(wire)));
        tables.filter(|(_, rows)| rows.len() > 1).chain(matrix::tables(&self.lines))
    }

    fn heading(&self) -> Vec<String> {
        let more = state::more_turns(self.turns, self.turns_taken, "lines");
        let mut lines = vec![
            format!("{}, {}", self.machine.text(), self.machine.date),
            match self.hosts {
                2 => "two network namespaces, one veth pair between them, a rank and a core each".into(),
                hosts => format!(
                    "{hosts} network namespaces, a veth pair from each into one bridge, a rank each, {} processor(s) for all",
                    self.machine.cpus_used.len()
                ),
            },
            format!(
                "median of {} turns{more} of {} s, by turns, ± half the range; * the best MPICH; {:.0} s in all; \
                 load average before: {}",
                self.turns, self.seconds, self.took_s, self.machine.load_before
            ),
        ];
        for way in &self.ways {
            let version = way.version.as_ref().map_or(String::new(), |version| format!("{version}; "));
            lines.push(format!("{}: {version}{}", way.title, way.command));
        }
        lines.extend(self.left_out.iter().map(|l| format!("{} is left out: {}", l.name.title(), l.reason)));
        lines.extend(state::legend("samples", self.shortest_line_ns));
        lines
    }

    fn remarks(&self) -> Vec<String> {
        let bars = self.lines.iter().flat_map(|line| line.bars.iter().map(|bar| (&*line.id, &*bar.text, bar.met)));
        let mut lines = tally(bars);
        lines.extend(failed(&self.failures));
        lines
    }
}

impl Presented for NetReport {
    /// For a terminal.
    fn text(&self) -> String {
        let tables = self.tables().map(|(title, rows)| format!("{title}\n\n{}\n", aligned(&rows)));
        let tables = tables.collect::<String>();
        format!("weft bench net\n{}\n\n{tables}{}\n", self.heading().join("\n"), self.remarks().join("\n"))
    }

    /// For PERFORMANCE.md.
    fn markdown(&self) -> String {
        let table = |(title, rows): (String, Vec<Vec<String>>)| {
            let (first, rest) = title.split_at(1);
            format!("{}{rest}:\n\n{}\n", first.to_uppercase(), piped(&rows))
        };
        let tables = self.tables().map(table).collect::<String>();
        format!("`{}`\n\n{}\n{tables}{}", self.command, bullets(&self.heading()), bullets(&self.remarks()))
    }

    fn failed(&self) -> usize {
        self.failures.len()
    }
}

/// Every line with its bars.
pub fn list(lines: &[NetLine]) -> String {
    let bars = |line: &NetLine| line.bars.iter().map(|bar| bar.text()).collect::<Vec<_>>().join("; ");
    let row = |line: &NetLine| vec![line.id.clone(), line.title.clone(), bars(line)];
    let head = ["name", "what", "must be"].map(str::to_owned).to_vec();
    aligned(&std::iter::once(head).chain(lines.iter().map(row)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    fn report(id: &str, values: &[(NetWay, f64)]) -> NetLineReport {
        let line = lines::all().into_iter().find(|line| line.id == id).expect("a line");
        let samples = values.iter().map(|(way, value)| (*way, vec![Sample::plain(*value); 3])).collect();
        NetLineReport::of(&line, &samples, 3, f64::INFINITY)
    }

    #[test]
    fn a_bar_is_held_against_the_better_setting_of_the_peer() {
        let short = [(NetWay::WeftXdp, 1.2e-6), (NetWay::MpichOfi, 5e-6), (NetWay::MpichUcx, 4e-6)];
        let got = report("xdp/latency/8", &short);
        assert_eq!(got.best_peer, Some(NetWay::MpichUcx));
        assert_eq!(got.bars_text(), "xdp <= 0.3 x best MPICH: 0.300 PASS");
        let rates = [(NetWay::WeftXdp, 1.9e6), (NetWay::MpichOfi, 0.4e6), (NetWay::MpichUcx, 0.3e6)];
        let got = report("xdp/rate/8", &rates);
        assert_eq!(
            (got.best_peer, got.bars_text().as_str()),
            (Some(NetWay::MpichOfi), "xdp >= 5 x best MPICH: 4.75 MISS")
        );
    }

    #[test]
    fn a_line_may_have_several_bars_each_against_a_column_of_its_own() {
        let ping = [(NetWay::WeftSockLane, 3.4e-6), (NetWay::KernelTcp, 37e-6), (NetWay::PolledTcp, 5.7e-6)];
        let got = report("xdp/sock/ping", &ping);
        assert_eq!(got.best_peer, None);
        let text = "sock, lanes <= 0.1 x kernel TCP: 0.092 PASS; sock, lanes <= 0.5 x TCP polled: 0.596 MISS";
        assert_eq!(got.bars_text(), text);
        let stream = [(NetWay::WeftSock, 2.6e9), (NetWay::WeftSockLane, 0.9e9), (NetWay::KernelTcp, 1e9)];
        let text = "sock >= 1 x kernel TCP: 2.60 PASS; sock, lanes >= 1 x kernel TCP: 0.900 MISS";
        assert_eq!(report("xdp/sock/stream", &stream).bars_text(), text);
    }

    #[test]
    fn without_the_peer_nothing_is_claimed() {
        let got = report("xdp/latency/8", &[(NetWay::WeftXdp, 1.2e-6)]);
        assert_eq!((got.best_peer, got.bars[0].met), (None, None));
        assert_eq!(got.bars_text(), "xdp <= 0.3 x best MPICH not measured");
    }

    #[test]
    fn each_state_of_the_cable_has_a_table_with_the_columns_that_were_measured() {
        let long = [(NetWay::WeftDefault, 30e-6), (NetWay::MpichUcx, 25e-6)];
        let report = NetReport {
            format: 2,
            hosts: 2,
            machine: MeasuredMachine::default(),
            command: "weft bench net".into(),
            turns: 3,
            turns_taken: 3,
            seconds: 1.0,
            took_s: 1.0,
            shortest_line_ns: None,
            ways: Vec::new(),
            left_out: Vec::new(),
            lines: vec![report("plain/latency/65536", &long), report("xdp/latency/8", &[(NetWay::WeftXdp, 1e-6)])],
            failures: vec!["xdp/barrier, Weft xdp: no".into()],
        };
        let text = report.markdown();
        assert!(text.contains("The bare cable:\n\n| what | Weft default | MPICH ucx | samples | must be |"), "{text}");
        assert!(text.contains("| one way 64 KiB | 30.0 us ±0% | 25.0 us ±0% \\* | 3 any | default >= 1 x"), "{text}");
        assert!(text.contains("both ends:\n\n| what | Weft xdp | samples | must be |"), "{text}");
        let end = "- 0 of 2 bars met, 1 not measured\n- missed: plain/latency/65536: default >= 1 x best MPICH\n\
                   - failed: xdp/barrier, Weft xdp: no\n";
        assert!(text.ends_with(end), "{text}");
        assert!(report.text().contains("the bare cable\n\nwhat"), "{}", report.text());
    }
}
