//! The curves, as text, Markdown and JSON.

use super::kernel::KernelName;
use super::via::Via;
use crate::format::{bullets, failed, size};
use crate::limits::Limit;
use crate::machine::MeasuredMachine;
use crate::output::Presented;
use crate::stats::Summary;
use serde::Serialize;
use std::fmt::Write;

/// A kernel on a device against the size of messages.
#[derive(Clone, Debug, Serialize)]
pub struct KernelCurve {
    pub kernel: KernelName,
    pub via: Via,
    pub processes: u32,
    pub points: Vec<KernelPoint>,
    #[serde(skip)]
    pub has_failed: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct KernelPoint {
    pub bytes: u32,
    /// One per turn, in the unit of the kernel.
    pub samples: Vec<f64>,
}

impl KernelCurve {
    pub fn new(kernel: KernelName, via: Via, processes: u32, sizes: &[u32]) -> Self {
        let points = sizes.iter().map(|bytes| KernelPoint { bytes: *bytes, samples: Vec::new() }).collect();
        Self { kernel, via, processes, points, has_failed: false }
    }

    /// The values of one turn, in the order of the sizes.
    pub fn add(&mut self, values: &[f64]) {
        self.points.iter_mut().zip(values).for_each(|(point, value)| point.samples.push(*value));
    }

    /// (bytes, median) of what was measured.
    pub fn medians(&self) -> Vec<(f64, f64)> {
        let median = |point: &KernelPoint| Some((f64::from(point.bytes), Summary::of(&point.samples)?.median));
        self.points.iter().filter_map(median).collect()
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct KernelsReport {
    pub machine: MeasuredMachine,
    pub command: String,
    pub turns: u32,
    pub seconds: f64,
    pub took_s: f64,
    /// One-minute load average after the run, which itself is part of it.
    pub load_after: f64,
    pub curves: Vec<KernelCurve>,
    pub limits: Vec<Limit>,
    pub left_out: Option<String>,
    pub failures: Vec<String>,
}

impl KernelsReport {
    pub fn curves_of(&self, kernel: KernelName) -> impl Iterator<Item = &KernelCurve> {
        self.curves.iter().filter(move |curve| curve.kernel == kernel)
    }

    pub fn heading(&self) -> Vec<String> {
        vec![
            format!("{}, {}", self.machine.text(), self.machine.date),
            format!(
                "{}: median of {} turn(s) of {} s, by turns, ± half the range; {:.0} s in all; load average before: {}, \
                 after: {}",
                self.command, self.turns, self.seconds, self.took_s, self.machine.load_before, self.load_after
            ),
        ]
    }

    /// The table of a kernel: a row for each size, a column for each device and number of processes.
    fn table(&self, kernel: KernelName) -> Vec<Vec<String>> {
        let curves: Vec<&KernelCurve> = self.curves_of(kernel).collect();
        let column = |curve: &&KernelCurve| format!("{} {}", curve.via.word(), curve.processes);
        let mut rows = vec![std::iter::once("bytes".to_owned()).chain(curves.iter().map(column)).collect::<Vec<_>>()];
        for at in 0..curves.first().map_or(0, |curve| curve.points.len()) {
            let cell = |curve: &&KernelCurve| match Summary::of(&curve.points[at].samples) {
                Some(summary) => summary.text(kernel.unit()),
                None => "-".to_owned(),
            };
            let head = size(curves[0].points[at].bytes.into());
            rows.push(std::iter::once(head).chain(curves.iter().map(cell)).collect());
        }
        rows
    }

    fn tables(&self) -> impl Iterator<Item = (String, Vec<Vec<String>>)> {
        let measured = KernelName::ALL.into_iter().filter(|kernel| self.curves_of(*kernel).next().is_some());
        measured.map(|kernel| (format!("figure {}: {}", kernel.figure(), kernel.title()), self.table(kernel)))
    }

    fn remarks(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.limits.iter().filter_map(Limit::text).collect();
        lines.extend(self.left_out.clone());
        lines.extend(failed(&self.failures));
        lines
    }
}

impl Presented for KernelsReport {
    fn text(&self) -> String {
        let mut text = self.heading().join("\n") + "\n";
        for (title, table) in self.tables() {
            let _ = write!(text, "\n{title}\n{}", crate::format::columns(&table));
        }
        text + "\n" + &self.remarks().join("\n") + "\n"
    }

    fn markdown(&self) -> String {
        let mut text = bullets(&self.heading());
        for (title, table) in self.tables() {
            let _ = write!(text, "\n{title}\n\n{}", crate::format::markdown(&table));
        }
        text + "\n" + &bullets(&self.remarks())
    }

    fn failed(&self) -> usize {
        self.failures.len()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn sample_report() -> KernelsReport {
        let curve = |kernel: KernelName, via, values: [f64; 2]| {
            let mut curve = KernelCurve::new(kernel, via, 2, &[64, 4096]);
            curve.add(&values);
            curve
        };
        KernelsReport {
            machine: MeasuredMachine::default(),
            command: "weft bench kernels".into(),
            turns: 1,
            seconds: 0.1,
            took_s: 2.0,
            load_after: 1.0,
            curves: vec![
                curve(KernelName::RpcLatency, Via::Shm, [400e-9, 1e-6]),
                curve(KernelName::RpcLatency, Via::Tcp, [20e-6, 30e-6]),
                curve(KernelName::Ring, Via::Shm, [1e9, 5e9]),
            ],
            limits: Vec::new(),
            left_out: Some("devices between hosts are left out: no".into()),
            failures: vec!["ring, udp, 2 processes: no".into()],
        }
    }

    #[test]
    fn every_kernel_has_a_table_with_a_column_for_each_device() {
        let report = sample_report();
        let text = report.markdown();
        assert!(
            text.contains("| bytes | shm 2 | tcp 2 |\n|---|--:|--:|\n| 64 B | 400 ns ±0% | 20.0 us ±0% |"),
            "{text}"
        );
        assert!(text.contains("figure 4: ring, all send\n\n| bytes | shm 2 |"), "{text}");
        assert!(text.contains("- failed: ring, udp, 2 processes: no") && !text.contains("figure 3"), "{text}");
        assert!(report.text().contains("left out: no"));
        assert_eq!(report.failed(), 1);
    }
}
