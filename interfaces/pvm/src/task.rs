//! This task: how it enrols, and the ways to others.
//!
//! A message for a task that has been started and has not enrolled yet waits here until the machine tells its card.

use crate::buffer::Encoding;
use crate::courier::{self, CourierLook};
use crate::direct::{self, Directly};
use crate::errors::Error;
use crate::library::{Library, pvmmyctx, pvmmytid, try_library};
use std::collections::HashMap;
use std::ffi::c_int;
use std::io::{self, ErrorKind};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Stdio};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use weft_fabric::Endpoint;
use weft_fabric::foreign::{CARD_WORDS, Card};
use weft_fabric::spawn::find_weft;
use weft_ports::{Companion, Envelope, GivenAway, InterfaceName, Messenger, Peer};
use weft_pvm_machine::client::Client;
use weft_pvm_machine::frame::{Answer, Bytes, Identity, Introduction, Request};

/// Tells a process that it was started as this task.
const TASK_VARIABLE: &str = "PVM_TASK_ID";
/// The machine's answer to the last task that leaves: it ends.
const LAST: c_int = 1;
/// How long that is waited for.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often, and how long after each other, the daemon is called that another task may just be starting.
const CALLS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);
const PATIENCE_AT_LAST: u32 = 100;

/// The task's access to the fabric. Open from its first enrolling to the end of the process.
pub static FABRIC: Messenger<Wakes> = Messenger::new();

/// What a thread that sleeps is woken for besides messages.
#[derive(Default)]
pub struct Wakes {
    pub daemon: Option<RawFd>,
    pub until: Option<Instant>,
    /// It waits for one other task, and looks now and then whether that still is.
    pub looks: bool,
    /// It has slept since this was last looked at.
    slept: bool,
    passes: u32,
}

/// How long a thread sleeps that waits for one other task.
const LOOK: Duration = Duration::from_millis(20);
/// So many passes without a sleep between two looks at what is rare.
const PASSES_PER_LOOK: u32 = 1024;

impl Wakes {
    /// Whether it is time to look at what the machine says, and who has ended.
    #[inline]
    pub fn is_time(&mut self) -> bool {
        self.passes = self.passes.wrapping_add(1);
        std::mem::take(&mut self.slept) || self.passes.is_multiple_of(PASSES_PER_LOOK)
    }
}

impl Companion for Wakes {
    fn idle(&mut self, _: &mut Endpoint, sleeps: bool) -> bool {
        self.slept |= sleeps;
        false
    }

    fn attended(&self) -> Option<RawFd> {
        self.daemon
    }

    fn longest_sleep(&self) -> Option<Duration> {
        let rest = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        rest.into_iter().chain(self.looks.then_some(LOOK)).min()
    }
}

struct Parcel {
    envelope: Envelope,
    bytes: Box<[u8]>,
}

enum Way {
    Known(Peer),
    /// It is not there yet.
    Asked(Vec<Parcel>),
}

pub struct Task {
    pub client: Client,
    pub identity: Identity,
    ways: HashMap<c_int, Way>,
    /// Whom was sent to last.
    last: (c_int, Peer),
    /// What can leave now that waited for a card.
    ready: Vec<(Peer, Parcel)>,
    leaving: Vec<(Peer, GivenAway)>,
    directly: Directly,
    /// The machine knows how others reach this task.
    is_shown: bool,
}

impl Library {
    /// Becomes a task, if it is none.
    ///
    /// # Errors
    /// There is no virtual machine, and none can be started.
    pub fn enrol(&mut self) -> Result<(), Error> {
        if self.task.is_some() {
            return Ok(());
        }
        let outcome = open().and_then(|()| introduce());
        match outcome {
            Ok((client, identity)) => {
                FABRIC.with_both(|_, wakes| wakes.daemon = Some(client.descriptor()));
                pvmmytid.store(identity.tid, Ordering::Relaxed);
                if identity.context != 0 {
                    pvmmyctx.store(identity.context, Ordering::Relaxed);
                }
                self.options.set_output(&identity.prints_to);
                let directly = self.directly.take().unwrap_or_default();
                self.task = Some(Task::new(client, identity, directly));
                Ok(())
            }
            Err(error) => {
                eprintln!("libpvm [pid{}]: no virtual machine: {error}", std::process::id());
                Err(Error::SYS_ERR)
            }
        }
    }

    /// Delivers what can leave now; whether something is left.
    fn deliver(&mut self) -> bool {
        if self.task.is_none() || FABRIC.with(|endpoint| self.listen(endpoint)).is_err() {
            return false;
        }
        FABRIC.poll();
        self.task.as_mut().is_some_and(|task| {
            task.flush();
            task.leaving.retain(|(_, leaving)| !FABRIC.has_left(*leaving));
            !task.leaving.is_empty() || task.has_waiting()
        })
    }

    /// Waits until tasks have come, or have ended, that something was sent to before they were there.
    fn await_ways(&mut self) -> Result<(), Error> {
        while self.task.as_mut().is_some_and(|task| {
            task.flush();
            task.has_waiting()
        }) {
            wait_until("pvm_exit", None, false, |endpoint, _| match self.listen(endpoint) {
                Ok(false) if self.task.as_ref().is_some_and(Task::has_waiting) => None,
                other => Some(other),
            })?;
        }
        Ok(())
    }

    /// Is a task no more. What it has sent leaves first.
    ///
    /// # Errors
    /// The machine is gone.
    pub fn leave(&mut self) -> Result<(), Error> {
        self.await_ways()?;
        let told = self.ask_code(&Request::Leave);
        if let Some(mut task) = self.task.take() {
            task.settle();
            if told == Ok(LAST) {
                task.client.await_end(PATIENCE);
            }
            self.directly = Some(task.into_directly());
        }
        FABRIC.with_both(|_, wakes| wakes.daemon = None);
        pvmmytid.store(-1, Ordering::Relaxed);
        told.map(drop)
    }
}

/// Opens the fabric.
fn open() -> io::Result<()> {
    if !FABRIC.is_open() {
        let endpoint =
            Endpoint::join_as(InterfaceName::Pvm, &[]).map_err(|error| io::Error::other(error.to_string()))?;
        FABRIC.open_beside(endpoint, Wakes::default(), false);
        FABRIC.lend();
        crate::abi::at_exit(close);
    }
    Ok(())
}

/// What the courier does.
fn look() -> CourierLook {
    let Some(mut library) = try_library() else { return CourierLook::Busy };
    if library.deliver() { CourierLook::Left } else { CourierLook::Nothing }
}

/// The library, unless a call of the program is in it. The courier has it for moments.
fn library_at_last() -> Option<MutexGuard<'static, Library>> {
    (0..PATIENCE_AT_LAST).find_map(|_| {
        try_library().or_else(|| {
            std::thread::sleep(PAUSE / 100);
            None
        })
    })
}

/// The process ends.
extern "C" fn close() {
    if FABRIC.is_open() {
        // Where it ends inside of a call, what is left goes with it.
        if let Some(mut library) = library_at_last() {
            if library.task.is_some() {
                let _ = library.leave();
            }
            FABRIC.close();
        }
    }
}

fn introduce() -> io::Result<(Client, Identity)> {
    let started_as = std::env::var(TASK_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let (job, rank, size) = FABRIC.with(|endpoint| {
        let identity = endpoint.identity(endpoint.me());
        (identity.world, identity.rank, endpoint.world_size())
    });
    // A job that nobody else talks to needs no way for others.
    let card = if size > 1 { Vec::new() } else { FABRIC.with(Endpoint::card)?.encode().to_vec() };
    let name = std::env::current_exe().map(|path| path.into_os_string().into_vec()).unwrap_or_default();
    let who = Introduction {
        pid: std::process::id() as i32,
        started_as,
        card,
        name: Bytes(name),
        job: if size > 1 { job } else { 0 },
        rank,
        size,
    };
    let mut last = ErrorKind::ConnectionRefused.into();
    for call in 0..CALLS {
        match Client::connect() {
            Ok(mut client) => match client.ask(&Request::Enrol { who: who.clone() }) {
                Ok(Answer::Enrolled { identity }) => return Ok((client, identity)),
                Ok(_) => return Err(io::Error::other("the daemon has no place for another task")),
                // It is about to end: the next one comes.
                Err(error) => last = error,
            },
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
            Err(error) => {
                last = error;
                if call % 10 == 0 {
                    start_daemon(&[])?;
                    continue;
                }
            }
        }
        std::thread::sleep(PAUSE);
    }
    Err(last)
}

/// Starts a machine that stays until it is halted, with these words for the daemon; false where there is one.
///
/// # Errors
/// None can be started.
pub fn start_machine(words: &[String]) -> io::Result<bool> {
    match Client::connect() {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(error),
        Err(_) => start_daemon(&["--stay".to_owned()].iter().chain(words).cloned().collect::<Vec<_>>()).map(|()| true),
    }
}

fn start_daemon(words: &[String]) -> io::Result<()> {
    let weft = find_weft().ok_or_else(|| io::Error::other("no weft is beside this library, and none is in PATH"))?;
    let mut command = Command::new(&weft);
    command.args(["pvm", "--start"]).args(words).env_remove(TASK_VARIABLE).stdin(Stdio::null()).stdout(Stdio::null());
    match command.status() {
        Ok(status) if !status.success() => Err(io::Error::other(format!("'{}': {status}", weft.display()))),
        // A program that ignores the ends of its children has no codes of theirs.
        Err(error) if error.raw_os_error() != Some(libc::ECHILD) => Err(error),
        _ => Ok(()),
    }
}

impl Task {
    fn new(client: Client, identity: Identity, directly: Directly) -> Self {
        let (ready, leaving) = Default::default();
        let me = FABRIC.me();
        let mut ways = HashMap::from([(identity.tid, Way::Known(me))]);
        let size = FABRIC.size();
        let is_rank = size > 1 && identity.siblings.get(me.0 as usize) == Some(&identity.tid);
        if is_rank && identity.siblings.len() == size as usize {
            ways.extend(identity.siblings.iter().zip(0..).map(|(tid, rank)| (*tid, Way::Known(Peer(rank)))));
        }
        Self { client, last: (identity.tid, me), identity, ways, ready, leaving, directly, is_shown: size == 1 }
    }

    /// Another task has this card.
    pub fn meet(&mut self, endpoint: &mut Endpoint, tid: c_int, words: &[u64]) {
        let card = <&[u64; CARD_WORDS]>::try_from(words).ok().and_then(Card::decode);
        let Some(Ok(peer)) = card.map(|card| endpoint.adopt(&card)) else { return };
        if let Some(Way::Asked(waiting)) = self.ways.insert(tid, Way::Known(peer)) {
            self.ready.extend(waiting.into_iter().map(|parcel| (peer, parcel)));
        }
    }

    /// Lets others reach this task.
    pub fn show_card(&mut self, endpoint: &mut Endpoint) {
        if !self.is_shown
            && let Ok(card) = endpoint.card()
        {
            // That the machine is gone shows when it is asked.
            let _ = self.client.send(&Request::ShowCard { card: card.encode().to_vec() });
            self.is_shown = true;
        }
    }

    /// It has ended before it was there.
    pub fn forget(&mut self, tid: c_int) {
        if matches!(self.ways.get(&tid), Some(Way::Asked(_))) {
            self.ways.remove(&tid);
        }
    }

    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether something waits for a task that is not there yet.
    fn has_waiting(&self) -> bool {
        self.ways.values().any(|way| matches!(way, Way::Asked(waiting) if !waiting.is_empty()))
    }

    /// Sends what waited for a card that is known now.
    pub fn flush(&mut self) {
        if self.ready.is_empty() {
            return;
        }
        for (peer, Parcel { envelope, bytes }) in std::mem::take(&mut self.ready) {
            self.directly.note_sent(peer);
            self.give_away(peer, envelope, bytes);
        }
    }

    fn give_away(&mut self, peer: Peer, envelope: Envelope, bytes: Box<[u8]>) {
        if let Some(leaving) = FABRIC.send_owned_as(peer, envelope, bytes) {
            self.leaving.retain(|(_, leaving)| !FABRIC.has_left(*leaving));
            self.leaving.push((peer, leaving));
            courier::call(look);
        }
    }

    /// The way to a task, where it is known without asking.
    pub fn known(&self, tid: c_int) -> Option<Peer> {
        match self.ways.get(&tid) {
            Some(Way::Known(peer)) => Some(*peer),
            _ => None,
        }
    }

    /// Sends, and waits for nobody. What goes to a task that is not there is dropped, as PVM does.
    ///
    /// # Errors
    /// The machine is gone.
    #[inline]
    pub fn send(&mut self, to: c_int, envelope: Envelope, bytes: &[u8]) -> io::Result<()> {
        if self.last.0 == to && self.ready.is_empty() {
            self.send_to(self.last.1, envelope, bytes);
            return Ok(());
        }
        self.send_far(to, envelope, bytes)
    }

    /// As [`Self::send`], of bytes that stand in the program's memory. Where the receiver waits for just these they go
    /// from there into its own, and this call returns when it has them.
    ///
    /// # Errors
    /// The machine is gone.
    pub fn send_from(&mut self, to: c_int, envelope: Envelope, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() < direct::LEAST {
            return self.send(to, envelope, bytes);
        }
        self.flush();
        let Some(peer) = self.find(to)? else { return self.send(to, envelope, bytes) };
        if self.directly.is_awaited(peer, &envelope) {
            self.directly.note_sent(peer);
            // A receiver that is lost has nothing, as with all messages.
            let _ = FABRIC.send_as("pvm_psend", peer, envelope, bytes);
            return Ok(());
        }
        self.send(to, envelope, bytes)
    }

    /// A message has been taken that this task has sent.
    #[inline]
    pub fn note_taken(&mut self, from: Peer, encoding: Encoding, length: u64) {
        self.directly.note_taken(from, encoding, length);
    }

    /// Tells the sender that this task waits for a message, if it sends long ones out of its memory.
    pub fn say_waiting(&mut self, from: Peer, tag: Option<i32>, context: u32, room: usize) {
        self.directly.say_waiting(from, tag, context, room);
    }

    #[inline]
    fn send_to(&mut self, peer: Peer, envelope: Envelope, bytes: &[u8]) {
        self.directly.note_sent(peer);
        if !FABRIC.try_send(peer, envelope, bytes) {
            self.give_away(peer, envelope, bytes.into());
        }
    }

    #[cold]
    fn send_far(&mut self, to: c_int, envelope: Envelope, bytes: &[u8]) -> io::Result<()> {
        self.flush();
        match self.find(to)? {
            Some(peer) => {
                self.last = (to, peer);
                self.send_to(peer, envelope, bytes);
            }
            None => {
                if let Some(Way::Asked(waiting)) = self.ways.get_mut(&to) {
                    waiting.push(Parcel { envelope, bytes: bytes.into() });
                    courier::call(look);
                }
            }
        }
        Ok(())
    }

    /// The way to a task, for which the machine is asked; `None` where the task is not there, or not yet.
    ///
    /// # Errors
    /// The machine is gone.
    pub fn find(&mut self, tid: c_int) -> io::Result<Option<Peer>> {
        match self.ways.get(&tid) {
            Some(Way::Known(peer)) => return Ok(Some(*peer)),
            Some(Way::Asked(_)) => return Ok(None),
            None => {}
        }
        FABRIC.with(|endpoint| self.show_card(endpoint));
        match self.client.ask(&Request::Meet { tid })? {
            Answer::Card { code: 0, card } if card.is_empty() => drop(self.ways.insert(tid, Way::Asked(Vec::new()))),
            Answer::Card { code: 0, card } => FABRIC.with(|endpoint| self.meet(endpoint, tid, &card)),
            _ => {}
        }
        Ok(self.known(tid))
    }

    /// As [`Self::find`], of an identifier that may be no task's.
    ///
    /// # Errors
    /// The machine is gone.
    pub fn find_if_task(&mut self, tid: c_int) -> io::Result<Option<Peer>> {
        match tid {
            -1 => Ok(None),
            of if of == self.last.0 => Ok(Some(self.last.1)),
            of if weft_pvm_machine::tid::is_task(of) => self.find(of),
            _ => Ok(None),
        }
    }

    /// Whether a task is awaited that has been started and is not there yet.
    pub fn is_awaited(&self, tid: c_int) -> bool {
        matches!(self.ways.get(&tid), Some(Way::Asked(_)))
    }

    /// What is known of other processes.
    pub fn into_directly(self) -> Directly {
        self.directly
    }

    /// Waits until everything has left that was sent, but what is for tasks that have ended.
    fn settle(&mut self) {
        self.flush();
        loop {
            self.leaving.retain(|(_, leaving)| !FABRIC.has_left(*leaving));
            if self.leaving.is_empty() {
                return;
            }
            let until = Instant::now() + Duration::from_millis(2);
            let peers: Vec<Peer> = self.leaving.iter().map(|(peer, _)| *peer).collect();
            wait_until("pvm_exit", Some(until), false, |endpoint, _| {
                peers.iter().for_each(|peer| endpoint.lose_ended(*peer));
                (Instant::now() >= until).then_some(())
            });
        }
    }
}

/// Waits until `done` answers. A thread that sleeps wakes up at `until`, and now and then where it `looks`; `done` is told
/// when it is time to look at what is rare.
#[inline]
pub fn wait_until<R>(
    call: &'static str,
    until: Option<Instant>,
    looks: bool,
    mut done: impl FnMut(&mut Endpoint, bool) -> Option<R>,
) -> R {
    let what = weft_ports::Waiting { call, peer: None, tag: None, context: 0 };
    FABRIC.with_both(|_, wakes| (wakes.until, wakes.looks) = (until, looks));
    FABRIC.wait_both(what, |endpoint, wakes| {
        let is_time = wakes.is_time();
        done(endpoint, is_time)
    })
}
