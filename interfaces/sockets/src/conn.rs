//! Connections of this process: one record per open socket that may be accelerated, shared by all its descriptors.
//!
//! Invariants:
//! - A record is in use while a descriptor or a call holds it (`holds`: descriptors above, calls below), so a stream is
//!   never given back under a call of another thread.
//! - `stream` is written before the state says [`GRANTED`] and not after, and read only from then on.
//! - The state word carries a generation, so that a late release cannot free a record that was given out again.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use weft_fabric::stream::{Readable, Reason, Stream};

use super::meet::STREAMS;
use super::records::{PoolRecord, RecordPool};
use super::table::{self, Entry, PLACES};
use super::{early, epoll, far, incoming, kernel_counts, life, meet, passed, raw, requests, udp};

/// Not in use.
pub const FREE: u32 = 0;
/// The kernel's; calls are counted.
pub const FRESH: u32 = 1;
/// Shown to the rendezvous.
pub const OFFERED: u32 = 2;
/// The rendezvous has answered; not attached yet.
pub const GRANTED: u32 = 3;
/// A thread is comparing counts; calls wait for it.
pub const ATTACHING: u32 = 4;
/// Bytes may be in the rings.
pub const ATTACHED: u32 = 5;
/// The kernel's for good.
pub const NEVER: u32 = 6;
const STATE_MASK: u32 = 7;
const GENERATION: u32 = 8;

const DESCRIPTOR: u64 = 1 << 32;
const CALLS: u64 = DESCRIPTOR - 1;
/// A call that waits outside of the kernel's call and looks at the state before it goes on.
const ASIDE: u64 = 1 << 16;
const INSIDE: u64 = ASIDE - 1;

/// How often the calls on a connection wait in pieces for an answer of the rendezvous.
pub const PATIENCE: u32 = 64;

/// The kernel has something to say (it reported an end or an error): look before saying "would block".
pub const ASK_KERNEL: u32 = 1;
/// A send found the ring full: the next room is an edge for epoll.
pub const WAS_FULL: u32 = 2;
/// See [`Connection::set`].
pub const MANY_SETS: u32 = u32::MAX;
/// Its sets are to be told that it has gone back to the kernel.
pub const STALE_IN_SETS: u32 = 16;
/// The stream is ours to give back.
pub const WAS_ATTACHED: u32 = 8;

/// A direction has been shut down by this process: calls on it end when its descriptor is closed.
pub const SHUT: u32 = 64;

/// The other side's end was judged to be a reset, here: the kernel says so since.
pub const UNDONE: u32 = 128;

/// It was accepted: the service is the one of our port.
pub const ACCEPTED: u32 = 1024;

/// It leads to another host: see `far`.
pub const FAR: u32 = 2048;

/// The log has said that the other end does not come.
pub const TOLD: u32 = 4096;
/// It was passed to another process; it came from one: see `passed`.
pub const PASSED: u32 = 8192;
pub const TAKEN: u32 = 16384;

/// The last fork counted a reference to its stream for the child, or one more process of its family.
pub const FORK_REFERENCE: u32 = 256;
pub const FORK_SHARE: u32 = 512;

/// One connection.
#[repr(align(128))]
pub struct Connection {
    state: AtomicU32,
    pub flags: AtomicU32,
    holds: AtomicU64,
    stream: UnsafeCell<MaybeUninit<Stream>>,
    /// Bytes that went through the kernel before attaching (afterwards the stream has the counts).
    pub sent: AtomicU64,
    pub received: AtomicU64,
    /// Data calls so far; offered when the setting is reached.
    pub calls: AtomicU32,
    /// One of its descriptors, as long as there is only one: the rule.
    pub descriptor: AtomicI32,
    /// The epoll set it is registered in: 0 for none, [`MANY_SETS`] for several.
    pub set: AtomicU32,
    /// How many more waits are made in pieces while it is offered or granted.
    pub patience: AtomicU32,
    /// How often nobody could be shown it.
    pub attempts: AtomicU32,
    /// Looks at an empty ring since the kernel was asked.
    pub empty_looks: AtomicU32,
    /// Clock of the last look at the kernel by a sender; before, of showing one that leads to another host.
    pub looked_at: AtomicU64,
    /// See [`Connection::owe`].
    owed_error: AtomicI32,
    pub cookie: AtomicU64,
    /// Clock of the offer, and of the moment in which it was attached.
    pub offered_at: AtomicU64,
    pub attached_at: AtomicU64,
    /// So many bytes the kernel may carry before a sender pauses, how often one has paused, and the port of the service
    /// (see `early`).
    pub up_to: AtomicU64,
    pub pauses: AtomicU32,
    pub service: AtomicU32,
    /// Our port and the other's; 0 while nobody has asked.
    ports: AtomicU32,
    /// The cell in which processes of a fork family count who holds the socket; 0 for none.
    pub family: AtomicU32,
    /// What it is counted as, of what is counted only as long as it holds: see [`Connection::count_as`]. 0 for nothing.
    pub counted_as: AtomicU32,
    next_free: AtomicU32,
}

// SAFETY: all is atomic but `stream`, which is written once per life of the record before the state that allows
// reading.
unsafe impl Sync for Connection {}

// SAFETY: zeros are a record that is not in use, and records may be shared.
unsafe impl PoolRecord for Connection {
    fn next_free(&self) -> &AtomicU32 {
        &self.next_free
    }
}

static RECORDS: RecordPool<Connection> = RecordPool::new(PLACES);

/// Makes room for the records (address space only). False when there is none.
pub fn start() -> bool {
    RECORDS.start()
}

/// The record with this index.
#[inline]
pub fn at(index: u32) -> &'static Connection {
    RECORDS.at(index)
}

/// Notes that `fd` is a new socket of this process that may be accelerated one day.
pub fn note(fd: c_int) {
    forget(fd);
    // The C library's streams use the first numbers without us.
    if !super::may_accelerate() || !table::has_place(fd) || fd <= libc::STDERR_FILENO {
        return;
    }
    let Some(index) = RECORDS.take() else { return };
    let conn = at(index);
    for counter in [&conn.sent, &conn.received, &conn.looked_at, &conn.cookie] {
        counter.store(0, Ordering::Relaxed);
    }
    for counter in [&conn.flags, &conn.calls, &conn.attempts, &conn.set, &conn.empty_looks, &conn.family] {
        counter.store(0, Ordering::Relaxed);
    }
    for counter in [&conn.pauses, &conn.service, &conn.counted_as, &conn.ports] {
        counter.store(0, Ordering::Relaxed);
    }
    conn.up_to.store(early::bytes_before_offer(), Ordering::Relaxed);
    conn.owed_error.store(0, Ordering::Relaxed);
    conn.descriptor.store(fd, Ordering::Relaxed);
    conn.patience.store(PATIENCE, Ordering::Relaxed);
    conn.holds.fetch_add(DESCRIPTOR, Ordering::Relaxed);
    conn.change_state(FRESH);
    table::replace(fd, Some(Entry::Connection(index)));
}

/// The same for one that was accepted.
pub fn note_accepted(fd: c_int) {
    note(fd);
    if let Some(held) = hold(fd) {
        held.set_flag(ACCEPTED);
    }
}

/// `fd` is closed, or something else from now on.
pub fn forget(fd: c_int) {
    requests::closed(fd, fd);
    if table::entry(fd).is_some() {
        epoll::closed(fd);
    }
    match table::entry(fd).and_then(|_| table::replace(fd, None)) {
        Some(Entry::Connection(index)) => {
            let conn = at(index);
            if conn.has_flag(SHUT) && conn.state_now() == ATTACHED {
                // One that has looked at the number before it was gone may sleep on another file by now.
                conn.stream().rouse_receivers();
                conn.stream().rouse_senders();
            }
            conn.release(index, DESCRIPTOR);
        }
        Some(Entry::Set(index)) => epoll::drop_descriptor(index),
        Some(Entry::Datagram(index)) => udp::drop_descriptor(index),
        None => {}
    }
}

/// `copy` is a duplicate of `fd` from now on.
pub fn duplicate(fd: c_int, copy: c_int) {
    if fd == copy {
        return;
    }
    forget(copy);
    match table::entry(fd) {
        Some(entry @ Entry::Connection(index)) if table::has_place(copy) => {
            at(index).holds.fetch_add(DESCRIPTOR, Ordering::SeqCst);
            passed::spread(at(index), fd);
            table::replace(copy, Some(entry));
        }
        Some(entry @ Entry::Set(index)) if table::has_place(copy) => {
            epoll::add_descriptor(index);
            table::replace(copy, Some(entry));
        }
        Some(entry @ Entry::Datagram(index)) if table::has_place(copy) => {
            udp::add_descriptor(index);
            table::replace(copy, Some(entry));
        }
        _ => {}
    }
    if copy <= libc::STDERR_FILENO {
        // The C library's streams use these numbers without us.
        life::hand_back(copy, Reason::Stdio);
    }
}

/// From our end of a connection.
pub type Direction = bool;
pub const SENT: Direction = true;
pub const RECEIVED: Direction = false;

/// A call of the kernel that others may see; see [`Connection::note_by_kernel`].
pub struct ByKernel(Option<([u16; 2], u64)>);

impl Drop for ByKernel {
    #[inline]
    fn drop(&mut self) {
        if let Some((ports, begun)) = self.0 {
            STREAMS.note_done(ports, begun);
        }
    }
}

/// A call's hold on a connection.
#[derive(Debug)]
pub struct Hold {
    pub index: u32,
}

impl std::ops::Deref for Hold {
    type Target = Connection;

    #[inline]
    fn deref(&self) -> &Connection {
        at(self.index)
    }
}

/// Holds the connection that `fd` is; `None` when it is none.
#[inline]
pub fn hold(fd: c_int) -> Option<Hold> {
    loop {
        let Entry::Connection(index) = table::entry(fd)? else { return None };
        at(index).holds.fetch_add(1, Ordering::SeqCst);
        let held = Hold { index };
        // Between the look and the hold it may have been closed, and the record given to another socket.
        if table::entry(fd) == Some(Entry::Connection(index)) {
            return Some(held);
        }
    }
}

impl Connection {
    /// An error of the kernel, which it tells only once, is to be told by the next call: of anybody who shares the
    /// socket.
    pub fn owe(&self, error: raw::Errno) {
        if self.has_flag(WAS_ATTACHED) {
            self.stream().options().owed_error.store(error as u32, Ordering::Relaxed);
        } else {
            self.owed_error.store(error, Ordering::Relaxed);
        }
    }

    /// Whether there is such an error.
    #[inline]
    pub fn owes(&self) -> bool {
        self.owed_error.load(Ordering::Relaxed) != 0
            || (self.has_flag(WAS_ATTACHED) && self.stream().options().owed_error.load(Ordering::Relaxed) != 0)
    }

    /// Takes it; 0 for none.
    #[cold]
    pub fn take_owed(&self) -> raw::Errno {
        match self.owed_error.swap(0, Ordering::Relaxed) {
            0 if self.has_flag(WAS_ATTACHED) => {
                self.stream().options().owed_error.swap(0, Ordering::Relaxed).cast_signed()
            }
            error => error,
        }
    }
}

impl Hold {
    /// What a receiver would find now.
    #[inline]
    pub fn readable(&self) -> Readable {
        let stream = self.stream();
        let found = stream.readable(stream.kernel_counts().1.load(Ordering::Relaxed));
        if stream.options().low_water.load(Ordering::Relaxed) > 1 { self.readable_in_all(found) } else { found }
    }

    /// Where one byte is not enough, the kernel's and the ring's count together.
    #[cold]
    fn readable_in_all(&self, found: Readable) -> Readable {
        let enough = self.ready_bytes();
        if !matches!(found, Readable::Kernel | Readable::Ring(_))
            || matches!(found, Readable::Ring(there) if there >= enough)
        {
            return found;
        }
        let mut there = 0;
        self.descriptors(self.index, |fd| there = there.max(incoming::pending(self, fd)));
        if there >= enough { Readable::Ring(there) } else { found }
    }
}

/// The same for a record that is known to be in use.
pub fn hold_index(index: u32) -> Hold {
    at(index).holds.fetch_add(1, Ordering::SeqCst);
    Hold { index }
}

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        at(self.index).release(self.index, 1);
    }
}

/// A call that holds a connection and is not inside; see [`Connection::step_aside`].
pub struct Aside<'a>(&'a Connection);

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        self.0.holds.fetch_sub(ASIDE - 1, Ordering::SeqCst);
    }
}

impl Connection {
    /// The state now; waits while another thread compares counts, which is short.
    #[inline]
    pub fn state(&self) -> u32 {
        loop {
            let state = self.state.load(Ordering::SeqCst) & STATE_MASK;
            if state != ATTACHING {
                return state;
            }
            raw::yield_core();
        }
    }

    /// Another number in every life of the record.
    pub fn life(&self) -> u32 {
        self.state.load(Ordering::Relaxed) & !STATE_MASK
    }

    /// The state now, without waiting.
    pub fn state_now(&self) -> u32 {
        self.state.load(Ordering::SeqCst) & STATE_MASK
    }

    /// Sets the state, in the same life of the record.
    pub fn set_state(&self, state: u32) {
        let generation = self.state.load(Ordering::Relaxed) & !STATE_MASK;
        self.state.store(generation | state, Ordering::SeqCst);
    }

    /// Sets the state if it is `from`.
    pub fn change(&self, from: u32, to: u32) -> bool {
        let word = self.state.load(Ordering::Relaxed);
        let next = word & !STATE_MASK | to;
        word & STATE_MASK == from
            && self.state.compare_exchange(word, next, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// A new life.
    fn change_state(&self, state: u32) {
        let generation = (self.state.load(Ordering::Relaxed) & !STATE_MASK).wrapping_add(GENERATION);
        self.state.store(generation | state, Ordering::SeqCst);
    }

    /// Whether no call holds it.
    pub fn is_idle(&self) -> bool {
        self.holds.load(Ordering::SeqCst) & CALLS == 0
    }

    /// Whether the caller's hold and one descriptor are all that holds it.
    pub fn is_last_descriptor(&self) -> bool {
        self.holds.load(Ordering::SeqCst) == DESCRIPTOR + 1
    }

    /// Whether no other call of this process is inside. (Those that wait aside look at the state when they come back.)
    pub fn alone(&self) -> bool {
        self.holds.load(Ordering::SeqCst) & INSIDE == 1
    }

    /// Takes one wait in pieces; false when there were enough of them.
    pub fn take_patience(&self) -> bool {
        self.patience.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// Another thread may attach the connection until the answer is dropped.
    pub fn step_aside(&self) -> Aside<'_> {
        self.holds.fetch_add(ASIDE - 1, Ordering::SeqCst);
        Aside(self)
    }

    /// Our port and the other's, asked of the kernel once, by its descriptor `fd`; `None` for what has none.
    pub fn ports(&self, fd: c_int) -> Option<[u16; 2]> {
        let mut word = self.ports.load(Ordering::Relaxed);
        if word == 0 {
            let [ours, others] = kernel_counts::ports(fd)?;
            word = u32::from(ours) << 16 | u32::from(others);
            self.ports.store(word, Ordering::Relaxed);
        }
        Some([(word >> 16) as u16, word as u16])
    }

    /// Bytes that the kernel has carried in this direction, as far as we have seen it.
    pub fn carried(&self, direction: Direction) -> u64 {
        self.with_carried(direction, |count| count.load(Ordering::Relaxed))
    }

    /// It has carried some more.
    pub fn count_carried(&self, direction: Direction, bytes: u64) {
        self.with_carried(direction, |count| count.fetch_add(bytes, Ordering::Relaxed));
    }

    fn with_carried(&self, direction: Direction, then: impl FnOnce(&AtomicU64) -> u64) -> u64 {
        if self.has_flag(WAS_ATTACHED) {
            let stream = self.stream();
            let (sent, received) = stream.kernel_counts();
            return then(if direction == SENT { sent } else { received });
        }
        then(if direction == SENT { &self.sent } else { &self.received })
    }

    /// The kernel is about to carry something, until the answer is dropped: where others share memory with us they see
    /// when that was.
    #[inline]
    #[must_use]
    pub fn note_by_kernel(&self, fd: c_int) -> ByKernel {
        if STREAMS.has_arenas() { self.note_for_others(fd) } else { ByKernel(None) }
    }

    /// The kernel is about to be told of an end.
    pub fn note_end(&self, fd: c_int) {
        std::mem::forget(self.note_by_kernel(fd));
    }

    #[cold]
    fn note_for_others(&self, fd: c_int) -> ByKernel {
        // Said in both places: the other end may not be attached yet.
        if self.state_now() == ATTACHED {
            self.stream().note_event();
        }
        ByKernel(self.ports(fd).map(|ports| (ports, STREAMS.note_by_kernel(ports, self.carried(SENT)))))
    }

    /// Calls `each` with every descriptor of this connection, whose index is `index`.
    pub fn descriptors(&self, index: u32, mut each: impl FnMut(c_int)) {
        let one = self.descriptor.load(Ordering::Relaxed);
        let many = self.holds.load(Ordering::Relaxed) >> 32 > 1;
        if !many && table::entry(one) == Some(Entry::Connection(index)) {
            return each(one);
        }
        for (fd, entry) in table::entries(0, c_int::MAX) {
            if entry == Entry::Connection(index) {
                self.descriptor.store(fd, Ordering::Relaxed);
                each(fd);
            }
        }
    }

    /// In a child after a fork: calls of other threads are gone.
    pub fn forget_calls(&self) {
        self.holds.fetch_and(!CALLS, Ordering::SeqCst);
    }

    #[inline]
    fn release(&self, index: u32, hold: u64) {
        let state = self.state.load(Ordering::SeqCst);
        let before = self.holds.fetch_sub(hold, Ordering::SeqCst);
        if hold == DESCRIPTOR && before >> 32 == 1 {
            // Nobody can reach it any more: the peer may look for the end. Where other processes hold it there is none
            // yet, and `ends` takes the hint for the word of one who has looked for unread bytes.
            if self.has_flag(WAS_ATTACHED) && !self.stream().is_shared() {
                self.stream().set_closing();
                far::tell(&self.stream());
            }
        }
        if before == hold {
            self.free(index, state);
        }
    }

    /// Gives the record back, if it still lives the life in which its state was `seen`.
    #[cold]
    fn free(&self, index: u32, seen: u32) {
        let mut word = seen;
        while word & STATE_MASK != FREE {
            let next = (word & !STATE_MASK).wrapping_add(GENERATION) | FREE;
            match self.state.compare_exchange(word, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => {
                    meet::left(self, word & STATE_MASK);
                    return RECORDS.put(index);
                }
                Err(now) if now & !STATE_MASK == seen & !STATE_MASK => word = now,
                Err(_) => return,
            }
        }
    }

    /// How many bytes there must be before it is called readable: `SO_RCVLOWAT`, but never more than the ring holds.
    pub fn ready_bytes(&self) -> usize {
        (self.stream().options().low_water.load(Ordering::Relaxed) as usize).min(super::wait::MOST_BYTES)
    }

    /// Whether somebody who shares it, once attached, could not hand it back, and has undone it.
    pub fn is_cut_off(&self) -> bool {
        self.stream().options().cut_off.load(Ordering::Relaxed) != 0
    }

    /// To be called once per life, before the state [`GRANTED`].
    pub fn set_stream(&self, stream: Stream) {
        // SAFETY: nobody reads before the state says so (invariant of this module).
        unsafe { (*self.stream.get()).write(stream) };
    }

    /// The stream of a connection that was granted.
    #[inline]
    pub fn stream(&self) -> Stream {
        // SAFETY: written before the state that let the caller come here.
        unsafe { (*self.stream.get()).assume_init() }
    }

    pub fn set_flag(&self, flag: u32) {
        self.flags.fetch_or(flag, Ordering::Relaxed);
    }

    /// Takes a flag away; whether it was there.
    pub fn take_flag(&self, flag: u32) -> bool {
        self.has_flag(flag) && self.flags.fetch_and(!flag, Ordering::Relaxed) & flag != 0
    }

    pub fn has_flag(&self, flag: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }
}
