//! `weft jobs`: jobs that are over.
//!
//! Their records come from the daemon of this host, or from a file that launchers append to (`weft run --record`).
//! Whatever the source, it gives a list of records, and everything here shows such a list.

use crate::ask;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use weft_records::{JobRecord, lines, show};

/// What `weft jobs --help` begins with.
pub const LONG_ABOUT: &str = "\
Shows jobs that are over: who ran what where, how it ended, and what it used.

The records are those of the daemon of this host, of jobs that were started here (see weft cluster start), or those of a \
file to which launchers append one line for each job:
  weft run --record FILE -n 4 ./program        (or WEFT_RECORD=FILE)
  weft jobs --file FILE

With the name of a job, that job in full, with a line for each rank.";

/// The file, where the command line names none.
const VARIABLE: &str = "WEFT_RECORD";

/// So many jobs the daemon is asked for, where nobody says.
const MOST: usize = 1000;

/// Options of `weft jobs`.
#[derive(clap::Args)]
pub struct JobsArguments {
    /// The file with the records [default: WEFT_RECORD, else those of the daemon]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Show this job in full; the begin of its name does, where no other begins so
    #[arg(value_name = "JOB")]
    job: Option<String>,

    /// Jobs that were started on any host of the cluster, not on this one alone
    #[arg(long, conflicts_with = "file")]
    cluster: bool,

    /// Write JSON
    #[arg(long)]
    json: bool,

    /// A line for each rank, however many there are
    #[arg(long, requires = "job", conflicts_with = "json")]
    all: bool,

    /// Only the last so many jobs
    #[arg(short = 'n', long, value_name = "N")]
    last: Option<usize>,
}

/// The file that the environment names.
pub fn file_of_environment() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// A file that records are appended to.
pub struct Appended {
    path: PathBuf,
    file: File,
}

impl Appended {
    /// Opened before a job begins, so that a slip is told before it has run.
    pub fn open(path: PathBuf) -> Result<Self> {
        let file = File::options().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("the record cannot be written to '{}'", path.display()))?;
        Ok(Self { path, file })
    }

    /// In one write, since other launchers may append to the same file.
    pub fn append(mut self, record: &JobRecord) -> Result<()> {
        let written = self.file.write_all(record.line().as_bytes());
        written.with_context(|| format!("the record cannot be written to '{}'", self.path.display()))
    }
}

/// Shows what was asked for.
pub fn main(given: &JobsArguments) -> Result<i32> {
    let mut records = match given.file.clone().or_else(file_of_environment) {
        Some(path) => of_file(&path)?,
        None => ask::ended(given.last.filter(|_| given.job.is_none()).unwrap_or(MOST), given.cluster).with_context(
            || format!("--file FILE or {VARIABLE} names a file of records (weft run --record FILE writes one)"),
        )?,
    };
    if let Some(name) = &given.job {
        records = vec![chosen(records, name)?];
    }
    let first = given.last.map_or(0, |last| records.len().saturating_sub(last));
    let records = &records[first..];
    let text = match (given.json, &given.job) {
        (true, _) => serde_json::to_string_pretty(records)? + "\n",
        (false, Some(_)) => {
            let singly = if given.all { usize::MAX } else { show::RANKS_SINGLY };
            records.iter().map(|record| show::page(record, ago, singly)).collect()
        }
        (false, None) if records.is_empty() => "no jobs\n".to_owned(),
        (false, None) => show::table(records, ago),
    };
    print!("{text}");
    Ok(0)
}

/// The records of a file.
fn of_file(path: &Path) -> Result<Vec<JobRecord>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("'{}' cannot be read", path.display()))?;
    lines::read(&text).with_context(|| format!("'{}' has a line that is no record of a job", path.display()))
}

/// The one whose name is this, or begins so.
fn chosen(mut records: Vec<JobRecord>, name: &str) -> Result<JobRecord> {
    if let Some(exact) = records.iter().position(|record| record.job == name) {
        return Ok(records.swap_remove(exact));
    }
    records.retain(|record| record.job.starts_with(name));
    match records.len() {
        0 => bail!("no job '{name}' among the records"),
        1 => Ok(records.remove(0)),
        several => bail!("{several} jobs begin with '{name}'; more of its name says which"),
    }
}

/// How long ago a time is: the same for everybody, whatever his clock's zone.
fn ago(seconds: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    match now.saturating_sub(seconds) {
        s @ ..60 => format!("{s} s ago"),
        s @ 60..3600 => format!("{} min ago", s / 60),
        s @ 3600..172_800 => format!("{} h ago", s / 3600),
        s => format!("{} days ago", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(job: &str) -> JobRecord {
        JobRecord { job: job.into(), ..JobRecord::default() }
    }

    #[test]
    fn a_job_is_known_by_the_begin_of_its_name() {
        let records = || vec![record("12-ab"), record("12-ac"), record("12")];
        assert_eq!(chosen(records(), "12").expect("exactly").job, "12");
        assert_eq!(chosen(records(), "12-ac").expect("exactly").job, "12-ac");
        assert!(chosen(records(), "12-").expect_err("two").to_string().starts_with("2 jobs begin with '12-'"));
        assert!(chosen(records(), "x").is_err());
    }

    #[test]
    fn records_are_appended_and_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records");
        for job in ["a", "b"] {
            Appended::open(path.clone()).expect("a file").append(&record(job)).expect("written");
        }
        assert_eq!(of_file(&path).expect("records").iter().map(|record| &record.job).collect::<Vec<_>>(), ["a", "b"]);
        std::fs::write(&path, "no record\n").expect("written");
        let error = format!("{:#}", of_file(&path).expect_err("nonsense"));
        assert!(error.contains("line 1") && error.contains("records'"), "{error}");
        assert!(Appended::open(folder.path().join("no/such")).is_err());
    }
}
