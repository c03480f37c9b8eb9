//! `pan_time_*`.

use super::{give, object};
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

clears! {
    pan_time_clear: PandaTime;
}

/// Computes a time anew.
fn compute(time: &mut PandaTime, what: impl FnOnce(i128) -> i128) {
    *time = PandaTime::from_nanoseconds(what(time.nanoseconds()));
}

on_object! { object:
    pan_time_get(now: Time) { *now = PandaTime::now() }
    pan_time_set(time: Time, seconds: c_long, nanoseconds: c_ulong) {
        *time = PandaTime::from_nanoseconds(i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds))
    }
    pan_time_mul(time: Time, factor: c_int) { compute(time, |all| all * i128::from(factor)) }
    pan_time_div(time: Time, divisor: c_int) {
        if divisor == 0 {
            fail("pan_time_div: a time divided by 0");
        }
        compute(time, |all| all / i128::from(divisor))
    }
    pan_time_mulf(time: Time, factor: c_double) {
        *time = PandaTime::from_nanoseconds(time.nanoseconds()).times(factor)
    }
    pan_time_d2t(time: Time, seconds: c_double) { *time = PandaTime::from_seconds(seconds) }
    pan_time_t2d(time: Time) -> c_double { time.seconds() }
}

/// Functions of a time and the value of another one.
macro_rules! with_value {
    ($($name:ident($time:ident, $other:ident) $(-> $answer:ty)? $body:block)*) => { $(
        /// # Safety
        /// Both are times of the program's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($time: Time, $other: Time) $(-> $answer)? {
            // SAFETY: the caller's promise; they may be one.
            let ($other, $time) = unsafe { (value(stringify!($name), $other), object(stringify!($name), $time)) };
            $body
        }
    )* };
}

with_value! {
    pan_time_copy(to, from) { *to = from }
    pan_time_cmp(one, other) -> c_int { (*one).cmp(&other) as c_int }
    pan_time_add(to, delta) { compute(to, |all| all + delta.nanoseconds()) }
    pan_time_sub(from, delta) { compute(from, |all| all - delta.nanoseconds()) }
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
