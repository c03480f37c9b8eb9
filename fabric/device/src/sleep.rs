//! Sleeping until one of several places says that something is to be done: doorbells, or sets of sockets.

use crate::sys;
use std::os::fd::RawFd;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

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

/// Sleeps while every word holds what is expected of it, at most for `limit`; of more than [`MOST`] words the first ones
/// count. Wakes spuriously at times. False if the kernel does not know how.
pub fn on_words(words: &[(&AtomicU32, u32)], limit: Option<Duration>) -> bool {
    let mut waiters = [WordWaiter::default(); MOST];
    for (waiter, (word, expected)) in waiters.iter_mut().zip(words) {
        let at = word.as_ptr() as u64;
        *waiter = WordWaiter { expected: u64::from(*expected), at, flags: WORD_OF_32_BITS, reserved: 0 };
    }
    // The end, not the span.
    let end = limit.map(|limit| sys::now_ns().saturating_add(limit.as_nanos() as u64));
    let end = end.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    });
    let at = end.as_ref().map_or(std::ptr::null(), |end| end as *const libc::timespec);
    let (count, none) = (words.len().min(MOST) as libc::c_ulong, 0 as libc::c_ulong);
    let clock = libc::CLOCK_MONOTONIC as libc::c_ulong;
    // SAFETY: waiters and time stand on our stack, and the words live across the call; the kernel only reads them.
    let woken = unsafe { libc::syscall(libc::SYS_futex_waitv, waiters.as_ptr(), count, none, at, clock) };
    let refused = || std::io::Error::last_os_error().raw_os_error();
    woken >= 0 || !matches!(refused(), Some(libc::ENOSYS | libc::EPERM | libc::EINVAL))
}

/// Sleeps until something can be read from one of the descriptors, at most for `limit`; of more than [`MOST`] the first ones
/// count.
pub fn on_descriptors(descriptors: &[RawFd], limit: Option<Duration>) {
    let mut polled = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; MOST];
    polled.iter_mut().zip(descriptors).for_each(|(polled, descriptor)| polled.fd = *descriptor);
    // Rounded up: a sleep that ends before its time would be followed by another one at once.
    let limit_ms = limit.map_or(-1, |limit| i32::try_from(limit.as_micros().div_ceil(1000)).unwrap_or(i32::MAX));
    // SAFETY: so many valid entries.
    unsafe { libc::poll(polled.as_mut_ptr(), descriptors.len().min(MOST) as libc::nfds_t, limit_ms) };
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
