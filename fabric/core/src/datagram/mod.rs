//! Datagrams between two processes of a host beside their kernel sockets.
//!
//! A [`DatagramChannel`] is one side of a pair of sockets that have found each other by the rendezvous
//! ([`Streams::offer_pair`](crate::stream::Streams::offer_pair)). Each direction has a ring of datagrams and a *gate*
//! that its receiver opens and closes. While it is closed everything goes by the kernel, and so wakes whoever waits
//! there: nobody is rung from here. The sequence of a receiver that may sleep: [`DatagramChannel::close_gate`] for
//! each, [`sleep_barrier`](crate::stream::sleep_barrier), [`DatagramChannel::settled`] for each until it is true, and
//! no sleep where one is [`DatagramChannel::waiting`].
//!
//! As in [`stream`](crate::stream) nothing here allocates, blocks, or uses the C library's names of system calls, but
//! for the locks, which wait for each other.
//!
//! Not here: which socket has which channels, addresses, what else the kernel has for the program (`weft-sockets`).

use crate::stream::connection::Stream;
use crate::stream::guards::{me, receive_lock, send_lock};
use std::sync::atomic::Ordering;
use weft_device::kernel;
use weft_device::shm::datagram::{self as device, DatagramReceiver, DatagramSender, NextDatagram};
use weft_device::shm::stream::{HowLocked, StreamLock, StreamRing};
use weft_wire::stream::datagram::DatagramHeading;

pub use weft_wire::stream::datagram::{DatagramPeer, LONGEST};

/// One side of a pair. A copyable name, as [`Stream`] is.
#[derive(Clone, Copy)]
pub struct DatagramChannel(Stream);

impl std::fmt::Debug for DatagramChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Channel({:?})", self.0)
    }
}

/// What became of a datagram that was to go by the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentDatagram {
    ByRing,
    /// The receiver sleeps or may sleep, or its ring is full, or it has gone: the kernel's.
    Kernel,
}

impl DatagramChannel {
    /// The gate is closed at first.
    pub(crate) fn begin(stream: Stream) -> Self {
        device::close(stream.incoming());
        Self(stream)
    }

    /// From now on the peer may send into the ring whenever the gate is open.
    pub fn attach(&self) {
        self.0.attach(0);
    }

    /// Opens the gate: the ring is looked at from now on.
    pub fn open_gate(&self) {
        device::open(self.0.incoming());
    }

    pub fn close_gate(&self) {
        device::close(self.0.incoming());
    }

    /// After the gate was closed and the barrier made: whether no sender is inside any more that saw it open.
    pub fn settled(&self) -> bool {
        !device::is_inside(self.0.incoming())
    }

    /// Whether a datagram is in the ring. No lock.
    #[inline(always)]
    pub fn waiting(&self) -> bool {
        self.0.peer_attached() && device::waiting(self.0.incoming(), &self.0.own().receiver)
    }

    /// A number that is another one after each arrival.
    #[inline]
    pub fn arrived(&self) -> u64 {
        self.0.arrived()
    }

    /// Bytes in our ring that the peer has not taken, by its own word.
    pub fn unread_by_peer(&self) -> u64 {
        self.0.own().sender.head.load(Ordering::Relaxed).saturating_sub(self.0.consumed())
    }

    /// Bytes that the peer has ever taken, by its own word.
    #[inline]
    pub fn consumed(&self) -> u64 {
        self.0.consumed()
    }

    /// Whether the peer's side is not used any more, or its process has ended as far as the rendezvous has said.
    #[inline]
    pub fn peer_gone(&self) -> bool {
        let generation = self.0.generation();
        self.0.incoming().sender.gone.load(Ordering::Relaxed) == generation
            || self.0.arena.retired.load(Ordering::Relaxed) != 0
    }

    /// Whether every process of the peer's side has ended: asks the kernel.
    pub fn peer_dead(&self) -> bool {
        // The first thread may have ended before the others, which the second look sees.
        let alive = |process: u32| kernel::is_alive(process) || kernel::is_running(process as i32);
        !self.0.arena.processes(1 - self.0.arena.side()).any(|process| process != 0 && alive(process))
    }

    /// Sends a datagram of `length` bytes that `write` hands over piece by piece, all of them, by the ring.
    /// `after_kernel`: something was sent by the kernel since the last one.
    #[inline]
    pub fn send(&self, length: usize, after_kernel: bool, write: impl FnOnce(&mut dyn FnMut(&[u8]))) -> SentDatagram {
        let lock = send_lock(&self.0.own().sender);
        // A signal handler that interrupted the holder goes by the kernel.
        if lock.acquire(me()) == HowLocked::Nested {
            return SentDatagram::Kernel;
        }
        let _unlock = Unlock(lock);
        let mut sender = self.sender();
        if !sender.enter(self.0.generation(), self.0.arena.fences()) {
            return SentDatagram::Kernel;
        }
        let fits = sender.begin(DatagramHeading { length: length as u32, after_kernel });
        if fits {
            write(&mut |piece| sender.append(piece));
            sender.publish();
        }
        sender.leave();
        if fits { SentDatagram::ByRing } else { SentDatagram::Kernel }
    }

    /// Exclusive use of the receiving ring; `None` for a signal handler that interrupted the holder, and before the
    /// peer has attached: until then its lines are those of whoever had the slot before.
    #[inline]
    pub fn lock_receive(&self) -> Option<DatagramReceiveGuard> {
        if !self.0.peer_attached() {
            return None;
        }
        let lock = receive_lock(&self.0.own().receiver);
        if lock.acquire(me()) == HowLocked::Nested {
            return None;
        }
        let side = 1 - self.0.arena.side();
        let ring = self.0.arena.ring(self.0.slot, side);
        let receiver = DatagramReceiver::new(self.0.incoming(), &self.0.own().receiver, ring);
        Some(DatagramReceiveGuard { receiver, _unlock: Unlock(lock) })
    }

    /// Calls `each` with what the peer, who reads no more, has left in our ring, once: see
    /// [`unread`](DatagramSender::unread) of the device. Nothing goes by the ring any more.
    pub fn take_back(&self, each: impl FnMut(usize, &dyn Fn(&mut [u8])) -> bool) {
        let lock = send_lock(&self.0.own().sender);
        if lock.acquire(me()) == HowLocked::Yes {
            let _unlock = Unlock(lock);
            self.sender().unread(each);
            self.0.own().sender.broken.store(1, Ordering::Relaxed);
        }
    }

    /// Whether the peer has written what cannot be, or [`Self::give_up`] was called.
    pub fn is_broken(&self) -> bool {
        self.0.own().receiver.broken.load(Ordering::Relaxed) != 0
    }

    /// Nothing is believed any more that comes by this ring.
    pub fn give_up(&self) {
        self.0.own().receiver.broken.store(1, Ordering::Relaxed);
    }

    #[inline(always)]
    fn sender(&self) -> DatagramSender<'static, StreamRing<'static>> {
        let ring = self.0.arena.ring(self.0.slot, self.0.arena.side());
        DatagramSender::new(self.0.outgoing(), &self.0.own().sender, ring)
    }

    /// Gives our side back. No thread of this process may use any copy afterwards.
    pub fn leave(&self) {
        self.0.drop_ref();
    }
}

struct Unlock(StreamLock<'static>);

impl Drop for Unlock {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Exclusive use of a receiving ring.
pub struct DatagramReceiveGuard {
    receiver: DatagramReceiver<'static, StreamRing<'static>>,
    _unlock: Unlock,
}

impl DatagramReceiveGuard {
    /// The datagram that comes next: its length, and whether what the kernel has came before it.
    #[inline]
    pub fn first(&mut self) -> Option<(usize, bool)> {
        match self.receiver.look() {
            NextDatagram::Datagram(heading) => Some((heading.length as usize, heading.after_kernel)),
            NextDatagram::Nothing | NextDatagram::Broken => None,
        }
    }

    /// Copies bytes of it, from `offset` on, not beyond its end.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        self.receiver.read(offset, into);
    }

    /// It is done.
    #[inline]
    pub fn take(&mut self) {
        self.receiver.take();
    }
}
