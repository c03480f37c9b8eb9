//! Looking at members: which are ready, which are hot, which are armed.

use std::ffi::c_int;

use libc::{EPOLLET, EPOLLIN, EPOLLONESHOT, EPOLLOUT, EPOLLRDNORM, EPOLLWRNORM, POLLIN, epoll_event};
use weft_fabric::stream::{Readable, Waiter, Writable, sleep_barrier};

use super::set::{self, EpollInner, HOT, Registration};
use super::{control, order};
use crate::conn::{self, ATTACHED, Hold, WAS_FULL};
use crate::meet::STREAMS;
use crate::table::{self, Entry};
use crate::wait::LOOK_NS;
use crate::{outgoing, raw, udp};

const READING: u32 = (EPOLLIN | EPOLLRDNORM) as u32;
const WRITING: u32 = (EPOLLOUT | EPOLLWRNORM) as u32;

/// A busy set that never sleeps cools down after so many calls, if it has so many hot members.
const COOL_EVERY: u32 = 1024;
const COOL_FROM: usize = 64;

/// What the ring of a connection has for a registration: events, or 0; and whether the kernel must be asked for the
/// others. `arrived` is what had arrived before this look.
fn ready(held: &Hold, place: &Registration, arrived: u64) -> (u32, bool) {
    let stream = held.stream();
    let low = held.ready_bytes();
    let (mut events, mut partly) = (0, false);
    if place.events & READING != 0 {
        match held.readable() {
            Readable::Ring(bytes) if bytes >= low => events |= READING,
            Readable::Broken => events |= READING,
            Readable::Kernel => {
                partly = true;
                // The kernel has told of its own bytes, and knows nothing of these.
                if place.events & EPOLLET as u32 != 0 && stream.has_rest_in_ring() {
                    events |= READING;
                }
            }
            _ => {}
        }
    }
    if place.events & WRITING != 0 {
        match stream.writable() {
            Writable::Ring(_) | Writable::Broken => events |= WRITING,
            Writable::Kernel => partly = true,
            Writable::Full => {}
        }
    }
    if place.events & EPOLLET as u32 != 0 {
        let arrived = events & READING != 0 && arrived != place.told;
        let room = events & WRITING != 0 && held.has_flag(WAS_FULL);
        if !arrived && !room {
            return (0, partly);
        }
    }
    (events & place.events, partly)
}

/// What the rings of a datagram socket have for a registration. Room is the kernel's to tell.
fn datagrams(index: u32, place: &mut Registration, take: bool) -> u32 {
    let events = place.events & READING;
    if events == 0 {
        return 0;
    }
    // Before the look: what comes later is told again, and never lost.
    let arrived = udp::arrived(index);
    let told = place.events & EPOLLET as u32 != 0 && place.told == arrived;
    if told || !udp::is_waiting(index) {
        return 0;
    }
    if take {
        place.told = arrived;
    }
    events
}

/// Looks at the hot member `fd`; with `take` it is told to the program.
pub fn look(inner: &mut EpollInner, fd: c_int, take: bool) -> Option<epoll_event> {
    let entry = table::entry(fd);
    let place = inner.registered(fd)?;
    if place.spent {
        return None;
    }
    let events = match entry? {
        Entry::Set(nested) if place.nested && any_ready(nested) => place.events & READING,
        Entry::Connection(index) if place.member => {
            let held = conn::hold_index(index);
            let stream = held.stream();
            // Before the look: what comes later is told again, and never lost.
            let (arrived, counted) = (stream.arrived(), stream.events());
            let (mut events, partly) = ready(&held, place, arrived);
            // What the kernel carries cannot be seen here.
            if events == 0 && counted != place.told_event && !partly {
                order::note_nothing(place, &stream, counted);
            }
            if take && events != 0 {
                place.told = arrived;
                if partly {
                    // The rest of the same answer: directions switch one by one.
                    let rest = place.events & (READING | WRITING) & !events;
                    events |= raw::poll_one(fd, rest as i16) as u32 & rest;
                }
                if events & WRITING != 0 {
                    held.take_flag(WAS_FULL);
                }
            }
            events
        }
        Entry::Datagram(index) if place.member => datagrams(index, place, take),
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

/// Whether a ring of the set has something to tell. A signal handler that cannot know is told so: it must not wait.
pub fn any_ready(index: u32) -> bool {
    let Some(mut inner) = set::at(index).lock() else { return true };
    let epfd = control::descriptor(index, &mut inner);
    (0..inner.hot_count).any(|at| {
        let fd = inner.hot[at];
        // What the kernel is asked next is to be the truth.
        epfd.inspect(|epfd| control::restore_room(&mut inner, *epfd, fd));
        look(&mut inner, fd, false).is_some()
    })
}

/// Of a set that never sleeps only the busy ones stay hot.
pub fn cool_down(inner: &mut EpollInner) {
    if inner.calls.is_multiple_of(COOL_EVERY) && inner.hot_count > COOL_FROM {
        cool(inner);
    }
}

/// Takes what has come by the lane. Streams that came alive become hot, in all sets.
pub fn dispatch_active() {
    STREAMS.drive();
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
pub fn watch(held: &Hold) {
    control::for_each_registration(held, |index, inner, fd| {
        if !inner.registered(fd).is_some_and(|place| place.events & WRITING != 0 && !place.armed_room) {
            return;
        }
        inner.note_room();
        if !inner.make_hot(fd) {
            inner.slices = true;
        }
        // Those who sleep have armed nothing for it.
        control::wake(index, inner);
    });
}

/// Arms every hot member. What cannot be armed (another set has it) makes sleeps short.
fn arm_hot(inner: &mut EpollInner) {
    let Some(bell) = inner.bell.as_ref().map(|bell| bell.address()) else {
        inner.slices = true;
        return;
    };
    inner.slices = false;
    let mut full = false;
    for at in 0..inner.hot_count {
        let fd = inner.hot[at];
        let Some(Entry::Connection(index)) = table::entry(fd) else { continue };
        let Some(place) = inner.registered(fd).filter(|place| place.member && !place.nested) else { continue };
        let stream = conn::at(index).stream();
        place.armed = place.armed || stream.arm_receive(bell, Waiter::Set);
        if place.events & WRITING != 0 && matches!(stream.writable(), Writable::Full) {
            full = true;
            place.armed_room = place.armed_room || stream.arm_space(bell, Waiter::Set);
            if !place.armed_room {
                inner.slices = true;
            }
        }
        if !inner.registered(fd).is_some_and(|place| place.armed) {
            inner.slices = true;
        }
    }
    if full {
        inner.note_room();
    }
}

/// Whether a member, or one of a set inside, may wait for room: sleeps must end for [`leave_dead_rings`] now and then.
pub fn awaits_room(index: u32) -> bool {
    let mut awaits = set::at(index).lock().is_some_and(|inner| inner.awaits_room);
    for_each_nested(index, |nested| awaits |= awaits_room(nested));
    awaits
}

/// The kernel does not tell a set of the end of a peer that has left bytes in a ring, unless the program reads: members
/// that wait for room behind them are the kernel's from then on. Looks now and then only.
pub fn leave_dead_rings(index: u32) {
    let Some(mut inner) = set::at(index).lock() else { return };
    let now = if inner.awaits_room { raw::now_ns() } else { 0 };
    let due = now.saturating_sub(inner.looked_at) >= LOOK_NS;
    if due {
        (inner.awaits_newly, inner.looked_at) = (false, now);
    }
    drop(inner);
    if due {
        let mut awaits = false;
        table::entries(0, c_int::MAX).for_each(|(fd, entry)| awaits |= leave_dead_ring(index, fd, entry));
        if let Some(mut inner) = set::at(index).lock() {
            inner.awaits_room = awaits || inner.awaits_newly;
        }
    }
    for_each_nested(index, leave_dead_rings);
}

/// Whether this member waits for room, or did until now.
fn leave_dead_ring(index: u32, fd: c_int, entry: Entry) -> bool {
    let Entry::Connection(_) = entry else { return false };
    let Some(held) = conn::hold(fd).filter(|held| held.state_now() == ATTACHED) else { return false };
    let Some(mut inner) = set::at(index).lock() else { return true };
    let waits = inner.registered(fd).is_some_and(|place| place.member && place.events & WRITING != 0 && !place.spent);
    drop(inner);
    if !waits || held.stream().writable() != Writable::Full {
        return false;
    }
    outgoing::leave_a_ring_in_vain(&held, fd, &held.stream());
    true
}

/// The set has another bell from now on, or none: nothing is armed, all members are hot.
#[cold]
pub fn disarm_all(inner: &mut EpollInner) {
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
fn drop_cold(inner: &mut EpollInner) {
    let mut at = 0;
    while at < inner.hot_count {
        let fd = inner.hot[at];
        let armed = inner.registered(fd).is_some_and(|place| place.armed && !place.nested);
        if armed && look(inner, fd, false).is_none() && !is_full(inner, fd) && !is_hidden(fd) {
            inner.make_cold(fd);
        } else {
            at += 1;
        }
    }
}

/// Whether a member waits for room without being armed for it.
fn is_full(inner: &mut EpollInner, fd: c_int) -> bool {
    let Some(Entry::Connection(index)) = table::entry(fd) else { return false };
    let Some(place) = inner.registered(fd) else { return false };
    place.events & WRITING != 0 && !place.armed_room && matches!(conn::at(index).stream().writable(), Writable::Full)
}

/// Whether the ring has bytes that cannot be told before those of the kernel are read. They may have come before the
/// member was armed: then nobody tells of them again.
fn is_hidden(fd: c_int) -> bool {
    matches!(table::entry(fd), Some(Entry::Connection(index)) if conn::at(index).stream().has_rest_in_ring())
}

/// Leaves only the busy ones among the hot members.
#[cold]
pub fn cool(inner: &mut EpollInner) {
    arm_hot(inner);
    sleep_barrier();
    drop_cold(inner);
}

/// Datagram sockets of a set somebody is about to sleep on rest until nobody does.
fn begin_rests(inner: &mut EpollInner) {
    for at in 0..inner.hot_count {
        let fd = inner.hot[at];
        let Some(place) = inner.registered(fd).filter(|place| place.member && !is_resting(place)) else { continue };
        if let Some(held) = udp::hold(fd) {
            // Before the rest: a handler may fork meanwhile.
            place.resting_of = set::forks();
            place.resting = udp::rest(held, fd).keep();
        }
    }
}

/// One of before a fork is the parent's.
fn is_resting(place: &Registration) -> bool {
    place.resting != 0 && place.resting_of == set::forks()
}

pub fn end_rests(inner: &mut EpollInner) {
    for at in 0..inner.hot_count {
        let fd = inner.hot[at];
        if let Some(place) = inner.registered(fd) {
            end_rest(place);
        }
    }
}

/// Nobody sleeps on this member of the set any more.
pub fn end_rest(place: &mut Registration) {
    let ours = is_resting(place);
    let kept = std::mem::take(&mut place.resting);
    if ours {
        drop(udp::SleepHold::kept(kept));
    }
}

/// For [`RestingSet`](super::RestingSet): one more sleeps on this set. Answers the set's life, and whether the sleep
/// must be short.
pub fn lie_down(index: u32) -> Option<(u32, bool)> {
    let mut inner = set::at(index).lock()?;
    inner.sleepers += 1;
    control::renew_bell(index, &mut inner);
    arm_hot(&mut inner);
    begin_rests(&mut inner);
    if let Some(bell) = &inner.bell {
        STREAMS.lie_down(bell.address());
    }
    Some((inner.life, inner.slices))
}

/// One that lay down in this life of the set sleeps no more. Where others do, they are woken from now on.
pub fn get_up(index: u32, life: u32) {
    let Some(mut inner) = set::at(index).lock().filter(|inner| inner.life == life) else { return };
    inner.sleepers = inner.sleepers.saturating_sub(1);
    inner.poked = false;
    if inner.sleepers == 0 {
        if let Some(bell) = &inner.bell {
            STREAMS.get_up(bell.address());
        }
        end_rests(&mut inner);
        drop_cold(&mut inner);
    }
    drop(inner);
    rouse_sleepers(index);
}

/// This thread leaves the set, and those inside it, with something to do while others sleep there: what comes meanwhile
/// must wake them.
pub fn leave_to_sleepers(index: u32) {
    rouse_sleepers(index);
    for_each_nested(index, leave_to_sleepers);
}

/// The ring that woke this thread, or that it has taken for another reason, was the only one of the sleep of all who
/// sleep on the set: the bell is rung again from now on, and at once if there is something.
fn rouse_sleepers(index: u32) {
    let Some(mut inner) = set::at(index).lock() else { return };
    if !control::has_sleepers(index, &inner) {
        return;
    }
    arm_hot(&mut inner);
    // Sockets that were attached during their sleep, too.
    begin_rests(&mut inner);
    if let Some(bell) = &inner.bell {
        STREAMS.lie_down(bell.address());
    }
    drop(inner);
    sleep_barrier();
    dispatch_active();
    if any_ready(index)
        && let Some(mut inner) = set::at(index).lock()
    {
        control::wake(index, &mut inner);
    }
}

/// Calls `each` with the sets inside the set `index`, which is not locked meanwhile; with some of them twice where the
/// set changes. From the last on: who goes out of the list leaves its place to the last.
pub fn for_each_nested(index: u32, mut each: impl FnMut(u32)) {
    let mut at = HOT;
    loop {
        let Some(mut inner) = set::at(index).lock().filter(|inner| inner.nested > 0) else { return };
        at = at.min(inner.hot_count);
        let nested = loop {
            let Some(before) = at.checked_sub(1) else { return };
            at = before;
            let fd = inner.hot[at];
            if inner.registered(fd).is_some_and(|place| place.nested) {
                break table::entry(fd);
            }
        };
        drop(inner);
        if let Some(Entry::Set(nested)) = nested {
            each(nested);
        }
    }
}

/// Whether the set `index`, whose descriptor is `epfd` and which the kernel calls readable, really has something. If
/// not, its bell and those inside are quiet from then on, and its lane, also for others who sleep there:
/// [`leave_to_sleepers`] follows, when the caller holds no set any more.
pub fn is_ready_inside(index: u32, epfd: c_int) -> bool {
    if !set::has_members(index) || any_ready(index) {
        return true;
    }
    STREAMS.drive();
    quieten_all(index);
    any_ready(index) || raw::poll_one(epfd, POLLIN) & POLLIN != 0
}

fn quieten_all(index: u32) {
    let Some(mut inner) = set::at(index).lock() else { return };
    if let Some(bell) = inner.bell.as_ref().filter(|_| inner.bell_of == set::forks()) {
        bell.drain();
        inner.poked = false;
    }
    drop(inner);
    for_each_nested(index, quieten_all);
}

/// `fd`, the last number that a file has here, is about to be closed, where the rendezvous may have it open for a
/// moment more: what the kernel reports of it meanwhile would be taken for the next file's of this number.
pub fn take_out(fd: c_int) {
    control::for_each_set_of(fd, |index, set| {
        if let Some(mut inner) = set.lock()
            && inner.registered(fd).is_some()
            && let Some(epfd) = control::descriptor(index, &mut inner)
        {
            let _ = raw::epoll_control(epfd, libc::EPOLL_CTL_DEL, fd, &mut epoll_event { events: 0, u64: 0 });
        }
    });
}
