//! Signals to processes that a test has started. The one file here with unsafe code.

/// Sends `signal` to the process `pid`.
///
/// # Panics
/// When there is no such process, or the number means anything but one process.
pub fn send(pid: i32, signal: i32) {
    assert!(try_send(pid, signal), "signal {signal} to {pid}: {}", std::io::Error::last_os_error());
}

/// The same for one that may have ended; whether it was there.
///
/// # Panics
/// When the number means anything but one process.
pub fn try_send(pid: i32, signal: i32) -> bool {
    assert!(pid > 1, "a process of ours");
    // SAFETY: no memory is passed.
    unsafe { libc::kill(pid, signal) == 0 }
}
