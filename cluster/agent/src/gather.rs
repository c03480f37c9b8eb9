//! Bringing the hosts of a job together: an agent is started on each, asked who it is, told what to start, and let go
//! when all are ready. Until then nothing of the job runs anywhere, and whatever fails is one line that names its host.

use crate::faults::FaultPlan;
use crate::keeper::{Keeper, Kept, RankInput, RankStart as Command};
use crate::link::{KeeperMessage, ReceivedRecord};
use crate::relay::{self, Relay, RelayPlace};
use crate::signals::{self, LauncherSignals};
use crate::stage::StagedFiles;
use crate::sys::Apart;
use crate::{Destination, Job, LaunchError, LaunchHosts, branch, checksum, network, pmix, say, sys};
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};
use weft_cluster::frame::{AgentHello, Frame, Frames, GREETING_BYTES, HostStart, MAGIC, PROTOCOL};
use weft_cluster::hosts::parents;
use weft_cluster::job::is_reserved;
use weft_cluster::state::Exit;
use weft_kernel::EventLoop;
use weft_wire::job_map::{Host as MapHost, JobMap, MAX_ADDRESSES, MappedRank as MapRank};

mod host;
mod remedy;

pub use host::{GatheredHost, Tail};
use remedy::remedy;

/// Kept of what a launch command writes on its standard error.
const SAID_BYTES: usize = 4096;
/// How long launch commands get to end by themselves when they should.
const LEAVE_TIME: Duration = Duration::from_secs(2);
/// How long others are waited for that may refuse as one host has.
const REFUSAL_TIME: Duration = Duration::from_secs(1);
/// How long the PMIx server of a host may take to serve. Its agent gives it up before, and says so.
const PMIX_PATIENCE: Duration = pmix::PATIENCE.saturating_add(Duration::from_secs(5));
/// How long a host that is being copied to may be silent: what was written for it may still lie on the way.
const COPY_PATIENCE: Duration = Duration::from_secs(30);

/// The keeper of the launch commands.
pub struct CommandKeeper {
    pub kept: Kept,
}

/// All hosts of a job, ready to start their ranks.
pub struct Gathered {
    pub guard: CommandKeeper,
    pub hosts: Vec<GatheredHost>,
}

/// See above. When it fails, nothing of the job is left on this host, and the agents elsewhere know that we are gone.
pub fn gather(
    job: &Job,
    hosts: &LaunchHosts,
    size: usize,
    signals: &LauncherSignals,
    limits: (u64, u64),
) -> Result<Gathered, LaunchError> {
    let stage =
        if hosts.stage { Some(StagedFiles::new().map_err(LaunchError::system("reading this program"))?) } else { None };
    let (guard, list, tree) = start_commands(hosts, stage.as_ref(), signals, limits)?;
    let interest = EventLoop::new().map_err(LaunchError::system("epoll"))?;
    let (deadline, patience) = (None, hosts.patience);
    let refused_at = None;
    let mut round = GatherRound { hosts: list, tree, guard, signals, interest, deadline, patience, refused_at, stage };
    match round.all_ready(job, hosts, size) {
        Ok(()) => Ok(Gathered { guard: round.guard, hosts: round.hosts }),
        Err(error) => {
            let error = round.with_refusal(error);
            drop(round.hosts);
            round.guard.end(Duration::ZERO);
            Err(error)
        }
    }
}

/// Who starts the agents.
struct Tree {
    /// The hosts whose launch commands run here, in the order in which they were started.
    direct: Vec<usize>,
    /// Of each host, what its agent is still to start.
    waiting: Vec<Vec<Below>>,
    /// Of each host, those that its agent was told to start, in this order.
    below: Vec<Vec<usize>>,
}

/// A host that another one's agent starts.
struct Below {
    host: usize,
    words: Vec<String>,
    /// The ends of the command's input, output and error.
    ends: [OwnedFd; 3],
}

/// Starts the launch commands, as children of a keeper; where hosts are many, only some.
fn start_commands(
    hosts: &LaunchHosts,
    stage: Option<&StagedFiles>,
    signals: &LauncherSignals,
    limits: (u64, u64),
) -> Result<(CommandKeeper, Vec<GatheredHost>, Tree), LaunchError> {
    let count = hosts.names.len();
    let parents = match hosts.tree {
        Some(least) if count >= least => parents(count),
        _ => vec![None; count],
    };
    let mut tree =
        Tree { direct: Vec::new(), waiting: (0..count).map(|_| Vec::new()).collect(), below: vec![Vec::new(); count] };
    let program = std::env::current_exe().map_err(LaunchError::system("path of this program"))?;
    let agent = [program.to_string_lossy().into_owned(), "agent".to_owned()];
    let mut starts = Vec::new();
    let mut list = Vec::new();
    for (number, name) in hosts.names.iter().enumerate() {
        let words = hosts.launch.command(name, &stage.map_or_else(|| agent.to_vec(), StagedFiles::words));
        let shown = hosts.launch.command(name, &agent).join(" ");
        let (ends, near) = branch::pipes().map_err(LaunchError::system("pipe"))?;
        match parents[number] {
            Some(parent) => {
                // The relay that passes them on must not wait.
                ends.iter().try_for_each(sys::set_nonblocking).map_err(LaunchError::system("pipe"))?;
                tree.waiting[parent].push(Below { host: number, words, ends });
            }
            None => {
                let mut command = std::process::Command::new(&words[0]);
                command.args(&words[1..]);
                let [input, output, error] = ends;
                let input = RankInput::Pipe(input);
                // It may ask at the terminal.
                let (apart, outputs) = (Apart::Group, [output, error]);
                starts.push(Command { command, core: None, input, apart, outputs, own: Vec::new() });
                tree.direct.push(number);
            }
        }
        let ranks = (0..hosts.places.len()).filter(|rank| hosts.places[*rank] == number).collect();
        let over = parents[number].map(|parent| hosts.names[parent].clone());
        list.push(GatheredHost::new(name, ranks, (shown, over), near));
    }
    let keeper = Keeper {
        starts,
        inherit: Vec::new(),
        limits,
        mask: signals.mask_before(),
        faults: FaultPlan::default(),
        grace: Duration::ZERO,
    };
    let (kept, (list, tree)) = keeper.start((list, tree))?;
    Ok((CommandKeeper { kept }, list, tree))
}

impl CommandKeeper {
    /// Waits until the launch commands have ended; those that do not in `time` are killed.
    pub fn end(self, time: Duration) {
        let Kept { link, pid } = self.kept;
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match link.try_receive() {
                ReceivedRecord::Message(KeeperMessage::Over { .. }) | ReceivedRecord::Gone => break,
                ReceivedRecord::Message(_) => {}
                ReceivedRecord::NothingYet if left.is_zero() => break,
                ReceivedRecord::NothingYet => _ = weft_kernel::await_events(link.fd(), libc::POLLIN, Some(left)),
            }
        }
        // The keeper ends everything when it finds us gone.
        drop(link);
        sys::wait_for(pid);
    }
}

/// How long [`CommandKeeper::end`] should wait when all has gone well.
pub fn leave_time() -> Duration {
    LEAVE_TIME
}

/// What is waited for while the hosts are gathered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GatherToken {
    Signal,
    Guard,
    Host(usize, host::GatherSource),
}

struct GatherRound<'a> {
    hosts: Vec<GatheredHost>,
    tree: Tree,
    guard: CommandKeeper,
    signals: &'a LauncherSignals,
    interest: EventLoop<GatherToken>,
    deadline: Option<Instant>,
    patience: Option<Duration>,
    /// When the first host has refused.
    refused_at: Option<Instant>,
    /// What a host gets that has asked for it.
    stage: Option<StagedFiles>,
}

impl GatherRound<'_> {
    fn all_ready(&mut self, job: &Job, hosts: &LaunchHosts, size: usize) -> Result<(), LaunchError> {
        let ours = checksum::of_this_program().map_err(LaunchError::system("reading this program"))?;
        let directory = std::env::current_dir().map_err(LaunchError::system("working directory"))?;
        self.wait_until(|host| host.is_below() || host.progress.has_greeted())?;
        self.check(ours)?;
        if self.hosts.iter().any(GatheredHost::is_below) {
            self.start_below(&directory);
            self.wait_until(|host| host.progress.has_greeted())?;
            self.check(ours)?;
        }
        self.tell_copies(&job.front);
        let environment: Vec<_> =
            std::env::vars_os().filter(|(name, _)| !name.to_str().is_some_and(is_reserved)).collect();
        for host in &mut self.hosts {
            let start = HostStart {
                job: job.id.as_str().to_owned(),
                secret: job.id.secret(),
                front: job.front.clone(),
                size: size as u32,
                ranks: host.ranks.iter().map(|rank| *rank as u32).collect(),
                hosts: hosts.names.clone(),
                places: hosts.places.iter().map(|host| *host as u32).collect(),
                programs: job.programs.clone(),
                environment: environment.clone(),
                directory: directory.clone(),
                bind: job.bind,
                stdin: job.stdin,
                output: job.output.streams.each_ref().map(|stream| match stream {
                    Destination::Merged | Destination::MergedInto(_) => None,
                    Destination::Each(path) => Some(path.clone()),
                }),
                cores: job.cores.clone(),
            };
            host.send(&Frame::Start(Box::new(start)));
        }
        self.wait_until(|host| host.progress.is_ready())?;
        let map = self.job_map(hosts)?.encode();
        self.hosts.iter_mut().for_each(|host| host.send(&Frame::Go(map.clone())));
        Ok(())
    }

    fn check(&self, ours: u64) -> Result<(), LaunchError> {
        self.hosts.iter().try_for_each(|host| host.check(ours, self.stage.is_some()))
    }

    /// Has agents start others.
    fn start_below(&mut self, directory: &std::path::Path) {
        for (host, waiting) in std::mem::take(&mut self.tree.waiting).into_iter().enumerate() {
            let mut commands = Vec::new();
            for Below { host: below, words, ends } in waiting {
                self.hosts[host].carry(commands.len() as u32, ends);
                self.tree.below[host].push(below);
                commands.push(words);
            }
            if !commands.is_empty() {
                self.hosts[host].send(&Frame::Launch { directory: directory.to_owned(), commands });
            }
        }
    }

    /// What agents say of the commands that they have started.
    fn take_reports(&mut self) -> Result<(), LaunchError> {
        for host in 0..self.hosts.len() {
            for (command, outcome) in std::mem::take(&mut self.hosts[host].reports) {
                let Some(below) = self.tree.below[host].get(command as usize) else { continue };
                match outcome {
                    Ok(exit) => self.hosts[*below].ended = Some(exit),
                    Err(errno) => {
                        let reason = std::io::Error::from_raw_os_error(errno).to_string();
                        return Err(self.hosts[*below].not_started(&reason));
                    }
                }
            }
        }
        Ok(())
    }

    fn tell_copies(&self, front: &str) {
        let places: Vec<_> = self.hosts.iter().filter_map(GatheredHost::copied).collect();
        if let (Some(stage), [_, ..]) = (&self.stage, &places[..]) {
            say(front, stage.report(&places));
        }
    }

    fn job_map(&self, hosts: &LaunchHosts) -> Result<JobMap, LaunchError> {
        let map_host = |host: &GatheredHost| {
            let addresses = host.addresses().iter().take(MAX_ADDRESSES).copied().collect();
            MapHost { name: host.name.clone(), addresses }
        };
        let mut members = vec![0; self.hosts.len()];
        let rank = |place: &usize| {
            let member: u32 = members[*place];
            members[*place] += 1;
            let (tcp_port, udp_port) = self.hosts[*place].ports().get(member as usize).copied().unwrap_or_default();
            MapRank { host: *place as u32, member, tcp_port, udp_port }
        };
        Ok(JobMap {
            key: network::new_key()?,
            ranks: hosts.places.iter().map(rank).collect(),
            hosts: self.hosts.iter().map(map_host).collect(),
        })
    }

    /// Returns when all hosts have come so far.
    fn wait_until(&mut self, far_enough: impl Fn(&GatheredHost) -> bool) -> Result<(), LaunchError> {
        let (mut copied, mut patience) = (0, self.patience);
        self.deadline = patience.map(|patience| Instant::now() + patience);
        loop {
            // Whatever one has done, another may have said that it refuses.
            let advanced: Vec<_> = self.hosts.iter_mut().map(|host| host.advance(self.stage.as_mut())).collect();
            advanced.into_iter().collect::<Result<(), _>>()?;
            self.take_reports()?;
            // While something is copied, a host that takes it is heard of; what the way there still holds, and checking
            // it, takes its time as well.
            let copied_before =
                std::mem::replace(&mut copied, self.hosts.iter().map(GatheredHost::copied_bytes).sum::<usize>());
            if copied != copied_before {
                patience = self.patience.map(|patience| patience.max(COPY_PATIENCE));
                self.deadline = patience.map(|patience| Instant::now() + patience);
            }
            if self.hosts.iter().all(&far_enough) {
                return Ok(());
            }
            let now = Instant::now();
            if let Some(error) = self.refusal(now, &far_enough) {
                return Err(error);
            }
            let awaited = self.hosts.iter().filter(|host| host.progress.refusal().is_none() && !far_enough(host));
            let deadline = self
                .deadline
                .and_then(|usual| awaited.map(|host| (host.deadline(usual), host)).min_by_key(|(at, _)| *at));
            if let Some((_, late)) = deadline.filter(|(at, _)| *at <= now) {
                return Err(late.late(patience.unwrap_or_default()));
            }
            let until = deadline.map(|(at, _)| at);
            self.wait_once(now, until)?;
        }
    }

    /// What lacks on one host often lacks on others: who is about to say the same is waited for, to be named with it.
    fn refusal(&mut self, now: Instant, far_enough: impl Fn(&GatheredHost) -> bool) -> Option<LaunchError> {
        let (hosts, code, reason) = self.refused()?;
        let refused_at = *self.refused_at.get_or_insert(now);
        let is_open = |host: &GatheredHost| host.progress.refusal().is_none() && !far_enough(host);
        if self.hosts.iter().any(is_open) && now < refused_at + REFUSAL_TIME {
            return None;
        }
        Some(LaunchError::Refused { hosts, code, reason })
    }

    /// Who has refused, with what the launcher is to exit with, and why.
    fn refused(&self) -> Option<(String, i32, String)> {
        let (code, reason) = self.hosts.iter().find_map(|host| host.progress.refusal())?;
        let alike = self.hosts.iter().filter(|host| host.progress.refusal() == Some((code, reason)));
        let hosts = alike.map(|host| format!("'{}'", host.name)).collect::<Vec<_>>();
        let word = if hosts.len() == 1 { "host" } else { "hosts" };
        Some((format!("{word} {}", hosts.join(", ")), code, reason.to_owned()))
    }

    /// A refusal is told whatever else has come in between while others were waited for.
    fn with_refusal(&self, error: LaunchError) -> LaunchError {
        match (error, self.refused()) {
            (error @ LaunchError::Refused { .. }, _) | (error, None) => error,
            (error, Some((hosts, code, reason))) => {
                let code = if matches!(error, LaunchError::Interrupted { .. }) { error.exit_code() } else { code };
                LaunchError::Refused { hosts, code, reason: format!("{reason}; {error}") }
            }
        }
    }

    fn wait_once(&mut self, now: Instant, deadline: Option<Instant>) -> Result<(), LaunchError> {
        let Self { hosts, guard, interest, .. } = self;
        interest.ask(self.signals.fd(), libc::POLLIN, GatherToken::Signal);
        interest.ask(guard.kept.link.fd(), libc::POLLIN, GatherToken::Guard);
        for (number, host) in hosts.iter().enumerate() {
            host.interest(|fd, events, source| interest.ask(fd, events, GatherToken::Host(number, source)));
        }
        let until = self.refused_at.map(|at| at + REFUSAL_TIME).into_iter().chain(deadline).min();
        let left = until.map(|at| at.saturating_duration_since(now));
        for (token, found) in interest.turn(left).map_err(LaunchError::system("epoll"))? {
            match token {
                GatherToken::Signal => self.handle_signals()?,
                GatherToken::Guard => self.handle_guard()?,
                GatherToken::Host(number, source) => self.hosts[number].handle(source, found),
            }
        }
        Ok(())
    }

    fn handle_signals(&mut self) -> Result<(), LaunchError> {
        while let Some(signal) = self.signals.poll_signal() {
            match signal {
                libc::SIGTSTP => signals::stop_here(),
                libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT => {
                    return Err(LaunchError::Interrupted { signal });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn handle_guard(&mut self) -> Result<(), LaunchError> {
        loop {
            match self.guard.kept.link.try_receive() {
                ReceivedRecord::NothingYet => return Ok(()),
                ReceivedRecord::Message(KeeperMessage::Ended { rank, exit }) => {
                    self.hosts[self.tree.direct[rank]].ended = Some(exit);
                }
                ReceivedRecord::Message(KeeperMessage::NotStarted { rank, errno }) => {
                    let reason = std::io::Error::from_raw_os_error(errno).to_string();
                    return Err(self.hosts[self.tree.direct[rank]].not_started(&reason));
                }
                // Of all that ended, each host says itself what is wrong.
                ReceivedRecord::Message(_) => {}
                ReceivedRecord::Gone if self.tree.direct.iter().all(|host| self.hosts[*host].ended.is_some()) => {
                    return Ok(());
                }
                ReceivedRecord::Gone => {
                    let error = std::io::Error::other("the keeper of the launch commands was killed");
                    return Err(LaunchError::System { what: "hosts", error });
                }
            }
        }
    }
}
