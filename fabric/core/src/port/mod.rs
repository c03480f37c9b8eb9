//! The port protocol: tagged messages between processes, selective receive, eager and rendezvous.
//!
//! [`Port`] owns requests, matching, and what waits in either direction; each is a machine of its own, and this module
//! routes packets between them. It never touches the device: it is the device's [`Sink`], and what it wants to send
//! waits in `outbound` until [`Port::pump`].
//!
//! How a message goes (`n` its bytes):
//! - `n` <= 48: [`Kind::Short`], header and payload in one cell.
//! - `n` <= `eager_bytes`: [`Kind::Eager`], then [`Kind::More`] until all is there; or, where that is faster, [`Kind::Ask`]
//!   as an offer, and the receiver copies at once.
//! - over a connection up to sixteen times that, where the receiver waited for the last ones ([`unasked`]): [`Kind::Eager`] as well,
//!   and the receiver answers with [`Kind::Waited`].
//! - longer, or synchronous: [`Kind::Ask`]; the receiver answers with [`Kind::GrantStream`] (the sender streams) or
//!   [`Kind::GrantCopy`] (both sides copy chunks out of the sender's memory); whoever finishes tells the other.
//!
//! `eager_bytes` is 64 KiB (`WEFT_EAGER_BYTES`). Offers begin above 8 KiB, or at 2 KiB for memory that the interface
//! made. A message to oneself is matched in the process and copied once.

mod choice;
mod closing;
mod inbound;
mod offers;
mod order;
mod outbound;
mod receive;
mod rendezvous;
pub(crate) mod requests;
mod retract;
mod send;
mod shown;
mod unasked;

use crate::api::{Fault, Peer, RequestId};
use crate::devices::Slots;
use crate::events::{self, Event, tell};
use crate::raw::Raw;
use crate::status::PageCounters;
use choice::Choice;
use inbound::{ArrivedTable, OpenStream};
use offers::Offers;
use order::Order;
pub(crate) use order::{By, Ordered};
use outbound::{Control, Outbound};
use receive::EAGER_CEILING;
use requests::{Requests, State};
pub use shown::Place;
use shown::{Asked, Opens};
use std::collections::VecDeque;
pub(crate) use unasked::Word;
use weft_device::shm::{CopyJob, CopySlots};
use weft_device::{NoMemory, Packet, PeerFault, Room, Sink};
use weft_protocol::matching::Matcher;
use weft_wire::cell::Kind;
use weft_wire::settings::{Settings, SingleCopy};

/// Thresholds, bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest message sent without asking.
    pub eager: usize,
    /// Smallest message copied out of the sender's memory; `None`: what has been faster lately.
    pub single_copy: Option<usize>,
    pub single_copy_allowed: bool,
    /// So much on its way to us is taken to be in the caches still when the user reads it; of more than that, streams
    /// are stored past the caches.
    pub cached: usize,
}

impl From<&Settings> for Limits {
    fn from(settings: &Settings) -> Self {
        Self {
            eager: settings.eager_bytes as usize,
            single_copy: settings.single_copy_bytes.map(|bytes| bytes as usize),
            single_copy_allowed: settings.single_copy != SingleCopy::Off,
            cached: usize::MAX,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::from(&Settings::default())
    }
}

/// A long message that this side helps to copy.
struct Job {
    copy: CopyJob,
    peer: u32,
    request: RequestId,
}

pub(crate) struct Port {
    me: u32,
    /// Peers below are ranks of our job, others processes of other jobs.
    ranks: u32,
    pub requests: Requests,
    matcher: Matcher,
    arrived: ArrivedTable,
    /// Of each peer.
    orders: Vec<Order>,
    /// Of each peer two: long messages may come by a device of their own.
    streams: Vec<Option<OpenStream>>,
    /// What is handled now comes by the device for long messages.
    pub by_long_way: bool,
    outbound: Vec<Outbound>,
    /// Peers whose `outbound` is not clear.
    backlog: Vec<u32>,
    jobs: VecDeque<Job>,
    slots: Slots,
    /// Receives that wait for a copy slot, with where the message is.
    without_slot: VecDeque<(RequestId, Asked)>,
    /// Memory of others that we have mapped.
    opens: Opens,
    choice: Choice,
    offers: Offers,
    /// The same for messages that are shown: who copies them needs no kernel.
    shows: Offers,
    /// Messages that have arrived as offers. Some have been received since.
    offered: VecDeque<u32>,
    /// Passes since one of them was looked at.
    busy_passes: u32,
    limits: Limits,
    /// Bytes of granted streams that have not begun.
    granted: usize,
    pub raw: Raw,
    pub counters: PageCounters,
    /// Of each peer that is lost, how what needs it ends.
    lost: Vec<Option<Fault>>,
    /// Contexts that were closed, and how operations on them end.
    pub closed: Vec<(u32, Fault)>,
    /// A peer that has no memory for us is lost before what the device has to say of ours was told.
    asks_for_refusals: bool,
    /// Lost since the devices were last told.
    newly_lost: Vec<u32>,
    /// Sends whose last bytes wait in a device, and to whom.
    tails: Vec<(RequestId, u32)>,
}

// SAFETY: the pointers lead to users' buffers (BUFFER-LIVES), which any thread may touch; a port is used by one at a time.
unsafe impl Send for Port {}

impl Port {
    pub fn new(me: u32, peers: u32, limits: Limits, slots: Slots, counters: PageCounters) -> Self {
        // A receiver takes a longer one for nonsense.
        let limits = Limits { eager: limits.eager.min(EAGER_CEILING as usize), ..limits };
        Self {
            me,
            ranks: peers,
            requests: Requests::default(),
            matcher: Matcher::new(peers),
            arrived: ArrivedTable::default(),
            orders: (0..peers).map(|_| Order::default()).collect(),
            streams: vec![None; 2 * peers as usize],
            by_long_way: false,
            outbound: (0..peers).map(|_| Outbound::default()).collect(),
            backlog: Vec::new(),
            jobs: VecDeque::new(),
            slots,
            without_slot: VecDeque::new(),
            opens: Opens::default(),
            choice: Choice::default(),
            offers: Offers::default(),
            shows: Offers::default(),
            offered: VecDeque::new(),
            busy_passes: 0,
            limits,
            granted: 0,
            raw: Raw::new(peers),
            counters,
            lost: vec![None; peers as usize],
            asks_for_refusals: false,
            newly_lost: Vec::new(),
            closed: Vec::new(),
            tails: Vec::new(),
        }
    }

    /// One more peer, the next one after all that there are, on no host of this job.
    pub fn add_peer(&mut self) {
        self.matcher.add_peer();
        self.raw.add_peer();
        self.slots.add_stranger(self.lost.len() as u32);
        self.orders.push(Order::default());
        self.streams.extend([None, None]);
        self.outbound.push(Outbound::default());
        self.lost.push(None);
    }

    /// Whether anything waits for room in the device or for a copy.
    #[inline]
    pub fn has_work(&self) -> bool {
        let waits =
            !(self.backlog.is_empty() && self.jobs.is_empty() && self.offered.is_empty() && self.tails.is_empty());
        waits | self.asks_for_refusals
    }

    /// The process id of a peer whose memory may be copied.
    pub fn attachable(&self, peer: u32) -> Option<i32> {
        self.slots.pid(peer).filter(|_| self.limits.single_copy_allowed)
    }

    /// A peer of another job shares copy slots with us from now on, as this member of their segment; or none any more.
    pub fn share_copies(&mut self, peer: u32, slots: Option<(CopySlots, u32, i32)>) {
        self.slots.set_stranger(peer, slots);
    }

    /// Whether a copy is under way with a peer.
    pub fn has_copies_with(&self, peer: u32) -> bool {
        self.jobs.iter().any(|job| job.peer == peer)
    }

    /// The process id of a peer on this host that counts processes as we do.
    pub fn pid(&self, peer: u32) -> Option<i32> {
        self.slots.pid(peer)
    }

    #[inline]
    pub fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    pub fn has_copies(&self) -> bool {
        !(self.jobs.is_empty() && self.offered.is_empty())
    }

    fn reply(&mut self, to: u32, kind: Kind, values: &[u64]) {
        self.outbound[to as usize].control.push_back(Control::new(kind, values));
        self.note_backlog(to);
    }

    #[inline]
    fn note_backlog(&mut self, to: u32) {
        if self.outbound[to as usize].closed {
            return self.outbound[to as usize].control.clear();
        }
        if !self.backlog.contains(&to) {
            self.backlog.push(to);
        }
    }

    /// The peer broke the rules, died or cannot be reached: everything that needs it ends with this fault.
    fn lose_peer(&mut self, peer: u32, fault: Fault) {
        if self.is_lost(peer) {
            return;
        }
        self.lost[peer as usize] = Some(fault);
        if fault == Fault::PeerLost {
            crate::join::note_lost((peer < self.ranks).then_some(peer));
        }
        tell(events::Kind::Lost, || Event::Lost { peer });
        let posted = self.matcher.handle_peer_lost(peer).into_iter().map(RequestId);
        let failed: Vec<RequestId> = posted.chain(self.requests.under_way_with(Peer(peer))).collect();
        for id in failed {
            self.fail(id, fault);
        }
        self.newly_lost.push(peer);
        self.tails.retain(|(_, to)| *to != peer);
        self.forget_held(peer);
        self.arrived.forget_taken_from(Peer(peer));
        self.outbound[peer as usize] = Outbound { closed: true, ..Outbound::default() };
        self.backlog.retain(|other| *other != peer);
        self.streams[2 * peer as usize..][..2].fill(None);
        self.jobs.retain(|job| job.peer != peer);
        self.without_slot.retain(|(id, _)| self.requests.at(*id).state == State::WithoutSlot);
        self.opens.forget(peer);
        self.raw.lose_peer(Peer(peer));
    }

    /// Whether devices are to be told of a loss.
    #[inline]
    pub fn has_newly_lost(&self) -> bool {
        !self.newly_lost.is_empty()
    }

    /// A peer that one device has lost: no other shall bring anything of it, nor take anything for it.
    #[inline]
    pub fn take_newly_lost(&mut self) -> Option<u32> {
        self.newly_lost.pop()
    }

    pub fn is_lost(&self, peer: u32) -> bool {
        self.lost[peer as usize].is_some()
    }

    /// How what needs a peer ends, if it is lost.
    #[inline]
    pub fn loss(&self, peer: Peer) -> Option<Fault> {
        self.lost[peer.0 as usize]
    }

    /// The peer's process has ended, and what it sent has been taken.
    pub fn handle_loss(&mut self, peer: u32) {
        self.lose_peer(peer, Fault::PeerLost);
    }

    /// Tells the user what goes wrong with the devices.
    pub fn tell(&self, what: &dyn std::fmt::Display) {
        eprintln!("weft: rank {}: {what}", self.me);
    }

    /// All that the devices have refused is told.
    pub fn refusals_are_told(&mut self) {
        self.asks_for_refusals = false;
    }

    /// Nothing can be sent to a peer any more.
    pub fn handle_no_memory(&mut self, refusal: &NoMemory) {
        self.tell(refusal);
        self.lose_peer(refusal.peer, Fault::NoMemory);
    }

    /// Peers that something waits for in the device or in a copy.
    pub fn awaited(&self) -> Vec<u32> {
        self.backlog.iter().copied().chain(self.jobs.iter().map(|job| job.peer)).collect()
    }

    /// The peer takes nothing any more.
    pub fn handle_end(&mut self, peer: u32) {
        if !self.is_lost(peer) {
            eprintln!("weft: rank {}: rank {peer} has ended before it took all that was sent to it", self.me);
        }
        self.lose_peer(peer, Fault::PeerLost);
    }

    fn fail(&mut self, id: RequestId, fault: Fault) {
        let entry = self.requests.at(id);
        entry.outcome.fault = Some(fault);
        if entry.state == State::Granted {
            self.granted = self.granted.wrapping_sub(entry.wanted() as usize);
        }
        if std::mem::take(&mut entry.timed) {
            self.choice.abandon();
        }
        self.requests.complete(id);
    }

    /// # Safety
    /// As [`Raw::post_receive`].
    pub unsafe fn post_raw_receive(&mut self, from: Peer, buffer: *mut u8, capacity: usize) -> RequestId {
        // SAFETY: the caller's promise.
        let id = unsafe { self.raw.post_receive(from, buffer, capacity, &mut self.requests) };
        if let Some(fault) = self.loss(from)
            && !self.requests.is_complete(id)
        {
            self.raw.lose_peer(from);
            self.fail(id, fault);
        }
        id
    }
}

impl Sink for Port {
    /// The protocol switch.
    #[inline]
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        if packet.head.kind == Kind::Short {
            self.on_short(packet);
            return Ok(());
        }
        self.route(packet)
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        self.tell(&fault);
        let ending = if let PeerFault::CutOff { .. } = fault { Fault::NoMemory } else { Fault::PeerLost };
        self.lose_peer(fault.peer(), ending);
        self.asks_for_refusals = ending == Fault::NoMemory;
    }

    fn room(&mut self, from: u32) -> Option<Room<'_>> {
        self.stream_room(from)
    }
}

impl Port {
    fn route(&mut self, packet: Packet<'_>) -> Result<(), Breach> {
        match packet.head.kind {
            Kind::Short => {
                self.on_short(packet);
                Ok(())
            }
            Kind::Eager => self.on_eager(packet),
            Kind::More => self.on_more(packet),
            Kind::Ask => self.on_ask(packet),
            Kind::GrantStream => self.on_grant_stream(packet),
            Kind::GrantCopy => self.on_grant_copy(packet),
            Kind::Open => self.on_open(packet),
            Kind::DoneSend => self.on_done_send(packet),
            Kind::DoneReceive => self.on_done_receive(packet),
            Kind::Raw => {
                self.raw.on_packet(packet, &mut self.requests);
                Ok(())
            }
            Kind::Retract => {
                self.retract(Peer(packet.from), packet.word(0));
                Ok(())
            }
            Kind::Retracted => self.on_retracted(packet),
            Kind::Waited => {
                let unasked = &mut self.outbound[packet.from as usize].unasked;
                unasked.learn(packet.word(0) != 0, packet.word(1))
            }
            Kind::Share => Err("shared memory where it is not offered"),
            Kind::Order => Err("a place among messages of another way, where there is one way"),
        }
    }
}

/// Why a packet is against the protocol.
type Breach = &'static str;
