//! The page that this process shares with the rendezvous: counted mail, and counters for people.
//!
//! It is a static of ours until the first offer; then shared memory with the same content lies in its place, so that
//! its address never changes and looking for mail is one load.

use super::answers::{KernelReason, REASONS, Reason};
use super::tally;
use std::ffi::CStr;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use weft_device::kernel::{self, Descriptor};
use weft_wire::stream::page;

/// A counter of this process, and of the command that it belongs to (see [`super::tally`]).
#[derive(Debug)]
#[repr(transparent)]
pub struct Count(AtomicU64);

impl Count {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds; what it was before.
    #[inline]
    pub fn fetch_add(&self, more: u64, order: Ordering) -> u64 {
        if tally::has_one() {
            tally::add(self.index(), more);
        }
        self.0.fetch_add(more, order)
    }

    pub fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    /// Which one of the page's counters it is.
    fn index(&self) -> usize {
        let first = &raw const PAGE.counters;
        ((&raw const self.0).addr() - first.addr()) / size_of::<Self>()
    }
}

/// Counters of this process. The first ones and `bells` are counted here, the others by the caller, who knows.
#[derive(Debug)]
#[repr(C)]
pub struct StreamCounters {
    /// Streams attached. Counted here.
    pub accelerated: Count,
    pub bytes_ring_in: Count,
    pub bytes_ring_out: Count,
    pub bytes_kernel_in: Count,
    pub bytes_kernel_out: Count,
    /// Bells rung. Counted here.
    pub bells: Count,
    /// Sleeps in the kernel.
    pub sleeps: Count,
    /// Datagrams taken out of rings, and put into them.
    pub datagrams_ring_in: Count,
    pub datagrams_ring_out: Count,
    /// By [`Reason`].
    pub fallen_back: [Count; REASONS],
}
/// How many numbers they are.
const NUMBERS: usize = page::COUNTER_NAMES.len() + page::REASON_NAMES.len();
const _: () = assert!(size_of::<StreamCounters>() == (page::COUNTER_NAMES.len() + page::REASON_NAMES.len()) * 8);

impl StreamCounters {
    const fn new() -> Self {
        Self {
            accelerated: Count::new(),
            bytes_ring_in: Count::new(),
            bytes_ring_out: Count::new(),
            bytes_kernel_in: Count::new(),
            bytes_kernel_out: Count::new(),
            bells: Count::new(),
            sleeps: Count::new(),
            datagrams_ring_in: Count::new(),
            datagrams_ring_out: Count::new(),
            fallen_back: [const { Count::new() }; REASONS],
        }
    }

    /// A connection is with the kernel for this cause.
    pub fn fell_back(&self, cause: impl Into<KernelReason>) {
        let KernelReason { reason, option } = cause.into();
        self.fallen_back[reason as usize].fetch_add(1, Ordering::Relaxed);
        if let Some(option) = option {
            tally::add_option(option);
        }
    }

    /// One that was counted so is not any more: it has moved on.
    pub fn moved_on(&self, from: Reason) {
        self.fallen_back[from as usize].fetch_add(1u64.wrapping_neg(), Ordering::Relaxed);
    }

    /// As they are now, in the order of the page.
    pub fn numbers(&self) -> [u64; NUMBERS] {
        std::array::from_fn(|at| counter(self, at).load(Ordering::Relaxed))
    }
}

fn counter(counters: &StreamCounters, at: usize) -> &Count {
    match at {
        0 => &counters.accelerated,
        1 => &counters.bytes_ring_in,
        2 => &counters.bytes_ring_out,
        3 => &counters.bytes_kernel_in,
        4 => &counters.bytes_kernel_out,
        5 => &counters.bells,
        6 => &counters.sleeps,
        7 => &counters.datagrams_ring_in,
        8 => &counters.datagrams_ring_out,
        reason => &counters.fallen_back[reason - page::COUNTER_NAMES.len()],
    }
}

#[repr(C, align(4096))]
pub(super) struct StreamPage {
    magic: AtomicU64,
    version: AtomicU32,
    _gap: [u32; 13],
    pub mails: AtomicU32,
    pub host_only: AtomicU32,
    pub apart: AtomicU32,
    pub looked: AtomicU32,
    _line: [u32; 12],
    pub counters: StreamCounters,
    _rest: [u64; 512 - 16 - NUMBERS],
}
const _: () = assert!(size_of::<StreamPage>() == page::BYTES && offset_of!(StreamPage, mails) == page::MAILS_AT);
const _: () =
    assert!(offset_of!(StreamPage, host_only) == page::HOST_ONLY_AT && offset_of!(StreamPage, apart) == page::APART_AT);
const _: () = assert!(offset_of!(StreamPage, looked) == page::LOOKED_AT);
const _: () = assert!(
    offset_of!(StreamPage, counters) == page::COUNTERS_AT && offset_of!(StreamPage, version) == page::VERSION_AT
);

/// Atomics only, and never borrowed but as atomics: that other memory comes in its place is like other threads' stores.
pub(super) static PAGE: StreamPage = StreamPage {
    magic: AtomicU64::new(page::MAGIC),
    version: AtomicU32::new(page::VERSION),
    _gap: [0; 13],
    mails: AtomicU32::new(0),
    host_only: AtomicU32::new(0),
    apart: AtomicU32::new(0),
    looked: AtomicU32::new(0),
    _line: [0; 12],
    counters: StreamCounters::new(),
    _rest: [0; 512 - 16 - NUMBERS],
};

const NAME: &CStr = c"weft-page";

/// Puts shared memory with the content of the page in its place, without mail, and answers its descriptor.
pub(super) fn share() -> io::Result<Descriptor> {
    let memory = kernel::sealable_memory(NAME, page::BYTES)?;
    replace(Some(memory.as_raw_fd())).map(|()| memory)
}

/// In the child of a fork: a page of its own, with nothing counted. What the rendezvous has, it has for the child as
/// well.
pub(super) fn forget() {
    let host_only = PAGE.host_only.load(Ordering::Relaxed);
    if replace(None).is_ok() {
        for counter in counters() {
            counter.store(0, Ordering::Relaxed);
        }
        PAGE.host_only.store(host_only, Ordering::Relaxed);
    }
}

/// The counters of the page alone.
fn counters() -> [&'static AtomicU64; NUMBERS] {
    std::array::from_fn(|at| &counter(&PAGE.counters, at).0)
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
