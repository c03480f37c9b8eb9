//! Long messages that go without asking: over a connection, to a peer that waited for the last ones.
//!
//! Who asks waits for the way there and back before the first byte: 15 us of the 42 that 128 KiB take between two
//! namespaces by kernel sockets. What nobody waits for must be kept and copied at the receiver. So not more than
//! [`WINDOW_TIMES`] as much as may go without asking anyway is under way to each peer until the receiver has said
//! ([`Kind::Waited`](weft_wire::cell::Kind::Waited)) that it was waited for, or has been received since. After one that
//! was not, more and more are asked for before the next try. Nobody waits for the words, so none goes to one that has
//! left meanwhile.

use super::EAGER_CEILING;

/// A message so many times as long as those that always go without asking may.
const LONGEST_TIMES: usize = 16;
const WINDOW_TIMES: usize = 2 * LONGEST_TIMES;
/// Most messages that are asked for between two tries.
const MOST_ASKED: u32 = 64;

/// What the receiver has to say of a message that has come without asking though it is long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum ReceiverWord {
    /// That it was not waited for, when it is received; if it was, that is said with the next that owes more.
    IfKept = 0,
    Always = 1,
}

/// Of one peer, as receiver and as sender.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// Bytes that it has said nothing about yet.
    under_way: usize,
    /// So many messages are asked for and taken before the next try, and before the one after that if that fails.
    ask: u32,
    ask_then: u32,
    /// Bytes that we waited for and have not told it of.
    untold: u64,
}

impl Default for Waits {
    /// What is sent once is asked for, and who has never taken anything is not tried.
    fn default() -> Self {
        Self { under_way: 0, ask: 1, ask_then: 1, untold: 0 }
    }
}

/// Whether a message of `length` bytes may ever go, where `eager` bytes always may.
pub fn may_go(length: usize, eager: usize) -> bool {
    length <= eager.saturating_mul(LONGEST_TIMES).min(EAGER_CEILING as usize)
}

impl Waits {
    /// What is owed for a message that may ever go, if it goes now.
    pub fn poll(&self, length: usize, eager: usize) -> Option<ReceiverWord> {
        let (window, after) = (eager.saturating_mul(WINDOW_TIMES), self.under_way + length);
        let word = if after > window / 2 { ReceiverWord::Always } else { ReceiverWord::IfKept };
        (self.ask == 0 && after <= window).then_some(word)
    }

    /// One has gone.
    pub fn note_gone(&mut self, length: usize) {
        self.under_way += length;
    }

    /// One that was asked for is taken.
    pub fn note_granted(&mut self) {
        self.ask = self.ask.saturating_sub(1);
    }

    /// The receiver's word about so many bytes.
    ///
    /// # Errors
    /// So many have not gone.
    pub fn learn(&mut self, waited: bool, bytes: u64) -> Result<(), &'static str> {
        let left = usize::try_from(bytes).ok().and_then(|bytes| self.under_way.checked_sub(bytes));
        self.under_way = left.ok_or("a word about bytes that were asked for")?;
        if waited {
            self.ask_then = 1;
        } else if self.ask == 0 {
            self.ask = self.ask_then;
            self.ask_then = (2 * self.ask_then).min(MOST_ASKED);
        }
        Ok(())
    }

    /// One has come that was waited for; the bytes that the sender is told of, if it is.
    pub fn note_waited(&mut self, length: u64, word: ReceiverWord) -> Option<u64> {
        self.untold = self.untold.saturating_add(length);
        (word == ReceiverWord::Always).then(|| std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EAGER: usize = 64 << 10;
    const MIB: usize = 1 << 20;

    /// How many are asked for before the next one goes.
    fn asked(waits: &mut Waits) -> u32 {
        let mut count = 0;
        while waits.poll(MIB, EAGER).is_none() {
            waits.note_granted();
            count += 1;
        }
        count
    }

    #[test]
    fn who_did_not_wait_is_asked_more_and_more_often_and_who_did_is_not() {
        let mut waits = Waits::default();
        assert_eq!(asked(&mut waits), 1);
        for most in [1, 2, 4, 8, 16, 32, 64, 64] {
            (0..2).for_each(|_| waits.note_gone(MIB));
            assert_eq!(waits.learn(false, MIB as u64), Ok(()));
            assert_eq!(waits.learn(false, MIB as u64), Ok(()), "of the same try");
            assert_eq!(asked(&mut waits), most);
        }
        waits.note_gone(MIB);
        assert_eq!(waits.learn(true, MIB as u64), Ok(()));
        assert_eq!(asked(&mut waits), 0);
        assert!(waits.learn(true, 1).is_err(), "nothing has gone");
    }

    #[test]
    fn so_much_is_under_way_and_the_receiver_is_asked_for_a_word_in_time() {
        let (mut sender, mut receiver) = (Waits { ask: 0, ..Waits::default() }, Waits::default());
        for length in [EAGER + 1, 100_000, MIB] {
            let mut words = 0;
            for _ in 0..1000 {
                let word = sender.poll(length, EAGER).expect("a receiver that waits always lets the next one go");
                sender.note_gone(length);
                assert!(sender.under_way <= 2 * MIB);
                if let Some(bytes) = receiver.note_waited(length as u64, word) {
                    words += 1;
                    assert_eq!(sender.learn(true, bytes), Ok(()));
                }
            }
            assert!(words * MIB <= 1000 * (length + EAGER) && words * 2 * MIB >= 1000 * length, "{words} of {length}");
        }
        let mut unheard = Waits { ask: 0, ..Waits::default() };
        while unheard.poll(MIB, EAGER).is_some() {
            unheard.note_gone(MIB);
        }
        assert_eq!(unheard.under_way, 2 * MIB);
        assert!(may_go(MIB, EAGER) && !may_go(MIB + 1, EAGER) && !may_go(1, 0));
        assert!(!may_go(EAGER_CEILING as usize + 1, EAGER_CEILING as usize), "the receiver takes it for nonsense");
    }
}
