//! Starting processes out of a program, signalling them, and hearing how they end.
//!
//! Who starts processes opens a door and has a launcher started, which gets its order there (`weft_fabric::spawn`). The
//! new processes are a job of their own. Each comes to the door when it joins, and both sides adopt each other's card:
//!
//! ```text
//! the new process                         who has started it
//! at the door: j, card                ->
//!                                     <-  w, card
//! ```
//!
//! The conversation with the launcher goes on: it tells how each process has ended, and passes signals on.

use crate::desk::{self, FABRIC};
use crate::end_desk;
use crate::error::{ErrorKind, NativeError, Result};
use crate::known;
use crate::office::{adopt, card_in, with_card};
use crate::started_desk::{StartedJob, ended};
use std::ffi::OsString;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use weft_fabric::door::{Door, DoorError, Talk};
use weft_fabric::spawn::{Exit, Program, SIGNALS, SignalWish, SpawnOrder, SpawnWord};
use weft_ports::{Endpoint, InterfaceName, Peer, Waiting};

/// How long a launcher may take until it asks what it is to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the first byte of a piece says: a new process joins, with a card; and is welcome, with a card.
const JOINS: u8 = b'j';
const WELCOME: u8 = b'w';

/// Ends all that were started where some do not come.
const END: i32 = libc::SIGTERM;

const NOBODY: u32 = u32::MAX;
/// Who has started this process.
static PARENT: AtomicU32 = AtomicU32::new(NOBODY);

/// What is to be started.
pub struct WantedProcesses {
    pub program: String,
    pub arguments: Vec<OsString>,
    pub count: u32,
    /// The name of the host, where it is to be one.
    pub host: Option<String>,
}

fn failed(why: impl Into<String>) -> NativeError {
    NativeError::new(ErrorKind::Start, why.into())
}

fn waiting(call: &'static str) -> Waiting {
    Waiting { call, peer: None, tag: None, context: 0 }
}

fn in_words(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
        Exit::OutOfMemory { .. } => "killed for want of memory".to_owned(),
    }
}

/// Processes that are being started.
struct StartingJob {
    door: Door,
    order: Vec<u8>,
    program: String,
    count: usize,
    begun: Instant,
    job: StartedJob,
}

impl StartingJob {
    /// One step; true when all have come.
    fn advance(&mut self, endpoint: &mut Endpoint) -> Result<bool> {
        while let Some((mut talk, piece)) = self.door.poll_visitor() {
            if SpawnOrder::is_asked_for(&piece) && self.job.launcher.is_none() {
                talk.say(&self.order);
                self.job.launcher = Some(talk);
            } else if let Some((card, _)) = card_in(JOINS, &piece)
                && (card.identity.rank as usize) < self.count
            {
                let welcome = with_card(WELCOME, endpoint, &[]).and_then(|welcome| {
                    let peer = adopt(endpoint, &card)?;
                    self.job.processes.insert(card.identity.rank, peer);
                    Ok(welcome)
                });
                talk.say(&welcome.map_err(|error| NativeError::system("a process cannot be reached", &error))?);
            }
        }
        self.listen()?;
        Ok(self.job.processes.len() >= self.count)
    }

    /// Takes what the launcher says.
    fn listen(&mut self) -> Result<()> {
        let program = &self.program;
        loop {
            match self.job.launcher.as_mut().map(Talk::poll) {
                None if self.begun.elapsed() > PATIENCE => {
                    let text = format!("the launcher has not asked for its order for {} s", PATIENCE.as_secs());
                    return Err(failed(text));
                }
                None | Some(Ok(None)) => return Ok(()),
                Some(Ok(Some(piece))) => match SpawnWord::decode(&piece) {
                    Some(SpawnWord::Failed { text }) => return Err(failed(text)),
                    Some(SpawnWord::Ended { rank, exit }) if !self.job.processes.contains_key(&rank) => {
                        let how = in_words(exit);
                        let text = format!("process {rank} of '{program}' ended before it called weft_init ({how})");
                        return Err(failed(text));
                    }
                    Some(SpawnWord::Ended { rank, exit }) => _ = self.job.ends.insert(rank, exit),
                    _ => {}
                },
                Some(Err(DoorError::Closed)) => {
                    return Err(failed(format!("the processes of '{program}' ended before they called weft_init")));
                }
                Some(Err(error)) => return Err(failed(format!("the launcher of '{program}' is lost: {error}"))),
            }
        }
    }

    /// What was started is to end.
    fn give_up(self) {
        if let Some(mut launcher) = self.job.launcher {
            launcher.say(&SignalWish { rank: None, signal: END }.encode());
        }
    }
}

/// Starts processes, and waits until all of them have joined: their numbers, in the order of those in their own job.
pub(crate) fn start(wanted: WantedProcesses) -> Result<Vec<Peer>> {
    known::allowed()?;
    let WantedProcesses { program, arguments, count, host } = wanted;
    if count == 0 || count > i32::MAX as u32 {
        return Err(NativeError::argument(format!("{} processes: at least 1 is started", count as i32)));
    }
    if program.is_empty() {
        return Err(NativeError::argument("the name of the program is empty"));
    }
    let door = FABRIC.with(Endpoint::open_door);
    let door = door.map_err(|error| NativeError::system("there is no door for new processes", &error))?;
    let count = count as usize;
    let directory = std::env::current_dir().ok();
    let order = Program { program: program.clone(), arguments, ranks: count, environment: Vec::new(), directory };
    let order = SpawnOrder::new(vec![order], InterfaceName::Native, door.name());
    let order = SpawnOrder { host, watched: true, ..order }.encode();
    FABRIC.with(|endpoint| endpoint.start_launcher(door.name())).map_err(failed)?;
    let mut beginning = StartingJob { door, order, program, count, begun: Instant::now(), job: StartedJob::default() };
    let begun = desk::wait_looking(waiting("weft_start"), |endpoint, _| match beginning.advance(endpoint) {
        Ok(false) => None,
        Ok(true) => Some(Ok(())),
        Err(error) => Some(Err(error)),
    });
    if let Err(error) = begun {
        beginning.give_up();
        return Err(error);
    }
    let job = beginning.job;
    let processes = job.processes.values().copied().collect();
    let added = FABRIC.with_both(|endpoint, desk| {
        // The program may ask for their ends.
        endpoint.keep_quiet_of_others();
        desk.add_started(job)
    });
    added.map_err(|error| NativeError::system("descriptors cannot be watched", &error))?;
    Ok(processes)
}

/// Goes to those who have started this process, if anybody has; to be called once it has joined.
pub(crate) fn greet() -> Result<()> {
    let Some(door) = FABRIC.with(Endpoint::take_parent) else { return Ok(()) };
    let gone = |error: &DoorError| {
        NativeError::new(ErrorKind::Join, format!("the process that has started this one is gone: {error}"))
    };
    let no_way = |error: &std::io::Error| {
        NativeError::new(ErrorKind::Join, format!("the process that has started this one cannot be reached: {error}"))
    };
    let mine = FABRIC.with(|endpoint| with_card(JOINS, endpoint, &[])).map_err(|error| no_way(&error))?;
    let mut talk = Talk::call(&door).map_err(|error| gone(&error))?;
    talk.say(&mine);
    let parent = desk::wait_looking(waiting("weft_init"), |endpoint, _| match talk.poll() {
        Ok(None) => None,
        Ok(Some(piece)) => Some(match card_in(WELCOME, &piece) {
            Some((card, _)) => adopt(endpoint, &card).map_err(|error| no_way(&error)),
            None => Err(gone(&DoorError::Nonsense)),
        }),
        Err(error) => Some(Err(gone(&error))),
    })?;
    PARENT.store(parent.0, Ordering::Relaxed);
    Ok(())
}

/// The process that has started this one, if one has.
pub(crate) fn parent() -> Result<Option<Peer>> {
    known::joined()?;
    let parent = PARENT.load(Ordering::Relaxed);
    Ok((parent != NOBODY).then_some(Peer(parent)))
}

/// Sends a signal to a process of this job, or one that this process has started.
pub(crate) fn signal(process: Peer, signal: i32) -> Result<()> {
    known::known(process)?;
    if !SIGNALS.contains(&signal) {
        let text = format!("signal {signal}: signals are {} to {}", SIGNALS.start(), SIGNALS.end());
        return Err(NativeError::argument(text));
    }
    if process.0 < known::size() {
        return signal_own(process, signal);
    }
    FABRIC.with_both(|_, desk| {
        desk.hear_launchers();
        desk.started.signal(process, signal)
    })
}

/// To one of our own job, by its launcher.
fn signal_own(process: Peer, signal: i32) -> Result<()> {
    FABRIC.with(|endpoint| match end_desk::gone(endpoint, process) {
        Some(_) => Err(ended(process)),
        None => endpoint.signal(process, signal).map_err(|why| {
            NativeError::new(ErrorKind::Process, format!("process {} cannot be signalled: {why}", process.0))
        }),
    })
}
