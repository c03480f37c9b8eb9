//! The side of a slot that is on another host: its words in this host's arena, kept as the other host's are, by what
//! the two say to each other.
//!
//! Side [`PROGRAM`] of the slot is a program here, and the other side is the one that is written here, by whoever has
//! the lock. The program sends and receives as with a peer of its own host. What that peer would order by barriers (see
//! the module of streams) the other host has to confirm:
//! - *stream-final*: here it seems that the peer reads the kernel, until the other host says that it does not
//!   ([`flag::SETTLED`]), and has acted upon the switch back: bytes that go by the kernel later may be there sooner.
//! - *stream-wish*: here it seems that the peer sends, until the other host says that it has seen the wish and sends no
//!   more ([`flag::QUIET`]), or has switched back.
//!
//! What was sent stays in the ring until the other program has taken it, so the ring is the store for sending again.
//! What arrives out of order is dropped, and comes again.

use super::armed::{BellCalls, fire_all, look};
use super::bytes::RingBytes;
use super::lines::{SideListener, SlotDirection};
use crate::sync::{AtomicU32, AtomicU64, Label, Ordering, full_barrier, owner_barrier};
use crate::xdp::LaneRoute;
use weft_wire::link::mac::Key;
use weft_wire::stream::arena::{DirectionMode, HALF_CLOSED};
use weft_wire::stream::parcel::{HEADER_BYTES, Parcel, flag};

/// Side of the arena that is the program; the other one is the other host.
pub const PROGRAM: usize = 0;

/// Bytes on their way at most. Programs that send more at a time are served by the kernel (`weft-sockets`), so this is
/// no bound for anybody's speed; it is what may come at once where others share the link.
const WINDOW: u64 = 16 << 10;
/// Ticks without progress after which everything is said again, the first time; each time twice as many, so often.
const PATIENCE_TICKS: u32 = 4;
const MOST_BACKOFF: u32 = 6;

/// What is known of the other end of a slot, in memory that program and rendezvous share. Zeros are no connection.
#[repr(C, align(64))]
pub struct Record {
    /// Use of the slot that this is about; 0 for none.
    pub generation: AtomicU32,
    pub peer_slot: AtomicU32,
    pub peer_generation: AtomicU32,
    /// 1: the way to the other end is known.
    pub has_route: AtomicU32,
    pub key_out: [AtomicU64; 2],
    pub key_in: [AtomicU64; 2],
    _line: [u64; 2],
    pub route: [AtomicU64; LaneRoute::WORDS],
    _gap: [u64; 16 - LaneRoute::WORDS],
    /// How far we have sent, and ever sent, and how far the other host has it.
    sent: AtomicU64,
    ever_sent: AtomicU64,
    acknowledged: AtomicU64,
    /// How far we have what it sends.
    received: AtomicU64,
    /// What we have last said of that, and of how far it was taken.
    told_received: AtomicU64,
    told_tail: AtomicU64,
    /// Flags of ours, those that it was told, and those that it has acted upon; flags of its that we have acted upon.
    flags: AtomicU32,
    told: AtomicU32,
    echoed: AtomicU32,
    seen: AtomicU32,
    /// Our program has it no more.
    left: AtomicU32,
    /// Ticks since the last progress, how often all was said again since, and what was confirmed then.
    stalled: AtomicU32,
    backoff: AtomicU32,
    at_tick: AtomicU32,
    acknowledged_at_tick: AtomicU64,
    _rest: [u64; 5],
}
const _: () = assert!(size_of::<Record>() == weft_wire::stream::gateway::RECORD_BYTES);

/// One slot, for one who has the lock of its gateway.
pub struct Mirror<'a, B> {
    pub record: &'a Record,
    /// The direction in which the program sends, and the other one.
    pub out: &'a SlotDirection,
    pub into: &'a SlotDirection,
    pub out_ring: B,
    pub into_ring: B,
    /// Of the program's side.
    pub listeners: &'a [SideListener],
    pub slot: u32,
    pub fences: bool,
}

fn key(words: &[AtomicU64; 2]) -> Key {
    let mut key = [0; 16];
    for (bytes, word) in key.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.load(Ordering::Relaxed).to_le_bytes();
    }
    Key(key)
}

fn set_key(words: &[AtomicU64; 2], Key(key): Key) {
    for (word, bytes) in words.iter().zip(key.as_chunks::<8>().0) {
        word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
    }
}

impl Record {
    /// Forgets everything but who the other end is.
    pub fn begin(&self, (slot, generation): (u32, u32), [out, into]: [Key; 2]) {
        let longs = [
            &self.sent,
            &self.ever_sent,
            &self.acknowledged,
            &self.received,
            &self.told_received,
            &self.told_tail,
            &self.acknowledged_at_tick,
        ];
        longs.into_iter().chain(&self.route).for_each(|word| word.store(0, Ordering::Relaxed));
        let words = [
            &self.has_route,
            &self.flags,
            &self.told,
            &self.echoed,
            &self.seen,
            &self.left,
            &self.stalled,
            &self.backoff,
            &self.at_tick,
        ];
        words.into_iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.peer_slot.store(slot, Ordering::Relaxed);
        self.peer_generation.store(generation, Ordering::Relaxed);
        set_key(&self.key_out, out);
        set_key(&self.key_in, into);
    }

    /// A datagram that the other end of this use has made.
    pub fn open<'a>(&self, datagram: &'a [u8], generation: u32) -> Option<(Parcel, &'a [u8])> {
        if generation == 0 || self.generation.load(Ordering::Acquire) != generation {
            return None;
        }
        Parcel::open(datagram, &key(&self.key_in))
    }

    /// The program's side is over.
    pub fn leave(&self) {
        self.left.store(1, Ordering::Release);
    }

    /// Another number whenever the two have come further.
    pub fn progress(&self) -> u64 {
        let counts = [&self.acknowledged, &self.received].map(|count| count.load(Ordering::Relaxed));
        let flags = [&self.echoed, &self.seen].map(|flags| u64::from(flags.load(Ordering::Relaxed)));
        counts.into_iter().chain(flags).fold(0, u64::wrapping_add)
    }

    pub fn is_left(&self) -> bool {
        self.left.load(Ordering::Acquire) != 0
    }

    /// Whether the other end has said and done this.
    pub fn has_seen(&self, flags: u16) -> bool {
        self.seen.load(Ordering::Acquire) & u32::from(flags) == u32::from(flags)
    }
}

impl<B: RingBytes> Mirror<'_, B> {
    /// The words of the other side as a use of the slot begins with them.
    pub fn begin(&self) {
        let (out, into) = (self.out, self.into);
        for word in [&out.receiver.tail, &into.sender.head, &into.sender.kernel_before, &into.sender.final_at] {
            word.store(0, Ordering::Relaxed);
        }
        for word in [&into.room.wait, &into.room.set] {
            word.store(0, Ordering::Relaxed);
        }
        let words = [&out.watch.attached, &out.watch.want_kernel, &into.sender.mode, &into.sender.attached];
        words.into_iter().for_each(|word| word.store(0, Ordering::Relaxed));
        for word in [&into.sender.closing, &into.sender.gone, &into.sender.leaving] {
            word.store(0, Ordering::Relaxed);
        }
        out.watch.reading_kernel.store(1, Ordering::Relaxed);
        into.watch.sending.store(1, Ordering::Release);
    }

    fn generation(&self) -> u32 {
        self.record.generation.load(Ordering::Relaxed)
    }

    /// Whether the program follows the switches: before, its words are of an earlier use.
    fn is_attached(&self) -> bool {
        self.out.sender.attached.load(Ordering::Acquire) == self.generation()
    }

    /// A program that has not attached yet finds a wish of its peer when it does, and stays with the kernel. False for
    /// one that has.
    pub fn refuse(&self) -> bool {
        if !self.is_attached() {
            self.out.watch.want_kernel.store(1, Ordering::SeqCst);
            // ORDER: stream-wish
            owner_barrier(Label::StreamWish, self.fences);
        }
        !self.is_attached()
    }

    /// How far there is something to send. Before [`Self::flags`]: what was published under a mode comes with it.
    fn end(&self) -> u64 {
        if !self.is_attached() {
            return 0;
        }
        // ORDER: stream-head
        let head = self.out.sender.head.load(Ordering::Acquire);
        match self.out_mode() {
            // Given back, the rest has gone by the kernel.
            Some(DirectionMode::Final) => self.out.sender.final_at.load(Ordering::Relaxed),
            _ => head,
        }
    }

    fn out_mode(&self) -> Option<DirectionMode> {
        DirectionMode::from_word(self.out.sender.mode.load(Ordering::Acquire))
    }

    /// How this end stands now.
    fn flags(&self) -> u32 {
        let record = self.record;
        let before = record.flags.load(Ordering::Relaxed);
        let has = |flag: u16| before & u32::from(flag) != 0;
        let mut flags = before;
        let mut add = |flag: u16, holds: bool| flags |= if holds { u32::from(flag) } else { 0 };
        add(flag::ROUTE, record.has_route.load(Ordering::Relaxed) != 0);
        if self.is_attached() {
            let mode = self.out_mode();
            let closing = self.out.sender.closing.load(Ordering::Relaxed);
            add(flag::ATTACHED, true);
            add(flag::RING, matches!(mode, Some(DirectionMode::Ring | DirectionMode::Final)));
            add(flag::FINAL, mode == Some(DirectionMode::Final));
            add(flag::HALF_CLOSED, closing == HALF_CLOSED);
            add(flag::CLOSING, closing != 0 && closing != HALF_CLOSED);
            add(flag::LEAVING, self.out.sender.leaving.load(Ordering::Relaxed) != 0);
            add(flag::WANTS, self.into.watch.want_kernel.load(Ordering::Relaxed) != 0);
            add(flag::SETTLED, !has(flag::SETTLED) && record.has_seen(flag::RING) && self.is_settled());
        }
        add(flag::DRAINED, !has(flag::DRAINED) && self.is_drained());
        add(flag::QUIET, !has(flag::QUIET) && record.has_seen(flag::WANTS) && self.is_quiet());
        add(flag::LEFT, record.is_left());
        // Behind everything else.
        add(flag::GONE, record.is_left() && record.acknowledged.load(Ordering::Relaxed) >= self.end());
        if flags != before {
            record.flags.fetch_or(flags, Ordering::Relaxed);
        }
        flags
    }

    /// After the peer's switch was shown to the program: it reads the kernel in the belief that there was none no more,
    /// and will not again.
    fn is_settled(&self) -> bool {
        // ORDER: stream-final
        full_barrier(Label::StreamFinal);
        self.into.watch.reading_kernel.load(Ordering::SeqCst) == 0
    }

    /// Whether the peer's direction is the kernel's, for good, and what was in its ring was read.
    fn is_drained(&self) -> bool {
        let sender = &self.into.sender;
        sender.mode.load(Ordering::Acquire) == DirectionMode::Final as u32
            && self.is_attached()
            && self.into.receiver.tail.load(Ordering::Acquire) == sender.final_at.load(Ordering::Relaxed)
    }

    /// After the peer's wish was shown to the program: it puts nothing into the ring any more, and what it had put
    /// there was read.
    fn is_quiet(&self) -> bool {
        // ORDER: stream-wish
        owner_barrier(Label::StreamWish, self.fences);
        // One that attaches later sees the wish first.
        if !self.is_attached() {
            return true;
        }
        if self.out.watch.sending.load(Ordering::Acquire) != 0 {
            return false;
        }
        // Not before: it may have switched on its way out.
        match self.out_mode() {
            Some(DirectionMode::Ring) => {
                let head = self.out.sender.head.load(Ordering::Acquire);
                head == self.out.receiver.tail.load(Ordering::Relaxed)
            }
            Some(DirectionMode::Kernel) => true,
            _ => false,
        }
    }

    /// Whether there is something that the other host was not told.
    pub fn is_untold(&self) -> bool {
        let sent = self.record.sent.load(Ordering::Relaxed);
        let may = sent < self.record.acknowledged.load(Ordering::Relaxed).saturating_add(WINDOW);
        (self.end() > sent && may) || self.has_changed()
    }

    /// Whether this end stands otherwise than the other host was told.
    pub fn has_changed(&self) -> bool {
        self.flags() != self.record.told.load(Ordering::Relaxed)
    }

    /// Whether it has confirmed everything.
    pub fn is_confirmed(&self) -> bool {
        let (end, flags) = (self.end(), self.flags());
        self.record.acknowledged.load(Ordering::Relaxed) >= end
            && self.record.echoed.load(Ordering::Relaxed) & flags == flags
    }

    /// Whether the program has still to do what the other end asks for. Of one that wants its bytes back: to give them,
    /// and to want the same, since what it has not read by then, who hands its descriptor on leaves in a ring that
    /// nobody can give back any more. Of one that would rather send by the kernel: to want that.
    pub fn awaits_program(&self) -> bool {
        let owes_wish = self.is_attached()
            && self.into.sender.mode.load(Ordering::Relaxed) == DirectionMode::Ring as u32
            && self.into.watch.want_kernel.load(Ordering::Relaxed) == 0;
        let is_wanted = self.record.has_seen(flag::WANTS);
        let owes_bytes = is_wanted && self.flags() & u32::from(flag::QUIET | flag::FINAL) == 0;
        owes_bytes || (owes_wish && (is_wanted || self.record.has_seen(flag::LEAVING)))
    }

    /// Whether both directions are the kernel's, for good, and what went by rings was read, or is on the other host.
    pub fn is_returned(&self) -> bool {
        let (into, flags) = (self.into, self.flags());
        // Whose peer is gone puts nothing into a ring that anybody reads, and gets nothing by one.
        if self.record.has_seen(flag::GONE) {
            return true;
        }
        let sends_no_more = self.is_attached() && flags & u32::from(flag::FINAL | flag::QUIET) != 0;
        let is_quiet = into.watch.want_kernel.load(Ordering::Relaxed) != 0 && self.record.has_seen(flag::QUIET);
        // Confirmed, too: whose peer is killed takes what was read, and was not said to be, for unread.
        let is_drained = flags & u32::from(flag::DRAINED) != 0;
        sends_no_more && (is_quiet || is_drained) && self.is_confirmed()
    }

    /// Writes the next parcel, with as many bytes as fit; answers its length.
    pub fn compose(&self, place: &mut [u8], ask: bool) -> usize {
        let record = self.record;
        let sent = record.sent.load(Ordering::Relaxed);
        let end = self.end().min(record.acknowledged.load(Ordering::Relaxed).saturating_add(WINDOW));
        let length = end.saturating_sub(sent).min((place.len() - HEADER_BYTES) as u64) as usize;
        let flags = self.flags();
        let (received, tail) =
            (record.received.load(Ordering::Relaxed), self.into.receiver.tail.load(Ordering::Acquire));
        // Of an earlier use as long as the program has not begun.
        let tail = if self.is_attached() { tail.min(received) } else { 0 };
        self.out_ring.read(sent, &mut place[HEADER_BYTES..HEADER_BYTES + length]);
        let parcel = Parcel {
            slot: record.peer_slot.load(Ordering::Relaxed),
            generation: record.peer_generation.load(Ordering::Relaxed),
            at: sent,
            received,
            tail,
            before: self.out.sender.kernel_before.load(Ordering::Relaxed),
            final_at: self.out.sender.final_at.load(Ordering::Relaxed),
            length: length as u16,
            flags: flags as u16 | if ask { flag::ASK } else { 0 },
            echo: record.seen.load(Ordering::Relaxed) as u16,
        };
        parcel.seal(place, &key(&record.key_out));
        let sent = sent.wrapping_add(length as u64);
        record.sent.store(sent, Ordering::Relaxed);
        record.ever_sent.fetch_max(sent, Ordering::Relaxed);
        record.told.store(flags, Ordering::Relaxed);
        record.told_received.store(received, Ordering::Relaxed);
        record.told_tail.store(tail, Ordering::Relaxed);
        HEADER_BYTES + length
    }

    /// Writes a parcel with the first bytes that are not confirmed; how far was sent stays as it is.
    pub fn compose_first(&self, place: &mut [u8]) -> usize {
        let record = self.record;
        let sent = record.sent.swap(record.acknowledged.load(Ordering::Relaxed), Ordering::Relaxed);
        let length = self.compose(place, true);
        record.sent.fetch_max(sent, Ordering::Relaxed);
        length
    }

    /// Whether this is not the first time, without any progress, that everything is said again.
    pub fn was_said_again(&self) -> bool {
        self.record.backoff.load(Ordering::Relaxed) > 1
    }

    /// What a tick has to say: nothing, what is new, or everything again.
    pub fn tick(&self) -> Tick {
        let record = self.record;
        if self.is_confirmed() {
            record.stalled.store(0, Ordering::Relaxed);
            record.backoff.store(0, Ordering::Relaxed);
            let tail = self.into.receiver.tail.load(Ordering::Relaxed);
            let is_told = record.told_received.load(Ordering::Relaxed) == record.received.load(Ordering::Relaxed)
                && (!self.is_attached() || record.told_tail.load(Ordering::Relaxed) == tail);
            return if is_told { Tick::Nothing } else { Tick::Tell };
        }
        let (acknowledged, echoed) =
            (record.acknowledged.load(Ordering::Relaxed), record.echoed.load(Ordering::Relaxed));
        let before = record.acknowledged_at_tick.swap(acknowledged, Ordering::Relaxed);
        if (before, record.at_tick.swap(echoed, Ordering::Relaxed)) != (acknowledged, echoed) {
            record.stalled.store(0, Ordering::Relaxed);
            record.backoff.store(0, Ordering::Relaxed);
        }
        let backoff = record.backoff.load(Ordering::Relaxed).min(MOST_BACKOFF);
        let stalled = record.stalled.load(Ordering::Relaxed).saturating_add(1);
        record.stalled.store(stalled, Ordering::Relaxed);
        if stalled < PATIENCE_TICKS << backoff {
            return if self.is_untold() { Tick::Tell } else { Tick::Nothing };
        }
        record.stalled.store(0, Ordering::Relaxed);
        record.backoff.store(backoff + 1, Ordering::Relaxed);
        record.sent.store(acknowledged, Ordering::Relaxed);
        Tick::Again
    }

    /// Takes what the other end says, which was opened. `ring` gets the bells that are to be rung.
    #[inline]
    pub fn take(&self, parcel: &Parcel, bytes: &[u8], mut ring: impl FnMut(BellCalls)) {
        let record = self.record;
        let echoed = record.echoed.load(Ordering::Relaxed);
        record.echoed.store(echoed | u32::from(parcel.echo), Ordering::Relaxed);
        ring(self.take_acknowledgement(parcel));
        let seen = record.seen.load(Ordering::Relaxed);
        let is_new = |flag: u16| parcel.flags & flag != 0 && seen & u32::from(flag) == 0;
        let mut done = parcel.flags & (flag::ROUTE | flag::LEFT | flag::DRAINED);
        if is_new(flag::ATTACHED) {
            self.into.sender.attached.store(self.generation(), Ordering::Release);
            self.out.watch.attached.store(self.generation(), Ordering::Release);
            done |= flag::ATTACHED;
        }
        if is_new(flag::RING) {
            done |= self.take_switch(parcel);
        }
        if !bytes.is_empty() && self.into.sender.mode.load(Ordering::Relaxed) != DirectionMode::Kernel as u32 {
            ring(self.take_bytes(parcel, bytes));
        }
        // Most have nothing more to say.
        let rest = flag::FINAL | flag::WANTS | flag::SETTLED | flag::QUIET;
        let rest = rest | flag::HALF_CLOSED | flag::CLOSING | flag::GONE | flag::LEAVING;
        if u32::from(parcel.flags & rest) & !seen != 0 {
            self.take_words(parcel, &is_new, &mut done);
            // ORDER: stream-sleep, with these words in the place of the head: everyone looks again.
            full_barrier(Label::StreamFinal);
            let (watch, room) = (&self.into.watch, &self.out.room);
            ring(fire_all([&watch.wait, &watch.set], self.listeners, self.slot, self.fences));
            ring(fire_all([&room.wait, &room.set], self.listeners, self.slot, self.fences));
        }
        let seen = seen | u32::from(done);
        record.seen.store(seen, Ordering::Release);
        if seen & u32::from(flag::SETTLED) != 0 && parcel.echo & flag::FINAL != 0 {
            self.out.watch.reading_kernel.store(0, Ordering::Release);
        }
    }

    fn set_mode(&self, mode: DirectionMode) {
        // ORDER: stream-mode
        self.into.sender.mode.store(mode as u32, Ordering::Release);
    }

    /// The peer has switched to its ring. Not for a program that wants the kernel by now: it reads there whatever
    /// comes, and will be given there what was put into the ring, unless the peer went on to the kernel, or is no more.
    #[cold]
    fn take_switch(&self, parcel: &Parcel) -> u16 {
        if self.into.watch.want_kernel.load(Ordering::SeqCst) != 0 {
            match (parcel.flags & flag::FINAL != 0, parcel.flags & flag::LEFT != 0) {
                (false, false) => return 0,
                (true, _) if parcel.final_at == 0 => {
                    self.into.watch.sending.store(0, Ordering::Release);
                    return flag::RING | flag::FINAL;
                }
                _ => {}
            }
        }
        self.into.sender.kernel_before.store(parcel.before, Ordering::Relaxed);
        self.set_mode(DirectionMode::Ring);
        flag::RING
    }

    fn take_acknowledgement(&self, parcel: &Parcel) -> BellCalls {
        let record = self.record;
        if parcel.received > record.ever_sent.load(Ordering::Relaxed) || parcel.tail > parcel.received {
            return BellCalls::NONE;
        }
        if parcel.received > record.acknowledged.load(Ordering::Relaxed) {
            record.acknowledged.store(parcel.received, Ordering::Relaxed);
            // Of what is said again some may have arrived meanwhile.
            record.sent.fetch_max(parcel.received, Ordering::Relaxed);
        }
        if parcel.tail <= self.out.receiver.tail.load(Ordering::Relaxed) {
            return BellCalls::NONE;
        }
        // ORDER: stream-tail
        self.out.receiver.tail.store(parcel.tail, Ordering::Release);
        let room = &self.out.room;
        look([&room.wait, &room.set], self.listeners, self.slot, self.fences)
    }

    fn take_bytes(&self, parcel: &Parcel, bytes: &[u8]) -> BellCalls {
        // Whoever died between the two stores below has shown bytes that it did not note.
        let received = self.record.received.load(Ordering::Relaxed).max(self.into.sender.head.load(Ordering::Relaxed));
        let Some(known) = received.checked_sub(parcel.at).filter(|known| *known < bytes.len() as u64) else {
            return BellCalls::NONE;
        };
        let bytes = &bytes[known as usize..];
        let used = received.wrapping_sub(self.into.receiver.tail.load(Ordering::Acquire));
        if used > self.into_ring.size() || self.into_ring.size() - used < bytes.len() as u64 {
            return BellCalls::NONE;
        }
        self.into_ring.write(received, bytes);
        let received = received.wrapping_add(bytes.len() as u64);
        #[cfg(not(loom))]
        super::order::note(self.into);
        // First shown, then told of. ORDER: stream-head
        self.into.sender.head.store(received, Ordering::Release);
        self.record.received.store(received, Ordering::Release);
        let watch = &self.into.watch;
        look([&watch.wait, &watch.set], self.listeners, self.slot, self.fences)
    }

    /// What is said once in the life of a connection.
    #[cold]
    fn take_words(&self, parcel: &Parcel, is_new: &impl Fn(u16) -> bool, done: &mut u16) {
        let received = self.record.received.load(Ordering::Relaxed);
        let sender = &self.into.sender;
        *done |= parcel.flags & flag::SETTLED;
        if is_new(flag::QUIET) {
            self.into.watch.sending.store(0, Ordering::Release);
            *done |= flag::QUIET;
        }
        if is_new(flag::WANTS) {
            self.out.watch.want_kernel.store(1, Ordering::SeqCst);
            *done |= flag::WANTS;
        }
        // Not before all that belongs into the ring is there: who is told of the end has the rest.
        let is_ring = sender.mode.load(Ordering::Relaxed) == DirectionMode::Ring as u32;
        if is_new(flag::FINAL) && is_ring && received >= parcel.final_at {
            sender.final_at.store(parcel.final_at, Ordering::Relaxed);
            self.set_mode(DirectionMode::Final);
            *done |= flag::FINAL;
        }
        if is_new(flag::HALF_CLOSED) && sender.closing.load(Ordering::Relaxed) == 0 {
            sender.closing.store(HALF_CLOSED, Ordering::SeqCst);
        }
        if is_new(flag::CLOSING) {
            sender.closing.store(1, Ordering::SeqCst);
        }
        *done |= parcel.flags & (flag::HALF_CLOSED | flag::CLOSING | flag::LEAVING);
        if is_new(flag::LEAVING) {
            sender.leaving.store(1, Ordering::SeqCst);
        }
        if is_new(flag::GONE) {
            sender.gone.store(self.generation(), Ordering::SeqCst);
            // Nobody is left who puts anything into the ring, or reads the kernel before it: what that end has not
            // said, as one that never attached, it will not say any more.
            self.into.watch.sending.store(0, Ordering::Release);
            self.out.watch.reading_kernel.store(0, Ordering::Release);
            *done |= flag::GONE;
        }
    }
}

/// See [`Mirror::tick`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    Nothing,
    Tell,
    Again,
}
