//! Latency and bandwidth by message size of all libraries, as a picture.

use crate::chart::{ChartPanel, ChartText, Curve, LOOKS, curves};
use crate::format::Unit;
use crate::library::LibraryName;
use crate::report::BenchReport;

/// The picture.
pub fn svg(report: &BenchReport) -> String {
    let panel = |title: &str, kinds: &[&str], unit| {
        let all = report
            .libraries
            .iter()
            .map(|library| Curve { look: LOOKS[library.name as usize], points: points(report, library.name, kinds) });
        ChartPanel { title: title.into(), unit, curves: all.filter(|curve| !curve.points.is_empty()).collect() }
    };
    let chart = ChartText {
        title: "Two ranks on one host".into(),
        below: format!("{}, {}", report.machine.text(), report.machine.date),
        legend: report.libraries.iter().map(|l| (LOOKS[l.name as usize], l.version.clone())).collect(),
    };
    let panels = [
        panel("one way", &["latency"], Unit::Seconds),
        panel("bandwidth, window 64", &["rate", "bandwidth"], Unit::BytesPerSecond),
    ];
    curves(&chart, &panels)
}

/// The medians of a library's lines. A rate of messages of known size is a bandwidth too.
fn points(report: &BenchReport, name: LibraryName, kinds: &[&str]) -> Vec<(f64, f64)> {
    let point = |line: &crate::report::LineReport| {
        let (kind, bytes) = line.id.split_once('/')?;
        let bytes: f64 = bytes.parse().ok()?;
        let median = line.result(name)?.median;
        let value = if line.unit == Unit::PerSecond { median * bytes } else { median };
        (kinds.contains(&kind) && bytes > 0.0 && value > 0.0).then_some((bytes, value))
    };
    report.lines.iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::tests::elements;
    use crate::report::tests::sample_report;

    #[test]
    fn the_picture_is_well_formed_and_has_a_curve_per_library_and_panel() {
        let svg = svg(&sample_report());
        let names = elements(&svg);
        let count = |name| names.iter().filter(|n| **n == name).count();
        assert_eq!(names[0], "svg");
        assert_eq!(count("polyline"), 8);
        // Weft's circles: 9 sizes of latency (0 B has no place on a logarithmic axis), 7 of bandwidth, the legend.
        assert_eq!(count("circle"), 17);
        assert!(svg.contains("Test &lt;CPU&gt; &amp; more"));
    }

    #[test]
    fn faster_is_lower_in_latency_and_higher_in_bandwidth() {
        let report = sample_report();
        let first_y = |polyline: &str| {
            let points = polyline.split("points=\"").nth(1).unwrap();
            points.split([',', ' ']).nth(1).unwrap().parse::<f64>().unwrap()
        };
        let svg = svg(&report);
        let curves: Vec<f64> = svg.lines().filter(|l| l.starts_with("<polyline")).map(first_y).collect();
        assert!(curves[0] > curves[1], "Weft's latency is drawn above MPICH's: {curves:?}");
        assert!(curves[4] < curves[5], "Weft's bandwidth is drawn below MPICH's: {curves:?}");
    }

    #[test]
    fn a_report_without_such_lines_says_so() {
        let mut report = sample_report();
        report.lines.clear();
        assert_eq!(svg(&report).matches("not measured").count(), 2);
    }
}
