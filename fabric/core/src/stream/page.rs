//! The page that this process shares with the rendezvous: counted mail, and counters for people.
//!
//! It is a static of ours until the first offer; then shared memory with the same content lies in its place, so that
//! its address never changes and looking for mail is one load.

use super::answers::{REASONS, Reason};
use std::ffi::CStr;
use std::io;
use std::mem::offset_of;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use weft_device::kernel;
use weft_wire::stream::page;

/// Counters of this process. The first ones and `bells` are counted here, the others by the caller, who knows.
#[derive(Debug)]
#[repr(C)]
pub struct Counters {
    /// Streams attached. Counted here.
    pub accelerated: AtomicU64,
    pub bytes_ring_in: AtomicU64,
    pub bytes_ring_out: AtomicU64,
    pub bytes_kernel_in: AtomicU64,
    pub bytes_kernel_out: AtomicU64,
    /// Bells rung. Counted here.
    pub bells: AtomicU64,
    /// Sleeps in the kernel.
    pub sleeps: AtomicU64,
    /// Datagrams taken out of rings, and put into them.
    pub datagrams_ring_in: AtomicU64,
    pub datagrams_ring_out: AtomicU64,
    /// By [`Reason`].
    pub fallen_back: [AtomicU64; REASONS],
}
/// How many numbers they are.
const NUMBERS: usize = page::COUNTER_NAMES.len() + page::REASON_NAMES.len();
const _: () = assert!(size_of::<Counters>() == (page::COUNTER_NAMES.len() + page::REASON_NAMES.len()) * 8);

impl Counters {
    const fn new() -> Self {
        Self {
            accelerated: AtomicU64::new(0),
            bytes_ring_in: AtomicU64::new(0),
            bytes_ring_out: AtomicU64::new(0),
            bytes_kernel_in: AtomicU64::new(0),
            bytes_kernel_out: AtomicU64::new(0),
            bells: AtomicU64::new(0),
            sleeps: AtomicU64::new(0),
            datagrams_ring_in: AtomicU64::new(0),
            datagrams_ring_out: AtomicU64::new(0),
            fallen_back: [const { AtomicU64::new(0) }; REASONS],
        }
    }

    pub fn fell_back(&self, reason: Reason) {
        self.fallen_back[reason as usize].fetch_add(1, Ordering::Relaxed);
    }
}

#[repr(C, align(4096))]
pub(super) struct Page {
    magic: AtomicU64,
    version: AtomicU32,
    _gap: [u32; 13],
    pub mails: AtomicU32,
    pub host_only: AtomicU32,
    _line: [u32; 14],
    pub counters: Counters,
    _rest: [u64; 512 - 16 - NUMBERS],
}
const _: () = assert!(size_of::<Page>() == page::BYTES && offset_of!(Page, mails) == page::MAILS_AT);
const _: () = assert!(offset_of!(Page, host_only) == page::HOST_ONLY_AT);
const _: () = assert!(offset_of!(Page, counters) == page::COUNTERS_AT && offset_of!(Page, version) == page::VERSION_AT);

/// Atomics only, and never borrowed but as atomics: that other memory comes in its place is like other threads' stores.
pub(super) static PAGE: Page = Page {
    magic: AtomicU64::new(page::MAGIC),
    version: AtomicU32::new(page::VERSION),
    _gap: [0; 13],
    mails: AtomicU32::new(0),
    host_only: AtomicU32::new(0),
    _line: [0; 14],
    counters: Counters::new(),
    _rest: [0; 512 - 16 - NUMBERS],
};

const NAME: &CStr = c"weft-page";

/// Puts shared memory with the content of the page in its place, without mail, and answers its descriptor.
pub(super) fn share() -> io::Result<RawFd> {
    let memory = kernel::sealable_memory(NAME, page::BYTES)?;
    let put = replace(Some(memory));
    if let Err(error) = put {
        kernel::close(memory);
        return Err(error);
    }
    Ok(memory)
}

/// In the child of a fork: a page of its own, with nothing counted. What the rendezvous has, it has for the child as well.
pub(super) fn forget() {
    let host_only = PAGE.host_only.load(Ordering::Relaxed);
    if replace(None).is_ok() {
        for counter in counters() {
            counter.store(0, Ordering::Relaxed);
        }
        PAGE.host_only.store(host_only, Ordering::Relaxed);
    }
}

fn counters() -> [&'static AtomicU64; NUMBERS] {
    let c = &PAGE.counters;
    std::array::from_fn(|at| match at {
        0 => &c.accelerated,
        1 => &c.bytes_ring_in,
        2 => &c.bytes_ring_out,
        3 => &c.bytes_kernel_in,
        4 => &c.bytes_kernel_out,
        5 => &c.bells,
        6 => &c.sleeps,
        7 => &c.datagrams_ring_in,
        8 => &c.datagrams_ring_out,
        reason => &c.fallen_back[reason - page::COUNTER_NAMES.len()],
    })
}

/// Counts of other threads that fall between copy and replacement are lost.
fn replace(memory: Option<RawFd>) -> io::Result<()> {
    let before = counters().map(|counter| counter.load(Ordering::Relaxed));
    let at = (&raw const PAGE).cast_mut().cast::<u8>();
    // SAFETY: the page is page-aligned, exactly a page, and ours; what stands there is atomics for which zero is a
    // value, and the content is put back below. The static is written by atomics, so it is not in read-only memory.
    unsafe { kernel::map_over(at, memory, page::BYTES) }?;
    for (counter, value) in counters().into_iter().zip(before) {
        counter.store(value, Ordering::Relaxed);
    }
    PAGE.version.store(page::VERSION, Ordering::Relaxed);
    PAGE.magic.store(page::MAGIC, Ordering::Release);
    Ok(())
}
