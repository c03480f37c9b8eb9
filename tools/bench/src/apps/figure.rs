//! Figure 7: a group of bars for each application, a bar for each device; a spike is what the model says.

use super::report::{AppReport, AppsReport};
use crate::chart::{BarGroup, ChartText, GroupedBar, LOOKS, bars};
use crate::kernels::Via;

/// The picture.
pub fn svg(report: &AppsReport) -> String {
    let bar = |device: &super::report::DeviceReport| GroupedBar {
        look: LOOKS[device.via as usize],
        share: device.efficiency,
        spike: device.predicted.map(|prediction| prediction.efficiency),
    };
    let group = |app: &AppReport| BarGroup { title: app.title.into(), bars: app.devices.iter().map(bar).collect() };
    let devices = report.applications.first().map_or(&[][..], |app| &app.devices);
    let name = |via: Via| (LOOKS[via as usize], via.title().to_owned());
    let chart = ChartText {
        title: format!(
            "Figure 7: efficiency on {} processes, measured (bars) and by the model (spikes)",
            report.processes
        ),
        below: format!("{}, {}", report.machine.text(), report.machine.date),
        legend: devices.iter().map(|device| name(device.via)).collect(),
    };
    bars(&chart, &report.applications.iter().map(group).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::sample_report;
    use super::*;
    use crate::chart::tests::elements;

    #[test]
    fn a_bar_stands_for_what_was_measured_and_a_spike_for_the_model() {
        let svg = svg(&sample_report());
        elements(&svg);
        assert_eq!(svg.matches("class=\"bar\"").count(), 1, "nothing was measured over tcp");
        assert_eq!(svg.matches("class=\"spike\"").count(), 1);
        assert!(svg.contains("Integer Sort") && svg.contains(">80</text>"));
    }
}
