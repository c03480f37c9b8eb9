//! The stream that we send: records that have been accepted, until the other side has them.

use super::LinkPosted;
use super::bytes::{ByteRing, copy_from};
use super::count::{EPOCH, expand};
use std::collections::VecDeque;
use weft_wire::cell::Head;
use weft_wire::link::record::{self, HEAD_BYTES, LENGTH_BYTES, LONGEST_BULK, MOST_HEAD_BYTES};

/// What the other side takes before it has said anything.
pub const FIRST_CREDIT_BYTES: u64 = 64 << 10;

/// Bytes of the stream that go with one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPiece {
    pub start: u64,
    pub length: usize,
}

pub struct ReliableOutgoing {
    ring: ByteRing,
    /// The other side has everything below.
    acked: u64,
    /// Everything below has been sent once.
    sent: u64,
    written: u64,
    /// Where the record ends in which `sent` lies; `sent` itself between two records.
    record_end: u64,
    /// The other side takes nothing from here on.
    limit: u64,
    /// What is to be sent again, from and to.
    lost: VecDeque<(u64, u64)>,
    /// Behind the end, once it has been written.
    end: Option<u64>,
}

impl ReliableOutgoing {
    pub fn new(first: u32, capacity: usize) -> Self {
        let start = EPOCH + u64::from(first);
        Self {
            ring: ByteRing::new(capacity),
            acked: start,
            sent: start,
            written: start,
            record_end: start,
            limit: start + FIRST_CREDIT_BYTES,
            lost: VecDeque::with_capacity(64),
            end: None,
        }
    }

    #[inline]
    fn room(&self) -> u64 {
        self.ring.capacity() - (self.written - self.acked)
    }

    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        self.ring.write(self.written, bytes);
        self.written += bytes.len() as u64;
    }

    /// Accepts a packet. Of its bulk payload, which is not empty, as much as fits goes with it, unless that is less
    /// than both the whole and `enough`.
    #[inline]
    pub fn try_append(&mut self, head: &Head, inline: &[u8], bulk: Option<&[u8]>, enough: usize) -> LinkPosted {
        let Some(bulk) = bulk else {
            if self.room() < record::bytes(inline.len(), 0) as u64 {
                return LinkPosted::Full;
            }
            self.append(&record::open(head, inline.len(), false));
            self.append(inline);
            return LinkPosted::Sent(0);
        };
        let room = self.room().saturating_sub(MOST_HEAD_BYTES as u64) as usize;
        let taken = bulk.len().min(room).min(LONGEST_BULK);
        if taken == 0 || taken < enough.min(bulk.len()) {
            return LinkPosted::Full;
        }
        self.append(&record::open(head, inline.len(), true));
        self.append(inline);
        self.append(&(taken as u32).to_le_bytes());
        self.append(&bulk[..taken]);
        LinkPosted::Sent(taken)
    }

    /// Appends the end, if there is room; true if it is there.
    pub fn try_end(&mut self) -> bool {
        if self.end.is_none() && self.room() >= HEAD_BYTES as u64 {
            self.append(&record::END);
            self.end = Some(self.written);
        }
        self.end.is_some()
    }

    /// Whether the other side has everything, with the end.
    pub fn is_through(&self) -> bool {
        self.end == Some(self.acked)
    }

    /// Whether the other side has everything but, perhaps, the end.
    pub fn has_only_end_left(&self) -> bool {
        self.end.is_some_and(|end| self.acked + HEAD_BYTES as u64 >= end)
    }

    /// Bytes that were accepted and have never been sent.
    #[inline]
    pub fn unsent_bytes(&self) -> u64 {
        self.written - self.sent
    }

    /// Bytes that were accepted and are not known to have arrived.
    pub fn kept_bytes(&self) -> u64 {
        self.written - self.acked
    }

    /// Position of the first byte that is not known to have arrived.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.acked
    }

    #[inline]
    pub fn next_position(&self) -> u64 {
        self.sent
    }

    /// Whether there are bytes that only want credit.
    #[inline]
    pub fn wants_credit(&self) -> bool {
        self.sent < self.written && self.sent >= self.limit
    }

    /// The other side has everything below `position`. `None` if that was never sent; otherwise whether it is news.
    #[inline]
    pub fn handle_received(&mut self, position: u32) -> Option<bool> {
        let position = expand(self.acked, position);
        if position > self.sent {
            return None;
        }
        let news = position > self.acked;
        self.acked = self.acked.max(position);
        Some(news)
    }

    /// The other side takes everything below `position`. Whether that is more than before.
    #[inline]
    pub fn handle_credit(&mut self, position: u32) -> bool {
        let position = expand(self.limit, position);
        let more = position > self.limit;
        self.limit = self.limit.max(position);
        more
    }

    /// These bytes are to be sent again.
    pub fn handle_lost(&mut self, start: u64, length: u32) {
        let end = start + u64::from(length);
        match self.lost.back_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => self.lost.push_back((start, end)),
        }
    }

    /// Whether something is to be sent again, or can be sent for the first time.
    #[inline]
    pub fn has_piece(&mut self) -> bool {
        self.forget_arrived();
        !self.lost.is_empty() || self.sent < self.written.min(self.limit)
    }

    /// Drops from the list what has arrived meanwhile.
    #[inline]
    fn forget_arrived(&mut self) {
        while let Some(first) = self.lost.front_mut() {
            first.0 = first.0.max(self.acked);
            if first.0 < first.1 {
                return;
            }
            self.lost.pop_front();
        }
    }

    /// Bytes to send again, at most `most`.
    pub fn take_lost(&mut self, most: usize) -> Option<StreamPiece> {
        self.forget_arrived();
        let first = self.lost.front_mut()?;
        let piece = StreamPiece { start: first.0, length: ((first.1 - first.0) as usize).min(most) };
        first.0 += piece.length as u64;
        Some(piece)
    }

    /// The oldest bytes that are not known to have arrived, at most `most`; to ask with.
    pub fn oldest(&self, most: usize) -> Option<StreamPiece> {
        let length = ((self.sent - self.acked) as usize).min(most);
        (length > 0).then_some(StreamPiece { start: self.acked, length })
    }

    /// Bytes to send for the first time, at most `most`: as many whole records as fit, or a part of one that never
    /// will. While something is `in_flight`, a piece that is short only for want of credit waits.
    #[inline]
    pub fn take_new(&mut self, most: usize, in_flight: bool) -> Option<StreamPiece> {
        let unsent = (self.written - self.sent) as usize;
        let allowed = self.limit.saturating_sub(self.sent).min(unsent as u64) as usize;
        if allowed == 0 || in_flight && allowed < unsent.min(most) {
            return None;
        }
        let length = if unsent <= most && allowed == unsent {
            self.record_end = self.written;
            unsent
        } else {
            self.whole_records(most.min(allowed))
        };
        let piece = StreamPiece { start: self.sent, length };
        self.sent += length as u64;
        Some(piece)
    }

    /// Bytes of the records from `sent` on that end within `most`; `most` if the first one does not.
    fn whole_records(&mut self, most: usize) -> usize {
        let end = self.sent + most as u64;
        let mut at = self.record_end;
        while at < end {
            let next = at + self.record_bytes(at);
            if next > end && at > self.sent {
                break;
            }
            at = next;
        }
        self.record_end = at;
        (at.min(end) - self.sent) as usize
    }

    /// Bytes of the record at `position`.
    fn record_bytes(&self, position: u64) -> u64 {
        let unread = (self.written - position) as usize;
        let pieces = self.ring.pieces(position, unread.min(MOST_HEAD_BYTES));
        let (mut head, mut length) = ([0; 4], [0; LENGTH_BYTES]);
        copy_from(pieces, 0, &mut head);
        let inline_bytes = head[2] as usize;
        if head[3] == 0 {
            return record::bytes(inline_bytes, 0) as u64;
        }
        copy_from(pieces, HEAD_BYTES + inline_bytes, &mut length);
        record::bytes(inline_bytes, u32::from_le_bytes(length) as usize) as u64
    }

    /// The bytes of a piece.
    #[inline]
    pub fn bytes(&self, piece: StreamPiece) -> [&[u8]; 2] {
        self.ring.pieces(piece.start, piece.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_wire::cell::Kind;

    const HEAD: Head = Head::control(Kind::Raw);

    fn outgoing(capacity: usize) -> ReliableOutgoing {
        ReliableOutgoing::new(u32::MAX - 20, capacity)
    }

    fn short(outgoing: &mut ReliableOutgoing, length: usize) -> LinkPosted {
        outgoing.try_append(&HEAD, &[7; 48][..length], None, 0)
    }

    fn lengths(outgoing: &mut ReliableOutgoing, most: usize) -> Vec<usize> {
        std::iter::from_fn(|| outgoing.take_new(most, false).map(|piece| piece.length)).collect()
    }

    #[test]
    fn short_packets_share_a_datagram_and_are_not_cut() {
        let mut outgoing = outgoing(4096);
        (0..7).for_each(|_| assert_eq!(short(&mut outgoing, 8), LinkPosted::Sent(0)));
        assert_eq!(lengths(&mut outgoing, 80), [72, 72, 24]);
    }

    #[test]
    fn a_packet_longer_than_a_datagram_is_cut_and_the_next_one_begins_a_new_one() {
        let mut outgoing = outgoing(4096);
        assert_eq!(outgoing.try_append(&HEAD, &[], Some(&[1; 200]), 0), LinkPosted::Sent(200));
        short(&mut outgoing, 48);
        assert_eq!(lengths(&mut outgoing, 100), [100, 100, 84]);
    }

    #[test]
    fn without_room_nothing_is_taken() {
        let mut outgoing = outgoing(128);
        assert_eq!(outgoing.try_append(&HEAD, &[], Some(&[1; 200]), 200), LinkPosted::Full);
        assert_eq!(outgoing.try_append(&HEAD, &[], Some(&[1; 200]), 50), LinkPosted::Sent(60));
        assert_eq!(short(&mut outgoing, 48), LinkPosted::Full);
        assert_eq!(outgoing.unsent_bytes(), 80);
    }

    #[test]
    fn nothing_goes_beyond_the_credit_and_scraps_wait() {
        let mut outgoing = outgoing(1 << 20);
        for _ in 0..3 {
            outgoing.try_append(&HEAD, &[], Some(&[1; 60_000]), 0);
        }
        assert_eq!(lengths(&mut outgoing, 60_000).iter().sum::<usize>() as u64, FIRST_CREDIT_BYTES);
        assert!(outgoing.wants_credit());
        assert!(outgoing.handle_credit((outgoing.limit + 10) as u32));
        assert_eq!(outgoing.take_new(1000, true), None);
        assert_eq!(outgoing.take_new(1000, false).map(|piece| piece.length), Some(10));
        assert!(!outgoing.handle_credit((outgoing.limit - 10) as u32), "credit is not taken back");
    }

    #[test]
    fn what_arrived_meanwhile_is_not_sent_again() {
        let mut outgoing = outgoing(4096);
        (0..4).for_each(|_| assert_eq!(short(&mut outgoing, 8), LinkPosted::Sent(0)));
        let start = outgoing.next_position();
        assert_eq!(lengths(&mut outgoing, 48), [48, 48]);
        outgoing.handle_lost(start, 48);
        outgoing.handle_lost(start + 48, 48);
        assert_eq!(outgoing.handle_received((start + 24) as u32), Some(true));
        assert_eq!(outgoing.take_lost(30), Some(StreamPiece { start: start + 24, length: 30 }));
        assert_eq!(outgoing.handle_received((start + 96) as u32), Some(true));
        assert_eq!(outgoing.take_lost(30), None);
        assert_eq!(outgoing.handle_received((start + 97) as u32), None, "never sent");
    }
}
