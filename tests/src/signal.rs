//! Signals to processes that a test has started. The one file here with unsafe code.

/// Sends `signal` to the process `pid`.
///
/// # Panics
/// When there is no such process, or the number means anything but one process.
pub fn send(pid: i32, signal: i32) {
    assert!(pid > 1, "a process of ours");
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "signal {signal} to {pid}: {}", std::io::Error::last_os_error());
}
