//! `weft logs`: what the ranks of a job have written lately.

use crate::ask::daemon;
use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::time::{Duration, Instant};
use weft_cluster::job_log::pieces;
use weft_requests::client::refusal;
use weft_requests::{ClusterReply, Demand, JobName, LogPart};

/// What `weft logs --help` begins with.
pub const LONG_ABOUT: &str = "\
Shows what the ranks of a job have written lately, wherever it runs or has run, from any host of its cluster.

Of a job that runs the last 256 KiB are kept (WEFT_LOG_BYTES), and the last 64 KiB of that with its record when it is \
over. What ranks write to files of their own (weft run --output) is not among it. Lines of several ranks stand in the \
order in which they came to weft run; what went to standard error goes there again.";

/// How often it is looked for more.
const AGAIN: Duration = Duration::from_millis(200);
/// How long a daemon may be away while we follow.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(clap::Args)]
pub struct LogsArguments {
    /// The job, as weft ps --cluster and weft jobs show it
    job: JobName,
    /// What this rank has written alone
    #[arg(long, value_name = "R")]
    rank: Option<u32>,
    /// Go on with what comes, until the job is over
    #[arg(short, long)]
    follow: bool,
}

/// Lines of one rank's stream that are not whole yet.
type Begun = BTreeMap<(u32, bool), Vec<u8>>;

/// Puts pieces together to lines.
#[derive(Default)]
struct Lines {
    /// What was heard and is no whole piece.
    rest: Vec<u8>,
    next: u64,
    begun: Begun,
}

impl Lines {
    /// Lines that are whole now, of this rank or of all; whether each went to standard error.
    fn take(&mut self, part: &LogPart, of: Option<u32>) -> Vec<(bool, Vec<u8>)> {
        if part.begin != self.next {
            // What came between is not kept any more.
            self.rest.clear();
            self.begun.clear();
        }
        self.next = part.next;
        self.rest.extend(part.bytes());
        let (mut lines, mut used) = (Vec::new(), 0);
        for piece in pieces(&self.rest) {
            used += 8 + piece.bytes.len();
            if of.is_some_and(|of| of != piece.rank) {
                continue;
            }
            let begun = self.begun.entry((piece.rank, piece.is_error)).or_default();
            begun.extend(piece.bytes);
            if let Some(end) = begun.iter().rposition(|byte| *byte == b'\n') {
                let rest = begun.split_off(end + 1);
                lines.push((piece.is_error, std::mem::replace(begun, rest)));
            }
        }
        self.rest.drain(..used);
        lines
    }

    /// What was begun, and will not be ended.
    fn last(self) -> impl Iterator<Item = (bool, Vec<u8>)> {
        self.begun.into_iter().map(|((_, is_error), begun)| (is_error, begun))
    }
}

/// Shows what was asked for.
///
/// # Errors
/// No daemon answers, or the job is not known or another user's.
pub fn main(given: &LogsArguments) -> Result<i32> {
    let mut lines = Lines::default();
    let mut answered: Option<Instant> = None;
    loop {
        let part = match ask(&given.job, lines.next) {
            Ok(part) => part,
            // A daemon that ends under a job may begin again.
            Err(_) if given.follow && answered.is_some_and(|at| at.elapsed() < PATIENCE) => {
                std::thread::sleep(AGAIN);
                continue;
            }
            Err(error) => return Err(error),
        };
        answered = Some(Instant::now());
        if let Some(reason) = given.rank.and_then(|rank| no_such_rank(&given.job, rank, part.ranks)) {
            bail!(reason);
        }
        let shown = lines.take(&part, given.rank);
        if !show(shown)? {
            return Ok(0);
        }
        let is_all = part.next >= part.end;
        if is_all && (part.is_over || !given.follow) {
            show(lines.last())?;
            return Ok(0);
        }
        if is_all {
            std::thread::sleep(AGAIN);
        }
    }
}

/// What to say where a job of so many ranks has no such rank.
fn no_such_rank(job: &JobName, rank: u32, ranks: usize) -> Option<String> {
    // 0 is not known.
    let last = ranks.checked_sub(1)?;
    (rank as usize > last).then(|| format!("job {job} has no rank {rank}: its ranks are 0 to {last}"))
}

fn ask(job: &JobName, from: u64) -> Result<LogPart> {
    match daemon()?.ask(&Demand::Log { job: job.clone(), from })? {
        ClusterReply::Log(part) => Ok(part),
        other => Err(refusal(other).into()),
    }
}

/// Whether anybody reads it still.
fn show(lines: impl IntoIterator<Item = (bool, Vec<u8>)>) -> Result<bool> {
    for (is_error, line) in lines {
        let written = match is_error {
            true => io::stderr().write_all(&line),
            false => io::stdout().write_all(&line),
        };
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(false),
            written => written?,
        }
    }
    match io::stdout().flush() {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        flushed => Ok(flushed.map(|()| true)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_cluster::job_log::{LogHead, LogRing};

    #[test]
    fn a_rank_that_a_job_does_not_have_is_told() {
        let told = |rank, ranks| no_such_rank(&JobName::new("a", 1), rank, ranks);
        assert_eq!((told(3, 4), told(22, 0)), (None, None));
        assert_eq!(told(4, 4).as_deref(), Some("job a.1 has no rank 4: its ranks are 0 to 3"));
    }

    #[test]
    fn lines_are_put_together_for_each_rank_and_stream() {
        let mut ring = LogRing::new(4096);
        let all = [(0, false, "a"), (1, false, "x\ny"), (0, true, "oh\n"), (0, false, "b\n"), (1, false, "z")];
        let mut bytes = Vec::new();
        for (rank, is_error, text) in all {
            let writes = ring.add(rank, is_error, text.as_bytes());
            bytes.extend(&writes[0].1);
        }
        let end = LogHead::read(&ring.head()).expect("sound").end;
        let lines_of = |rank| {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            // Cut in the middle of a piece.
            for (from, to) in [(0, 13), (13, bytes.len())] {
                found.extend(lines.take(&LogPart::new(from as u64, &bytes[from..to], end, true), rank));
            }
            found.extend(lines.last().filter(|(_, line)| !line.is_empty()));
            let text = |(is_error, line): (bool, Vec<u8>)| (is_error, String::from_utf8(line).expect("text"));
            found.into_iter().map(text).collect::<Vec<_>>()
        };
        let line = |is_error, text: &str| (is_error, text.to_owned());
        assert_eq!(lines_of(Some(0)), [line(true, "oh\n"), line(false, "ab\n")]);
        assert_eq!(lines_of(None), [line(false, "x\n"), line(true, "oh\n"), line(false, "ab\n"), line(false, "yz")]);
    }
}
