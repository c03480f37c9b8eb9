//! Jobs that ranks have spawned: each has a launcher of its own, which is our child and dies with us.

use super::*;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use weft_cluster::spawn::ORDER_VARIABLE;

/// A launcher that we have started.
pub(super) struct Spawned {
    pid: i32,
    /// Its end is the end of the launcher and of its keeper.
    life: UnixStream,
}

impl Spawned {
    pub fn fd(&self) -> i32 {
        self.life.as_raw_fd()
    }

    fn signal(&self, signal: i32) {
        let _ = sys::kill(self.pid, signal);
    }
}

/// What launchers of spawned jobs are started with: on several hosts, the hosts.
pub(super) fn arguments(job: &Job, hosts: Option<&Hosts>) -> Vec<String> {
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
            command.args(&self.spawn_arguments).env(ORDER_VARIABLE, door).stdin(Stdio::from(OwnedFd::from(far)));
            let pid = sys::spawn(&mut command, sys::Apart::Group)? as i32;
            Ok(Spawned { pid, life })
        };
        match started() {
            Ok(spawned) => self.spawned.push(spawned),
            Err(error) => {
                say(&self.front, format_args!("a launcher for spawned processes cannot be started: {error}"));
            }
        }
    }

    /// A launcher has ended.
    pub(super) fn handle_spawned(&mut self, fd: i32) {
        let Some(at) = self.spawned.iter().position(|spawned| spawned.fd() == fd) else { return };
        if !matches!(self.spawned[at].life.read(&mut [0]), Ok(0) | Err(_)) {
            return;
        }
        let spawned = self.spawned.swap_remove(at);
        let code = match sys::status_of(spawned.pid) {
            Ok(status) if libc::WIFEXITED(status) => libc::WEXITSTATUS(status),
            _ => 1,
        };
        if code != 0 {
            self.spawned_code.get_or_insert(code);
        }
        if self.is_over() && self.spawned.is_empty() {
            (self.force_at, self.deadline) = (None, None);
        }
    }

    pub(super) fn signal_spawned(&self, signal: i32) {
        self.spawned.iter().for_each(|spawned| spawned.signal(signal));
    }
}
