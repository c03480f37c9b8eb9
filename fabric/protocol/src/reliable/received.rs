//! Which packet numbers have arrived, and when that is to be said.
//!
//! A number is taken once: what has arrived before, or is so old that nobody knows, is refused. This is the window
//! against replay as well.

use super::bits::{BitRing, SPAN};
use super::count::{EPOCH, expand};
use weft_wire::link::header::{DELAY_UNIT_NS, Header, MOST_WORDS};

pub struct ReceivedNumbers {
    seen: BitRing,
    /// One more than the largest number that has arrived.
    next: u64,
    /// The numbers from here to `next` have all arrived.
    run_start: u64,
    /// The sender has no use for acknowledgements below.
    floor: u64,
    /// When the largest number arrived.
    largest_at_ns: u64,
    any: bool,
    /// Datagrams that want to be acknowledged and are not.
    waiting: u32,
    at_once: bool,
    /// When the first of them is to be acknowledged at the latest.
    due_ns: u64,
}

/// When acknowledgements are sent that nothing else goes with.
#[derive(Clone, Copy, Debug)]
pub struct AckPolicy {
    /// An acknowledgement waits for company at most so long.
    pub delay_ns: u64,
    /// So many datagrams are acknowledged at once.
    pub every: u32,
}

impl ReceivedNumbers {
    pub fn new(first: u32) -> Self {
        let next = EPOCH + u64::from(first);
        Self {
            seen: BitRing::new(),
            next,
            run_start: next,
            floor: next,
            largest_at_ns: 0,
            any: false,
            waiting: 0,
            at_once: false,
            due_ns: u64::MAX,
        }
    }

    /// The number in full, or `None` for one that has been taken already, or may have been.
    #[inline]
    pub fn fresh(&self, number: u32) -> Option<u64> {
        let number = expand(self.next, number);
        let known = number >= self.next || number + SPAN > self.next + SPAN / 4 && !self.seen.test(number);
        (known && number < self.next + (1 << 30)).then_some(number)
    }

    /// Takes a fresh number. `floor` is what the sender says of its oldest one.
    #[inline]
    pub fn take(&mut self, now_ns: u64, number: u64, floor: u16) {
        let in_order = number == self.next;
        if number >= self.next {
            if !in_order {
                self.seen.clear_range(self.next, number);
                self.run_start = number;
            }
            self.floor = self.floor.max(number.saturating_sub(u64::from(floor)));
            self.next = number + 1;
            self.largest_at_ns = now_ns;
            self.any = true;
        }
        self.seen.set(number);
        if number + 1 == self.run_start {
            self.extend_run();
        }
    }

    /// A gap below the run was filled.
    fn extend_run(&mut self) {
        let lowest = self.floor.max(self.next.saturating_sub(SPAN / 2));
        while self.run_start > lowest && self.seen.test(self.run_start - 1) {
            self.run_start -= 1;
        }
    }

    /// A datagram wants to be acknowledged.
    #[inline]
    pub fn want_ack(&mut self, now_ns: u64, at_once: bool, policy: &AckPolicy) {
        if self.waiting == 0 {
            self.due_ns = now_ns + policy.delay_ns;
        }
        self.waiting += 1;
        self.at_once |= at_once || self.waiting >= policy.every;
    }

    /// Something else is to be said at once: new credit.
    pub fn want_update(&mut self) {
        self.at_once = true;
    }

    pub fn due(&self, now_ns: u64) -> bool {
        self.at_once || now_ns >= self.due_ns
    }

    /// When an acknowledgement is due; `u64::MAX` if none is.
    #[inline]
    pub fn due_ns(&self) -> u64 {
        if self.at_once { 0 } else { self.due_ns }
    }

    /// Says in `header` what has arrived, and puts the words that go with it into `words`: for the numbers
    /// before the largest one, 64 a word, the last word ending with it.
    #[inline]
    pub fn acknowledge(&mut self, now_ns: u64, header: &mut Header, words: &mut [u64; MOST_WORDS]) {
        (self.waiting, self.at_once, self.due_ns) = (0, false, u64::MAX);
        if !self.any {
            return;
        }
        let largest = self.next - 1;
        header.acked = largest as u32;
        header.run = (self.next - self.run_start).min(u64::from(u16::MAX)) as u16;
        let delay = now_ns.saturating_sub(self.largest_at_ns) / DELAY_UNIT_NS;
        header.ack_delay = delay.min(u64::from(u16::MAX)) as u16;
        header.words = self.words() as u8;
        let first = largest - 64 * u64::from(header.words);
        for (index, word) in words[..header.words as usize].iter_mut().enumerate() {
            *word = self.seen.word(first + 64 * index as u64);
        }
    }

    /// Words that go with an acknowledgement: none while there is no gap that matters.
    #[inline]
    pub fn words(&self) -> usize {
        if self.floor >= self.run_start {
            0
        } else {
            (self.next - 1 - self.floor).div_ceil(64).min(MOST_WORDS as u64) as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: AckPolicy = AckPolicy { delay_ns: 1_000, every: 4 };

    fn said(received: &mut ReceivedNumbers) -> (u32, u16, Vec<u64>) {
        let (mut header, mut words) = (Header::default(), [0; MOST_WORDS]);
        received.acknowledge(0, &mut header, &mut words);
        (header.acked, header.run, words[..header.words as usize].to_vec())
    }

    fn take_all(received: &mut ReceivedNumbers, numbers: &[u32], floor_at: u32) {
        for number in numbers {
            let full = received.fresh(*number).expect("fresh");
            received.take(0, full, number.wrapping_sub(floor_at) as u16);
        }
    }

    #[test]
    fn a_number_is_taken_once() {
        let mut received = ReceivedNumbers::new(7);
        take_all(&mut received, &[7, 9], 7);
        assert_eq!(received.fresh(7), None);
        assert_eq!(received.fresh(9), None);
        assert!(received.fresh(8).is_some());
    }

    #[test]
    fn a_number_from_before_the_window_is_refused() {
        let mut received = ReceivedNumbers::new(0);
        take_all(&mut received, &[5000], 4999);
        assert_eq!(received.fresh(1), None);
        assert!(received.fresh(4000).is_some());
    }

    #[test]
    fn numbers_go_on_across_the_wrap() {
        let mut received = ReceivedNumbers::new(u32::MAX - 1);
        take_all(&mut received, &[u32::MAX - 1, u32::MAX, 0, 1], u32::MAX - 1);
        assert_eq!(said(&mut received), (1, 4, vec![]));
        assert_eq!(received.fresh(u32::MAX), None);
    }

    #[test]
    fn gaps_are_said_until_they_are_filled_or_of_no_use() {
        let mut received = ReceivedNumbers::new(0);
        take_all(&mut received, &[0, 1, 3, 4], 0);
        assert_eq!(said(&mut received), (4, 2, vec![0b1011 << 60]));
        take_all(&mut received, &[2], 0);
        assert_eq!(said(&mut received), (4, 5, vec![]));
        take_all(&mut received, &[7], 0);
        assert_eq!(said(&mut received).1, 1);
        take_all(&mut received, &[8], 7);
        assert_eq!(said(&mut received), (8, 2, vec![]));
    }

    #[test]
    fn acknowledgements_wait_for_company_but_not_for_ever() {
        let mut received = ReceivedNumbers::new(0);
        received.want_ack(500, false, &POLICY);
        assert!(!received.due(1_499) && received.due(1_500));
        received.want_ack(600, false, &POLICY);
        received.want_ack(600, false, &POLICY);
        assert!(!received.due(700));
        received.want_ack(600, false, &POLICY);
        assert!(received.due(700), "the fourth is not made to wait");
        said(&mut received);
        assert_eq!(received.due_ns(), u64::MAX);
    }
}
