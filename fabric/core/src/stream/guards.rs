//! Exclusive use of the directions of a stream.
//!
//! Locks are taken in this order: an epoll set, then a set inside it; and, under none of those, a receiving direction,
//! then the sending one. The holder of a direction may be stopped in another process, or be in a handler that waits for
//! a set. Locks name threads by their numbers, so the rendezvous joins only processes of its own process namespace, and
//! a fork into another one hands everything back first.

use super::bells::ring;
use super::connection::Stream;
use std::cell::Cell;
use std::io;
use weft_device::kernel;
use weft_device::shm::stream::lines::{OwnReceiver, OwnSender};
use weft_device::shm::stream::{
    ByteSource, HowLocked, SendTarget, StreamLock, StreamReceiver, StreamRing, StreamSender,
};

thread_local! {
    /// Number of the thread, 0 when not asked yet. Nothing to be dropped, nothing to be initialised.
    static ME: Cell<u32> = const { Cell::new(0) };
}

#[inline(always)]
pub(crate) fn me() -> u32 {
    ME.with(|me| {
        if me.get() == 0 {
            me.set(kernel::thread());
        }
        me.get()
    })
}

/// In the child of a fork: the one thread has another number.
pub(super) fn forked() {
    ME.with(|me| me.set(0));
}

#[inline(always)]
pub(crate) fn send_lock(own: &OwnSender) -> StreamLock<'_> {
    StreamLock { word: &own.lock, contended: &own.contended }
}

#[inline(always)]
pub(crate) fn receive_lock(own: &OwnReceiver) -> StreamLock<'_> {
    StreamLock { word: &own.lock, contended: &own.contended }
}

/// Exclusive use of a sending direction.
pub struct SendGuard {
    pub(super) stream: Stream,
    pub(super) sender: StreamSender<'static, StreamRing<'static>>,
    pub(super) lock: StreamLock<'static>,
    pub(super) held: HowLocked,
}

impl SendGuard {
    #[inline(always)]
    pub fn route(&mut self) -> SendTarget {
        if self.held == HowLocked::Nested { SendTarget::Ring } else { self.sender.route() }
    }

    /// After [`SendTarget::MaySwitch`]: everything from now on goes by the ring. Call only when all `sent_by_kernel`
    /// bytes were accepted by the kernel.
    pub fn switch_to_ring(&mut self, sent_by_kernel: u64) {
        self.sender.switch_to_ring(sent_by_kernel);
    }

    /// Copies as many of `bytes` into the ring as fit: 0 when it is full. Longer pieces become visible on the way; the
    /// rest with [`Self::publish`].
    #[inline(always)]
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        if self.held == HowLocked::Nested { 0 } else { self.sender.push(bytes, ring) }
    }

    /// Whether this is the guard of a signal handler that interrupted the holder: nothing can be done before it
    /// returns.
    pub fn is_nested(&self) -> bool {
        self.held == HowLocked::Nested
    }

    /// Free bytes of the ring.
    pub fn room(&mut self) -> usize {
        if self.held == HowLocked::Nested { 0 } else { self.sender.free(u64::MAX) as usize }
    }

    /// Makes everything pushed visible and wakes who waits for it. Dropping the guard does so, too.
    #[inline(always)]
    pub fn publish(&mut self) {
        if self.held == HowLocked::Yes {
            ring(self.sender.publish());
        }
    }

    /// Everything from now on goes by the kernel, for good; the peer reads the rest of the ring first. Does not wait.
    /// False as long as bytes must not be given to the kernel yet ([`SendTarget::NotYet`]); call it again.
    pub fn switch_to_kernel(&mut self) -> bool {
        if self.held == HowLocked::Nested {
            return false;
        }
        ring(self.sender.switch_to_kernel());
        self.sender.settled()
    }

    /// See [`StreamSender::ask_to_leave`].
    pub fn ask_to_leave(&self) {
        self.sender.ask_to_leave();
    }

    /// Nobody will read the ring any more, or wants it back: everything goes by the kernel for good, and the bytes that
    /// are there are not counted any more ([`Stream::left_unread`]). Answers how many they were; 0 for all calls but
    /// one.
    pub fn abandon_ring(&mut self) -> u64 {
        if self.held == HowLocked::Nested {
            return 0;
        }
        let left = self.stream.left_unread();
        ring(self.sender.abandon());
        left
    }

    /// Answers [`SendTarget::GiveBack`]: sends what the receiver has not read through `write` (the kernel, which may
    /// block), then switches to the kernel for good.
    ///
    /// # Errors
    /// Those of `write`; on `WouldBlock` and `Interrupted` call it again to go on: nothing is sent twice.
    pub fn give_back(&mut self, write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<()> {
        if self.held == HowLocked::Nested {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        }
        self.sender.give_back(write).map(ring)
    }
}

impl Drop for SendGuard {
    #[inline(always)]
    fn drop(&mut self) {
        if self.held == HowLocked::Yes {
            ring(self.sender.publish());
            self.sender.end();
            let given_back = self.sender.has_given_back();
            // Before the other lock is taken: nobody who holds one of them waits for the other.
            self.lock.release();
            if given_back && self.stream.owes_wish() {
                self.stream.lock_receive().want_kernel_too();
            }
        }
    }
}

/// Exclusive use of a receiving direction.
pub struct ReceiveGuard {
    pub(super) stream: Stream,
    pub(super) receiver: StreamReceiver<'static, StreamRing<'static>>,
    pub(super) lock: StreamLock<'static>,
    pub(super) held: HowLocked,
}

impl ReceiveGuard {
    #[inline(always)]
    pub fn route(&mut self, received_by_kernel: u64) -> ByteSource {
        if self.held == HowLocked::Nested { ByteSource::Ring } else { self.receiver.route(received_by_kernel) }
    }

    /// Whether this is the guard of a signal handler that interrupted the holder: nothing can be done before it
    /// returns.
    pub fn is_nested(&self) -> bool {
        self.held == HowLocked::Nested
    }

    /// Bytes in the ring, not yet pulled.
    pub fn available(&mut self) -> usize {
        if self.held == HowLocked::Nested { 0 } else { self.receiver.available(u64::MAX) as usize }
    }

    /// Moves bytes out of the ring: 0 when it is empty.
    #[inline(always)]
    pub fn pull(&mut self, into: &mut [u8]) -> usize {
        if self.held == HowLocked::Nested { 0 } else { self.receiver.pull(into, ring) }
    }

    /// What follows the bytes that [`Self::route`] has just sent us to the kernel for (none, if it answered the ring):
    /// so many in the ring, and whether the kernel has the bytes behind those. Nothing where there was no limit.
    pub fn ahead(&mut self) -> (usize, bool) {
        if self.held == HowLocked::Nested {
            return (0, false);
        }
        let (bytes, over) = self.receiver.ahead();
        (bytes as usize, over)
    }

    /// Copies bytes of the ring `offset` bytes ahead without taking them.
    pub fn peek(&mut self, offset: u64, into: &mut [u8]) -> usize {
        if self.held == HowLocked::Nested { 0 } else { self.receiver.peek(offset, into) }
    }

    /// Drops up to `bytes` bytes; answers how many.
    pub fn skip(&mut self, bytes: usize) -> usize {
        if self.held == HowLocked::Nested { 0 } else { self.receiver.skip(bytes as u64) as usize }
    }

    /// Gives the room back and wakes who waits for it. Dropping the guard does so, too.
    #[inline(always)]
    pub fn publish(&mut self) {
        if self.held == HowLocked::Yes {
            ring(self.receiver.publish());
        }
    }

    /// Asks the sender to come back to the kernel, and pulls nothing more from the ring. True when the kernel may be
    /// read from now on by whoever likes: nothing is left in the ring. False: the sender must answer first; call again,
    /// and shut the anchor down when that takes too long.
    pub fn want_kernel(&mut self) -> bool {
        if self.held == HowLocked::Nested {
            return false;
        }
        ring(self.receiver.publish());
        let done = self.receiver.want_kernel();
        if !done {
            self.stream.rouse_peer();
        }
        done
    }

    /// The peer has handed the connection back, or would rather send by the kernel: what it has sent comes back to the
    /// kernel, too, before somebody needs that who cannot read the ring.
    #[cold]
    pub(super) fn want_kernel_too(&mut self) {
        if self.held == HowLocked::Yes {
            ring(self.receiver.publish());
            self.receiver.want_kernel_too();
            self.stream.rouse_peer();
        }
    }

    /// The kernel has said that the stream ends: what a dead peer could not give back any more is read from the ring
    /// after all. To be called before the end is believed; then ask [`Self::route`] again.
    pub fn kernel_ended(&mut self, received_by_kernel: u64) {
        if self.held == HowLocked::Yes {
            self.receiver.kernel_ended(received_by_kernel);
        }
    }

    /// The caller has taken everything that was there and will ever be: what is read from now on is what it has put in
    /// the place of the anchor.
    pub fn finish(&mut self) {
        if self.held == HowLocked::Yes {
            ring(self.receiver.publish());
            self.receiver.finish();
        }
    }

    /// Whether the ring is not believed any more.
    pub fn is_broken(&self) -> bool {
        self.receiver.is_broken()
    }
}

impl Drop for ReceiveGuard {
    #[inline(always)]
    fn drop(&mut self) {
        if self.held == HowLocked::Yes {
            ring(self.receiver.publish());
            self.receiver.end();
            self.lock.release();
        }
    }
}
