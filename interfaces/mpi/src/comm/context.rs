//! Which contexts are taken in this process.

use super::CONTEXTS_EACH;
use std::collections::{BTreeSet, VecDeque};

/// Numbers of contexts are agreed on by the members of each new communicator; a process may not be in two
/// communicators with the same one.
#[derive(Debug, Default)]
pub struct Contexts {
    taken: BTreeSet<u32>,
    /// Above every context that this process took or proposed.
    next: u32,
    /// Those given back last, for members that are not as far.
    released: VecDeque<u32>,
}

/// In how many communicators a process may be. A program that makes more has forgotten to free them, and hears of it
/// before its memory is gone.
pub const MOST: usize = 1 << 15;

/// How many contexts are remembered after their end.
const REMEMBERED: usize = 1024;

impl Contexts {
    pub fn are_full(&self) -> bool {
        self.taken.len() >= MOST
    }

    /// A context to propose: free here, and not proposed before.
    pub fn propose(&mut self, skip: u32) -> u32 {
        let proposal = self.next + skip * CONTEXTS_EACH;
        self.next = proposal + CONTEXTS_EACH;
        proposal
    }

    /// Takes a context that was agreed on; false if another communicator was quicker.
    pub fn claim(&mut self, context: u32) -> bool {
        self.next = self.next.max(context + CONTEXTS_EACH);
        self.taken.insert(context)
    }

    pub fn release(&mut self, context: u32) {
        if self.taken.remove(&context) {
            self.released.truncate(REMEMBERED - 1);
            self.released.push_front(context);
        }
    }

    /// Whether a communicator of this process had the context and is gone (as far as that is remembered).
    pub fn was_released(&self, context: u32) -> bool {
        self.released.contains(&context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_context_is_neither_proposed_nor_taken_again() {
        let mut contexts = Contexts::default();
        let first = contexts.propose(0);
        assert!(contexts.claim(first + 2 * CONTEXTS_EACH) && !contexts.claim(first + 2 * CONTEXTS_EACH));
        let second = contexts.propose(3);
        assert!(second >= first + 2 * CONTEXTS_EACH + CONTEXTS_EACH + 3 * CONTEXTS_EACH);
        assert!(!contexts.was_released(first + 2 * CONTEXTS_EACH));
        contexts.release(first + 2 * CONTEXTS_EACH);
        assert!(contexts.was_released(first + 2 * CONTEXTS_EACH) && !contexts.was_released(first));
        assert!(contexts.claim(first + 2 * CONTEXTS_EACH));
        assert!(contexts.propose(0) > second);
    }
}
