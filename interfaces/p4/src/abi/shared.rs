//! `p4.h`: shared memory, locks and monitors. What stands in a structure is as the program has made it; an address of
//! one is valid as long as the call lasts.

use crate::area;
use crate::failure::{fail, refuse};
use crate::lock::SharedLock;
use crate::monitors::{ProblemPool, ResetProblems, SharedMonitor, Subscripts, TakeProblem};
use crate::together;
use std::ffi::{c_char, c_int, c_void};

/// What an argument points to.
///
/// # Safety
/// It is null or such a structure.
unsafe fn at<'a, T>(call: &str, place: *const T) -> &'a T {
    // SAFETY: the caller's promise; fields that others change are atomics.
    unsafe { place.as_ref() }.unwrap_or_else(|| fail(&format!("{call}: there is no such thing at null"), -1))
}

/// 0, or -1 where there is no shared memory.
fn begun(call: &str, went_well: bool) -> c_int {
    if went_well {
        0
    } else {
        refuse(&format!("{call}: no shared memory is left; -p4gm and P4_GLOBMEMSIZE say how much"), -1)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_shmalloc(bytes: c_int) -> *mut c_char {
    usize::try_from(bytes).map_or(std::ptr::null_mut(), area::allocate).cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_shfree(part: *mut c_void) {
    if !part.is_null() && !area::free(part.cast()) {
        fail("p4_shfree: the memory is none of p4_shmalloc, or was given back before", -1);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn p4_malloc(bytes: c_int) -> *mut c_void {
    // SAFETY: asks for memory.
    usize::try_from(bytes).map_or(std::ptr::null_mut(), |bytes| unsafe { libc::malloc(bytes) })
}

/// # Safety
/// `memory` is some of `p4_malloc` that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_free(memory: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(memory) };
}

/// # Safety
/// `memory` is a place for an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_cluster_shmem_sync(memory: *mut *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { *memory = together::share_in_cluster(*memory as u64) as *mut c_void };
}

/// Calls on what their first argument leads to.
macro_rules! on {
    ($($name:ident(
        $place:ident: $type:ty $(, $argument:ident: $other:ty)*
    ) $(-> $answer:ty)? $body:block)*) => { $(
        /// # Safety
        /// It is in shared memory, and was initialised, unless this does so.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($place: *mut $type $(, $argument: $other)*) $(-> $answer)? {
            // SAFETY: the caller's promise.
            let $place = unsafe { at(stringify!($name), $place) };
            $body
        }
    )* };
}

on! {
    p4_lock_init(lock: SharedLock) { lock.open() }
    p4_lock(lock: SharedLock) { lock.lock("p4_lock") }
    p4_unlock(lock: SharedLock) { lock.unlock() }
    p4_moninit(monitor: SharedMonitor, queues: c_int) -> c_int {
        let queues = usize::try_from(queues).unwrap_or_else(|_| fail("p4_moninit: no such number of queues", queues));
        begun("p4_moninit", monitor.begin(queues))
    }
    p4_menter(monitor: SharedMonitor) { monitor.enter("p4_menter") }
    p4_mexit(monitor: SharedMonitor) { monitor.exit() }
    p4_mdelay(monitor: SharedMonitor, queue: c_int) { monitor.delay("p4_mdelay", queue as usize) }
    p4_mcontinue(monitor: SharedMonitor, queue: c_int) { monitor.resume(queue as usize) }
    // A barrier is a monitor.
    p4_barrier_init(barrier: SharedMonitor) -> c_int { begun("p4_barrier_init", barrier.begin(1)) }
    p4_barrier(barrier: SharedMonitor, processes: c_int) { barrier.meet("p4_barrier", processes) }
    p4_getsub_init(subscripts: Subscripts) -> c_int { begun("p4_getsub_init", subscripts.begin()) }
    p4_askfor_init(pool: ProblemPool) -> c_int { begun("p4_askfor_init", pool.begin()) }
    p4_probend(pool: ProblemPool, code: c_int) { pool.end_problems("p4_probend", code) }
    p4_progend(pool: ProblemPool) { pool.end_program("p4_progend") }
}

/// # Safety
/// `subscripts` was initialised; `next` is a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_getsubs(
    subscripts: *mut Subscripts,
    next: *mut c_int,
    last: c_int,
    processes: c_int,
    stride: c_int,
) {
    // SAFETY: the caller's promise.
    unsafe { *next = at("p4_getsubs", subscripts).take("p4_getsubs", last, processes, stride) };
}

/// # Safety
/// `pool` was initialised; the functions may be called with `problem`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_askfor(
    pool: *mut ProblemPool,
    processes: c_int,
    take: Option<TakeProblem>,
    problem: *mut c_void,
    reset: Option<ResetProblems>,
) -> c_int {
    let take = take.unwrap_or_else(|| fail("p4_askfor: there is no function that gets a problem", -1));
    // SAFETY: the caller's promise.
    unsafe { at("p4_askfor", pool).ask("p4_askfor", processes, take, problem, reset) }
}

/// # Safety
/// `pool` was initialised; the function may be called with `problem`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn p4_update(pool: *mut ProblemPool, put: Option<TakeProblem>, problem: *mut c_void) {
    let put = put.unwrap_or_else(|| fail("p4_update: there is no function that puts a problem", -1));
    // SAFETY: the caller's promise.
    unsafe { at("p4_update", pool).put("p4_update", put, problem) };
}
