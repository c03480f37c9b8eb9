//! The `tcp` device: a connection to every peer that we talk to.
//!
//! What holds between two ranks:
//! - The first packet that goes to a rank dials it ([`super::dial`]).
//! - What the kernel has no room for is kept, up to 80 KiB for each rank or the rest of one packet. Beyond that posts
//!   are refused, as where a ring is full; short ones only beyond a megabyte.
//! - Short messages that are started one after another share what the network carries in one piece. The first leaves at
//!   once, those behind it at the next look, wait or farewell, or within a fifth of a second, when the kernel's
//!   patience ends.
//! - A send is complete when the kernel has all of it.
//! - All but the beginning of a long message is received where it is to go, which the port says (`Sink::room`).
//! - No connection inside a cluster uses BBR (decision 27).
//! - A connection that ends without a farewell has lost its rank: what needs that rank ends with an error, and all else
//!   goes on.

use super::book::Badge;
use super::epoll::{Epoll, SocketWatch, Token};
use super::link::LinkTurn;
use super::look::SocketLooks;
use super::output::{Company, OutputQueue, well_placed};
use super::peer::{Lately, PeerPlace, TcpPeer, TcpStanding};
use super::reception::StreamReception;
use super::sleep::TcpSleeper;
use crate::contract::{Capabilities, Device, PeerFault, Posted, Sink, bytes_of};
use crate::shm::stream::bell::OwnBell;
use crate::sys;
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use weft_wire::cell::{CONTROL_WORDS, Head, INLINE_BYTES};
use weft_wire::tcp::{FAREWELL_BYTES, Key, LARGEST_PACKET, PacketFront};

/// What the device has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounters {
    /// Packets that were posted, and their bytes with everything around them.
    pub packets: u64,
    pub bytes: u64,
    /// Connections of those who are no ranks of the job.
    pub strangers: u64,
}

/// What is to be told, each once.
#[derive(Default)]
pub(super) struct ToTell {
    pub faults: Vec<PeerFault>,
    /// Peers that were to be reached and cannot be.
    pub unreached: Vec<(u32, String)>,
    pub notices: Vec<String>,
}

/// The device of one rank. A packet's `from`, and where it is posted to, is a rank of the job.
pub struct TcpDevice {
    pub(super) badge: Badge,
    pub(super) epoll: Arc<Epoll>,
    /// Rung by who would wake a sleeper on shared memory.
    bell: Option<OwnBell>,
    pub(super) peers: Vec<TcpPeer>,
    pub(super) reception: StreamReception,
    /// Peers that are being dialled.
    pub(super) dialing: Vec<u32>,
    /// Peers to which there are connections.
    pub(super) linked: Vec<u32>,
    /// Peers of which whole packets are in the buffer.
    buffered: Vec<u32>,
    /// Peers whose output waits for room in the kernel.
    pub(super) waiting: Vec<u32>,
    pub(super) company: Company,
    ready: Vec<Token>,
    looks: SocketLooks,
    /// Peers to which another device leads, so that their connections serve to tell of their end.
    pub(super) lifelines: HashSet<u32>,
    pub(super) told: ToTell,
    /// When peers' hosts are looked at next.
    pub(super) next_check_ns: u64,
    /// We have taken our leave.
    pub(super) leaving: bool,
    pub(super) counters: TcpCounters,
    /// What the kernel may keep for a connection in each direction, where a test says so.
    #[cfg(test)]
    pub(super) kernel_bytes: Option<i32>,
}

/// What a token stands for: the kind in its highest byte, then the number of an attempt, then that of a rank or a
/// guest.
pub(super) mod token {
    use super::Token;
    pub const LISTENER: u8 = 1;
    pub const BELL: u8 = 2;
    pub const GUEST: u8 = 3;
    pub const DIAL: u8 = 4;
    pub const LINK: u8 = 5;
    /// Another device's, which looks for itself.
    pub const OTHER: u8 = 6;

    pub fn new(kind: u8, attempt: usize, number: u32) -> Token {
        u64::from(kind) << 56 | (attempt as u64 & 0xff_ffff) << 32 | u64::from(number)
    }

    pub fn parts(token: Token) -> (u8, usize, u32) {
        ((token >> 56) as u8, (token >> 32 & 0xff_ffff) as usize, token as u32)
    }
}

impl TcpDevice {
    /// The device of rank `me`, which others reach at `listener`; `places` has a place for every rank of the job. With
    /// `alone` no other device is polled beside this one.
    ///
    /// # Errors
    /// Those of making a set of sockets.
    pub fn new(me: u32, key: Key, listener: OwnedFd, places: Vec<PeerPlace>, alone: bool) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        sys::set_nonblocking(&listener)?;
        epoll.add(listener.as_raw_fd(), SocketWatch::Input, token::new(token::LISTENER, 0, 0))?;
        Ok(Self {
            badge: Badge { me, key, encrypts: false, front: None },
            epoll: Arc::new(epoll),
            bell: None,
            peers: places.into_iter().map(TcpPeer::new).collect(),
            reception: StreamReception::new(listener),
            dialing: Vec::new(),
            linked: Vec::new(),
            buffered: Vec::new(),
            waiting: Vec::new(),
            company: Company::default(),
            ready: Vec::new(),
            looks: SocketLooks::new(alone),
            lifelines: HashSet::new(),
            told: ToTell::default(),
            next_check_ns: 0,
            leaving: false,
            counters: TcpCounters::default(),
            #[cfg(test)]
            kernel_bytes: None,
        })
    }

    /// Whether connections are encrypted, from the next one on: for all ranks of a job the same.
    pub fn set_encrypts(&mut self, encrypts: bool) {
        self.badge.encrypts = encrypts;
    }

    /// What comes at this descriptor ends the sleep, too. As long as that is so, the kernel notes each time that
    /// something comes, which whoever sends may have to pay for.
    ///
    /// # Errors
    /// It cannot be watched.
    pub fn watch(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        match self.epoll.add(descriptor.as_raw_fd(), SocketWatch::Input, token::new(token::OTHER, 0, 0)) {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            answer => answer,
        }
    }

    /// What comes at this descriptor ends no sleep any more.
    pub fn unwatch(&self, descriptor: BorrowedFd<'_>) {
        self.epoll.forget(descriptor.as_raw_fd());
    }

    /// Another device leads to the same peers and is preferred: while there is no connection, and nobody wants one,
    /// looks are rare.
    pub fn stand_by(&mut self) {
        self.looks.stands_by = true;
    }

    /// Reaches a peer, though nothing is posted. Where that cannot be, it is tried once and told by
    /// [`Self::take_unreached`]; whether the peer is lost by it depends on whether anything else reaches it, which the
    /// caller knows.
    #[inline]
    pub fn reach(&mut self, rank: u32) {
        let peer = &self.peers[rank as usize];
        if peer.standing == TcpStanding::Open && peer.link.is_none() && peer.dial.is_none() && !peer.unreached {
            self.dial(rank);
        }
    }

    /// A peer that was to be reached and cannot be, with what happened at each address.
    pub fn take_unreached(&mut self) -> Option<(u32, String)> {
        self.told.unreached.pop()
    }

    /// Who a peer is, for people.
    pub fn title(&self, rank: u32) -> String {
        self.peers[rank as usize].title(rank)
    }

    /// Whether there is a connection to the peer.
    pub fn is_linked(&self, rank: u32) -> bool {
        self.peers[rank as usize].link.is_some()
    }

    /// Nothing more goes to or comes from a peer that another device has lost.
    pub fn give_up(&mut self, rank: u32) {
        if self.peers[rank as usize].standing == TcpStanding::Open {
            self.close(rank, TcpStanding::Lost);
        }
    }

    /// Whether the peer was lost.
    pub fn has_lost(&self, rank: u32) -> bool {
        self.peers[rank as usize].standing == TcpStanding::Lost
    }

    /// Makes a bell that ends the sleep on the sockets; its number.
    ///
    /// # Errors
    /// Those of making a socket.
    pub fn hang_bell(&mut self) -> io::Result<u64> {
        let bell = OwnBell::take()?;
        self.epoll.add(bell.descriptor(), SocketWatch::Input, token::new(token::BELL, 0, 0))?;
        Ok(self.bell.insert(bell).number())
    }

    pub fn counters(&self) -> TcpCounters {
        self.counters
    }

    /// What the user should know and nobody is lost by, each once.
    pub fn take_notice(&mut self) -> Option<String> {
        self.told.notices.pop()
    }

    /// Whether nothing is expected to come, or waits to leave.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.looks.look.is_idle()
            && self.buffered.is_empty()
            && self.company.written.is_empty()
            && self.waiting.is_empty()
    }

    /// Another device, which is polled beside this one, has brought something.
    #[inline]
    pub fn note_elsewhere(&mut self) {
        self.looks.look.note_elsewhere();
    }

    /// After the farewell nobody is dialled for nothing; but who may have taken the connection for ours already is to
    /// hear the farewell there, and would otherwise take its end for our death.
    pub(super) fn stop_idle_dial(&mut self, rank: u32) {
        let peer = &mut self.peers[rank as usize];
        if self.leaving && peer.output.is_empty() && peer.dial.as_ref().is_some_and(|dial| !dial.is_proven()) {
            peer.dial = None;
            self.dialing.retain(|other| *other != rank);
        }
    }

    #[cold]
    fn push_written(&mut self) {
        for rank in self.company.written.drain(..) {
            let peer = &mut self.peers[rank as usize];
            if let (Lately::Held, Some(link)) = (std::mem::replace(&mut peer.lately, Lately::Nothing), &peer.link) {
                link.socket.push();
            }
        }
    }

    /// How to sleep until something comes, or is to be done. Usable without the device, while another thread uses that.
    pub fn sleeper(&self) -> TcpSleeper {
        let next_ns = |rank: &u32| self.peers[*rank as usize].dial.as_ref().map(|dial| dial.next_ns());
        let dials = self.dialing.iter().filter_map(next_ns);
        let check = self.peers.iter().any(|peer| peer.link.is_some()).then_some(self.next_check_ns);
        let until_ns = dials.chain(self.reception.deaf_until_ns).chain(check).min();
        TcpSleeper::new(self.epoll.clone(), until_ns)
    }

    /// Nothing more goes to or comes from the peer; the next poll says so.
    pub(super) fn lose(&mut self, rank: u32, why: &str) {
        let peer = &mut self.peers[rank as usize];
        let at = peer.address.map_or(String::new(), |address| format!(" ({address})"));
        let story = format!("{}{at} is lost: {why}", peer.title(rank));
        self.close(rank, TcpStanding::Lost);
        self.told.faults.push(PeerFault::Lost { peer: rank, story });
    }

    fn close(&mut self, rank: u32, standing: TcpStanding) {
        let peer = &mut self.peers[rank as usize];
        peer.standing = standing;
        peer.took_leave |= standing == TcpStanding::Left;
        (peer.link, peer.dial, peer.output) = (None, None, OutputQueue::default());
        for list in [&mut self.linked, &mut self.dialing, &mut self.buffered, &mut self.waiting] {
            list.retain(|other| *other != rank);
        }
    }

    /// Takes in what has come from a peer.
    fn receive<S: Sink>(&mut self, rank: u32, sink: &mut S) -> bool {
        let Some(peer) = self.peers.get_mut(rank as usize) else { return false };
        let Some(link) = &mut peer.link else { return false };
        let turn = link.receive(rank, sink);
        self.take_turn(rank, turn)
    }

    fn take_turn(&mut self, rank: u32, turn: LinkTurn) -> bool {
        match turn {
            LinkTurn::Quiet => return false,
            LinkTurn::Moved { more: false } => {}
            LinkTurn::Moved { more: true } => self.buffered.push(rank),
            LinkTurn::Farewell => self.close(rank, TcpStanding::Left),
            // Who hears our farewell closes, and need not say anything more.
            LinkTurn::Ended(_) if self.leaving => self.close(rank, TcpStanding::Left),
            LinkTurn::Ended(None) => self.lose(rank, "its connection, so its process, has ended"),
            LinkTurn::Ended(Some(error)) => self.lose(rank, &format!("its connection has ended: {error}")),
            LinkTurn::Nonsense(what) => self.lose(rank, &format!("it has sent nonsense: {what}")),
        }
        true
    }

    fn hand_on_buffered<S: Sink>(&mut self, sink: &mut S) -> bool {
        let ranks = std::mem::take(&mut self.buffered);
        for rank in &ranks {
            if let Some(link) = &mut self.peers[*rank as usize].link {
                let turn = link.hand_on(*rank, sink);
                self.take_turn(*rank, turn);
            }
        }
        !ranks.is_empty()
    }

    /// Sends what waits, as far as there is room.
    pub(super) fn flush(&mut self) -> bool {
        let mut any = false;
        let mut index = 0;
        while index < self.waiting.len() {
            let rank = self.waiting[index];
            let peer = &mut self.peers[rank as usize];
            let Some(link) = &peer.link else {
                index += 1;
                continue;
            };
            // As in `post`: an end is noticed where it is read.
            any |= peer.output.flush(&link.socket).unwrap_or(false);
            if !peer.output.is_empty() {
                index += 1;
                continue;
            }
            if std::mem::take(&mut peer.wants_room) {
                let changed =
                    self.epoll.change(link.socket.raw(), SocketWatch::Input, token::new(token::LINK, 0, rank));
                debug_assert!(changed.is_ok(), "a socket of the set");
            }
            self.waiting.swap_remove(index);
        }
        any
    }

    #[inline(never)]
    fn look_at_sockets<S: Sink>(&mut self, sink: &mut S) -> bool {
        let only = self.linked.len() == 1 && self.dialing.is_empty() && self.reception.guests.is_empty();
        let mut any = match self.linked.first().copied() {
            Some(rank) if self.looks.reads_directly(only) => self.receive(rank, sink),
            _ => self.look_at_set(sink),
        };
        any |= !self.waiting.is_empty() && self.flush();
        self.on_time();
        any | self.tell_faults(sink)
    }

    /// Looks at all sockets at once.
    fn look_at_set<S: Sink>(&mut self, sink: &mut S) -> bool {
        let mut ready = std::mem::take(&mut self.ready);
        self.epoll.wait(&mut ready, Some(Duration::ZERO));
        let mut any = false;
        for token in ready.drain(..) {
            let (kind, attempt, number) = token::parts(token);
            any |= match kind {
                token::LINK => self.receive(number, sink),
                token::DIAL => self.on_attempt(number, attempt),
                token::GUEST => self.on_guest(number as usize),
                token::LISTENER => self.on_listener(),
                // It stays rung until who sleeps on it has got up, which may be another thread than this one.
                _ => false,
            };
        }
        self.ready = ready;
        any
    }

    fn tell_faults<S: Sink>(&mut self, sink: &mut S) -> bool {
        let faults = std::mem::take(&mut self.told.faults);
        let any = !faults.is_empty();
        faults.into_iter().for_each(|fault| sink.handle_fault(fault));
        any
    }
}

impl Device for TcpDevice {
    const CAPABILITIES: Capabilities =
        Capabilities { may_wait: true, streams: true, ..Capabilities::plain(LARGEST_PACKET) };

    unsafe fn post_short(&mut self, to: u32, head: Head, data: *const u8, length: usize) -> Posted {
        debug_assert!(length <= INLINE_BYTES);
        // SAFETY: the caller's promise; an empty range may come with any pointer.
        let inline = if length == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(data, length) } };
        self.post(to, PacketFront::new(head, inline, None).bytes(), &[])
    }

    unsafe fn post_bulk(&mut self, to: u32, head: Head, control: &[u64], data: *const u8, length: usize) -> Posted {
        debug_assert!(control.len() <= CONTROL_WORDS && length > 0);
        let length = length.min(self.longest(to, head.kind, length));
        // SAFETY: the caller's promise.
        let bulk = unsafe { std::slice::from_raw_parts(data, length) };
        let front = PacketFront::new(head, &bytes_of(control)[..control.len() * 8], Some(length));
        self.post(to, well_placed(front, bulk).bytes(), bulk)
    }

    fn poll<S: Sink>(&mut self, sink: &mut S) -> bool {
        self.push_all();
        let any = !self.buffered.is_empty() && self.hand_on_buffered(sink);
        if any || !self.looks.look.is_due(sys::ticks()) {
            return any;
        }
        let any = self.look_at_sockets(sink);
        if self.looks.stands_by {
            let awaits = self.linked.iter().any(|rank| !self.lifelines.contains(rank));
            self.looks.look.set_idle(!awaits && self.dialing.is_empty() && self.reception.guests.is_empty());
        }
        self.looks.look.learn(any);
        any
    }

    fn takes_whole(&mut self, _: u32, length: usize) -> bool {
        length <= LARGEST_PACKET
    }

    /// For room in the kernel.
    fn has_tail(&self, rank: u32) -> bool {
        !self.peers[rank as usize].output.is_empty()
    }

    fn has_ended(&self, rank: u32) -> bool {
        self.peers[rank as usize].standing != TcpStanding::Open
    }

    fn look_soon(&mut self) {
        self.looks.soon();
    }

    fn say_farewell(&mut self) {
        self.leaving = true;
        for rank in 0..self.peers.len() as u32 {
            let peer = &mut self.peers[rank as usize];
            if peer.standing == TcpStanding::Open && (peer.link.is_some() || !peer.output.is_empty()) {
                let waits = !peer.output.is_empty();
                peer.add(&FAREWELL_BYTES, &[]);
                if !waits {
                    self.waiting.push(rank);
                }
            }
            self.stop_idle_dial(rank);
        }
    }

    /// After the farewell, whether anything has not arrived: who closes a connection on which something has come that
    /// was not read takes back what has not arrived yet.
    fn has_output(&self) -> bool {
        let open = || self.peers.iter().filter(|peer| peer.standing == TcpStanding::Open);
        let owed = |peer: &TcpPeer| peer.dial.is_some() || peer.link.as_ref().is_some_and(|link| link.socket.is_owed());
        open().any(|peer| !peer.output.is_empty()) || self.leaving && open().any(owed)
    }

    /// Short posts to a peer that has just been sent one wait for company, until the kernel's patience ends. The first
    /// never waits.
    #[inline]
    fn gather(&mut self, may_follow: bool) {
        self.company.gathering = may_follow;
    }

    #[inline]
    fn push_all(&mut self) {
        if !self.company.written.is_empty() {
            self.push_written();
        }
    }

    /// What comes from now on ends the sleep.
    fn arm(&mut self) -> bool {
        for rank in &self.waiting {
            let peer = &mut self.peers[*rank as usize];
            if let Some(link) = &peer.link
                && !std::mem::replace(&mut peer.wants_room, true)
            {
                let changed =
                    self.epoll.change(link.socket.raw(), SocketWatch::Both, token::new(token::LINK, 0, *rank));
                debug_assert!(changed.is_ok(), "a socket of the set");
            }
        }
        self.buffered.is_empty() && self.told.faults.is_empty()
    }

    /// By who has slept.
    fn disarm(&mut self) {
        self.bell.iter().for_each(|bell| bell.drain());
        self.look_soon();
    }
}
