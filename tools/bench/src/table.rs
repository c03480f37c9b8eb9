//! The report as a table: aligned text for a terminal, Markdown for a page.

use crate::bars::Verdict;
use crate::format::{Unit, digits, figure, padded};
use crate::lines;
use crate::output::Presented;
use crate::report::{BenchReport, LineReport};
use crate::state;
use crate::stats::Summary;
use std::fmt::Write;

impl Presented for BenchReport {
    fn text(&self) -> String {
        let mut out = format!("weft bench, {}\n{}\n", self.machine.date, self.machine.text());
        for line in conditions(self) {
            let _ = writeln!(out, "{line}");
        }
        let _ = writeln!(out, "\n{}", aligned(&limit_rows(self)));
        let _ = writeln!(out, "{}", aligned(&line_rows(self)));
        out + &closing(self).join("\n") + "\n"
    }

    fn markdown(&self) -> String {
        let mut out = format!("`{}`, {}\n\n{}\n\n", self.command, self.machine.date, self.machine.text());
        for line in conditions(self) {
            let _ = writeln!(out, "- {line}");
        }
        let _ = writeln!(out, "\n{}", piped(&limit_rows(self)));
        let _ = writeln!(out, "{}", piped(&line_rows(self)));
        for line in closing(self) {
            let _ = writeln!(out, "{line}\n");
        }
        out.truncate(out.trim_end().len());
        out + "\n"
    }

    fn failed(&self) -> usize {
        self.failures.len()
    }
}

/// Every line there is, for `--list`.
pub fn line_list() -> String {
    let row = |l: &lines::BenchLine| {
        let bars: Vec<_> = l.bars.iter().map(|b| b.text(l.unit)).collect();
        vec![l.id.clone(), l.title.clone(), bars.join(", ")]
    };
    let head = ["name", "what", "bar"].map(String::from).to_vec();
    aligned(&std::iter::once(head).chain(lines::all(10.0).iter().map(row)).collect::<Vec<_>>())
}

/// How it was measured and with whom.
fn conditions(report: &BenchReport) -> Vec<String> {
    let more = state::more_turns(report.turns, report.turns_taken, "lines");
    let mut lines = vec![format!(
        "{} turns{more}, at least {} s per line and turn, {:.0} s in all; load average before: {}",
        report.turns, report.seconds_per_line, report.took_s, report.machine.load_before
    )];
    for l in &report.libraries {
        lines.push(format!("{}: {}; two ranks: {}; crowded: {}", l.name.title(), l.version, l.pair, l.crowd));
    }
    lines.extend(report.left_out.iter().map(|l| format!("{} is left out: {}", l.name.title(), l.reason)));
    lines
}

fn closing(report: &BenchReport) -> Vec<String> {
    let mut lines =
        vec!["median of the samples, ± half the range; * the best peer; ratio: Weft to the best peer".into()];
    lines.extend(state::legend("samples", report.shortest_line_ns));
    let (met, missed) = report.tally();
    if met + missed.len() > 0 {
        lines.push(format!("{met} of {} bars met", met + missed.len()));
    }
    lines.extend(missed.into_iter().map(|m| format!("missed: {m}")));
    let failure = |f: &crate::report::BenchFailure| format!("failed in turn {}: {}: {}", f.turn, f.what, f.reason);
    lines.extend(report.failures.iter().map(failure));
    lines
}

fn limit_rows(report: &BenchReport) -> Vec<Vec<String>> {
    let mut rows = vec![vec!["the machine's own limits".to_string(), "median".to_string()]];
    for limit in &report.limits {
        let value = Summary::of(&limit.samples).map_or("-".into(), |s| s.text(limit.unit));
        rows.push(vec![limit.title.to_string(), value]);
    }
    rows
}

fn line_rows(report: &BenchReport) -> Vec<Vec<String>> {
    let mut head = vec!["what".to_string()];
    head.extend(report.libraries.iter().map(|l| l.name.title().to_string()));
    head.extend(["ratio", "samples", "bar"].map(String::from));
    std::iter::once(head).chain(report.lines.iter().map(|l| line_row(report, l))).collect()
}

fn line_row(report: &BenchReport, line: &LineReport) -> Vec<String> {
    let mut row = vec![line.title.clone()];
    for library in &report.libraries {
        let mark = if line.best_peer == Some(library.name) { " *" } else { "" };
        row.push(line.result(library.name).map_or("-".into(), |r| r.summary().text(line.unit) + mark));
    }
    row.push(line.ratio.map_or("-".into(), digits));
    let counted = line.results.iter().map(|r| r.counted);
    row.push(state::counts_text(counted, line.state, line.shared_from_ns).unwrap_or_else(|| "-".into()));
    row.push(line.bars.iter().map(|b| bar_text(line.unit, b)).collect::<Vec<_>>().join(", "));
    row
}

fn bar_text(unit: Unit, bar: &crate::report::BarReport) -> String {
    // A bar that is no plain ratio says what it comes to.
    let value = match bar.bar {
        crate::bars::Bar::CacheLinePlus(_) | crate::bars::Bar::Switches(_) => bar.threshold,
        _ => None,
    };
    let value = value.map_or(String::new(), |v| format!(" ({})", figure(v, unit)));
    let verdict = match bar.verdict {
        Verdict::Pass => " PASS",
        Verdict::Miss => " MISS",
        Verdict::Unknown => "",
    };
    format!("{}{value}{verdict}", bar.text)
}

/// Columns padded to their widest cell, the first and last to the left, figures to the right.
pub fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows[0].len();
    let text = padded(rows, |column| column == 0 || columns <= 3 || column + 1 == columns);
    let width = |c: usize| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
    let rule = "-".repeat((0..columns).map(width).sum::<usize>() + 2 * (columns - 1));
    let (head, rest) = text.split_once('\n').unwrap_or_default();
    format!("{head}\n{rule}\n{rest}")
}

pub fn piped(rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    for (n, row) in rows.iter().enumerate() {
        let cells: Vec<_> = row.iter().map(|c| c.replace('|', "\\|").replace('*', "\\*")).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
        if n == 0 {
            let right = |c: usize| if c > 0 && c + 1 < row.len() { "--:" } else { "---" };
            let _ = writeln!(out, "|{}|", (0..row.len()).map(right).collect::<Vec<_>>().join("|"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::LibraryName;
    use crate::report::Conditions;
    use crate::report::tests::sample_report;
    use crate::state::Sample;

    fn row_of(text: &str, title: &str) -> String {
        text.lines().find(|l| l.starts_with(title)).unwrap_or_else(|| panic!("no {title:?} in\n{text}")).to_string()
    }

    #[test]
    fn a_row_has_figures_ratio_bar_and_verdict() {
        let table = sample_report().text();
        let row = row_of(&table, "one way 8 B");
        let cells: Vec<_> = row.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect();
        let bars = "<= 0.85 best PASS, <= line + 70 ns (132 ns) PASS";
        let want =
            ["one way 8 B", "101 ns ±1%", "202 ns ±1%", "151 ns ±1% *", "181 ns ±1%", "0.667", "3 near, 62 ns", bars];
        assert_eq!(cells, want);
    }

    #[test]
    fn columns_stand_under_each_other() {
        let table = sample_report().text();
        let column = |row: &str| row.find("ratio").or(row.find("0.667")).map(|at| row[..at].chars().count());
        let (head, row) = (row_of(&table, "what"), row_of(&table, "one way 0 B"));
        // Both words are five characters wide and right-aligned in the same column.
        assert_eq!(column(&head), column(&row));
    }

    #[test]
    fn misses_are_listed_below() {
        let table = sample_report().text();
        assert!(table.contains("missed: start: the same with init and finalize: <= 0.15 best"), "{table}");
        assert!(!table.contains("missed: one way 8 B"));
    }

    #[test]
    fn without_weft_there_is_no_ratio_and_no_verdict() {
        let mut report = sample_report();
        report.libraries.retain(|l| l.name != LibraryName::Weft);
        let run = Conditions { limits: &report.limits, turns: 1, shortest_line_ns: 60.0 };
        let line = &lines::all(10.0)[1];
        report.lines = vec![LineReport::of(line, &[(LibraryName::Mpich, &[Sample::plain(1e-6)])], &run)];
        let table = report.text();
        assert!(!table.contains("PASS") && !table.contains("MISS"), "{table}");
        assert!(row_of(&table, "one way 8 B").contains("1.00 us ±0% *"));
    }

    #[test]
    fn how_many_samples_of_which_state_count_is_shown() {
        let mut report = sample_report();
        report.turns_taken = 7;
        report.lines[1].results[2].counted = 5;
        let table = report.text();
        assert!(row_of(&table, "one way 8 B").contains("  3-5 near, 62 ns  "), "{table}");
        assert!(
            table.contains("3 turns, for some lines up to 7,") && table.contains("near: at most 90.0 ns;"),
            "{table}"
        );
    }

    #[test]
    fn who_is_left_out_is_named_with_the_reason() {
        let mut report = sample_report();
        report.left_out.push(crate::report::LeftOut { name: LibraryName::Intel, reason: "no wheel".into() });
        assert!(report.text().contains("Intel MPI is left out: no wheel"));
        assert!(report.markdown().contains("- Intel MPI is left out: no wheel"));
    }

    #[test]
    fn markdown_rows_all_have_the_columns_of_their_head() {
        let page = sample_report().markdown();
        let bars = |l: &str| l.matches('|').count() - l.matches("\\|").count();
        let tables: Vec<usize> = page.lines().filter(|l| l.starts_with('|')).map(bars).collect();
        assert_eq!(tables.iter().filter(|n| **n == 3).count(), 7, "two columns: head, rule, five limits");
        assert_eq!(tables.iter().filter(|n| **n == 9).count(), lines::all(10.0).len() + 2);
        assert_eq!(tables.len(), 7 + lines::all(10.0).len() + 2);
    }

    #[test]
    fn the_list_names_every_line() {
        let list = line_list();
        assert!(lines::all(10.0).iter().all(|l| list.contains(&l.id)));
    }
}
