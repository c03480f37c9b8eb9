//! Links: packets in order between ranks, over datagrams that may be lost.
//!
//! What is here drives the reliability machine (`weft_protocol::reliable`, one link for each rank that we talk to) over a
//! port (`weft_device::udp`): neither knows the other. Above it is a device like others: posts are accepted or refused,
//! and a poll hands on packets and moves everything.
//!
//! | file | concern |
//! |---|---|
//! | `peer` | what is known of a rank |
//! | `calls` | finding out whether a rank is reached, and where, before anything is sent that could be lost |
//! | `arrive` | datagrams that arrive |
//! | `ends` | who has left, and who is lost |
//!
//! - *When datagrams leave*: what was posted leaves with [`Links::push`], which whoever posts calls when a message is
//!   complete. Of messages that follow each other faster than datagrams can be sent the later ones may wait for the next
//!   poll, and then share datagrams ([`Links::push_soon`]).
//! - *Whom to believe*: every datagram carries a code that only ranks of the job can make, and the incarnations of both
//!   ranks, random numbers of each start, which the link's key is made from, too. What fails is counted, and changes
//!   nothing. An incarnation is learned from the answer to a call of ours, or from a datagram that names ours: either is
//!   new, whereas a call may be one that somebody has recorded, and changes nothing.
//! - *Silence is not death.* A rank that computes looks at no socket, perhaps for minutes. The launcher knows of ranks
//!   that end, and ends the job. A rank is lost here only where our own kernel says for ten seconds that there is no way
//!   to it, or where it breaks the rules. What a message of the network says (ICMP) anybody may have sent: it is told,
//!   and decides nothing.
//!
//! - *Before the first packet* a rank is called with a sealed hello. One that answers only over TCP is spoken to there,
//!   and is called on now and then, so that a path that opens later is used.

mod arrive;
mod calls;
mod ends;
mod peer;
#[cfg(test)]
mod tests;

use calls::Calls;
use peer::{Peer, Standing, UNKNOWN, Way};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use weft_device::clock::Clock;
use weft_device::tcp::{Look, Place};
use weft_device::udp::{self, Came, Faults};
use weft_device::xdp::Lane;
use weft_device::{PeerFault, Posted, Sink, kernel, sys};
use weft_protocol::reliable::{self, Config, JobSeal, Link};
use weft_wire::cell::Head;
use weft_wire::cipher::TAG_BYTES;
use weft_wire::link::header::Process;
use weft_wire::link::{header, hello, keys, mac, record};

/// Bytes that are posted to one rank before they are sent, whoever posts more.
const PUSH_BYTES: usize = 32 << 10;
/// A message that is posted within so many ticks of the processor's clock after one has left may share a datagram with the
/// next ones. A tick is a quarter of a nanosecond to one.
const BURST_TICKS: u64 = 1 << 12;
/// The largest datagrams: what frames of 9000 bytes carry. Where a path carries more (the loopback interface), a try of it
/// would keep what is short waiting behind it.
const JUMBO_BYTES: usize = 9000 - 28;
/// What a link holds in either direction, at most and at least.
const MOST_WINDOW: usize = 1 << 20;
const LEAST_WINDOW: usize = 128 << 10;
/// What all links hold in both directions, but for what the least windows of very many are more than that. A new link
/// takes at most one part of so many of what is left of it.
const MOST_HELD: usize = 64 << 20;
const SHARE: usize = 16;
/// What stays in the port for want of room in the kernel is tried again after this.
const STUCK_NS: u64 = 200_000;
/// A sleep takes longer than this, so that what is due sooner is polled for.
const SHORT_NS: u64 = 60_000;
/// A silent rank is asked so often, and a question is repeated at the latest after this.
const KEEP_ALIVE_NS: u64 = 5_000_000_000;
const MOST_PROBE_NS: u64 = 1_000_000_000;

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Packets that were posted, and their bytes with everything around them.
    pub packets: u64,
    pub bytes: u64,
    /// Datagrams that were sent, those of them that counted as lost, and those that were not believed.
    pub datagrams: u64,
    pub lost: u64,
    pub strangers: u64,
}

pub(crate) struct Links {
    me: Process,
    /// That of the job, and that of hellos.
    key: [u8; 16],
    hello_key: mac::Key,
    encrypts: bool,
    port: udp::Port,
    window_bytes: usize,
    peers: Vec<Peer>,
    /// Ranks that are called, or have a link.
    live: Vec<u32>,
    /// Ranks for which something may be there to send.
    dirty: Vec<u32>,
    /// Ranks whose datagrams this look has brought.
    heard: Vec<u32>,
    /// Nothing is to be done before, but for what arrives.
    due_ns: u64,
    /// Times of what is between us and others are of this clock.
    clock: Clock,
    look: Look,
    /// Beside a lane: when to look at the socket, too. Little comes by it while the lane brings something.
    socket_look: Look,
    /// Calls of others and answers to ours, of this look.
    hellos: Vec<(SocketAddr, hello::Hello)>,
    /// A bulk payload that was cut in two.
    whole: Vec<u8>,
    faults: Vec<PeerFault>,
    notices: Vec<String>,
    /// Where another device leads: ranks that do not answer, each once.
    doubts: Vec<u32>,
    /// Those that it was told of, and those that it has.
    asked: Vec<u32>,
    others: Vec<u32>,
    /// Of those that it has, which datagrams reach by now.
    returns: Vec<u32>,
    has_other: bool,
    sends_by_lane: bool,
    leaving: bool,
    counters: Counters,
    /// A lane that is gone, and what went by it.
    failed_lane: Option<Box<Lane>>,
    lane_datagrams: u64,
    /// Those of links that are gone.
    past: reliable::Counters,
}

/// A number that no other start of a rank has, but for one in four thousand millions.
fn new_incarnation() -> u32 {
    (kernel::random() as u32).max(UNKNOWN + 1)
}

impl Links {
    /// The links of rank `me` of the job with this key, which others reach at the socket; `places` has a place for every
    /// rank. With `encrypts` datagrams are encrypted, as those of all ranks are then. With `alone` no other device is polled
    /// beside; with `has_other` there is one for ranks that do not answer.
    ///
    /// # Errors
    /// The descriptor is no socket.
    pub fn new(
        me: u32,
        key: &[u8; 16],
        encrypts: bool,
        socket: OwnedFd,
        places: Vec<Place>,
        alone: bool,
        has_other: bool,
    ) -> io::Result<Self> {
        let port = udp::Port::new(socket)?;
        let peers = places.into_iter().zip(0..).map(|(place, rank)| Peer::new(place, rank)).collect();
        Ok(Self {
            me: Process { rank: me, incarnation: new_incarnation() },
            key: *key,
            hello_key: keys::of_hellos(key),
            encrypts,
            window_bytes: port.kept_bytes().clamp(LEAST_WINDOW, MOST_WINDOW),
            port,
            peers,
            live: Vec::new(),
            dirty: Vec::new(),
            heard: Vec::new(),
            due_ns: u64::MAX,
            clock: Clock::default(),
            look: Look::new(alone),
            socket_look: Look::new(false),
            hellos: Vec::new(),
            whole: Vec::new(),
            faults: Vec::new(),
            notices: Vec::new(),
            doubts: Vec::new(),
            asked: Vec::new(),
            others: Vec::new(),
            returns: Vec::new(),
            has_other,
            sends_by_lane: false,
            leaving: false,
            counters: Counters::default(),
            failed_lane: None,
            lane_datagrams: 0,
            past: reliable::Counters::default(),
        })
    }

    /// From now on datagrams that arrive suffer this.
    pub fn set_faults(&mut self, faults: Faults) {
        self.port.set_faults(faults);
    }

    /// Datagrams come by this lane, and with `sends` they go by it where it leads.
    pub fn set_lane(&mut self, lane: Lane, sends: bool) {
        self.port.set_lane(lane, sends);
        self.sends_by_lane = sends;
        self.look = Look::new(false);
    }

    /// Whether there is one that works, and datagrams go by it.
    pub fn has_lane(&self) -> bool {
        self.sends_by_lane && self.port.lane().is_some()
    }

    /// Whether datagrams to a rank go by it now.
    pub fn go_by_lane(&mut self, to: u32) -> bool {
        let now_ns = self.clock.now_ns();
        self.peers[to as usize].route.as_ref().is_some_and(|route| self.port.goes_by_lane(route, now_ns))
    }

    /// Datagrams that went by it.
    pub fn lane_datagrams(&self) -> u64 {
        self.lane_datagrams + self.port.lane().map_or(0, |lane| lane.counters().sent)
    }

    /// What failed is given up, and the socket goes on.
    fn look_at_lane(&mut self) {
        let sent = self.lane_datagrams();
        if let Some(lane) = self.port.take_failed_lane() {
            self.lane_datagrams = sent;
            self.notices
                .push(format!("xdp is no longer used, udp is: {}", lane.fault().unwrap_or("the lane did not say why")));
            self.failed_lane = Some(Box::new(lane));
        }
    }

    /// A lane that has failed, once: for who watches its descriptor, and ends that.
    #[inline]
    pub fn take_failed_lane(&mut self) -> Option<Box<Lane>> {
        self.failed_lane.take()
    }

    pub fn counters(&self) -> Counters {
        let links = self.peers.iter().filter_map(|peer| peer.link.as_deref()).map(Link::counters);
        let mut counters = self.counters;
        for link in links.chain([&self.past]) {
            counters.datagrams += link.datagrams_sent;
            counters.lost += link.lost;
            counters.strangers += link.malformed + link.strangers + link.stale + link.forged + link.beyond_credit;
        }
        counters
    }

    pub fn take_notice(&mut self) -> Option<String> {
        self.notices.pop()
    }

    /// Bulk payload of a packet that fills a datagram to `to`.
    #[inline]
    pub fn packet_bytes(&self, to: u32) -> usize {
        let smallest = hello::BYTES - header::BYTES - TAG_BYTES - record::MOST_HEAD_BYTES;
        self.peers[to as usize].link.as_ref().map_or(smallest, |link| link.bulk_bytes())
    }

    /// Whether a bulk payload of so many bytes would be accepted whole.
    #[inline]
    pub fn has_room(&self, to: u32, length: usize) -> bool {
        let kept = |link: &Link<JobSeal>| link.kept_bytes() as usize + record::MOST_HEAD_BYTES + length;
        self.peers[to as usize].link.as_deref().is_some_and(|link| kept(link) <= self.peers[to as usize].window_bytes)
    }

    /// Accepts a packet: a header, up to 48 bytes inline, and bulk payload, which is not empty if it is there. It leaves
    /// when it is pushed.
    #[inline]
    pub fn post(&mut self, to: u32, head: &Head, inline: &[u8], bulk: Option<&[u8]>) -> Posted {
        let peer = &mut self.peers[to as usize];
        let (Way::Open, Standing::Open, Some(link)) = (&peer.way, peer.standing, &mut peer.link) else {
            return self.refuse(to);
        };
        match link.try_send(head, inline, bulk) {
            reliable::Posted::Sent(bytes) => {
                let taken = record::bytes(inline.len(), bytes);
                self.counters.packets += 1;
                self.counters.bytes += taken as u64;
                peer.posted_bytes += taken;
                let full = peer.posted_bytes >= PUSH_BYTES;
                self.note_dirty(to);
                if full {
                    self.push(to);
                }
                Posted::Sent(bytes)
            }
            reliable::Posted::Full => {
                self.push(to);
                Posted::Full
            }
            reliable::Posted::Gone => Posted::Full,
        }
    }

    #[inline]
    fn note_dirty(&mut self, rank: u32) {
        if !std::mem::replace(&mut self.peers[rank as usize].is_dirty, true) {
            self.dirty.push(rank);
        }
    }

    /// Sends what was posted to a rank.
    #[inline]
    pub fn push(&mut self, to: u32) {
        if self.peers[to as usize].is_dirty {
            self.push_at(to, sys::ticks());
        }
    }

    #[inline]
    fn push_at(&mut self, to: u32, ticks: u64) {
        let now_ns = self.clock.at(ticks);
        self.transmit(to, now_ns);
        self.port.flush();
        self.note_due(to);
        // When it is over: what the kernel takes for a datagram may be longer than a burst's gaps by far.
        self.peers[to as usize].pushed_ticks = sys::ticks();
    }

    /// Sends what was posted to a rank, unless something was sent there only just: then it waits for the next poll.
    #[inline]
    pub fn push_soon(&mut self, to: u32) {
        let peer = &self.peers[to as usize];
        if !peer.is_dirty {
            return;
        }
        let ticks = sys::ticks();
        if ticks.wrapping_sub(peer.pushed_ticks) >= BURST_TICKS {
            self.push_at(to, ticks);
        }
    }

    /// Sends all that was posted.
    #[inline]
    pub fn push_all(&mut self) {
        if !self.dirty.is_empty() {
            let now_ns = self.clock.now_ns();
            self.transmit_dirty(now_ns);
            self.port.flush();
        }
    }

    fn transmit_dirty(&mut self, now_ns: u64) {
        for index in (0..self.dirty.len()).rev() {
            if let Some(rank) = self.dirty.get(index).copied() {
                self.transmit(rank, now_ns);
                self.note_due(rank);
            }
        }
    }

    /// What has been sent to a rank, or has come from it, may have to be looked after.
    #[inline]
    fn note_due(&mut self, rank: u32) {
        if let Some(at_ns) = self.peers[rank as usize].link.as_ref().and_then(|link| link.next_timeout()) {
            self.due_ns = self.due_ns.min(at_ns);
        }
    }

    /// Hands the port what the link to a rank has to send now. The caller sees to [`Self::note_due`].
    #[inline]
    fn transmit(&mut self, rank: u32, now_ns: u64) {
        let peer = &mut self.peers[rank as usize];
        let mut all = true;
        if let (Some(link), Some(route)) = (&mut peer.link, &peer.route) {
            while all && link.may_transmit(now_ns) {
                let mut none = false;
                let sent = self.port.send(route, now_ns, |place| {
                    let length = link.poll_transmit(now_ns, place);
                    none = length.is_none();
                    length
                });
                if none {
                    break;
                }
                // Otherwise the port had no room, and there is more.
                all = sent;
            }
        }
        if all {
            (peer.is_dirty, peer.posted_bytes) = (false, 0);
            match self.dirty.last() {
                Some(last) if *last == rank => _ = self.dirty.pop(),
                _ => self.dirty.retain(|other| *other != rank),
            }
        }
    }

    /// Takes what has arrived and moves everything; true if anything came.
    #[inline]
    pub fn poll<S: Sink>(&mut self, sink: &mut S) -> bool {
        self.push_all();
        let ticks = sys::ticks();
        let due = self.look.is_due(ticks);
        if !due && !self.port.has_arrived() {
            return false;
        }
        let by_lane = self.port.lane().is_some();
        let look_at_socket = due && (!by_lane || self.socket_look.is_due(ticks));
        let (any, came) = self.look_at_port(ticks, look_at_socket, sink);
        if due {
            self.look.learn(came.by_socket && !by_lane);
        }
        if by_lane {
            self.learn_beside_lane(look_at_socket, came);
        }
        any
    }

    /// A look at the socket is a system call: while the lane brings what is sent to us, few are taken.
    #[inline]
    fn learn_beside_lane(&mut self, looked_at_socket: bool, came: Came) {
        if came.by_socket || came.by_lane {
            self.socket_look.set_idle(!came.by_socket);
        }
        if looked_at_socket {
            self.socket_look.learn(came.by_socket);
        }
    }

    /// True if anything was moved, and what has come.
    fn look_at_port<S: Sink>(&mut self, ticks: u64, look_at_socket: bool, sink: &mut S) -> (bool, Came) {
        let now_ns = self.clock.at(ticks);
        let came = self.receive(now_ns, look_at_socket, sink);
        if now_ns >= self.due_ns {
            self.on_time(now_ns);
        }
        self.transmit_dirty(now_ns);
        self.port.flush();
        self.take_reports(now_ns);
        self.look_at_lane();
        let faults = std::mem::take(&mut self.faults);
        let told = !faults.is_empty();
        faults.into_iter().for_each(|fault| sink.handle_fault(fault));
        (came.any() | told, came)
    }

    /// What is to be done without anything having come.
    #[cold]
    fn on_time(&mut self, now_ns: u64) {
        self.due_ns = u64::MAX;
        for index in (0..self.live.len()).rev() {
            let Some(rank) = self.live.get(index).copied() else { continue };
            self.move_calls(rank, now_ns);
            self.look_for_end(rank, now_ns);
            let Some(link) = &mut self.peers[rank as usize].link else { continue };
            if link.next_timeout().is_some_and(|at_ns| at_ns <= now_ns) {
                link.handle_timeout(now_ns);
                self.note_dirty(rank);
            }
            if let Some(link) = &self.peers[rank as usize].link {
                self.due_ns = self.due_ns.min(link.next_timeout().unwrap_or(u64::MAX));
            }
        }
    }

    /// The link to a process that is known to be this rank now, made if there is none, over datagrams as large as the way
    /// to `route` carries.
    fn make_link(&mut self, process: Process, route: SocketAddr, now_ns: u64) {
        let rank = process.rank;
        let left = MOST_HELD.saturating_sub(2 * self.held_bytes());
        let window_bytes = (left / SHARE).clamp(LEAST_WINDOW, self.window_bytes);
        let peer = &mut self.peers[rank as usize];
        peer.route = Some(route);
        if peer.link.is_some() {
            return;
        }
        (peer.process, peer.window_bytes) = (process, window_bytes);
        let largest = udp::largest_datagram(&route).clamp(hello::BYTES, JUMBO_BYTES);
        let config = Config {
            send_bytes: window_bytes,
            window_bytes,
            most_in_flight: window_bytes as u64,
            probe_ns: (300_000, MOST_PROBE_NS),
            keep_alive_ns: KEEP_ALIVE_NS,
            // See the module: silence is not death.
            dead_after_ns: u64::MAX / 2,
            ..Config::new(self.me, peer.process, largest)
        };
        let seal = JobSeal::new(&self.key, self.encrypts, self.me, process);
        let mut link = Box::new(Link::new(config, seal, now_ns));
        if self.leaving {
            // It has not heard our farewell.
            link.close();
        }
        peer.link = Some(link);
        self.note_live(rank);
        if self.leaving {
            self.note_dirty(rank);
        }
    }

    /// What all links hold at most in either direction.
    fn held_bytes(&self) -> usize {
        self.live.iter().map(|rank| self.peers[*rank as usize].window_bytes).sum()
    }

    fn note_live(&mut self, rank: u32) {
        if !self.live.contains(&rank) {
            self.live.push(rank);
        }
    }

    /// The next poll looks at the port, however short ago the last did.
    pub fn look_soon(&mut self) {
        self.look.soon();
        self.socket_look.soon();
    }

    /// What to sleep on: readable when something has come.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.port.descriptor()].into_iter().chain(self.port.lane().map(Lane::descriptor))
    }

    /// Before a sleep on the descriptor: whether the caller may sleep, or must poll.
    pub fn arm(&mut self) -> bool {
        self.push_all();
        // What waits there would end every sleep at once.
        self.port.look_for_reports();
        let quiet = self.faults.is_empty() && self.dirty.is_empty() && !self.port.has_arrived();
        quiet && self.due_ns.saturating_sub(self.clock.now_ns()) > SHORT_NS
    }

    /// When something is to be done though nothing has come; `None` if nothing is.
    pub fn until_ns(&self) -> Option<u64> {
        let stuck = self.port.is_stuck().then(|| sys::now_ns() + STUCK_NS);
        let due = (self.due_ns != u64::MAX).then_some(self.due_ns);
        stuck.into_iter().chain(due).min()
    }

    fn call(&mut self, rank: u32) {
        let now_ns = self.clock.now_ns();
        let calls = Calls::new(&self.peers[rank as usize].place, now_ns);
        self.peers[rank as usize].way = Way::Calling(Box::new(calls));
        self.note_live(rank);
        self.move_calls(rank, now_ns);
        self.port.flush();
    }
}
