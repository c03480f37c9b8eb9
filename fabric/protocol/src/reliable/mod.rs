//! The reliability machine: packets in order, each once, over datagrams that may be lost, doubled, overtaken or spoilt.
//!
//! A [`Link`] is one end of what two processes have between them. It does no I/O and knows no clock. Whoever drives it
//! - hands it what arrived: [`Link::handle_datagram`], which hands on the packets that are complete;
//! - hands it packets to send, and says when there are no more: [`Link::try_send`], [`Link::close`];
//! - calls [`Link::handle_timeout`] when [`Link::next_timeout`] has come. Later is allowed, and earlier does nothing;
//! - after any of these sends what [`Link::poll_transmit`] writes, until it writes nothing.
//!
//! Packets that are accepted before the next `poll_transmit` share datagrams; who wants latency calls it after each
//! one, who wants rate after many. A datagram may be written straight into the memory of a card, and several one after
//! another into a batch. Bulk payload is copied once into the link, where it stays until it is acknowledged, and once
//! from there into a datagram. What arrives in order is lent straight from the datagram. Two kinds of packet are best
//! for speed: those with a bulk payload of at most [`Link::bulk_bytes`], which fill one datagram, and short ones.
//!
//! | file | concern |
//! |---|---|
//! | `outgoing` | the stream that we send: room, credit, cutting into pieces |
//! | `sent` | datagrams on their way: acknowledged, lost |
//! | `incoming` | the stream that we receive: order, credit, packets |
//! | `received` | packet numbers: duplicates and replay, when to acknowledge |
//! | `rtt`, `congestion`, `pacer`, `path` | how long, how much, how fast, how large |
//! | `life` | dead peers, and parting in order |
//! | `seal` | checksum, authentication or encryption |
//! | `receive`, `transmit`, `timeout` | what the parent does: it routes between these, and decides nothing else |
//!
//! Budget of a short message in a datagram of its own, both ends together, with its acknowledgement: 150 ns where the
//! processor has an instruction for the checksum. Measured: 116 ns; 98 ns without any seal, 181 ns with the checksum by
//! tables; 31 ns where 64 messages share datagrams. On an AMD EPYC of Zen 3, where it takes 117 ns without any seal:
//! 172 ns with a key, 213 where there is no instruction for AES, and 502 encrypted
//! (`cargo run --release -p weft-protocol --example link_speed`, on the machine of PERFORMANCE.md). Nothing is
//! allocated once a link has been made, and divisions come once a round trip. A link takes some 55 KB besides its two
//! rings, whose memory is not touched before it is used.
//!
//! What must hold:
//! - A packet that was accepted is handed on exactly once, in order, whole, or the link ends with [`Phase::Gone`].
//! - Nothing that a peer sends is believed before its seal has been checked, and nothing asserts on it after.
//! - The other side never has more under way than it was promised room for.
//! - Dropped datagrams change nothing but a counter.
//!
//! Not here: addresses and sockets, which link a datagram is for ([`weft_wire::link::header::Header::parse`] says from
//! whom it comes).
//!
//! Test: `cargo test -p weft-protocol`. Beside each file its own tests; `tests/reliable` has two and more links over a
//! simulated network. `WEFT_TEST_SEEDS=100000` runs more seeds, `WEFT_TEST_SEED=17` replays one.

mod bits;
mod bytes;
mod config;
mod congestion;
mod count;
mod counters;
mod incoming;
mod life;
mod outgoing;
mod pacer;
mod path;
mod receive;
mod received;
mod rtt;
mod seal;
mod sent;
mod timeout;
mod transmit;

pub use config::Config;
pub use counters::ReliableCounters;
pub use incoming::LinkPacket;
pub use life::{Gone, Phase};
pub use path::Sizes;
pub use receive::Dropped;
pub use received::AckPolicy;
pub use seal::{Encrypted, JobSeal, Keyed, Seal};

use congestion::{Congestion, CongestionLimits};
use incoming::ReliableIncoming;
use life::Life;
use outgoing::ReliableOutgoing;
use pacer::Pacer;
use path::Path;
use received::ReceivedNumbers;
use rtt::Rtt;
use sent::SentDatagrams;
use weft_wire::cell::{Head, INLINE_BYTES};
use weft_wire::link::header;
use weft_wire::link::record::MOST_HEAD_BYTES;

/// The answer to [`Link::try_send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPosted {
    /// Accepted, with so many bytes of bulk payload.
    Sent(usize),
    /// No room now. Nothing happened; acknowledgements will bring room.
    Full,
    /// The link has been closed, or its peer is gone. [`Link::phase`] says which.
    Gone,
}

/// Datagrams that may be on their way whatever the path is like.
const LEAST_DATAGRAMS: u64 = 4;
/// Datagrams that may go in one heap.
const BURST_DATAGRAMS: u64 = 16;
/// Datagrams to begin with.
const FIRST_DATAGRAMS: u64 = 16;

/// One end of a link; see the module.
pub struct Link<S: Seal = JobSeal> {
    config: Config,
    seal: S,
    /// Room for a datagram that is decrypted.
    opened: Vec<u8>,
    outgoing: ReliableOutgoing,
    incoming: ReliableIncoming,
    sent: SentDatagrams,
    received: ReceivedNumbers,
    rtt: Rtt,
    congestion: Congestion,
    pacer: Pacer,
    path: Path,
    life: Life,
    /// When something was last sent that is to be acknowledged.
    asked_ns: u64,
    /// Questions without answer since something was acknowledged, and since credit came.
    unanswered: u32,
    uncredited: u32,
    /// Questions to be sent now, whatever the window says.
    questions: u32,
    /// A datagram waits for the pacer.
    paced: bool,
    counters: ReliableCounters,
}

impl<S: Seal> Link<S> {
    /// Both sides make theirs from what they know of each other; nothing is sent for it.
    pub fn new(config: Config, seal: S, now_ns: u64) -> Self {
        let path = Path::new(config.sizes, now_ns);
        let size = path.size() as u64;
        let limits = CongestionLimits {
            least_bytes: LEAST_DATAGRAMS * size,
            first_bytes: FIRST_DATAGRAMS * size,
            most_bytes: config.most_in_flight,
            queue_bytes: config.queue_bytes,
        };
        Self {
            outgoing: ReliableOutgoing::new(config.first_position, config.send_bytes),
            incoming: ReliableIncoming::new(config.first_position, config.window_bytes),
            sent: SentDatagrams::new(config.first_number),
            received: ReceivedNumbers::new(config.first_number),
            rtt: Rtt::new(config.first_rtt_ns),
            congestion: Congestion::new(limits, now_ns),
            pacer: Pacer::new(BURST_DATAGRAMS * size, now_ns),
            path,
            life: Life::new(now_ns),
            asked_ns: now_ns,
            unanswered: 0,
            uncredited: 0,
            questions: 0,
            paced: false,
            counters: ReliableCounters::default(),
            config,
            seal,
            opened: Vec::new(),
        }
    }

    /// Accepts a packet: a header, up to 48 bytes inline, and bulk payload, which is not empty if it is there. Of the
    /// bulk payload as much is accepted as one packet takes now.
    #[inline]
    pub fn try_send(&mut self, head: &Head, inline: &[u8], bulk: Option<&[u8]>) -> LinkPosted {
        assert!(inline.len() <= INLINE_BYTES, "{} inline bytes, {INLINE_BYTES} are allowed", inline.len());
        assert!(bulk.is_none_or(|bulk| !bulk.is_empty()), "a bulk payload without bytes");
        if self.life.phase != Phase::Open {
            return LinkPosted::Gone;
        }
        let posted = self.outgoing.try_append(head, inline, bulk, self.bulk_bytes());
        self.counters.packets_sent += u64::from(posted != LinkPosted::Full);
        posted
    }

    /// Bulk payload that fills one datagram of today's size, whatever goes with it.
    #[inline]
    pub fn bulk_bytes(&self) -> usize {
        self.path.size() - self.overhead_bytes() - MOST_HEAD_BYTES
    }

    /// What a datagram has besides payload and words of acknowledgements.
    #[inline]
    fn overhead_bytes(&self) -> usize {
        header::BYTES + self.seal.bytes()
    }

    /// Accepts nothing more. The link ends when both sides have closed and have everything.
    pub fn close(&mut self) {
        if self.life.phase == Phase::Open {
            self.life.phase = Phase::Closing;
        }
    }

    pub fn phase(&self) -> Phase {
        self.life.phase
    }

    /// Whether the other side has closed, and all that it sent has been handed on.
    pub fn peer_has_closed(&self) -> bool {
        self.incoming.ended()
    }

    /// Whether this side has closed, and the other has everything.
    pub fn is_through(&self) -> bool {
        self.outgoing.is_through()
    }

    /// Bytes that were accepted and are not known to have arrived.
    pub fn kept_bytes(&self) -> u64 {
        self.outgoing.kept_bytes()
    }

    /// Bytes that were accepted and have never been sent: they wait for `poll_transmit`, the window, or credit.
    pub fn unsent_bytes(&self) -> u64 {
        self.outgoing.unsent_bytes()
    }

    /// Bytes of datagrams that are on their way; 0 also means that nothing will be acknowledged soon.
    pub fn in_flight_bytes(&self) -> u64 {
        self.sent.in_flight_bytes()
    }

    /// The largest datagram that is sent now, but for tries of larger ones.
    pub fn datagram_bytes(&self) -> usize {
        self.path.size()
    }

    /// The round trip, smoothed.
    pub fn rtt_ns(&self) -> u64 {
        self.rtt.smoothed_ns()
    }

    /// Bytes that may be on their way at once.
    pub fn window_bytes(&self) -> u64 {
        self.congestion.window()
    }

    pub fn counters(&self) -> &ReliableCounters {
        &self.counters
    }
}
