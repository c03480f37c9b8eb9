//! The end of a process that is one of a job's.

use crate::life::leave;
use crate::meeting::OnExit;
use crate::world::WORLD;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The function that ends a process in the end; programs may set another.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static AMUDP_SPMDkillmyprocess: AtomicPtr<c_void> = AtomicPtr::new(libc::_exit as *mut c_void);

/// Ends this process by the program's function.
fn kill_this_process(code: c_int) -> ! {
    let kill = AMUDP_SPMDkillmyprocess.load(Ordering::Relaxed);
    if !kill.is_null() {
        // SAFETY: the variable has the type of such a function in C, and is ours or the program's.
        let kill = unsafe { std::mem::transmute::<*mut c_void, OnExit>(kill) };
        // SAFETY: as above.
        unsafe { kill(code) };
    }
    std::process::exit(code)
}

/// Ends this process, as one of all that end.
pub fn end(code: i32) -> ! {
    static ENDS: AtomicBool = AtomicBool::new(false);
    if !ENDS.swap(true, Ordering::SeqCst) && WORLD.is_open() {
        let on_exit = WORLD.enter().spmd.on_exit;
        if let Some(on_exit) = on_exit {
            // SAFETY: the program has given a function of this type (`AMUDP_SPMDSetExitCallback`).
            unsafe { on_exit(code) };
        }
        // SAFETY: null says all streams.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        leave();
    }
    kill_this_process(code)
}
