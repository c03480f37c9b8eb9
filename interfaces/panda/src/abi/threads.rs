//! `pan_thread_*`, `pan_mutex_*`, `pan_cond_*` and `pan_key_*`: threads of the C library.
//!
//! Priorities are remembered, and have no effect.

use super::{count, give, object, take};
use crate::failure::fail;
use crate::shared::condition::{PandaCondition, PandaMutex};
use crate::shared::time::PandaTime;
use crate::upcalls::catch_up;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_long, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

/// The C library's threads have an answer; that of one that has none is never looked at.
type ThreadFunction = extern "C" fn(*mut c_void) -> *mut c_void;

pub struct PandaThread {
    thread: libc::pthread_t,
    priority: AtomicI32,
}

/// Threads of the program, by what the C library calls them. No frame of ours is below their functions, since
/// `pan_thread_exit`, which stands in the header, unwinds them.
static THREADS: Mutex<BTreeMap<libc::pthread_t, usize>> = Mutex::new(BTreeMap::new());

const MOST_PRIORITY: c_int = 100;
/// Least stack of a thread, since programs ask for what was enough once, and upcalls run in any thread.
const LEAST_STACK: usize = 1 << 18;

thread_local! {
    static SELF: Cell<*mut PandaThread> = const { Cell::new(null_mut()) };
}

fn threads() -> MutexGuard<'static, BTreeMap<libc::pthread_t, usize>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_thread_create(
    function: ThreadFunction,
    argument: *mut c_void,
    stack: c_long,
    priority: c_int,
    detach: c_int,
) -> *mut PandaThread {
    let made = give(PandaThread { thread: 0, priority: priority_of(priority) });
    let mut attributes = MaybeUninit::uninit();
    // A thread that asks who it is waits until it stands there.
    let mut threads = threads();
    // SAFETY: the attributes are initialised before they are used.
    let failed = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        if stack > 0 {
            let stack = (stack as usize).max(LEAST_STACK).next_multiple_of(4096);
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack);
        }
        let state = if detach != 0 { libc::PTHREAD_CREATE_DETACHED } else { libc::PTHREAD_CREATE_JOINABLE };
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), state);
        let failed = libc::pthread_create(&raw mut (*made).thread, attributes.as_ptr(), function, argument);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        failed
    };
    if failed != 0 {
        let why = std::io::Error::from_raw_os_error(failed);
        fail(&format!("pan_thread_create: the system gives no thread: {why}"));
    }
    // SAFETY: it is ours until we return.
    threads.insert(unsafe { (*made).thread }, made.expose_provenance());
    made
}

/// # Safety
/// It is a thread that has ended, and the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_thread_clear(thread: *mut PandaThread) {
    threads().retain(|_, object| *object != thread.addr());
    // SAFETY: the caller's promise.
    drop(unsafe { take(thread) });
}

/// # Safety
/// It is a thread that was not detached, and the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_thread_join(thread: *mut PandaThread) {
    catch_up();
    // SAFETY: the caller's promise.
    unsafe { libc::pthread_join(object("pan_thread_join", thread).thread, null_mut()) };
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_thread_yield() {
    catch_up();
    std::thread::yield_now();
}

/// One that the library has not made gets its object at the first call.
#[unsafe(no_mangle)]
pub extern "C" fn pan_thread_self() -> *mut PandaThread {
    if SELF.get().is_null() {
        // SAFETY: it may be asked at any time.
        let thread = unsafe { libc::pthread_self() };
        let known = threads().get(&thread).copied();
        SELF.set(known.map_or_else(
            || give(PandaThread { thread, priority: priority_of(0) }),
            std::ptr::with_exposed_provenance_mut,
        ));
    }
    SELF.get()
}

fn priority_of(asked: c_int) -> AtomicI32 {
    AtomicI32::new(asked.clamp(0, MOST_PRIORITY))
}

/// The priority of the thread that calls.
fn own_priority() -> &'static AtomicI32 {
    // SAFETY: it stays as long as its thread, which is the one that looks.
    unsafe { &(*pan_thread_self()).priority }
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_thread_getprio() -> c_int {
    own_priority().load(Ordering::Relaxed)
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_thread_setprio(priority: c_int) -> c_int {
    own_priority().swap(priority.clamp(0, MOST_PRIORITY), Ordering::Relaxed)
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_thread_minprio() -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_thread_maxprio() -> c_int {
    MOST_PRIORITY
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_mutex_create() -> *mut PandaMutex {
    give(PandaMutex::new())
}

/// A lock or condition, which threads share.
///
/// # Safety
/// It is null, or such an object of the program's.
#[inline]
unsafe fn shared<'a, T>(call: &str, pointer: *const T) -> &'a T {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.unwrap_or_else(|| fail(&format!("{call}: a null pointer")))
}

on_object! { shared:
    pan_mutex_lock(mutex: *const PandaMutex) { mutex.lock() }
    pan_mutex_trylock(mutex: *const PandaMutex) -> c_int { mutex.try_lock().into() }
    pan_mutex_unlock(mutex: *const PandaMutex) { mutex.unlock() }
    pan_cond_wait(condition: *const PandaCondition) { condition.wait("pan_cond_wait") }
    pan_cond_signal(condition: *const PandaCondition) { condition.signal() }
    pan_cond_broadcast(condition: *const PandaCondition) { condition.broadcast() }
}

clears! {
    pan_mutex_clear: PandaMutex;
    pan_cond_clear: PandaCondition;
}

/// # Safety
/// It is a lock, and is not cleared before the condition.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_cond_create(mutex: *const PandaMutex) -> *mut PandaCondition {
    // SAFETY: the caller's promise.
    unsafe { shared("pan_cond_create", mutex) };
    // SAFETY: as above.
    give(unsafe { PandaCondition::new(mutex) })
}

/// # Safety
/// It is a condition, and a time; both are the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_cond_timedwait(condition: *const PandaCondition, until: *mut PandaTime) -> c_int {
    // SAFETY: the caller's promise.
    let until = *unsafe { object("pan_cond_timedwait", until) };
    let since = Duration::from_nanos(until.nanoseconds().clamp(0, u64::MAX.into()) as u64);
    // SAFETY: as above.
    unsafe { shared("pan_cond_timedwait", condition) }.wait_until(UNIX_EPOCH + since).into()
}

/// A key is held as a pointer to nothing: its number and one.
#[unsafe(no_mangle)]
pub extern "C" fn pan_key_create() -> *mut c_void {
    let mut key = 0;
    // SAFETY: the key has its place.
    if unsafe { libc::pthread_key_create(&raw mut key, None) } != 0 {
        fail("pan_key_create: the system gives no key");
    }
    std::ptr::without_provenance_mut(key as usize + 1)
}

fn key(call: &str, pointer: *mut c_void) -> libc::pthread_key_t {
    let number = pointer.addr().checked_sub(1).unwrap_or_else(|| fail(&format!("{call}: no key")));
    count(call, number as i32) as libc::pthread_key_t
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_key_clear(pointer: *mut c_void) {
    // SAFETY: a key that is none is refused.
    unsafe { libc::pthread_key_delete(key("pan_key_clear", pointer)) };
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_key_setspecific(pointer: *mut c_void, value: *mut c_void) {
    // SAFETY: as above.
    if unsafe { libc::pthread_setspecific(key("pan_key_setspecific", pointer), value) } != 0 {
        fail("pan_key_setspecific: no such key");
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_key_getspecific(pointer: *mut c_void) -> *mut c_void {
    // SAFETY: as above.
    unsafe { libc::pthread_getspecific(key("pan_key_getspecific", pointer)) }
}
