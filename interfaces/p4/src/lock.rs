//! A lock in memory that processes share. Another process than the one that has locked it may unlock it, which is what
//! the queues of monitors are made of.
//!
//! ORDER: p4-lock. Who unlocks releases, who locks acquires.

use crate::place::{self, MESSENGER};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use weft_ports::Call;

const OPEN: u32 = 0;
const LOCKED: u32 = 1;
/// Somebody may sleep.
const AWAITED: u32 = 2;

/// Looks at a lock that is taken before this process sleeps.
const LOOKS: u32 = 200;

/// How long a process sleeps before it moves messages on that have not left.
const LOOK: Duration = Duration::from_micros(200);

/// As `p4_lock_t` of `p4.h`.
#[repr(C)]
#[derive(Default)]
pub struct SharedLock {
    word: AtomicU32,
    _spare: u32,
}

impl SharedLock {
    pub fn open(&self) {
        self.word.store(OPEN, Ordering::Relaxed);
    }

    pub fn close(&self) {
        self.word.store(LOCKED, Ordering::Relaxed);
    }

    fn try_lock(&self) -> bool {
        // ORDER: p4-lock
        self.word.compare_exchange(OPEN, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// `call`: what `weft ps` shows that this process is in.
    #[inline]
    pub fn lock(&self, call: Call) {
        if !self.try_lock() {
            self.wait(call);
        }
    }

    #[cold]
    fn wait(&self, call: Call) {
        for _ in 0..LOOKS {
            if self.try_lock() {
                return;
            }
            std::hint::spin_loop();
        }
        if place::takes_part() {
            MESSENGER.say_blocked(call, || self.sleep_for_it());
        } else {
            self.sleep_for_it();
        }
    }

    fn sleep_for_it(&self) {
        // ORDER: p4-lock
        while self.word.swap(AWAITED, Ordering::Acquire) != OPEN {
            let limit = if place::takes_part() && MESSENGER.is_leaving() {
                MESSENGER.poll();
                Some(LOOK)
            } else {
                None
            };
            sleep(&self.word, AWAITED, limit);
        }
    }

    #[inline]
    pub fn unlock(&self) {
        // ORDER: p4-lock
        if self.word.swap(OPEN, Ordering::Release) == AWAITED {
            wake_one(&self.word);
        }
    }
}

fn sleep(word: &AtomicU32, expected: u32, limit: Option<Duration>) {
    let limit = limit.map(|limit| libc::timespec { tv_sec: 0, tv_nsec: limit.subsec_nanos().into() });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: a word of memory that lives, in memory that other processes map, too; the kernel writes nothing.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, limit) };
}

fn wake_one(word: &AtomicU32) {
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn one_thread_at_a_time_is_inside() {
        let (lock, count) = (SharedLock::default(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        lock.lock("");
                        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                        lock.unlock();
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 80_000);
    }

    #[test]
    fn another_thread_may_unlock() {
        let lock = SharedLock::default();
        lock.close();
        std::thread::scope(|scope| {
            scope.spawn(|| lock.lock(""));
            std::thread::sleep(Duration::from_millis(20));
            lock.unlock();
        });
    }
}
