//! Waiting on a set.

use std::ffi::c_int;

use libc::{epoll_event, sigset_t, timespec};
use weft_fabric::stream::sleep_barrier;

use super::control::{self, Word};
use super::members;
use super::set;
use crate::meet::STREAMS;
use crate::raw::{self, Errno};
use crate::{attend, pace, real};

/// While rings have something in every call, the kernel's set is asked every so many calls.
const KERNEL_EVERY: u32 = 8;
/// While spinning, every so many looks.
const KERNEL_LOOKS: u32 = 16;
/// Sleep no longer where a member could not be armed.
const SLICE_NS: u64 = 5_000_000;

/// `epoll_pwait2` on a set of ours: `timeout_ns` `None` is for ever.
pub fn wait(
    epfd: c_int,
    index: u32,
    out: &mut [epoll_event],
    timeout_ns: Option<u64>,
    mask: *const sigset_t,
) -> Result<usize, Errno> {
    let deadline = timeout_ns.filter(|ns| *ns > 0).map(|ns| raw::now_ns().saturating_add(ns));
    let left = || if timeout_ns == Some(0) { Some(0) } else { crate::wait::left_ns(deadline) };
    loop {
        attend::catch_up();
        if !set::has_members(index) {
            match by_kernel(epfd, index, out, left(), mask) {
                // Only words of ours: look again.
                Ok((0, seen)) if seen > 0 => continue,
                answer => return answer.map(|(told, _)| told),
            }
        }
        let mut told = look(epfd, index, out, mask, false)?;
        if told == 0 && left() != Some(0) {
            told = spin(epfd, index, out, mask)?;
            if told == 0 {
                told = sleep(epfd, index, out, left(), mask)?;
            }
        }
        if told > 0 || left() == Some(0) {
            members::leave_to_sleepers(index, epfd);
            return Ok(told);
        }
    }
}

/// One look: the rings, and the kernel if the rings have nothing or its turn has come.
fn look(
    epfd: c_int,
    index: u32,
    out: &mut [epoll_event],
    mask: *const sigset_t,
    rings_only: bool,
) -> Result<usize, Errno> {
    members::dispatch_active();
    let mut inner = set::at(index).lock();
    let told = members::collect(&mut inner, out);
    let ask = told == 0 && !rings_only || (told > 0 && told < out.len() && inner.calls.is_multiple_of(KERNEL_EVERY));
    drop(inner);
    if !ask {
        return Ok(told);
    }
    match raw::epoll_look(epfd, &mut out[told..], mask) {
        Ok(seen) => Ok(merge(epfd, index, out, told, seen)),
        Err(_) if told > 0 => Ok(told),
        Err(error) => Err(error),
    }
}

/// Turns `seen` events of the kernel behind `told` of ours into what the program shall see; answers how many there are.
fn merge(epfd: c_int, index: u32, out: &mut [epoll_event], told: usize, seen: usize) -> usize {
    let mut inner = set::at(index).lock();
    let mut used = told;
    for at in told..told + seen {
        let event = out[at];
        let translated = match control::word(event.u64) {
            Word::Programs => Some((event, None)),
            Word::Poke => None,
            Word::Bell => {
                if let Some(bell) = &inner.bell {
                    bell.drain();
                }
                None
            }
            Word::Ours(fd) => control::translate(&mut inner, epfd, fd, event.events).map(|event| (event, Some(fd))),
        };
        let Some((event, fd)) = translated else { continue };
        let call = inner.calls;
        let already = fd.and_then(|fd| inner.registered(fd)).filter(|place| told > 0 && place.call == call);
        match already {
            Some(place) => {
                let both = out[place.answer as usize].events | event.events;
                out[place.answer as usize].events = both;
            }
            None => {
                out[used] = event;
                used += 1;
            }
        }
    }
    used
}

fn spin(epfd: c_int, index: u32, out: &mut [epoll_event], mask: *const sigset_t) -> Result<usize, Errno> {
    let mut answer = Ok(0);
    let mut looks = 0u32;
    pace::spin(|| {
        looks += 1;
        answer = look(epfd, index, out, mask, !looks.is_multiple_of(KERNEL_LOOKS));
        answer != Ok(0)
    });
    answer
}

fn sleep(
    epfd: c_int,
    index: u32,
    out: &mut [epoll_event],
    left: Option<u64>,
    mask: *const sigset_t,
) -> Result<usize, Errno> {
    let short = members::rest_before_sleep(index);
    let _rested = Rested(index);
    sleep_barrier();
    members::dispatch_active();
    let answer = if members::any_ready(index) {
        Ok((0, 1))
    } else {
        let slice = if short { Some(left.map_or(SLICE_NS, |left| left.min(SLICE_NS))) } else { left };
        STREAMS.counters().sleeps.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        by_kernel(epfd, index, out, slice, mask)
    };
    answer.map(|(told, _)| told)
}

/// A sleeper of a set; gets up also when its thread is cancelled.
struct Rested(u32);

impl Drop for Rested {
    fn drop(&mut self) {
        members::rest_after_sleep(self.0);
    }
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
    let seen = unsafe { real::epoll_pwait2(epfd, out.as_mut_ptr(), out.len() as c_int, time, mask) };
    match raw::errno() {
        _ if seen >= 0 => {}
        // To be looked at again.
        libc::EINTR if attend::calls() != calls => return Ok((0, 1)),
        error => return Err(error),
    }
    Ok((merge(epfd, index, out, 0, seen as usize), seen as usize))
}
