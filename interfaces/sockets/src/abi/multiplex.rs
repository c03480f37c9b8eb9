//! Calls that wait for several descriptors.

use std::ffi::c_int;

use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, size_t, timespec, timeval};

use crate::raw::{self, Errno};
use crate::select::Sets;
use crate::table::{self, Entry};
use crate::{attend, epoll, poll as polling, real, select as selecting};

unsafe extern "C-unwind" {
    fn __chk_fail() -> !;
}

fn answer(result: Result<usize, Errno>) -> c_int {
    crate::route::answer(result) as c_int
}

/// Milliseconds as `poll` has them, in nanoseconds.
fn of_milliseconds(timeout: c_int) -> Option<u64> {
    u64::try_from(timeout).ok().map(|ms| ms * 1_000_000)
}

/// `None` for ever; an invalid time is an error.
fn of_timespec(time: Option<&timespec>) -> Result<Option<u64>, Errno> {
    let Some(time) = time else { return Ok(None) };
    match (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec)) {
        (Ok(seconds), Ok(ns @ 0..1_000_000_000)) => Ok(Some(seconds.saturating_mul(1_000_000_000).saturating_add(ns))),
        _ => Err(libc::EINVAL),
    }
}

/// A wait of the program on nothing of ours; the sets of a `select` are as they were when it was interrupted.
///
/// # Safety
/// The program's time.
unsafe fn plain(time: *const timespec, mut wait: impl FnMut(*const timespec) -> c_int) -> c_int {
    // SAFETY: the caller's promise.
    let Ok(whole) = of_timespec(unsafe { time.as_ref() }) else { return wait(time) };
    attend::undisturbed(whole, |left| {
        let left = left.map(raw::timespec_of);
        wait(left.as_ref().map_or(std::ptr::null(), |left| left as *const timespec))
    })
}

/// `select` writes what is left into the program's time by itself, also when it is interrupted.
///
/// # Safety
/// The program's own arguments.
unsafe fn plain_select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    time: *mut timeval,
) -> c_int {
    // SAFETY: the program's own arguments.
    attend::undisturbed(None, |_| unsafe { real::select(count, read, write, except, time) })
}

/// # Safety
/// The program's list.
unsafe fn list<'a>(fds: *mut pollfd, count: nfds_t) -> &'a mut [pollfd] {
    if fds.is_null() || count as usize > table::PLACES {
        return &mut [];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(fds, count as usize) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe {
        let list = list(fds, count);
        if !polling::concerns(list) {
            let wait = |left| real::poll(fds, count, raw::milliseconds_of(left));
            return attend::undisturbed(of_milliseconds(timeout), wait);
        }
        answer(polling::poll(list, of_milliseconds(timeout), std::ptr::null()))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __poll_chk(fds: *mut pollfd, count: nfds_t, timeout: c_int, room: size_t) -> c_int {
    // SAFETY: as `poll`, with the compiler's knowledge of the list.
    unsafe {
        if room / size_of::<pollfd>() < count as usize {
            __chk_fail();
        }
        poll(fds, count, timeout)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe {
        let list = list(fds, count);
        if !polling::concerns(list) {
            return plain(timeout, |time| real::ppoll(fds, count, time, mask));
        }
        answer(of_timespec(timeout.as_ref()).and_then(|time| polling::poll(list, time, mask)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    room: size_t,
) -> c_int {
    // SAFETY: as `ppoll`, with the compiler's knowledge of the list.
    unsafe {
        if room / size_of::<pollfd>() < count as usize {
            __chk_fail();
        }
        ppoll(fds, count, timeout, mask)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    let sets = Sets::new(count, [read, write, except]);
    // SAFETY: the program's own arguments.
    unsafe {
        if !sets.concern() {
            return plain_select(count, read, write, except, timeout);
        }
        let Some(time) = timeout.as_mut() else { return answer(selecting::select(&sets, None, std::ptr::null())) };
        let (Ok(seconds), Ok(us)) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_usec)) else {
            return answer(Err(libc::EINVAL));
        };
        let whole = seconds.saturating_mul(1_000_000_000).saturating_add(us.saturating_mul(1000));
        let start = raw::now_ns();
        let found = selecting::select(&sets, Some(whole), std::ptr::null());
        // As the kernel has it: what is left of the time.
        let left = whole.saturating_sub(raw::now_ns() - start);
        (time.tv_sec, time.tv_usec) = ((left / 1_000_000_000) as i64, (left % 1_000_000_000 / 1000) as i64);
        answer(found)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let sets = Sets::new(count, [read, write, except]);
    // SAFETY: the program's own arguments.
    unsafe {
        if !sets.concern() {
            return plain(timeout, |time| real::pselect(count, read, write, except, time, mask));
        }
        answer(of_timespec(timeout.as_ref()).and_then(|time| selecting::select(&sets, time, mask)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_create(size: c_int) -> c_int {
    // SAFETY: a number.
    let fd = unsafe { real::epoll_create(size) };
    if fd >= 0 {
        epoll::create(fd);
    }
    fd
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: a number.
    let fd = unsafe { real::epoll_create1(flags) };
    if fd >= 0 {
        epoll::create(fd);
    }
    fd
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_ctl(set: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe { epoll::control(set, operation, fd, event) }
}

/// The set's index and the program's list, if the set is ours and the arguments are sound.
///
/// # Safety
/// The program's list.
unsafe fn set_and_list<'a>(set: c_int, events: *mut epoll_event, count: c_int) -> Option<(u32, &'a mut [epoll_event])> {
    let Some(Entry::Set(index)) = table::entry(set) else { return None };
    if events.is_null() || count <= 0 {
        return None;
    }
    // SAFETY: the caller's promise.
    Some((index, unsafe { std::slice::from_raw_parts_mut(events, count as usize) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_wait(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: the program's own arguments; without a mask it is the same call.
    unsafe { epoll_pwait(set, events, count, timeout, std::ptr::null()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_pwait(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe {
        match set_and_list(set, events, count) {
            Some((index, out)) => answer(epoll::wait(set, index, out, of_milliseconds(timeout), mask)),
            None => attend::undisturbed(of_milliseconds(timeout), |left| {
                real::epoll_pwait(set, events, count, raw::milliseconds_of(left), mask)
            }),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn epoll_pwait2(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe {
        match set_and_list(set, events, count) {
            Some((index, out)) => {
                answer(of_timespec(timeout.as_ref()).and_then(|time| epoll::wait(set, index, out, time, mask)))
            }
            None => plain(timeout, |time| real::epoll_pwait2(set, events, count, time, mask)),
        }
    }
}

aliases! {
    __poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int = poll;
    __select(
        count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval
    ) -> c_int = select;
}
