//! What is known of a job when it is over.

use super::{Job, LaunchHosts, Supervisor, say, sys};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use weft_cluster::failure::FailureReport;
use weft_cluster::state::{Cause, Exit};
use weft_cluster::usage::{RankUsage, SentBytes};
use weft_records::{DeviceBytes, Ending, FaultRecord, JobRecord, ProgramRecord, RankRecord, SentMessages, Spent};

/// What is told of the ranks while the job runs.
pub(super) struct JobRecorder {
    /// What is known of the job from its start on.
    job: JobRecord,
    begun: Instant,
    used: Vec<Option<RankUsage>>,
    sent: Vec<Option<SentBytes>>,
    others: RankUsage,
    /// Where ranks have failed, one of each host, in the order in which it was told.
    failed: Vec<(usize, FailureReport)>,
}

impl JobRecorder {
    /// `places`: the number of each rank's host.
    pub fn new(job: &Job, hosts: Option<&LaunchHosts>, places: Vec<usize>) -> Self {
        let program = |given: &weft_cluster::job::Program| {
            let arguments = given.arguments.iter().map(|word| word.to_string_lossy().into_owned());
            ProgramRecord::new(&given.program, arguments, given.ranks)
        };
        let rank = |(host, rank): (&usize, u32)| RankRecord {
            rank,
            host: *host as u32,
            exit: Ending::Unknown,
            finalised: None,
            spent: None,
            sent: None,
            messages: None,
        };
        let record = JobRecord {
            job: job.id.as_str().to_owned(),
            programs: job.programs.iter().map(program).collect(),
            partition: job.partition.clone(),
            started: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            hosts: hosts.map_or_else(|| vec![sys::host_name()], |hosts| hosts.names.clone()),
            ranks: places.iter().zip(0..).map(rank).collect(),
            ..JobRecord::default()
        };
        let (others, failed) = Default::default();
        let (used, sent) = (vec![None; places.len()], vec![None; places.len()]);
        Self { job: record, begun: Instant::now(), used, sent, others, failed }
    }

    /// Processes of a rank, or of nobody, have ended. What a rank has sent is a sum already.
    pub fn handle_used(&mut self, rank: Option<usize>, usage: RankUsage, sent: Option<SentBytes>) {
        match rank.and_then(|rank| self.used.get_mut(rank)) {
            Some(used) => used.get_or_insert_default().add(usage),
            None => self.others.add(usage),
        }
        if let (Some(rank), Some(sent)) = (rank, sent) {
            self.sent[rank] = Some(sent);
        }
    }

    /// A rank has failed there.
    pub fn handle_failed(&mut self, rank: usize, text: &str) {
        self.failed.push((rank, FailureReport::decode(text)));
    }
}

fn spent(usage: RankUsage) -> Spent {
    let RankUsage { wall_us, user_us, system_us, peak_bytes } = usage;
    Spent { wall_us, user_us, system_us, peak_bytes }
}

impl Supervisor {
    /// The job is over, and ends with this code.
    pub(super) fn record(mut self, code: i32) -> JobRecord {
        let mut record = std::mem::take(&mut self.recorder.job);
        record.user = sys::user_name();
        record.wall_seconds = self.recorder.begun.elapsed().as_secs_f64();
        record.exit_code = code;
        record.cause = self.state.cause().or_else(|| {
            self.spawned.code.map(|code| format!("a job that its ranks have spawned ended with code {code}"))
        });
        record.fault = self.fault();
        record.others = spent(self.recorder.others);
        let (all, of_spawned) = (sys::used_by_children(), self.spawned.used);
        record.below_launcher_us =
            [all.user_us.saturating_sub(of_spawned.user_us), all.system_us.saturating_sub(of_spawned.system_us)];
        for (number, rank) in record.ranks.iter_mut().enumerate() {
            rank.exit = self.ending(number);
            rank.finalised = self.state.has_finalised(number);
            rank.spent = self.recorder.used[number].map(spent);
            rank.sent = self.recorder.sent[number].map(|sent| {
                let SentBytes { shm, tcp, udp, copied, .. } = sent;
                DeviceBytes { shm, tcp, udp, copied }
            });
            rank.messages =
                self.recorder.sent[number].map(|sent| SentMessages { count: sent.messages, bytes: sent.message_bytes });
        }
        record
    }

    fn ending(&self, rank: usize) -> Ending {
        match self.state.exit(rank) {
            Some(_) if self.state.pid(rank).is_none() => Ending::NotStarted,
            Some(Exit::Code(code)) => Ending::Code(code),
            Some(Exit::Signal(signal)) => Ending::Signal(signal),
            Some(Exit::OutOfMemory { .. }) => Ending::OutOfMemory,
            // Ended by force with all others, and told only by what it had used.
            None if self.recorder.used[rank].is_some() => Ending::Signal(libc::SIGKILL),
            None => Ending::Unknown,
        }
    }

    /// The first failure, if a signal has ended the rank, or what a shell has run there.
    fn fault(&self) -> Option<FaultRecord> {
        let failure = self.state.first_failure()?;
        let rank = failure.rank?;
        let report = self.report_of(rank);
        let signal = match failure.cause {
            Cause::Killed { signal } => signal,
            Cause::Exited { code } if code > 128 && report.is_some() => code - 128,
            _ => return None,
        };
        let FailureReport { function, core, frames, .. } = report.cloned().unwrap_or_default();
        Some(FaultRecord { rank: rank as u32, signal, function, backtrace: frames, core })
    }

    fn report_of(&self, rank: usize) -> Option<&FailureReport> {
        self.recorder.failed.iter().find(|(failed, _)| *failed == rank).map(|(_, report)| report)
    }

    /// Says where the first failure was, and where cores are.
    pub(super) fn report_fault(&self) {
        let Some(fault) = self.fault() else { return };
        let rank = fault.rank as usize;
        let host = self.recorder.job.host_of(&self.recorder.job.ranks[rank]);
        if let Some(function) = &fault.function {
            say(&self.front, format_args!("rank {rank} on {host} failed in {function}"));
        }
        for (number, frame) in fault.backtrace.iter().enumerate() {
            say(&self.front, format_args!("  #{number:<2} {frame}"));
        }
        for (rank, report) in &self.recorder.failed {
            let host = self.recorder.job.host_of(&self.recorder.job.ranks[*rank]);
            if let Some(core) = &report.core {
                say(&self.front, format_args!("core of rank {rank}, on {host}: {core}"));
            }
            if let Some(note) = &report.note {
                say(&self.front, format_args!("rank {rank} on {host}: {note}"));
            }
        }
    }
}
