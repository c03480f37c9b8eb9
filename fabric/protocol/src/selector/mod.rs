//! How a message goes: one decision, of the message, of what leads to its receiver, of what this machine is good at
//! ([`machine`]), and of what was learned of messages before ([`learner`]).
//!
//! [`Rules::send`] is what a sender does, [`Rules::carry`] how bytes that were decided on go by the devices, and
//! [`Rules::answer`] what a receiver does about a message that was asked for or offered. Each answers with its reason.
//! They are functions of their arguments alone; what has to be learned is asked for only where nothing else decides.
//!
//! How a message goes (`n` its bytes):
//! - `n` <= 48: header and payload in one cell.
//! - `n` <= [`Rules::eager`]: without asking, in one packet or in several; or, where that is faster, as an *offer*: the
//!   receiver copies it at once, received or not.
//! - over a connection up to sixteen times that, where the receiver waited for the last ones: without asking as well.
//! - longer, or synchronous: it is asked for. The receiver copies it by loads from memory that its sender shows, or
//!   both sides copy by the kernel, or the sender streams it.

pub mod learner;
pub mod machine;
mod trial;
mod waits;

pub use learner::{BufferKind, Learner};
use std::fmt;
pub use trial::Method;
pub use waits::{ReceiverWord, Waits, may_go};
use weft_wire::cell::INLINE_BYTES;

/// Largest message that may come without asking, whatever the sender's setting. Bounds what a peer's claim can make us
/// allocate.
pub const EAGER_CEILING: u64 = 16 << 20;

/// Longest message that is best sent by datagrams where there is a connection as well: what fits into one datagram
/// anywhere.
const DATAGRAM_BYTES: usize = 1024;
/// The same where datagrams go by a lane, and longest message that datagrams carry as one packet.
pub const LINK_BYTES: usize = 4 * 1024;

/// What leads to a peer, for a message of the length that it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Road {
    /// Rings in shared memory.
    Ring,
    /// Datagrams that take so many bytes of it.
    Datagrams { packet: usize },
    /// Datagrams, and a connection that is better for that length.
    Both,
    /// A connection and nothing else.
    Connection,
    /// That is not known yet.
    Unmet,
}

impl Road {
    /// Whether a message of that length may go over a connection.
    pub fn has_connection(self) -> bool {
        matches!(self, Self::Both | Self::Connection)
    }
}

/// Whether a connection beside datagrams is better for a message sent without asking. Whether those go by a lane is
/// asked for where it matters.
#[inline]
pub fn prefers_connection(length: usize, by_lane: impl FnOnce() -> bool) -> bool {
    length > DATAGRAM_BYTES && (length > LINK_BYTES || !by_lane())
}

/// A message that is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    pub length: usize,
    /// Its sender goes on when it is received, and not before.
    pub synchronous: bool,
    pub kind: BufferKind,
    /// The kernel copies between its sender and its receiver.
    pub copies: bool,
}

/// A message that its sender has asked for or offers, at its receiver.
#[derive(Clone, Copy, Debug)]
pub struct Reception {
    /// Bytes that the receiver wants of it.
    pub bytes: u64,
    pub offered: bool,
    /// It lies in memory of its sender that is mapped here.
    pub shown: bool,
    /// The kernel copies between its sender and its receiver.
    pub copies: bool,
}

/// How a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In a cell, with its header.
    Short,
    /// Without asking, in packets of so many bytes.
    Eager { packet: usize },
    /// Without asking, over the connection.
    EagerByConnection,
    /// It is offered.
    Offer,
    /// It is asked for.
    Ask,
    /// Nothing of it is wanted.
    Nothing,
    /// The receiver copies it by loads.
    CopyShown,
    /// The receiver copies it by the kernel.
    CopyByReceiver,
    /// Both sides copy.
    CopyByBoth,
    /// The sender streams it.
    Stream,
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    FitsCell,
    Synchronous,
    LongerThanEager,
    /// Of all packets this one is the whole message.
    FitsPacket,
    /// Both sides copy at the same time.
    InPackets,
    /// Bytes cost less there than in datagrams.
    ConnectionIsBetter,
    OnlyConnection,
    /// Not a length at which a copy out of the sender's memory may be faster.
    ShortForCopies,
    NoCopies,
    /// `WEFT_SINGLE_COPY_BYTES`.
    Setting,
    Learned,
    IsEmpty,
    IsShown,
    /// Long enough that what both save is more than what agreeing costs.
    LongEnoughForBoth,
    /// The places of the two buffers are such that this processor's copies in the kernel are slow.
    SlowForTheKernel,
    WasOffered,
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FitsCell => "it fits into a cell",
            Self::Synchronous => "its sender waits for its receive",
            Self::LongerThanEager => "longer than WEFT_EAGER_BYTES",
            Self::FitsPacket => "it fits into one packet",
            Self::InPackets => "both sides copy at the same time",
            Self::ConnectionIsBetter => "bytes cost less than in datagrams",
            Self::OnlyConnection => "nothing else leads there",
            Self::ShortForCopies => "too short for a copy by the kernel",
            Self::NoCopies => "copies by the kernel are not allowed",
            Self::Setting => "WEFT_SINGLE_COPY_BYTES says so",
            Self::Learned => "the faster one lately; tried when the length is new, and now and then",
            Self::IsEmpty => "nothing of it is wanted",
            Self::IsShown => "its memory is mapped at the receiver",
            Self::LongEnoughForBoth => "mapped at the receiver, and long enough for both sides",
            Self::SlowForTheKernel => "the kernel copies slowly between these places",
            Self::WasOffered => "it was offered, so nobody may be there to share the work",
        })
    }
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub way: Way,
    pub because: Because,
}

const fn choice(way: Way, because: Because) -> Choice {
    Choice { way, because }
}

/// What decides besides the message: settings, and what is best on this machine. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Largest message sent without asking.
    pub eager: usize,
    /// Smallest message copied by the kernel; `None`: what has been faster lately.
    pub single_copy: Option<usize>,
    /// What is best here.
    pub machine: machine::Best,
}

impl Rules {
    /// Longest message that leaves in one packet, and of ordinary memory without asking anything.
    #[inline]
    pub fn whole(&self) -> usize {
        self.machine.whole.min(self.eager)
    }

    /// Whether a message is worth to be shown, where that can be.
    #[inline]
    pub fn may_show(&self, length: usize) -> bool {
        length >= self.machine.shown_from && self.single_copy.is_none_or(|least| length >= least)
    }

    /// How a message leaves. `learned` is asked where it may leave without asking, and may be offered.
    #[inline]
    pub fn send(&self, message: &Departure, road: Road, learned: impl FnOnce() -> Method) -> Choice {
        let Departure { length, synchronous, kind, copies } = *message;
        if synchronous || length > self.eager {
            let because = if synchronous { Because::Synchronous } else { Because::LongerThanEager };
            return choice(Way::Ask, because);
        }
        if length <= INLINE_BYTES {
            return choice(Way::Short, Because::FitsCell);
        }
        let may_offer = match kind {
            _ if road.has_connection() => false,
            BufferKind::Shown => true,
            BufferKind::Ordinary => copies && self.single_copy.is_none() && length > self.machine.offers_above,
        };
        let carried = self.carry(length, road);
        match may_offer.then(learned) {
            Some(Method::Copy) => choice(Way::Offer, Because::Learned),
            Some(Method::Stream) => Choice { because: Because::Learned, ..carried },
            None => carried,
        }
    }

    /// How bytes of a message go that were decided to go: those of one sent without asking, or of a stream.
    #[inline]
    pub fn carry(&self, length: usize, road: Road) -> Choice {
        let packet = match road {
            Road::Both => return choice(Way::EagerByConnection, Because::ConnectionIsBetter),
            Road::Connection if length <= DATAGRAM_BYTES => {
                return choice(Way::Eager { packet: length }, Because::OnlyConnection);
            }
            Road::Connection => return choice(Way::EagerByConnection, Because::OnlyConnection),
            Road::Ring | Road::Unmet => self.machine.packet(length),
            Road::Datagrams { packet } => packet,
        };
        let because = if length <= packet { Because::FitsPacket } else { Because::InPackets };
        choice(Way::Eager { packet }, because)
    }

    /// How a message that was asked for or offered comes to its receiver. `is_slow` is whether the kernel would copy
    /// slowly, `learned` what has been faster lately; each is asked only where nothing before it decides.
    pub fn answer(
        &self,
        asked: &Reception,
        is_slow: impl FnOnce() -> bool,
        learned: impl FnOnce() -> Method,
    ) -> Choice {
        let Reception { bytes, offered, shown, copies } = *asked;
        let (stream, both) = (|because| choice(Way::Stream, because), |because| choice(Way::CopyByBoth, because));
        if bytes == 0 {
            return choice(Way::Nothing, Because::IsEmpty);
        }
        if shown && bytes <= self.machine.alone_to as u64 {
            return choice(Way::CopyShown, Because::IsShown);
        }
        if !copies {
            return stream(Because::NoCopies);
        }
        if !offered && let Some(least) = self.single_copy {
            return if bytes < least as u64 { stream(Because::Setting) } else { both(Because::Setting) };
        }
        if !offered && shown {
            return both(Because::LongEnoughForBoth);
        }
        if is_slow() {
            return stream(Because::SlowForTheKernel);
        }
        if offered {
            return choice(Way::CopyByReceiver, Because::WasOffered);
        }
        match learned() {
            Method::Stream => stream(Because::Learned),
            Method::Copy => both(Because::Learned),
        }
    }
}

#[cfg(test)]
mod tests;
