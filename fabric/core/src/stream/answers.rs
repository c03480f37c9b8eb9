//! What the calls of this room answer.

use weft_wire::stream::tally::KernelOnly;

/// What became of showing an anchor to the rendezvous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnchorOffer {
    /// Shown. Mail comes if the other end is shown, too.
    Sent,
    /// Another thread of this process talks to the rendezvous, or that has its hands full: to be tried again soon.
    Busy,
    /// There is no rendezvous. May be tried again later.
    Unreachable,
    /// The rendezvous is in another process namespace, and answers no process of ours.
    Apart,
    /// The rendezvous is of another version: what it has given cannot be used.
    OtherVersion,
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
    /// The rendezvous is in another process namespace.
    Apart = 12,
    /// Not offered yet: too little has been moved.
    Short = 13,
    /// Not offered: several processes hold the socket.
    Shared = 14,
    /// Offered, and the other end was not.
    Unanswered = 15,
    /// Both ends were offered, and no call has taken it up.
    Untaken = 16,
    /// The rendezvous gives memory of another version.
    OtherVersion = 17,
}

impl Reason {
    /// In the order of their numbers.
    pub const ALL: [Self; REASONS] = [
        Self::NotLocal,
        Self::Unreachable,
        Self::Uncountable,
        Self::Option,
        Self::Stdio,
        Self::Exec,
        Self::Passed,
        Self::KernelCall,
        Self::Peer,
        Self::Broken,
        Self::Rule,
        Self::Resources,
        Self::Apart,
        Self::Short,
        Self::Shared,
        Self::Unanswered,
        Self::Untaken,
        Self::OtherVersion,
    ];
}

/// A reason, and for [`Reason::Option`] what only the kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelReason {
    pub reason: Reason,
    pub option: Option<KernelOnly>,
}

impl From<Reason> for KernelReason {
    fn from(reason: Reason) -> Self {
        Self { reason, option: None }
    }
}

impl From<KernelOnly> for KernelReason {
    fn from(option: KernelOnly) -> Self {
        Self { reason: Reason::Option, option: Some(option) }
    }
}

/// Number of [`Reason`]s.
pub const REASONS: usize = 18;

/// Who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// A thread that sleeps for this stream now: its bell is rung by the next byte.
    Wait,
    /// A set of many streams: the stream is marked active by the next byte, and the bell rung only between
    /// [`super::Streams::lie_down`] and [`super::Streams::get_up`].
    Set,
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
