//! The tables that Intel's benchmarks print.

use super::ImbFigure;
use anyhow::{Context, ensure};

/// A time that IMB prints as 0.00 is at most this, in microseconds.
const LEAST_US: f64 = 0.005;

/// Which column of a table counts, and how it becomes seconds.
#[derive(Clone, Copy)]
enum TimeColumn {
    Microseconds(usize),
    /// Messages in a second.
    Rate(usize),
}

/// Reads all tables: a benchmark (with its mode behind a slash, where it has several) at a length in bytes (none where
/// there is no such column). What several processes take is that of the slowest; with computation beside it, all of it.
pub fn figures(text: &str) -> anyhow::Result<Vec<ImbFigure>> {
    let mut figures = Vec::new();
    let (mut benchmark, mut mode, mut column) = (String::new(), None, None);
    for line in text.lines() {
        let rest = line.trim_start();
        if let Some(name) = rest.strip_prefix("# Benchmarking ") {
            (benchmark, mode, column) = (name.trim().to_owned(), None, None);
        } else if let Some(name) = rest.strip_prefix("#").and_then(|rest| rest.trim().strip_prefix("MODE: ")) {
            (mode, column) = (Some(name.trim().to_lowercase()), None);
        } else if rest.starts_with("#bytes") || rest.starts_with("#repetitions") {
            column = Some((of_heading(rest)?, rest.starts_with("#bytes")));
        } else if rest.contains("time-out") {
            // A length for which `-time` was too short has no figure.
        } else if rest.starts_with(|c: char| c.is_ascii_digit())
            && let Some((column, has_bytes)) = column
        {
            let figure = row(rest, column, has_bytes).with_context(|| format!("line {rest:?} of {benchmark}"))?;
            let name = mode.as_ref().map_or(benchmark.clone(), |mode| format!("{benchmark}/{mode}"));
            figures.push(ImbFigure { name, ..figure });
        } else {
            column = None;
        }
    }
    Ok(figures)
}

fn of_heading(heading: &str) -> anyhow::Result<TimeColumn> {
    // A name with a blank in it comes last, so the places of those before it are right.
    let names: Vec<&str> = heading.split_whitespace().collect();
    let place = |wanted: &str| names.iter().position(|name| *name == wanted);
    let time = ["t[usec]", "t_max[usec]", "t_ovrl[usec]"].into_iter().find_map(place).map(TimeColumn::Microseconds);
    time.or(place("Msg/sec").map(TimeColumn::Rate)).with_context(|| format!("no column of times in {heading:?}"))
}

fn row(line: &str, column: TimeColumn, has_bytes: bool) -> anyhow::Result<ImbFigure> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let bytes = if has_bytes { Some(words[0].parse()?) } else { None };
    let number = |at: usize| anyhow::Ok(words.get(at).context("a column is missing")?.parse::<f64>()?);
    let value = match column {
        TimeColumn::Microseconds(at) => number(at)?.max(LEAST_US) * 1e-6,
        TimeColumn::Rate(at) => 1.0 / number(at)?,
    };
    ensure!(value.is_finite() && value > 0.0, "{value} is no time");
    Ok(ImbFigure { name: String::new(), bytes, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# Benchmarking PingPong
# #processes = 2
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0          200         0.31         0.00
         8192          200         4.62      1771.82
        16384 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over

# Benchmarking Exchange
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
            4          200         0.29         0.31         0.30         0.00
# Benchmarking Barrier
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
          200         0.09         0.00         0.09
# Benchmarking Uniband
       #bytes #repetitions   Mbytes/sec      Msg/sec
            8          200        80.00     10000000
# Benchmarking Ibcast
       #bytes #repetitions t_ovrl[usec] t_pure[usec]  t_CPU[usec]   overlap[%]
            8          200         3.00         2.00         1.00         0.00
# Benchmarking Unidir_put
#    MODE: AGGREGATE
       #bytes #repetitions      t[usec]   Mbytes/sec
            8          200         0.04         0.00
#
#    MODE: NON-AGGREGATE
       #bytes #repetitions      t[usec]   Mbytes/sec
            8          200         0.05         0.00
# All processes entering MPI_Finalize
";

    #[test]
    fn every_kind_of_table_is_read() {
        let figures = figures(TEXT).unwrap();
        let rows: Vec<_> = figures.iter().map(|f| (f.name.as_str(), f.bytes, (f.value * 1e9).round())).collect();
        let expected = [
            ("PingPong", Some(0), 310.0),
            ("PingPong", Some(8192), 4620.0),
            ("Exchange", Some(4), 310.0),
            ("Barrier", None, 5.0),
            ("Uniband", Some(8), 100.0),
            ("Ibcast", Some(8), 3000.0),
            ("Unidir_put/aggregate", Some(8), 40.0),
            ("Unidir_put/non-aggregate", Some(8), 50.0),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn nonsense_is_an_error_that_shows_the_line() {
        let text = "# Benchmarking Bcast\n #bytes #repetitions t_min[usec] t_max[usec]\n 8 200 0.3 fast\n";
        let error = format!("{:#}", figures(text).unwrap_err());
        assert!(error.contains("8 200 0.3 fast") && error.contains("Bcast"), "{error}");
        assert!(figures(&text.replace("t_max", "t_mix")).is_err());
    }
}
