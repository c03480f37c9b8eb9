//! Waiting on a set.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{epoll_event, sigset_t, timespec};
use weft_fabric::stream::sleep_barrier;

use super::control::{self, Word};
use super::members;
use super::resting::Resting;
use super::set;
use crate::meet::STREAMS;
use crate::raw::{self, Errno};
use crate::{attend, far, pace, real, signals};

/// While rings have something in every call, the kernel's set is asked every so many calls.
const KERNEL_EVERY: u32 = 8;
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
    Never,
    /// Every so many calls, so that it has its turn where rings have something every time. Before a sleep that is enough:
    /// the sleep asks.
    InTurn,
    /// In turn, and where the rings have nothing.
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
            let ask = if over || KERNEL_TOLD.load(Ordering::Relaxed) { Ask::Now } else { Ask::InTurn };
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
    let turn = ask != Ask::Never && inner.calls.wrapping_add(1).is_multiple_of(KERNEL_EVERY);
    // The rings may fill the answer every time: when it is the kernel's turn, half of it is kept free.
    let part = if turn { out.len() / 2 } else { out.len() };
    let (told, call) = members::collect(&mut inner, epfd, &mut out[..part]);
    drop(inner);
    if told > 0 {
        note(false);
    }
    if !turn && (told > 0 || ask != Ask::Now) {
        return Ok(told);
    }
    match raw::epoll_look(epfd, &mut out[told..], mask) {
        Ok(seen) => match merge(epfd, index, out, (told, call), seen) {
            0 if part < out.len() => Ok(collect(epfd, index, out)),
            all => Ok(all),
        },
        Err(_) if told > 0 => Ok(told),
        Err(error) => Err(error),
    }
}

fn note(kernel_told: bool) {
    if KERNEL_TOLD.load(Ordering::Relaxed) != kernel_told {
        KERNEL_TOLD.store(kernel_told, Ordering::Relaxed);
    }
}

/// What the rings have, all of it.
fn collect(epfd: c_int, index: u32, out: &mut [epoll_event]) -> usize {
    set::at(index).lock().map_or(0, |mut inner| members::collect(&mut inner, epfd, out).0)
}

/// Turns `seen` events of the kernel behind those that call `call` told of ours into what the program shall see; answers
/// how many there are.
fn merge(epfd: c_int, index: u32, out: &mut [epoll_event], (told, call): (usize, u32), seen: usize) -> usize {
    control::before_merge(&out[told..told + seen]);
    let Some(mut inner) = set::at(index).lock() else { return told };
    let (mut used, mut strange) = (told, false);
    for at in told..told + seen {
        let event = out[at];
        let translated = match control::word(event.u64) {
            Word::Programs => Some((event, None)),
            Word::Bell(number) => {
                strange |= !control::quieten(&mut inner, number);
                None
            }
            Word::Lane(number) => {
                strange |= !control::is_own_lane(number);
                None
            }
            Word::Ours(fd) => {
                let event = control::translate(&mut inner, epfd, fd, event.events);
                strange |= event.is_none() && inner.registered(fd).is_none();
                event.map(|event| (event, Some(fd)))
            }
        };
        let Some((event, fd)) = translated else { continue };
        let place = fd.and_then(|fd| inner.registered(fd));
        match place.and_then(|place| told_already(place, &out[..told], call, &event)) {
            Some(earlier) => {
                let both = out[earlier].events | event.events;
                out[earlier].events = both;
            }
            None => {
                out[used] = event;
                used += 1;
            }
        }
    }
    drop(inner);
    if told == 0 && used > 0 {
        note(true);
    }
    if strange && used == 0 {
        // Another process of our fork family has put it into the set that we share, and is to look at it.
        let _ = raw::poll(&mut [], Some(STRANGE_NS), None);
    }
    used
}

/// Where in `out` call `call` has told of this registration. Another thread's call that told of it since has written
/// its own place there: then the program's word decides, so that nothing is told twice in one answer.
fn told_already(place: &set::Registration, out: &[epoll_event], call: u32, event: &epoll_event) -> Option<usize> {
    if place.call == call {
        return Some(place.answer as usize).filter(|at| *at < out.len());
    }
    let data = event.u64;
    let later = place.call.wrapping_sub(call).cast_signed() > 0;
    if later { out.iter().position(|told| told.u64 == data) } else { None }
}

fn spin(epfd: c_int, index: u32, out: &mut [epoll_event], mask: *const sigset_t) -> Result<usize, Errno> {
    let mut answer = Ok(0);
    let mut looks = 0u32;
    let far = KERNEL_TOLD.load(Ordering::Relaxed) && STREAMS.lane().is_some();
    let every = if far { FAR_KERNEL_LOOKS } else { KERNEL_LOOKS };
    pace::spin(|| {
        let ask = if looks.is_multiple_of(every) { Ask::Now } else { Ask::Never };
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
    let mut resting = Resting::new();
    resting.lie_down(index);
    sleep_barrier();
    members::dispatch_active();
    let answer = if members::any_ready(index) {
        Ok((0, 1))
    } else {
        let slice = if resting.is_short() {
            Some(SLICE_NS)
        } else {
            members::awaits_room(index).then_some(crate::wait::LOOK_NS).or(far::watch_ns())
        };
        let slice = slice.map_or(left, |slice| Some(left.map_or(slice, |left| left.min(slice))));
        STREAMS.counters().sleeps.fetch_add(1, Ordering::Relaxed);
        by_kernel(epfd, index, out, slice, mask)
    };
    answer.map(|(told, _)| told)
}

/// The kernel's wait; answers how many events are told, and how many the kernel had.
fn by_kernel(
    epfd: c_int,
    index: u32,
    out: &mut [epoll_event],
    left: Option<u64>,
    mask: *const sigset_t,
) -> Result<(usize, usize), Errno> {
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
        _ if seen >= 0 => {}
        // To be looked at again.
        libc::EINTR if attend::calls() != calls => return Ok((0, 1)),
        error => return Err(error),
    }
    Ok((merge(epfd, index, out, (0, 0), seen as usize), seen as usize))
}
