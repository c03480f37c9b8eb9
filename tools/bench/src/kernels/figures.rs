//! Figures 2 to 6: a picture for each figure of the paper, with the curves of all devices.

use super::kernel::KernelName;
use super::report::{KernelCurve, KernelsReport};
use super::via::Via;
use crate::chart::{ChartLook, ChartPanel, ChartText, Curve, LOOKS, curves};

/// Names of files, and what is in them. Figures without a curve are left out.
pub fn all(report: &KernelsReport) -> Vec<(String, String)> {
    let figures = (2..=6).filter_map(|number| {
        let kernels: Vec<KernelName> = KernelName::ALL.into_iter().filter(|kernel| kernel.figure() == number).collect();
        let measured = kernels.iter().any(|kernel| report.curves_of(*kernel).next().is_some());
        measured.then(|| (format!("figure-{number}.svg"), svg(report, number, &kernels)))
    });
    figures.collect()
}

fn svg(report: &KernelsReport, number: u32, kernels: &[KernelName]) -> String {
    let panels: Vec<ChartPanel> = kernels.iter().map(|kernel| panel(report, *kernel)).collect();
    let mut shown: Vec<(Via, u32)> = Vec::new();
    for curve in kernels.iter().flat_map(|kernel| report.curves_of(*kernel)) {
        if !shown.contains(&(curve.via, curve.processes)) {
            shown.push((curve.via, curve.processes));
        }
    }
    let name = |(via, processes): (Via, u32)| (look(via, processes), format!("{} {processes}", via.word()));
    let chart = ChartText {
        title: format!("Figure {number}: {}", title(number)),
        below: format!("{}, {}", report.machine.text(), report.machine.date),
        legend: shown.into_iter().map(name).collect(),
    };
    curves(&chart, &panels)
}

fn panel(report: &KernelsReport, kernel: KernelName) -> ChartPanel {
    let curve = |curve: &KernelCurve| Curve { look: look(curve.via, curve.processes), points: curve.medians() };
    let all = report.curves_of(kernel).map(curve);
    ChartPanel {
        title: kernel.title().into(),
        unit: kernel.unit(),
        curves: all.filter(|curve| !curve.points.is_empty()).collect(),
    }
}

/// A colour and a mark for each device; two processes are thick, more are dashed.
fn look(via: Via, processes: u32) -> ChartLook {
    let (dash, width) = if processes == 2 { ("", 2.4) } else { ("5 4", 1.4) };
    ChartLook { dash, width, ..LOOKS[via as usize] }
}

fn title(number: u32) -> &'static str {
    match number {
        2 => "remote procedure calls and messages",
        3 => "ordered groups",
        4 => "ring, what all send",
        5 => "all-to-all by multicast, what all send",
        _ => "personalised all-to-all, what all send",
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::sample_report;
    use super::*;
    use crate::chart::tests::elements;

    #[test]
    fn each_figure_has_the_curves_of_its_kernels() {
        let all = all(&sample_report());
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["figure-2.svg", "figure-4.svg"]);
        let curves = |at: usize| elements(&all[at].1).into_iter().filter(|name| *name == "polyline").count();
        assert_eq!((curves(0), curves(1)), (2, 1));
        // Messages were not measured, and the panel beside the calls says so.
        assert!(all[0].1.contains("not measured") && all[0].1.contains("tcp 2") && !all[1].1.contains("not measured"));
    }
}
