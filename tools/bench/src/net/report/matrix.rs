//! What lies between every two of many hosts, as a table with a row and a column for each.

use super::NetLineReport;
use crate::format::figure;
use crate::net::ways::NetWay;

/// The two hosts, from 0, of a line between two of many: `hosts/latency-0-2/8`.
pub fn pair(id: &str) -> Option<(usize, usize)> {
    let (_, pair) = id.strip_prefix("hosts/")?.split('/').next()?.split_once('-')?;
    let (first, second) = pair.split_once('-')?;
    Some((first.parse().ok()?, second.parse().ok()?))
}

/// A table for each thing measured between pairs in each way, with its title.
pub fn tables(lines: &[NetLineReport]) -> Vec<(String, Vec<Vec<String>>)> {
    let pairs: Vec<_> = lines.iter().filter_map(|line| Some((pair(&line.id)?, line))).collect();
    let mut tables = Vec::new();
    for what in ["latency", "bandwidth"] {
        let of_kind: Vec<_> = pairs.iter().filter(|(_, line)| line.title.starts_with(what)).copied().collect();
        for way in NetWay::ALL {
            if of_kind.iter().any(|(_, line)| line.medians.contains_key(&way)) {
                let size = of_kind[0].1.title.split(',').next().unwrap_or(what);
                tables.push((format!("{size} between two hosts, {}", way.title()), table(&of_kind, way)));
            }
        }
    }
    tables
}

fn table(pairs: &[((usize, usize), &NetLineReport)], way: NetWay) -> Vec<Vec<String>> {
    let count = pairs.iter().map(|((_, second), _)| second + 1).max().unwrap_or(0);
    let cell = |row: usize, column: usize| {
        let wanted = (row.min(column), row.max(column));
        let line = pairs.iter().find(|(pair, _)| *pair == wanted).map(|(_, line)| line);
        let median = line.and_then(|line| Some(figure(*line.medians.get(&way)?, line.unit)));
        median.unwrap_or_else(|| if row == column { "-" } else { "" }.to_owned())
    };
    let head = std::iter::once("host".to_owned()).chain((1..=count).map(|host| host.to_string())).collect();
    let row = |row: usize| {
        let first = (row + 1).to_string();
        std::iter::once(first).chain((0..count).map(|column| cell(row, column))).collect()
    };
    std::iter::once(head).chain((0..count).map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::lines::among;
    use crate::state::Sample;

    #[test]
    fn each_pair_stands_in_two_places_and_what_failed_in_none() {
        let line = |(at, line): (usize, crate::net::lines::NetLine)| {
            let samples = match line.id.contains("latency-0-2") {
                true => Default::default(),
                false => [(NetWay::WeftDefault, vec![Sample::plain((at + 1) as f64 * 1e-6); 3])].into(),
            };
            NetLineReport::of(&line, &samples, 3, f64::INFINITY)
        };
        let of_pairs = among(3).into_iter().filter(|line| pair(&line.id).is_some() && line.id.contains("latency"));
        let lines: Vec<_> = of_pairs.enumerate().map(line).collect();
        let expected = [["host", "1", "2", "3"], ["1", "-", "1.00 us", ""], ["2", "1.00 us", "-", "3.00 us"]];
        let [(title, rows)] = &tables(&lines)[..] else { panic!("one table") };
        assert_eq!(title, "latency 8 B between two hosts, Weft default");
        assert_eq!(rows[..3], expected);
        assert_eq!(rows[3], ["3", "", "3.00 us", "-"]);
    }

    #[test]
    fn kernels_are_no_pairs() {
        assert_eq!(pair("hosts/latency-1-12/8"), Some((1, 12)));
        assert!(["hosts/ring/8", "hosts/barrier", "plain/latency/8"].iter().all(|id| pair(id).is_none()));
    }
}
