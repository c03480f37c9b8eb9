//! This task: the ways to others, and sending.
//!
//! A message for a task that has been started and has not enrolled yet waits here until the machine tells its card.

use crate::courier;
use crate::direct::{self, Directly};
use crate::source::came_in_place;
use crate::waiting::{FABRIC, wait_until};
use std::collections::HashMap;
use std::ffi::c_int;
use std::io;
use std::time::{Duration, Instant};
use weft_fabric::Endpoint;
use weft_fabric::foreign::{CARD_WORDS, Card};
use weft_ports::{Envelope, GivenAway, Outcome, Peer};
use weft_pvm_machine::client::DaemonClient;
use weft_pvm_machine::frame::{Answer, Identity, Request};
use weft_pvm_machine::tid;

/// How often who leaves asks whether those are there still that something is to leave for.
const PASSES_PER_QUESTION: u32 = 5;

struct WaitingParcel {
    envelope: Envelope,
    bytes: Box<[u8]>,
}

enum TaskWay {
    Known(Peer),
    /// It is not there yet.
    Asked(Vec<WaitingParcel>),
}

/// Whether the machine knows this task by its rank, and so all others of the job.
fn is_rank(identity: &Identity) -> bool {
    let (size, me) = (FABRIC.size() as usize, FABRIC.me().0 as usize);
    size > 1 && identity.siblings.len() == size && identity.siblings.get(me) == Some(&identity.tid)
}

pub struct OwnTask {
    pub client: DaemonClient,
    pub identity: Identity,
    is_rank: bool,
    ways: HashMap<c_int, TaskWay>,
    /// Whom was sent to last.
    last: (c_int, Peer),
    /// What can leave now that waited for a card.
    ready: Vec<(Peer, WaitingParcel)>,
    leaving: Vec<(Peer, GivenAway)>,
    directly: Directly,
    /// The machine knows how others of this host reach this task.
    is_shown: bool,
    /// ... and those of other hosts.
    is_shown_widely: bool,
}

impl OwnTask {
    pub fn new(client: DaemonClient, identity: Identity, directly: Directly) -> Self {
        let (ready, leaving) = Default::default();
        let me = FABRIC.me();
        let mut ways = HashMap::from([(identity.tid, TaskWay::Known(me))]);
        let size = FABRIC.size();
        let is_rank = is_rank(&identity);
        if is_rank {
            ways.extend(identity.siblings.iter().zip(0..).map(|(tid, rank)| (*tid, TaskWay::Known(Peer(rank)))));
        }
        Self {
            client,
            last: (identity.tid, me),
            identity,
            is_rank,
            ways,
            ready,
            leaving,
            directly,
            is_shown: size == 1,
            is_shown_widely: false,
        }
    }

    /// Whether all ranks of its job are known, by their places.
    pub fn is_rank(&self) -> bool {
        self.is_rank
    }

    /// Another task has this card.
    pub fn meet(&mut self, endpoint: &mut Endpoint, tid: c_int, words: &[u64]) {
        let card = <&[u64; CARD_WORDS]>::try_from(words).ok().and_then(Card::decode);
        let Some(Ok(peer)) = card.map(|card| endpoint.adopt(&card)) else { return };
        if let Some(TaskWay::Asked(waiting)) = self.ways.insert(tid, TaskWay::Known(peer)) {
            self.ready.extend(waiting.into_iter().map(|parcel| (peer, parcel)));
        }
    }

    /// Lets others reach this task, of this host, or of all.
    pub fn show_card(&mut self, endpoint: &mut Endpoint, is_wide: bool) {
        if self.is_shown_widely || self.is_shown && !is_wide {
            return;
        }
        match if is_wide { endpoint.open_widely() } else { endpoint.card() } {
            Ok(card) => {
                // That the machine is gone shows when it is asked.
                let _ = self.client.send(&Request::ShowCard { card: card.encode().to_vec(), is_wide });
                (self.is_shown, self.is_shown_widely) = (true, is_wide);
            }
            Err(error) => eprintln!("libpvm [t{:x}]: other tasks cannot reach this one: {error}", self.identity.tid),
        }
    }

    /// It has ended before it was there.
    pub fn forget(&mut self, tid: c_int) {
        if matches!(self.ways.get(&tid), Some(TaskWay::Asked(_))) {
            self.ways.remove(&tid);
        }
    }

    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether something waits for a task that is not there yet.
    pub fn has_waiting(&self) -> bool {
        self.ways.values().any(|way| matches!(way, TaskWay::Asked(waiting) if !waiting.is_empty()))
    }

    /// Whether something has not left yet.
    pub fn has_leaving(&mut self) -> bool {
        self.leaving.retain(|(_, leaving)| !FABRIC.has_left(*leaving));
        !self.leaving.is_empty()
    }

    /// Sends what waited for a card that is known now.
    pub fn flush(&mut self) {
        if self.ready.is_empty() {
            return;
        }
        for (peer, WaitingParcel { envelope, bytes }) in std::mem::take(&mut self.ready) {
            self.directly.note_sent(peer);
            self.give_away(peer, envelope, bytes);
        }
    }

    fn give_away(&mut self, peer: Peer, envelope: Envelope, bytes: Box<[u8]>) {
        if let Some(leaving) = FABRIC.send_owned_as(peer, envelope, bytes) {
            self.leaving.retain(|(_, leaving)| !FABRIC.has_left(*leaving));
            self.leaving.push((peer, leaving));
            courier::call();
        }
    }

    /// The way to a task, where it is known without asking.
    pub fn known(&self, tid: c_int) -> Option<Peer> {
        match self.ways.get(&tid) {
            Some(TaskWay::Known(peer)) => Some(*peer),
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
    pub fn note_taken(&mut self, message: &Outcome) {
        self.directly.note_taken(message.peer, came_in_place(message.source), message.length);
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
                if let Some(TaskWay::Asked(waiting)) = self.ways.get_mut(&to) {
                    waiting.push(WaitingParcel { envelope, bytes: bytes.into() });
                    courier::call();
                }
            }
        }
        Ok(())
    }

    /// The way to a task, for which the machine is asked; `None` where the task is not there, or not yet.
    ///
    /// # Errors
    /// The machine is gone.
    pub fn find(&mut self, to: c_int) -> io::Result<Option<Peer>> {
        match self.ways.get(&to) {
            Some(TaskWay::Known(peer)) => return Ok(Some(*peer)),
            Some(TaskWay::Asked(_)) => return Ok(None),
            None => {}
        }
        let is_wide = tid::host(to) != tid::host(self.identity.tid);
        FABRIC.with(|endpoint| self.show_card(endpoint, is_wide));
        match self.client.ask(&Request::Meet { tid: to })? {
            Answer::Card { code: 0, card } if card.is_empty() => drop(self.ways.insert(to, TaskWay::Asked(Vec::new()))),
            Answer::Card { code: 0, card } => FABRIC.with(|endpoint| self.meet(endpoint, to, &card)),
            _ => {}
        }
        Ok(self.known(to))
    }

    /// As [`Self::find`], of an identifier that may be no task's.
    ///
    /// # Errors
    /// The machine is gone.
    pub fn find_if_task(&mut self, tid: c_int) -> io::Result<Option<Peer>> {
        match tid {
            -1 => Ok(None),
            of if of == self.last.0 => Ok(Some(self.last.1)),
            of if tid::is_task(of) => self.find(of),
            _ => Ok(None),
        }
    }

    /// Whether a task is awaited that has been started and is not there yet.
    pub fn is_awaited(&self, tid: c_int) -> bool {
        matches!(self.ways.get(&tid), Some(TaskWay::Asked(_)))
    }

    /// What is known of other processes.
    pub fn into_directly(self) -> Directly {
        self.directly
    }

    /// Waits until everything has left that was sent, but what is for tasks that have ended: their processes.
    pub fn settle(&mut self) -> Vec<Peer> {
        self.flush();
        let mut gone = Vec::new();
        for pass in 1_u32.. {
            if pass.is_multiple_of(PASSES_PER_QUESTION) {
                gone.extend(self.forget_gone());
            }
            if !self.has_leaving() {
                break;
            }
            let until = Instant::now() + Duration::from_millis(2);
            let peers: Vec<Peer> = self.leaving.iter().map(|(peer, _)| *peer).collect();
            wait_until("pvm_exit", Some(until), false, |endpoint, _| {
                peers.iter().for_each(|peer| endpoint.lose_ended(*peer));
                (Instant::now() >= until).then_some(())
            });
        }
        gone
    }

    /// Of the processes that something is to leave for those whose tasks are there no more. The fabric may know that
    /// late, of one that was killed before it was first called, or never, of one that is no task any more.
    fn forget_gone(&mut self) -> Vec<Peer> {
        let mut peers: Vec<Peer> = self.leaving.iter().map(|(peer, _)| *peer).collect();
        peers.dedup();
        let client = &mut self.client;
        let mut is_there =
            |tid: c_int| matches!(client.ask(&Request::TaskStatus { tid }), Ok(Answer::Code { code: 0 }));
        let known =
            |(tid, way): (&c_int, &TaskWay)| if let TaskWay::Known(peer) = way { Some((*tid, *peer)) } else { None };
        let tasks: Vec<(c_int, Peer)> = self.ways.iter().filter_map(known).collect();
        peers.retain(|peer| !tasks.iter().any(|(tid, of)| of == peer && is_there(*tid)));
        self.leaving.retain(|(peer, _)| !peers.contains(peer));
        peers
    }
}
