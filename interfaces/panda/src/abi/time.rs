//! `pan_time_*`.

use super::{give, object, take};
use crate::failure::fail;
use crate::shared::time::PandaTime;
use std::ffi::{c_double, c_int, c_long, c_ulong, c_void};
use std::sync::atomic::AtomicPtr;

type Time = *mut PandaTime;

static INFINITY: PandaTime = PandaTime::INFINITY;
static ZERO: PandaTime = PandaTime::from_nanoseconds(0);

/// Where programs find the times that they compare with.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static pan_time_infinity: AtomicPtr<PandaTime> = AtomicPtr::new((&raw const INFINITY).cast_mut());
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static pan_time_zero: AtomicPtr<PandaTime> = AtomicPtr::new((&raw const ZERO).cast_mut());

/// The value of a time.
///
/// # Safety
/// It is a time of the program's.
unsafe fn value(call: &str, time: Time) -> PandaTime {
    // SAFETY: the caller's promise.
    *unsafe { object(call, time) }
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_time_create() -> Time {
    give(PandaTime::default())
}

/// # Safety
/// It is null or a time, and the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_clear(time: Time) {
    // SAFETY: the caller's promise.
    drop(unsafe { take(time) });
}

/// # Safety
/// Both are times of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_copy(to: Time, from: Time) {
    // SAFETY: the caller's promise.
    unsafe { *object("pan_time_copy", to) = value("pan_time_copy", from) };
}

/// # Safety
/// It is a time of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_get(now: Time) {
    // SAFETY: the caller's promise.
    unsafe { *object("pan_time_get", now) = PandaTime::now() };
}

/// # Safety
/// It is a time of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_set(time: Time, seconds: c_long, nanoseconds: c_ulong) {
    let all = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    // SAFETY: the caller's promise.
    unsafe { *object("pan_time_set", time) = PandaTime::from_nanoseconds(all) };
}

/// # Safety
/// Both are times of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_cmp(one: Time, other: Time) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { value("pan_time_cmp", one).cmp(&value("pan_time_cmp", other)) as c_int }
}

/// Computes a time anew.
///
/// # Safety
/// It is a time of the program's.
unsafe fn compute(call: &str, time: Time, what: impl FnOnce(i128) -> i128) {
    // SAFETY: the caller's promise.
    let time = unsafe { object(call, time) };
    *time = PandaTime::from_nanoseconds(what(time.nanoseconds()));
}

/// # Safety
/// Both are times of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_add(to: Time, delta: Time) {
    // SAFETY: the caller's promise.
    let delta = unsafe { value("pan_time_add", delta) }.nanoseconds();
    // SAFETY: as above.
    unsafe { compute("pan_time_add", to, |all| all + delta) };
}

/// # Safety
/// Both are times of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_sub(from: Time, delta: Time) {
    // SAFETY: the caller's promise.
    let delta = unsafe { value("pan_time_sub", delta) }.nanoseconds();
    // SAFETY: as above.
    unsafe { compute("pan_time_sub", from, |all| all - delta) };
}

/// # Safety
/// It is a time of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_mul(time: Time, factor: c_int) {
    // SAFETY: the caller's promise.
    unsafe { compute("pan_time_mul", time, |all| all * i128::from(factor)) };
}

/// # Safety
/// It is a time of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_div(time: Time, divisor: c_int) {
    if divisor == 0 {
        fail("pan_time_div: a time divided by 0");
    }
    // SAFETY: the caller's promise.
    unsafe { compute("pan_time_div", time, |all| all / i128::from(divisor)) };
}

/// # Safety
/// It is a time of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_mulf(time: Time, factor: c_double) {
    // SAFETY: the caller's promise.
    unsafe { compute("pan_time_mulf", time, |all| PandaTime::from_nanoseconds(all).times(factor).nanoseconds()) };
}

/// # Safety
/// It is a time of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_d2t(time: Time, seconds: c_double) {
    // SAFETY: the caller's promise.
    unsafe { *object("pan_time_d2t", time) = PandaTime::from_seconds(seconds) };
}

/// # Safety
/// It is a time of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_t2d(time: Time) -> c_double {
    // SAFETY: the caller's promise.
    unsafe { value("pan_time_t2d", time) }.seconds()
}

/// The explicit form of a time is laid out as ours is.
///
/// # Safety
/// Both are times of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_t2fix(time: Time, fix: Time) {
    // SAFETY: the caller's promise.
    unsafe { *object("pan_time_t2fix", fix) = value("pan_time_t2fix", time) };
}

/// # Safety
/// Both are times of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_fix2t(fix: Time, time: Time) {
    // SAFETY: the caller's promise.
    let fix = unsafe { value("pan_time_fix2t", fix) };
    // SAFETY: as above.
    unsafe { *object("pan_time_fix2t", time) = PandaTime::from_nanoseconds(fix.nanoseconds()) };
}

/// # Safety
/// Both are times of the program's, and the difference has its place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_sub_fix_small(one: Time, other: Time, difference: *mut c_long) -> c_int {
    // SAFETY: the caller's promise.
    let [one, other] = unsafe { [value("pan_time_sub_fix_small", one), value("pan_time_sub_fix_small", other)] };
    let small = c_long::try_from(one.nanoseconds() - other.nanoseconds());
    // SAFETY: as above.
    small.map(|small| unsafe { difference.write(small) }).is_ok().into()
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_time_size() -> c_int {
    size_of::<PandaTime>() as c_int
}

/// # Safety
/// It is a time of the program's, and the buffer has room for [`pan_time_size`] bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_marshall(time: Time, buffer: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { buffer.cast::<PandaTime>().write_unaligned(value("pan_time_marshall", time)) };
}

/// # Safety
/// It is a time of the program's, and the buffer has what [`pan_time_marshall`] has written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_time_unmarshall(time: Time, buffer: *const c_void) {
    // SAFETY: the caller's promise.
    unsafe { *object("pan_time_unmarshall", time) = buffer.cast::<PandaTime>().read_unaligned() };
}
