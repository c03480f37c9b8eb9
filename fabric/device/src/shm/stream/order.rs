//! The order of what happens on several directions, for a receiver that has to tell of one after the other.
//!
//! Every event of a direction has a time: a publication, and what its sender does there by the kernel. The sender
//! writes it down before the event can be seen, so of two events of which one happened before the other, be it in one
//! thread or by any message in between, the first has the earlier time. (The clock is the kernel's monotonic one, which
//! never goes back between processors.) A receiver remembers up to which event it has told its program, and asks for
//! the time of the first one after that.
//!
//! The last [`STAMPS`] times stand in lines that only the sender writes, so that nothing moves between cores until
//! somebody wants to know. Before older ones are overwritten, half of them at a time, the sender looks up to where the
//! receiver has told, and keeps the time of the first event after that, if it is among them. So that one is always
//! there:
//! - `stream-told`: the receiver stores up to where it has told, fences, and looks at the count of events; the sender
//!   stores that count, fences, and looks up to where was told. Either the sender sees it, or the receiver sees that so
//!   many events came meanwhile that it may not have.
//!
//! All of it is claims. Who lies about times changes in which order his own events are told of among others', and
//! nothing else. Two sets that have the same direction share one word for what they told: one of them may find no time
//! there.

use super::lines::{KernelCounts, KernelEvent, SlotDirection};
use crate::sys::now_ns;
use std::sync::atomic::{Ordering, fence};
use weft_wire::stream::arena::{KERNEL_EVENTS, STAMPS};

const HALF: u32 = STAMPS as u32 / 2;

/// When the first event happened that a receiver was not told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstUntold {
    /// There is none.
    None,
    At(u64),
    /// There is one, but its time is not there any more.
    Lost,
}

/// The sender is about to make an event visible. One at a time.
#[inline]
pub fn note(direction: &SlotDirection) {
    // Without a set there is nothing to put in order.
    if direction.watch.ordered.load(Ordering::Relaxed) == 0 {
        return;
    }
    let line = &direction.sender;
    let event = line.events.load(Ordering::Relaxed).wrapping_add(1);
    // One event early: from the count alone a reader cannot tell whether the next one is on its way already.
    let next = event.wrapping_add(1);
    if next.is_multiple_of(HALF) {
        keep(direction, next);
    }
    direction.stamps.0[event as usize % STAMPS].store(now_ns(), Ordering::Relaxed);
    line.events.store(event, Ordering::Release);
}

/// Before the times of the events from `event - STAMPS` on are overwritten, half of all.
#[cold]
fn keep(direction: &SlotDirection, event: u32) {
    // ORDER: stream-told
    fence(Ordering::SeqCst);
    let first = direction.receiver.told.load(Ordering::Relaxed).wrapping_add(1);
    let age = event.wrapping_sub(first);
    if (HALF + 1..=STAMPS as u32).contains(&age) {
        let time = direction.stamps.0[first as usize % STAMPS].load(Ordering::Relaxed);
        direction.sender.kept.store(time, Ordering::Relaxed);
        direction.sender.kept_event.store(first, Ordering::Release);
    }
}

/// The receiver wants times from now on. Before it says that it follows, so that each publication has one.
pub fn ask(direction: &SlotDirection) {
    direction.watch.ordered.store(1, Ordering::Relaxed);
}

/// How many events there were.
#[inline]
pub fn events(direction: &SlotDirection) -> u32 {
    direction.sender.events.load(Ordering::Acquire)
}

/// The time of the last event, `event`, that the receiver has counted: of one that was counted and could not be seen
/// yet.
#[inline]
pub fn time_of(direction: &SlotDirection, event: u32) -> u64 {
    direction.stamps.0[event as usize % STAMPS].load(Ordering::Relaxed)
}

/// The receiver has told of all events up to `event`, which it had counted before it looked.
#[inline]
pub fn tell(direction: &SlotDirection, event: u32) {
    direction.receiver.told.store(event, Ordering::Relaxed);
    // ORDER: stream-told
    fence(Ordering::SeqCst);
}

/// The first event after `told`.
pub fn first_after(direction: &SlotDirection, told: u32) -> FirstUntold {
    let first = told.wrapping_add(1);
    if events(direction) == told {
        return FirstUntold::None;
    }
    let time = direction.stamps.0[first as usize % STAMPS].load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    // The one whose time would stand in the same place may be on its way.
    if direction.sender.events.load(Ordering::Relaxed).wrapping_sub(first) < STAMPS as u32 - 1 {
        return FirstUntold::At(time);
    }
    if direction.sender.kept_event.load(Ordering::Acquire) == first {
        return FirstUntold::At(direction.sender.kept.load(Ordering::Relaxed));
    }
    FirstUntold::Lost
}

impl KernelCounts {
    /// A process of this side is about to do something by the kernel on a connection that may have no slot, behind so
    /// many bytes that went by the kernel; since `now`.
    pub fn note(&self, connection: u32, sent: u64, now: u64) {
        let at = self.count.fetch_add(1, Ordering::Relaxed) as usize % KERNEL_EVENTS;
        let place = &self.events[at];
        place.begun.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        place.connection.store(u64::from(connection) | sent << 32, Ordering::Relaxed);
        place.done.store(0, Ordering::Relaxed);
        place.begun.store(now, Ordering::Release);
    }

    /// What was begun then is done `now`.
    pub fn note_done(&self, connection: u32, begun: u64, now: u64) {
        let is_it = |place: &&KernelEvent| {
            place.begun.load(Ordering::Relaxed) == begun
                && place.connection.load(Ordering::Relaxed) as u32 == connection
        };
        if let Some(place) = self.events.iter().find(is_it) {
            place.done.store(now, Ordering::Release);
        }
    }

    /// When the first of these began on a connection, after the time `after`, of which nobody was told at `time`, as
    /// far as that is known: not what was done by then, nor what was begun by then and is among the bytes `received`
    /// since.
    pub fn first_after(&self, connection: u32, received: u64, after: u64, time: u64) -> Option<u64> {
        let read = |place: &KernelEvent| {
            let begun = place.begun.load(Ordering::Acquire);
            let word = place.connection.load(Ordering::Relaxed);
            let done = place.done.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            // The lower half of the position is enough: what is under way is near.
            let is_received = (received as u32).wrapping_sub((word >> 32) as u32) as i32 > 0;
            let is_new = begun > after && (done == 0 || done > time) && (begun > time || !is_received);
            (word as u32 == connection && is_new && place.begun.load(Ordering::Relaxed) == begun).then_some(begun)
        };
        self.events.iter().filter_map(read).min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::zero;
    use super::*;

    fn ordered() -> SlotDirection {
        let direction = zero::direction();
        ask(&direction);
        direction
    }

    #[test]
    fn events_have_no_place_where_nobody_puts_them_in_order() {
        let direction = zero::direction();
        note(&direction);
        assert_eq!((events(&direction), first_after(&direction, 0)), (0, FirstUntold::None));
        ask(&direction);
        note(&direction);
        assert!(matches!(first_after(&direction, 0), FirstUntold::At(time) if time > 0));
    }

    #[test]
    fn the_first_event_that_was_not_told_of_has_its_time_however_many_follow() {
        for before in 0..40 {
            for told in 0..=before {
                let direction = ordered();
                let mut times = vec![0];
                let mut note_one = || {
                    note(&direction);
                    let event = events(&direction);
                    times.push(direction.stamps.0[event as usize % STAMPS].load(Ordering::Relaxed));
                };
                (0..told).for_each(|_| note_one());
                tell(&direction, told);
                (told..before).for_each(|_| note_one());
                let expected = times.get(told as usize + 1).map_or(FirstUntold::None, |time| FirstUntold::At(*time));
                assert_eq!(first_after(&direction, told), expected, "{told} of {before}");
            }
        }
    }

    #[test]
    fn what_was_told_without_a_word_may_be_lost_and_is_never_another_time() {
        let direction = ordered();
        (0..100).for_each(|_| note(&direction));
        assert_eq!(first_after(&direction, 50), FirstUntold::Lost);
        assert_eq!(first_after(&direction, 0), FirstUntold::At(direction.sender.kept.load(Ordering::Relaxed)));
        assert_eq!(first_after(&direction, 100), FirstUntold::None);
    }

    #[test]
    fn events_by_the_kernel_are_found_by_connection_until_they_are_done() {
        let log = zero::by_kernel();
        log.note(7, 0, 10);
        log.note(7, 5, 20);
        log.note(8, 0, 30);
        assert_eq!([7, 8, 9].map(|connection| log.first_after(connection, 0, 0, 25)), [Some(10), Some(30), None]);
        assert_eq!([10, 20].map(|begun| log.first_after(7, 0, begun, 0)), [Some(20), None]);
        log.note_done(7, 10, 15);
        assert_eq!([14, 15, 25].map(|time| log.first_after(7, 0, 0, time)), [Some(10), Some(20), Some(20)]);
        (0..KERNEL_EVENTS as u64).for_each(|at| log.note(9, 0, 40 + at));
        assert_eq!([7, 9].map(|connection| log.first_after(connection, 0, 0, 0)), [None, Some(40)]);
    }

    #[test]
    fn what_is_received_before_it_is_done_is_not_taken_for_the_next_event() {
        let log = zero::by_kernel();
        // The positions pass the end of their half word.
        let start = u64::from(u32::MAX) - 2;
        log.note(7, start, 10);
        log.note(7, start + 4, 20);
        let first = |received: u64, time| log.first_after(7, received, 0, time);
        assert_eq!([first(start, 15), first(start + 1, 15), first(start + 4, 15)], [Some(10), Some(20), Some(20)]);
        assert_eq!([first(start + 4, 25), first(start + 8, 25)], [Some(20), None]);
        // What began since may have been received, too: then it has its place from there.
        assert_eq!(first(start + 8, 5), Some(10));
    }
}
