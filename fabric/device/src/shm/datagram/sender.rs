//! The sending end of a direction of datagrams. One at a time, by the lock of the side.

use crate::shm::stream::RingBytes;
use crate::shm::stream::lines::{OwnSender, SlotDirection};
use crate::sync::{Label, Ordering, ordering, sender_barrier};
use weft_wire::stream::datagram::{DatagramHeading, HEADING_BYTES, record_bytes};

pub struct DatagramSender<'a, B> {
    direction: &'a SlotDirection,
    own: &'a OwnSender,
    bytes: B,
    /// End of what is written, published or not.
    head: u64,
    tail: u64,
}

impl<'a, B: RingBytes> DatagramSender<'a, B> {
    /// The lock is held.
    #[inline(always)]
    pub fn new(direction: &'a SlotDirection, own: &'a OwnSender, bytes: B) -> Self {
        let (head, tail) = (own.head.load(Ordering::Relaxed), own.tail.load(Ordering::Relaxed));
        Self { direction, own, bytes, head, tail }
    }

    /// Whether the receiver's gate is open. It then waits for [`Self::leave`] before it sleeps.
    #[inline(always)]
    pub fn enter(&mut self, generation: u32, fences: bool) -> bool {
        let watch = &self.direction.watch;
        if watch.attached.load(Ordering::Acquire) != generation || self.own.broken.load(Ordering::Relaxed) != 0 {
            return false;
        }
        watch.sending.store(1, Ordering::Relaxed);
        // ORDER: datagram-gate
        sender_barrier(Label::DatagramSending, fences);
        let open = watch.want_kernel.load(Ordering::Relaxed) == 0;
        if !open {
            self.leave();
        }
        open
    }

    /// Ends what [`Self::enter`] began.
    #[inline(always)]
    pub fn leave(&self) {
        // ORDER: datagram-leave
        self.direction.watch.sending.store(0, ordering(Label::DatagramLeaveStore, Ordering::Release));
    }

    /// Begins a datagram; false when the ring has no room for it. Then [`Self::append`] all of it, and
    /// [`Self::publish`].
    #[inline(always)]
    pub fn begin(&mut self, heading: DatagramHeading) -> bool {
        let wanted = record_bytes(heading.length as usize);
        if self.bytes.size() - (self.head - self.tail) < wanted {
            self.refresh();
            if self.bytes.size() - (self.head - self.tail) < wanted {
                return false;
            }
        }
        self.bytes.write(self.head, &heading.pack());
        self.head += HEADING_BYTES as u64;
        true
    }

    #[inline(always)]
    pub fn append(&mut self, from: &[u8]) {
        self.bytes.write(self.head, from);
        self.head += from.len() as u64;
    }

    /// Makes the datagram visible.
    #[inline(always)]
    pub fn publish(&mut self) {
        self.head = self.head.next_multiple_of(weft_wire::stream::datagram::ALIGNMENT as u64);
        // Ours first: who takes over from a process that dies between the two must not write what the peer may read.
        self.own.head.store(self.head, Ordering::Relaxed);
        // ORDER: datagram-head
        self.direction.sender.head.store(self.head, ordering(Label::DatagramHeadStore, Ordering::Release));
    }

    /// Believes the receiver's tail if it is possible.
    #[cold]
    fn refresh(&mut self) {
        // ORDER: datagram-tail
        let claimed = self.direction.receiver.tail.load(ordering(Label::DatagramTailLoad, Ordering::Acquire));
        if claimed < self.tail || claimed > self.head {
            self.own.broken.store(1, Ordering::Relaxed);
            return;
        }
        self.tail = claimed;
        self.own.tail.store(claimed, Ordering::Relaxed);
    }

    /// Calls `each` with the datagrams that the receiver has not taken, one after the other: their lengths, and a way
    /// to read them into a place of that length. Only where the receiver reads no more. False from `each` ends it.
    pub fn unread(&mut self, mut each: impl FnMut(usize, &dyn Fn(&mut [u8])) -> bool) {
        self.refresh();
        let mut at = self.tail;
        while at < self.head && self.own.broken.load(Ordering::Relaxed) == 0 {
            let mut packed = [0; HEADING_BYTES];
            self.bytes.read(at, &mut packed);
            // The memory is the peer's, too.
            let Some(heading) = DatagramHeading::parse(packed) else { return };
            let length = heading.length as usize;
            if at + record_bytes(length) > self.head {
                return;
            }
            let read = |into: &mut [u8]| self.bytes.read(at + HEADING_BYTES as u64, into);
            if !each(length, &read) {
                return;
            }
            at += record_bytes(length);
        }
    }
}
