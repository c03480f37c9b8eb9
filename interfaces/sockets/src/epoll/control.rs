//! Registering, and what changes about registrations behind the program's back.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use libc::epoll_event;
use libc::{EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLET, EPOLLEXCLUSIVE, EPOLLIN, EPOLLONESHOT, EPOLLOUT};
use weft_fabric::stream::{KernelOnly, PooledBell, Reason, Writable};

use super::members;
use super::order;
use super::set::{self, EpollInner, EpollSet};
use crate::conn::{self, ATTACHED, Connection, Hold, MANY_SETS, NEVER};
use crate::meet::STREAMS;
use crate::table::{self, Entry};
use crate::{ends, life, raw, real, udp};

/// What stands as the user's word of our registrations in the kernel: this pattern and the descriptor. The program's
/// own word is remembered. (A program that uses the very same pattern for its own is not to be expected.)
const TAG: u64 = 0xFFD3_57EF_7A00_0000;
const TAG_MASK: u64 = 0xFFFF_FFFF_FF00_0000;
/// Numbers beyond the table stand for bells: for each another one, because after a fork the bells of several processes
/// may stand in one set of the kernel.
const BELL: u64 = TAG | 0x80_0000;
const BELL_NUMBERS: u64 = 0x7F_FFFF;
/// The upper half of those below stands for lanes: likewise for each process another one.
const LANE: u64 = TAG | 0x40_0000;
const PROCESSES: u64 = 0x3F_FFFF;
const _: () = assert!(table::PLACES as u64 <= PROCESSES, "no descriptor looks like a lane");

/// What a word from the kernel's set means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelWord {
    Programs,
    Ours(c_int),
    /// The bell with these last bits of its number.
    Bell(u64),
    /// The lane of the process with this number.
    Lane(u64),
}

/// Tells our words from the program's.
pub fn word(data: u64) -> KernelWord {
    match data {
        _ if data & (TAG_MASK | BELL) == BELL => KernelWord::Bell(data & BELL_NUMBERS),
        _ if data & (TAG_MASK | LANE) == LANE => KernelWord::Lane(data & PROCESSES),
        _ if data & TAG_MASK == TAG => KernelWord::Ours((data & !TAG_MASK) as c_int),
        _ => KernelWord::Programs,
    }
}

/// `epoll_ctl`.
///
/// # Safety
/// As `epoll_ctl`.
pub unsafe fn control(epfd: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int {
    // SAFETY: the program's own arguments, handed on.
    let plain = || unsafe { real::epoll_ctl(epfd, operation, fd, event) };
    let Some(kind) = table::entry(fd) else { return plain() };
    let Some(Entry::Set(index)) = table::entry(epfd) else {
        // A set that we know nothing of: what is in it must be the kernel's.
        life::hand_back(fd, Reason::KernelCall);
        return plain();
    };
    if operation == EPOLL_CTL_DEL {
        let answer = plain();
        if answer == 0 {
            forget(set::at(index), fd, false);
        }
        return answer;
    }
    if event.is_null() || !matches!(operation, EPOLL_CTL_ADD | EPOLL_CTL_MOD) {
        return plain();
    }
    // SAFETY: the program promises an event at this place.
    let given = unsafe { event.read_unaligned() };
    if given.events & EPOLLEXCLUSIVE as u32 != 0 && matches!(kind, Entry::Connection(_) | Entry::Datagram(_)) {
        life::hand_back(fd, KernelOnly::Exclusive);
        return plain();
    }
    register(epfd, index, operation, fd, kind, given)
}

fn register(epfd: c_int, index: u32, operation: c_int, fd: c_int, kind: Entry, given: epoll_event) -> c_int {
    let set = set::at(index);
    let Some(mut inner) = set.lock() else {
        // We are a signal handler, and this very set is being changed: as if there were no memory for the registration.
        raw::set_errno(libc::ENOMEM);
        return -1;
    };
    let mut ours = epoll_event { events: given.events, u64: TAG | fd as u64 };
    // SAFETY: the event is on our stack.
    let answer = unsafe { real::epoll_ctl(epfd, operation, fd, &mut ours) };
    if answer != 0 {
        return answer;
    }
    let nested = matches!(kind, Entry::Set(_));
    if inner.registered(fd).is_some_and(|place| place.nested != nested) {
        forget_in(set, &mut inner, fd, false);
    }
    let Some(place) = inner.place(fd) else { return answer };
    place.present = true;
    (place.events, place.kernel_events, place.data) = (given.events, given.events, given.u64);
    (place.told, place.spent, place.lingers) = (u64::MAX, false, false);
    place.nested = nested;
    members::end_rest(place);
    place.life = life_of(kind);
    if let Entry::Connection(connection) = kind {
        note_set(conn::at(connection), index);
    }
    let member = match kind {
        Entry::Connection(connection) => conn::at(connection).state_now() == ATTACHED,
        Entry::Set(_) => true,
        Entry::Datagram(socket) => udp::has_rings(socket),
    };
    if member {
        join(set, &mut inner, epfd, fd);
        // What is in the ring already is news to those who sleep.
        wake(index, &mut inner);
    }
    order::note_registered(&mut inner, fd, raw::now_ns());
    answer
}

fn life_of(entry: Entry) -> u64 {
    match entry {
        Entry::Connection(index) => u64::from(conn::at(index).life()) << 32 | u64::from(index),
        Entry::Datagram(index) => u64::from(udp::life(index)) << 32 | u64::from(index),
        Entry::Set(_) => 0,
    }
}

/// Before the look at the state: who attaches sets the state and then looks here, so that one of us sees the other.
fn note_set(conn: &Connection, index: u32) {
    let with = |known| if known == 0 || known == index + 1 { index + 1 } else { MANY_SETS };
    // Stored also where it stays the same: it is the store that orders.
    let _ = conn.set.fetch_update(Ordering::SeqCst, Ordering::Relaxed, |known| Some(with(known)));
}

/// `fd` is looked at from now on.
fn join(set: &EpollSet, inner: &mut EpollInner, epfd: c_int, fd: c_int) {
    let Some(place) = inner.registered(fd) else { return };
    let (writes, nested) = (place.events & EPOLLOUT as u32 != 0, place.nested);
    let is_new = !std::mem::replace(&mut place.member, true);
    if writes {
        inner.note_room();
    }
    if is_new {
        inner.nested += usize::from(nested);
        set.members.fetch_add(1, Ordering::SeqCst);
    }
    make_bell(inner, epfd);
    if is_new
        && let Some(Entry::Connection(index)) = table::entry(fd)
        && let Some(place) = inner.registered(fd).filter(|place| !place.nested)
    {
        order::note_attached(place, &conn::at(index).stream());
    }
    if is_new && is_far(fd) {
        note_far(inner, epfd, fd);
    }
    if !inner.make_hot(fd) {
        members::cool(inner);
        inner.slices |= !inner.make_hot(fd);
    }
}

/// Whether what comes for this member comes by the lane.
fn is_far(fd: c_int) -> bool {
    let Some(Entry::Connection(index)) = table::entry(fd) else { return false };
    conn::at(index).state_now() == ATTACHED && conn::at(index).stream().is_far()
}

fn note_far(inner: &mut EpollInner, epfd: c_int, fd: c_int) {
    if let Some(place) = inner.registered(fd) {
        place.far = true;
        inner.far += 1;
    }
    watch_lane(inner, epfd);
}

/// It is none any more.
fn forget_far(inner: &mut EpollInner, index: Option<u32>, fd: c_int) {
    let Some(place) = inner.place(fd).filter(|place| place.far) else { return };
    place.far = false;
    inner.far = inner.far.saturating_sub(1);
    if inner.far == 0
        && let Some(epfd) = index.and_then(|index| descriptor(index, inner))
    {
        inner.leave_lane(epfd);
    }
}

/// Who sleeps on the set is to be woken by what comes by the lane. Where that cannot be, the rendezvous sees to it,
/// some milliseconds later.
fn watch_lane(inner: &mut EpollInner, epfd: c_int) {
    let Some(lane) = STREAMS.lane().filter(|lane| inner.far > 0 && inner.lane != *lane) else { return };
    let mut event = epoll_event { events: EPOLLIN as u32, u64: LANE | process() };
    if raw::epoll_control(epfd, EPOLL_CTL_ADD, lane, &mut event).is_ok() {
        inner.lane = lane;
    }
}

fn process() -> u64 {
    life::process() as u64 & PROCESSES
}

/// Whether a lane that has something is this process's; that of another of our fork family is for that to take from.
pub fn is_own_lane(number: u64) -> bool {
    number == process()
}

/// The set needs a bell of this process in the kernel's set.
fn make_bell(inner: &mut EpollInner, epfd: c_int) {
    if inner.bell.is_some() && inner.bell_of == set::forks() {
        return;
    }
    members::disarm_all(inner);
    // One that was taken before a fork is the parent's, and is only forgotten.
    inner.bell = None;
    let Ok(bell) = PooledBell::take() else {
        inner.slices = true;
        return;
    };
    let mut event = epoll_event { events: EPOLLIN as u32, u64: BELL | number_of(&bell) };
    if raw::epoll_control(epfd, EPOLL_CTL_ADD, bell.fd(), &mut event).is_err() {
        inner.slices = true;
        return bell.give_back(true);
    }
    (inner.bell, inner.bell_of) = (Some(bell), set::forks());
}

fn number_of(bell: &PooledBell) -> u64 {
    bell.address().number() & BELL_NUMBERS
}

/// A bell has rung: ours is quiet again. False for that of another process of our fork family, which is for that
/// process to quieten. (The parent's may still stand here; its descriptor is not the bell's in this process.)
pub fn quieten(inner: &mut EpollInner, number: u64) -> bool {
    let taken_here = inner.bell_of == set::forks();
    let ours = inner.bell.as_ref().filter(|bell| taken_here && number_of(bell) == number);
    if let Some(bell) = ours {
        bell.drain();
        inner.poked = false;
    }
    ours.is_some()
}

/// Before a sleep: a bell that was the parent's, or that the program has closed, is replaced.
pub fn renew_bell(index: u32, inner: &mut EpollInner) {
    if inner.far > 0
        && let Some(epfd) = descriptor(index, inner)
    {
        watch_lane(inner, epfd);
    }
    let ours = inner.bell_of == set::forks();
    if ours && inner.bell.as_ref().is_some_and(PooledBell::is_intact) {
        return;
    }
    let Some(epfd) = descriptor(index, inner) else { return };
    if ours && inner.bell.is_some() {
        members::disarm_all(inner);
        if let Some(lost) = inner.bell.take() {
            lost.give_back(false);
        }
    }
    make_bell(inner, epfd);
}

fn forget(set: &'static EpollSet, fd: c_int, lingers: bool) {
    match set.lock() {
        Some(mut inner) => forget_in(set, &mut inner, fd, lingers),
        None => set.note_changed(),
    }
}

fn forget_in(set: &EpollSet, inner: &mut EpollInner, fd: c_int, lingers: bool) {
    let Some(place) = inner.registered(fd) else { return };
    let (was_member, nested) = (std::mem::take(&mut place.member), place.nested);
    forget_far(inner, set::index_of(set), fd);
    let Some(place) = inner.registered(fd) else { return };
    members::end_rest(place);
    inner.make_cold(fd);
    if let Some(place) = inner.registered(fd) {
        (place.present, place.armed, place.armed_room) = (false, false, false);
        place.lingers = lingers;
    }
    if was_member {
        inner.nested -= usize::from(nested).min(inner.nested);
        set.members.fetch_sub(1, Ordering::SeqCst);
    }
}

/// There is a note: anything may have changed about what is registered, and nothing was said.
#[cold]
pub fn put_right(set: &EpollSet, inner: &mut EpollInner) {
    let Some(index) = set::index_of(set) else { return };
    for fd in 0..=table::highest() {
        let Some(place) = inner.registered(fd) else { continue };
        let (life, member, nested) = (place.life, place.member, place.nested);
        match table::entry(fd) {
            Some(Entry::Set(_)) if nested => {}
            Some(entry @ Entry::Connection(connection)) if !nested && life_of(entry) == life => {
                match conn::at(connection).state_now() {
                    ATTACHED => rejoin(set, inner, index, fd),
                    NEVER if member => leave_in(set, inner, index, fd),
                    _ => {}
                }
            }
            Some(entry @ Entry::Datagram(socket)) if !nested && life_of(entry) == life => {
                if udp::has_rings(socket) {
                    rejoin(set, inner, index, fd);
                }
            }
            _ => forget_in(set, inner, fd, true),
        }
    }
    wake(index, inner);
}

/// Whether it was one or not, and whatever was armed: a hot member.
fn rejoin(set: &EpollSet, inner: &mut EpollInner, index: u32, fd: c_int) {
    let Some(place) = inner.registered(fd) else { return };
    (place.armed, place.armed_room) = (false, false);
    match descriptor(index, inner) {
        Some(epfd) if !inner.is_member(fd) => join(set, inner, epfd, fd),
        // A bell is seen to before the next sleep.
        _ => inner.slices |= !inner.make_hot(fd),
    }
}

/// `fd` is about to be closed: the kernel takes it out of all sets, if nobody else holds the file (under another
/// number, or in another process of our fork family). Otherwise it goes on to report what it knows.
pub fn closed(fd: c_int) {
    for_each_set_of(fd, |_, set| forget(set, fd, true));
}

pub fn for_each_set_of(fd: c_int, mut each: impl FnMut(u32, &'static EpollSet)) {
    let known = match table::entry(fd) {
        Some(Entry::Connection(index)) => conn::at(index).set.load(Ordering::SeqCst),
        Some(Entry::Set(_) | Entry::Datagram(_)) => MANY_SETS,
        None => return,
    };
    match known {
        0 => {}
        MANY_SETS => set::all().for_each(|(index, set)| each(index, set)),
        one => each(one - 1, set::at(one - 1)),
    }
}

/// Calls `each` under the lock of every set, with every descriptor of the connection that is registered in it.
pub fn for_each_registration(held: &Hold, mut each: impl FnMut(u32, &mut EpollInner, c_int)) {
    held.descriptors(held.index, |fd| {
        for_each_set_of(fd, |index, set| match set.lock() {
            Some(mut inner) => {
                if inner.registered(fd).is_some_and(|place| place.member) {
                    each(index, &mut inner, fd);
                }
            }
            None => set.note_changed(),
        });
    });
}

/// A connection was attached: sets in which it is registered look at it from now on, also those that sleep already.
pub fn attached(held: &Hold) {
    held.descriptors(held.index, join_all);
}

/// The same for a datagram socket, one of whose descriptors is `fd`.
pub fn datagrams_attached(fd: c_int) {
    let socket = table::entry(fd);
    table::entries(0, c_int::MAX).filter(|(_, entry)| Some(*entry) == socket).for_each(|(fd, _)| join_all(fd));
}

fn join_all(fd: c_int) {
    for_each_set_of(fd, |index, set| {
        let Some(mut inner) = set.lock() else { return set.note_changed() };
        if inner.registered(fd).is_some()
            && let Some(epfd) = descriptor(index, &mut inner)
        {
            join(set, &mut inner, epfd, fd);
            wake(index, &mut inner);
        }
    });
}

fn descriptor_of(index: u32) -> Option<c_int> {
    table::entries(0, c_int::MAX).find(|(_, entry)| *entry == Entry::Set(index)).map(|(fd, _)| fd)
}

/// Wakes one of those who sleep on the set, so that it looks at the rings and arms what is to be armed. What woke it
/// before it has come back is not repeated.
pub fn wake(index: u32, inner: &mut EpollInner) {
    if !has_sleepers(index, inner) || inner.poked {
        return;
    }
    // Without a bell sleeps are short.
    if let Some(bell) = inner.bell.as_ref().filter(|_| inner.bell_of == set::forks()) {
        bell.ring();
        inner.poked = true;
    }
}

/// Whether a thread sleeps on the set, or is about to.
pub fn has_sleepers(index: u32, inner: &EpollInner) -> bool {
    inner.sleepers > 0 || set::at(index).in_kernel.load(Ordering::SeqCst) > 0
}

/// A descriptor of the set.
pub fn descriptor(index: u32, inner: &mut EpollInner) -> Option<c_int> {
    if table::entry(inner.descriptor) != Some(Entry::Set(index)) {
        inner.descriptor = descriptor_of(index)?;
    }
    Some(inner.descriptor)
}

/// The way of a connection has changed (back to the kernel): the kernel's word on writing is right again.
pub fn refresh(held: &Hold) {
    let never = held.state_now() == NEVER;
    held.descriptors(held.index, |fd| {
        for_each_set_of(fd, |index, set| match set.lock() {
            Some(mut inner) if never => leave_in(set, &mut inner, index, fd),
            Some(mut inner) => restore(&mut inner, index, fd),
            None => set.note_changed(),
        });
    });
}

/// The member is the kernel's from now on; its registration there stays.
fn leave_in(set: &EpollSet, inner: &mut EpollInner, index: u32, fd: c_int) {
    restore(inner, index, fd);
    forget_far(inner, Some(index), fd);
    inner.make_cold(fd);
    if let Some(place) = inner.registered(fd)
        && place.member
    {
        place.member = false;
        set.members.fetch_sub(1, Ordering::SeqCst);
    }
}

fn restore(inner: &mut EpollInner, index: u32, fd: c_int) {
    let Some(place) = inner.registered(fd) else { return };
    let wanted = place.events;
    if place.spent {
        return;
    }
    // Also where it stands there already, as we know it: another process that shares the set may have changed it.
    place.kernel_events = wanted;
    let mut event = epoll_event { events: wanted, u64: TAG | fd as u64 };
    if let Some(epfd) = descriptor(index, inner)
        && raw::epoll_control(epfd, EPOLL_CTL_MOD, fd, &mut event) == Err(libc::ENOENT)
    {
        // The number has got another file, with what was left of this connection.
        let _ = raw::epoll_control(epfd, EPOLL_CTL_ADD, fd, &mut event);
    }
}

/// Another process that shares the socket may have taken it back to the kernel, whose word on writing is right again.
pub fn restore_room(inner: &mut EpollInner, epfd: c_int, fd: c_int) {
    let Some(place) = inner.registered(fd).filter(|place| place.kernel_events != place.events && !place.spent) else {
        return;
    };
    let Some(Entry::Connection(index)) = table::entry(fd).filter(|_| place.member && !place.nested) else { return };
    if conn::at(index).stream().writable() == Writable::Kernel {
        place.kernel_events = place.events;
        let mut event = epoll_event { events: place.events, u64: TAG | fd as u64 };
        let _ = raw::epoll_control(epfd, EPOLL_CTL_MOD, fd, &mut event);
    }
}

/// Takes what has come by the lane, and looks whether ends that the kernel tells of are resets. Before the set is held:
/// it takes the locks of a stream, and those are never waited for under that of a set. Who holds a stream may be
/// stopped (it belongs to all who share the socket), or be interrupted by a handler that waits for this very set.
pub fn before_merge(seen: &[epoll_event]) {
    for event in seen {
        let (data, events) = (event.u64, event.events);
        if let KernelWord::Lane(_) = word(data) {
            STREAMS.drive();
        }
        if let KernelWord::Ours(fd) = word(data)
            && let Some(held) = conn::hold(fd)
            && held.state_now() == ATTACHED
        {
            ends::notice(&held, fd, events as i16);
        }
    }
}

/// What of the kernel's events for `fd` is true, as the program shall see it; `None` for nothing. The caller holds the
/// lock, and has judged the ends.
pub fn translate(inner: &mut EpollInner, epfd: c_int, fd: c_int, seen: u32) -> Option<epoll_event> {
    let entry = table::entry(fd);
    let place = inner.place(fd)?;
    if !place.present {
        return place.lingers.then_some(epoll_event { events: seen, u64: place.data });
    }
    if place.spent {
        return None;
    }
    let mut events = seen;
    if place.nested {
        let Some(Entry::Set(nested)) = entry else { return None };
        events = if members::is_ready_inside(nested, fd) { events } else { 0 };
    } else if let (true, Some(Entry::Connection(index))) = (place.member, entry) {
        let held = conn::hold_index(index);
        held.set_flag(conn::ASK_KERNEL);
        if held.has_flag(conn::UNDONE) {
            events |= raw::poll_one(fd, place.events as i16) as u32;
        }
        events = without_false_room(&held, place, epfd, fd, events);
    }
    if events == 0 {
        arm_again(place, epfd, fd);
        return None;
    }
    place.spent = place.events & EPOLLONESHOT as u32 != 0;
    Some(epoll_event { events, u64: place.data })
}

/// The kernel has reported a one-shot registration, and nothing of it is told: it must report again.
fn arm_again(place: &mut set::Registration, epfd: c_int, fd: c_int) {
    if place.events & EPOLLONESHOT as u32 == 0 {
        return;
    }
    if !place.nested {
        // Room is the ring's to tell.
        place.kernel_events &= !(EPOLLOUT as u32);
    }
    let mut event = epoll_event { events: place.kernel_events, u64: TAG | fd as u64 };
    let _ = raw::epoll_control(epfd, EPOLL_CTL_MOD, fd, &mut event);
}

/// The kernel calls a socket writable whose ring is full: a level that would be reported for ever is taken out of the
/// kernel's set until the connection is the kernel's again.
fn without_false_room(held: &Hold, place: &mut set::Registration, epfd: c_int, fd: c_int, seen: u32) -> u32 {
    let room = EPOLLOUT as u32;
    if seen & room == 0 {
        return seen;
    }
    match held.stream().writable() {
        Writable::Kernel | Writable::Broken => return seen,
        Writable::Ring(_) => {}
        Writable::Full => held.set_flag(conn::WAS_FULL),
    }
    if place.events & (EPOLLET | EPOLLONESHOT) as u32 == 0 {
        place.kernel_events &= !room;
        let mut event = epoll_event { events: place.kernel_events, u64: TAG | fd as u64 };
        let _ = raw::epoll_control(epfd, EPOLL_CTL_MOD, fd, &mut event);
    }
    if matches!(held.stream().writable(), Writable::Full) { seen & !room } else { seen }
}
