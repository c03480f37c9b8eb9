//! Barrier.

use crate::schedule::{Party, Schedule};

/// Dissemination: after `ceil(log2 n)` rounds everyone has heard, directly or not, of everyone (Hensgen, Finkel and
/// Manber, 1988).
pub fn barrier(s: &mut Schedule, me: Party) {
    let mut distance = 1;
    while distance < me.size {
        s.await_signal(me.before(distance));
        s.signal(me.after(distance));
        s.wait();
        distance *= 2;
    }
}

/// Barrier of an intercommunicator: each group for itself, then ranks 0 across, who release their groups.
pub fn inter_barrier(s: &mut Schedule, me: Party) {
    barrier(s, me);
    if me.rank == 0 {
        s.await_signal(me.size);
        s.signal(me.size);
        s.wait();
    }
    super::tree::release(s, me);
}
