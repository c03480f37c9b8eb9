//! The device contract, as a list of promises.
//!
//! A device promises:
//! 1. *All or nothing*: a packet that [`Posted::Sent`] accepted arrives whole, exactly once (on reliable devices) or
//!    at most once (on others); a packet that it did not accept leaves no trace. A part of a stream
//!    ([`Kind::is_streamed`](weft_wire::cell::Kind::is_streamed)) may arrive as several, the later ones as
//!    [`Kind::More`](weft_wire::cell::Kind::More).
//! 2. *Order*: on ordered devices packets from one peer arrive in the order in which they were posted.
//! 3. *Would block is an answer*: posting never waits. [`Posted::Full`] means "poll, then try again".
//! 4. *Progress*: if the receiver keeps polling, a sender that keeps trying gets through.
//! 5. *Bounded*: one `poll` handles a bounded number of packets. On devices of shared memory it makes no system call,
//!    on others a bounded number, and in most polls none.
//! 6. *No lost wake-up*: after [`Device::arm`] answered true, a packet posted by anyone ends the sleep.
//! 7. *Isolation*: whatever a peer writes, the worst that happens is [`PeerFault`] for that peer; after it, nothing
//!    more arrives from the peer, and the others do not notice.
//!
//! What differs between devices and matters above them is declared ([`Capabilities`]) or answered ([`Device`]'s
//! questions), so that nobody above asks which device it is. The promises are tested by `conformance/suite.rs`.

use crate::sync::{AtomicU64, Ordering};
use std::marker::PhantomData;
use weft_wire::cell::{Head, INLINE_BYTES, INLINE_WORDS};

/// What a device can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Largest bulk payload of one packet, bytes; of one that is part of a stream it may be more.
    pub largest_packet: usize,
    pub reliable: bool,
    pub ordered: bool,
    /// Largest payload that travels with the header, bytes.
    pub inline_bytes: usize,
    /// What is accepted may leave only later, while somebody polls: until then [`Device::has_tail`].
    pub may_wait: bool,
    /// Long messages go in packets of nearly any length, which take little of either side beside their bytes.
    pub streams: bool,
    /// Packets go through memory of both sides, who run on one host.
    pub shares_memory: bool,
}

impl Capabilities {
    /// Those of a device that is reliable and ordered, and has nothing to declare besides.
    pub const fn plain(largest_packet: usize) -> Self {
        Self {
            largest_packet,
            reliable: true,
            ordered: true,
            inline_bytes: INLINE_BYTES,
            may_wait: false,
            streams: false,
            shares_memory: false,
        }
    }
}

/// The answer to a post.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Posted {
    /// Accepted, with so many bytes of bulk payload (a short post: 0).
    Sent(usize),
    /// No room now. Nothing happened.
    #[default]
    Full,
}

/// Nothing more comes from a peer, and nothing reaches it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerFault {
    /// It broke the rules of the device; its packets are no longer read.
    #[error("peer {peer} wrote nonsense into its ring: {what}")]
    Nonsense { peer: u32, what: &'static str },
    /// It has no memory for packets to us, and has said so ([`NoMemory`] there).
    #[error("rank {peer} has no shared memory for messages to this rank")]
    CutOff { peer: u32 },
    /// It cannot be reached, or has ended, or broke the rules, as the story says, which names it.
    #[error("{story}")]
    Lost { peer: u32, story: String },
}

impl PeerFault {
    pub fn peer(&self) -> u32 {
        match self {
            Self::Nonsense { peer, .. } | Self::CutOff { peer } | Self::Lost { peer, .. } => *peer,
        }
    }
}

/// The memory through which packets to a peer would go is not to be had. Nothing leaves for the peer any more.
#[derive(Debug, thiserror::Error)]
#[error("no shared memory for messages to rank {peer}: {cause}")]
pub struct NoMemory {
    pub peer: u32,
    /// How much was wanted, and what allows no more.
    pub cause: std::io::Error,
}

/// Bytes that a peer may change while we look: they can only be copied out.
#[derive(Clone, Copy)]
pub struct Foreign<'a> {
    at: *const u8,
    length: usize,
    _lives: PhantomData<&'a u8>,
}

impl<'a> Foreign<'a> {
    /// # Safety
    /// `at` is readable for `length` bytes during `'a`.
    pub(crate) unsafe fn new(at: *const u8, length: usize) -> Self {
        Self { at, length, _lives: PhantomData }
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Copies the first `n` bytes, or all if there are fewer; answers how many.
    ///
    /// # Safety
    /// `to` is writable for that many bytes.
    #[inline]
    pub unsafe fn copy_to(&self, to: *mut u8, n: usize) -> usize {
        let n = n.min(self.length);
        // Received where it was to go.
        if std::ptr::eq(self.at, to) {
            return n;
        }
        // SAFETY: readable by the invariant of the type, writable by the caller's promise; shared memory and private
        // memory do not overlap. A peer that writes meanwhile spoils only the bytes that it sent.
        unsafe { crate::copying::copy(self.at, to, n) };
        n
    }

    /// Copies the first bytes to a slice, as many as it has or there are; answers how many.
    pub fn copy_into(&self, to: &mut [u8]) -> usize {
        // SAFETY: no more than the slice has.
        unsafe { self.copy_to(to.as_mut_ptr(), to.len()) }
    }

    /// As [`Self::copy_to`], with stores past the caches: for bytes that would leave them before they are read.
    /// [`crate::past_caches::settle`] comes before anybody is told of the bytes.
    ///
    /// # Safety
    /// As [`Self::copy_to`].
    pub unsafe fn copy_past_caches(&self, to: *mut u8, n: usize) -> usize {
        let n = n.min(self.length);
        // SAFETY: as in `copy_to`.
        unsafe { crate::past_caches::copy(self.at, to, n) };
        n
    }
}

/// A packet that has arrived, lent to the [`Sink`] while it handles it.
pub struct Packet<'a> {
    pub from: u32,
    pub head: Head,
    pub inline_bytes: usize,
    pub(crate) words: &'a [AtomicU64; INLINE_WORDS],
    pub bulk: Option<Foreign<'a>>,
}

impl Packet<'_> {
    /// Control word `index`.
    #[inline]
    pub fn word(&self, index: usize) -> u64 {
        self.words[index].load(Ordering::Relaxed)
    }

    /// The inline payload: as many of these bytes as there are of it.
    pub fn inline(&self) -> [u8; INLINE_BYTES] {
        let mut bytes = [0; INLINE_BYTES];
        for (at, word) in bytes.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&self.word(at).to_le_bytes());
        }
        bytes
    }

    /// Copies the first `n` bytes of the inline payload, or all if there are fewer; answers how many.
    ///
    /// # Safety
    /// `to` is writable for that many bytes.
    #[inline]
    pub unsafe fn copy_inline(&self, to: *mut u8, n: usize) -> usize {
        let n = n.min(self.inline_bytes);
        let whole = n / 8;
        for i in 0..whole {
            // SAFETY: i * 8 + 8 <= n, and `to` is writable for n bytes.
            unsafe { to.cast::<u64>().add(i).write_unaligned(self.word(i)) };
        }
        let rest = n % 8;
        if rest > 0 {
            let bytes = self.word(whole).to_le_bytes();
            // SAFETY: whole * 8 + rest == n.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.add(whole * 8), rest) };
        }
        n
    }
}

/// Control words as inline payload.
#[inline]
pub fn bytes_of(control: &[u64]) -> [u8; INLINE_BYTES] {
    let mut bytes = [0; INLINE_BYTES];
    for (to, word) in bytes.chunks_exact_mut(8).zip(control) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Inline payload as the words of a cell.
#[inline]
pub fn words_of(inline: &[u8]) -> [u64; INLINE_WORDS] {
    let mut words = [0; INLINE_WORDS];
    for (word, bytes) in words.iter_mut().zip(inline.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
    words
}

/// Hands on a packet that lies in memory of our own. An error is the sink's: the packet is against the rules above.
#[inline]
pub fn hand_on<S: Sink>(
    sink: &mut S,
    from: u32,
    head: Head,
    inline: &[u8],
    bulk: Option<&[u8]>,
) -> Result<(), &'static str> {
    // SAFETY: the bytes are ours and outlive the call.
    let bulk = bulk.map(|bulk| unsafe { Foreign::new(bulk.as_ptr(), bulk.len()) });
    let words = words_of(inline).map(AtomicU64::new);
    sink.handle_packet(Packet { from, head, inline_bytes: inline.len(), words: &words, bulk })
}

/// Memory into which bytes may be received, one at least.
#[derive(Debug)]
pub struct ReceiveRoom<'a> {
    at: *mut u8,
    bytes: usize,
    _lives: PhantomData<&'a mut u8>,
}

impl ReceiveRoom<'_> {
    /// `None` for no bytes.
    ///
    /// # Safety
    /// `at` is writable for `bytes` bytes during its life, or the kernel says that it is not: only that writes here.
    pub unsafe fn new(at: *mut u8, bytes: usize) -> Option<Self> {
        (bytes > 0).then_some(Self { at, bytes, _lives: PhantomData })
    }

    pub fn at(&self) -> *mut u8 {
        self.at
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Where polled packets go.
pub trait Sink {
    /// An error says why the packet is against the protocol above: the device then treats the peer as one that broke
    /// its own rules, so that nothing more arrives from it.
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), &'static str>;
    fn handle_fault(&mut self, fault: PeerFault);

    /// Where the next bytes go of the stream that is open from this peer by the device that is being polled, if there
    /// is one. What is received there is handed on as any other part.
    fn room(&mut self, from: u32) -> Option<ReceiveRoom<'_>> {
        let _ = from;
        None
    }
}

/// One way of moving packets. See the module's promises. A peer is named by its number in the device.
pub trait Device {
    const CAPABILITIES: Capabilities;

    /// Sends a header and up to [`Capabilities::inline_bytes`] of payload.
    ///
    /// # Safety
    /// `data` is readable for `length` bytes.
    unsafe fn post_short(&mut self, to: u32, head: Head, data: *const u8, length: usize) -> Posted;

    /// Sends a header with control words.
    #[inline]
    fn post_control(&mut self, to: u32, head: Head, control: &[u64]) -> Posted {
        // SAFETY: the slice is readable for its bytes.
        unsafe { self.post_short(to, head, control.as_ptr().cast(), control.len() * 8) }
    }

    /// Sends a header with control words and as many of the `length` bytes at `data` as one packet takes now (at least
    /// one). `length` is not 0.
    ///
    /// # Safety
    /// `data` is readable for `length` bytes.
    unsafe fn post_bulk(&mut self, to: u32, head: Head, control: &[u64], data: *const u8, length: usize) -> Posted;

    /// Hands what has arrived to `sink`; true if anything had. Bounded work.
    fn poll<S: Sink>(&mut self, sink: &mut S) -> bool;

    /// Whether a bulk payload of `length` bytes would leave whole now, as one packet.
    fn takes_whole(&mut self, to: u32, length: usize) -> bool;

    /// Bytes of a message of `length` bytes that best go to a peer in one packet. (In shared memory that is a question
    /// of the machine, which is asked elsewhere.)
    fn packet_bytes(&self, to: u32, length: usize) -> usize {
        let _ = to;
        length.min(Self::CAPABILITIES.largest_packet)
    }

    /// Whether packets to a peer go by a lane now, where each costs little.
    fn goes_by_lane(&mut self, to: u32) -> bool {
        let _ = to;
        false
    }

    /// Whether something that was accepted for a peer has not left.
    fn has_tail(&self, to: u32) -> bool {
        let _ = to;
        false
    }

    /// Whether a peer takes nothing any more.
    fn has_ended(&self, peer: u32) -> bool;

    /// Whether more posts may follow the next ones before the next poll: short ones may then share what the network
    /// carries in one piece, until that poll or [`Self::push_all`].
    fn gather(&mut self, may_follow: bool) {
        let _ = may_follow;
    }

    /// A message to a peer is complete: what waits for company leaves; with `more` that may follow at once, perhaps
    /// later.
    fn push(&mut self, to: u32, more: bool) {
        let _ = (to, more);
    }

    /// All that waits for company leaves.
    fn push_all(&mut self) {}

    /// The next poll looks at everything, also at what is else looked at now and then only.
    fn look_soon(&mut self) {}

    /// Before a sleep: whether the caller may sleep, or must poll.
    fn arm(&mut self) -> bool;

    /// The same for a thread that waits beside one which has armed already and sleeps.
    fn arm_beside(&mut self) -> bool {
        self.arm()
    }

    /// After a sleep that was armed for.
    fn disarm(&mut self) {
        self.look_soon();
    }

    /// Why nothing can be sent to a peer any more, told once.
    fn take_refusal(&mut self) -> Option<NoMemory> {
        None
    }

    /// Takes leave of everybody; what was posted before goes first. Nothing is posted after it.
    fn say_farewell(&mut self) {}

    /// Whether something that was posted has not left this process, for peers that may still take it.
    fn has_output(&self) -> bool {
        false
    }
}
