//! The keeper: parent of all ranks, and the guardian that leaves nothing behind.
//!
//! It is forked from the launcher, or, on each host of a job on several, from the agent. It does little, so that little
//! can go wrong: start the ranks, tell the launcher who started and who ended, pass on
//! signals, and at the end, or when the launcher is gone, kill every descendant. Orphans of the job become its children
//! (it is a subreaper), so "every descendant" is found by killing children until there are none.

use crate::faults::{FaultPlan, FaultWatch};
use crate::link::{KeeperLink, KeeperMessage, ReceivedRecord};
use crate::memory::Kills;
use crate::sys::Apart;
use crate::{LaunchError, elf, sys};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use weft_cluster::placement::Core;
use weft_cluster::state::Exit;
use weft_cluster::usage::RankUsage;
use weft_kernel::{DescriptorSet, await_events};

/// Processes that cannot be killed (another user's, or stuck in the kernel) are waited for so long.
const LAST_WAIT: Duration = Duration::from_secs(5);
/// Between two looks at them.
const LOOK: Duration = Duration::from_millis(50);

/// What ranks have started, such as tasks that are about to end, may end by itself for so long where all have ended
/// well.
pub const GRACE: Duration = Duration::from_millis(300);

/// One rank, ready to be started.
pub struct RankStart {
    pub command: Command,
    pub core: Option<Core>,
    pub input: RankInput,
    pub apart: Apart,
    /// Standard output and standard error.
    pub outputs: [OwnedFd; 2],
    /// Descriptors for this rank alone, each with the variable that tells its number.
    pub own: Vec<(&'static str, OwnedFd)>,
}

/// What a rank reads.
pub enum RankInput {
    Nothing,
    /// The launcher's own standard input.
    Ours,
    Pipe(OwnedFd),
}

/// What the keeper takes with it from the process that forks it.
pub struct Keeper {
    pub starts: Vec<RankStart>,
    /// Descriptors for every rank.
    pub inherit: Vec<OwnedFd>,
    /// Soft and hard limit of descriptors that the ranks shall have.
    pub limits: (u64, u64),
    /// The signals that the ranks shall find blocked.
    pub mask: sys::SignalSet,
    /// What is to be found out where they fail.
    pub faults: FaultPlan,
    /// How long what they have started may end by itself where all have ended well.
    pub grace: Duration,
}

/// A keeper as its parent sees it.
pub struct Kept {
    pub link: KeeperLink,
    pub pid: i32,
}

impl Keeper {
    /// Forks the keeper. `ours` is what it must not hold open, and comes back.
    pub fn start<T>(self, ours: T) -> Result<(Kept, T), LaunchError> {
        let (link, far_link) = KeeperLink::pair().map_err(LaunchError::system("socket pair"))?;
        // Should the keeper be killed, its children become ours.
        sys::become_subreaper().map_err(LaunchError::system("subreaper"))?;
        match sys::fork().map_err(LaunchError::system("fork"))? {
            sys::Fork::Child => {
                drop((ours, link));
                self.keep(far_link);
                sys::exit_now(0)
            }
            sys::Fork::Parent { child: pid } => Ok((Kept { link, pid }, ours)),
        }
    }

    /// Lives as the keeper; returns when nothing of the job is left.
    fn keep(self, link: KeeperLink) {
        let Self { starts, inherit, limits, mask, faults, grace } = self;
        // Failure of any of these leaves a keeper that is easier to kill, but one that works.
        let _ = sys::own_group();
        let _ = sys::SignalSet::all().block();
        let _ = sys::become_subreaper();
        let _ = weft_kernel::set_limits(libc::RLIMIT_NOFILE, limits.0, limits.1);
        sys::set_name(c"weft-keeper");
        // Ignored, it would take the ranks' exit codes away.
        sys::reset_signal(libc::SIGCHLD);
        let mut family = Family::new(starts.len(), link, FaultWatch::new(faults));
        let Ok(child_signals) = sys::SignalSet::of(&[libc::SIGCHLD]).descriptor() else { return };
        for fd in &inherit {
            let _ = sys::set_inherited(fd, true);
        }
        if family.start_all(starts, &mask, limits.0) {
            family.watch(&child_signals);
        }
        family.tell_of_faults();
        // Nobody who does not read what we say shall keep us from that.
        family.ranks.clear();
        family.await_the_rest(&child_signals, grace);
        let leftovers = kill_descendants(&child_signals, |pid, usage| family.account(pid, usage));
        family.tell_of_the_rest();
        family.link.send(KeeperMessage::Over { leftovers });
    }
}

/// What a shell ends with whose program was ended by SIGKILL.
const SHELL_SAW_KILL: i32 = 128 + libc::SIGKILL;

struct Family {
    /// The ranks that live, by process id.
    ranks: HashMap<i32, usize>,
    /// All that have been started, and when. What a rank starts is in its process group or its session.
    all: HashMap<i32, (usize, Instant)>,
    /// Ranks whose end (or failure to start) has not been told.
    waiting: usize,
    /// One could not be started, or has failed.
    has_failed: bool,
    /// What has been used by those who were not ranks, for the ranks that left them behind.
    left: HashMap<Option<usize>, RankUsage>,
    faults: FaultWatch,
    link: KeeperLink,
    /// For want of memory.
    kills: Kills,
}

impl Family {
    fn new(waiting: usize, link: KeeperLink, faults: FaultWatch) -> Self {
        let (ranks, all, left) = Default::default();
        Self { ranks, all, waiting, has_failed: false, left, faults, link, kills: Kills::here() }
    }

    /// Starts the ranks in order; answers false when the launcher wants the end meanwhile.
    fn start_all(&mut self, starts: Vec<RankStart>, mask: &sys::SignalSet, limit: u64) -> bool {
        for (rank, start) in starts.into_iter().enumerate() {
            if !self.obey() {
                return false;
            }
            match start.run(mask, limit) {
                Ok(pid) => {
                    self.ranks.insert(pid as i32, rank);
                    self.all.insert(pid as i32, (rank, Instant::now()));
                    self.link.send(KeeperMessage::Started { rank, pid });
                }
                Err(error) => {
                    self.waiting -= 1;
                    self.has_failed = true;
                    let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
                    self.link.send(KeeperMessage::NotStarted { rank, errno });
                }
            }
        }
        true
    }

    /// Returns when all ranks have ended, or the launcher wants the end or is gone.
    fn watch(&mut self, child_signals: &OwnedFd) {
        let news = DescriptorSet::new().and_then(|set| {
            set.watch(self.link.fd(), libc::POLLIN, 0)?;
            if let Some(calls) = self.faults.fd() {
                set.watch(calls, libc::POLLIN, 0)?;
            }
            set.add(child_signals, 0).map(|()| set)
        });
        // Without a way to wait there is no job.
        let Ok(news) = news else { return };
        // Who ended while another was being started made no signal.
        self.collect();
        while self.waiting > 0 {
            let _ = news.wait(None).map(Iterator::count);
            while sys::read_signal(child_signals).is_some() {}
            let all = &self.all;
            self.faults.handle_calls(|pid| member_of(all, pid));
            self.collect();
            if !self.obey() {
                return;
            }
        }
    }

    /// Collects all who have ended. Of those that ended between two looks, the ones killed by a signal are told first:
    /// they are more often the cause than the consequence.
    fn collect(&mut self) {
        let mut ended = Vec::new();
        while let Some((pid, status)) = collect_one(&mut |pid, usage| self.account(pid, usage)).unwrap_or(None) {
            if let Some(rank) = self.ranks.remove(&pid) {
                self.faults.handle_end(rank, pid, status);
                ended.push((rank, self.exit_of(pid, status)));
            }
        }
        ended.sort_by_key(|(_, exit)| matches!(exit, Exit::Code(_)));
        for (rank, exit) in ended {
            self.waiting -= 1;
            self.has_failed |= exit != Exit::Code(0);
            self.link.send(KeeperMessage::Ended { rank, exit });
        }
    }

    /// Waits a moment for what the ranks have started, where all of them have ended well: it may be about to end, and
    /// is left behind if it does not.
    fn await_the_rest(&mut self, child_signals: &OwnedFd, grace: Duration) {
        let begun = Instant::now();
        while self.waiting == 0 && !self.has_failed && begun.elapsed() < grace && self.obey() {
            loop {
                match collect_one(&mut |pid, usage| self.account(pid, usage)) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            let _ = await_events(child_signals.as_raw_fd(), libc::POLLIN, Some(LOOK));
            while sys::read_signal(child_signals).is_some() {}
        }
    }

    /// Counts what a process has used that has ended and is still there: a rank, or what one of them has left behind.
    fn account(&mut self, pid: i32, mut usage: RankUsage) {
        if self.faults.handle_collected(pid) {
            return;
        }
        if let Some((_, begun)) = self.all.get(&pid) {
            usage.wall_us = begun.elapsed().as_micros() as u64;
        }
        let rank = member_of(&self.all, pid);
        if self.ranks.contains_key(&pid) {
            self.link.send(KeeperMessage::Used { rank, usage });
        } else {
            self.left.entry(rank).or_default().add(usage);
        }
    }

    /// Tells where ranks have failed, as far as it was found out.
    fn tell_of_faults(&mut self) {
        let link = &self.link;
        for (rank, report) in self.faults.finish(|| !link.is_gone()) {
            link.send(KeeperMessage::failed(rank, report.encode()));
        }
    }

    /// Tells what those have used that were not collected as ranks.
    fn tell_of_the_rest(&mut self) {
        for (rank, usage) in self.left.drain() {
            self.link.send(KeeperMessage::Used { rank, usage });
        }
    }

    fn exit_of(&mut self, pid: i32, status: i32) -> Exit {
        match exit_of(status) {
            killed @ Exit::Signal(libc::SIGKILL) => {
                self.kills.take_of(pid).map_or(killed, |is_sure| Exit::OutOfMemory { is_sure })
            }
            // A shell says so of what it has run: that kill is nobody else's then.
            exit @ Exit::Code(SHELL_SAW_KILL) => {
                self.kills.take_one();
                exit
            }
            exit => exit,
        }
    }

    /// Does what the launcher says; answers false when the job is to end now.
    fn obey(&self) -> bool {
        loop {
            match self.link.try_receive() {
                ReceivedRecord::Message(KeeperMessage::Signal { signal }) => self.signal(signal, |_| true),
                ReceivedRecord::Message(KeeperMessage::SignalOne { rank, signal }) => {
                    self.signal(signal, |one| one == rank)
                }
                ReceivedRecord::NothingYet => return true,
                ReceivedRecord::Message(_) | ReceivedRecord::Gone => return false,
            }
        }
    }

    /// To the groups, so that a rank's wrapper script and what it runs both get it. The kernel ignores what a terminal
    /// stops programs with in a session that has none, so it goes as the one that is never ignored.
    fn signal(&self, signal: i32, gets: impl Fn(usize) -> bool) {
        let signal = if signal == libc::SIGTSTP { libc::SIGSTOP } else { signal };
        for (pid, _) in self.ranks.iter().filter(|(_, rank)| gets(**rank)) {
            let _ = sys::kill(-pid, signal);
        }
    }
}

impl RankStart {
    fn run(mut self, mask: &sys::SignalSet, limit: u64) -> io::Result<u32> {
        let low = |fd: OwnedFd| below(fd, limit);
        let [out, err] = self.outputs;
        let own = self.own.into_iter().map(|(name, fd)| Ok((name, low(fd)?))).collect::<io::Result<Vec<_>>>()?;
        for (name, fd) in &own {
            sys::set_inherited(fd, true)?;
            self.command.env(name, fd.as_raw_fd().to_string());
        }
        self.command.stdout(low(out)?).stderr(low(err)?).stdin(match self.input {
            RankInput::Nothing => Stdio::null(),
            RankInput::Ours => Stdio::inherit(),
            RankInput::Pipe(pipe) => low(pipe)?.into(),
        });
        if !elf::is_executable_format(Path::new(self.command.get_program())) {
            return Err(io::Error::from_raw_os_error(libc::ENOEXEC));
        }
        let blocked = mask.block_only()?;
        let started = sys::spawn(&mut self.command, self.apart, self.core);
        blocked.block_only()?;
        started
    }
}

/// The same description under a number below `limit`: the C library hands on no other, and the rank could not use it.
/// There are free ones, since the launcher's halves are closed here.
fn below(fd: OwnedFd, limit: u64) -> io::Result<OwnedFd> {
    if (fd.as_raw_fd() as u64) < limit { Ok(fd) } else { fd.try_clone() }
}

fn exit_of(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) { Exit::Signal(libc::WTERMSIG(status)) } else { Exit::Code(libc::WEXITSTATUS(status)) }
}

/// Kills all who have become our children because their keeper is gone.
pub fn kill_orphans() {
    let set = sys::SignalSet::of(&[libc::SIGCHLD]);
    if let (Ok(_), Ok(child_signals)) = (set.block(), set.descriptor()) {
        kill_descendants(&child_signals, |_, _| {});
    }
}

/// Kills children until there are none: the children of the dead become ours and are next. Answers how many processes
/// there were. `child_signals` is where `SIGCHLD` is read; `account` is told what each has used.
fn kill_descendants(child_signals: &OwnedFd, mut account: impl FnMut(i32, RankUsage)) -> usize {
    let begun = Instant::now();
    let mut killed = std::collections::HashSet::new();
    loop {
        loop {
            match collect_one(&mut account) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return killed.len(),
            }
        }
        for child in children() {
            let _ = sys::kill(child, libc::SIGKILL);
            killed.insert(child);
        }
        if begun.elapsed() > LAST_WAIT {
            return killed.len();
        }
        let _ = await_events(child_signals.as_raw_fd(), libc::POLLIN, Some(LOOK));
        while sys::read_signal(child_signals).is_some() {}
    }
}

/// Our children, dead ones that are not collected included.
fn children() -> Vec<i32> {
    let us = std::process::id();
    match std::fs::read_to_string(format!("/proc/self/task/{us}/children")) {
        Ok(list) => list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        Err(_) => children_by_search(us),
    }
}

/// For kernels without lists of children.
fn children_by_search(parent: u32) -> Vec<i32> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

fn parent_of(pid: i32) -> Option<u32> {
    relative(pid, 1)
}

/// Whose a process is: a rank, or what one has started.
fn member_of(all: &HashMap<i32, (usize, Instant)>, pid: i32) -> Option<usize> {
    let itself = all.get(&pid).map(|(member, _)| *member);
    itself.or_else(|| leaders_of(pid).into_iter().flatten().find_map(|leader| Some(all.get(&leader)?.0)))
}

/// The leaders of the process group and of the session of a process, also of one that has ended and is not collected.
fn leaders_of(pid: i32) -> [Option<i32>; 2] {
    [2, 3].map(|at| relative(pid, at))
}

/// The name stands in parentheses and may hold anything; state, parent, group and session follow it.
fn relative<T: std::str::FromStr>(pid: i32, at: usize) -> Option<T> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(at)?.parse().ok()
}

/// Collects a child that has ended: its number and raw wait status. `account` is told what it has used, while it is
/// still there. `None` when all live.
fn collect_one(account: &mut impl FnMut(i32, RankUsage)) -> io::Result<Option<(i32, i32)>> {
    let Some((pid, usage)) = sys::next_ended()? else { return Ok(None) };
    account(pid, usage);
    sys::wait(pid, libc::WNOHANG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_finds_the_same_children_as_the_kernel_list() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id() as i32;
        assert_eq!(parent_of(pid), Some(std::process::id()));
        assert!(children_by_search(std::process::id()).contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
