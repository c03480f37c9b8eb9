//! Links: packets in order between ranks, over datagrams that may be lost.
//!
//! What is here drives the reliability machine (`weft_protocol::reliable`, one link for each rank that we talk to) over
//! a port (`weft_device::udp`), whose datagrams go by a socket or a lane: neither knows the other. It is a device like
//! others ([`weft_device::Device`]). Over a device that is reliable itself nothing of this is there.
//!
//! | file | concern |
//! |---|---|
//! | `device` | the device: posts, polls and sleeps |
//! | `peer`, `calls`, `trouble` | what is known of a rank, of its calls, and of its silence |
//! | `reach` | finding out whether a rank is reached, and where, before anything is sent that could be lost |
//! | `fallback` | another device that leads to the same ranks |
//! | `lane`, `looks` | the lane beside the socket, and when to look at which |
//! | `arrive` | datagrams that arrive |
//! | `ends` | who has left, and who is lost |
//!
//! - *When datagrams leave*: what was posted leaves with [`weft_device::Device::push`], which whoever posts calls when
//!   a message is complete. Of messages that follow each other faster than datagrams can be sent the later ones may
//!   wait for the next poll, and then share datagrams.
//! - *Whom to believe*: every datagram carries a code that only ranks of the job can make, and the incarnations of both
//!   ranks, random numbers of each start, which the link's key is made from, too. What fails is counted, and changes
//!   nothing. An incarnation is learned from the answer to a call of ours, or from a datagram that names ours: either
//!   is new, whereas a call may be one that somebody has recorded, and changes nothing.
//! - *Silence is not death.* A rank that computes looks at no socket, perhaps for minutes. The launcher knows of ranks
//!   that end, and ends the job. A rank is lost here only where our own kernel says for ten seconds that there is no
//!   way to it, or that nobody has its port on this host any more, or where it breaks the rules. What a message of the
//!   network says (ICMP) anybody may have sent: it is told, and decides nothing.
//!
//! - *Before the first packet* a rank is called with a sealed hello. One that answers only over TCP is spoken to there,
//!   and is called on now and then, so that a path that opens later is used.

mod arrive;
mod calls;
#[cfg(test)]
mod conformance;
mod device;
mod ends;
mod fallback;
mod lane;
mod looks;
mod peer;
mod reach;
#[cfg(test)]
mod tests;
mod trouble;

use fallback::Fallback;
use lane::LaneUse;
use looks::Looks;
use peer::{LinkPeer, UNKNOWN};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use weft_device::clock::Clock;
use weft_device::tcp::PeerPlace;
use weft_device::udp::{self, Faults};
use weft_device::xdp::Lane;
use weft_device::{PeerFault, kernel, sys};
use weft_protocol::reliable::{self, Config, JobSeal, Link};
use weft_wire::link::header::Process;
use weft_wire::link::{hello, keys, mac};

/// The largest datagrams: what frames of 9000 bytes carry. Where a path carries more (the loopback interface), a try of
/// it would keep what is short waiting behind it.
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
/// A silent rank is asked so often, and a question is repeated at the latest after this.
const KEEP_ALIVE_NS: u64 = 5_000_000_000;
const MOST_PROBE_NS: u64 = 1_000_000_000;

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkCounters {
    /// Packets that were posted, and their bytes with everything around them.
    pub packets: u64,
    pub bytes: u64,
    /// Datagrams that were sent, those of them that counted as lost, and those that were not believed.
    pub datagrams: u64,
    pub lost: u64,
    pub strangers: u64,
}

/// Who we are in datagrams, and the job's keys.
#[derive(Clone, Copy)]
struct Credentials {
    me: Process,
    key: [u8; 16],
    hello_key: mac::Key,
    encrypts: bool,
}

impl Credentials {
    /// What datagrams between a process and us are sealed with.
    fn seal(&self, them: Process) -> JobSeal {
        JobSeal::new(&self.key, self.encrypts, self.me, them)
    }
}

pub(crate) struct Links {
    own: Credentials,
    port: udp::UdpPort,
    by_lane: LaneUse,
    window_bytes: usize,
    peers: Vec<LinkPeer>,
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
    looks: Looks,
    /// Calls of others and answers to ours, of this look.
    hellos: Vec<(SocketAddr, hello::Hello)>,
    /// A bulk payload that was cut in two.
    whole: Vec<u8>,
    faults: Vec<PeerFault>,
    notices: Vec<String>,
    /// Where another device leads to the same ranks.
    fallback: Option<Fallback>,
    leaving: bool,
    counters: LinkCounters,
    /// Those of links that are gone.
    past: reliable::ReliableCounters,
}

/// A number that no other start of a rank has, but for one in four thousand millions.
fn new_incarnation() -> u32 {
    (kernel::random() as u32).max(UNKNOWN + 1)
}

impl Links {
    /// The links of rank `me` of the job with this key, which others reach at the socket; `places` has a place for
    /// every rank. With `encrypts` datagrams are encrypted, as those of all ranks are then. With `alone` no other
    /// device is polled beside; with `has_other` there is one for ranks that do not answer.
    ///
    /// # Errors
    /// The descriptor is no socket.
    pub fn new(
        me: u32,
        key: &[u8; 16],
        encrypts: bool,
        socket: OwnedFd,
        places: Vec<PeerPlace>,
        alone: bool,
        has_other: bool,
    ) -> io::Result<Self> {
        let port = udp::UdpPort::new(socket)?;
        let peers = places.into_iter().zip(0..).map(|(place, rank)| LinkPeer::new(place, rank)).collect();
        let me = Process { rank: me, incarnation: new_incarnation() };
        Ok(Self {
            own: Credentials { me, key: *key, hello_key: keys::of_hellos(key), encrypts },
            window_bytes: port.kept_bytes().clamp(LEAST_WINDOW, MOST_WINDOW),
            port,
            by_lane: LaneUse::default(),
            peers,
            live: Vec::new(),
            dirty: Vec::new(),
            heard: Vec::new(),
            due_ns: u64::MAX,
            clock: Clock::default(),
            looks: Looks::new(alone),
            hellos: Vec::new(),
            whole: Vec::new(),
            faults: Vec::new(),
            notices: Vec::new(),
            fallback: has_other.then(Fallback::default),
            leaving: false,
            counters: LinkCounters::default(),
            past: reliable::ReliableCounters::default(),
        })
    }

    /// From now on datagrams that arrive suffer this.
    pub fn set_faults(&mut self, faults: Faults) {
        self.port.set_faults(faults);
    }

    pub fn counters(&self) -> LinkCounters {
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

    /// The link to a process that is known to be this rank now, made if there is none, over datagrams as large as the
    /// way to `route` carries.
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
            ..Config::new(self.own.me, peer.process, largest)
        };
        let seal = self.own.seal(process);
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

    /// What to sleep on: readable when something has come.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.port.descriptor()].into_iter().chain(self.port.lane().map(Lane::descriptor))
    }

    /// When something is to be done though nothing has come; `None` if nothing is.
    pub fn until_ns(&self) -> Option<u64> {
        let stuck = self.port.is_stuck().then(|| sys::now_ns() + STUCK_NS);
        let due = (self.due_ns != u64::MAX).then_some(self.due_ns);
        stuck.into_iter().chain(due).min()
    }
}
