//! Where the tables of a comparison go, the same for all of them.

use anyhow::Context;
use serde::Serialize;
use std::path::PathBuf;

/// Of which Weft, and where to.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TablesTo {
    /// Where Weft is installed (DIR/bin/weft, DIR/bin/mpicc, DIR/lib) [default: beside this program]
    #[arg(long, value_name = "DIR")]
    pub weft_prefix: Option<PathBuf>,
    /// Print the tables as Markdown
    #[arg(long)]
    pub markdown: bool,
    /// Write every sample and the machine's description
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What was measured, as people and as programs read it.
pub trait Presented: Serialize {
    fn text(&self) -> String;
    fn markdown(&self) -> String;
    /// How many measurements failed.
    fn failed(&self) -> usize;
}

impl TablesTo {
    /// Writes what is asked for. A missed bar is a result; what could not be measured is an error.
    ///
    /// # Errors
    /// Something failed, or the output cannot be written.
    pub fn finish(&self, report: &impl Presented) -> anyhow::Result<()> {
        print!("{}", if self.markdown { report.markdown() } else { report.text() });
        if let Some(path) = &self.json {
            let json = serde_json::to_string_pretty(report).context("report to JSON")?;
            std::fs::write(path, json + "\n").with_context(|| format!("cannot write {}", path.display()))?;
        }
        match report.failed() {
            0 => Ok(()),
            n => anyhow::bail!("{n} measurement(s) failed, see above"),
        }
    }
}
