//! The sending end of a direction. One at a time, by the lock of the side.

use super::armed::{BellCalls, fire_all, look};
use super::bytes::RingBytes;
use super::lines::{OwnSender, SideListener, SlotDirection};
use crate::sync::{Label, Ordering, full_barrier, ordering, sender_barrier};
use std::io;
use weft_wire::stream::arena::DirectionMode;

/// Where a sender's next bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendTarget {
    /// To the kernel.
    Kernel,
    /// To the kernel, or, after [`StreamSender::switch_to_ring`], to the ring.
    MaySwitch,
    Ring,
    /// The receiver wants the kernel: [`StreamSender::give_back`] first.
    GiveBack,
    /// To the kernel, but not yet: the receiver is in the middle of a look there that began before the ring was used,
    /// and would take these bytes before those of the ring. It takes an instant, unless the receiver is stopped or does
    /// not keep to the rules: look again, and for how long is the caller's choice. Then shut the anchor down.
    NotYet,
    /// The peer broke the rules: shut the anchor down.
    Broken,
}

/// What a look from outside finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendRoom {
    Ring(u64),
    Kernel,
    Broken,
}

/// Long pieces become visible in steps of so many bytes, so that the receiver copies meanwhile.
const STEP: usize = 16 * 1024;
/// Longer sends leave one part in so many of the ring free. So a short one behind them still fits, as in the kernel,
/// whose limit is soft.
const SLACK_PARTS: u64 = 64;
/// Up to so many bytes of an answer are handed on: longer ones take longer to be copied than their lines to be fetched.
const HANDED_ON_BYTES: usize = 2048;
/// Bytes that go back through the kernel at a time.
const GIVE_BACK: usize = 4096;

pub struct StreamSender<'a, B> {
    direction: &'a SlotDirection,
    own: &'a OwnSender,
    bytes: B,
    /// Of the receiver's side.
    listeners: &'a [SideListener],
    slot: u32,
    generation: u32,
    fences: bool,
    head: u64,
    published: u64,
    tail: u64,
    phase: u32,
    /// Something was received since the last call: the receiver waits for this and polls, so the lines are handed on to
    /// it.
    answers: bool,
}

impl<'a, B: RingBytes> StreamSender<'a, B> {
    /// Begins a call. The lock is held.
    #[inline(always)]
    pub fn new(
        direction: &'a SlotDirection,
        own: &'a OwnSender,
        bytes: B,
        listeners: &'a [SideListener],
        (slot, generation, fences): (u32, u32, bool),
    ) -> Self {
        direction.watch.sending.store(1, Ordering::Relaxed);
        // ORDER: stream-wish
        sender_barrier(Label::StreamSending, fences);
        let head = own.head.load(Ordering::Relaxed);
        let (tail, phase) = (own.tail.load(Ordering::Relaxed), own.phase.load(Ordering::Relaxed));
        Self {
            direction,
            own,
            bytes,
            listeners,
            slot,
            generation,
            fences,
            head,
            published: head,
            tail,
            phase,
            answers: false,
        }
    }

    /// Our side has received all bytes up to `position` of the other direction.
    #[inline(always)]
    pub fn note_received(&mut self, position: u64) {
        self.answers = self.own.received.load(Ordering::Relaxed) != position;
        if self.answers {
            self.own.received.store(position, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    pub fn route(&mut self) -> SendTarget {
        let watch = &self.direction.watch;
        if self.phase == DirectionMode::Ring as u32 {
            // The tail that was told before is read after it.
            if watch.want_kernel.load(Ordering::Acquire) != 0 {
                return SendTarget::GiveBack;
            }
            return if self.own.broken.load(Ordering::Relaxed) != 0 { SendTarget::Broken } else { SendTarget::Ring };
        }
        self.route_of_kernel()
    }

    #[cold]
    fn route_of_kernel(&mut self) -> SendTarget {
        let watch = &self.direction.watch;
        if self.phase == DirectionMode::Final as u32 {
            return if self.settled() { SendTarget::Kernel } else { SendTarget::NotYet };
        }
        if watch.attached.load(Ordering::Acquire) != self.generation {
            return SendTarget::Kernel;
        }
        if watch.want_kernel.load(Ordering::Relaxed) != 0 {
            self.set_phase(DirectionMode::Final);
            return SendTarget::Kernel;
        }
        SendTarget::MaySwitch
    }

    fn set_phase(&mut self, phase: DirectionMode) {
        self.phase = phase as u32;
        self.own.phase.store(phase as u32, Ordering::Relaxed);
    }

    fn set_mode(&self, mode: DirectionMode) {
        // ORDER: stream-mode
        self.direction.sender.mode.store(mode as u32, ordering(Label::StreamModeStore, Ordering::Release));
    }

    /// Everything from now on goes by the ring. Only where [`Self::route`] said that it may.
    pub fn switch_to_ring(&mut self, sent_by_kernel: u64) {
        if self.phase != DirectionMode::Kernel as u32 {
            return;
        }
        self.direction.sender.kernel_before.store(sent_by_kernel, Ordering::Relaxed);
        self.set_mode(DirectionMode::Ring);
        self.set_phase(DirectionMode::Ring);
    }

    /// Believes the receiver's tail if it is possible, and the receiver is there.
    #[cold]
    fn refresh(&mut self) {
        if self.direction.watch.attached.load(Ordering::Relaxed) != self.generation {
            self.own.broken.store(1, Ordering::Relaxed);
            return;
        }
        // ORDER: stream-tail
        let claimed = self.direction.receiver.tail.load(ordering(Label::StreamTailLoad, Ordering::Acquire));
        if claimed < self.tail || claimed > self.published {
            self.own.broken.store(1, Ordering::Relaxed);
            return;
        }
        self.tail = claimed;
        self.own.tail.store(claimed, Ordering::Relaxed);
    }

    /// Free bytes, looking at the receiver only when fewer than `wanted` are known to be.
    #[inline(always)]
    pub fn free(&mut self, wanted: u64) -> u64 {
        if self.phase != DirectionMode::Ring as u32 {
            return 0;
        }
        if self.bytes.size() - (self.head - self.tail) < wanted {
            self.refresh();
        }
        self.bytes.size() - (self.head - self.tail)
    }

    /// Copies what fits; 0 when the ring is full, or not where the bytes go. See [`SLACK_PARTS`].
    #[inline(always)]
    pub fn push(&mut self, from: &[u8], ring: impl FnMut(BellCalls)) -> usize {
        let slack = (self.bytes.size() / SLACK_PARTS) as usize;
        let kept = if from.len() > slack { slack } else { 0 };
        let fits = (self.free((from.len() + kept) as u64) as usize).saturating_sub(kept).min(from.len());
        if fits <= STEP {
            self.bytes.write(self.head, &from[..fits]);
            if self.answers && fits <= HANDED_ON_BYTES {
                self.bytes.hand_on(self.head, fits);
            }
            self.head += fits as u64;
            return fits;
        }
        self.push_in_steps(&from[..fits], ring);
        fits
    }

    #[cold]
    fn push_in_steps(&mut self, from: &[u8], mut ring: impl FnMut(BellCalls)) {
        for step in from.chunks(STEP) {
            self.bytes.write(self.head, step);
            self.head += step.len() as u64;
            ring(self.publish());
        }
    }

    /// Makes everything pushed visible.
    #[inline(always)]
    pub fn publish(&mut self) -> BellCalls {
        if self.head == self.published {
            return BellCalls::NONE;
        }
        // Ours first: who takes over from a process that dies between the two must not write what the peer may read.
        self.own.head.store(self.head, Ordering::Relaxed);
        self.published = self.head;
        #[cfg(not(loom))]
        super::order::note(self.direction);
        // ORDER: stream-head
        self.direction.sender.head.store(self.head, ordering(Label::StreamHeadStore, Ordering::Release));
        let watch = &self.direction.watch;
        let calls = look([&watch.wait, &watch.set], self.listeners, self.slot, self.fences);
        if self.answers {
            self.direction.sender.hand_on();
        }
        calls
    }

    /// Everything from now on goes by the kernel, after the rest of the ring. Bytes may be given to the kernel once
    /// [`Self::settled`].
    pub fn switch_to_kernel(&mut self) -> BellCalls {
        let calls = self.publish();
        match DirectionMode::from_word(self.phase) {
            Some(DirectionMode::Ring) => {}
            Some(DirectionMode::Final) => return calls,
            // Never switched: the receiver reads the kernel, and goes on so.
            _ => {
                self.set_phase(DirectionMode::Final);
                return calls;
            }
        }
        self.own.unsettled.store(1, Ordering::Relaxed);
        // The receiver may just have been told of the bytes; now everyone must look again.
        let again = self.finish(self.head);
        calls.or(again)
    }

    fn finish(&mut self, at: u64) -> BellCalls {
        // Also where one whom we took over from has died before it said so: an end behind the head is nonsense.
        self.direction.sender.head.store(self.head, Ordering::Release);
        self.direction.sender.final_at.store(at, Ordering::Relaxed);
        self.set_mode(DirectionMode::Final);
        self.set_phase(DirectionMode::Final);
        // ORDER: stream-final
        full_barrier(Label::StreamFinal);
        let watch = &self.direction.watch;
        fire_all([&watch.wait, &watch.set], self.listeners, self.slot, self.fences)
    }

    /// After the switch to the kernel: whether the receiver was seen outside of a read of the kernel that it may have
    /// begun when the direction had not switched.
    pub fn settled(&self) -> bool {
        let unsettled = &self.own.unsettled;
        if unsettled.load(Ordering::Relaxed) != 0 && self.direction.watch.reading_kernel.load(Ordering::SeqCst) == 0 {
            unsettled.store(0, Ordering::Relaxed);
        }
        unsettled.load(Ordering::Relaxed) == 0
    }

    /// Would rather send by the kernel. What follows goes by the ring until the receiver wants the kernel: so nobody
    /// waits, and what it has not read comes back, where [`Self::switch_to_kernel`] leaves it in the ring. Said by the
    /// mirror of another host only: within a host nobody is woken for it.
    pub fn ask_to_leave(&self) {
        self.direction.sender.leaving.store(1, Ordering::Release);
    }

    /// The receiver is gone. Everything from now on goes by the kernel, at once, and nothing stands before it.
    pub fn abandon(&mut self) -> BellCalls {
        let calls = self.publish();
        self.own.unsettled.store(0, Ordering::Relaxed);
        if self.phase == DirectionMode::Kernel as u32 {
            self.set_phase(DirectionMode::Final);
            return calls;
        }
        let taken = self.direction.receiver.tail.load(Ordering::Acquire);
        let again = self.finish(taken.min(self.head));
        calls.or(again)
    }

    /// Sends what the receiver, who has stopped reading, left in the ring through the kernel, then switches to the
    /// kernel for good.
    ///
    /// # Errors
    /// Those of `write`; called again, it goes on where it was.
    pub fn give_back(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<BellCalls> {
        let calls = self.publish();
        if self.phase != DirectionMode::Ring as u32 {
            self.set_phase(DirectionMode::Final);
            return Ok(calls);
        }
        if self.own.giving.load(Ordering::Relaxed) == 0 {
            self.refresh();
            self.own.given.store(self.tail, Ordering::Relaxed);
            self.own.stopped_at.store(self.tail, Ordering::Relaxed);
            self.own.giving.store(1, Ordering::Relaxed);
        }
        let mut given = self.own.given.load(Ordering::Relaxed);
        let mut piece = [0; GIVE_BACK];
        while given < self.head {
            let bytes = (self.head - given).min(GIVE_BACK as u64) as usize;
            self.bytes.read(given, &mut piece[..bytes]);
            given += write(&piece[..bytes])? as u64;
            self.own.given.store(given, Ordering::Relaxed);
        }
        Ok(self.finish(self.own.stopped_at.load(Ordering::Relaxed)))
    }

    /// Whether the receiver wanted the kernel, and has it.
    #[inline(always)]
    pub fn has_given_back(&self) -> bool {
        self.phase == DirectionMode::Final as u32 && self.direction.watch.want_kernel.load(Ordering::Relaxed) != 0
    }

    /// Ends the call. What was pushed and not published stays unsent.
    #[inline(always)]
    pub fn end(&self) {
        self.direction.watch.sending.store(0, Ordering::Release);
    }
}

/// What a sender would find, without the lock.
pub fn room(direction: &SlotDirection, own: &OwnSender, generation: u32, size: u64) -> SendRoom {
    if own.broken.load(Ordering::Relaxed) != 0 {
        return SendRoom::Broken;
    }
    let phase = own.phase.load(Ordering::Relaxed);
    let watch = &direction.watch;
    let attached = watch.attached.load(Ordering::Acquire) == generation;
    // To give back, the caller must come to its route.
    if phase == DirectionMode::Final as u32 || watch.want_kernel.load(Ordering::Relaxed) != 0 {
        return SendRoom::Kernel;
    }
    if !attached {
        return if phase == DirectionMode::Ring as u32 { SendRoom::Broken } else { SendRoom::Kernel };
    }
    // Not switched: the next bytes go into the ring, which is empty.
    if phase != DirectionMode::Ring as u32 {
        return SendRoom::Ring(size);
    }
    // Tail first: a head from later makes the room smaller than it is, never larger.
    let tail = direction.receiver.tail.load(ordering(Label::StreamTailLoad, Ordering::Acquire));
    let head = direction.sender.head.load(Ordering::Relaxed);
    match head.checked_sub(tail) {
        Some(used) if used <= size => SendRoom::Ring(size - used),
        // Both have moved since.
        Some(_) if direction.receiver.tail.load(Ordering::Relaxed) != tail => SendRoom::Ring(0),
        _ => SendRoom::Broken,
    }
}
