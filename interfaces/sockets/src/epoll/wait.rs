//! Waiting on a set.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{epoll_event, sigset_t, timespec};
use weft_fabric::stream::sleep_barrier;

use super::control::{self, KernelWord};
use super::members;
use super::order::{self, AskedTimes};
use super::resting::RestingSet;
use super::set;
use crate::meet::STREAMS;
use crate::raw::{self, Errno};
use crate::{attend, far, pace, real, signals};

/// While spinning, at first and every so many looks.
const KERNEL_LOOKS: u32 = 64;
/// The same where the last word was the kernel's and connections lead to other hosts: their answers may come by it.
const FAR_KERNEL_LOOKS: u32 = 4;
/// What was told last came from the kernel: it is asked before a sleep, which costs more than to ask.
static KERNEL_TOLD: AtomicBool = AtomicBool::new(false);
/// Sleep no longer where a member could not be armed.
const SLICE_NS: u64 = 5_000_000;
/// Between two looks at a set that reports nothing but what is for other processes.
const STRANGE_NS: u64 = 100_000;

/// When a look asks the kernel, too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    /// Where the rings have something. Before a sleep that is enough: the sleep asks.
    IfFound,
    Now,
}

/// `epoll_pwait2` on a set of ours: `timeout_ns` `None` is for ever.
pub fn wait(
    epfd: c_int,
    index: u32,
    out: &mut [epoll_event],
    timeout_ns: Option<u64>,
    mask: *const sigset_t,
) -> Result<usize, Errno> {
    signals::may_be_cancelled();
    let deadline = timeout_ns.filter(|ns| *ns > 0).map(|ns| raw::now_ns().saturating_add(ns));
    let left = || if timeout_ns == Some(0) { Some(0) } else { crate::wait::left_ns(deadline) };
    if set::at(index).is_held_further_out() {
        // We are a signal handler, and what it interrupted goes on only when we return: no waiting.
        return if timeout_ns == Some(0) { Ok(0) } else { Err(libc::EINTR) };
    }
    loop {
        attend::catch_up();
        let resting = InKernel::new(index);
        if !set::has_members(index) {
            match look_for_far(epfd, index, out, left(), mask)
                .unwrap_or_else(|| by_kernel(epfd, index, out, left(), mask))
            {
                // Only words of ours: look again.
                Ok((0, seen)) if seen > 0 => continue,
                answer => return answer.map(|(told, _)| told),
            }
        }
        drop(resting);
        let _leaving = Leaving(index);
        loop {
            far::look_after();
            let over = left() == Some(0);
            let ask = if over || KERNEL_TOLD.load(Ordering::Relaxed) { Ask::Now } else { Ask::IfFound };
            let mut told = look(epfd, index, out, mask, ask)?;
            if told == 0 && !over {
                told = spin(epfd, index, out, mask)?;
                if told == 0 {
                    told = sleep(epfd, index, out, left(), mask)?;
                }
            }
            // A time that is over by now may have ended after something came: one more look.
            if told > 0 || over {
                return Ok(told);
            }
            attend::catch_up();
            members::leave_dead_rings(index);
            if !set::has_members(index) {
                break;
            }
        }
    }
}

/// A thread that may have been woken for all who sleep on the set. However it goes, others are woken from then on.
struct Leaving(u32);

impl Drop for Leaving {
    fn drop(&mut self) {
        members::leave_to_sleepers(self.0);
    }
}

/// A sleep in the kernel only. Counted before the look at the members: who becomes the first of them sees us, or we see
/// it.
struct InKernel(u32);

impl InKernel {
    fn new(index: u32) -> Self {
        set::at(index).in_kernel.fetch_add(1, Ordering::SeqCst);
        Self(index)
    }
}

impl Drop for InKernel {
    fn drop(&mut self) {
        set::at(self.0).in_kernel.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One look: the rings, and the kernel when it is to be asked.
fn look(epfd: c_int, index: u32, out: &mut [epoll_event], mask: *const sigset_t, ask: Ask) -> Result<usize, Errno> {
    members::dispatch_active();
    let Some(mut inner) = set::at(index).lock() else { return Ok(0) };
    let rings = order::gather(&mut inner, epfd);
    drop(inner);
    if rings == 0 && ask == Ask::IfFound {
        Ok(0)
    } else {
        complete(epfd, index, out, mask, rings, SeenByKernel::NOTHING)
    }
}

/// What the kernel's set has given, as it stands in the answer.
#[derive(Clone, Copy)]
struct SeenByKernel {
    events: usize,
    /// There was something that is for another process of our fork family.
    strange: bool,
    /// Our bell was among the last ones, in the place of something else.
    rang: bool,
}

impl SeenByKernel {
    const NOTHING: Self = Self { events: 0, strange: false, rang: false };
}

/// Asks the kernel and looks at the rings, `rings` of which were found to have something, until nothing can be missing
/// of what happened before; and tells of it all. (See `order`.)
fn complete(
    epfd: c_int,
    index: u32,
    out: &mut [epoll_event],
    mask: *const sigset_t,
    mut rings: usize,
    mut seen: SeenByKernel,
) -> Result<usize, Errno> {
    let mut before = None;
    let mut room = room_of_kernel(index, out.len(), rings);
    loop {
        let now = raw::now_ns();
        // So much that nobody is to look it through again: what is beyond is told of in the next call.
        let (mut has_more, asks) = (false, room > seen.events && seen.events <= order::MOST);
        seen.rang = false;
        if asks {
            match raw::epoll_look(epfd, &mut out[seen.events..room], mask) {
                Ok(more) => {
                    has_more = more == room - seen.events;
                    seen = sort_out(index, out, seen, more);
                }
                Err(error) if rings + seen.events == 0 => return Err(error),
                Err(_) => {}
            }
        }
        // Who became ready meanwhile may have been armed: only with his mark taken he is looked at.
        members::dispatch_active();
        let Some(mut inner) = set::at(index).lock() else { return Ok(0) };
        let again = order::gather(&mut inner, epfd);
        let both = order::count_both(&inner, again, &out[..seen.events]);
        let again_room = room.max(room_beside(out.len(), again - both));
        if again > rings || (has_more && (seen.rang || (again_room > room && out.len() > 1))) {
            (rings, room) = (again, again_room);
            continue;
        }
        let before = *before.get_or_insert(inner.asked_at);
        if asks && !has_more {
            inner.asked_at = now;
        }
        let (told, kernels) = order::tell(&mut inner, epfd, out, (again, seen.events), AskedTimes { now, before });
        drop(inner);
        if told > 0 {
            note(kernels == told);
        } else if seen.strange {
            // It stands in the set that we share, and the other process is to look at it.
            let _ = raw::poll(&mut [], Some(STRANGE_NS), None);
        }
        return Ok(told);
    }
}

/// How many events of the kernel there is room for at first. A single place is for the rings every other time.
fn room_of_kernel(index: u32, all: usize, rings: usize) -> usize {
    match all {
        1 if rings > 0 => set::at(index).lock().map_or(0, |inner| usize::from(inner.calls.is_multiple_of(2))),
        _ => room_beside(all, rings),
    }
}

/// The same beside so many of the rings. What the kernel gives must be told of, so they have the half of a short
/// answer.
fn room_beside(all: usize, rings: usize) -> usize {
    all - rings.min(all / 2)
}

/// Takes out of the `more` events behind those that were `seen` before what is only for us, and what was seen already.
fn sort_out(index: u32, out: &mut [epoll_event], mut seen: SeenByKernel, more: usize) -> SeenByKernel {
    if more == 0 {
        return seen;
    }
    let (first, last) = (seen.events, seen.events + more);
    control::before_merge(&out[first..last]);
    let Some(mut inner) = set::at(index).lock() else { return seen };
    for at in first..last {
        let (event, data) = (out[at], out[at].u64);
        match control::word(data) {
            KernelWord::Bell(number) if control::quieten(&mut inner, number) => seen.rang = true,
            KernelWord::Bell(_) => seen.strange = true,
            KernelWord::Lane(number) => seen.strange |= !control::is_own_lane(number),
            KernelWord::Ours(fd) if inner.is_nobody(fd) => seen.strange = true,
            // Of one answer no two are the same registration.
            _ => match out[..first].iter().position(|earlier| earlier.u64 == data) {
                Some(earlier) => out[earlier].events |= event.events,
                None => {
                    out[seen.events] = event;
                    seen.events += 1;
                }
            },
        }
    }
    seen
}

fn note(kernel_told: bool) {
    if KERNEL_TOLD.load(Ordering::Relaxed) != kernel_told {
        KERNEL_TOLD.store(kernel_told, Ordering::Relaxed);
    }
}

fn spin(epfd: c_int, index: u32, out: &mut [epoll_event], mask: *const sigset_t) -> Result<usize, Errno> {
    let mut answer = Ok(0);
    let mut looks = 0u32;
    let far = KERNEL_TOLD.load(Ordering::Relaxed) && STREAMS.lane().is_some();
    let every = if far { FAR_KERNEL_LOOKS } else { KERNEL_LOOKS };
    pace::spin(|| {
        let ask = if looks.is_multiple_of(every) { Ask::Now } else { Ask::IfFound };
        looks += 1;
        answer = look(epfd, index, out, mask, ask);
        answer != Ok(0)
    });
    answer
}

/// What came while it was worth looking for what is awaited from another host.
fn look_for_far(
    epfd: c_int,
    index: u32,
    out: &mut [epoll_event],
    left: Option<u64>,
    mask: *const sigset_t,
) -> Option<Result<(usize, usize), Errno>> {
    let mut found = None;
    far::before_set_wait(left, || {
        let answer = by_kernel(epfd, index, out, Some(0), mask);
        found = (answer != Ok((0, 0))).then_some(answer);
        found.is_some()
    });
    found
}

fn sleep(
    epfd: c_int,
    index: u32,
    out: &mut [epoll_event],
    left: Option<u64>,
    mask: *const sigset_t,
) -> Result<usize, Errno> {
    let mut resting = RestingSet::new();
    resting.lie_down(index);
    sleep_barrier();
    members::dispatch_active();
    if members::any_ready(index) {
        return Ok(0);
    }
    let seen = {
        let slice = if resting.is_short() {
            Some(SLICE_NS)
        } else {
            members::awaits_room(index).then_some(crate::wait::LOOK_NS).or(far::watch_ns())
        };
        let slice = slice.map_or(left, |slice| Some(left.map_or(slice, |left| left.min(slice))));
        STREAMS.counters().sleeps.fetch_add(1, Ordering::Relaxed);
        wait_in_kernel(epfd, out, slice, mask)?
    };
    drop(resting);
    let Some(seen) = seen else { return Ok(0) };
    let seen = sort_out(index, out, SeenByKernel::NOTHING, seen);
    look_behind(epfd, index, out, mask, seen)
}

/// The kernel has ended a sleep with this: what the rings have is told of with it.
fn look_behind(
    epfd: c_int,
    index: u32,
    out: &mut [epoll_event],
    mask: *const sigset_t,
    seen: SeenByKernel,
) -> Result<usize, Errno> {
    members::dispatch_active();
    let Some(mut inner) = set::at(index).lock() else { return Ok(0) };
    let rings = order::gather(&mut inner, epfd);
    drop(inner);
    complete(epfd, index, out, mask, rings, seen)
}

/// The kernel's wait on a set without members; answers how many events are told, and how many the kernel had.
fn by_kernel(
    epfd: c_int,
    index: u32,
    out: &mut [epoll_event],
    left: Option<u64>,
    mask: *const sigset_t,
) -> Result<(usize, usize), Errno> {
    let now = raw::now_ns();
    let Some(seen) = wait_in_kernel(epfd, out, left, mask)? else { return Ok((0, 1)) };
    let sorted = sort_out(index, out, SeenByKernel::NOTHING, seen);
    let Some(mut inner) = set::at(index).lock() else { return Ok((0, seen)) };
    let asked = AskedTimes { now, before: inner.asked_at };
    let (told, _) = order::tell(&mut inner, epfd, out, (0, sorted.events), asked);
    drop(inner);
    if told > 0 {
        note(true);
    } else if sorted.strange {
        // As in `complete`.
        let _ = raw::poll(&mut [], Some(STRANGE_NS), None);
    }
    Ok((told, seen))
}

/// How many events the kernel had, as it gives them; `None` where the wait was ended for us and is to be repeated.
fn wait_in_kernel(
    epfd: c_int,
    out: &mut [epoll_event],
    left: Option<u64>,
    mask: *const sigset_t,
) -> Result<Option<usize>, Errno> {
    let time: Option<timespec> = left.map(raw::timespec_of);
    let time = time.as_ref().map_or(std::ptr::null(), |time| time as *const timespec);
    let _errno = raw::KeepErrno::new();
    let calls = attend::calls();
    // SAFETY: slice, time and mask live across the call.
    let seen = unsafe {
        match real::epoll_pwait2(epfd, out.as_mut_ptr(), out.len() as c_int, time, mask) {
            // An older kernel or C library.
            -1 if raw::errno() == libc::ENOSYS => {
                real::epoll_pwait(epfd, out.as_mut_ptr(), out.len() as c_int, raw::milliseconds_of(left), mask)
            }
            seen => seen,
        }
    };
    match raw::errno() {
        _ if seen >= 0 => Ok(Some(seen as usize)),
        // To be looked at again.
        libc::EINTR if attend::calls() != calls => Ok(None),
        error => Err(error),
    }
}
