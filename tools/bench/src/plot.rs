//! Latency and bandwidth by message size as an SVG picture, both axes logarithmic.
//!
//! Colours are those of Okabe and Ito, which people with colour-blindness can tell apart; marks and dashes differ too.

use crate::format::{Unit, figure, size};
use crate::library::Name;
use crate::report::Report;
use std::fmt::Write;

const WIDTH: f64 = 1160.0;
const HEIGHT: f64 = 560.0;
const TOP: f64 = 92.0;
const BOTTOM: f64 = 492.0;

/// One panel: a line kind by size.
struct Panel {
    kind: &'static [&'static str],
    title: &'static str,
    unit: Unit,
    left: f64,
    right: f64,
}

struct Series {
    name: Name,
    /// (bytes, value), bytes rising and above 0.
    points: Vec<(f64, f64)>,
}

/// The picture. A panel without figures says so.
pub fn svg(report: &Report) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"13\">"
    );
    let _ = writeln!(out, "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>");
    text(&mut out, 70.0, 28.0, "start", "font-size=\"18\" font-weight=\"bold\"", "Two ranks on one host");
    let machine = format!("{}, {}", report.machine.text(), report.machine.date);
    text(&mut out, 70.0, 48.0, "start", "fill=\"#555555\"", &machine);
    let panels = [
        Panel { kind: &["latency"], title: "one way", unit: Unit::Seconds, left: 70.0, right: 550.0 },
        Panel {
            kind: &["rate", "bandwidth"],
            title: "bandwidth, window 64",
            unit: Unit::BytesPerSecond,
            left: 650.0,
            right: 1130.0,
        },
    ];
    for panel in &panels {
        draw_panel(&mut out, panel, &series(report, panel));
    }
    legend(&mut out, report);
    out + "</svg>\n"
}

/// The medians of a panel's lines. A rate of messages of known size is a bandwidth too.
fn series(report: &Report, panel: &Panel) -> Vec<Series> {
    let points = |name: Name| {
        let point = |line: &crate::report::LineReport| {
            let (kind, bytes) = line.id.split_once('/')?;
            let bytes: f64 = bytes.parse().ok()?;
            let median = line.result(name)?.median;
            let value = if line.unit == Unit::PerSecond { median * bytes } else { median };
            (panel.kind.contains(&kind) && bytes > 0.0 && value > 0.0).then_some((bytes, value))
        };
        report.lines.iter().filter_map(point).collect::<Vec<_>>()
    };
    let all = report.libraries.iter().map(|l| Series { name: l.name, points: points(l.name) });
    all.filter(|s| !s.points.is_empty()).collect()
}

/// A logarithmic axis from `low` to `high`, drawn from `start` to `end`.
struct Axis {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

impl Axis {
    fn at(&self, value: f64) -> f64 {
        self.start + (self.end - self.start) * (value / self.low).ln() / (self.high / self.low).ln()
    }
}

/// Whole decades around all values.
fn decades(values: impl Iterator<Item = f64> + Clone) -> (i32, i32) {
    let low = values.clone().fold(f64::INFINITY, f64::min).log10().floor() as i32;
    let high = values.fold(0.0, f64::max).log10().ceil() as i32;
    (low, high.max(low + 1))
}

fn draw_panel(out: &mut String, panel: &Panel, series: &[Series]) {
    let Panel { left, right, .. } = *panel;
    text(out, left, TOP - 12.0, "start", "font-weight=\"bold\"", panel.title);
    let values = series.iter().flat_map(|s| s.points.iter().map(|p| p.1));
    let sizes = series.iter().flat_map(|s| s.points.iter().map(|p| p.0));
    if series.is_empty() {
        text(out, (left + right) / 2.0, (TOP + BOTTOM) / 2.0, "middle", "fill=\"#555555\"", "not measured");
        return;
    }
    let (low, high) = decades(values);
    let y = Axis { low: 10f64.powi(low), high: 10f64.powi(high), start: BOTTOM, end: TOP };
    let (smallest, largest) = (sizes.clone().fold(f64::INFINITY, f64::min), sizes.fold(1.0, f64::max));
    let x = Axis { low: smallest / 1.3, high: largest * 1.3, start: left, end: right };
    grid(out, panel, &x, &y, (low, high), series);
    for s in series {
        draw_series(out, s, &x, &y);
    }
}

fn grid(out: &mut String, panel: &Panel, x: &Axis, y: &Axis, (low, high): (i32, i32), series: &[Series]) {
    let Panel { left, right, unit, .. } = *panel;
    for decade in low..=high {
        for step in 1..10 {
            let value = f64::from(step) * 10f64.powi(decade);
            if value > y.high * 1.0001 {
                break;
            }
            let (at, colour) = (y.at(value), if step == 1 { "#bbbbbb" } else { "#eeeeee" });
            line(out, (left, at), (right, at), colour, 1.0);
            if step == 1 {
                text(out, left - 8.0, at + 4.5, "end", "fill=\"#333333\"", &tick(value, unit));
            }
        }
    }
    let mut sizes: Vec<u64> = series.iter().flat_map(|s| s.points.iter().map(|p| p.0 as u64)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for bytes in sizes {
        let at = x.at(bytes as f64);
        line(out, (at, TOP), (at, BOTTOM), "#e4e4e4", 1.0);
        text(out, at, BOTTOM + 20.0, "middle", "fill=\"#333333\" font-size=\"11\"", &size(bytes));
    }
    line(out, (left, BOTTOM), (right, BOTTOM), "#333333", 1.2);
    line(out, (left, TOP), (left, BOTTOM), "#333333", 1.2);
}

/// `1 us`, `100 ns`, `1 GB/s`.
fn tick(value: f64, unit: Unit) -> String {
    // A power of ten that fell just short of its unit must not become 1000 of the smaller one.
    let text = figure(value * 1.000_001, unit);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}")
}

struct Style {
    colour: &'static str,
    dash: &'static str,
    width: f64,
}

fn style(name: Name) -> Style {
    match name {
        Name::Weft => Style { colour: "#d55e00", dash: "", width: 3.0 },
        Name::Mpich => Style { colour: "#0072b2", dash: "7 3", width: 1.8 },
        Name::Openmpi => Style { colour: "#009e73", dash: "2 3", width: 1.8 },
        Name::Intel => Style { colour: "#cc79a7", dash: "9 3 2 3", width: 1.8 },
    }
}

fn draw_series(out: &mut String, series: &Series, x: &Axis, y: &Axis) {
    let points: Vec<(f64, f64)> = series.points.iter().map(|p| (x.at(p.0), y.at(p.1))).collect();
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let Style { colour, dash, width } = style(series.name);
    let _ = writeln!(
        out,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-dasharray=\"{dash}\"/>",
        path.join(" ")
    );
    for point in points {
        mark(out, series.name, point);
    }
}

/// Circle, square, triangle, diamond.
fn mark(out: &mut String, name: Name, (x, y): (f64, f64)) {
    let shape = match name {
        Name::Weft => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\""),
        Name::Mpich => format!("<rect x=\"{:.1}\" y=\"{:.1}\" width=\"9\" height=\"9\"", x - 4.5, y - 4.5),
        Name::Openmpi => polygon(&[(x, y - 5.5), (x + 5.5, y + 4.5), (x - 5.5, y + 4.5)]),
        Name::Intel => polygon(&[(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)]),
    };
    let _ = writeln!(out, "{shape} fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"1\"/>", style(name).colour);
}

fn polygon(points: &[(f64, f64)]) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    format!("<polygon points=\"{}\"", points.join(" "))
}

fn legend(out: &mut String, report: &Report) {
    let mut x = 70.0;
    let y = HEIGHT - 22.0;
    for library in &report.libraries {
        let Style { colour, dash, width } = style(library.name);
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{y}\" x2=\"{:.1}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-dasharray=\"{dash}\"/>",
            x + 44.0
        );
        mark(out, library.name, (x + 22.0, y));
        text(out, x + 52.0, y + 4.5, "start", "", &library.version);
        x += 90.0 + 8.0 * library.version.chars().count() as f64;
    }
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
    let _ = writeln!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, attributes: &str, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {attributes}>{content}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample_report;

    /// Names of the elements in order, with closing tags checked against opening ones.
    fn elements(svg: &str) -> Vec<&str> {
        let (mut open, mut names) = (Vec::new(), Vec::new());
        for tag in svg.split('<').skip(1) {
            let (tag, _) = tag.split_once('>').expect("every tag ends");
            let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name), "closed in the wrong order");
                continue;
            }
            names.push(name);
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "left open: {open:?}");
        names
    }

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
    fn axes_map_their_ends_and_middle() {
        let axis = Axis { low: 1.0, high: 100.0, start: 0.0, end: 10.0 };
        assert_eq!((axis.at(1.0), axis.at(100.0)), (0.0, 10.0));
        assert!((axis.at(10.0) - 5.0).abs() < 1e-12);
        assert_eq!(decades([3e-7, 2e-3].into_iter()), (-7, -2));
        assert_eq!(decades([1e9].into_iter()), (9, 10));
    }

    #[test]
    fn ticks_are_round() {
        let powers: Vec<_> = (-8..=-2).map(|p| tick(10f64.powi(p), Unit::Seconds)).collect();
        assert_eq!(powers, ["10 ns", "100 ns", "1 us", "10 us", "100 us", "1 ms", "10 ms"]);
        assert_eq!(tick(1e9, Unit::BytesPerSecond), "1 GB/s");
        assert_eq!(tick(1e7, Unit::BytesPerSecond), "10 MB/s");
    }

    #[test]
    fn a_report_without_such_lines_says_so() {
        let mut report = sample_report();
        report.lines.clear();
        assert_eq!(svg(&report).matches("not measured").count(), 2);
    }
}
