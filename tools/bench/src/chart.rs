//! Curves by size of messages, and bars, as SVG pictures; the axes of curves are logarithmic.
//!
//! Colours are those of Okabe and Ito, which people with colour-blindness can tell apart; marks and dashes differ too.
//!
//! Not here: what is measured, and which look something has.

use crate::format::{Unit, figure, size};
use std::fmt::Write;

const HEIGHT: f64 = 560.0;
const TOP: f64 = 92.0;
const BOTTOM: f64 = 492.0;
const MARGIN: f64 = 70.0;
/// Right of the last panel.
const EDGE: f64 = 30.0;
const PANEL: f64 = 480.0;
/// Of one that stands alone.
const WIDE_PANEL: f64 = 880.0;
const GAP: f64 = 100.0;

/// How a curve looks, and the bars of the same thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChartLook {
    pub colour: &'static str,
    pub dash: &'static str,
    pub width: f64,
    pub shape: MarkShape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkShape {
    Circle,
    Square,
    Triangle,
    Diamond,
}

/// Four that differ in everything.
pub const LOOKS: [ChartLook; 4] = [
    ChartLook { colour: "#d55e00", dash: "", width: 3.0, shape: MarkShape::Circle },
    ChartLook { colour: "#0072b2", dash: "7 3", width: 1.8, shape: MarkShape::Square },
    ChartLook { colour: "#009e73", dash: "2 3", width: 1.8, shape: MarkShape::Triangle },
    ChartLook { colour: "#cc79a7", dash: "9 3 2 3", width: 1.8, shape: MarkShape::Diamond },
];

/// One curve.
pub struct Curve {
    pub look: ChartLook,
    /// (bytes, value), bytes rising and above 0.
    pub points: Vec<(f64, f64)>,
}

/// Curves of one unit.
pub struct ChartPanel {
    pub title: String,
    pub unit: Unit,
    pub curves: Vec<Curve>,
}

/// What stands around the panels.
pub struct ChartText {
    pub title: String,
    pub below: String,
    /// What each look stands for.
    pub legend: Vec<(ChartLook, String)>,
}

/// Panels side by side. One without figures says so.
pub fn curves(chart: &ChartText, panels: &[ChartPanel]) -> String {
    let wide = if panels.len() == 1 { WIDE_PANEL } else { PANEL };
    let left = |at: usize| MARGIN + at as f64 * (wide + GAP);
    let mut out = begin(chart, left(panels.len()) - GAP + EDGE);
    for (at, panel) in panels.iter().enumerate() {
        draw_panel(&mut out, panel, (left(at), left(at) + wide));
    }
    end(out, chart)
}

/// The begin of a picture of this width.
fn begin(chart: &ChartText, width: f64) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {HEIGHT}\" width=\"{width}\" \
         height=\"{HEIGHT}\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"13\">"
    );
    let _ = writeln!(out, "<rect width=\"{width}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>");
    text(&mut out, MARGIN, 28.0, "start", "font-size=\"18\" font-weight=\"bold\"", &chart.title);
    text(&mut out, MARGIN, 48.0, "start", "fill=\"#555555\"", &chart.below);
    out
}

fn end(mut out: String, chart: &ChartText) -> String {
    legend(&mut out, &chart.legend);
    out + "</svg>\n"
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

fn draw_panel(out: &mut String, panel: &ChartPanel, (left, right): (f64, f64)) {
    text(out, left, TOP - 12.0, "start", "font-weight=\"bold\"", &panel.title);
    let points = || panel.curves.iter().flat_map(|curve| &curve.points);
    let (values, sizes) = (points().map(|p| p.1), points().map(|p| p.0));
    if points().next().is_none() {
        text(out, (left + right) / 2.0, (TOP + BOTTOM) / 2.0, "middle", "fill=\"#555555\"", "not measured");
        return;
    }
    let (low, high) = decades(values);
    let y = Axis { low: 10f64.powi(low), high: 10f64.powi(high), start: BOTTOM, end: TOP };
    let (smallest, largest) = (sizes.clone().fold(f64::INFINITY, f64::min), sizes.fold(1.0, f64::max));
    let x = Axis { low: smallest / 1.3, high: largest * 1.3, start: left, end: right };
    grid(out, panel, &x, &y, (low, high));
    panel.curves.iter().for_each(|curve| draw_curve(out, curve, &x, &y));
}

fn grid(out: &mut String, panel: &ChartPanel, x: &Axis, y: &Axis, (low, high): (i32, i32)) {
    let (left, right) = (x.start, x.end);
    for decade in low..=high {
        for step in 1..10 {
            let value = f64::from(step) * 10f64.powi(decade);
            if value > y.high * 1.0001 {
                break;
            }
            let (at, colour) = (y.at(value), if step == 1 { "#bbbbbb" } else { "#eeeeee" });
            line(out, (left, at), (right, at), colour, 1.0);
            if step == 1 {
                text(out, left - 8.0, at + 4.5, "end", "fill=\"#333333\"", &tick(value, panel.unit));
            }
        }
    }
    let mut sizes: Vec<u64> = panel.curves.iter().flat_map(|s| s.points.iter().map(|p| p.0 as u64)).collect();
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

fn draw_curve(out: &mut String, curve: &Curve, x: &Axis, y: &Axis) {
    let points: Vec<(f64, f64)> = curve.points.iter().map(|p| (x.at(p.0), y.at(p.1))).collect();
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let ChartLook { colour, dash, width, .. } = curve.look;
    let _ = writeln!(
        out,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-dasharray=\"{dash}\"/>",
        path.join(" ")
    );
    points.into_iter().for_each(|point| mark(out, curve.look, point));
}

fn mark(out: &mut String, look: ChartLook, (x, y): (f64, f64)) {
    let shape = match look.shape {
        MarkShape::Circle => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\""),
        MarkShape::Square => format!("<rect x=\"{:.1}\" y=\"{:.1}\" width=\"9\" height=\"9\"", x - 4.5, y - 4.5),
        MarkShape::Triangle => polygon(&[(x, y - 5.5), (x + 5.5, y + 4.5), (x - 5.5, y + 4.5)]),
        MarkShape::Diamond => polygon(&[(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)]),
    };
    let _ = writeln!(out, "{shape} fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"1\"/>", look.colour);
}

fn polygon(points: &[(f64, f64)]) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    format!("<polygon points=\"{}\"", points.join(" "))
}

fn legend(out: &mut String, legend: &[(ChartLook, String)]) {
    let mut x = MARGIN;
    let y = HEIGHT - 22.0;
    for (look, name) in legend {
        let ChartLook { colour, dash, width, .. } = look;
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{y}\" x2=\"{:.1}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-dasharray=\"{dash}\"/>",
            x + 44.0
        );
        mark(out, *look, (x + 22.0, y));
        text(out, x + 52.0, y + 4.5, "start", "", name);
        x += 74.0 + 8.0 * name.chars().count() as f64;
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

/// Bars that belong together.
pub struct BarGroup {
    pub title: String,
    pub bars: Vec<GroupedBar>,
}

/// A bar, and a spike where something else says how high it should be. Both are shares of 1.
pub struct GroupedBar {
    pub look: ChartLook,
    pub share: Option<f64>,
    pub spike: Option<f64>,
}

const BAR: f64 = 22.0;
const BETWEEN_GROUPS: f64 = 34.0;
/// Least width of a group, for its title.
const GROUP: f64 = 104.0;

/// Groups of bars side by side.
pub fn bars(chart: &ChartText, groups: &[BarGroup]) -> String {
    let width = |group: &BarGroup| (group.bars.len() as f64 * BAR).max(GROUP) + BETWEEN_GROUPS;
    // The title needs its room.
    let right = (MARGIN + groups.iter().map(width).sum::<f64>()).max(MARGIN + 2.0 * PANEL);
    let shares = groups.iter().flat_map(|group| &group.bars).flat_map(|bar| bar.share.into_iter().chain(bar.spike));
    let high = (shares.fold(1.0, f64::max) * 5.0).ceil() / 5.0;
    let y = |share: f64| BOTTOM - (BOTTOM - TOP) * share / high;
    let mut out = begin(chart, right + EDGE);
    for fifth in 0..=(high * 5.0).round() as u32 {
        let share = f64::from(fifth) / 5.0;
        line(&mut out, (MARGIN, y(share)), (right, y(share)), "#cccccc", 1.0);
        let name = format!("{:.0}%", 100.0 * share);
        text(&mut out, MARGIN - 8.0, y(share) + 4.5, "end", "fill=\"#333333\"", &name);
    }
    let mut left = MARGIN;
    for group in groups {
        draw_group(&mut out, group, left + BETWEEN_GROUPS / 2.0, width(group) - BETWEEN_GROUPS, y);
        left += width(group);
    }
    line(&mut out, (MARGIN, BOTTOM), (right, BOTTOM), "#333333", 1.2);
    end(out, chart)
}

fn draw_group(out: &mut String, group: &BarGroup, left: f64, width: f64, y: impl Fn(f64) -> f64) {
    let mut x = left + (width - group.bars.len() as f64 * BAR) / 2.0;
    for bar in &group.bars {
        if let Some(share) = bar.share {
            let _ = writeln!(
                out,
                "<rect class=\"bar\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                x + 1.0,
                y(share),
                BAR - 2.0,
                BOTTOM - y(share),
                bar.look.colour
            );
            let name = format!("{:.0}", 100.0 * share);
            let style = "font-size=\"10\" fill=\"#ffffff\"";
            text(out, x + BAR / 2.0, BOTTOM - 5.0, "middle", style, &name);
        }
        if let Some(share) = bar.spike {
            let (at, foot) = (x + BAR / 2.0, y(bar.share.unwrap_or(0.0)));
            let _ = writeln!(
                out,
                "<path class=\"spike\" d=\"M{at:.1} {foot:.1}V{:.1}m-5 0h10\" stroke=\"#000000\" fill=\"none\"/>",
                y(share)
            );
        }
        x += BAR;
    }
    text(out, left + width / 2.0, BOTTOM + 20.0, "middle", "fill=\"#333333\" font-size=\"12\"", &group.title);
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Names of the elements in order, with closing tags checked against opening ones.
    pub fn elements(svg: &str) -> Vec<&str> {
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
}
