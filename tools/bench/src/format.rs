//! Figures with units, three significant digits.

use serde::Serialize;
use std::fmt::Write;

/// Of what a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    Seconds,
    BytesPerSecond,
    PerSecond,
    Flops,
    Percent,
    Bytes,
    /// So many times another figure of the same job.
    Times,
}

impl Unit {
    pub fn higher_is_better(self) -> bool {
        matches!(self, Unit::BytesPerSecond | Unit::PerSecond | Unit::Flops | Unit::Times)
    }

    /// The name that the C program prints.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::BytesPerSecond => "B/s",
            Unit::PerSecond => "1/s",
            Unit::Flops => "flop/s",
            Unit::Percent => "%",
            Unit::Bytes => "B",
            Unit::Times => "x",
        }
    }
}

/// `value` in base units (seconds, bytes, bytes per second, ...) as a person reads it.
pub fn figure(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds => scaled(value, &[(1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")], (1.0, "s")),
        Unit::BytesPerSecond => scaled(value, &[(1e6, 1e-3, "kB/s"), (1e9, 1e-6, "MB/s")], (1e-9, "GB/s")),
        Unit::PerSecond => scaled(value, &[(1e3, 1.0, "/s"), (1e6, 1e-3, "k/s")], (1e-6, "M/s")),
        Unit::Flops => scaled(value, &[(1e9, 1e-6, "Mflop/s")], (1e-9, "Gflop/s")),
        Unit::Percent => format!("{} %", digits(value)),
        Unit::Times => format!("{} x", digits(value)),
        Unit::Bytes => format!("{} MiB", digits(value / (1024.0 * 1024.0))),
    }
}

/// Message sizes as the table names them.
pub fn size(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// The first step whose bound is above `value`, else the last unit. A step is (bound, factor, name).
fn scaled(value: f64, steps: &[(f64, f64, &str)], last: (f64, &str)) -> String {
    let (factor, name) =
        steps.iter().find(|(bound, ..)| value < *bound).map_or(last, |(_, factor, name)| (*factor, *name));
    format!("{} {name}", digits(value * factor))
}

/// Three significant digits without an exponent.
pub fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 || v == 0.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// A list for Markdown.
pub fn bullets(lines: &[String]) -> String {
    lines.iter().map(|line| format!("- {line}\n")).collect()
}

/// Lines that tell what failed.
pub fn failed(failures: &[String]) -> impl Iterator<Item = String> {
    failures.iter().map(|what| format!("failed: {what}"))
}

/// How many bars are met, and which are missed. Of each: the name of its line, its text, and whether it is met, if
/// known.
pub fn tally<'a>(bars: impl Iterator<Item = (&'a str, &'a str, Option<bool>)> + Clone) -> Vec<String> {
    let count = |met| bars.clone().filter(|bar| bar.2 == met).count();
    let (met, unknown, all) = (count(Some(true)), count(None), bars.clone().count());
    let more = if unknown > 0 { format!(", {unknown} not measured") } else { String::new() };
    let head = (all > 0).then(|| format!("{met} of {all} bars met{more}"));
    let missed = bars.filter(|bar| bar.2 == Some(false)).map(|(name, text, _)| format!("missed: {name}: {text}"));
    head.into_iter().chain(missed).collect()
}

/// Columns as wide as their widest cell, two blanks apart, to the left where `left` says so, else to the right.
pub fn padded(rows: &[Vec<String>], left: impl Fn(usize) -> bool) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let pad = |(column, cell): (usize, &String)| match left(column) {
        true => format!("{cell:<0$}", width(column)),
        false => format!("{cell:>0$}", width(column)),
    };
    let line = |row: &Vec<String>| row.iter().enumerate().map(pad).collect::<Vec<_>>().join("  ").trim_end().to_owned();
    rows.iter().map(|row| line(row) + "\n").collect()
}

/// A table in columns, the first one to the left and the others to the right.
pub fn columns(table: &[Vec<String>]) -> String {
    padded(table, |column| column == 0)
}

/// The same for Markdown; the first row is its head.
pub fn markdown(table: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (at, row) in table.iter().enumerate() {
        let _ = writeln!(text, "| {} |", row.join(" | "));
        if at == 0 {
            let _ = writeln!(text, "|---|{}", "--:|".repeat(row.len() - 1));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_the_magnitude() {
        assert_eq!(figure(181.4e-9, Unit::Seconds), "181 ns");
        assert_eq!(figure(3.7e-6, Unit::Seconds), "3.70 us");
        assert_eq!(figure(12.34e-3, Unit::Seconds), "12.3 ms");
        assert_eq!(figure(1.5, Unit::Seconds), "1.50 s");
        assert_eq!(figure(5.57e9, Unit::BytesPerSecond), "5.57 GB/s");
        assert_eq!(figure(8.38e6, Unit::PerSecond), "8.38 M/s");
        assert_eq!(figure(0.04, Unit::Percent), "0.040 %");
        assert_eq!(figure(9_573_440.0, Unit::Bytes), "9.13 MiB");
    }

    #[test]
    fn sizes_are_named_in_powers_of_two() {
        assert_eq!([size(0), size(512), size(4096), size(1 << 22)], ["0 B", "512 B", "4 KiB", "4 MiB"]);
        assert_eq!(size(1500), "1500 B");
    }

    #[test]
    fn rounding_does_not_change_the_number_of_digits() {
        assert_eq!([digits(99.96), digits(9.996), digits(0.99951)], ["100", "10.0", "1.00"]);
    }
}
