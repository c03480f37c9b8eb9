//! What the ranks of jobs have written lately, for who asks ([`crate::ring`]).
//!
//! The launcher has it in memory without a name, which is found among its descriptors: nothing of a job goes through
//! the daemon, one that begins under running jobs finds it like the one before, and it stays readable when the launcher
//! is killed. When a job is over, the last of it is kept with the record.

use crate::between::Asker;
use crate::daemon::Daemon;
use anyhow::{Result, anyhow};
use weft_requests::{ClusterReply, JobName, LogPart};

/// So much is answered at once.
const MOST_AT_ONCE: u64 = 128 << 10;

impl Daemon {
    /// What a job of this host has written from a position on, for who may see it.
    pub fn log_of(&self, asker: &Asker, job: &JobName, from: u64) -> ClusterReply {
        self.find_log(asker, job, from)
            .map_or_else(|error| ClusterReply::Refused(format!("{error:#}")), ClusterReply::Log)
    }

    fn find_log(&self, asker: &Asker, job: &JobName, from: u64) -> Result<LogPart> {
        let unknown = || anyhow!("no job {job} is known");
        let (home, number) = job.parts().ok_or_else(unknown)?;
        if home != self.me.member {
            return Err(unknown());
        }
        let (owner, ranks) = match self.home.job(number) {
            Some(launched) => (launched.begun.view.user.clone(), launched.begun.view.size),
            None => self.records.owner(number)?.ok_or_else(unknown)?,
        };
        if !asker.is_root() && asker.user != owner {
            return Err(anyhow!("job {job} is not yours"));
        }
        if let Some(launched) = self.home.job(number) {
            let found = launched.log.as_ref().and_then(|log| log.read(from, MOST_AT_ONCE));
            let (begin, bytes, end) = found.ok_or_else(|| anyhow!("job {job} keeps nothing of what it writes"))?;
            return Ok(LogPart::new(begin, &bytes, end, false).of_ranks(ranks));
        }
        let (end, bytes) = self.records.log(number)?.unwrap_or_default();
        let first = end - bytes.len() as u64;
        let begin = from.clamp(first, end);
        let rest = &bytes[(begin - first) as usize..];
        let part = LogPart::new(begin, &rest[..rest.len().min(MOST_AT_ONCE as usize)], end, true);
        Ok(part.of_ranks(ranks))
    }
}
