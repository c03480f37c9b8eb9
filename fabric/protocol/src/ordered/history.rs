//! The ordered messages of a view that not all members are known to have.

use std::collections::VecDeque;
use std::sync::Arc;

use super::GroupMember;

/// A message with its place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    pub origin: GroupMember,
    /// Which one of its origin: counts, and begins again after 2^32.
    pub number: u32,
    pub bytes: Arc<[u8]>,
}

/// Messages by their sequence numbers, from the lowest that is kept.
#[derive(Debug)]
pub(super) struct ViewHistory {
    first: u64,
    kept: VecDeque<Option<Placed>>,
    /// All below are here, or were.
    next: u64,
    bytes: usize,
}

impl ViewHistory {
    /// Where all below `next` are over.
    pub fn new(next: u64) -> Self {
        Self { first: next, kept: VecDeque::new(), next, bytes: 0 }
    }

    /// The lowest sequence number whose message is not here.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes of the messages that are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a message, if it is not here already.
    pub fn insert(&mut self, sequence: u64, message: Placed) {
        let Some(at) = sequence.checked_sub(self.first) else { return };
        let at = at as usize;
        if self.kept.len() <= at {
            self.kept.resize(at + 1, None);
        }
        if self.kept[at].is_none() {
            self.bytes += message.bytes.len();
            self.kept[at] = Some(message);
        }
        while self.get(self.next).is_some() {
            self.next += 1;
        }
    }

    pub fn get(&self, sequence: u64) -> Option<&Placed> {
        self.kept.get(usize::try_from(sequence.checked_sub(self.first)?).ok()?)?.as_ref()
    }

    /// Forgets what is below `end`, which all have.
    pub fn forget_below(&mut self, end: u64) {
        while self.first < end.min(self.next) {
            let gone = self.kept.pop_front().flatten();
            self.bytes -= gone.map_or(0, |gone| gone.bytes.len());
            self.first += 1;
        }
    }

    /// Takes out what is at `end` or above, which has no place any more.
    pub fn cut(&mut self, end: u64) -> Vec<Placed> {
        let keep = usize::try_from(end.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.kept.len());
        let gone: Vec<Placed> = self.kept.drain(keep..).flatten().collect();
        self.bytes -= gone.iter().map(|gone| gone.bytes.len()).sum::<usize>();
        gone
    }

    /// Sequence numbers of what has come before its turn.
    pub fn early(&self) -> Vec<u64> {
        let all = self.kept.iter().zip(self.first..);
        all.filter(|(message, sequence)| message.is_some() && *sequence > self.next).map(|(_, at)| at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u32) -> Placed {
        Placed { origin: GroupMember(1), number, bytes: [0; 10].into() }
    }

    #[test]
    fn what_comes_before_its_turn_is_kept() {
        let mut history = ViewHistory::new(5);
        history.insert(7, message(7));
        history.insert(5, message(5));
        assert_eq!((history.next(), history.early(), history.bytes()), (6, vec![7], 20));
        history.insert(6, message(6));
        history.insert(6, message(60));
        history.insert(4, message(4));
        assert_eq!((history.next(), history.early(), history.bytes()), (8, vec![], 30));
        assert_eq!(history.get(6), Some(&message(6)));
    }

    #[test]
    fn only_what_is_there_is_forgotten() {
        let mut history = ViewHistory::new(0);
        history.insert(0, message(0));
        history.insert(2, message(2));
        history.forget_below(9);
        assert_eq!((history.get(0), history.next(), history.bytes()), (None, 1, 10));
        history.insert(1, message(1));
        assert_eq!((history.next(), history.get(2)), (3, Some(&message(2))));
    }
}
