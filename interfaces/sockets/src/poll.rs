//! `poll` and its relatives over descriptors of all kinds.
//!
//! The kernel is asked about every descriptor, as the program wants it, with one exception: room to send on a
//! connection whose bytes go by the ring. What the rings have is added.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use libc::{POLLIN, POLLOUT, POLLRDHUP, POLLRDNORM, POLLWRNORM, pollfd};
use weft_fabric::stream::{BellAddress, PooledBell, Readable, Waiter, Writable, sleep_barrier};

use super::conn::{self, ASK_KERNEL, ATTACHED, FRESH, GRANTED, Hold, OFFERED};
use super::meet::STREAMS;
use super::raw::{self, Errno};
use super::table::{self, Entry};
use super::wait::{LOOK_NS, left_ns};
use super::{attend, ends, epoll, far, outgoing, pace, signals, udp};

const READING: i16 = POLLIN | POLLRDNORM;
const WRITING: i16 = POLLOUT | POLLWRNORM;
/// Sleep no longer where something could not be armed.
const SLICE_NS: u64 = 5_000_000;
/// While spinning, the kernel is asked at first and every so many looks.
const KERNEL_LOOKS: u32 = 64;
/// While rings have something in every call, the kernel is asked every so many calls.
const KERNEL_EVERY: u32 = 8;
static LOOKS: AtomicU32 = AtomicU32::new(0);
/// What was told last came from the kernel: it is asked before a sleep, which costs more than to ask.
static KERNEL_TOLD: AtomicBool = AtomicBool::new(false);
/// The same where the last word was the kernel's and connections lead to other hosts: their answers may come by it.
const FAR_KERNEL_LOOKS: u32 = 4;
/// Places on the stack.
const FEW: usize = 67;

/// What one descriptor of the list is to us.
enum PolledKind {
    Plain,
    Attached(Hold),
    Set(u32),
    /// A datagram socket with channels.
    Datagram(u32),
}

fn kind(fd: c_int) -> PolledKind {
    match table::entry(fd) {
        Some(Entry::Set(index)) => PolledKind::Set(index),
        Some(Entry::Datagram(index)) if udp::has_rings(index) => PolledKind::Datagram(index),
        Some(Entry::Datagram(_)) => PolledKind::Plain,
        Some(Entry::Connection(_)) => match conn::hold(fd) {
            Some(held) if held.state_now() == ATTACHED => PolledKind::Attached(held),
            _ => PolledKind::Plain,
        },
        None => PolledKind::Plain,
    }
}

/// Places behind the program's: for a bell, and for the lane.
const OURS: usize = 2;

/// A list for the kernel, on the stack if it is short.
pub struct PollScratch {
    few: [pollfd; FEW],
    many: *mut pollfd,
    count: usize,
}

impl PollScratch {
    /// Room for `count`; `None` without memory.
    pub fn new(count: usize) -> Option<Self> {
        let many: *mut pollfd =
            if count <= FEW { std::ptr::null_mut() } else { raw::map(count * size_of::<pollfd>(), false).cast() };
        (count <= FEW || !many.is_null()).then_some(Self { few: [NOTHING; FEW], many, count })
    }

    pub fn list(&mut self) -> &mut [pollfd] {
        if self.many.is_null() {
            return &mut self.few[..self.count];
        }
        // SAFETY: mapped for `count` records; zeros are valid ones.
        unsafe { std::slice::from_raw_parts_mut(self.many, self.count) }
    }
}

impl Drop for PollScratch {
    fn drop(&mut self) {
        if !self.many.is_null() {
            // SAFETY: mapped in `new` with this size, used by nobody else.
            unsafe { raw::unmap(self.many.cast(), self.count * size_of::<pollfd>()) };
        }
    }
}

/// A place that asks for nothing.
pub const NOTHING: pollfd = pollfd { fd: -1, events: 0, revents: 0 };

/// Whether any of the descriptors needs more than the kernel.
pub fn concerns(fds: &[pollfd]) -> bool {
    fds.iter().any(|one| table::entry(one.fd).is_some())
}

/// `ppoll` over a list of which [`concerns`] is true.
pub fn poll(fds: &mut [pollfd], timeout_ns: Option<u64>, mask: *const libc::sigset_t) -> Result<usize, Errno> {
    signals::may_be_cancelled();
    let Some(mut scratch) = PollScratch::new(fds.len() + OURS) else { return Err(libc::ENOMEM) };
    let deadline = timeout_ns.filter(|ns| *ns > 0).map(|ns| raw::now_ns().saturating_add(ns));
    let left = || if timeout_ns == Some(0) { Some(0) } else { left_ns(deadline) };
    let list = scratch.list();
    // Otherwise the rings are enough before a sleep: it asks the kernel, and says so when that has something.
    let mut kernel = KERNEL_TOLD.load(Ordering::Relaxed);
    loop {
        far::look_after();
        if all_plain(fds) {
            match by_kernel(fds, list, left(), deadline, mask) {
                Some(answer) => return answer,
                None => continue,
            }
        }
        let over = left() == Some(0);
        let found = look(fds, list, kernel || over)?;
        if found > 0 || over {
            return Ok(found);
        }
        let mut looks = 0u32;
        let mut answer = Ok(0);
        let every = kernel_looks();
        pace::spin(|| {
            answer = look(fds, list, looks.is_multiple_of(every));
            looks += 1;
            answer != Ok(0)
        });
        if answer != Ok(0) {
            return answer;
        }
        kernel = sleep(fds, list, left(), mask)?;
    }
}

/// While spinning, the kernel is asked every so many looks.
fn kernel_looks() -> u32 {
    let far = KERNEL_TOLD.load(Ordering::Relaxed) && STREAMS.lane().is_some();
    if far { FAR_KERNEL_LOOKS } else { KERNEL_LOOKS }
}

fn all_plain(fds: &[pollfd]) -> bool {
    fds.iter().all(|one| matches!(kind(one.fd), PolledKind::Plain))
}

/// All of them are the kernel's now; `None` when that is true no more. Where some wait for the rendezvous we sleep in
/// slices for a while, so that they may be attached between.
fn by_kernel(
    fds: &mut [pollfd],
    list: &mut [pollfd],
    timeout_ns: Option<u64>,
    deadline: Option<u64>,
    mask: *const libc::sigset_t,
) -> Option<Result<usize, Errno>> {
    let left = || if timeout_ns == Some(0) { Some(0) } else { left_ns(deadline) };
    loop {
        if let Some(answer) = far::before_poll(fds, left(), |fds| kernel_poll(fds, Some(0), mask)) {
            // Not of those that have been attached meanwhile, but a signal's handler has run.
            return (answer.is_err() || all_plain(fds)).then_some(answer);
        }
        // Before the look: who has got channels by then is seen, and later nobody opens a gate.
        let Some(_resting) = RestingSockets::new(fds, timeout_ns == Some(0)) else { return Some(Err(libc::ENOMEM)) };
        let candidates = Candidates::hold(list, fds, timeout_ns == Some(0));
        if !all_plain(fds) {
            return None;
        }
        let answer = kernel_poll(fds, candidates.slice(left()), mask);
        drop(candidates);
        if answer != Ok(0) || left() == Some(0) {
            return Some(answer);
        }
    }
}

/// Connections that nobody shall attach while we sleep on them in the kernel: we would not be woken. Those that are
/// attached already are not among them, and those that the rendezvous may grant any moment only when we have waited for
/// that often enough.
struct Candidates<'a> {
    places: &'a mut [pollfd],
    /// Some may be attached meanwhile.
    sliced: bool,
}

impl<'a> Candidates<'a> {
    /// Keeps them in `places`. A call that only looks waits for nobody.
    fn hold(places: &'a mut [pollfd], fds: &[pollfd], only_look: bool) -> Self {
        let mut sliced = false;
        for (place, one) in places.iter_mut().zip(fds) {
            place.fd = hold_candidate(one.fd, only_look, &mut sliced);
        }
        Self { places: &mut places[..fds.len()], sliced }
    }

    /// How long to sleep when `left` is left.
    fn slice(&self, left: Option<u64>) -> Option<u64> {
        if self.sliced { Some(left.map_or(SLICE_NS, |left| left.min(SLICE_NS))) } else { left }
    }
}

impl Drop for Candidates<'_> {
    fn drop(&mut self) {
        for place in self.places.iter().filter(|place| place.fd > 0) {
            drop(Hold { index: place.fd as u32 });
        }
    }
}

/// Datagram sockets on which we sleep: what comes for them comes by the kernel meanwhile.
struct RestingSockets(Option<PollScratch>);

impl RestingSockets {
    /// `None` without memory. A call that only looks needs nobody's rest.
    fn new(fds: &[pollfd], only_look: bool) -> Option<Self> {
        let is_datagram = |one: &pollfd| matches!(table::entry(one.fd), Some(Entry::Datagram(_)));
        if only_look || !fds.iter().any(is_datagram) {
            return Some(Self(None));
        }
        let mut resting = Self(Some(PollScratch::new(fds.len())?));
        for (place, one) in resting.places().iter_mut().zip(fds) {
            place.fd = udp::hold(one.fd).map_or(-1, |held| udp::rest(held, one.fd).keep());
        }
        Some(resting)
    }

    fn places(&mut self) -> &mut [pollfd] {
        self.0.as_mut().map_or(&mut [], PollScratch::list)
    }
}

impl Drop for RestingSockets {
    fn drop(&mut self) {
        for place in self.places().iter().filter(|place| place.fd > 0) {
            drop(udp::SleepHold::kept(place.fd));
        }
    }
}

/// Keeps a connection from being attached; answers its index, or -1. Sets `sliced` where that is not to be.
fn hold_candidate(fd: c_int, only_look: bool, sliced: &mut bool) -> c_int {
    let Some(held) = conn::hold(fd) else { return -1 };
    match held.state() {
        OFFERED | GRANTED if !only_look && held.take_patience() => *sliced = true,
        FRESH | OFFERED | GRANTED => {
            let index = held.index;
            std::mem::forget(held);
            return index as c_int;
        }
        _ => {}
    }
    -1
}

/// The C library's own call: a thread can be cancelled in it, and signals interrupt it.
fn kernel_poll(fds: &mut [pollfd], timeout_ns: Option<u64>, mask: *const libc::sigset_t) -> Result<usize, Errno> {
    let calls = attend::calls();
    match signals::poll_cancellable(fds, timeout_ns, mask) {
        Err(libc::EINTR) if attend::calls() != calls => Ok(0),
        answer => answer,
    }
}

/// A look at the kernel: our signal interrupts even one that takes no time.
fn ask_kernel(list: &mut [pollfd]) -> Result<usize, Errno> {
    loop {
        let calls = attend::calls();
        match raw::poll(list, Some(0), None) {
            Err(libc::EINTR) if attend::calls() != calls => {}
            answer => return answer,
        }
    }
}

/// One look at the rings and, if wanted, at the kernel. Sets all `revents`; answers how many are not 0.
fn look(fds: &mut [pollfd], list: &mut [pollfd], kernel: bool) -> Result<usize, Errno> {
    epoll::dispatch_active();
    let (mut found, mut whole) = (0, true);
    for one in fds.iter_mut() {
        let kind = kind(one.fd);
        let ring = match kind {
            PolledKind::Attached(_) => true,
            // Room to send is the kernel's to tell.
            PolledKind::Datagram(_) => one.events & !READING == 0,
            _ => false,
        };
        one.revents = ring_events(one, kind);
        whole &= ring && (one.revents == 0 || one.revents == one.events);
        found += usize::from(one.revents != 0);
    }
    // Where all are rings, and those that have something have all that was asked for, the kernel can wait for its turn.
    let turn = LOOKS.fetch_add(1, Ordering::Relaxed).is_multiple_of(KERNEL_EVERY);
    if found > 0 {
        note(false);
    }
    if (!kernel && found == 0) || (found > 0 && whole && !turn) {
        return Ok(found);
    }
    substitute(fds, list);
    let count = fds.len();
    if ask_kernel(&mut list[..count])? > 0 {
        add_kernel_events(fds, list);
    }
    let all = fds.iter().filter(|one| one.revents != 0).count();
    if found == 0 && all > 0 {
        note(true);
    }
    Ok(all)
}

fn note(kernel_told: bool) {
    if KERNEL_TOLD.load(Ordering::Relaxed) != kernel_told {
        KERNEL_TOLD.store(kernel_told, Ordering::Relaxed);
    }
}

/// What the ring of a descriptor has of the events asked for.
fn ring_events(one: &pollfd, kind: PolledKind) -> i16 {
    match kind {
        PolledKind::Plain => 0,
        PolledKind::Set(index) if one.events & READING != 0 && epoll::has_members(index) && epoll::any_ready(index) => {
            one.events & READING
        }
        PolledKind::Set(_) => 0,
        PolledKind::Datagram(index) if one.events & READING != 0 && udp::is_waiting(index) => one.events & READING,
        PolledKind::Datagram(_) => 0,
        PolledKind::Attached(held) => {
            let stream = held.stream();
            let reading = match held.readable() {
                Readable::Ring(bytes) => bytes >= held.ready_bytes(),
                Readable::Broken => true,
                _ => false,
            };
            let writing = matches!(stream.writable(), Writable::Ring(_) | Writable::Broken);
            one.events & (if reading { READING } else { 0 } | if writing { WRITING } else { 0 })
        }
    }
}

/// The list as the kernel is asked.
fn substitute(fds: &[pollfd], list: &mut [pollfd]) {
    for (place, one) in list.iter_mut().zip(fds) {
        *place = pollfd { fd: one.fd, events: one.events, revents: 0 };
        if let PolledKind::Attached(held) = kind(one.fd)
            && held.stream().writable() != Writable::Kernel
        {
            place.events &= !WRITING;
        }
    }
    list[fds.len()..].fill(NOTHING);
}

fn add_kernel_events(fds: &mut [pollfd], list: &[pollfd]) {
    for (one, place) in fds.iter_mut().zip(list).filter(|(_, place)| place.revents != 0) {
        match kind(one.fd) {
            PolledKind::Set(index) => {
                let ready = epoll::is_ready_inside(index, one.fd);
                epoll::leave_to_sleepers(index);
                if !ready {
                    continue;
                }
            }
            PolledKind::Attached(held) => {
                held.set_flag(ASK_KERNEL);
                if ends::notice(&held, one.fd, place.revents) {
                    one.revents |= raw::poll_one(one.fd, one.events);
                }
            }
            _ => {}
        }
        one.revents |= place.revents;
    }
}

/// Answers whether the kernel has something to tell.
fn sleep(
    fds: &mut [pollfd],
    list: &mut [pollfd],
    left: Option<u64>,
    mask: *const libc::sigset_t,
) -> Result<bool, Errno> {
    // Before the others are armed: what is not attached by now will not be during the sleep.
    let Some(mut scratch) = PollScratch::new(fds.len()) else { return Err(libc::ENOMEM) };
    let candidates = Candidates::hold(scratch.list(), fds, left == Some(0));
    let Some(_resting) = RestingSockets::new(fds, false) else { return Err(libc::ENOMEM) };
    let mut rest = PollRest::begin(fds);
    sleep_barrier();
    substitute(fds, list);
    let ends = ask_for_ends(fds, list);
    let bell = rest.bell.as_ref().map_or(-1, PooledBell::fd);
    for (place, fd) in list[fds.len()..].iter_mut().zip([bell, lane_of(fds)]) {
        *place = pollfd { fd, events: POLLIN, revents: 0 };
    }
    let answer = if look_at_rings(fds) {
        Ok(0)
    } else {
        STREAMS.counters().sleeps.fetch_add(1, Ordering::Relaxed);
        let short = rest.short || candidates.sliced;
        let slice = if short { Some(SLICE_NS) } else { ends.or(rest.looks.then_some(LOOK_NS)).or(far::watch_ns()) };
        let at_most = |slice: u64| Some(left.map_or(slice, |left| left.min(slice)));
        match kernel_poll(list, slice.map_or(left, at_most), mask) {
            // A list may be as long as there may be descriptors: with the bell it is longer.
            Err(libc::EINVAL) => kernel_poll(&mut list[..fds.len()], at_most(SLICE_NS), mask),
            answer => answer,
        }
    };
    rest.rung = list[fds.len()].revents != 0;
    // What has come by the lane is taken by the next look.
    let ours = list[fds.len()..].iter().filter(|place| place.revents != 0).count();
    let by_kernel = answer.is_ok_and(|ready| ready > ours);
    drop(rest);
    for one in fds.iter() {
        if let Some(held) = conn::hold(one.fd)
            && held.state_now() == ATTACHED
        {
            super::wait::serve(&held, one.fd);
            if awaits_room(one, &held) {
                outgoing::leave_a_ring_in_vain(&held, one.fd, &held.stream());
            }
        }
        if let Some(Entry::Set(index)) = table::entry(one.fd) {
            epoll::leave_dead_rings(index);
        }
    }
    answer.map(|_| by_kernel)
}

/// The lane, if one of these is a connection whose bytes come by it; -1 for none.
fn lane_of(fds: &[pollfd]) -> c_int {
    let is_far = |one: &pollfd| matches!(kind(one.fd), PolledKind::Attached(held) if held.stream().is_far());
    STREAMS.lane().filter(|_| fds.iter().any(is_far)).unwrap_or(-1)
}

fn awaits_room(one: &pollfd, held: &Hold) -> bool {
    one.events & WRITING != 0 && held.stream().writable() == Writable::Full
}

/// Whoever waits for room must learn that nobody reads any more: of the kernel, whose end of the stream is that, or by
/// a look now and then. Answers how long to sleep then.
fn ask_for_ends(fds: &[pollfd], list: &mut [pollfd]) -> Option<u64> {
    let mut slice = None;
    for (place, one) in list.iter_mut().zip(fds) {
        match kind(one.fd) {
            PolledKind::Attached(held) if awaits_room(one, &held) => {
                slice = Some(LOOK_NS);
                place.events |= if held.stream().peer_half_closed() { 0 } else { POLLRDHUP };
            }
            _ => {}
        }
    }
    slice
}

/// What is done for a sleep and undone after it, also where the thread is cancelled in it.
struct PollRest<'a> {
    fds: &'a [pollfd],
    bell: Option<PooledBell>,
    /// On the sets among them.
    _sets: epoll::RestingSet,
    /// The sleep must be short: nobody can ring us for all of them.
    short: bool,
    /// Somebody looks now and then during the sleep: a set inside may wait for room.
    looks: bool,
    rung: bool,
}

impl<'a> PollRest<'a> {
    fn begin(fds: &'a [pollfd]) -> Self {
        let bell = PooledBell::take().ok();
        let mut sets = epoll::RestingSet::new();
        let armed = bell.as_ref().is_some_and(|bell| arm(fds, bell.address(), &mut sets));
        let looks = fds.iter().any(|one| matches!(kind(one.fd), PolledKind::Set(index) if epoll::awaits_room(index)));
        Self { fds, bell, short: !armed || sets.is_short(), _sets: sets, looks, rung: false }
    }
}

impl Drop for PollRest<'_> {
    fn drop(&mut self) {
        let Some(bell) = self.bell.take() else { return };
        let answered = disarm(self.fds, bell.address());
        if self.rung {
            bell.drain();
        }
        bell.give_back(answered <= usize::from(self.rung));
    }
}

fn look_at_rings(fds: &[pollfd]) -> bool {
    // What has come by the lane is taken once nobody would ring us for it.
    if STREAMS.lane_has_arrived() {
        return true;
    }
    epoll::dispatch_active();
    fds.iter().any(|one| ring_events(one, kind(one.fd)) != 0)
}

/// Arms everything that is waited for. False when not all could be.
fn arm(fds: &[pollfd], bell: BellAddress, sets: &mut epoll::RestingSet) -> bool {
    let mut all = true;
    for one in fds {
        match kind(one.fd) {
            PolledKind::Plain | PolledKind::Datagram(_) => {}
            PolledKind::Set(index) => sets.lie_down(index),
            PolledKind::Attached(held) => {
                let stream = held.stream();
                all &= one.events & READING == 0 || stream.arm_receive(bell, Waiter::Wait);
                all &= one.events & WRITING == 0 || stream.arm_space(bell, Waiter::Wait);
            }
        }
    }
    all
}

/// Takes all wishes back; answers how many were answered, or stand no more for another reason.
fn disarm(fds: &[pollfd], bell: BellAddress) -> usize {
    let mut answered = 0;
    for one in fds {
        if let PolledKind::Attached(held) = kind(one.fd) {
            let stream = held.stream();
            answered += usize::from(one.events & READING != 0 && !stream.disarm_receive(bell, Waiter::Wait));
            answered += usize::from(one.events & WRITING != 0 && !stream.disarm_space(bell, Waiter::Wait));
        }
    }
    answered
}
