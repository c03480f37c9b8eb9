//! Processes that this one has started, and what their launchers tell of them.

use crate::error::{ErrorKind, NativeError, Result};
use std::collections::BTreeMap;
use std::os::fd::RawFd;
use weft_fabric::door::Talk;
use weft_fabric::spawn::{Exit, SignalWish, SpawnWord};
use weft_kernel::DescriptorSet;
use weft_ports::Peer;

#[cold]
pub fn ended(process: Peer) -> NativeError {
    NativeError::new(ErrorKind::Lost, format!("process {} has ended", process.0))
}

/// Processes that one call has started.
#[derive(Default)]
pub struct StartedJob {
    /// As long as it is there.
    pub launcher: Option<Talk>,
    /// By their numbers in their job.
    pub processes: BTreeMap<u32, Peer>,
    pub ends: BTreeMap<u32, Exit>,
}

impl StartedJob {
    /// Takes what the launcher says, which stands in this set as long as it is there.
    fn listen(&mut self, set: &DescriptorSet) {
        while let Some(talk) = &mut self.launcher {
            match talk.poll() {
                Ok(None) => return,
                Ok(Some(piece)) => {
                    if let Some(SpawnWord::Ended { rank, exit }) = SpawnWord::decode(&piece) {
                        self.ends.insert(rank, exit);
                    }
                }
                Err(_) => {
                    // A forked copy of the process would keep it there.
                    talk.descriptor().into_iter().for_each(|descriptor| set.remove(&descriptor));
                    self.launcher = None;
                }
            }
        }
    }

    pub fn descriptor(&self) -> Option<RawFd> {
        self.launcher.as_ref().and_then(Talk::descriptor)
    }
}

/// What is known of a process's end by its launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownEnd {
    /// It was not started by this one.
    Unknown,
    Lives,
    /// How, unless the launcher has ended without a word.
    Ended(Option<Exit>),
}

/// All that this process has started.
#[derive(Default)]
pub struct StartedJobs {
    jobs: Vec<StartedJob>,
}

impl StartedJobs {
    fn find(&mut self, process: Peer) -> Option<(u32, &mut StartedJob)> {
        self.jobs.iter_mut().find_map(|job| {
            let number = job.processes.iter().find(|(_, peer)| **peer == process).map(|(number, _)| *number);
            Some((number?, job))
        })
    }

    pub fn add(&mut self, job: StartedJob) {
        self.jobs.push(job);
    }

    pub fn end_of(&mut self, process: Peer) -> KnownEnd {
        match self.find(process) {
            None => KnownEnd::Unknown,
            Some((number, job)) => match (job.ends.get(&number), &job.launcher) {
                (None, Some(_)) => KnownEnd::Lives,
                (exit, _) => KnownEnd::Ended(exit.copied()),
            },
        }
    }

    /// Takes what launchers say; how many of them are gone since the last time.
    pub fn listen(&mut self, set: &DescriptorSet) -> u32 {
        let live = |jobs: &[StartedJob]| jobs.iter().filter(|job| job.launcher.is_some()).count() as u32;
        let before = live(&self.jobs);
        self.jobs.iter_mut().for_each(|job| job.listen(set));
        before - live(&self.jobs)
    }

    pub fn signal(&mut self, process: Peer, signal: i32) -> Result<()> {
        let number = process.0;
        let Some((rank, job)) = self.find(process) else {
            let text = format!("process {number} cannot be signalled: this one has not started it");
            return Err(NativeError::new(ErrorKind::Process, text));
        };
        match (&mut job.launcher, job.ends.contains_key(&rank)) {
            (Some(launcher), false) => {
                launcher.say(&SignalWish { rank: Some(rank), signal }.encode());
                Ok(())
            }
            _ => Err(ended(process)),
        }
    }
}
