//! The sets of this process and their memory.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use libc::{EPOLL_CTL_DEL, epoll_event};
use weft_fabric::stream::PooledBell;

use super::lock::EpollLock;
use super::order::FoundEvent;
use crate::table::{self, Entry, PLACES};
use crate::{conn, raw};

/// Sets at one time; beyond that a set is only the kernel's, and what is put into it stays with the kernel.
pub const SETS: usize = 4096;
/// Members that can be looked at one by one.
pub const HOT: usize = 1 << 14;
/// What one call can tell of.
pub const FOUND: usize = 1 << 13;

/// What the program has registered for one descriptor.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Registration {
    /// As the program gave them.
    pub events: u32,
    /// As they stand in the kernel.
    pub kernel_events: u32,
    pub data: u64,
    /// Arrivals when a reading edge was last told; `u64::MAX` for never.
    pub told: u64,
    /// Events of its stream, and when the kernel was asked, when it was last told of; before, when it was registered.
    pub told_event: u32,
    pub told_at: u64,
    /// When that began of which the kernel has last told.
    pub told_begun: u64,
    /// It had something when it was registered, and was not told of since.
    pub queued: bool,
    /// Where it stands in the list of hot members.
    at: u32,
    /// The last call that told of the kernel's word on it.
    pub call: u32,
    pub present: bool,
    pub hot: bool,
    /// One-shot, and told.
    pub spent: bool,
    /// Armed for arrivals; for room.
    pub armed: bool,
    pub armed_room: bool,
    /// A datagram socket at rest while somebody sleeps on the set: 0, or what [`crate::udp::SleepHold::keep`] answered.
    pub resting: c_int,
    /// In which process it was put to rest.
    pub resting_of: u32,
    /// Attached, or itself a set.
    pub member: bool,
    pub nested: bool,
    /// A member whose bytes come by the lane.
    pub far: bool,
    /// Its number was closed, but the kernel may still report the file.
    pub lingers: bool,
    /// Which life of which connection is meant.
    pub life: u64,
}

/// What a set consists of.
pub struct EpollInner {
    registrations: *mut Registration,
    pub hot: [c_int; HOT],
    pub hot_count: usize,
    /// What a look has found, for as long as the set is held.
    pub found: [FoundEvent; FOUND],
    /// When the kernel was last asked and had no more.
    pub asked_at: u64,
    /// How many of the members are sets.
    pub nested: usize,
    /// How many of them have their bytes come by the lane, and the lane's descriptor while it stands in the kernel's
    /// set for them; 0 for none.
    pub far: usize,
    pub lane: c_int,
    /// Another number in every life of the set.
    pub life: u32,
    /// Where the next look begins, so that no member starves.
    pub turn: usize,
    /// Calls so far.
    pub calls: u32,
    pub bell: Option<PooledBell>,
    /// In which process the bell was taken.
    pub bell_of: u32,
    /// Threads asleep on the bell.
    pub sleepers: u32,
    /// The bell was rung for one of them, and nobody has seen it yet.
    pub poked: bool,
    /// A descriptor of the set, if it still is one.
    pub descriptor: c_int,
    /// A member could not be armed: sleeps are short.
    pub slices: bool,
    /// A member may wait for room; one has begun to since the last look whether its peer is there; when that was.
    pub awaits_room: bool,
    pub awaits_newly: bool,
    pub looked_at: u64,
}

pub struct EpollSet {
    pub lock: EpollLock,
    descriptors: AtomicU32,
    /// Attached connections and sets in it.
    pub members: AtomicU32,
    /// Threads that sleep in the kernel only, because there were no members.
    pub in_kernel: AtomicU32,
    pub inner: UnsafeCell<EpollInner>,
}

// SAFETY: `inner` is touched under the lock only.
unsafe impl Sync for EpollSet {}

static SETS_AT: AtomicPtr<EpollSet> = AtomicPtr::new(std::ptr::null_mut());
static SETS_USED: AtomicU32 = AtomicU32::new(0);
/// Forks between the process that loaded the library and this one, to know a bell that belongs to the parent.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Makes room for the sets (address space only). False when there is none.
pub fn start() -> bool {
    let at = raw::map(SETS * size_of::<EpollSet>(), false);
    SETS_AT.store(at.cast(), Ordering::Release);
    !at.is_null()
}

/// The set with this index.
pub fn at(index: u32) -> &'static EpollSet {
    // SAFETY: indices come from `create`, below SETS; the memory is never unmapped; zeros are a valid set of nothing.
    unsafe { &*SETS_AT.load(Ordering::Relaxed).add(index as usize) }
}

/// The index of a set.
pub fn index_of(set: &EpollSet) -> Option<u32> {
    // SAFETY: both lie in the one mapping of sets.
    let at = unsafe { std::ptr::from_ref(set).offset_from(SETS_AT.load(Ordering::Relaxed)) };
    u32::try_from(at).ok()
}

/// All sets that are or were in use.
pub fn all() -> impl Iterator<Item = (u32, &'static EpollSet)> {
    let used = SETS_USED.load(Ordering::Acquire);
    (0..used).map(|index| (index, at(index))).filter(|(_, set)| set.descriptors.load(Ordering::Relaxed) > 0)
}

pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Notes that `fd` is a new epoll set.
pub fn create(fd: c_int) {
    conn::forget(fd);
    if !crate::is_on() || !table::has_place(fd) {
        return;
    }
    let registrations = raw::map(PLACES * size_of::<Registration>(), false).cast::<Registration>();
    if registrations.is_null() {
        return;
    }
    let Some(index) = take() else {
        // SAFETY: nobody has seen it.
        return unsafe { raw::unmap(registrations.cast(), PLACES * size_of::<Registration>()) };
    };
    // Nobody has this index yet, so nobody this thread has interrupted.
    let Some(mut inner) = at(index).lock() else { return };
    (inner.registrations, inner.descriptor) = (registrations, fd);
    drop(inner);
    table::replace(fd, Some(Entry::Set(index)));
}

fn take() -> Option<u32> {
    let free = |index: &u32| at(*index).descriptors.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    let index = (0..SETS as u32).find(free)?;
    SETS_USED.fetch_max(index + 1, Ordering::AcqRel);
    Some(index)
}

pub fn add_descriptor(index: u32) {
    at(index).descriptors.fetch_add(1, Ordering::Relaxed);
}

/// A descriptor of the set is closed; with the last one the set is gone.
pub fn drop_descriptor(index: u32) {
    let set = at(index);
    if set.descriptors.load(Ordering::Relaxed) > 1 {
        set.descriptors.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    match set.lock() {
        Some(mut inner) => set.give_up(&mut inner),
        None => set.note_closed(),
    }
}

/// Whether the rings matter to this set.
#[inline]
pub fn has_members(index: u32) -> bool {
    at(index).members.load(Ordering::SeqCst) > 0
}

/// Before a fork: no set is half changed. Whoever holds a set may wait for one nested in it, in any order of their
/// indices: so nothing is held here while another is waited for.
pub fn lock_all() {
    while let Err(busy) = try_all() {
        drop(busy.lock());
    }
}

/// Locks all sets, or none, and answers the one that was busy.
fn try_all() -> Result<(), &'static EpollSet> {
    match all().find(|(_, set)| !set.lock.take_for_fork()) {
        Some((_, busy)) => {
            unlock_all();
            Err(busy)
        }
        None => Ok(()),
    }
}

/// After a fork, in the child: what stands in the sets about bells and sleeping threads is the parent's.
pub fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    for (_, set) in all() {
        set.in_kernel.store(0, Ordering::Relaxed);
        if !set.lock.break_open() {
            // Of the thread that was interrupted for this fork, which goes on here, too.
            continue;
        }
        // SAFETY: this is the only thread; who held a lock that was not taken for the fork is not in this process.
        let inner = unsafe { &mut *set.inner.get() };
        (inner.sleepers, inner.poked) = (0, false);
        // What is armed tells the parent. Put right when it is used: most children never do.
        if set.members.load(Ordering::Relaxed) > 0 {
            set.note_changed();
        }
    }
}

/// After a fork, in the parent. Sets that others have made and locked meanwhile are theirs.
pub fn unlock_all() {
    all().for_each(|(_, set)| set.lock.leave_after_fork());
}

impl EpollSet {
    /// Nobody has it any more.
    pub fn give_up(&self, inner: &mut EpollInner) {
        super::members::end_rests(inner);
        let registrations = std::mem::replace(&mut inner.registrations, std::ptr::null_mut());
        // SAFETY: mapped in `create`; under the lock nobody uses it, and later users find null.
        unsafe { raw::unmap(registrations.cast(), PLACES * size_of::<Registration>()) };
        self.members.store(0, Ordering::Relaxed);
        (inner.hot_count, inner.nested, inner.turn, inner.calls, inner.sleepers) = (0, 0, 0, 0, 0);
        (inner.far, inner.asked_at) = (0, 0);
        // The number may be another set's by now. Where another process keeps this one, the lane stays in it.
        let number = index_of(self).filter(|index| table::entry(inner.descriptor) == Some(Entry::Set(*index)));
        if number.is_some() {
            inner.leave_lane(inner.descriptor);
        }
        inner.lane = 0;
        inner.life = inner.life.wrapping_add(1);
        (inner.poked, inner.slices, inner.awaits_room) = (false, false, false);
        // A bell that was taken before a fork is the parent's.
        if let Some(bell) = inner.bell.take().filter(|_| inner.bell_of == forks()) {
            // Another process may keep the set.
            let mut nothing = epoll_event { events: 0, u64: 0 };
            let _ = raw::epoll_control(inner.descriptor, EPOLL_CTL_DEL, bell.fd(), &mut nothing);
            bell.give_back(false);
        }
        self.descriptors.store(0, Ordering::Release);
    }
}

impl EpollInner {
    /// Who held the set has left it in the middle: what is said twice in it is made from what is said of the members.
    #[cold]
    pub fn count_anew(&mut self) -> u32 {
        (self.hot_count, self.nested, self.far, self.poked) = (0, 0, 0, false);
        let mut members = 0;
        for fd in 0..=table::highest() {
            let Some(place) = self.place(fd) else { break };
            place.hot = false;
            if !place.present || !place.member {
                place.member = false;
                continue;
            }
            members += 1;
            self.far += usize::from(place.far);
            self.nested += usize::from(self.registered(fd).is_some_and(|place| place.nested));
            self.slices |= !self.make_hot(fd);
        }
        members
    }

    /// What is registered for `fd`; `None` when nothing is.
    #[inline]
    pub fn registered(&mut self, fd: c_int) -> Option<&mut Registration> {
        self.place(fd).filter(|registration| registration.present)
    }

    /// Whether the kernel's word for `fd` is about something that we know nothing of: another process has registered
    /// it.
    pub fn is_nobody(&mut self, fd: c_int) -> bool {
        self.place(fd).is_none_or(|registration| !registration.present && !registration.lingers)
    }

    pub fn is_member(&mut self, fd: c_int) -> bool {
        self.registered(fd).is_some_and(|registration| registration.member)
    }

    /// The place for `fd`.
    pub fn place(&mut self, fd: c_int) -> Option<&mut Registration> {
        if self.registrations.is_null() || fd as u32 as usize >= PLACES {
            return None;
        }
        // SAFETY: one place per number below PLACES, zeros are an absent registration; the lock is held.
        Some(unsafe { &mut *self.registrations.add(fd as usize) })
    }

    /// The lane is not to wake those who sleep on the set any more, one of whose descriptors is `epfd`.
    pub fn leave_lane(&mut self, epfd: c_int) {
        let lane = std::mem::take(&mut self.lane);
        if lane != 0 {
            let mut nothing = epoll_event { events: 0, u64: 0 };
            let _ = raw::epoll_control(epfd, EPOLL_CTL_DEL, lane, &mut nothing);
        }
    }

    /// Somebody waits for room from now on.
    pub fn note_room(&mut self) {
        (self.awaits_room, self.awaits_newly) = (true, true);
    }

    /// Makes `fd` hot. False when there is no room.
    pub fn make_hot(&mut self, fd: c_int) -> bool {
        if self.registered(fd).is_none_or(|registration| registration.hot) {
            return true;
        }
        if self.hot_count == HOT {
            return false;
        }
        let at = self.hot_count;
        self.hot[at] = fd;
        self.hot_count += 1;
        if let Some(registration) = self.registered(fd) {
            (registration.hot, registration.at) = (true, at as u32);
        }
        true
    }

    /// `fd` is hot no more.
    pub fn make_cold(&mut self, fd: c_int) {
        let Some(registration) = self.place(fd).filter(|registration| registration.hot) else { return };
        registration.hot = false;
        let at = registration.at;
        self.hot_count -= 1;
        let moved = self.hot[self.hot_count];
        self.hot[at as usize] = moved;
        if let Some(registration) = self.place(moved) {
            registration.at = at;
        }
    }
}
