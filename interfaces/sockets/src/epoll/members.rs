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

/// What the ring of a connection has for a registration: events, or 0.
fn ready(held: &Held, place: &Registration) -> u32 {
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
        let arrived = events & READING != 0 && held.arrived() != place.told;
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
            let events = ready(&held, place);
            if take && events != 0 {
                place.told = held.arrived();
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

/// Puts what the rings have into `out`; answers how many.
pub fn collect(inner: &mut Inner, out: &mut [epoll_event]) -> usize {
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
    told
}

/// Streams that came alive become hot, in all sets.
pub fn dispatch_active() {
    STREAMS.scan_active(|token| {
        let held = conn::hold_index(token);
        control::for_each_registration(&held, |inner, fd| {
            if let Some(place) = inner.registered(fd) {
                (place.armed, place.armed_room) = (false, false);
            }
            if !inner.make_hot(fd) {
                inner.slices = true;
            }
        });
    });
}

/// A send found the ring of a connection full: room is watched from now on, where somebody is interested.
pub fn watch(held: &Held) {
    control::for_each_registration(held, |inner, fd| {
        if inner.registered(fd).is_some_and(|place| place.events & WRITING != 0) && !inner.make_hot(fd) {
            inner.slices = true;
        }
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
    arm_hot(&mut inner);
    if let Some(bell) = &inner.bell {
        STREAMS.lie_down(bell.address());
    }
    let mut short = inner.slices;
    for_each_nested(&mut inner, |nested| short |= rest_before_sleep(nested));
    short
}

/// After it.
pub fn rest_after_sleep(index: u32) {
    let mut inner = set::at(index).lock();
    inner.sleepers = inner.sleepers.saturating_sub(1);
    if inner.sleepers == 0 {
        if let Some(bell) = &inner.bell {
            STREAMS.get_up(bell.address());
        }
        drop_cold(&mut inner);
    }
    for_each_nested(&mut inner, rest_after_sleep);
}

/// This thread leaves the set with something to do while others sleep on it: what comes meanwhile must wake them.
pub fn leave_to_sleepers(index: u32, epfd: c_int) {
    let mut inner = set::at(index).lock();
    if inner.sleepers == 0 {
        return;
    }
    arm_hot(&mut inner);
    drop(inner);
    sleep_barrier();
    if any_ready(index) {
        control::poke(epfd);
    }
}

fn for_each_nested(inner: &mut Inner, mut each: impl FnMut(u32)) {
    for at in 0..inner.hot_count {
        let fd = inner.hot[at];
        if let (Some(Entry::Set(nested)), true) = (table::entry(fd), inner.registered(fd).is_some_and(|p| p.nested)) {
            each(nested);
        }
    }
}

/// Whether the set `index`, whose descriptor is `epfd` and which the kernel calls readable, really has something.
pub fn is_ready_inside(index: u32, epfd: c_int) -> bool {
    if !set::has_members(index) {
        return true;
    }
    drain_bell(index);
    any_ready(index) || raw::poll_one(epfd, POLLIN) & POLLIN != 0
}

/// The set's bell has rung: it is quiet again.
pub fn drain_bell(index: u32) {
    if let Some(bell) = &set::at(index).lock().bell {
        bell.drain();
    }
}
