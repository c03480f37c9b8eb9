//! The datagrams that are on their way: which have arrived, which count as lost.
//!
//! Every datagram has a number of its own, also one that carries the same bytes again, so an acknowledgement always
//! says which transmission it means. A datagram counts as lost when a later one has arrived and more time has gone by
//! than overtaking explains (after RACK, RFC 8985).

use super::bits::{BitRing, SPAN};
use super::count::{EPOCH, expand};

/// Numbers that may lie between the oldest datagram on its way and the next one.
const MOST_SPAN: u64 = SPAN - 64;
/// So many numbers back an acknowledgement still counts for what was given up.
const LATE_SPAN: u64 = SPAN / 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentEntry {
    pub sent_ns: u64,
    /// Position of the first byte of the payload.
    pub start: u64,
    /// Bytes of payload; 0 of a datagram that only asks.
    pub length: u32,
    /// Bytes of the whole datagram.
    pub bytes: u32,
}

impl SentEntry {
    fn empty_bytes(&self) -> u64 {
        if self.length == 0 { u64::from(self.bytes) } else { 0 }
    }
}

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acked {
    /// Bytes of datagrams that are not on their way any more.
    pub bytes: u64,
    /// The newest of them: its number, when it was sent, and its size.
    pub newest: Option<(u64, SentEntry)>,
    /// Bytes of the longest of them.
    pub longest: u32,
    /// Datagrams that had been given up.
    pub overtaken: u32,
}

pub struct SentDatagrams {
    entries: Box<[SentEntry]>,
    outstanding: BitRing,
    given_up: BitRing,
    /// Nothing below has been given up lately; `u64::MAX` if nothing has.
    given_up_from: u64,
    next: u64,
    /// Nothing below is on its way.
    oldest: u64,
    /// One more than the largest number that is known to have arrived.
    acked_to: u64,
    in_flight_bytes: u64,
    /// Those of them of datagrams without payload.
    empty_bytes: u64,
}

impl SentDatagrams {
    pub fn new(first: u32) -> Self {
        let next = EPOCH + u64::from(first);
        Self {
            entries: vec![SentEntry::default(); SPAN as usize].into_boxed_slice(),
            outstanding: BitRing::new(),
            given_up: BitRing::new(),
            given_up_from: u64::MAX,
            next,
            oldest: next,
            acked_to: next,
            in_flight_bytes: 0,
            empty_bytes: 0,
        }
    }

    #[inline]
    fn entry(&self, number: u64) -> &SentEntry {
        &self.entries[(number % SPAN) as usize]
    }

    /// The number of the next datagram.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes of the datagrams that are on their way.
    #[inline]
    pub fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Bytes of those among them that carry payload.
    #[inline]
    pub fn carrying_bytes(&self) -> u64 {
        self.in_flight_bytes - self.empty_bytes
    }

    /// The next number less the oldest whose acknowledgement counts.
    #[inline]
    pub fn floor(&self) -> u16 {
        (self.next - self.oldest) as u16
    }

    /// Whether data should wait, so that acknowledgements still find numbers.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.next - self.oldest >= SPAN / 2
    }

    /// Notes a datagram that is to be acknowledged, and gives it its number.
    #[inline]
    pub fn record(&mut self, entry: SentEntry) -> u64 {
        let number = self.skip();
        if self.in_flight_bytes == 0 {
            self.oldest = number;
        }
        self.entries[(number % SPAN) as usize] = entry;
        self.outstanding.set(number);
        self.in_flight_bytes += u64::from(entry.bytes);
        self.empty_bytes += entry.empty_bytes();
        number
    }

    /// Gives a number to a datagram that nobody acknowledges. There must be one: [`Self::poll_crowded_out`].
    #[inline]
    pub fn skip(&mut self) -> u64 {
        let number = self.next;
        debug_assert!(number - self.oldest < SPAN);
        self.next += 1;
        self.given_up.clear(number);
        if self.in_flight_bytes == 0 {
            self.oldest = self.next;
        }
        number
    }

    fn settle(&mut self, number: u64) -> SentEntry {
        self.outstanding.clear(number);
        let entry = *self.entry(number);
        self.in_flight_bytes -= u64::from(entry.bytes);
        self.empty_bytes -= entry.empty_bytes();
        entry
    }

    #[inline]
    fn advance_oldest(&mut self) {
        self.oldest = self.outstanding.first(self.oldest, self.next).unwrap_or(self.next);
    }

    /// An acknowledgement: the largest number, how many without a gap end with it, and `words` for those before it, 64
    /// numbers each, the last word ending just before the largest. `None` if it speaks of what was never sent.
    #[inline]
    pub fn handle_ack(&mut self, largest: u32, run: u16, words: impl ExactSizeIterator<Item = u64>) -> Option<Acked> {
        let largest = expand(self.next, largest);
        if largest >= self.next {
            return None;
        }
        let mut acked = Acked::default();
        let known = self.next.saturating_sub(MOST_SPAN);
        if largest < known || run == 0 {
            return Some(acked);
        }
        let first = (largest + 1 - u64::from(run)).max(known);
        let mut from = first.max(self.oldest.min(self.given_up_from));
        while from <= largest {
            self.take(from, low_bits(largest + 1 - from), &mut acked);
            from += 64;
        }
        let mut from = largest - 64 * words.len() as u64;
        for word in words {
            if from >= known {
                self.take(from, word, &mut acked);
            }
            from += 64;
        }
        self.acked_to = self.acked_to.max(largest + 1);
        self.advance_oldest();
        self.forget_given_up();
        Some(acked)
    }

    #[inline]
    fn forget_given_up(&mut self) {
        if self.given_up_from != u64::MAX {
            let from = self.given_up_from.max(self.next.saturating_sub(LATE_SPAN));
            self.given_up_from = self.given_up.first(from, self.next).unwrap_or(u64::MAX);
        }
    }

    /// The numbers from `first` on whose bits are set in `word` have arrived.
    #[inline]
    fn take(&mut self, first: u64, word: u64, acked: &mut Acked) {
        let late = self.given_up.word(first) & word;
        if late != 0 {
            acked.overtaken += late.count_ones();
            each_bit(late, |bit| self.given_up.clear(first + bit));
        }
        let mut new = self.outstanding.word(first) & word;
        while new != 0 {
            let number = first + u64::from(new.trailing_zeros());
            new &= new - 1;
            let entry = self.settle(number);
            acked.bytes += u64::from(entry.bytes);
            acked.longest = acked.longest.max(entry.bytes);
            if acked.newest.is_none_or(|(newest, _)| newest < number) {
                acked.newest = Some((number, entry));
            }
        }
    }

    /// The oldest datagram that something has overtaken.
    #[inline]
    fn overtaken(&self) -> Option<u64> {
        if self.oldest >= self.acked_to { None } else { self.outstanding.first(self.oldest, self.acked_to) }
    }

    /// When the next datagram will count as lost; `u64::MAX` if nothing speaks for it.
    #[inline]
    pub fn lost_at_ns(&self, lost_after_ns: u64) -> u64 {
        self.overtaken().map_or(u64::MAX, |number| self.entry(number).sent_ns + lost_after_ns)
    }

    /// The next datagram that counts as lost now.
    #[inline]
    pub fn poll_lost(&mut self, now_ns: u64, lost_after_ns: u64) -> Option<SentEntry> {
        let number = self.overtaken()?;
        if self.entry(number).sent_ns + lost_after_ns > now_ns {
            return None;
        }
        Some(self.give_up(number))
    }

    /// A datagram that is given up because no number is left; without, the numbers would run into it.
    #[inline]
    pub fn poll_crowded_out(&mut self) -> Option<SentEntry> {
        if self.next - self.oldest < MOST_SPAN {
            return None;
        }
        let number = self.outstanding.first(self.oldest, self.next)?;
        Some(self.give_up(number))
    }

    fn give_up(&mut self, number: u64) -> SentEntry {
        let entry = self.settle(number);
        self.given_up.set(number);
        self.given_up_from = self.given_up_from.min(number);
        self.oldest = number + 1;
        self.advance_oldest();
        entry
    }
}

#[inline]
fn low_bits(count: u64) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

fn each_bit(mut word: u64, mut on_bit: impl FnMut(u64)) {
    while word != 0 {
        on_bit(u64::from(word.trailing_zeros()));
        word &= word - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(sent: &mut SentDatagrams, at_ns: u64) -> u64 {
        sent.record(SentEntry { sent_ns: at_ns, start: 0, length: 1, bytes: 100 })
    }

    fn ack(sent: &mut SentDatagrams, largest: u64, run: u16, words: &[u64]) -> Acked {
        sent.handle_ack(largest as u32, run, words.iter().copied()).expect("sent")
    }

    #[test]
    fn an_acknowledgement_settles_each_datagram_once() {
        let mut sent = SentDatagrams::new(u32::MAX);
        let numbers: Vec<u64> = (0..4).map(|at| send(&mut sent, at)).collect();
        let first = ack(&mut sent, numbers[2], 2, &[]);
        assert_eq!((first.bytes, first.newest.map(|(number, _)| number)), (200, Some(numbers[2])));
        let again = ack(&mut sent, numbers[2], 2, &[]);
        assert_eq!((again.bytes, again.newest), (0, None));
        assert_eq!(sent.in_flight_bytes(), 200);
    }

    #[test]
    fn words_name_what_arrived_before_the_largest() {
        let mut sent = SentDatagrams::new(0);
        let numbers: Vec<u64> = (0..6).map(|at| send(&mut sent, at)).collect();
        let acked = ack(&mut sent, numbers[5], 1, &[0b01101 << 59]);
        assert_eq!((acked.bytes, sent.in_flight_bytes()), (400, 200));
        assert_eq!(sent.floor(), 5, "the second is the oldest on its way");
    }

    #[test]
    fn a_long_datagram_is_seen_to_arrive_though_a_newer_one_has() {
        let mut sent = SentDatagrams::new(0);
        let long = sent.record(SentEntry { sent_ns: 0, start: 0, length: 0, bytes: 9_000 });
        send(&mut sent, 1);
        assert_eq!(ack(&mut sent, long + 1, 2, &[]).longest, 9_000);
    }

    #[test]
    fn what_was_never_sent_is_not_believed() {
        let mut sent = SentDatagrams::new(0);
        let number = send(&mut sent, 0);
        assert!(sent.handle_ack(number as u32 + 1, 1, [].into_iter()).is_none());
    }

    #[test]
    fn lost_is_what_a_later_one_has_overtaken_by_more_than_the_time() {
        let mut sent = SentDatagrams::new(0);
        let numbers: Vec<u64> = [0, 10, 20].map(|at| send(&mut sent, at)).to_vec();
        assert_eq!(sent.lost_at_ns(100), u64::MAX, "nothing has overtaken it");
        ack(&mut sent, numbers[1], 1, &[]);
        assert_eq!(sent.lost_at_ns(100), 100);
        assert_eq!(sent.poll_lost(99, 100), None);
        assert_eq!(sent.poll_lost(100, 100).map(|entry| entry.sent_ns), Some(0));
        assert_eq!(sent.poll_lost(1_000, 100), None, "the last one may be on its way");
        assert_eq!(ack(&mut sent, numbers[1], 2, &[]).overtaken, 1, "it had arrived after all");
    }

    #[test]
    fn numbers_do_not_run_into_what_is_on_its_way() {
        let mut sent = SentDatagrams::new(0);
        send(&mut sent, 0);
        let mut crowded_out = 0;
        for _ in 0..3 * SPAN {
            crowded_out += u32::from(sent.poll_crowded_out().is_some());
            sent.skip();
        }
        assert_eq!((crowded_out, sent.in_flight_bytes()), (1, 0));
    }
}
