//! Jobs that ranks have spawned: each has a launcher of its own, which is our child and dies with us. And those who
//! have spawned this one, where they are told of its ranks.

use super::*;
use crate::{Starter, StarterSays};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use weft_cluster::spawn::{ORDER_VARIABLE, SignalWish};
use weft_cluster::state::Exit;
use weft_cluster::usage::RankUsage;

/// The launchers that we have started, and who has had us started.
pub(super) struct SpawnedJobs {
    pub starter: Option<Box<dyn Starter>>,
    pub live: Vec<Spawned>,
    /// How many there have been.
    count: usize,
    arguments: Vec<String>,
    /// What they have used themselves, with all that they have waited for: their own records tell it.
    pub used: RankUsage,
    /// The exit code of the first of them that has failed.
    pub code: Option<i32>,
}

impl SpawnedJobs {
    pub fn new(job: &mut Job, hosts: Option<&LaunchHosts>) -> Self {
        let (starter, arguments) = (job.starter.take(), arguments(job, hosts));
        Self { starter, live: Vec::new(), count: 0, arguments, used: RankUsage::default(), code: None }
    }

    /// A rank has ended.
    pub fn tell_starter(&mut self, rank: usize, exit: Exit) {
        if let Some(starter) = &mut self.starter {
            starter.tell(rank, exit);
        }
    }

    pub fn signal(&self, signal: i32) {
        self.live.iter().for_each(|spawned| _ = sys::kill(spawned.pid, signal));
    }
}

/// One of them.
pub(super) struct Spawned {
    pub number: usize,
    pid: i32,
    /// Its end is the end of the launcher and of its keeper.
    life: UnixStream,
}

impl Spawned {
    pub fn fd(&self) -> i32 {
        self.life.as_raw_fd()
    }
}

/// What launchers of spawned jobs are started with: on several hosts, the hosts.
fn arguments(job: &Job, hosts: Option<&LaunchHosts>) -> Vec<String> {
    let mut words = vec!["spawned".to_owned()];
    if let Some(hosts) = hosts {
        let slots = weft_cluster::job::RANKS_MAX;
        let list: Vec<String> = hosts.names.iter().map(|name| format!("{name}:{slots}")).collect();
        words.extend(
            ["--map", "host", "--hosts", &list.join(","), "--launch", &hosts.launch.to_string()].map(str::to_owned),
        );
        words.extend(hosts.stage.then(|| "--stage".to_owned()));
    }
    if job.output.tag {
        words.push("--tag-output".to_owned());
    }
    words
}

impl Supervisor {
    /// Starts a launcher that gets its order at this door. Whoever waits there learns of a failure by nobody's coming.
    pub(super) fn spawn(&mut self, door: &str) {
        let started = || -> std::io::Result<Spawned> {
            let (life, far) = UnixStream::pair()?;
            let mut command = Command::new(std::env::current_exe()?);
            command.args(&self.spawned.arguments).env(ORDER_VARIABLE, door).stdin(Stdio::from(OwnedFd::from(far)));
            let pid = sys::spawn(&mut command, sys::Apart::Group, None)? as i32;
            Ok(Spawned { number: self.spawned.count, pid, life })
        };
        match started() {
            Ok(spawned) => {
                self.spawned.count += 1;
                self.spawned.live.push(spawned);
            }
            Err(error) => {
                say(&self.front, format_args!("a launcher for spawned processes cannot be started: {error}"));
            }
        }
    }

    /// Does what those want who have had this job started.
    pub(super) fn handle_starter(&mut self) {
        while let Some(starter) = &mut self.spawned.starter {
            match starter.poll() {
                StarterSays::Nothing => return,
                StarterSays::Gone => self.spawned.starter = None,
                StarterSays::Wants(SignalWish { rank: None, signal }) => self.tell(KeeperMessage::Signal { signal }),
                StarterSays::Wants(SignalWish { rank: Some(rank), signal }) => self.signal_one(rank as usize, signal),
            }
        }
    }

    pub(super) fn signal_one(&mut self, rank: usize, signal: i32) {
        for watch in &mut self.watches {
            if let Some(rank) = watch.ranks.iter().position(|one| *one == rank) {
                watch.tell(KeeperMessage::SignalOne { rank, signal });
            }
        }
    }

    /// A launcher has ended.
    pub(super) fn handle_spawned(&mut self, number: usize) {
        let live = &mut self.spawned.live;
        let Some(at) = live.iter().position(|spawned| spawned.number == number) else { return };
        if !matches!(live[at].life.read(&mut [0]), Ok(0) | Err(_)) {
            return;
        }
        let spawned = live.swap_remove(at);
        let (status, used) = sys::end_of(spawned.pid).unwrap_or((1, RankUsage::default()));
        self.spawned.used.add(used);
        let code = match status {
            status if libc::WIFEXITED(status) => libc::WEXITSTATUS(status),
            _ => 1,
        };
        if code != 0 {
            self.spawned.code.get_or_insert(code);
        }
        if self.is_over() {
            self.stop_timers_without_jobs();
        }
    }

    pub(super) fn stop_timers_without_jobs(&mut self) {
        if self.spawned.live.is_empty() {
            self.timers.stop(Deadline::Force);
            self.timers.stop(Deadline::Job);
            // Who has ended while it was asked what he does has ended in time.
            self.timers.stop(Deadline::Answers);
        }
    }
}
