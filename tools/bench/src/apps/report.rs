//! Table 1 and figure 7, as text, Markdown and JSON.

use super::build::AppBuild;
use super::table::{AppInput, PaperApp};
use crate::format::{Unit, bullets, columns, digits, failed, figure, markdown};
use crate::kernels::Via;
use crate::kernels::kernel::KernelName;
use crate::machine::MeasuredMachine;
use crate::model::{Prediction, ThroughputCurve, Volume, measured_efficiency, predict, required_throughput};
use crate::output::Presented;
use crate::stats::Summary;
use serde::Serialize;

/// An application on all processes by one device.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceReport {
    pub via: Via,
    /// One per turn.
    pub parallel_s: Vec<f64>,
    pub efficiency: Option<f64>,
    pub predicted: Option<Prediction>,
}

#[derive(Clone, Debug, Serialize)]
pub struct AppReport {
    pub name: &'static str,
    pub title: &'static str,
    pub arguments: String,
    pub patterns: &'static [KernelName],
    /// One process, one per turn.
    pub sequential_s: Vec<f64>,
    /// What all ranks send in one run on all processes, its beginning and end included.
    pub volume: Volume,
    pub devices: Vec<DeviceReport>,
}

#[derive(Clone, Debug, Serialize)]
pub struct AppsReport {
    pub machine: MeasuredMachine,
    pub command: String,
    pub turns: u32,
    pub processes: u32,
    pub input: AppInput,
    pub interface: AppBuild,
    pub took_s: f64,
    /// One-minute load average after the run, which itself is part of it.
    pub load_after: f64,
    pub applications: Vec<AppReport>,
    pub left_out: Vec<String>,
    pub failures: Vec<String>,
    /// The user has ended it: there are the applications that had times by then.
    pub interrupted: bool,
}

impl AppReport {
    pub fn new(app: &PaperApp, input: AppInput, devices: &[Via]) -> Self {
        let device = |via: &Via| DeviceReport { via: *via, parallel_s: Vec::new(), efficiency: None, predicted: None };
        Self {
            name: app.name,
            title: app.title,
            arguments: app.arguments(input).collect::<Vec<_>>().join(" "),
            patterns: app.patterns,
            sequential_s: Vec::new(),
            volume: Volume::default(),
            devices: devices.iter().map(device).collect(),
        }
    }

    /// Whether any run has given a time.
    pub fn has_times(&self) -> bool {
        !self.sequential_s.is_empty() || self.devices.iter().any(|device| !device.parallel_s.is_empty())
    }

    pub fn sequential(&self) -> Option<Summary> {
        Summary::of(&self.sequential_s)
    }

    /// Works out efficiencies, with the curves of each device where it has them.
    pub fn predict(&mut self, processes: u32, curves: impl Fn(Via) -> Option<Vec<ThroughputCurve>>) {
        let Some(alone) = self.sequential() else { return };
        for device in &mut self.devices {
            let together = Summary::of(&device.parallel_s);
            device.efficiency = together.map(|s| measured_efficiency(alone.median, processes, s.median));
            let curves = curves(device.via);
            let predicted = |curves: Vec<ThroughputCurve>| {
                predict(alone.median, processes, self.volume, &curves.iter().collect::<Vec<_>>())
            };
            device.predicted = curves.map(predicted);
        }
    }

    fn pattern_text(&self) -> String {
        self.patterns.iter().map(|kernel| kernel.word()).collect::<Vec<_>>().join(" + ")
    }
}

impl AppsReport {
    fn heading(&self) -> Vec<String> {
        vec![
            format!("{}, {}", self.machine.text(), self.machine.date),
            format!(
                "{}: median of {} turn(s), ± half the range; {:.0} s in all; load average before: {}, after: {}",
                self.command, self.turns, self.took_s, self.machine.load_before, self.load_after
            ),
        ]
    }

    fn characteristics(&self) -> Vec<Vec<String>> {
        let head = ["application", "input", "pattern", "sequential", "volume", "messages", "average", "linear needs"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for app in &self.applications {
            let time = |s: Summary| s.text(Unit::Seconds);
            rows.push(vec![
                app.title.into(),
                app.arguments.clone(),
                app.pattern_text(),
                app.sequential().map_or_else(|| "-".into(), time),
                format!("{} MB", digits(app.volume.bytes / 1e6)),
                format!("{} k", digits(app.volume.messages / 1e3)),
                format!("{} kB", digits(app.volume.message_bytes() / 1e3)),
                app.sequential().map_or_else(|| "-".into(), |s| self.needed_text(s.median, app.volume)),
            ]);
        }
        rows
    }

    /// What all have to send in a second for a linear speed-up.
    fn needed_text(&self, sequential_s: f64, volume: Volume) -> String {
        figure(required_throughput(sequential_s, self.processes, volume), Unit::BytesPerSecond)
    }

    fn efficiencies(&self) -> Vec<Vec<String>> {
        let vias = self.applications.first().map_or(&[][..], |app| &app.devices);
        let head = vias.iter().map(|device| format!("{} (model)", device.via.title()));
        let mut rows = vec![std::iter::once("application".to_owned()).chain(head).collect::<Vec<_>>()];
        let percent = |share: Option<f64>| share.map_or_else(|| "-".into(), |share| format!("{:.0}%", 100.0 * share));
        for app in &self.applications {
            let cells = app.devices.iter().map(|device| {
                let predicted = device.predicted.map(|prediction| prediction.efficiency);
                format!("{} ({})", percent(device.efficiency), percent(predicted))
            });
            rows.push(std::iter::once(app.title.to_owned()).chain(cells).collect());
        }
        rows
    }

    fn tables(&self) -> [(String, Vec<Vec<String>>); 2] {
        [
            (format!("table 1: what they take, and send on {} processes", self.processes), self.characteristics()),
            (format!("figure 7: efficiency on {} processes", self.processes), self.efficiencies()),
        ]
    }

    fn remarks(&self) -> Vec<String> {
        let early = self.interrupted.then(|| "interrupted: not all was measured in all turns".to_owned());
        self.left_out.iter().cloned().chain(failed(&self.failures)).chain(early).collect()
    }
}

impl Presented for AppsReport {
    fn text(&self) -> String {
        let tables = self.tables().map(|(title, table)| format!("\n{title}\n{}", columns(&table)));
        format!("{}\n{}\n{}\n", self.heading().join("\n"), tables.concat(), self.remarks().join("\n"))
    }

    fn markdown(&self) -> String {
        let tables = self.tables().map(|(title, table)| format!("\n{title}\n\n{}", markdown(&table)));
        bullets(&self.heading()) + &tables.concat() + "\n" + &bullets(&self.remarks())
    }

    fn failed(&self) -> usize {
        self.failures.len()
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::table::APPS;
    use super::*;

    pub fn sample_report() -> AppsReport {
        let mut app = AppReport::new(&APPS[0], AppInput::Paper, &[Via::Shm, Via::Tcp]);
        app.sequential_s = vec![1.0, 1.0, 9.0];
        app.devices[0].parallel_s = vec![0.625];
        app.volume = Volume { bytes: 20e6, messages: 2000.0 };
        let curve =
            |via| if via == Via::Shm { ThroughputCurve::new([(1.0, 2e8)]).map(|curve| vec![curve]) } else { None };
        app.predict(2, curve);
        AppsReport {
            machine: MeasuredMachine::default(),
            command: "weft bench apps".into(),
            turns: 3,
            processes: 2,
            input: AppInput::Paper,
            interface: AppBuild::Pvm,
            took_s: 1.0,
            load_after: 0.0,
            applications: vec![app],
            left_out: vec!["SOR is left out: there is no program `sor`".into()],
            failures: vec!["Integer Sort, tcp: no".into()],
            interrupted: false,
        }
    }

    #[test]
    fn both_tables_have_a_row_for_each_application() {
        let text = sample_report().markdown();
        let row = "| Integer Sort | --class P --way keys | personalised | 1.00 s ±400% | 20.0 MB | 2.00 k | 10.0 kB | 40.0 MB/s |";
        assert!(text.contains(row), "{text}");
        // 20 MB at 200 MB/s are 0.1 s, twice of which stand beside one second.
        assert!(text.contains("| Integer Sort | 80% (83%) | - (-) |"), "{text}");
        assert!(text.contains("- SOR is left out: ") && text.contains("- failed: Integer Sort, tcp: no"), "{text}");
        assert!(sample_report().text().contains("shared memory (model)"));
        assert_eq!(sample_report().failed(), 1);
    }
}
