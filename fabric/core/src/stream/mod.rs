//! Byte streams between two processes of a host beside a connected kernel socket, the *anchor*.
//!
//! Each direction begins in the kernel, moves to a ring of bytes in shared memory when the other side is attached, and
//! may go back to the kernel once, for good. Everything else about the connection (its end, its errors, its addresses)
//! stays the kernel's. Nothing here allocates, locks in the C library or blocks, except the guards, which wait for
//! each other.
//!
//! Counting: `sent_by_kernel` and `received_by_kernel` are all bytes of the connection's life that went through the
//! kernel in that direction, as the caller counts them.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// What became of showing an anchor to the rendezvous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Shown. Mail comes if the other end is shown, too.
    Sent,
    /// There is no rendezvous, or it is busy. May be tried again later.
    Unreachable,
}

/// Why a connection stays with the kernel, or went back to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// Not a TCP stream, or not between two addresses of this host.
    NotLocal = 0,
    /// Nobody answers as rendezvous.
    Unreachable = 1,
    /// The byte counts never agreed with the kernel's.
    Uncountable = 2,
    /// Urgent data, or another option that only the kernel has.
    Option = 3,
    /// Standard input and output of C on the descriptor.
    Stdio = 4,
    /// The descriptor was inherited over exec.
    Exec = 5,
    /// The descriptor was handed to another process.
    Passed = 6,
    /// Asynchronous or vectored kernel interfaces (io_uring, aio, splice).
    KernelCall = 7,
    /// The other side asked for it.
    Peer = 8,
    /// The other side broke the rules of the ring.
    Broken = 9,
    /// The user's rules.
    Rule = 10,
    /// No memory, no descriptor or no slot.
    Resources = 11,
}

/// Number of [`Reason`]s.
pub const REASONS: usize = 12;

/// Counters of this process, on the page that it shares with the rendezvous.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Counters {
    pub accelerated: AtomicU64,
    pub bytes_ring_in: AtomicU64,
    pub bytes_ring_out: AtomicU64,
    pub bytes_kernel_in: AtomicU64,
    pub bytes_kernel_out: AtomicU64,
    /// Bells rung.
    pub bells: AtomicU64,
    /// Sleeps in the kernel.
    pub sleeps: AtomicU64,
    /// By [`Reason`].
    pub fallen_back: [AtomicU64; REASONS],
}

impl Counters {
    pub fn fell_back(&self, reason: Reason) {
        self.fallen_back[reason as usize].fetch_add(1, Ordering::Relaxed);
    }
}

static NO_COUNTERS: Counters = Counters {
    accelerated: AtomicU64::new(0),
    bytes_ring_in: AtomicU64::new(0),
    bytes_ring_out: AtomicU64::new(0),
    bytes_kernel_in: AtomicU64::new(0),
    bytes_kernel_out: AtomicU64::new(0),
    bells: AtomicU64::new(0),
    sleeps: AtomicU64::new(0),
    fallen_back: [const { AtomicU64::new(0) }; REASONS],
};

/// This process's streams. All state is the process's own and static: any number of these are the same one.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    _private: (),
}

impl Streams {
    /// No system call. Connects to the rendezvous at the first offer.
    pub const fn open() -> Self {
        Self { _private: () }
    }

    /// To be called in the child right after a fork, before any other call here: the child is a process of its own for
    /// the rendezvous. Streams that it inherited stay usable; each that it keeps needs [`Stream::add_ref`] (by the
    /// parent before the fork, or by the child now).
    pub fn forked(&self) {}

    /// Shows `anchor`, a connected TCP socket, to the rendezvous. Never blocks. Once per cookie is enough: the caller
    /// remembers. A failed connection to the rendezvous is remembered for a second.
    pub fn offer(&self, anchor: RawFd, cookie: u64) -> Offer {
        let _ = (anchor, cookie);
        Offer::Unreachable
    }

    /// Whether [`Self::take_mail`] may have something. One load.
    #[inline]
    pub fn has_mail(&self) -> bool {
        false
    }

    /// The next connection for which the rendezvous has found both ends: cookie of our anchor and our side, which is
    /// not attached yet. `None` also while another thread takes mail.
    pub fn take_mail(&self) -> Option<(u64, Stream)> {
        None
    }

    /// Gives a stream back that was never attached; the connection stays with the kernel.
    pub fn decline(&self, stream: Stream) {
        let _ = stream;
    }

    /// Calls `each` with the token of every stream that came alive since (data, room or a request of the peer, for
    /// which a set was armed). Tokens are those of [`Stream::set_token`]; one may come more than once, and for nothing.
    pub fn scan_active(&self, each: impl FnMut(u32)) {
        let _ = each;
    }

    /// The owner of a set's bell is about to sleep on it: from now on senders ring it. Order: arm what is to be waited
    /// for, `lie_down`, [`sleep_barrier`], [`Self::scan_active`] and a look at what was armed, then the kernel's sleep,
    /// then [`Self::get_up`].
    pub fn lie_down(&self, bell: BellAddress) {
        let _ = bell;
    }

    /// The set's owner is awake: senders only mark streams active.
    pub fn get_up(&self, bell: BellAddress) {
        let _ = bell;
    }

    /// Counters of this process. Not to be kept across a fork.
    pub fn counters(&self) -> &'static Counters {
        &NO_COUNTERS
    }
}

/// Where a sleeper can be rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BellAddress(u64);

/// Who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// A thread that sleeps for this stream now: its bell is rung by the next byte.
    Wait,
    /// A set of many streams: the stream is marked active by the next byte, and the bell rung only between
    /// [`Streams::lie_down`] and [`Streams::get_up`].
    Set,
}

/// What a receiver finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readable {
    /// So many bytes in the ring.
    Ring(usize),
    /// The kernel must be asked (not switched yet, or for good).
    Kernel,
    /// Switched to the ring, and nothing in it. Not an end of the stream: only the kernel knows that.
    Empty,
    /// The peer broke the rules: shut the anchor down.
    Broken,
}

/// What a sender finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writable {
    /// So many bytes can be pushed, enough for the kernel to call a socket writable.
    Ring(usize),
    /// The kernel must be asked.
    Kernel,
    /// Less than a quarter of the ring is free.
    Full,
    /// The peer broke the rules: shut the anchor down.
    Broken,
}

/// Where a sender's next bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendRoute {
    /// To the kernel.
    Kernel,
    /// To the kernel, or, after [`SendGuard::switch_to_ring`], to the ring.
    MaySwitch,
    Ring,
    /// The receiver wants the kernel: [`SendGuard::give_back`] first.
    GiveBack,
    /// The peer broke the rules: shut the anchor down.
    Broken,
}

/// Where a receiver's next bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveRoute {
    /// From the kernel, without waiting there (`MSG_DONTWAIT`) and while the guard is held; with a limit, not more
    /// than so many bytes before the next look.
    Kernel {
        at_most: Option<u64>,
    },
    Ring,
    /// The peer broke the rules: shut the anchor down.
    Broken,
}

/// One side of a connection. A copyable name: all state is in shared memory and lives until the last reference of this
/// side is dropped.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    _private: (),
}

impl Stream {
    /// Promises to follow the switches: from now on the peer may send into the ring, and no thread of this side may
    /// wait inside a receive call of the kernel on the anchor.
    pub fn attach(&self, token: u32) {
        self.set_token(token);
    }

    /// What [`Streams::scan_active`] says for this stream in this process.
    pub fn set_token(&self, token: u32) {
        let _ = token;
    }

    /// Exclusive use of our sending direction, among threads and processes that share it. Waits (spins, then sleeps) for
    /// the other; one whose holder died is taken over. A signal handler that interrupted a holder gets a guard whose
    /// ring is full.
    pub fn lock_send(&self) -> SendGuard {
        SendGuard { _stream: *self }
    }

    /// Exclusive use of our receiving direction. As [`Self::lock_send`]; the guard of an interrupted holder's signal
    /// handler has an empty ring.
    pub fn lock_receive(&self) -> ReceiveGuard {
        ReceiveGuard { _stream: *self }
    }

    /// What a receiver would find, without the lock.
    pub fn readable(&self, received_by_kernel: u64) -> Readable {
        let _ = received_by_kernel;
        Readable::Kernel
    }

    /// What a sender would find, without the lock.
    pub fn writable(&self) -> Writable {
        Writable::Kernel
    }

    /// The peer wants its incoming direction back in the kernel, and waits for [`SendGuard::give_back`].
    pub fn asked_back(&self) -> bool {
        false
    }

    /// Asks to be woken by the next byte (or request of the peer). False when another waiter is armed: look again after
    /// a few milliseconds. After arming: [`sleep_barrier`], look again, then sleep on the bell and the anchor.
    pub fn arm_receive(&self, bell: BellAddress, kind: Waiter) -> bool {
        let _ = (bell, kind);
        false
    }

    /// Takes the wish back. Nothing happens when it has been answered or was another's.
    pub fn disarm_receive(&self, bell: BellAddress, kind: Waiter) {
        let _ = (bell, kind);
    }

    /// As [`Self::arm_receive`], for a quarter of the ring being free.
    pub fn arm_space(&self, bell: BellAddress, kind: Waiter) -> bool {
        let _ = (bell, kind);
        false
    }

    pub fn disarm_space(&self, bell: BellAddress, kind: Waiter) {
        let _ = (bell, kind);
    }

    /// Remembers `O_NONBLOCK`, which belongs to the open description and so to all who share this side.
    pub fn set_nonblocking(&self, on: bool) {
        let _ = on;
    }

    pub fn nonblocking(&self) -> bool {
        false
    }

    /// Hint for the peer that this side is closing or has shut its sending direction: look at the kernel. Also wakes
    /// whoever waits there.
    pub fn set_closing(&self) {}

    pub fn peer_closing(&self) -> bool {
        false
    }

    /// Whether the peer's side is attached.
    pub fn peer_attached(&self) -> bool {
        false
    }

    /// One more process holds this side (fork).
    pub fn add_ref(&self) {}

    /// This process holds it no more. The last one gives the slot back; what was sent stays for the peer to read. No
    /// thread of this process may use any copy afterwards.
    pub fn drop_ref(&self) {}
}

/// Exclusive use of a sending direction.
#[derive(Debug)]
pub struct SendGuard {
    _stream: Stream,
}

impl SendGuard {
    pub fn route(&mut self) -> SendRoute {
        SendRoute::Kernel
    }

    /// After [`SendRoute::MaySwitch`]: everything from now on goes by the ring. Call only when all `sent_by_kernel`
    /// bytes were accepted by the kernel.
    pub fn switch_to_ring(&mut self, sent_by_kernel: u64) {
        let _ = sent_by_kernel;
    }

    /// Copies as many of `bytes` into the ring as fit: 0 when it is full. Longer pieces become visible on the way; the
    /// rest with [`Self::publish`].
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let _ = bytes;
        0
    }

    /// Makes everything pushed visible and wakes who waits for it. Dropping the guard does so, too.
    pub fn publish(&mut self) {}

    /// Everything from now on goes by the kernel, for good; the peer reads the rest of the ring first. False when the
    /// receiver did not let go of the kernel in time (it is stopped in the middle of a call): shut the anchor down.
    pub fn switch_to_kernel(&mut self) -> bool {
        true
    }

    /// Answers [`SendRoute::GiveBack`]: sends what the receiver has not read through `write` (the kernel, which may
    /// block), then switches to the kernel for good.
    ///
    /// # Errors
    /// Those of `write`; on `WouldBlock` and `Interrupted` call it again to go on: nothing is sent twice.
    pub fn give_back(&mut self, write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<()> {
        let _ = write;
        Ok(())
    }
}

/// Exclusive use of a receiving direction.
#[derive(Debug)]
pub struct ReceiveGuard {
    _stream: Stream,
}

impl ReceiveGuard {
    pub fn route(&mut self, received_by_kernel: u64) -> ReceiveRoute {
        let _ = received_by_kernel;
        ReceiveRoute::Kernel { at_most: None }
    }

    /// Bytes in the ring, not yet pulled.
    pub fn available(&mut self) -> usize {
        0
    }

    /// Moves bytes out of the ring: 0 when it is empty.
    pub fn pull(&mut self, into: &mut [u8]) -> usize {
        let _ = into;
        0
    }

    /// Copies bytes `offset` bytes ahead without taking them.
    pub fn peek(&self, offset: u64, into: &mut [u8]) -> usize {
        let _ = (offset, into);
        0
    }

    /// Drops up to `bytes` bytes; answers how many.
    pub fn skip(&mut self, bytes: usize) -> usize {
        let _ = bytes;
        0
    }

    /// Gives the room back and wakes who waits for it. Dropping the guard does so, too.
    pub fn publish(&mut self) {}

    /// Asks the sender to come back to the kernel, and pulls nothing more from the ring. True when the kernel may be
    /// read from now on by whoever likes: nothing is left in the ring. False: the sender must answer first; call again,
    /// and shut the anchor down when that takes too long.
    pub fn want_kernel(&mut self) -> bool {
        true
    }
}

/// A bell of this process: a descriptor that becomes readable when somebody rings. Taken from a pool.
#[derive(Debug)]
pub struct Bell {
    address: BellAddress,
    descriptor: RawFd,
}

impl Bell {
    /// # Errors
    /// When there are no descriptors left.
    pub fn take() -> io::Result<Self> {
        Err(io::Error::from_raw_os_error(libc::EMFILE))
    }

    pub fn address(&self) -> BellAddress {
        self.address
    }

    /// Readable when rung. The descriptor stays this module's.
    pub fn fd(&self) -> RawFd {
        self.descriptor
    }

    /// Makes it unreadable again.
    pub fn drain(&self) {}

    pub fn give_back(self) {}
}

/// The sleeper's barrier between arming and the last look: orders them for all senders.
pub fn sleep_barrier() {}
