//! The receiving end of a direction of datagrams, and its gate. Taking is one at a time, by the lock of the side.

use crate::shm::stream::RingBytes;
use crate::shm::stream::lines::{OwnReceiver, SlotDirection};
use crate::sync::{Label, Ordering, ordering, owner_barrier};
use weft_wire::stream::datagram::{ALIGNMENT, DatagramHeading, HEADING_BYTES, record_bytes};

/// What a receiver finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextDatagram {
    Nothing,
    /// A datagram, to be read and then taken.
    Datagram(DatagramHeading),
    /// The sender wrote what cannot be: nothing of this ring is believed any more.
    Broken,
}

pub struct DatagramReceiver<'a, B> {
    direction: &'a SlotDirection,
    own: &'a OwnReceiver,
    bytes: B,
    tail: u64,
    /// Of the datagram that [`Self::look`] found.
    length: usize,
}

impl<'a, B: RingBytes> DatagramReceiver<'a, B> {
    /// The lock is held.
    #[inline(always)]
    pub fn new(direction: &'a SlotDirection, own: &'a OwnReceiver, bytes: B) -> Self {
        Self { direction, own, bytes, tail: own.tail.load(Ordering::Relaxed), length: 0 }
    }

    #[inline(always)]
    pub fn look(&mut self) -> NextDatagram {
        if self.own.broken.load(Ordering::Relaxed) != 0 {
            return NextDatagram::Broken;
        }
        let mut head = self.own.head.load(Ordering::Relaxed);
        if head == self.tail {
            // ORDER: datagram-head
            head = self.direction.sender.head.load(ordering(Label::DatagramHeadLoad, Ordering::Acquire));
            let possible = head >= self.tail && head - self.tail <= self.bytes.size();
            if !possible || !head.is_multiple_of(ALIGNMENT as u64) {
                return self.broken();
            }
            self.own.head.store(head, Ordering::Relaxed);
        }
        if head == self.tail {
            return NextDatagram::Nothing;
        }
        let mut packed = [0; HEADING_BYTES];
        self.bytes.read(self.tail, &mut packed);
        match DatagramHeading::parse(packed) {
            Some(heading) if self.tail + record_bytes(heading.length as usize) <= head => {
                self.length = heading.length as usize;
                NextDatagram::Datagram(heading)
            }
            _ => self.broken(),
        }
    }

    #[cold]
    fn broken(&mut self) -> NextDatagram {
        self.own.broken.store(1, Ordering::Relaxed);
        NextDatagram::Broken
    }

    /// Copies bytes of the datagram that [`Self::look`] found, from `offset` on, not beyond its end.
    #[inline(always)]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        assert!(offset + into.len() <= self.length);
        self.bytes.read(self.tail + (HEADING_BYTES + offset) as u64, into);
    }

    /// That datagram is done; its room is the sender's again.
    #[inline(always)]
    pub fn take(&mut self) {
        self.tail += record_bytes(self.length);
        self.length = 0;
        self.own.tail.store(self.tail, Ordering::Relaxed);
        // ORDER: datagram-tail
        self.direction.receiver.tail.store(self.tail, ordering(Label::DatagramTailStore, Ordering::Release));
    }
}

/// Whether there is something in the ring, without the lock; what is broken has nothing.
#[inline(always)]
pub fn waiting(direction: &SlotDirection, own: &OwnReceiver) -> bool {
    // ORDER: datagram-head
    direction.sender.head.load(ordering(Label::DatagramHeadLoad, Ordering::Acquire)) != own.tail.load(Ordering::Relaxed)
        && own.broken.load(Ordering::Relaxed) == 0
}

/// From now on the ring is looked at: the sender may use it.
pub fn open(direction: &SlotDirection) {
    direction.watch.want_kernel.store(0, Ordering::SeqCst);
}

/// The receiver may sleep soon. Then: [`sleeper_barrier`], and no sleep before nobody [`is_inside`] and nothing is
/// [`waiting`].
pub fn close(direction: &SlotDirection) {
    direction.watch.want_kernel.store(1, Ordering::SeqCst);
}

/// Orders the closing before the look that follows it, for all senders.
pub fn sleeper_barrier(fences: bool) {
    // ORDER: datagram-gate
    owner_barrier(Label::DatagramGate, fences);
}

/// Whether a sender that may have seen the gate open is still inside: a claim of the peer.
pub fn is_inside(direction: &SlotDirection) -> bool {
    // ORDER: datagram-leave
    direction.watch.sending.load(ordering(Label::DatagramLeaveLoad, Ordering::Acquire)) != 0
}
