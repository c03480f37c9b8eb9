//! The launcher's half: one loop over the keeper's link, or those to the agents, signals, PMI, output and input.

use crate::descriptors::{self, Here, OurHalf, RankSource};
use crate::gather::{self, CommandKeeper, Tail};
use crate::keeper::{self, Keeper, Kept};
use crate::link::{KeeperMessage, ReceivedRecord};
use crate::members::HostMembers;
use crate::output::{MergedSink, Merger};
use crate::pmix::PmixServer;
use crate::relay::Relay;
use crate::signals::{self, LauncherSignals};
use crate::stdin::Pump;
use crate::{Destination, Finished, Job, JobLog, LaunchError, LaunchHosts, cores, network, say, sys};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use weft_cluster::job;
use weft_cluster::pmi::{PmiEvent, PmiServer};
use weft_cluster::pmix::PmixExchange;
use weft_cluster::state::{Decision, JobState};
use weft_kernel::Timers;

mod events;
mod far;
mod limit;
mod pmix;
mod record;
mod spawned;

/// Between the polite signal and the end by force; and how long the cause of a failure is waited for.
const GRACE: Duration = Duration::from_secs(2);
/// From the end by force until an agent that does not answer is given up.
const GIVE_UP: Duration = Duration::from_secs(5);
/// How long a rank is silent in the middle of a line before a prompt is shown, or others are let in.
const SILENCE: Duration = Duration::from_millis(100);
/// How often we look whether the terminal's foreground is ours.
const FOREGROUND_CHECK: Duration = Duration::from_millis(300);
/// A rank that sends requests and reads no answers is not read beyond this.
const PMI_QUEUE_BYTES: usize = 64 * 1024;

/// A rank's PMI socket with the answers that it has not taken yet.
struct PmiPeer {
    socket: Option<UnixStream>,
    queue: Vec<u8>,
}

/// What serves the ranks as their process manager.
struct Managers {
    pmi: PmiServer,
    pmix: PmixExchange,
    /// The PMIx server of this host.
    pmix_here: Option<PmixServer>,
}

/// A stream of a rank with the time of its last bytes.
struct WatchedStream {
    source: RankSource,
    heard: Instant,
    /// Bytes have come since the last look at its silence.
    fresh: bool,
}

struct Supervisor {
    front: String,
    programs: Vec<String>,
    /// The rank that may ask questions on a terminal.
    asker: Option<usize>,
    limit: limit::JobLimit,
    watches: Vec<HostWatch>,
    /// What ranks near by say in their shared memory.
    members: Option<HostMembers>,
    /// The keeper of the launch commands, in a job on several hosts.
    guard: Option<CommandKeeper>,
    signals: LauncherSignals,
    state: JobState,
    managers: Managers,
    peers: Vec<PmiPeer>,
    streams: Vec<WatchedStream>,
    half: StreamsHalf,
    timers: Timers<Deadline>,
    interrupts: u32,
    /// Processes that had outlived the ranks, so far.
    leftovers: usize,
    /// Lines of the report that have been printed.
    reported: usize,
    /// The user wants out now, with this code.
    leave: Option<i32>,
    /// Launchers of jobs that ranks have spawned.
    spawned: spawned::SpawnedJobs,
    /// What is known of the ranks when the job is over.
    recorder: record::JobRecorder,
}

/// What is due at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Deadline {
    /// The job has taken too long.
    Job,
    /// Agents that have not said yet what their ranks do are not waited for.
    Answers,
    /// The first failure is what we know, though it says itself that it follows from another.
    Cause,
    /// Politeness ends.
    Force,
    /// Agents that are still to end their ranks are given up.
    GiveUp,
}

/// Where the ranks of one host are watched.
struct HostWatch {
    /// The ranks of its members.
    ranks: Vec<usize>,
    way: WatchWay,
    /// Nothing of the job lives there any more.
    over: bool,
}

/// How we speak with who watches them.
enum WatchWay {
    /// Our keeper, with messages for it that found no room.
    Near { kept: Kept, unsent: Vec<KeeperMessage> },
    /// The agent of another host.
    Far { host: String, relay: Box<Relay>, error: Tail },
}

/// Where output goes and input comes from.
struct StreamsHalf {
    sinks: [MergedSink; 2],
    log: Option<JobLog>,
    pump: Option<Pump>,
}

/// What has been made ready before the loop begins.
struct Begun {
    watches: Vec<HostWatch>,
    guard: Option<CommandKeeper>,
    signals: LauncherSignals,
    ours: OurHalf,
    /// The name of each rank's host, and its number.
    hosts: Vec<String>,
    places: Vec<usize>,
    members: Option<HostMembers>,
}

/// See [`crate::run`].
pub fn run(mut job: Job) -> Result<Finished, LaunchError> {
    let size = job::size(&job.programs)?;
    descriptors::keep_the_outer_jobs();
    let limits = descriptors::make_room(size)?;
    if let Some(hosts) = job.hosts.take() {
        let begun = far::begin(&job, &hosts, size, limits)?;
        return Supervisor::new(&mut job, Some(&hosts), begun)?.supervise();
    }
    let (cores, claims) = cores::place(job.bind, size)?;
    let here = if job.network { network::here(&mut job, size)? } else { Here::all(size) };
    let (ours, starts, faults) = descriptors::connect(&job, here, cores)?;
    let signals = LauncherSignals::take().map_err(LaunchError::system("signals"))?;
    let members = HostMembers::of(&job.inherit);
    let inherit = std::mem::take(&mut job.inherit).into_iter().map(|(_, fd)| fd).collect();
    let keeper = Keeper { starts, inherit, limits, mask: signals.mask_before(), faults, grace: keeper::GRACE };
    // The claims stay with the keeper too: they hold until the last of both is gone.
    let (kept, (ours, signals)) = keeper.start((ours, signals))?;
    let way = WatchWay::Near { kept, unsent: Vec::new() };
    let watches = vec![HostWatch { ranks: (0..size).collect(), way, over: false }];
    let hosts = vec![sys::host_name(); size];
    let begun = Begun { watches, guard: None, signals, ours, hosts, places: vec![0; size], members };
    let finished = Supervisor::new(&mut job, None, begun)?.supervise();
    drop(claims);
    finished
}

/// The descriptor that the merged lines of a stream go to. It is open as long as the job is there.
fn sink_of(job: &Job, sink: usize) -> RawFd {
    match &job.output.streams[sink] {
        Destination::MergedInto(file) => file.as_raw_fd(),
        Destination::Merged | Destination::Each(_) => [1, 2][sink],
    }
}

impl StreamsHalf {
    /// A rank has written this.
    fn take_in(&mut self, rank: usize, sink: usize, bytes: &[u8]) {
        self.sinks[sink].merger.handle_bytes(rank, bytes);
        if let Some(log) = &mut self.log {
            log.add(rank, sink == 1, bytes);
        }
    }
}

impl Supervisor {
    fn new(job: &mut Job, on: Option<&LaunchHosts>, begun: Begun) -> Result<Self, LaunchError> {
        let Begun { watches, guard, signals, ours, hosts, places, members } = begun;
        let now = Instant::now();
        let size = hosts.len();
        let appnum = job::programs_by_rank(&job.programs);
        let programs = appnum.iter().map(|number| job.programs[*number].program.clone()).collect();
        let stream = |source| WatchedStream { source, heard: now, fresh: false };
        let inputs: Vec<_> = ours.inputs.into_iter().map(|(_, pipe)| pipe).collect();
        let pump = if inputs.is_empty() { None } else { Some(Pump::new(0, inputs)) };
        let pump = pump.transpose().map_err(LaunchError::system("standard input"))?;
        let (mut state, mut pmix) = (JobState::new(hosts), PmixExchange::new(&places));
        if job.keep_going {
            state.keep_going();
            pmix.keep_going();
        }
        let mut timers = Timers::default();
        if let Some(limit) = &job.timeout {
            timers.start(Deadline::Job, now + limit.time);
        }
        Ok(Self {
            front: job.front.clone(),
            programs,
            asker: match job.stdin {
                job::StdinTo::Rank(rank) => Some(rank),
                _ => None,
            },
            limit: limit::JobLimit::new(job.timeout.clone()),
            watches,
            members,
            guard,
            signals,
            state,
            managers: Managers {
                pmi: PmiServer::on_hosts(&format!("weft-{}", job.id.as_str()), appnum, &places),
                pmix,
                pmix_here: ours.pmix,
            },
            peers: ours.pmi.into_iter().map(|socket| PmiPeer { socket: Some(socket), queue: Vec::new() }).collect(),
            streams: ours.sources.into_iter().map(stream).collect(),
            half: StreamsHalf {
                sinks: [0, 1].map(|sink| MergedSink::new(sink_of(job, sink), Merger::new(size, job.output.tag))),
                log: job.output.log.take(),
                pump,
            },
            timers,
            interrupts: 0,
            leftovers: 0,
            reported: 0,
            leave: None,
            spawned: spawned::SpawnedJobs::new(job, on),
            recorder: record::JobRecorder::new(job, on, places),
        })
    }

    /// Nothing of the job lives any more.
    fn is_over(&self) -> bool {
        self.watches.iter().all(|watch| watch.over)
    }

    fn supervise(mut self) -> Result<Finished, LaunchError> {
        let mut interest = events::Interest::new().map_err(LaunchError::system("epoll"))?;
        // Agents may have spoken before this loop began.
        (0..self.watches.len()).for_each(|watch| self.handle_frames(watch));
        while !self.is_finished() {
            self.ask(&mut interest);
            match interest.turn(self.until_turn()) {
                Ok(found) => found.into_iter().for_each(|(token, found)| self.handle(token, found)),
                Err(error) => self.break_down(&format!("epoll: {error}")),
            }
            self.handle_time();
        }
        Ok(self.finish())
    }

    fn is_finished(&self) -> bool {
        let written = !self.half.sinks.iter().any(|sink| sink.has_work());
        self.leave.is_some() || (self.is_over() && self.streams.is_empty() && written && self.spawned.live.is_empty())
    }

    fn finish(mut self) -> Finished {
        self.part();
        self.report();
        self.report_fault();
        let code = match self.state.exit_code() {
            0 => self.spawned.code.unwrap_or(0),
            code => code,
        };
        let code = self.leave.unwrap_or(code);
        Finished { code, record: self.record(code) }
    }

    /// How long a turn may wait: until the next of our times.
    fn until_turn(&self) -> Option<Duration> {
        let has_unsent = |watch: &HostWatch| matches!(&watch.way, WatchWay::Near { unsent, .. } if !unsent.is_empty());
        if self.watches.iter().any(has_unsent) {
            return Some(Duration::from_millis(1));
        }
        let now = Instant::now();
        let left = |at: Instant| at.saturating_duration_since(now);
        let pump = self.half.pump.as_ref();
        let foreground = pump.is_some_and(|pump| pump.waits_for_foreground()).then_some(FOREGROUND_CHECK);
        let silence = self.streams.iter().filter(|stream| self.is_watched(stream)).map(|s| left(s.heard + SILENCE));
        [self.timers.next().map(left), foreground].into_iter().flatten().chain(silence).min()
    }

    /// Whether the stream's silence means something: others wait for its long line, or it may have put a question.
    fn is_watched(&self, stream: &WatchedStream) -> bool {
        let RankSource { rank, sink, .. } = stream.source;
        let sink = &self.half.sinks[sink];
        stream.fresh && (sink.merger.exclusive_rank() == Some(rank) || (sink.is_terminal() && self.asker == Some(rank)))
    }

    fn handle_time(&mut self) {
        let now = Instant::now();
        while let Some(timer) = self.timers.take_due(now) {
            self.handle_timer(timer);
        }
        for at in 0..self.streams.len() {
            if self.is_watched(&self.streams[at]) && self.streams[at].heard + SILENCE <= now {
                self.streams[at].fresh = false;
                let RankSource { rank, sink, .. } = self.streams[at].source;
                let merger = &mut self.half.sinks[sink].merger;
                merger.release(rank);
                merger.handle_silence(rank);
            }
        }
        for watch in &mut self.watches {
            if let WatchWay::Near { unsent, .. } = &mut watch.way {
                let unsent = std::mem::take(unsent);
                unsent.into_iter().for_each(|message| watch.tell(message));
            }
        }
    }

    fn handle_timer(&mut self, timer: Deadline) {
        match timer {
            Deadline::Job => self.handle_limit(),
            Deadline::Answers => self.end_by_limit(),
            Deadline::Cause => {
                let decision = self.state.handle_no_cause();
                self.obey(decision);
            }
            Deadline::Force => self.end_by_force(),
            Deadline::GiveUp => self.give_up(),
        }
    }

    /// To all who watch ranks.
    fn tell(&mut self, message: KeeperMessage) {
        self.watches.iter_mut().for_each(|watch| watch.tell(message.clone()));
    }

    /// Carries out what the state machine decided, and says why at once.
    fn obey(&mut self, decision: Decision) {
        match decision {
            Decision::Continue => {}
            Decision::AwaitCause => self.timers.start(Deadline::Cause, Instant::now() + GRACE),
            Decision::EndOthers => {
                self.report();
                self.end_ranks();
            }
            Decision::TellOthers(rank) => {
                if let Some(line) = self.state.loss() {
                    say(&self.front, line);
                }
                self.managers.pmi.handle_lost(rank);
                self.handle_pmi_events();
                self.managers.pmix.handle_lost(rank);
                self.handle_pmix_events();
            }
        }
    }

    fn end_ranks(&mut self) {
        self.tell(KeeperMessage::Signal { signal: libc::SIGTERM });
        // A stopped rank acts on the first signal only when it runs again.
        self.tell(KeeperMessage::Signal { signal: libc::SIGCONT });
        [libc::SIGTERM, libc::SIGCONT].into_iter().for_each(|signal| self.spawned.signal(signal));
        self.timers.start(Deadline::Force, Instant::now() + GRACE);
    }

    fn end_by_force(&mut self) {
        self.timers.stop(Deadline::Force);
        self.tell(KeeperMessage::Kill);
        self.spawned.signal(libc::SIGKILL);
        self.timers.start(Deadline::GiveUp, Instant::now() + GIVE_UP);
    }

    fn break_down(&mut self, reason: &str) {
        let decision = self.state.handle_breakdown(reason);
        self.obey(decision);
    }

    /// Prints the lines of the report that are new. They go out at once, past what waits for a slow reader of our
    /// standard output.
    fn report(&mut self) {
        let lines = self.state.report();
        for line in &lines[self.reported.min(lines.len())..] {
            say(&self.front, line);
        }
        self.reported = lines.len();
    }
}
