//! The receiving end of a direction. One at a time, by the lock of the side.

use super::armed::{BellCalls, look};
use super::bytes::RingBytes;
use super::lines::{OwnReceiver, SideListener, SlotDirection};
use crate::sync::{Label, Ordering, full_barrier, ordering, owner_barrier};
use weft_wire::stream::arena::DirectionMode;

/// Where a receiver's next bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteSource {
    /// From the kernel, without waiting there (`MSG_DONTWAIT`) and while the lock is held; with a limit, not more than
    /// so many bytes before the next look.
    Kernel(Option<u64>),
    Ring,
    /// The peer broke the rules: shut the anchor down.
    Broken,
}

/// What a look from outside finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBytes {
    /// So many bytes in the ring.
    Ring(usize),
    /// The kernel must be asked (not switched yet, or for good).
    Kernel,
    /// Switched to the ring, and nothing in it. Not an end of the stream: only the kernel knows that.
    Empty,
    /// The peer broke the rules: shut the anchor down.
    Broken,
}

/// Room of long pieces is given back in steps of so many bytes.
const STEP: usize = 32 * 1024;

pub struct StreamReceiver<'a, B> {
    direction: &'a SlotDirection,
    own: &'a OwnReceiver,
    bytes: B,
    /// Of the sender's side.
    listeners: &'a [SideListener],
    slot: u32,
    generation: u32,
    fences: bool,
    tail: u64,
    published: u64,
    head: u64,
    phase: u32,
    reading_kernel: bool,
}

impl<'a, B: RingBytes> StreamReceiver<'a, B> {
    /// Begins a call. The lock is held.
    #[inline(always)]
    pub fn new(
        direction: &'a SlotDirection,
        own: &'a OwnReceiver,
        bytes: B,
        listeners: &'a [SideListener],
        (slot, generation, fences): (u32, u32, bool),
    ) -> Self {
        let tail = own.tail.load(Ordering::Relaxed);
        Self {
            direction,
            own,
            bytes,
            listeners,
            slot,
            generation,
            fences,
            tail,
            published: tail,
            head: own.head.load(Ordering::Relaxed),
            phase: own.phase.load(Ordering::Relaxed),
            reading_kernel: false,
        }
    }

    fn set_phase(&mut self, phase: DirectionMode) {
        self.phase = phase as u32;
        self.own.phase.store(phase as u32, Ordering::Relaxed);
    }

    #[inline(always)]
    pub fn is_broken(&self) -> bool {
        self.own.broken.load(Ordering::Relaxed) != 0
    }

    /// Where the next bytes come from, `received_by_kernel` having come through the kernel so far. When it is the
    /// kernel, read there before [`Self::end`], without waiting.
    #[inline(always)]
    pub fn route(&mut self, received_by_kernel: u64) -> ByteSource {
        if self.phase == DirectionMode::Ring as u32
            && self.direction.sender.mode.load(Ordering::Relaxed) == DirectionMode::Ring as u32
        {
            let wants = self.own.wants.load(Ordering::Relaxed) != 0;
            return if self.is_broken() {
                ByteSource::Broken
            } else if wants {
                ByteSource::Kernel(None)
            } else {
                ByteSource::Ring
            };
        }
        self.route_at_switch(received_by_kernel)
    }

    #[cold]
    fn route_at_switch(&mut self, received_by_kernel: u64) -> ByteSource {
        if self.is_broken() {
            return ByteSource::Broken;
        }
        if self.phase == DirectionMode::Final as u32 {
            return ByteSource::Kernel(None);
        }
        match (mode(self.direction, self.generation), self.phase == DirectionMode::Ring as u32) {
            (Some(DirectionMode::Kernel), false) => self.believe_in_kernel(received_by_kernel),
            (Some(_), false) => self.reach_ring(received_by_kernel),
            (Some(DirectionMode::Final), true) => self.reach_end(),
            // It went back from the ring to the beginning, or is no mode.
            _ => self.broken(),
        }
    }

    fn broken(&self) -> ByteSource {
        self.own.broken.store(1, Ordering::Relaxed);
        ByteSource::Broken
    }

    /// Not switched: says that the kernel is read, and looks again.
    fn believe_in_kernel(&mut self, received_by_kernel: u64) -> ByteSource {
        let reading = &self.direction.watch.reading_kernel;
        reading.store(1, Ordering::Relaxed);
        // ORDER: stream-final
        full_barrier(Label::StreamReader);
        if mode(self.direction, self.generation) == Some(DirectionMode::Kernel) {
            self.reading_kernel = true;
            return ByteSource::Kernel(None);
        }
        reading.store(0, Ordering::Release);
        self.reach_ring(received_by_kernel)
    }

    /// Switched: the kernel's part first.
    fn reach_ring(&mut self, received_by_kernel: u64) -> ByteSource {
        let before = self.direction.sender.kernel_before.load(Ordering::Relaxed);
        let rest = before.checked_sub(received_by_kernel);
        // Given back before we came to the ring: the kernel's bytes follow each other.
        let over = mode(self.direction, self.generation) == Some(DirectionMode::Final);
        if rest.is_some() && over && self.direction.sender.final_at.load(Ordering::Relaxed) == self.tail {
            self.set_phase(DirectionMode::Final);
            return ByteSource::Kernel(None);
        }
        match rest {
            None => self.broken(),
            Some(0) => {
                self.set_phase(DirectionMode::Ring);
                match mode(self.direction, self.generation) {
                    Some(DirectionMode::Final) => self.reach_end(),
                    _ if self.own.wants.load(Ordering::Relaxed) != 0 => ByteSource::Kernel(None),
                    _ => ByteSource::Ring,
                }
            }
            rest => ByteSource::Kernel(rest),
        }
    }

    /// Switched back: the ring's part first, also where the kernel is wanted. A sender that has given back stopped
    /// where we did; one that switched before it saw the wish has left the rest in the ring, and only there.
    fn reach_end(&mut self) -> ByteSource {
        let end = self.direction.sender.final_at.load(Ordering::Relaxed);
        // It was there before the mode was.
        let head = self.direction.sender.head.load(Ordering::Acquire);
        match end.checked_sub(self.tail) {
            Some(0) => {
                self.set_phase(DirectionMode::Final);
                ByteSource::Kernel(None)
            }
            Some(rest) if rest <= self.bytes.size() && end <= head => ByteSource::Ring,
            _ => self.broken(),
        }
    }

    /// Bytes that can be pulled, looking at the sender only when fewer than `wanted` are known to be there.
    #[inline(always)]
    pub fn available(&mut self, wanted: u64) -> u64 {
        if self.phase != DirectionMode::Ring as u32 {
            return 0;
        }
        if self.own.wants.load(Ordering::Relaxed) != 0 && !self.is_left_behind() {
            return 0;
        }
        if self.head - self.tail < wanted && !self.refresh() {
            return 0;
        }
        self.head - self.tail
    }

    /// Believes the sender's head if it is possible.
    #[inline(always)]
    fn refresh(&mut self) -> bool {
        // ORDER: stream-head
        let claimed = self.direction.sender.head.load(ordering(Label::StreamHeadLoad, Ordering::Acquire));
        if claimed < self.head || claimed - self.tail > self.bytes.size() {
            self.broken();
            return false;
        }
        self.head = claimed;
        self.own.head.store(claimed, Ordering::Relaxed);
        true
    }

    /// What follows the bytes that are still to be read from the kernel: so many in the ring, and whether the kernel
    /// has the bytes behind those. After [`Self::route`] answered a limit, or the ring (then nothing stands before
    /// them).
    #[cold]
    pub fn ahead(&mut self) -> (u64, bool) {
        let over = mode(self.direction, self.generation) == Some(DirectionMode::Final);
        let wants = self.own.wants.load(Ordering::Relaxed) != 0;
        // Wanted back, they come by the kernel.
        if (wants && !self.is_left_behind()) || !self.refresh() {
            return (0, false);
        }
        let end = if over { self.direction.sender.final_at.load(Ordering::Relaxed) } else { self.head };
        match end.checked_sub(self.tail) {
            Some(bytes) if end <= self.head => (bytes, over),
            _ => (0, false),
        }
    }

    /// Whether what is in the ring stays there for us, although we want the kernel.
    #[cold]
    fn is_left_behind(&self) -> bool {
        mode(self.direction, self.generation) == Some(DirectionMode::Final)
            && self.direction.sender.final_at.load(Ordering::Relaxed) != self.tail
    }

    /// Moves bytes out of the ring; 0 when nothing is there.
    #[inline(always)]
    pub fn pull(&mut self, into: &mut [u8], ring: impl FnMut(BellCalls)) -> usize {
        let bytes = self.available(into.len() as u64).min(into.len() as u64) as usize;
        if bytes <= STEP {
            self.bytes.read(self.tail, &mut into[..bytes]);
            self.tail += bytes as u64;
            return bytes;
        }
        self.pull_in_steps(&mut into[..bytes], ring);
        bytes
    }

    #[cold]
    fn pull_in_steps(&mut self, into: &mut [u8], mut ring: impl FnMut(BellCalls)) {
        for step in into.chunks_mut(STEP) {
            self.bytes.read(self.tail, step);
            self.tail += step.len() as u64;
            ring(self.publish());
        }
    }

    /// Copies bytes that are `offset` ahead of the next one of the ring without taking them. Where the kernel's come
    /// first, those that [`Self::ahead`] has found.
    pub fn peek(&mut self, offset: u64, into: &mut [u8]) -> usize {
        let wanted = offset.saturating_add(into.len() as u64);
        let there =
            if self.phase == DirectionMode::Kernel as u32 { self.head - self.tail } else { self.available(wanted) };
        let bytes = there.saturating_sub(offset).min(into.len() as u64) as usize;
        self.bytes.read(self.tail.wrapping_add(offset), &mut into[..bytes]);
        bytes
    }

    /// Drops bytes; answers how many were there.
    pub fn skip(&mut self, bytes: u64) -> u64 {
        let bytes = self.available(bytes).min(bytes);
        self.tail += bytes;
        bytes
    }

    /// Gives the room back.
    #[inline(always)]
    pub fn publish(&mut self) -> BellCalls {
        if self.tail == self.published {
            return BellCalls::NONE;
        }
        // Ours first: others of this side who look without the lock never see more than a ring's worth.
        self.own.tail.store(self.tail, Ordering::Relaxed);
        self.published = self.tail;
        // ORDER: stream-tail
        self.direction.receiver.tail.store(self.tail, ordering(Label::StreamTailStore, Ordering::Release));
        // Who sleeps for room sleeps until it is worth it. A head from earlier makes this too often, never too seldom.
        if self.bytes.size() - (self.head - self.tail) < self.bytes.size() / 4 {
            return BellCalls::NONE;
        }
        let room = &self.direction.room;
        look([&room.wait, &room.set], self.listeners, self.slot, self.fences)
    }

    /// Wants the kernel. True when nothing is left in the ring and nothing will come there, so that everything that
    /// follows comes through the kernel. False: the sender must answer.
    pub fn want_kernel(&mut self) -> bool {
        // A sender that has ended answers nobody, and what it left is read from the ring.
        let ended = self.own.ended.load(Ordering::Relaxed);
        self.own.wants.store(1 - ended.min(1), Ordering::Relaxed);
        self.direction.watch.want_kernel.store(1, Ordering::SeqCst);
        // ORDER: stream-wish
        owner_barrier(Label::StreamWish, self.fences);
        let sending = self.direction.watch.sending.load(Ordering::Acquire) != 0;
        let done = match mode(self.direction, self.generation) {
            _ if self.phase == DirectionMode::Final as u32 => true,
            None | Some(DirectionMode::Kernel) => !sending,
            Some(DirectionMode::Ring) => !sending && self.direction.sender.head.load(Ordering::Acquire) == self.tail,
            Some(DirectionMode::Final) => self.direction.sender.final_at.load(Ordering::Relaxed) == self.tail,
        };
        if done {
            self.set_phase(DirectionMode::Final);
        }
        done
    }

    /// Nothing more is read from the ring, whatever is there.
    pub fn finish(&mut self) {
        self.set_phase(DirectionMode::Final);
    }

    /// As [`Self::want_kernel`], because the peer wanted the same: nothing is left in either ring then. Not where it
    /// has switched already.
    pub fn want_kernel_too(&mut self) {
        if self.own.wants.load(Ordering::Relaxed) == 0
            && mode(self.direction, self.generation) == Some(DirectionMode::Ring)
        {
            self.want_kernel();
        }
    }

    /// The kernel's stream has ended, `received_by_kernel` bytes having come in all. A sender that died before it gave
    /// the ring back, or in the middle of that, has left the rest there: it is read from there after all. Of one on
    /// another host more may have come than its ring ever showed here: that has given all back, and the word of it is
    /// late.
    pub fn kernel_ended(&mut self, received_by_kernel: u64) {
        let wants = self.own.wants.load(Ordering::Relaxed) != 0;
        if !wants
            || self.phase != DirectionMode::Ring as u32
            || mode(self.direction, self.generation) != Some(DirectionMode::Ring)
        {
            return;
        }
        let before = self.direction.sender.kernel_before.load(Ordering::Relaxed);
        let head = self.direction.sender.head.load(Ordering::Acquire);
        match received_by_kernel.checked_sub(before).and_then(|given| self.tail.checked_add(given)) {
            Some(tail) if tail <= head && head - tail <= self.bytes.size() => {
                self.tail = tail;
                self.head = self.head.max(tail);
                self.own.head.store(self.head, Ordering::Relaxed);
                self.own.wants.store(0, Ordering::Relaxed);
                self.own.ended.store(1, Ordering::Relaxed);
            }
            Some(tail) if tail > head => self.finish(),
            _ => {
                self.broken();
            }
        }
    }

    /// Ends the call: the kernel is not read any more.
    #[inline(always)]
    pub fn end(&mut self) {
        if self.reading_kernel {
            self.reading_kernel = false;
            self.direction.watch.reading_kernel.store(0, Ordering::Release);
        }
    }
}

/// The sender's mode; `None` is a broken rule. What stands there from an earlier use of the slot does not count.
fn mode(direction: &SlotDirection, generation: u32) -> Option<DirectionMode> {
    if direction.sender.attached.load(Ordering::Acquire) != generation {
        return Some(DirectionMode::Kernel);
    }
    // ORDER: stream-mode
    DirectionMode::from_word(direction.sender.mode.load(ordering(Label::StreamModeLoad, Ordering::Acquire)))
}

/// Whether the ring has bytes behind those of the kernel that come first, without the lock.
pub fn has_rest(direction: &SlotDirection, own: &OwnReceiver, generation: u32) -> bool {
    let switched = matches!(mode(direction, generation), Some(DirectionMode::Ring | DirectionMode::Final));
    switched
        && own.phase.load(Ordering::Relaxed) == DirectionMode::Kernel as u32
        && own.wants.load(Ordering::Relaxed) == 0
        && direction.sender.head.load(Ordering::Acquire) != own.tail.load(Ordering::Relaxed)
}

/// What a receiver would find, without the lock. What [`StreamReceiver::route`] would call broken is broken here, too:
/// who waits for it would wait for ever.
pub fn find(
    direction: &SlotDirection,
    own: &OwnReceiver,
    generation: u32,
    size: u64,
    received_by_kernel: u64,
) -> FoundBytes {
    if own.broken.load(Ordering::Relaxed) != 0 {
        return FoundBytes::Broken;
    }
    let phase = own.phase.load(Ordering::Relaxed);
    let mode = mode(direction, generation);
    let tail = own.tail.load(Ordering::Relaxed);
    if phase == DirectionMode::Final as u32 {
        return FoundBytes::Kernel;
    }
    let before = direction.sender.kernel_before.load(Ordering::Relaxed);
    match (mode, phase == DirectionMode::Kernel as u32) {
        (None, _) | (Some(DirectionMode::Kernel), false) => return FoundBytes::Broken,
        (Some(DirectionMode::Kernel), true) => return FoundBytes::Kernel,
        (_, true) if received_by_kernel > before => return FoundBytes::Broken,
        _ => {}
    }
    let end = direction.sender.final_at.load(Ordering::Relaxed);
    let is_over = mode == Some(DirectionMode::Final);
    if own.wants.load(Ordering::Relaxed) != 0 && (!is_over || end == tail) {
        return FoundBytes::Kernel;
    }
    if phase == DirectionMode::Kernel as u32 && received_by_kernel < before {
        return FoundBytes::Kernel;
    }
    // ORDER: stream-head
    let head = direction.sender.head.load(ordering(Label::StreamHeadLoad, Ordering::Acquire));
    if is_over && !(tail..=head).contains(&end) {
        return FoundBytes::Broken;
    }
    match head.checked_sub(tail) {
        Some(0) if is_over => FoundBytes::Kernel,
        Some(0) => FoundBytes::Empty,
        Some(bytes) if bytes <= size => FoundBytes::Ring(bytes as usize),
        // Somebody pulled meanwhile.
        _ if own.tail.load(Ordering::Relaxed) != tail => FoundBytes::Empty,
        _ => FoundBytes::Broken,
    }
}
