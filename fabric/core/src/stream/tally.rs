//! What this process counts for the command that it belongs to, in memory that outlives it
//! ([`weft_wire::stream::tally`]).
//!
//! Mapped once, when the library is loaded, and never unmapped; children of a fork go on in it.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use weft_device::kernel;
use weft_wire::stream::page::COUNTER_NAMES;
use weft_wire::stream::tally::{self, KernelOnly};

static MEMORY: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static STRIPE: AtomicU32 = AtomicU32::new(0);
/// Whether this process is among those that have counted.
static IS_COUNTED: AtomicBool = AtomicBool::new(false);

#[inline]
pub(super) fn has_one() -> bool {
    !MEMORY.load(Ordering::Relaxed).is_null()
}

/// Maps the memory, if it is such a one.
pub(super) fn join(memory: RawFd) -> io::Result<()> {
    if !kernel::is_sealed(memory, tally::BYTES) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let at = kernel::map_shared(Some(memory), tally::BYTES)?;
    MEMORY.store(at, Ordering::Release);
    if word(tally::MAGIC_AT).load(Ordering::Relaxed) != tally::MAGIC {
        MEMORY.store(std::ptr::null_mut(), Ordering::Release);
        // SAFETY: mapped above, and nobody else has seen it: this runs before the program does.
        unsafe { kernel::unmap(at, tally::BYTES) };
        return Err(io::ErrorKind::InvalidData.into());
    }
    take_stripe();
    Ok(())
}

/// Which of them it is hardly matters: several processes may add to one.
fn take_stripe() {
    // SAFETY: as in `word`; aligned for 32 bits.
    let given = unsafe { &*MEMORY.load(Ordering::Relaxed).add(tally::GIVEN_AT).cast::<AtomicU32>() };
    STRIPE.store(given.fetch_add(1, Ordering::Relaxed) % tally::STRIPES as u32, Ordering::Relaxed);
}

/// In the child of a fork: another process.
pub(super) fn forked() {
    if has_one() {
        IS_COUNTED.store(false, Ordering::Relaxed);
        take_stripe();
    }
}

/// The word at this place. To be called where there is memory.
fn word(at: usize) -> &'static AtomicU64 {
    debug_assert!(at.is_multiple_of(8) && at < tally::BYTES);
    // SAFETY: the memory is as long as that, aligned to pages, never unmapped once others see it, and read and written
    // as atomics only; callers pass places of words.
    unsafe { &*MEMORY.load(Ordering::Acquire).add(at).cast::<AtomicU64>() }
}

/// What tells of sockets, and not of waiting alone.
fn is_of_sockets(number: usize) -> bool {
    !matches!(COUNTER_NAMES.get(number), Some(&"bells" | &"sleeps"))
}

/// Counts where there is memory, by number of the page's counters.
pub(super) fn add(number: usize, more: u64) {
    let stripe = tally::STRIPES_AT + STRIPE.load(Ordering::Relaxed) as usize * tally::STRIPE_BYTES;
    word(stripe + number * 8).fetch_add(more, Ordering::Relaxed);
    if !IS_COUNTED.load(Ordering::Relaxed) && is_of_sockets(number) && !IS_COUNTED.swap(true, Ordering::Relaxed) {
        word(tally::PROCESSES_AT).fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts one more connection that is with the kernel for this; where all places are taken it has no name.
pub(super) fn add_option(option: KernelOnly) {
    if !has_one() {
        return;
    }
    let key = option.key();
    for at in (0..tally::OPTIONS).map(tally::option_at) {
        match word(at).compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {}
            Err(taken) if taken == key => {}
            Err(_) => continue,
        }
        word(at + 8).fetch_add(1, Ordering::Relaxed);
        return;
    }
}
