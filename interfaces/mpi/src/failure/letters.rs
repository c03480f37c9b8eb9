//! Letters of failure mitigation, and the agreements that they are about.

use crate::comm::{Comm, LETTERS as CONTEXT};
use std::sync::atomic::Ordering;
use weft_fabric::consensus::ConsensusMachine;
use weft_fabric::{Endpoint, Envelope, Peer, RequestId, Selector, SendMode};

/// Number of a letter that tells the members of the communicator to end.
pub(super) const END: u32 = u32::MAX;
/// Most words of a letter that is read.
const MOST_WORDS: u64 = 1 << 12;
/// Which agreement: of what communicator, and which of its agreements, from 1, above which of several that are one for
/// the program: those after the first begin when the one before is over, between whichever others are there. Number 0
/// tells that the communicator is revoked, the last one ([`END`]) that its members are to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AgreementName {
    pub(super) context: u32,
    pub(super) number: u32,
}

/// Below the step of an agreement; more of one communicator are not under way or remembered at the same time.
const NUMBER_BITS: u32 = 24;
const NUMBERS: u32 = (1 << NUMBER_BITS) - 1;

impl AgreementName {
    pub(super) fn word(self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.context)
    }

    pub(super) fn read(word: u64) -> Self {
        Self { context: word as u32, number: (word >> 32) as u32 }
    }

    /// The next agreement that a communicator's members begin: all of them in the same order.
    pub(super) fn next(comm: &Comm) -> Self {
        let before = comm.failure.agreements.fetch_add(1, Ordering::Relaxed);
        Self { context: comm.context, number: 1 + before % (NUMBERS - 1) }
    }

    /// The one that follows as a part of the same.
    pub(super) fn following(self) -> Self {
        let step = (self.number >> NUMBER_BITS).wrapping_add(1) % (1 << (32 - NUMBER_BITS));
        Self { number: step << NUMBER_BITS | self.number & NUMBERS, ..self }
    }
}

/// An agreement under way.
pub(super) struct AgreementRound {
    pub(super) name: AgreementName,
    pub(super) members: Vec<Peer>,
    pub(super) machine: ConsensusMachine,
}

/// Letters under way.
#[derive(Default)]
pub(super) struct Letters {
    leaving: Vec<(RequestId, Box<[u64]>)>,
    arriving: Vec<(RequestId, Peer, Box<[u64]>)>,
    /// About agreements that have not begun here.
    pub(super) early: Vec<(Peer, AgreementName, Box<[u64]>)>,
}

impl Letters {
    pub(super) fn post(&mut self, endpoint: &mut Endpoint, to: Peer, words: Box<[u64]>) {
        self.leaving.retain(|(id, _)| endpoint.take_outcome(*id).is_none());
        if endpoint.is_lost(to) || endpoint.has_ended(to) {
            return;
        }
        let envelope = Envelope { context: CONTEXT, tag: 0, source: 0 };
        // SAFETY: the words live in the box, which is kept until the send is complete.
        unsafe {
            if !endpoint.try_send(to, envelope, words.as_ptr().cast(), size_of_val(&*words)) {
                let id =
                    endpoint.post_send(to, envelope, words.as_ptr().cast(), size_of_val(&*words), SendMode::Standard);
                self.leaving.push((id, words));
            }
        }
    }

    /// The next letter that is here.
    pub(super) fn poll(&mut self, endpoint: &mut Endpoint) -> Option<(Peer, Box<[u64]>)> {
        let anyone = Selector { context: CONTEXT, peer: None, tag: None };
        while let Some((message, seen)) = endpoint.take_matched(anyone) {
            let length = if seen.length % 8 == 0 && seen.length <= 8 * MOST_WORDS { seen.length / 8 } else { 0 };
            let mut words = vec![0u64; length as usize].into_boxed_slice();
            // SAFETY: the words are kept until the receive is complete.
            let id = unsafe { endpoint.post_matched_receive(message, words.as_mut_ptr().cast(), size_of_val(&*words)) };
            self.arriving.push((id, seen.peer, words));
        }
        let at = self.arriving.iter().position(|letter| endpoint.is_complete(letter.0))?;
        let (id, from, words) = self.arriving.remove(at);
        let good = endpoint.take_outcome(id).is_some_and(|outcome| outcome.fault.is_none());
        Some((from, if good { words } else { Box::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_agreement_have_names_that_no_other_has() {
        let first = AgreementName { context: 7, number: 3 };
        let second = first.following();
        assert!(second != first && second.number != 4 && second.following() != first);
        assert_eq!(AgreementName::read(second.word()), second);
        let last = (0..600).fold(AgreementName { number: NUMBERS - 1, ..first }, |name, _| name.following());
        assert!(last.number != END && last.number != 0);
    }
}
