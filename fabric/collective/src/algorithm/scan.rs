//! Scans: the fold of the vectors of the ranks up to ours.

use crate::schedule::{Party, Schedule, View};

/// Whether our own vector belongs to the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanKind {
    Inclusive,
    /// The result of rank 0 is not touched.
    Exclusive,
}

/// Recursive doubling: in each round partners exchange the fold of their halves of a growing range of ranks.
pub fn scan(s: &mut Schedule, me: Party, kind: ScanKind, input: View, output: View) {
    if s.size(input) == 0 {
        return;
    }
    let mut range = s.reserve_elements(input.shape, input.count);
    let mut room = s.reserve_elements(input.shape, input.count);
    s.copy(input, range);
    let mut has_result = kind == ScanKind::Inclusive;
    if has_result {
        s.copy(input, output);
    }
    let mut distance = 1;
    while distance < me.size {
        let partner = me.rank ^ distance;
        if partner < me.size {
            s.receive(partner, room);
            s.send(partner, range);
            s.wait();
            if partner < me.rank {
                if has_result {
                    s.fold(room, output)
                } else {
                    s.copy(room, output)
                }
                has_result = true;
                s.fold(room, range);
            } else {
                s.fold(range, room);
                std::mem::swap(&mut range, &mut room);
            }
        }
        distance *= 2;
    }
}
