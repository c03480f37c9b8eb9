//! A thread that delivers what could not leave at once, while the program does something else than calling PVM: a first
//! message, before the two tasks have met, one for a task that is still starting, a long one for a task that computes.
//!
//! It is started when that first happens, looks every [`STEP`] while something is left, and lies down when nothing has
//! been for [`PATIENCE`] looks. A send that leaves at once, which is nearly every one, knows nothing of it.
//!
//! Invariant: who calls it after it has looked for the last time wakes it. (`IN_USE` and `ASKED` are written and read
//! in one order by both sides.)

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

const STEP: Duration = Duration::from_millis(1);
/// While the program is in a call.
const STEP_BESIDE: Duration = Duration::from_millis(10);
/// Looks that find nothing before it lies down.
const PATIENCE: u32 = 50;

/// What one look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CourierLook {
    /// Something waits still.
    Left,
    Nothing,
    /// The program is in a call, which delivers by itself.
    Busy,
}

/// Whether there may be something to deliver.
static ASKED: AtomicBool = AtomicBool::new(false);
/// The thread looks, and need not be woken.
static IN_USE: AtomicBool = AtomicBool::new(false);
static STARTED: Mutex<bool> = Mutex::new(false);
static BELL: Condvar = Condvar::new();

/// What is called when it looks.
static LOOK: OnceLock<fn() -> CourierLook> = OnceLock::new();

/// Says how it looks. Before that it does nothing.
pub fn begin(look: fn() -> CourierLook) {
    LOOK.get_or_init(|| look);
}

/// Something is left that could not leave: it looks now and then until nothing is.
pub fn call() {
    ASKED.store(true, SeqCst);
    if !IN_USE.load(SeqCst)
        && let Some(look) = LOOK.get()
    {
        wake(*look);
    }
}

#[cold]
fn wake(look: fn() -> CourierLook) {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    IN_USE.store(true, SeqCst);
    if !*started {
        // Where the system gives no thread, the program delivers when it calls next.
        *started =
            without_signals(|| std::thread::Builder::new().name("weft-pvm".into()).spawn(move || run(look))).is_ok();
    }
    BELL.notify_one();
}

fn run(look: fn() -> CourierLook) {
    let (mut left, mut idle) = (true, 0);
    loop {
        let asked = ASKED.swap(false, SeqCst);
        let mut step = STEP;
        left = match look() {
            CourierLook::Left => true,
            CourierLook::Nothing => false,
            CourierLook::Busy => {
                step = STEP_BESIDE;
                left || asked
            }
        };
        idle = if left { 0 } else { idle + 1 };
        if idle >= PATIENCE {
            idle = 0;
            lie_down();
        }
        std::thread::sleep(step);
    }
}

fn lie_down() {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    IN_USE.store(false, SeqCst);
    while !ASKED.load(SeqCst) {
        started = BELL.wait(started).unwrap_or_else(PoisonError::into_inner);
    }
    IN_USE.store(true, SeqCst);
}

/// Signals are for the program's own threads.
fn without_signals<R>(what: impl FnOnce() -> R) -> R {
    // SAFETY: sets of signals that live here; this thread's own mask comes back.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let answer = what();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        answer
    }
}
