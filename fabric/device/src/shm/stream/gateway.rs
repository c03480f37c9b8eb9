//! A gateway as one process has it: the program whose connections it is for, or the rendezvous of its host.

use super::arena::Arena;
use super::bell;
use super::bytes::StreamRing;
use super::lock::{Patience, StreamLock};
pub use super::mirror::PROGRAM;
use super::mirror::{Mirror, Record, Tick};
use crate::kernel::{self, Descriptor};
use crate::xdp::{Ends, LaneRoute, LaneState, SharedLane};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use weft_wire::link::mac::Key;
use weft_wire::stream::arena::SLOTS;
use weft_wire::stream::gateway::{BYTES, LANE_AT, MAGIC, VERSION, header, record_at};
use weft_wire::stream::parcel::{HEADER_BYTES, Parcel, flag};

/// Parcels of one connection that leave together: more than the window holds.
const MOST_AT_ONCE: u32 = 64;

/// The other end of a connection, as its rendezvous named it, and the keys.
#[derive(Clone, Copy, Debug)]
pub struct FarEnd {
    pub slot: u32,
    pub generation: u32,
    /// Of what we send, and of what comes.
    pub keys: [Key; 2],
}

/// What has passed through a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayCounters {
    pub sent: u64,
    /// Times that everything unconfirmed was said again.
    pub again: u64,
    pub came: u64,
    /// Datagrams that were not of the other end of a connection.
    pub refused: u64,
}

/// How a connection stands at a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticked {
    /// All was told and confirmed.
    Settled,
    Open,
    /// What was said again has not been confirmed, either: the way may not lead there any more.
    Lost,
}

/// What a datagram was that was taken.
struct TakenDatagram {
    slot: u32,
    /// An answer is wanted.
    asks: bool,
    /// It has come another way than ours to the other end, which stays as it is.
    is_elsewhere: bool,
}

/// Mapped memory of a gateway, and its lane.
pub struct Gateway {
    base: *mut u8,
    lane: SharedLane,
    patience: Patience,
}

// SAFETY: the memory is used by atomics, and the lane under the lock.
unsafe impl Sync for Gateway {}
// SAFETY: as above.
unsafe impl Send for Gateway {}

/// Being the one who uses lane and records.
struct GatewayTurn<'a>(StreamLock<'a>);

impl Drop for GatewayTurn<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Gateway {
    /// Memory for one, of lane number `lane` and the arena of this name. The descriptor is the caller's.
    ///
    /// # Errors
    /// There is no memory.
    pub fn create(lane: u32, arena: u64) -> io::Result<Descriptor> {
        let memory = kernel::sealed_memory(c"weft-gateway", BYTES)?;
        let base = kernel::map_shared(Some(memory.as_raw_fd()), BYTES)?;
        for (at, word) in [(header::VERSION, VERSION), (header::LANE, lane)] {
            // SAFETY: inside the mapping, aligned; nobody else has it yet.
            unsafe { base.add(at).cast::<u32>().write(word) };
        }
        for (at, word) in [(header::ARENA, arena), (header::MAGIC, MAGIC)] {
            // SAFETY: as above.
            unsafe { base.add(at).cast::<u64>().write(word) };
        }
        // SAFETY: mapped above, and nobody has a reference into it.
        unsafe { kernel::unmap(base, BYTES) };
        Ok(memory)
    }

    /// Maps one for a lane. The descriptor stays the caller's; `None`: it is no such memory, or there is no room.
    pub fn open(memory: RawFd, lane: SharedLane) -> Option<Self> {
        if !kernel::is_sealed(memory, BYTES) {
            return None;
        }
        let base = kernel::map_shared(Some(memory), BYTES).ok()?;
        kernel::without_dump(base, BYTES);
        let _ = kernel::register_for_barriers();
        let gateway = Self { base, lane, patience: Patience::default() };
        let is_right = gateway.long(header::MAGIC).load(Ordering::Relaxed) == MAGIC
            && gateway.word(header::VERSION).load(Ordering::Relaxed) == VERSION;
        is_right.then_some(gateway)
    }

    /// # Safety
    /// A `T` stands at the offset, aligned, and is made of atomics.
    unsafe fn at<T>(&self, offset: usize) -> &T {
        // SAFETY: the caller's; the mapping is there as long as `self`.
        unsafe { &*self.base.add(offset).cast::<T>() }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the header is a page of words.
        unsafe { self.at(at) }
    }

    fn long(&self, at: usize) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { self.at(at) }
    }

    /// The lane's number, and the name of the arena that goes with this.
    pub fn names(&self) -> (u32, u64) {
        (self.word(header::LANE).load(Ordering::Relaxed), self.long(header::ARENA).load(Ordering::Relaxed))
    }

    pub fn lane(&self) -> &SharedLane {
        &self.lane
    }

    fn state(&self) -> &LaneState {
        // SAFETY: inside, by the layout; zeros are one.
        unsafe { self.at(LANE_AT) }
    }

    fn record(&self, slot: u32) -> &Record {
        assert!(slot < SLOTS);
        // SAFETY: inside, by the layout; zeros are one.
        unsafe { self.at(record_at(slot)) }
    }

    fn count(&self, which: usize) {
        let counter = self.long(header::COUNTERS + 8 * which);
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    pub fn counters(&self) -> GatewayCounters {
        let [sent, again, came, refused] =
            [0, 1, 2, 3].map(|which| self.long(header::COUNTERS + 8 * which).load(Ordering::Relaxed));
        GatewayCounters { sent, again, came, refused }
    }

    /// The rendezvous, at each tick: it is there, at this time of the monotonic clock.
    pub fn beat(&self, now_ns: u64) {
        self.long(header::BEAT).store(now_ns, Ordering::Relaxed);
    }

    /// When it was there last, by its own word.
    pub fn last_beat(&self) -> u64 {
        self.long(header::BEAT).load(Ordering::Relaxed)
    }

    fn lock(&self) -> StreamLock<'_> {
        StreamLock { word: self.word(header::LOCK), contended: self.word(header::CONTENDED) }
    }

    /// `None` where another one has it for long, or this very thread, further out: what is to be done is left to a
    /// tick.
    fn take_turn(&self, me: u32) -> Option<GatewayTurn<'_>> {
        self.try_turn(me).or_else(|| self.take_turn_slowly(me))
    }

    #[cold]
    fn take_turn_slowly(&self, me: u32) -> Option<GatewayTurn<'_>> {
        let lock = self.lock();
        self.patience.wait(lock, me, kernel::yield_core).then(|| GatewayTurn(lock))
    }

    fn try_turn(&self, me: u32) -> Option<GatewayTurn<'_>> {
        let lock = self.lock();
        // Made only when it is ours: one that is made and dropped would end the turn of another.
        lock.try_acquire(me).then(|| GatewayTurn(lock))
    }

    /// The rendezvous: the process is gone, and with it whoever may have been inside.
    pub fn seize(&self) {
        self.lock().seize();
    }

    fn mirror<'a>(&'a self, arena: &Arena, slot: u32) -> Mirror<'a, StreamRing<'static>> {
        Mirror {
            record: self.record(slot),
            out: arena.direction(slot, PROGRAM),
            into: arena.direction(slot, 1 - PROGRAM),
            out_ring: arena.ring(slot, PROGRAM),
            into_ring: arena.ring(slot, 1 - PROGRAM),
            listeners: arena.listeners(PROGRAM),
            slot,
            fences: arena.fences(),
        }
    }

    /// The rendezvous: a connection begins. From now on the two hosts talk about it; the program is to be told when
    /// [`Self::is_proven`].
    pub fn begin(&self, arena: &Arena, slot: u32, generation: u32, end: &FarEnd) {
        // A late parcel of the last use may just be taken.
        let _turn = self.take_turn(kernel::thread());
        let record = self.record(slot);
        record.generation.store(0, Ordering::SeqCst);
        record.begin((end.slot, end.generation), end.keys);
        self.mirror(arena, slot).begin();
        record.generation.store(generation, Ordering::SeqCst);
    }

    /// A datagram that says how this end stands, for the kernel's UDP socket at the lane's port: by this the other host
    /// learns the way here. Answers its length.
    pub fn greet(&self, arena: &Arena, slot: u32, place: &mut [u8], me: u32) -> usize {
        let Some(_turn) = self.take_turn(me) else { return 0 };
        self.mirror(arena, slot).compose(&mut place[..HEADER_BYTES], false)
    }

    /// The rendezvous: the program shall not use this connection any more. False where it has begun with it.
    pub fn refuse(&self, arena: &Arena, slot: u32) -> bool {
        self.mirror(arena, slot).refuse()
    }

    /// The same with the first bytes that are not confirmed, of a connection whose way may not lead there any more: the
    /// kernel may know one. From what comes back a way is learned anew.
    pub fn repeat(&self, arena: &Arena, slot: u32, place: &mut [u8], me: u32) -> usize {
        let Some(_turn) = self.take_turn(me) else { return 0 };
        self.mirror(arena, slot).compose_first(place)
    }

    /// Whether parcels have come by lane both ways.
    pub fn is_proven(&self, slot: u32) -> bool {
        let record = self.record(slot);
        record.has_route.load(Ordering::Relaxed) != 0 && record.has_seen(flag::ROUTE)
    }

    /// Takes what has come by the lane and answers what asks for an answer, unless another one is at it. True if
    /// something has come. `me` is the number of this thread.
    #[inline]
    pub fn drive(&self, arena: &Arena, me: u32) -> bool {
        if !self.lane.has_arrived() {
            return false;
        }
        let Some(_turn) = self.try_turn(me) else { return false };
        let mut answers = false;
        let came = self.lane.receive(self.state(), |ends, datagram| {
            let Some(taken) = self.take(arena, Some(ends), datagram) else { return };
            if taken.asks && taken.is_elsewhere {
                self.answer_there(arena, taken.slot, ends);
            }
            if taken.asks || self.mirror(arena, taken.slot).is_untold() {
                self.send(arena, taken.slot, taken.asks, false);
                answers = true;
            }
        });
        if answers {
            self.lane.flush(self.state());
        }
        came > 0
    }

    /// Takes one datagram.
    #[inline]
    fn take(&self, arena: &Arena, ends: Option<&Ends>, datagram: &[u8]) -> Option<TakenDatagram> {
        let named = Parcel::address(datagram).filter(|(slot, _)| *slot < SLOTS);
        let opened = named.and_then(|(slot, generation)| {
            self.record(slot).open(datagram, generation).map(|(parcel, bytes)| (slot, parcel, bytes))
        });
        let Some((slot, parcel, bytes)) = opened else {
            self.count(3);
            return None;
        };
        self.count(2);
        let record = self.record(slot);
        let before = record.progress();
        self.mirror(arena, slot).take(&parcel, bytes, ring);
        let is_elsewhere = ends.is_some_and(|ends| !self.learn(record, ends, record.progress() != before));
        Some(TakenDatagram { slot, asks: parcel.flags & flag::ASK != 0, is_elsewhere })
    }

    /// The way back is the way that a parcel has come: another one than is known, if the parcel has brought something.
    /// One that has not may be an old one, which somebody else sends again. False for such a one.
    #[inline]
    fn learn(&self, record: &Record, ends: &Ends, is_new: bool) -> bool {
        let words = ends.to_words();
        let mut known = record.route.iter().zip(words);
        if known.all(|(word, value)| word.load(Ordering::Relaxed) == value) {
            return true;
        }
        if !is_new && record.has_route.load(Ordering::Relaxed) != 0 {
            return false;
        }
        record.route.iter().zip(words).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        record.has_route.store(1, Ordering::Release);
        true
    }

    /// Says how this end stands, and nothing more, where a parcel has come from that has brought nothing new: the way
    /// that we know may be a wrong one, learned from a packet whose header was spoilt, on which the other end hears no
    /// answer.
    #[cold]
    fn answer_there(&self, arena: &Arena, slot: u32, ends: &Ends) {
        let write = |place: &mut [u8]| self.mirror(arena, slot).compose(&mut place[..HEADER_BYTES], false);
        if self.lane.send(self.state(), &LaneRoute::learn(ends), write) {
            self.count(0);
        }
    }

    /// Sends parcels of a connection until nothing is untold: one at least, if that is wanted. `again`: not as an
    /// answer. The lock is held.
    fn send(&self, arena: &Arena, slot: u32, mut one: bool, again: bool) {
        let mirror = self.mirror(arena, slot);
        let Some(route) = route(mirror.record) else { return };
        let room = self.lane.largest_payload(&route);
        // Where something changes for good, somebody waits for the answer: a program that shuts, or the kernel's end.
        let asks = (again && mirror.record.is_left()) || mirror.has_changed();
        for _ in 0..MOST_AT_ONCE {
            if !one && !mirror.is_untold() {
                return;
            }
            let write = |place: &mut [u8]| mirror.compose(&mut place[..room], asks);
            if !self.lane.send(self.state(), &route, write) {
                return;
            }
            self.count(0);
            one = false;
        }
    }

    /// Tells the other host what is new of this connection: bytes, and how it stands.
    #[inline]
    pub fn tell(&self, arena: &Arena, slot: u32, me: u32) {
        let Some(_turn) = self.take_turn(me) else { return };
        self.send(arena, slot, false, true);
        self.lane.flush(self.state());
    }

    /// Whether the other host knows everything of this connection: bytes, and how it stands.
    pub fn is_confirmed(&self, arena: &Arena, slot: u32) -> bool {
        self.mirror(arena, slot).is_confirmed()
    }

    /// The rendezvous, every 5 ms: tells what is not told, and says again what is not confirmed in time. Answers how
    /// things stood; `None` where nothing can be done now.
    pub fn tick(&self, arena: &Arena, slot: u32, me: u32) -> Option<Ticked> {
        let _turn = self.take_turn(me)?;
        let mirror = self.mirror(arena, slot);
        let Some(route) = route(mirror.record) else { return Some(Ticked::Open) };
        let mut stood = if mirror.is_confirmed() { Ticked::Settled } else { Ticked::Open };
        match mirror.tick() {
            Tick::Nothing => return Some(stood),
            Tick::Tell => self.send(arena, slot, true, true),
            Tick::Again => {
                self.count(1);
                if mirror.was_said_again() {
                    stood = Ticked::Lost;
                }
                let room = self.lane.largest_payload(&route);
                self.lane.send(self.state(), &route, |place| mirror.compose(&mut place[..room], true));
                self.send(arena, slot, false, true);
            }
        }
        self.lane.flush(self.state());
        Some(stood)
    }

    /// Another number whenever the two hosts have come further with a connection.
    pub fn progress(&self, slot: u32) -> u64 {
        self.record(slot).progress()
    }

    /// The rendezvous: the program's side of the connection is over, which the other host is told behind everything
    /// else.
    pub fn leave(&self, slot: u32) {
        self.record(slot).leave();
    }

    /// Whether the other host's side is over.
    pub fn is_left(&self, slot: u32) -> bool {
        self.record(slot).has_seen(flag::GONE)
    }

    /// Whether the other host asks for something that only the program can do, and the program has not seen that.
    pub fn calls_program(&self, arena: &Arena, slot: u32) -> bool {
        self.mirror(arena, slot).awaits_program()
    }

    /// Whether nothing of the connection goes by the lane, or waits in a ring here, any more.
    pub fn is_returned(&self, arena: &Arena, slot: u32) -> bool {
        self.mirror(arena, slot).is_returned()
    }

    /// The rendezvous: nothing of the slot is believed any more. Neither side uses its rings any more.
    pub fn end(&self, slot: u32) {
        let _turn = self.take_turn(kernel::thread());
        self.record(slot).generation.store(0, Ordering::SeqCst);
    }

    /// A parcel that came by the kernel's socket in place of the lane.
    pub fn take_by_socket(&self, arena: &Arena, datagram: &[u8], me: u32) {
        let Some(_turn) = self.take_turn(me) else { return };
        let _ = self.take(arena, None, datagram);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // SAFETY: our mapping; every reference into it borrows from `self`.
        unsafe { kernel::unmap(self.base, BYTES) };
    }
}

/// The way to the other end, if it is known. What stands there is a claim.
#[inline]
fn route(record: &Record) -> Option<LaneRoute> {
    if record.has_route.load(Ordering::Acquire) == 0 {
        return None;
    }
    LaneRoute::from_words(&std::array::from_fn(|at| record.route[at].load(Ordering::Relaxed)))
}

fn ring(calls: super::armed::BellCalls) {
    for number in calls.0.into_iter().filter(|number| *number != 0) {
        bell::ring(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdp::LAYOUT;
    use std::os::fd::AsRawFd;

    /// The same memory twice, as program and rendezvous have it.
    fn two() -> [Gateway; 2] {
        let memory = Gateway::create(0, 0).expect("memory");
        [(); 2].map(|()| Gateway::open(memory.as_raw_fd(), SharedLane::of_own_memory(LAYOUT)).expect("a gateway"))
    }

    #[test]
    fn who_is_refused_a_turn_does_not_end_that_of_another() {
        let [first, second] = two();
        let me = kernel::thread();
        let turn = first.try_turn(me).expect("nobody has it");
        let other = || {
            let me = kernel::thread();
            assert!(second.try_turn(me).is_none(), "it is taken");
            assert!(second.take_turn(me).is_none(), "it is taken, by one who lives");
        };
        std::thread::scope(|scope| scope.spawn(other).join().expect("it is refused"));
        assert!(first.try_turn(me).is_none(), "nor is it had twice");
        assert!(first.lock().is_held_by(me));
        drop(turn);
        assert!(second.try_turn(me).is_some());
    }

    #[test]
    fn only_one_has_a_turn() {
        const TURNS: u64 = 20_000;
        let gateways = two();
        // What two count at the same time is lost.
        let count = AtomicU64::new(0);
        let start = std::sync::Barrier::new(gateways.len());
        std::thread::scope(|scope| {
            for gateway in &gateways {
                scope.spawn(|| {
                    let me = kernel::thread();
                    start.wait();
                    for _ in 0..TURNS {
                        let _turn = std::iter::repeat_with(|| gateway.take_turn(me)).find_map(|turn| turn);
                        let before = count.load(Ordering::Relaxed);
                        (0..20).for_each(|_| std::hint::spin_loop());
                        count.store(before + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 2 * TURNS);
    }
}
