//! Sleeping until one of several places says that something is to be done: doorbells, or sets of sockets.

use crate::{kernel, sys};
use std::os::fd::RawFd;
use std::sync::atomic::AtomicU32;
use std::time::Duration;
use weft_kernel::system_call;

/// Most places to sleep on at once.
pub const MOST: usize = 16;

/// `futex_waitv` is told that a word has 32 bits, and may be another process's too.
const WORD_OF_32_BITS: u32 = 2;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct WordWaiter {
    expected: u64,
    at: u64,
    flags: u32,
    reserved: u32,
}

/// Sleeps while every word holds what is expected of it, at most for `limit`; of more than [`MOST`] words the first
/// ones count. Wakes spuriously at times. False if the kernel does not know how.
pub fn on_words(words: &[(&AtomicU32, u32)], limit: Option<Duration>) -> bool {
    let mut waiters = [WordWaiter::default(); MOST];
    for (waiter, (word, expected)) in waiters.iter_mut().zip(words) {
        let at = word.as_ptr() as u64;
        *waiter = WordWaiter { expected: u64::from(*expected), at, flags: WORD_OF_32_BITS, reserved: 0 };
    }
    // The end, not the span.
    let end = limit.map(|limit| kernel::timespec_of(Duration::from_nanos(sys::now_ns()).saturating_add(limit)));
    let at = end.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = words.len().min(MOST);
    // SAFETY: waiters and time stand on our stack, and the words live across the call; the kernel only reads them.
    let woken = unsafe { system_call!(libc::SYS_futex_waitv, waiters.as_ptr(), count, 0, at, libc::CLOCK_MONOTONIC) };
    let refused = |error: std::io::Error| error.raw_os_error();
    !matches!(woken.map_err(refused), Err(Some(libc::ENOSYS | libc::EPERM | libc::EINVAL)))
}

/// Sleeps until something can be read from one of the descriptors, at most for `limit`; of more than [`MOST`] the first
/// ones count.
pub fn on_descriptors(descriptors: &[RawFd], limit: Option<Duration>) {
    let mut polled = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; MOST];
    polled.iter_mut().zip(descriptors).for_each(|(polled, descriptor)| polled.fd = *descriptor);
    let limit = limit.map(kernel::timespec_of);
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = descriptors.len().min(MOST);
    // SAFETY: so many valid entries, which live across the call as the time does; no signal mask is given. Ended early,
    // its callers look anew.
    let _ = unsafe { system_call!(libc::SYS_ppoll, polled.as_mut_ptr(), count, limit, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_word_that_changes_ends_the_sleep_whichever_it_is() {
        for changed in 0..3 {
            let words: Arc<[AtomicU32; 3]> = Arc::default();
            let changing = words.clone();
            let waker = std::thread::spawn(move || {
                changing[changed].store(1, Ordering::SeqCst);
                crate::kernel::futex_wake(&changing[changed], i32::MAX);
            });
            while words[changed].load(Ordering::SeqCst) == 0 {
                let all: Vec<_> = words.iter().map(|word| (word, 0)).collect();
                if !on_words(&all, None) {
                    crate::kernel::futex_wait(&words[changed], 0, None);
                }
            }
            waker.join().expect("no panic");
        }
    }

    #[test]
    fn a_sleep_on_words_has_an_end() {
        let word = AtomicU32::new(0);
        on_words(&[(&word, 0)], Some(Duration::from_millis(1)));
        on_words(&[(&word, 1)], None);
    }

    #[test]
    fn a_descriptor_that_can_be_read_ends_the_sleep() {
        let (silent, _kept) = std::io::pipe().expect("a pipe");
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        writer.write_all(b"x").expect("room");
        on_descriptors(&[silent.as_raw_fd(), reader.as_raw_fd()], None);
        on_descriptors(&[silent.as_raw_fd()], Some(Duration::from_millis(1)));
    }
}
