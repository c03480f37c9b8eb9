//! Datagram sockets of this process: one record per open socket, shared by all its descriptors.
//!
//! Invariants:
//! - A record is in use while a descriptor or a call holds it (`holds`: descriptors above, calls below).
//! - A pairing's channel is written before its state says [`ATTACHED`], and read only in that state or [`DRAINING`],
//!   which a call reads before the key. It is given back only while nobody else is inside.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use weft_fabric::datagram::{DatagramChannel, DatagramPeer};

use crate::raw;
use crate::records::{PoolRecord, RecordPool};
use crate::table::{self, Entry};

use super::left::Left;
use super::{gate, pairs};

/// Peers of one socket that are counted or have a channel. More stay with the kernel.
pub const PEERS: usize = 32;
/// Fewer than an epoll set can look at one by one: none of them is ever left out there.
const SOCKETS: usize = 1 << 12;

/// Nobody.
pub const VACANT: u32 = 0;
/// Datagrams with it are counted.
pub const COUNTED: u32 = 1;
/// Shown to the rendezvous.
pub const OFFERED: u32 = 2;
/// Has a channel.
pub const ATTACHED: u32 = 3;
/// Nothing is sent by its channel any more; what is in the ring is still to be read.
pub const DRAINING: u32 = 4;
/// Being given back.
pub const LEAVING: u32 = 5;

/// The kernel's datagram was shown.
pub const NEXT_KERNEL: u32 = u32::MAX;

/// One peer of a socket.
pub struct Pairing {
    pub state: AtomicU32,
    /// Datagrams exchanged.
    pub count: AtomicU32,
    /// 1: one of its datagrams has come by the kernel. Only then it may use the ring: what the host's own rules drop or
    /// lead elsewhere does not come by a ring either.
    pub heard: AtomicU32,
    key: [AtomicU64; 3],
    /// Something went by the kernel since the last datagram in the ring.
    pub after_kernel: AtomicU32,
    /// The peer takes nothing out of its ring.
    pub stalled: AtomicU32,
    /// Clock of the last look at that, and what the peer had taken then.
    pub looked_at: AtomicU64,
    pub seen: AtomicU64,
    channel: UnsafeCell<MaybeUninit<DatagramChannel>>,
}

/// As what it was shown to the rendezvous the last time.
pub struct LastOffer {
    pub cookie: AtomicU64,
    /// How many sockets this process had shown then; 0: it was not.
    pub count: AtomicU32,
}

/// One socket.
#[repr(align(128))]
pub struct UserSocket {
    /// Generation, and in the last bit whether it is in use.
    life: AtomicU64,
    holds: AtomicU64,
    /// AF_INET or AF_INET6.
    family: AtomicU32,
    /// 1: it stays with the kernel.
    pub kernels: AtomicU32,
    /// Pairings from here on were never used.
    pub used: AtomicU32,
    /// Pairings with a channel.
    pub channels: AtomicU32,
    /// Threads that sleep on it in the kernel, or are about to.
    pub asleep: AtomicU32,
    /// 1: the gates are open.
    pub open: AtomicU32,
    /// Held, with signals blocked, while gates or pairings change.
    pub lock: AtomicU32,
    /// Where the next look at the rings begins.
    pub turn: AtomicU32,
    /// Datagrams taken, and taken from the kernel in the place of one from a ring.
    pub takes: AtomicU32,
    pub kernel_first: AtomicU32,
    /// What a look has shown, and the next receive takes: 0 for nothing, [`NEXT_KERNEL`], or one more than a place.
    pub next: AtomicU32,
    /// The pairing of the last send.
    pub last: AtomicU32,
    /// How often nobody could be shown it.
    pub attempts: AtomicU32,
    pub shown: LastOffer,
    /// Where it is connected to, if that may have a ring; port 0 for nowhere.
    connected: [AtomicU64; 3],
    next_free: AtomicU32,
    /// What lay in rings at a fork.
    pub left: Left,
    pub pairings: [Pairing; PEERS],
}

// SAFETY: all is atomic but the channels, which are written once per life of a pairing before the state that allows
// reading.
unsafe impl Sync for UserSocket {}

const LIVE: u64 = 1;
const DESCRIPTOR: u64 = 1 << 32;

// SAFETY: zeros are a record that is not in use, and records may be shared.
unsafe impl PoolRecord for UserSocket {
    fn next_free(&self) -> &AtomicU32 {
        &self.next_free
    }
}

static RECORDS: RecordPool<UserSocket> = RecordPool::new(SOCKETS);

/// Makes room for the records (address space only). False when there is none.
pub fn start() -> bool {
    RECORDS.start()
}

/// The record with this index.
#[inline]
pub fn at(index: u32) -> &'static UserSocket {
    RECORDS.at(index)
}

/// Notes that `fd` is a new UDP socket of this process.
pub fn note(fd: c_int, family: c_int) {
    crate::conn::forget(fd);
    let wanted = crate::may_accelerate() && crate::settings::udp();
    if !wanted || !table::has_place(fd) || fd <= libc::STDERR_FILENO {
        return;
    }
    let Some(index) = RECORDS.take() else { return };
    let socket = at(index);
    for word in [
        &socket.kernels,
        &socket.used,
        &socket.channels,
        &socket.asleep,
        &socket.open,
        &socket.lock,
        &socket.turn,
        &socket.takes,
        &socket.kernel_first,
        &socket.next,
        &socket.last,
        &socket.attempts,
        &socket.shown.count,
    ] {
        word.store(0, Ordering::Relaxed);
    }
    socket.family.store(family as u32, Ordering::Relaxed);
    socket.shown.cookie.store(0, Ordering::Relaxed);
    socket.connected[2].store(0, Ordering::Relaxed);
    // Before it lives: a call that came too late for the life before may look and leave meanwhile.
    socket.holds.fetch_add(DESCRIPTOR, Ordering::SeqCst);
    socket.life.store((socket.life.load(Ordering::Relaxed) | LIVE).wrapping_add(2), Ordering::SeqCst);
    table::replace(fd, Some(Entry::Datagram(index)));
}

/// One more descriptor of the socket.
pub fn add_descriptor(index: u32) {
    at(index).holds.fetch_add(DESCRIPTOR, Ordering::SeqCst);
}

/// One less; the table does not lead from it to the record any more.
pub fn drop_descriptor(index: u32) {
    let socket = at(index);
    if socket.holds.load(Ordering::SeqCst) >> 32 == 1 {
        // Nobody will look at the rings any more.
        let held = hold_index(index);
        gate::leave_all(&held);
        pairs::await_let_go(&held);
    }
    socket.release(index, DESCRIPTOR);
}

/// The process is about to end, which closes all of them.
pub fn await_let_go() {
    for (_, entry) in table::entries(0, c_int::MAX) {
        if let Entry::Datagram(index) = entry {
            pairs::await_let_go(at(index));
        }
    }
}

/// A call's hold on a socket.
#[derive(Debug)]
pub struct SocketHold {
    pub index: u32,
}

impl std::ops::Deref for SocketHold {
    type Target = UserSocket;

    #[inline]
    fn deref(&self) -> &UserSocket {
        at(self.index)
    }
}

impl Drop for SocketHold {
    #[inline]
    fn drop(&mut self) {
        at(self.index).release(self.index, 1);
    }
}

/// Holds the datagram socket that `fd` is; `None` when it is none of ours.
#[inline]
pub fn hold(fd: c_int) -> Option<SocketHold> {
    loop {
        let Entry::Datagram(index) = table::entry(fd)? else { return None };
        let held = hold_index(index);
        // Between the look and the hold it may have been closed, and the record given to another socket.
        if table::entry(fd) == Some(Entry::Datagram(index)) {
            return Some(held);
        }
    }
}

/// One more hold of a socket that is held.
pub fn hold_again(held: &SocketHold) -> SocketHold {
    hold_index(held.index)
}

fn hold_index(index: u32) -> SocketHold {
    at(index).holds.fetch_add(1, Ordering::SeqCst);
    SocketHold { index }
}

/// Whether a datagram is in a ring (or left of one) of the socket with this index, which is in the table.
pub fn is_waiting(index: u32) -> bool {
    hold_index(index).waiting()
}

/// Whether a look at the kernel is not enough.
pub fn has_rings(index: u32) -> bool {
    let held = hold_index(index);
    held.channels.load(Ordering::SeqCst) > 0 || !held.left.is_empty()
}

/// Another number in every life of the record.
pub fn life(index: u32) -> u32 {
    (at(index).life.load(Ordering::SeqCst) >> 1) as u32
}

/// A number that changes with each arrival in a ring.
pub fn arrived(index: u32) -> u64 {
    let held = hold_index(index);
    held.live_channels().fold(0, |sum, (_, channel)| sum.wrapping_add(channel.arrived()))
}

impl UserSocket {
    fn release(&self, index: u32, hold: u64) {
        let life = self.life.load(Ordering::SeqCst);
        if self.holds.fetch_sub(hold, Ordering::SeqCst) == hold
            && life & LIVE != 0
            && self.life.compare_exchange(life, life & !LIVE, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        {
            pairs::forget_all(self);
            RECORDS.put(index);
        }
    }

    pub fn family(&self) -> c_int {
        self.family.load(Ordering::Relaxed) as c_int
    }

    /// Whether nothing of it is ours to look at: the kernel's for good, and nothing is left in a ring.
    #[inline]
    pub fn is_kernel_s(&self) -> bool {
        self.kernels.load(Ordering::Acquire) != 0 && !self.has_rings()
    }

    /// Whether a look at the kernel is not enough.
    #[inline]
    pub fn has_rings(&self) -> bool {
        self.channels.load(Ordering::Acquire) > 0 || !self.left.is_empty()
    }

    /// Whether no other call of this process is inside.
    pub fn alone(&self) -> bool {
        self.holds.load(Ordering::SeqCst) & (DESCRIPTOR - 1) == 1
    }

    /// In a child after a fork: calls of other threads are gone.
    pub fn forget_calls(&self) {
        self.holds.fetch_and(!(DESCRIPTOR - 1), Ordering::SeqCst);
        self.asleep.store(0, Ordering::Relaxed);
        self.lock.store(0, Ordering::Relaxed);
    }

    pub fn connect(&self, peer: Option<DatagramPeer>) {
        let [high, low, port] = peer.map_or([0; 3], |peer| words(&peer));
        self.connected[0].store(high, Ordering::Relaxed);
        self.connected[1].store(low, Ordering::Relaxed);
        self.connected[2].store(port, Ordering::Release);
    }

    #[inline]
    pub fn connected(&self) -> Option<DatagramPeer> {
        let port = self.connected[2].load(Ordering::Acquire);
        let words = [self.connected[0].load(Ordering::Relaxed), self.connected[1].load(Ordering::Relaxed), port];
        (port != 0).then(|| peer(words))
    }

    /// The pairings that were ever used.
    #[inline]
    pub fn known(&self) -> &[Pairing] {
        &self.pairings[..(self.used.load(Ordering::Acquire) as usize).min(PEERS)]
    }

    /// Those with a ring to be read.
    #[inline]
    pub fn live_channels(&self) -> impl Iterator<Item = (&Pairing, DatagramChannel)> {
        self.known().iter().filter_map(|pairing| pairing.channel().map(|channel| (pairing, channel)))
    }

    /// Whether a datagram is in a ring. Another one's turn at the kernel does not count.
    #[inline]
    pub fn waiting(&self) -> bool {
        self.has_rings() && (!self.left.is_empty() || self.live_channels().any(|(_, channel)| channel.waiting()))
    }

    /// The pairing with this peer, if it has a channel to send by.
    #[inline]
    pub fn attached(&self, peer: &DatagramPeer) -> Option<&Pairing> {
        let known = self.known();
        let is_it = |pairing: &Pairing| pairing.state.load(Ordering::Acquire) == ATTACHED && pairing.is(peer);
        if let Some(last) = known.get(self.last.load(Ordering::Relaxed) as usize).filter(|last| is_it(last)) {
            return Some(last);
        }
        let found = known.iter().position(is_it)?;
        self.last.store(found as u32, Ordering::Relaxed);
        Some(&known[found])
    }
}

fn words(peer: &DatagramPeer) -> [u64; 3] {
    let [high, low] = [0, 8].map(|at| {
        let mut half = [0; 8];
        half.copy_from_slice(&peer.address[at..at + 8]);
        u64::from_ne_bytes(half)
    });
    [high, low, u64::from(peer.port)]
}

fn peer([high, low, port]: [u64; 3]) -> DatagramPeer {
    let mut address = [0; 16];
    address[..8].copy_from_slice(&high.to_ne_bytes());
    address[8..].copy_from_slice(&low.to_ne_bytes());
    DatagramPeer::new(address, port as u16)
}

impl Pairing {
    #[inline]
    pub fn is(&self, peer: &DatagramPeer) -> bool {
        self.key.each_ref().map(|word| word.load(Ordering::Relaxed)) == words(peer)
    }

    pub fn peer(&self) -> DatagramPeer {
        peer(self.key.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    /// Gives the place to another peer. The lock is held, and the place has no channel.
    pub fn name(&self, peer: &DatagramPeer) {
        for (word, value) in self.key.iter().zip(words(peer)) {
            word.store(value, Ordering::Relaxed);
        }
        for word in [&self.count, &self.heard, &self.after_kernel, &self.stalled] {
            word.store(0, Ordering::Relaxed);
        }
        self.state.store(COUNTED, Ordering::Release);
    }

    /// The lock is held, and the state is none that allows reading.
    pub fn set_channel(&self, channel: DatagramChannel) {
        // SAFETY: nobody reads before the state says so (invariant of this module).
        unsafe { (*self.channel.get()).write(channel) };
        self.after_kernel.store(1, Ordering::Relaxed);
        self.stalled.store(0, Ordering::Relaxed);
        self.looked_at.store(raw::ticks(), Ordering::Relaxed);
        self.seen.store(u64::MAX, Ordering::Relaxed);
    }

    /// The channel, if there is one to be read.
    #[inline]
    pub fn channel(&self) -> Option<DatagramChannel> {
        match self.state.load(Ordering::Acquire) {
            // SAFETY: written before the state that was just read.
            ATTACHED | DRAINING => Some(unsafe { (*self.channel.get()).assume_init() }),
            _ => None,
        }
    }

    /// The channel of a pairing that this thread has made [`LEAVING`].
    pub fn last_of_channel(&self) -> DatagramChannel {
        // SAFETY: a pairing comes to that state from those that have one only.
        unsafe { (*self.channel.get()).assume_init() }
    }

    pub fn change(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }
}
