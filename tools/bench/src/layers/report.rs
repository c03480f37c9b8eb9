//! The table of the layers, as text, Markdown and JSON.

use super::rows::{Column, LayerSizes, Row};
use crate::format::{bullets, columns, failed, markdown};
use crate::limits::Limit;
use crate::machine::MeasuredMachine;
use crate::output::Presented;
use crate::state::{self, CacheState, Sample};
use crate::stats::Summary;
use serde::Serialize;
use std::collections::BTreeMap;

/// Samples by column and row, one per turn.
pub type Samples = BTreeMap<(Column, Row), Vec<Sample>>;

/// In which state the samples of a column that count were taken.
#[derive(Clone, Debug, Serialize)]
pub struct ColumnReport {
    pub id: Column,
    pub state: CacheState,
    /// Samples between two cores count whose cache lines lie between this and `state::NEAR` times this; none: all.
    pub shared_from_ns: Option<f64>,
}

/// All samples of a row, by column.
#[derive(Clone, Debug, Serialize)]
pub struct RowReport {
    pub id: Row,
    pub title: &'static str,
    pub samples: BTreeMap<Column, Vec<Sample>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LayersReport {
    pub machine: MeasuredMachine,
    /// Asked for. Columns that were not measured in one state so often took more.
    pub turns: u32,
    pub turns_taken: u32,
    pub seconds: f64,
    pub bytes: LayerSizes,
    /// The devices that led from one host to the other, where there were two.
    pub between: Option<String>,
    pub took_s: f64,
    pub shortest_line_ns: Option<f64>,
    pub columns: Vec<ColumnReport>,
    pub rows: Vec<RowReport>,
    pub limits: Vec<Limit>,
    pub failures: Vec<String>,
}

/// The samples of the rows for which it matters how near the cores are.
pub fn between_cores(column: Column, samples: &Samples) -> Vec<&[Sample]> {
    let rows = Row::ALL.into_iter().filter(|row| !row.is_to_self());
    rows.filter_map(|row| samples.get(&(column, row))).map(Vec::as_slice).collect()
}

impl ColumnReport {
    pub fn of(column: Column, samples: &Samples, turns: u32, shortest_ns: f64) -> Self {
        let shared_from_ns = state::shared_from_ns(&between_cores(column, samples), turns);
        Self { id: column, state: state::named(shared_from_ns, shortest_ns), shared_from_ns }
    }

    /// The samples of a row that count here.
    fn counted(&self, row: &RowReport) -> Vec<f64> {
        let samples = row.samples.get(&self.id).map_or(&[][..], Vec::as_slice);
        let from_ns = if row.id.is_to_self() { None } else { self.shared_from_ns };
        state::counted(samples, from_ns).map(|sample| sample.value).collect()
    }

    /// How many samples count, and in which state they were taken.
    fn text(&self, rows: &[RowReport]) -> String {
        let measured = rows.iter().filter(|row| !row.id.is_to_self() && row.samples.contains_key(&self.id));
        let counts = measured.map(|row| self.counted(row).len());
        state::counts_text(counts, self.state, self.shared_from_ns).unwrap_or_else(|| "failed".into())
    }
}

impl RowReport {
    pub fn of(row: Row, samples: &Samples) -> Self {
        let own = samples.iter().filter(|((_, of), _)| *of == row);
        let samples = own.map(|((column, _), samples)| (*column, samples.clone())).collect();
        Self { id: row, title: row.title(), samples }
    }
}

impl LayersReport {
    fn cell(&self, row: &RowReport, column: &ColumnReport) -> String {
        let Some(summary) = Summary::of(&column.counted(row)) else { return "-".into() };
        summary.text(column.id.unit())
    }

    /// The table: layers, and in which state each column was measured.
    fn table(&self) -> Vec<Vec<String>> {
        let head = self.columns.iter().map(|column| column.id.title(self.bytes));
        let mut rows = vec![std::iter::once("layer".to_owned()).chain(head).collect::<Vec<_>>()];
        for row in &self.rows {
            let cells = self.columns.iter().map(|column| self.cell(row, column));
            rows.push(std::iter::once(row.title.to_owned()).chain(cells).collect());
        }
        let samples = self.columns.iter().map(|column| column.text(&self.rows));
        rows.push(std::iter::once("samples".to_owned()).chain(samples).collect());
        rows
    }

    /// The machine under it.
    fn limits(&self) -> Vec<String> {
        self.limits.iter().filter_map(Limit::text).collect()
    }

    fn heading(&self) -> Vec<String> {
        let more = state::more_turns(self.turns, self.turns_taken, "columns");
        let between = self.between.iter().map(|devices| format!("; between two hosts by {devices}"));
        vec![
            format!("{}, {}{}", self.machine.text(), self.machine.date, between.collect::<String>()),
            format!(
                "median of {} turns{more} of {} s, by turns, ± half the range; {:.0} s in all; load average before: {}",
                self.turns, self.seconds, self.took_s, self.machine.load_before
            ),
        ]
    }

    fn remarks(&self) -> Vec<String> {
        let mut lines = vec![
            "one way: half of a ping-pong; exchange: both send, then both receive, and the bytes of both count"
                .to_owned(),
        ];
        lines.extend(state::legend("samples between two processes", self.shortest_line_ns));
        lines.extend(failed(&self.failures));
        lines
    }
}

impl Presented for LayersReport {
    fn text(&self) -> String {
        let text = self.heading().join("\n") + "\n\n" + &columns(&self.table());
        text + "\n" + &self.limits().join("\n") + "\n\n" + &self.remarks().join("\n") + "\n"
    }

    fn markdown(&self) -> String {
        let text = bullets(&self.heading()) + &bullets(&self.limits()) + "\n" + &markdown(&self.table());
        text + "\n" + &bullets(&self.remarks())
    }

    fn failed(&self) -> usize {
        self.failures.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(value: f64, line_ns: f64) -> Sample {
        Sample { value, line_ns_before: Some(line_ns), line_ns_after: Some(line_ns) }
    }

    #[test]
    fn rows_of_a_column_are_compared_in_one_state_and_those_to_self_in_any() {
        let mut samples = Samples::new();
        samples.insert((Column::Pingpong, Row::Raw), vec![beside(60e-9, 60.0), beside(280e-9, 280.0)]);
        samples.insert((Column::Pingpong, Row::Tcp), vec![beside(20e-6, 61.0), beside(50e-6, 281.0)]);
        samples.insert((Column::Pingpong, Row::SocketSelf), vec![Sample::plain(90e-9), Sample::plain(92e-9)]);
        let report = LayersReport {
            machine: MeasuredMachine::default(),
            turns: 1,
            turns_taken: 2,
            seconds: 0.1,
            bytes: LayerSizes { short: 8, long: 1 << 16 },
            between: Some("udp".into()),
            took_s: 1.0,
            shortest_line_ns: Some(60.0),
            columns: Column::ALL.map(|column| ColumnReport::of(column, &samples, 1, 60.0)).to_vec(),
            rows: Row::ALL.map(|row| RowReport::of(row, &samples)).to_vec(),
            limits: Vec::new(),
            failures: vec!["MPI, exchange 8 B: no".into()],
        };
        let text = report.markdown();
        assert!(text.contains("| raw | 60.0 ns ±0% | - | - | - |"), "{text}");
        assert!(text.contains("| kernel TCP | 20.0 us ±0% |"), "{text}");
        assert!(text.contains("| socket to self | 91.0 ns ±1% |"), "{text}");
        assert!(text.contains("| samples | 1 near, 60 ns | failed |"), "{text}");
        assert!(text.contains("- failed: MPI, exchange 8 B: no"), "{text}");
        let text = report.text();
        assert!(text.contains("one way 64 KiB") && text.contains("between two hosts by udp"), "{text}");
    }
}
