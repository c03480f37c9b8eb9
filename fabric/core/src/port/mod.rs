//! The port protocol: tagged messages between processes, selective receive, eager and rendezvous.
//!
//! [`Port`] owns matching and what waits in either direction; each is a machine of its own, and this module routes
//! packets between them. It stands beside other protocols under the switch ([`crate::switch`]), which hands it what has
//! arrived. What it wants to send waits in `outbound` until [`Port::pump`].
//!
//! How a message goes is decided by the selector ([`weft_protocol::selector`]): without asking ([`Kind::Short`],
//! [`Kind::Eager`] and [`Kind::More`]; over a connection a long one may owe a [`Kind::Waited`]), or after
//! [`Kind::Ask`], which may be an offer. The receiver answers with [`Kind::GrantStream`] (the sender streams) or
//! [`Kind::GrantCopy`] (both sides copy chunks out of the sender's memory), or copies at once; whoever finishes tells
//! the other. A message to oneself is matched in the process and copied once.

mod closing;
mod inbound;
mod order;
mod outbound;
mod receive;
mod rendezvous;
mod retract;
mod send;
mod shown;

use crate::api::{Fault, Peer, RequestId};
use crate::devices::{Devices, RankSlots};
use crate::limits::Limits;
use crate::protocol::{Breach, Protocol};
use crate::requests::{RequestState, Requests};
use crate::status::PageCounters;
use inbound::ArrivedTable;
use order::Arriving;
use outbound::{ControlPacket, Outbound};
pub use shown::ShownPlace;
use shown::{Asked, Opens};
use std::collections::VecDeque;
use weft_device::shm::{CopyJob, CopySlots};
use weft_device::{Packet, ReceiveRoom};
use weft_protocol::matching::Matcher;
use weft_protocol::selector::{EAGER_CEILING, Learner, Rules, Waits};
use weft_wire::cell::Kind;

/// A long message that this side helps to copy.
struct HelpedCopy {
    copy: CopyJob,
    peer: u32,
    request: RequestId,
}

/// Messages that have arrived as offers. Some have been received since.
#[derive(Default)]
struct Offered {
    messages: VecDeque<u32>,
    /// Passes since one of them was looked at.
    busy_passes: u32,
}

pub(crate) struct Port {
    me: u32,
    /// Of all protocols; the switch lends it to the others.
    pub requests: Requests,
    matcher: Matcher,
    arrived: ArrivedTable,
    pub incoming: Arriving,
    outbound: Vec<Outbound>,
    /// Peers whose `outbound` is not clear.
    backlog: Vec<u32>,
    jobs: VecDeque<HelpedCopy>,
    slots: RankSlots,
    /// Receives that wait for a copy slot, with where the message is.
    without_slot: VecDeque<(RequestId, Asked)>,
    /// Memory of others that we have mapped.
    opens: Opens,
    learner: Learner,
    rules: Rules,
    offered: Offered,
    limits: Limits,
    /// Bytes of granted streams that have not begun.
    granted: usize,
    pub counters: PageCounters,
    /// Contexts that were closed, and how operations on them end.
    pub closed: Vec<(u32, Fault)>,
    /// Sends whose last bytes wait in a device, and to whom.
    tails: Vec<(RequestId, u32)>,
}

// SAFETY: the pointers lead to users' buffers (BUFFER-LIVES), which any thread may touch; a port is used by one at a
// time.
unsafe impl Send for Port {}

impl Port {
    pub fn new(me: u32, peers: u32, limits: Limits, slots: RankSlots, counters: PageCounters) -> Self {
        // A receiver takes a longer one for nonsense.
        let limits = Limits { eager: limits.eager.min(EAGER_CEILING as usize), ..limits };
        Self {
            me,
            requests: Requests::new(peers),
            matcher: Matcher::new(peers),
            arrived: ArrivedTable::default(),
            incoming: Arriving::new(peers),
            outbound: (0..peers).map(|_| Outbound::default()).collect(),
            backlog: Vec::new(),
            jobs: VecDeque::new(),
            slots,
            without_slot: VecDeque::new(),
            opens: Opens::default(),
            learner: Learner::new(peers),
            rules: Rules { eager: limits.eager, single_copy: limits.single_copy, machine: limits.machine },
            offered: Offered::default(),
            limits,
            granted: 0,
            counters,
            closed: Vec::new(),
            tails: Vec::new(),
        }
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
        !(self.jobs.is_empty() && self.offered.messages.is_empty())
    }

    fn reply(&mut self, to: u32, kind: Kind, values: &[u64]) {
        self.outbound[to as usize].control.push_back(ControlPacket::new(kind, values));
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

    pub fn is_lost(&self, peer: u32) -> bool {
        self.loss(Peer(peer)).is_some()
    }

    /// How what needs a peer ends, if it is lost.
    #[inline]
    pub fn loss(&self, peer: Peer) -> Option<Fault> {
        self.requests.loss(peer)
    }

    pub fn fail(&mut self, id: RequestId, fault: Fault) {
        let entry = self.requests.at(id);
        entry.outcome.fault = Some(fault);
        if entry.state == RequestState::Granted {
            self.granted = self.granted.wrapping_sub(entry.wanted() as usize);
        }
        if std::mem::take(&mut entry.timed) {
            self.learner.abandon_grant();
        }
        self.requests.complete(id);
    }
}

impl Protocol<()> for Port {
    fn handle_packet(&mut self, packet: Packet<'_>, (): &mut ()) -> Result<(), Breach> {
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
            Kind::Retract => {
                self.retract(Peer(packet.from), packet.word(0));
                Ok(())
            }
            Kind::Retracted => self.on_retracted(packet),
            Kind::Waited => {
                let waits = self.learner.waits(packet.from);
                waits.learn(packet.word(0) != 0, packet.word(1))
            }
            Kind::Share => Err("shared memory where it is not offered"),
            Kind::Order => Err("a place among messages of another way, where there is one way"),
            Kind::Raw | Kind::Other => Err("a packet of another protocol"),
        }
    }

    /// Whether anything waits for room in the device or for a copy.
    #[inline]
    fn has_work(&self) -> bool {
        !(self.backlog.is_empty() && self.jobs.is_empty() && self.offered.messages.is_empty() && self.tails.is_empty())
    }

    fn pump(&mut self, devices: &mut Devices, (): &mut ()) -> bool {
        self.pump_outbound(devices) | self.complete_tails(devices)
    }

    /// Those that something waits for in the device or in a copy.
    fn awaited(&self) -> Vec<u32> {
        self.backlog.iter().copied().chain(self.jobs.iter().map(|job| job.peer)).collect()
    }

    fn add_peer(&mut self) {
        self.matcher.add_peer();
        self.slots.add_stranger(self.outbound.len() as u32);
        self.learner.add_peer();
        self.requests.add_peer();
        self.incoming.add_peer();
        self.outbound.push(Outbound::default());
    }

    fn lose_peer(&mut self, peer: Peer, fault: Fault, (): &mut ()) {
        let posted = self.matcher.handle_peer_lost(peer.0).into_iter().map(RequestId);
        let failed: Vec<RequestId> = posted.chain(self.requests.under_way_with(peer)).collect();
        for id in failed {
            self.fail(id, fault);
        }
        self.tails.retain(|(_, to)| *to != peer.0);
        self.forget_held(peer.0);
        self.arrived.forget_taken_from(peer);
        *self.learner.waits(peer.0) = Waits::default();
        self.outbound[peer.0 as usize] = Outbound { closed: true, ..Outbound::default() };
        self.backlog.retain(|other| *other != peer.0);
        self.incoming.close_streams(peer.0);
        self.jobs.retain(|job| job.peer != peer.0);
        self.without_slot.retain(|(id, _)| self.requests.at(*id).state == RequestState::WithoutSlot);
        self.opens.forget(peer.0);
    }
}

impl Port {
    /// Where the next bytes go of the stream that is open from a peer.
    pub fn room(&mut self, from: u32) -> Option<ReceiveRoom<'_>> {
        self.stream_room(from)
    }
}
