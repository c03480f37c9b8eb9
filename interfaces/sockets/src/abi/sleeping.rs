//! Calls that wait for nothing but time or a signal, and that every handler ends: ours does not.

use std::ffi::{c_int, c_uint};

use libc::{TIMER_ABSTIME, clockid_t, timespec, useconds_t};

use crate::{attend, raw, real};

const SECOND_NS: u64 = 1_000_000_000;

/// `None` for a time that the kernel refuses.
fn nanoseconds(time: Option<&timespec>) -> Option<u64> {
    let (seconds, rest) = (u64::try_from(time?.tv_sec).ok()?, u64::try_from(time?.tv_nsec).ok()?);
    (rest < SECOND_NS).then(|| seconds.saturating_mul(SECOND_NS).saturating_add(rest))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn nanosleep(time: *const timespec, rest: *mut timespec) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe {
        let Some(whole) = nanoseconds(time.as_ref()) else { return real::nanosleep(time, rest) };
        attend::undisturbed(Some(whole), |left| real::nanosleep(&raw::timespec_of(left.unwrap_or(0)), rest))
    }
}

/// Answers its error instead of -1. A time of day stays the same, however often it is waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    rest: *mut timespec,
) -> c_int {
    let _errno = raw::KeepErrno::new();
    // SAFETY: the program's own arguments.
    unsafe {
        let given = nanoseconds(time.as_ref());
        let relative = given.filter(|_| flags & TIMER_ABSTIME == 0);
        let mut error = 0;
        attend::undisturbed(relative, |left| {
            error = match left {
                Some(left) => real::clock_nanosleep(clock, flags, &raw::timespec_of(left), rest),
                None => real::clock_nanosleep(clock, flags, time, rest),
            };
            // As `undisturbed` expects it.
            if error == libc::EINTR {
                raw::set_errno(error);
            }
            if error == 0 { 0 } else { -1 }
        });
        error
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn usleep(time: useconds_t) -> c_int {
    let whole = u64::from(time) * 1000;
    // SAFETY: a number.
    attend::undisturbed(Some(whole), |left| unsafe { real::usleep(left.unwrap_or(0).div_ceil(1000) as useconds_t) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sleep(seconds: c_uint) -> c_uint {
    let mut rest = timespec { tv_sec: 0, tv_nsec: 0 };
    let _errno = raw::KeepErrno::new();
    // SAFETY: the places live across the call.
    let answer = attend::undisturbed(Some(u64::from(seconds) * SECOND_NS), |left| unsafe {
        real::nanosleep(&raw::timespec_of(left.unwrap_or(0)), &mut rest)
    });
    if answer == 0 { 0 } else { (rest.tv_sec + i64::from(rest.tv_nsec >= 500_000_000)) as c_uint }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pause() -> c_int {
    // SAFETY: no arguments.
    attend::undisturbed(None, |_| unsafe { real::pause() })
}
