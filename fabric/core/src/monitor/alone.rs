//! Whether the process has one thread. The C library knows: whoever makes a second one calls it.
//!
//! A lock that several threads may take is not needed then, and two of its operations cost as much as the way of a
//! short message. Nobody makes a thread while it is inside a monitor, so a thread that entered without the lock has
//! left before there is another one, and that sees all it has done.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// What the C library says: not 0 while there is one thread. Null where it is not known, which an old one does not
/// tell.
static SAID: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// Looks where the C library says it.
pub(super) fn look() {
    // SAFETY: the name is a string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
    SAID.store(found.cast(), Ordering::Relaxed);
}

/// True if the process has no other thread.
#[inline]
pub(super) fn is_alone() -> bool {
    let said = SAID.load(Ordering::Relaxed);
    // SAFETY: it is null, or a byte of the C library, which lives as long as the process and is changed by one thread
    // alone.
    !said.is_null() && unsafe { AtomicU8::from_ptr(said) }.load(Ordering::Relaxed) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_two_threads_is_not_alone() {
        look();
        std::thread::spawn(|| assert!(!is_alone())).join().expect("no panic");
    }
}
