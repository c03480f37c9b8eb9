//! Processes and threads, the processors that they may run on, and random numbers.

use crate::call::call;
use crate::descriptors::{Descriptor, await_events};
use crate::{now, system_call};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

pub fn thread() -> u32 {
    // SAFETY: asks a number.
    unsafe { call(libc::SYS_gettid, [0; 6]) as u32 }
}

pub fn process() -> u32 {
    // SAFETY: asks a number.
    unsafe { call(libc::SYS_getpid, [0; 6]) as u32 }
}

/// Whether a process with this number has not ended. False also where that cannot be seen.
pub fn is_running(process: i32) -> bool {
    // SAFETY: numbers only.
    let Ok(file) = (unsafe { system_call!(libc::SYS_pidfd_open, process) }) else { return false };
    // Readable means: it has ended, be it waited for or not.
    let file = Descriptor::own(file as RawFd);
    matches!(await_events(file.as_raw_fd(), libc::POLLIN, Some(Duration::ZERO)), Ok(0))
}

pub fn user() -> u32 {
    // SAFETY: asks a number.
    unsafe { call(libc::SYS_geteuid, [0; 6]) as u32 }
}

/// Whether a thread (or process) of this number exists.
pub fn exists(thread: u32) -> bool {
    // SAFETY: signal 0 asks only.
    let asked = unsafe { system_call!(libc::SYS_kill, thread, 0) };
    asked.map_or_else(|error| error.raw_os_error() != Some(libc::ESRCH), |_| true)
}

/// Whether a thread of this number runs, or may still run: one that has ended and is not collected yet does not.
pub fn is_alive(thread: u32) -> bool {
    if !exists(thread) {
        return false;
    }
    let mut path = [0u8; 32];
    let mut stat = [0u8; 256];
    // /proc/ number /stat and a zero byte.
    let mut digits = [0u8; 10];
    let (mut rest, mut count) = (thread, 0);
    while rest > 0 {
        digits[count] = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
    }
    digits[..count].reverse();
    for (to, from) in path.iter_mut().zip(b"/proc/".iter().chain(&digits[..count]).chain(b"/stat")) {
        *to = *from;
    }
    // SAFETY: a C string, and a place of the length said.
    let got = unsafe {
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
        let Ok(file) = system_call!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) else {
            return true;
        };
        let file = Descriptor::own(file as RawFd);
        system_call!(libc::SYS_read, file.as_raw_fd(), stat.as_mut_ptr(), stat.len()).unwrap_or(0)
    };
    // The state is the letter behind the name, which stands in brackets and may hold any.
    let state = stat[..got].iter().rposition(|byte| *byte == b')').and_then(|at| stat.get(at + 2));
    !matches!(state, Some(b'Z' | b'X'))
}

/// A number that nobody can guess; `None` where the system gives none.
pub fn true_random() -> Option<u64> {
    let mut number = 0u64;
    // SAFETY: a valid place of eight bytes.
    let got = unsafe { system_call!(libc::SYS_getrandom, &raw mut number, 8, 0) };
    (got.ok()? == 8).then_some(number)
}

/// The same, and without a source the clock and our number. Worse than random, and unique enough to try; nothing that
/// is encrypted may depend on it.
pub fn random() -> u64 {
    true_random().unwrap_or_else(|| now() ^ ((process() as u64) << 40))
}

/// Words of 64 processors; enough for the largest machines that the kernel can be built for.
const MASK_WORDS: usize = 8192 / 64;

/// The processors that the calling thread may run on, in rising order.
///
/// # Errors
/// A sandbox forbids to ask.
pub fn affinity() -> io::Result<Vec<usize>> {
    let mut mask = [0u64; MASK_WORDS];
    // SAFETY: size and pointer describe the array.
    unsafe { system_call!(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr()) }?;
    Ok((0..MASK_WORDS * 64).filter(|cpu| mask[cpu / 64] & (1 << (cpu % 64)) != 0).collect())
}

/// Lets it run on these processors only; children inherit it.
///
/// # Errors
/// There is none of them.
pub fn set_affinity(cpus: &[usize]) -> io::Result<()> {
    let mut mask = [0u64; MASK_WORDS];
    cpus.iter().filter(|cpu| **cpu < MASK_WORDS * 64).for_each(|cpu| mask[cpu / 64] |= 1 << (cpu % 64));
    // SAFETY: size and pointer describe the array.
    unsafe { system_call!(libc::SYS_sched_setaffinity, 0, size_of_val(&mask), mask.as_ptr()) }.map(drop)
}
