//! One side of a connection.
//!
//! A direction goes back to the kernel once, for good. A side that hands its descriptor to somebody that cannot read
//! rings asks for what it has not read, and its peer sends that again by the kernel. The peer then asks for the same,
//! so that no byte is left in either ring when it hands its own end on next.
//!
//! What it costs: the sender copies into the ring, stores the head, and looks whether anyone sleeps; the receiver sees
//! the head, copies, and stores the tail. That is one line each way besides the bytes.

use super::answers::Waiter;
use super::bells::{BellAddress, ring};
use super::client;
use super::guards::{ReceiveGuard, SendGuard, me, receive_lock, send_lock};
use super::page::PAGE;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use weft_device::kernel;
use weft_device::shm::stream::lines::{CallOptions, OwnSlot, SlotDirection};
use weft_device::shm::stream::order::{self, FirstUntold};
use weft_device::shm::stream::{Arena, StreamReceiver, StreamSender, arm, disarm, fire_all};
use weft_wire::stream::arena::{Armed, DirectionMode, HALF_CLOSED, SLEEPERS};
use weft_wire::stream::packet::SlotSide;

/// One side of a connection. A copyable name: all state is in shared memory and lives until the last reference of this
/// side is dropped.
#[derive(Clone, Copy)]
pub struct Stream {
    pub(crate) arena: &'static Arena,
    pub(crate) slot: u32,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Stream({:x}, {}, {})", self.arena.name(), self.slot, self.arena.side())
    }
}

impl Stream {
    /// Takes a slot for its next generation: everything of ours begins at zero. Nothing of it counts for the peer
    /// before [`Self::attach`], which names the generation.
    pub(crate) fn begin(arena: &'static Arena, place: SlotSide) -> Self {
        let stream = Self { arena, slot: place.slot };
        let own = stream.own();
        let (out, into) = (stream.outgoing(), stream.incoming());
        let zero_u64 = [
            &own.sender.head,
            &own.sender.tail,
            &own.sender.full_since_ns,
            &own.receiver.head,
            &own.receiver.tail,
            &own.side.sent_by_kernel,
            &own.side.received_by_kernel,
            &own.side.options.receive_timeout,
            &own.side.options.send_timeout,
            &out.sender.head,
            &out.sender.kernel_before,
            &out.sender.final_at,
            &out.sender.kept,
            &out.room.wait,
            &out.room.set,
            &into.receiver.tail,
            &into.watch.wait,
            &into.watch.set,
        ];
        let zero_u32 = [
            &own.sender.lock,
            &own.sender.contended,
            &own.sender.phase,
            &own.sender.broken,
            &own.sender.giving,
            &own.sender.unsettled,
            &own.receiver.lock,
            &own.receiver.contended,
            &own.receiver.phase,
            &own.receiver.broken,
            &own.receiver.wants,
            &own.receiver.ended,
            &own.side.nonblocking,
            &own.side.options.low_water,
            &own.side.options.tells_left,
            &own.side.options.owed_error,
            &own.side.options.cut_off,
            &out.sender.mode,
            &out.sender.closing,
            &out.sender.leaving,
            &out.sender.events,
            &out.sender.kept_event,
            &into.receiver.told,
            &into.watch.want_kernel,
            &into.watch.reading_kernel,
            &into.watch.ordered,
        ];
        zero_u64.into_iter().for_each(|word| word.store(0, Ordering::Relaxed));
        zero_u32.into_iter().for_each(|word| word.store(0, Ordering::Relaxed));
        own.side.generation.store(place.generation, Ordering::Relaxed);
        own.side.references.store(1, Ordering::Release);
        stream
    }

    #[inline(always)]
    pub(crate) fn own(&self) -> &'static OwnSlot {
        self.arena.own(self.slot)
    }

    #[inline(always)]
    pub(crate) fn outgoing(&self) -> &'static SlotDirection {
        self.arena.direction(self.slot, self.arena.side())
    }

    #[inline(always)]
    pub(crate) fn incoming(&self) -> &'static SlotDirection {
        self.arena.direction(self.slot, 1 - self.arena.side())
    }

    #[inline(always)]
    pub(crate) fn generation(&self) -> u32 {
        self.own().side.generation.load(Ordering::Relaxed)
    }

    fn place(&self) -> SlotSide {
        let (arena, side) = (self.arena.name(), self.arena.side() as u32);
        SlotSide { arena, slot: self.slot, side, generation: self.generation() }
    }

    /// Promises to follow the switches: from now on the peer may send into the ring, and no thread of this side may
    /// wait inside a receive call of the kernel on the anchor.
    pub fn attach(&self, token: u32) {
        self.set_token(token);
        let generation = self.generation();
        self.outgoing().sender.attached.store(generation, Ordering::Release);
        self.incoming().watch.attached.store(generation, Ordering::Release);
        PAGE.counters.accelerated.fetch_add(1, Ordering::Relaxed);
    }

    /// What [`super::Streams::scan_active`] says for this stream in this process.
    pub fn set_token(&self, token: u32) {
        self.arena.token(self.slot).store(token, Ordering::Relaxed);
    }

    /// Exclusive use of our sending direction, among threads and processes that share it. Waits (spins, then sleeps)
    /// for the other; one whose holder died is taken over. A signal handler that interrupted a holder gets a guard
    /// whose ring is full.
    #[inline(always)]
    pub fn lock_send(&self) -> SendGuard {
        let (own, side) = (self.own(), self.arena.side());
        let lock = send_lock(&own.sender);
        let held = lock.acquire(me());
        let context = (self.slot, self.generation(), self.arena.fences());
        let (direction, ring) = (self.arena.direction(self.slot, side), self.arena.ring(self.slot, side));
        let mut sender = StreamSender::new(direction, &own.sender, ring, self.arena.listeners(1 - side), context);
        sender.note_received(own.receiver.tail.load(Ordering::Relaxed));
        SendGuard { stream: *self, sender, lock, held }
    }

    /// Exclusive use of our receiving direction. As [`Self::lock_send`]; the guard of an interrupted holder's signal
    /// handler has an empty ring.
    #[inline(always)]
    pub fn lock_receive(&self) -> ReceiveGuard {
        let (own, side) = (self.own(), 1 - self.arena.side());
        let lock = receive_lock(&own.receiver);
        let held = lock.acquire(me());
        let context = (self.slot, self.generation(), self.arena.fences());
        let (direction, ring) = (self.arena.direction(self.slot, side), self.arena.ring(self.slot, side));
        let receiver = StreamReceiver::new(direction, &own.receiver, ring, self.arena.listeners(side), context);
        ReceiveGuard { receiver, lock, held, stream: *self }
    }

    /// The peer wants its incoming direction back in the kernel, and waits for [`SendGuard::give_back`]; or it has it,
    /// and the same is to be asked of it, which any [`SendGuard`] does when it is dropped. Or it would rather send by
    /// the kernel: see [`Self::let_leave`].
    #[inline]
    pub fn asked_back(&self) -> bool {
        let is_wanted = self.outgoing().watch.want_kernel.load(Ordering::Acquire) != 0
            && self.outgoing().watch.attached.load(Ordering::Relaxed) == self.generation()
            && (self.own().sender.phase.load(Ordering::Relaxed) != DirectionMode::Final as u32 || self.owes_wish());
        is_wanted || self.peer_leaves()
    }

    fn peer_leaves(&self) -> bool {
        self.incoming().sender.leaving.load(Ordering::Relaxed) != 0 && self.owes_wish()
    }

    /// Wants the kernel if the peer would rather send by it.
    pub fn let_leave(&self) {
        if self.peer_leaves() {
            self.lock_receive().want_kernel_too();
        }
    }

    /// Whether we still read the ring of a peer, and do not want anything else.
    pub(super) fn owes_wish(&self) -> bool {
        self.outgoing().watch.attached.load(Ordering::Relaxed) == self.generation()
            && self.own().receiver.wants.load(Ordering::Relaxed) == 0
            && self.own().receiver.ended.load(Ordering::Relaxed) == 0
            && self.peer_attached()
            && self.incoming().sender.mode.load(Ordering::Relaxed) == DirectionMode::Ring as u32
    }

    /// Bytes in our ring that the peer has not taken, by its own word.
    pub fn unread_by_peer(&self) -> u64 {
        let own = &self.own().sender;
        if own.phase.load(Ordering::Relaxed) != DirectionMode::Ring as u32 {
            return 0;
        }
        own.head.load(Ordering::Relaxed).saturating_sub(self.consumed())
    }

    /// Bytes that we have put into the ring, wherever we send by now, and the peer has not taken, by its own word.
    pub fn left_unread(&self) -> u64 {
        let own = &self.own().sender;
        let end = match DirectionMode::from_word(own.phase.load(Ordering::Relaxed)) {
            Some(DirectionMode::Ring) => own.head.load(Ordering::Relaxed),
            Some(DirectionMode::Final) => self.outgoing().sender.final_at.load(Ordering::Relaxed),
            _ => return 0,
        };
        end.saturating_sub(self.consumed())
    }

    fn wish(&self, bell: BellAddress, kind: Waiter) -> Armed {
        match (kind, self.arena.listener()) {
            (Waiter::Wait, _) => Armed::Bell(bell.number),
            (Waiter::Set, Some((listener, _))) if bell.index < SLEEPERS => Armed::Set { listener, sleeper: bell.index },
            // Too many processes or sets: nobody would tell us.
            (Waiter::Set, _) => Armed::Nobody,
        }
    }

    fn arm(&self, words: [&AtomicU64; 2], bell: BellAddress, kind: Waiter) -> bool {
        match self.wish(bell, kind) {
            Armed::Nobody => false,
            wish => arm(words[kind as usize], wish),
        }
    }

    /// Asks to be woken by the next byte (or request of the peer). False when another waiter is armed: look again after
    /// a few milliseconds. After arming: [`super::sleep_barrier`], look again, then sleep on the bell and the anchor.
    pub fn arm_receive(&self, bell: BellAddress, kind: Waiter) -> bool {
        let watch = &self.incoming().watch;
        self.arm([&watch.wait, &watch.set], bell, kind)
    }

    /// Takes the wish back. Nothing happens when it has been answered or was another's: then the bell may still ring.
    pub fn disarm_receive(&self, bell: BellAddress, kind: Waiter) -> bool {
        let watch = &self.incoming().watch;
        disarm([&watch.wait, &watch.set][kind as usize], self.wish(bell, kind))
    }

    /// As [`Self::arm_receive`], for a quarter of the ring being free.
    pub fn arm_space(&self, bell: BellAddress, kind: Waiter) -> bool {
        let room = &self.outgoing().room;
        self.arm([&room.wait, &room.set], bell, kind)
    }

    /// As [`Self::disarm_receive`].
    pub fn disarm_space(&self, bell: BellAddress, kind: Waiter) -> bool {
        let room = &self.outgoing().room;
        disarm([&room.wait, &room.set][kind as usize], self.wish(bell, kind))
    }

    /// Wakes whoever of the peer's side sleeps for this connection.
    pub(super) fn rouse_peer(&self) {
        let (peer, slot, fences) = (1 - self.arena.side(), self.slot, self.arena.fences());
        let listeners = self.arena.listeners(peer);
        let (out, into) = (self.outgoing(), self.incoming());
        ring(fire_all([&out.watch.wait, &out.watch.set], listeners, slot, fences));
        ring(fire_all([&into.room.wait, &into.room.set], listeners, slot, fences));
    }

    /// Wakes whoever of this side sleeps for room: what it waits for will not come by the ring any more.
    pub fn rouse_senders(&self) {
        let side = self.arena.side();
        let room = &self.outgoing().room;
        // ORDER: stream-sleep, with the switch to the kernel in the place of the tail.
        fence(Ordering::SeqCst);
        ring(fire_all([&room.wait, &room.set], self.arena.listeners(side), self.slot, self.arena.fences()));
    }

    /// Wakes who of this side sleeps for data: the descriptor is closed under it, or what is there now is not what the
    /// kernel would wake it for.
    pub fn rouse_receivers(&self) {
        let side = self.arena.side();
        let watch = &self.incoming().watch;
        // ORDER: stream-sleep, with the closed descriptor, or the count of the kernel's bytes, in the place of the
        // head.
        fence(Ordering::SeqCst);
        ring(fire_all([&watch.wait, &watch.set], self.arena.listeners(side), self.slot, self.arena.fences()));
    }

    /// The bytes that this side has sent and received by the kernel, as all who share it (fork) count them together:
    /// for the caller, who stores what was counted before attaching and adds to them afterwards, under the lock of the
    /// direction.
    #[inline]
    pub fn kernel_counts(&self) -> (&'static AtomicU64, &'static AtomicU64) {
        let side = &self.own().side;
        (&side.sent_by_kernel, &side.received_by_kernel)
    }

    /// Options that calls on this side follow, for all who share it (fork). The caller stores them; zeros are none.
    #[inline]
    pub fn options(&self) -> &'static CallOptions {
        &self.own().side.options
    }

    /// Calls `each` with the processes of the peer's side, as they say themselves; never 0 or 1.
    pub fn peer_processes(&self, each: impl FnMut(i32)) {
        let said = self.arena.processes(1 - self.arena.side());
        said.filter_map(|process| i32::try_from(process).ok()).filter(|process| *process > 1).for_each(each);
    }

    /// Remembers `O_NONBLOCK`, which belongs to the open description and so to all who share this side.
    pub fn set_nonblocking(&self, on: bool) {
        self.own().side.nonblocking.store(on as u32, Ordering::Relaxed);
    }

    #[inline]
    pub fn nonblocking(&self) -> bool {
        self.own().side.nonblocking.load(Ordering::Relaxed) != 0
    }

    /// This side is about to do something by the kernel that the peer's program will be told of: it has its place in
    /// the order of events. Under the lock of the sending direction, where others may send meanwhile.
    #[inline]
    pub fn note_event(&self) {
        order::note(self.outgoing());
    }

    /// A set of this side tells of the peer's events in their order: from now on they have times.
    pub fn ask_for_order(&self) {
        order::ask(self.incoming());
    }

    /// How many events of the peer there were, with a place in their order.
    #[inline]
    pub fn events(&self) -> u32 {
        if self.peer_attached() { order::events(self.incoming()) } else { 0 }
    }

    /// When the event that was counted last happened: before the caller counted it, and perhaps before it could be
    /// seen.
    #[inline]
    pub fn time_of_event(&self, event: u32) -> u64 {
        order::time_of(self.incoming(), event)
    }

    /// The program was told of all events up to this one, which were counted before the look, or there was nothing to
    /// tell.
    #[inline]
    pub fn note_told(&self, event: u32) {
        order::tell(self.incoming(), event);
    }

    /// When the first event after `told` happened: nanoseconds of the monotonic clock. What stands there of an earlier
    /// use of the slot does not count.
    pub fn first_event_after(&self, told: u32) -> FirstUntold {
        if self.peer_attached() { order::first_after(self.incoming(), told) } else { FirstUntold::None }
    }

    /// Hint for the peer that this side is closing or has shut its sending direction: look at the kernel. Also wakes
    /// whoever waits there.
    pub fn set_closing(&self) {
        self.note_event();
        self.outgoing().sender.closing.store(1, Ordering::SeqCst);
        // ORDER: stream-sleep, with the hint in the place of the head.
        fence(Ordering::SeqCst);
        self.rouse_peer();
    }

    /// The same hint where this side has shut its sending direction and goes on reading.
    pub fn set_half_closed(&self) {
        self.note_event();
        let closing = &self.outgoing().sender.closing;
        let _ = closing.compare_exchange(0, HALF_CLOSED, Ordering::SeqCst, Ordering::Relaxed);
        // ORDER: as in `set_closing`.
        fence(Ordering::SeqCst);
        self.rouse_peer();
    }

    /// Whether the peer has said that it sends no more and goes on reading, and a process that could do so is there.
    /// The kernel tells no difference between that and a peer that was killed.
    pub fn peer_reads_on(&self) -> bool {
        let from = &self.incoming().sender;
        if !self.peer_half_closed() || from.gone.load(Ordering::Acquire) == self.generation() {
            return false;
        }
        // Those of another host are for its rendezvous to watch, which says when the last is gone.
        let mut there = self.is_far();
        self.peer_processes(|process| there |= kernel::is_running(process));
        there
    }

    /// Its word alone.
    #[inline]
    pub fn peer_half_closed(&self) -> bool {
        self.peer_attached() && self.incoming().sender.closing.load(Ordering::Relaxed) == HALF_CLOSED
    }

    #[inline]
    pub fn peer_closing(&self) -> bool {
        self.peer_attached() && self.incoming().sender.closing.load(Ordering::Relaxed) != 0
    }

    /// Whether the peer's side is attached.
    #[inline]
    pub fn peer_attached(&self) -> bool {
        self.incoming().sender.attached.load(Ordering::Acquire) == self.generation()
    }

    /// Whether the peer has gone back to the kernel: whatever it had put into its ring is there.
    pub fn peer_returned(&self) -> bool {
        self.peer_attached() && self.incoming().sender.mode.load(Ordering::Acquire) == DirectionMode::Final as u32
    }

    /// Bytes that have ever come into our ring: another number, another arrival. Nothing is said about whether they
    /// make sense; [`Self::readable`] does.
    #[inline]
    pub fn arrived(&self) -> u64 {
        self.incoming().sender.head.load(Ordering::Acquire)
    }

    /// Bytes that the peer has ever taken out of its ring, by its own word.
    #[inline]
    pub fn consumed(&self) -> u64 {
        self.outgoing().receiver.tail.load(Ordering::Acquire)
    }

    /// One more process holds this side: called by the parent, once for each stream, before a fork. The child then
    /// calls [`Self::drop_ref`] as any holder.
    pub fn add_ref(&self) {
        self.own().side.references.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether other processes hold this side, too.
    pub fn is_shared(&self) -> bool {
        self.own().side.references.load(Ordering::Relaxed) > 1
    }

    /// This process holds it no more. The last one gives the slot back; what was sent stays for the peer to read. No
    /// thread of this process may use any copy afterwards.
    pub fn drop_ref(&self) {
        if self.own().side.references.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.leave();
        }
        self.arena.held.fetch_sub(1, Ordering::Release);
    }

    fn leave(&self) {
        let (place, generation) = (self.place(), self.generation());
        let (out, into) = (self.outgoing(), self.incoming());
        out.sender.gone.store(generation, Ordering::SeqCst);
        if into.sender.gone.load(Ordering::SeqCst) == generation {
            // SAFETY: both sides have left, and the slot is used again only after both have said so.
            unsafe { self.arena.forget_rings(self.slot) };
        }
        client::release(place);
    }
}
