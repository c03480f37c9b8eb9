//! Looking at members: which are ready, which are hot, which are armed.

use std::ffi::c_int;

use libc::{EPOLLET, EPOLLIN, EPOLLONESHOT, EPOLLOUT, EPOLLRDNORM, EPOLLWRNORM, POLLIN, epoll_event};
use weft_fabric::stream::{Readable, Waiter, Writable, sleep_barrier};

use super::control;
use super::set::{self, Inner, Registration};
use crate::conn::{self, Held, WAS_FULL};
use crate::meet::STREAMS;
use crate::raw;
use crate::table::{self, Entry};

const READING: u32 = (EPOLLIN | EPOLLRDNORM) as u32;
const WRITING: u32 = (EPOLLOUT | EPOLLWRNORM) as u32;

/// A busy set that never sleeps cools down after so many calls, if it has so many hot members.
const COOL_EVERY: u32 = 1024;
const COOL_FROM: usize = 64;

/// What the ring of a connection has for a registration: events, or 0. `arrived` is what had arrived before this look.
fn ready(held: &Held, place: &Registration, arrived: u64) -> u32 {
    let stream = held.stream();
    let low = held.ready_bytes();
    let mut events = 0;
    if place.events & READING != 0 {
        match held.readable() {
            Readable::Ring(bytes) if bytes >= low => events |= READING,
            Readable::Broken => events |= READING,
            _ => {}
        }
    }
    if place.events & WRITING != 0 {
        match stream.writable() {
            Writable::Ring(_) | Writable::Broken => events |= WRITING,
            _ => {}
        }
    }
    if place.events & EPOLLET as u32 != 0 {
        let arrived = events & READING != 0 && arrived != place.told;
        let room = events & WRITING != 0 && held.has_flag(WAS_FULL);
        if !arrived && !room {
            return 0;
        }
    }
    events & place.events
}

/// Looks at the hot member `fd`; with `take` it is told to the program.
fn look(inner: &mut Inner, fd: c_int, take: bool) -> Option<epoll_event> {
    let entry = table::entry(fd);
    let place = inner.registered(fd)?;
    if place.spent {
        return None;
    }
    let events = match entry? {
        Entry::Set(nested) if place.nested && any_ready(nested) => place.events & READING,
        Entry::Connection(index) if place.member => {
            let held = conn::hold_index(index);
            // Before the look: what comes later is told again, and never lost.
            let arrived = held.stream().arrived();
            let events = ready(&held, place, arrived);
            if take && events != 0 {
                place.told = arrived;
                if events & WRITING != 0 {
                    held.take_flag(WAS_FULL);
                }
            }
            events
        }
        _ => 0,
    };
    if events == 0 {
        return None;
    }
    if take {
        place.spent = place.events & EPOLLONESHOT as u32 != 0;
    }
    Some(epoll_event { events, u64: place.data })
}

/// Whether a ring of the set has something to tell.
pub fn any_ready(index: u32) -> bool {
    let mut inner = set::at(index).lock();
    (0..inner.hot_count).any(|at| {
        let fd = inner.hot[at];
        look(&mut inner, fd, false).is_some()
    })
}

/// Puts what the rings have into `out`; answers how many, and the number of this call.
pub fn collect(inner: &mut Inner, out: &mut [epoll_event]) -> (usize, u32) {
    inner.calls = inner.calls.wrapping_add(1);
    if inner.calls.is_multiple_of(COOL_EVERY) && inner.hot_count > COOL_FROM {
        cool(inner);
    }
    let (count, first) = (inner.hot_count, inner.turn);
    let mut told = 0;
    for step in 0..count {
        if told == out.len() {
            break;
        }
        let fd = inner.hot[(first + step) % count];
        let Some(event) = look(inner, fd, true) else { continue };
        let call = inner.calls;
        if let Some(place) = inner.registered(fd) {
            (place.call, place.answer) = (call, told as u32);
        }
        out[told] = event;
        told += 1;
    }
    // With all told in one answer the order does not matter; otherwise the next look begins behind the last one.
    if told == out.len() && count > 0 {
        inner.turn = (first + told) % count;
    }
    (told, inner.calls)
}

/// Streams that came alive become hot, in all sets.
pub fn dispatch_active() {
    STREAMS.scan_active(|token| {
        let held = conn::hold_index(token);
        control::for_each_registration(&held, |index, inner, fd| {
            if let Some(place) = inner.registered(fd) {
                (place.armed, place.armed_room) = (false, false);
            }
            if !inner.make_hot(fd) {
                inner.slices = true;
            }
            // Its last look may have come between our taking the mark and this.
            control::wake(index, inner);
        });
    });
}

/// A send found the ring of a connection full: room is watched from now on, where somebody is interested.
pub fn watch(held: &Held) {
    control::for_each_registration(held, |index, inner, fd| {
        if !inner.registered(fd).is_some_and(|place| place.events & WRITING != 0 && !place.armed_room) {
            return;
        }
        if !inner.make_hot(fd) {
            inner.slices = true;
        }
        // Those who sleep have armed nothing for it.
        control::wake(index, inner);
    });
}

/// Arms every hot member. What cannot be armed (another set has it) makes sleeps short.
fn arm_hot(inner: &mut Inner) {
    let Some(bell) = inner.bell.as_ref().map(|bell| bell.address()) else {
        inner.slices = true;
        return;
    };
    inner.slices = false;
    for at in 0..inner.hot_count {
        let fd = inner.hot[at];
        let Some(Entry::Connection(index)) = table::entry(fd) else { continue };
        let Some(place) = inner.registered(fd).filter(|place| place.member && !place.nested) else { continue };
        let stream = conn::at(index).stream();
        place.armed = place.armed || stream.arm_receive(bell, Waiter::Set);
        if place.events & WRITING != 0 && matches!(stream.writable(), Writable::Full) {
            place.armed_room = place.armed_room || stream.arm_space(bell, Waiter::Set);
            if !place.armed_room {
                inner.slices = true;
            }
        }
        if !inner.registered(fd).is_some_and(|place| place.armed) {
            inner.slices = true;
        }
    }
}

/// The set has another bell from now on, or none: nothing is armed, all members are hot.
#[cold]
pub fn disarm_all(inner: &mut Inner) {
    let bell = inner.bell.as_ref().filter(|_| inner.bell_of == set::forks()).map(|bell| bell.address());
    for (fd, entry) in table::entries(0, c_int::MAX) {
        let Some(place) = inner.registered(fd).filter(|place| place.member) else { continue };
        (place.armed, place.armed_room) = (false, false);
        if let (Some(bell), Entry::Connection(index)) = (bell, entry) {
            let stream = conn::at(index).stream();
            stream.disarm_receive(bell, Waiter::Set);
            stream.disarm_space(bell, Waiter::Set);
        }
        inner.slices |= !inner.make_hot(fd);
    }
}

/// Hot members that are armed and have nothing are hot no more.
fn drop_cold(inner: &mut Inner) {
    let mut at = 0;
    while at < inner.hot_count {
        let fd = inner.hot[at];
        let armed = inner.registered(fd).is_some_and(|place| place.armed && !place.nested);
        if armed && look(inner, fd, false).is_none() && !is_full(inner, fd) {
            inner.make_cold(fd);
        } else {
            at += 1;
        }
    }
}

/// Whether a member waits for room without being armed for it.
fn is_full(inner: &mut Inner, fd: c_int) -> bool {
    let Some(Entry::Connection(index)) = table::entry(fd) else { return false };
    let Some(place) = inner.registered(fd) else { return false };
    place.events & WRITING != 0 && !place.armed_room && matches!(conn::at(index).stream().writable(), Writable::Full)
}

/// Leaves only the busy ones among the hot members.
#[cold]
pub fn cool(inner: &mut Inner) {
    arm_hot(inner);
    sleep_barrier();
    drop_cold(inner);
}

/// Before a sleep on the set (or on something that has it inside): all is armed, the bell rings. To be followed by
/// [`sleep_barrier`], [`dispatch_active`] and a last look. True if the sleep must be short.
pub fn rest_before_sleep(index: u32) -> bool {
    let mut inner = set::at(index).lock();
    inner.sleepers += 1;
    control::renew_bell(index, &mut inner);
    arm_hot(&mut inner);
    if let Some(bell) = &inner.bell {
        STREAMS.lie_down(bell.address());
    }
    let mut short = inner.slices;
    drop(inner);
    for_each_nested(index, |nested| short |= rest_before_sleep(nested));
    short
}

/// After it.
pub fn rest_after_sleep(index: u32) {
    let mut inner = set::at(index).lock();
    inner.sleepers = inner.sleepers.saturating_sub(1);
    inner.poked = false;
    if inner.sleepers == 0 {
        if let Some(bell) = &inner.bell {
            STREAMS.get_up(bell.address());
        }
        drop_cold(&mut inner);
    }
    drop(inner);
    for_each_nested(index, rest_after_sleep);
}

/// This thread leaves the set with something to do while others sleep on it: what comes meanwhile must wake them. The
/// ring that woke this thread was the only one of their common sleep: the bell is rung again from now on.
pub fn leave_to_sleepers(index: u32) {
    let mut inner = set::at(index).lock();
    if !control::has_sleepers(index, &inner) {
        return;
    }
    arm_hot(&mut inner);
    if let Some(bell) = &inner.bell {
        STREAMS.lie_down(bell.address());
    }
    drop(inner);
    for_each_nested(index, leave_to_sleepers);
    sleep_barrier();
    dispatch_active();
    if any_ready(index) {
        control::wake(index, &mut set::at(index).lock());
    }
}

/// Calls `each` with the sets inside the set `index`, which is not locked meanwhile.
fn for_each_nested(index: u32, mut each: impl FnMut(u32)) {
    for at in 0.. {
        let mut inner = set::at(index).lock();
        if at >= inner.hot_count {
            return;
        }
        let fd = inner.hot[at];
        let nested = inner.registered(fd).is_some_and(|place| place.nested);
        drop(inner);
        if let (Some(Entry::Set(nested)), true) = (table::entry(fd), nested) {
            each(nested);
        }
    }
}

/// Whether the set `index`, whose descriptor is `epfd` and which the kernel calls readable, really has something.
pub fn is_ready_inside(index: u32, epfd: c_int) -> bool {
    if !set::has_members(index) {
        return true;
    }
    let mut inner = set::at(index).lock();
    control::take_back(epfd, &mut inner);
    if let Some(bell) = &inner.bell {
        bell.drain();
    }
    drop(inner);
    any_ready(index) || raw::poll_one(epfd, POLLIN) & POLLIN != 0
}
