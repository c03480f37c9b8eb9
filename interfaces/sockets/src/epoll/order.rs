//! Which events a call tells of, and in which order.
//!
//! The kernel tells of events in the order in which they happened. So do we: an event that happened before another one,
//! in one thread or by a message in between, is never told behind it, and never left out of a call that tells of the
//! other one, as far as the answer has room.
//!
//! *Nothing is left out.* A call looks at the rings, asks the kernel's set, and looks at the rings again, until that
//! finds no more than before the kernel was asked (`wait`). Whatever happened before an event is to be seen once the
//! event is: in a ring, because heads are loaded with acquire; in the kernel, because its call had returned or its list
//! was longer. So what happened before something in a ring is found by the last look at the rings, or the kernel was
//! asked after it; and what happened before something of the kernel is found by the last look, which came behind, or is
//! in front of it in the kernel's own list. The kernel is not asked where `alert` sees, behind the last look, that it
//! has nothing.
//!
//! *The order.* What goes by a ring has a time, and what a process does by the kernel on a connection has one where we
//! can know of it: on a connection with a stream it stands beside the ring's, on another one in the memory that its
//! process shares with ours (`Streams::note_by_kernel`). (By a ring only where a set of the receiver's has it: others
//! pay for no clock.) All these times are taken before the event can be seen, by one clock, so their order is that in
//! which things happened. What counts is the first event that was not told of yet. By the kernel's word alone it is not
//! known which one that is: of one whose sender has not come back the bytes may be there already, and have been
//! received. So its position stands beside its time, and what was received up to there is not the next one. Of what has
//! no time (others' connections, pipes, listeners) nobody who shares rings with us has done it, but by a message to
//! somebody else. It is put where the kernel has it behind others, and otherwise at the time when the kernel was asked
//! before, which is the earliest at which it can have been. A registration that was told of, and still has what it had,
//! has the place of that call.
//!
//! Known not to be in order: what a process does by the kernel that shares rings with more than a few others, or with
//! none of ours (it may have heard of an event in a ring by somebody else), or by calls that we do not see; and the end
//! of what was shown to a rendezvous that is stopped, and is open there still. More than [`MOST`] of the rings are told
//! of in turn, more of the kernel's behind all others, and the times of datagrams, of room and of sets inside are not
//! known.

use std::ffi::c_int;

use libc::epoll_event;
use weft_fabric::stream::{FirstUntold, Stream};

use super::control::{self, KernelWord};
use super::members;
use super::set::{EpollInner, FOUND, Registration};
use crate::conn::{self, ATTACHED, RECEIVED};
use crate::meet::STREAMS;
use crate::table::{self, Entry};

/// So much of the rings is told of in one call, and so much of the kernel's by its time.
pub const MOST: usize = FOUND / 2;

/// Something to tell of.
#[derive(Clone, Copy)]
pub struct FoundEvent {
    at: u64,
    data: u64,
    events: u32,
    /// Its descriptor; -1 where only the program knows it.
    fd: c_int,
    /// Its place in the kernel's order; [`BY_RING`] for what is to be taken from a ring.
    rank: u32,
}

impl FoundEvent {
    fn event(&self) -> epoll_event {
        epoll_event { events: self.events, u64: self.data }
    }
}

const BY_RING: u32 = u32::MAX;
/// Events of a connection that was attached at its other end first, of which the kernel may have told.
const MOST_BEFORE: usize = 16;

/// When the kernel was asked: before the last time, and the time before that.
#[derive(Clone, Copy)]
pub struct AskedTimes {
    pub now: u64,
    pub before: u64,
}

/// Finds the members whose rings have something; how many.
pub fn gather(inner: &mut EpollInner, epfd: c_int) -> usize {
    members::cool_down(inner);
    let (count, first) = (inner.hot_count, inner.turn);
    let mut found = 0;
    for step in 0..count {
        if found == MOST {
            inner.turn = (first + step) % count;
            break;
        }
        let fd = inner.hot[(first + step) % count];
        control::restore_room(inner, epfd, fd);
        if members::look(inner, fd, false).is_some() {
            inner.found[found] = FoundEvent { at: 0, data: 0, events: 0, fd, rank: BY_RING };
            found += 1;
        }
    }
    found
}

/// Tells of what `gather` has found last, `rings` members, and of `seen` events in `out` as the kernel has given them;
/// how many are told, and how many of them are the kernel's.
pub fn tell(
    inner: &mut EpollInner,
    epfd: c_int,
    out: &mut [epoll_event],
    (rings, seen): (usize, usize),
    asked: AskedTimes,
) -> (usize, usize) {
    inner.calls = inner.calls.wrapping_add(1);
    let mut last = asked.before;
    let (by_time, rest) = (seen.min(MOST), seen.saturating_sub(MOST));
    let mut kernels = 0;
    for event in &out[..by_time] {
        let Some(found) = translate(inner, epfd, *event, rings, asked, &mut last) else { continue };
        inner.found[rings + kernels] = FoundEvent { rank: kernels as u32, ..found };
        kernels += 1;
    }
    let behind = (by_time + rings).min(out.len() - rest);
    out.copy_within(by_time..seen, behind);
    let mut others = 0;
    for at in behind..behind + rest {
        let Some(found) = translate(inner, epfd, out[at], rings, asked, &mut last) else { continue };
        out[behind + others] = found.event();
        others += 1;
    }
    let used = tell_by_time(inner, &mut out[..behind], (rings, kernels), asked);
    out.copy_within(behind..behind + others, used);
    (used + others, kernels + others)
}

/// Puts what was found in order, and in `out`: that of the rings as far as there is room, that of the kernel all.
fn tell_by_time(
    inner: &mut EpollInner,
    out: &mut [epoll_event],
    (rings, kernels): (usize, usize),
    asked: AskedTimes,
) -> usize {
    let all = rings + kernels;
    if rings > 0 && all > 1 {
        for at in 0..rings {
            let fd = inner.found[at].fd;
            inner.found[at].at = time_of(inner, fd, 0).unwrap_or(0);
        }
        inner.found[..all].sort_unstable_by_key(|found| (found.at, found.rank));
    }
    let (mut used, mut reserved) = (0, kernels);
    for at in 0..all {
        let found = inner.found[at];
        if found.rank != BY_RING {
            reserved -= 1;
            out[used] = found.event();
        } else if used + reserved < out.len()
            && let Some(event) = take(inner, found.fd, asked)
        {
            out[used] = event;
        } else {
            continue;
        }
        used += 1;
    }
    used
}

/// An event of the kernel as the program shall see it, and its time, which is `last`, that of the one before it, at
/// least. What its ring has beside it, if that is among the `rings` that were found, is taken here.
fn translate(
    inner: &mut EpollInner,
    epfd: c_int,
    mut event: epoll_event,
    rings: usize,
    asked: AskedTimes,
    last: &mut u64,
) -> Option<FoundEvent> {
    let (mut fd, mut at) = (-1, *last);
    if let KernelWord::Ours(ours) = control::word(event.u64) {
        fd = ours;
        event = control::translate(inner, epfd, fd, event.events)?;
        *last = time_of(inner, fd, asked.before.max(1)).unwrap_or(*last);
        // What was there when it was registered anew has its place from then on.
        at = (*last).max(inner.registered(fd).map_or(0, |place| place.told_at));
        if is_found(inner, fd, rings) {
            at = time_of(inner, fd, 0).map_or(at, |earlier| earlier.min(at));
            event.events |= take(inner, fd, asked).map_or(0, |more| more.events);
        }
        note_told(inner, fd, asked);
    }
    let call = inner.calls;
    if let Some(registration) = inner.registered(fd) {
        registration.call = call;
    }
    Some(FoundEvent { at, data: event.u64, events: event.events, fd, rank: 0 })
}

fn is_found(inner: &EpollInner, fd: c_int, rings: usize) -> bool {
    inner.found[..rings].iter().any(|found| found.fd == fd)
}

/// When the first event of this registration happened that was not told of; `None` where nobody has said so. `since`:
/// at that time the kernel had none.
fn time_of(inner: &mut EpollInner, fd: c_int, since: u64) -> Option<u64> {
    let place = inner.registered(fd)?;
    if place.queued {
        return Some(place.told_at);
    }
    let Some(Entry::Connection(index)) = table::entry(fd).filter(|_| !place.nested) else { return None };
    let held = conn::hold_index(index);
    let attached = held.state_now() == ATTACHED;
    let by_ring = || {
        match held.stream().first_event_after(place.told_event) {
            FirstUntold::At(time) => Some(time),
            // It was counted when it could not be seen yet, and has the time of the last that was counted. Or it was
            // told of, and is there still: the others that were told of with it may have that time, too.
            FirstUntold::None if place.told_at > since => {
                Some(place.told_at.max(held.stream().time_of_event(place.told_event)))
            }
            FirstUntold::Lost if place.told_at > since => Some(place.told_at),
            FirstUntold::None | FirstUntold::Lost => None,
        }
    };
    let said = if since == 0 {
        None
    } else {
        STREAMS.first_by_kernel(held.ports(fd)?, held.carried(RECEIVED), place.told_begun, place.told_at.max(since))
    };
    // It may take long until that is done, and its last bytes are not taken for the next one then.
    place.told_begun = said.unwrap_or(place.told_begun);
    said.or_else(|| if attached { by_ring() } else { None })
}

/// How many of the members that were found in rings are among `seen`, too.
pub fn count_both(inner: &EpollInner, rings: usize, seen: &[epoll_event]) -> usize {
    let is_seen = |fd: c_int| seen.iter().any(|event| control::word(event.u64) == KernelWord::Ours(fd));
    inner.found[..rings].iter().filter(|found| is_seen(found.fd)).count()
}

/// Takes what a ring has, unless the kernel's word on it was told in this call.
fn take(inner: &mut EpollInner, fd: c_int, asked: AskedTimes) -> Option<epoll_event> {
    let call = inner.calls;
    if inner.registered(fd).is_none_or(|place| place.call == call) {
        return None;
    }
    note_told(inner, fd, asked);
    members::look(inner, fd, true)
}

/// Before the look: what comes later is told of again.
fn note_told(inner: &mut EpollInner, fd: c_int, asked: AskedTimes) {
    let Some(place) = inner.registered(fd) else { return };
    (place.told_at, place.queued) = (asked.now, false);
    if let Some(Entry::Connection(index)) = table::entry(fd).filter(|_| place.member && !place.nested) {
        let stream = conn::at(index).stream();
        place.told_event = stream.events();
        stream.note_told(place.told_event);
    }
}

/// A look has found nothing of the events up to the one that was counted last before it: the next is the first one.
/// That one may only not be seen yet: then its time is known.
pub fn note_nothing(place: &mut Registration, stream: &Stream, counted: u32) {
    (place.told_event, place.told_at, place.queued) = (counted, stream.time_of_event(counted), false);
    stream.note_told(counted);
}

/// It is attached from now on. What its other end has done since it was attached itself may have been told of, by the
/// kernel.
pub fn note_attached(place: &mut Registration, stream: &Stream) {
    stream.ask_for_order();
    place.told_event = 0;
    // Their number is the peer's to say, so there is an end to it.
    for _ in 0..MOST_BEFORE {
        match stream.first_event_after(place.told_event) {
            FirstUntold::At(time) if time <= place.told_at => place.told_event = place.told_event.wrapping_add(1),
            _ => break,
        }
    }
    stream.note_told(place.told_event);
}

/// It is registered anew: what it has already has its place from now on.
pub fn note_registered(inner: &mut EpollInner, fd: c_int, now: u64) {
    let Some(place) = inner.registered(fd) else { return };
    (place.told_at, place.told_begun, place.told_event, place.queued) = (now, now, 0, false);
    let Some(Entry::Connection(index)) = table::entry(fd).filter(|_| !place.nested) else { return };
    let held = conn::hold_index(index);
    if held.state_now() != ATTACHED {
        return;
    }
    held.stream().ask_for_order();
    place.told_event = held.stream().events();
    held.stream().note_told(place.told_event);
    let queued = members::look(inner, fd, false).is_some();
    if let Some(place) = inner.registered(fd) {
        place.queued = queued;
    }
}
