//! The rest of Panda's `util`: clocks, sleep, the order of bytes, and explicit times.

use super::{assert_open, count, object};
use crate::clock;
use crate::shared::time::PandaTime;
use crate::upcalls::catch_up;
use std::ffi::{c_double, c_int};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

type Time = *mut PandaTime;

#[unsafe(no_mangle)]
pub extern "C" fn pan_util_init() {
    assert_open("pan_util_init");
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_util_end() {}

#[unsafe(no_mangle)]
pub extern "C" fn pan_is_bigendian() -> c_int {
    cfg!(target_endian = "big").into()
}

/// Upcalls run meanwhile.
///
/// # Safety
/// It is a time of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_sleep(time: Time) {
    // SAFETY: the caller's promise.
    let time = unsafe { object("pan_sleep", time) };
    catch_up();
    std::thread::sleep(Duration::from_nanos(u64::try_from(time.nanoseconds()).unwrap_or(0)));
}

/// What the last comparison of clocks has found, and what the program has set and may ask for.
struct Clocks {
    found: Option<[PandaTime; 2]>,
    /// Until a question counts as lost, and a message's way. Nothing is lost here, so they have no effect.
    limits: [PandaTime; 2],
}

static CLOCKS: Mutex<Clocks> = Mutex::new(Clocks {
    found: None,
    limits: [PandaTime::from_nanoseconds(200_000_000), PandaTime::from_nanoseconds(20_000_000)],
});

fn clocks() -> std::sync::MutexGuard<'static, Clocks> {
    CLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// # Safety
/// Both are times of the program's.
unsafe fn write(call: &str, places: [Time; 2], values: [PandaTime; 2]) {
    for (place, value) in places.into_iter().zip(values) {
        // SAFETY: the caller's promise.
        unsafe { *object(call, place) = value };
    }
}

/// # Safety
/// Both are times of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_clock_sync(samples: c_int, shift: Time, deviation: Time) -> c_int {
    assert_open("pan_clock_sync");
    let (mean, spread, counted) = clock::compare("pan_clock_sync", count("pan_clock_sync", samples));
    let found = [PandaTime::from_nanoseconds(mean), PandaTime::from_nanoseconds(spread as i128)];
    clocks().found = Some(found);
    // SAFETY: the caller's promise.
    unsafe { write("pan_clock_sync", [shift, deviation], found) };
    counted as c_int
}

/// # Safety
/// Both are times of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_clock_get_shift(shift: Time, deviation: Time) -> c_int {
    let found = clocks().found;
    if let Some(found) = found {
        // SAFETY: the caller's promise.
        unsafe { write("pan_clock_get_shift", [shift, deviation], found) };
    }
    found.is_some().into()
}

/// # Safety
/// Both are times of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_clock_set_timeout(timeout: Time, delay: Time) {
    for (at, time) in [timeout, delay].into_iter().enumerate() {
        // SAFETY: the caller's promise.
        let time = *unsafe { object("pan_clock_set_timeout", time) };
        if time != PandaTime::INFINITY {
            clocks().limits[at] = time;
        }
    }
}

/// # Safety
/// Both are times of the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_clock_get_timeout(timeout: Time, delay: Time) {
    // SAFETY: the caller's promise.
    unsafe { write("pan_clock_get_timeout", [timeout, delay], clocks().limits) };
}

#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static pan_time_fix_infinity: PandaTime = PandaTime::INFINITY;
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static pan_time_fix_zero: PandaTime = PandaTime::from_nanoseconds(0);

/// The functions of times, for explicit ones.
macro_rules! explicit {
    ($($name:ident($time:ident $(, $argument:ident: $type:ty)?) $(-> $answer:ty)? = $function:ident;)*) => { $(
        /// # Safety
        /// It is a time of the program's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($time: Time $(, $argument: $type)?) $(-> $answer)? {
            // SAFETY: the caller's promise.
            unsafe { super::time::$function($time $(, $argument)?) }
        }
    )* };
}

explicit! {
    pan_time_fix_mul(time, factor: c_int) = pan_time_mul;
    pan_time_fix_div(time, divisor: c_int) = pan_time_div;
    pan_time_fix_mulf(time, factor: c_double) = pan_time_mulf;
    pan_time_fix_d2t(time, seconds: c_double) = pan_time_d2t;
    pan_time_fix_t2d(time) -> c_double = pan_time_t2d;
}
