//! What the measuring programs print.

use crate::state::Sample;
use anyhow::{Context, bail};

/// One `mpibench:` or `limits:` line.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub spec: String,
    pub value: f64,
    pub unit: String,
    /// How often what was timed was done; 0 where that is not said.
    pub iterations: u64,
}

/// Everything one job said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobOutput {
    /// First line of the library's own version text.
    pub library: Option<String>,
    pub figures: Vec<Figure>,
}

/// Reads the lines that begin with `prefix:`; other lines (launchers like to talk) are passed over.
pub fn output(prefix: &str, text: &str) -> anyhow::Result<JobOutput> {
    let mut output = JobOutput::default();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix(prefix).and_then(|l| l.strip_prefix(": ")) else { continue };
        match rest.strip_prefix("library ") {
            Some(name) => output.library = Some(name.split_whitespace().collect::<Vec<_>>().join(" ")),
            None => output.figures.push(figure(rest).with_context(|| format!("line {line:?} of a measuring job"))?),
        }
    }
    Ok(output)
}

/// The figure of `spec` in `unit`, with the cache line that was measured right before and right after it.
pub fn sample(figures: &[Figure], spec: &str, unit: &str) -> Option<Sample> {
    let at = figures.iter().position(|f| f.spec == spec && f.unit == unit)?;
    let line_ns = |at: usize| figures.get(at).filter(|f| f.spec == "cache-line").map(|f| f.value * 1e9);
    Some(Sample {
        value: figures[at].value,
        line_ns_before: at.checked_sub(1).and_then(line_ns),
        line_ns_after: line_ns(at + 1),
    })
}

fn figure(text: &str) -> anyhow::Result<Figure> {
    let mut words = text.split_whitespace();
    let (Some(spec), Some(value), Some(unit)) = (words.next(), words.next(), words.next()) else {
        bail!("expected NAME VALUE UNIT");
    };
    let value: f64 = value.parse().with_context(|| format!("{value:?} is not a number"))?;
    if !value.is_finite() || value < 0.0 {
        bail!("{value} is not a measurement");
    }
    let iterations = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    Ok(Figure { spec: spec.into(), value, unit: unit.into(), iterations })
}

/// The name and version in a library's own version text, short enough for a heading.
pub fn short_library_name(text: &str) -> String {
    text.split(',')
        .next()
        .unwrap_or(text)
        .replace("Library", "")
        .replace("(R)", "")
        .replace(" for Linux* OS", "")
        .replace("Version:", "")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_among_other_lines() {
        let text = "warning: something\nmpibench: library MPICH Version:      5.0.2\n\
                    mpibench: latency:8 1.81e-07 s 500 1.0\nmpibench: memory:65536 9573440 B 1 0.3\n";
        let output = output("mpibench", text).unwrap();
        assert_eq!(output.library.as_deref(), Some("MPICH Version: 5.0.2"));
        let specs: Vec<_> = output.figures.iter().map(|f| (f.spec.as_str(), f.value, f.unit.as_str())).collect();
        assert_eq!(specs, [("latency:8", 1.81e-7, "s"), ("memory:65536", 9573440.0, "B")]);
    }

    #[test]
    fn a_sample_has_the_cache_lines_around_it() {
        let text = "mpibench: cache-line 6.25e-08 s\nmpibench: rate:8 2e7 1/s\nmpibench: cache-line 2.5e-07 s\n\
                    mpibench: bandwidth:8 1e9 B/s\n";
        let figures = output("mpibench", text).unwrap().figures;
        let lines = |spec, unit| sample(&figures, spec, unit).map(|s| (s.line_ns_before, s.line_ns_after));
        assert_eq!(lines("rate:8", "1/s"), Some((Some(62.5), Some(250.0))));
        // A job that ended early, and one without cache lines.
        assert_eq!(lines("bandwidth:8", "B/s"), Some((Some(250.0), None)));
        assert_eq!(sample(&figures[1..2], "rate:8", "1/s"), Some(Sample::plain(2e7)));
        assert_eq!(lines("rate:8", "s"), None);
    }

    #[test]
    fn nonsense_is_an_error_that_shows_the_line() {
        for bad in
            ["mpibench: latency:8", "mpibench: latency:8 fast s", "mpibench: latency:8 nan s", "mpibench: x -1 s"]
        {
            let e = format!("{:#}", output("mpibench", bad).unwrap_err());
            assert!(e.contains(bad), "{e}");
        }
    }

    #[test]
    fn version_texts_become_headings() {
        assert_eq!(short_library_name("MPICH Version: 5.0.2"), "MPICH 5.0.2");
        assert_eq!(short_library_name("Intel(R) MPI Library 2021.18.1 for Linux* OS"), "Intel MPI 2021.18.1");
        assert_eq!(short_library_name("Open MPI v5.0.11, package: Open MPI user@host, ident"), "Open MPI v5.0.11");
    }
}
