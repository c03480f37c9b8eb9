//! The stream that we receive: put in order, and handed on as packets.
//!
//! What arrives in order is handed on straight from the datagram. The ring keeps what came too early, what a cut left
//! incomplete, and what nobody wants to take yet.

use super::bytes::{ByteRing, copy_from, cut};
use super::count::{EPOCH, expand};
use super::outgoing::FIRST_CREDIT_BYTES;
use weft_wire::cell::{Head, INLINE_BYTES};
use weft_wire::link::record::{HEAD_BYTES, LENGTH_BYTES, LONGEST_BULK, MOST_HEAD_BYTES, Opening};

/// Pieces behind gaps that are kept apart; a datagram that would make one more is dropped, and comes again.
const MOST_ISLANDS: usize = 256;

/// A packet that has arrived, lent while it is handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPacket<'a> {
    pub head: Head,
    /// Inline payload, or control words in little-endian order.
    pub inline: &'a [u8],
    /// Bulk payload: the second piece follows the first, and is mostly empty.
    pub bulk: [&'a [u8]; 2],
}

/// What became of a datagram's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// In order: everything below its end is here.
    InOrder,
    /// It filled a gap or came behind one.
    OutOfOrder,
    /// All of it had been here before.
    Duplicate,
}

pub struct ReliableIncoming {
    ring: ByteRing,
    /// Everything below has arrived.
    next: u64,
    /// Everything below has been handed on.
    taken: u64,
    /// What has arrived behind gaps: from and to, in order, none touching another.
    islands: Vec<(u64, u64)>,
    /// How far the other side was told that it may send.
    promised: u64,
    ended: bool,
}

impl ReliableIncoming {
    pub fn new(first: u32, window_bytes: usize) -> Self {
        let start = EPOCH + u64::from(first);
        let least = (LONGEST_BULK + MOST_HEAD_BYTES).max(FIRST_CREDIT_BYTES as usize);
        Self {
            ring: ByteRing::new(window_bytes.max(least)),
            next: start,
            taken: start,
            islands: Vec::with_capacity(MOST_ISLANDS),
            promised: start + FIRST_CREDIT_BYTES,
            ended: false,
        }
    }

    /// Whether the other side has said that nothing follows.
    pub fn ended(&self) -> bool {
        self.ended
    }

    #[inline]
    pub fn received(&self) -> u32 {
        self.next as u32
    }

    /// Says how far the other side may send.
    #[inline]
    pub fn promise(&mut self) -> u32 {
        self.promised = self.taken + self.ring.capacity();
        self.promised as u32
    }

    /// Whether so much room has come back that the other side should hear of it.
    #[inline]
    pub fn has_news_of_credit(&self) -> bool {
        self.taken + self.ring.capacity() - self.promised >= self.ring.capacity() / 4
    }

    /// Where a payload lies in the stream; `None` if it goes beyond what was promised, or there is no room to note it.
    #[inline]
    pub fn place(&self, position: u32, length: usize) -> Option<u64> {
        let start = expand(self.next, position);
        let possible = start + length as u64 <= self.promised
            && (start <= self.next || self.islands.len() < MOST_ISLANDS || self.touches_island(start, length));
        possible.then_some(start)
    }

    fn touches_island(&self, start: u64, length: usize) -> bool {
        self.islands.iter().any(|(from, to)| *from <= start + length as u64 && start <= *to)
    }

    /// Takes a payload that [`Self::place`] has placed, and hands on what is complete. An error says what the peer must
    /// not have sent.
    #[inline]
    pub fn handle<F>(&mut self, start: u64, payload: &[u8], deliver: &mut F) -> Result<Arrival, &'static str>
    where
        F: FnMut(LinkPacket<'_>) -> bool,
    {
        let end = start + payload.len() as u64;
        if end <= self.next {
            return Ok(Arrival::Duplicate);
        }
        let skipped = self.next.saturating_sub(start);
        let (start, payload) = (start + skipped, &payload[skipped as usize..]);
        if start > self.next {
            self.ring.write(start, payload);
            let fresh = self.note(start, end);
            return Ok(if fresh { Arrival::OutOfOrder } else { Arrival::Duplicate });
        }
        let direct = self.taken == self.next && self.islands.is_empty();
        self.next = end;
        if direct {
            let count = hand_on([payload, &[]], &mut self.ended, deliver)?;
            self.taken += count as u64;
            self.ring.write(self.taken, &payload[count..]);
            return Ok(Arrival::InOrder);
        }
        self.ring.write(start, payload);
        let filled = self.join_islands();
        self.hand_on(deliver)?;
        Ok(if filled { Arrival::OutOfOrder } else { Arrival::InOrder })
    }

    /// Hands on what waits, as far as `deliver` takes it.
    pub fn hand_on<F: FnMut(LinkPacket<'_>) -> bool>(&mut self, deliver: &mut F) -> Result<(), &'static str> {
        let pieces = self.ring.pieces(self.taken, (self.next - self.taken) as usize);
        self.taken += hand_on(pieces, &mut self.ended, deliver)? as u64;
        Ok(())
    }

    /// Notes a piece behind a gap; false if it was there already.
    fn note(&mut self, mut start: u64, mut end: u64) -> bool {
        let first = self.islands.partition_point(|(_, to)| *to < start);
        let last = self.islands.partition_point(|(from, _)| *from <= end);
        if first < last {
            let (from, to) = (self.islands[first].0, self.islands[last - 1].1);
            if last - first == 1 && from <= start && end <= to {
                return false;
            }
            (start, end) = (start.min(from), end.max(to));
        }
        self.islands.splice(first..last, [(start, end)]);
        true
    }

    /// Goes on over the pieces that `next` has reached; true if there was one.
    fn join_islands(&mut self) -> bool {
        let reached = self.islands.iter().take_while(|(from, _)| *from <= self.next).count();
        if let Some((_, to)) = self.islands.drain(..reached).next_back() {
            self.next = self.next.max(to);
        }
        reached > 0 || !self.islands.is_empty()
    }
}

/// Hands on whole records from the beginning of `pieces`; answers how many bytes they were.
#[inline]
fn hand_on<F>(pieces: [&[u8]; 2], ended: &mut bool, deliver: &mut F) -> Result<usize, &'static str>
where
    F: FnMut(LinkPacket<'_>) -> bool,
{
    let there = pieces[0].len() + pieces[1].len();
    let mut at = 0;
    while at < there {
        if *ended {
            return Err("bytes behind the end of the stream");
        }
        let mut words = [0; HEAD_BYTES];
        if !copy_from(pieces, at, &mut words) {
            break;
        }
        let (first, second) = (u64::from_le_bytes(half(&words, 0)), u64::from_le_bytes(half(&words, 8)));
        let (head, inline_bytes, bulk) = match Opening::parse(first, second) {
            Some(Opening::Packet { head, inline_bytes, bulk }) => (head, inline_bytes, bulk),
            Some(Opening::End) => {
                *ended = true;
                at += HEAD_BYTES;
                continue;
            }
            None => return Err("a record that no sender writes"),
        };
        let mut bulk_at = at + HEAD_BYTES + inline_bytes;
        let mut bulk_bytes = 0;
        if bulk {
            let mut length = [0; LENGTH_BYTES];
            if !copy_from(pieces, bulk_at, &mut length) {
                break;
            }
            bulk_bytes = u32::from_le_bytes(length) as usize;
            if bulk_bytes == 0 || bulk_bytes > LONGEST_BULK {
                return Err("a bulk payload of impossible length");
            }
            bulk_at += LENGTH_BYTES;
        }
        if bulk_at + bulk_bytes > there {
            break;
        }
        let mut whole = [0; INLINE_BYTES];
        let inline = join(cut(pieces, at + HEAD_BYTES, inline_bytes), &mut whole);
        if !deliver(LinkPacket { head, inline, bulk: cut(pieces, bulk_at, bulk_bytes) }) {
            break;
        }
        at = bulk_at + bulk_bytes;
    }
    Ok(at)
}

#[inline]
fn half(words: &[u8; HEAD_BYTES], at: usize) -> [u8; 8] {
    std::array::from_fn(|byte| words[at + byte])
}

/// Two pieces as one, by way of `whole` where they are two.
#[inline]
fn join<'a>(pieces: [&'a [u8]; 2], whole: &'a mut [u8; INLINE_BYTES]) -> &'a [u8] {
    let [a, b] = pieces;
    if b.is_empty() {
        return a;
    }
    let length = a.len() + b.len();
    whole[..a.len()].copy_from_slice(a);
    whole[a.len()..length].copy_from_slice(b);
    &whole[..length]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weft_wire::cell::Kind;
    use weft_wire::link::record::{END, open};

    const FIRST: u32 = u32::MAX - 100;

    fn head(number: usize) -> Head {
        Head { kind: Kind::Raw, context: number as u32, tag: 0, source: 0 }
    }

    fn bytes(number: usize, length: usize) -> Vec<u8> {
        (0..length).map(|at| (number * 31 + at * 7) as u8).collect()
    }

    /// A stream of packets with so many inline and bulk bytes, and the end.
    fn stream(packets: &[(usize, usize)]) -> Vec<u8> {
        let mut stream = Vec::new();
        for (number, (inline, bulk)) in packets.iter().enumerate() {
            stream.extend(open(&head(number), *inline, *bulk > 0));
            stream.extend(bytes(number, *inline));
            if *bulk > 0 {
                stream.extend((*bulk as u32).to_le_bytes());
                stream.extend(bytes(number, *bulk));
            }
        }
        stream.extend(END);
        stream
    }

    fn piece(
        incoming: &mut ReliableIncoming,
        stream: &[u8],
        from: usize,
        to: usize,
        deliver: &mut impl FnMut(LinkPacket<'_>) -> bool,
    ) {
        let position = FIRST.wrapping_add(from as u32);
        let start = incoming.place(position, to - from).expect("within the credit");
        incoming.handle(start, &stream[from..to], deliver).expect("sound");
    }

    proptest! {
        #[test]
        fn pieces_in_any_order_are_the_packets_in_their_own(
            packets in prop::collection::vec((0..49usize, prop_oneof![Just(0), 1..400usize]), 0..12),
            pieces in prop::collection::vec((any::<prop::sample::Index>(), 1..300usize), 0..60),
            refuse in prop::collection::vec(any::<bool>(), 64),
        ) {
            let stream = stream(&packets);
            let (mut incoming, mut delivered, mut offers) = (ReliableIncoming::new(FIRST, 0), 0, 0);
            let mut deliver = |packet: LinkPacket<'_>| {
                offers += 1;
                if refuse[offers % refuse.len()] && offers < 200 {
                    return false;
                }
                let (inline, bulk) = packets[delivered];
                assert_eq!(packet.head, head(delivered));
                assert_eq!(packet.inline, bytes(delivered, inline));
                assert_eq!(packet.bulk.concat(), bytes(delivered, bulk));
                delivered += 1;
                true
            };
            for (at, length) in pieces {
                let from = at.index(stream.len());
                piece(&mut incoming, &stream, from, (from + length).min(stream.len()), &mut deliver);
            }
            piece(&mut incoming, &stream, 0, stream.len(), &mut deliver);
            for _ in 0..200 {
                incoming.hand_on(&mut deliver).expect("sound");
            }
            prop_assert_eq!(delivered, packets.len());
            prop_assert!(incoming.ended());
            prop_assert_eq!(incoming.received(), FIRST.wrapping_add(stream.len() as u32));
        }
    }

    #[test]
    fn nothing_is_taken_beyond_what_was_promised() {
        let mut incoming = ReliableIncoming::new(0, 0);
        let most = FIRST_CREDIT_BYTES as usize;
        assert!(incoming.place(0, most).is_some());
        assert_eq!(incoming.place(1, most), None);
        incoming.promise();
        assert!(incoming.place(1, most).is_some());
    }

    #[test]
    fn gaps_without_number_are_not_noted() {
        let mut incoming = ReliableIncoming::new(0, 0);
        for island in 1..=MOST_ISLANDS as u32 {
            let start = incoming.place(island * 10, 1).expect("room to note it");
            incoming.handle(start, &[0], &mut |_| true).expect("sound");
        }
        assert_eq!(incoming.place(5, 1), None);
        assert!(incoming.place(11, 1).is_some(), "it makes an island longer");
        assert!(incoming.place(0, 1).is_some(), "it is the next byte");
    }
}
