//! Requests of `io_uring`, which pass our calls by. The queue that a program sets up is mapped here, too, and what it
//! submits is looked at before the kernel gets it: registrations in epoll sets are made by our own call, and a socket
//! that a request names otherwise becomes the kernel's before.
//!
//! What cannot be seen (a thread of the kernel takes requests by itself, descriptors have other numbers, a copy of the
//! queue's descriptor is used) is as it always was: what is not attached yet stays with the kernel. So it is with
//! programs that make these calls past the C library's `syscall`.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};

use libc::c_void;
use weft_fabric::stream::Reason;

use super::table::{self, Entry};
use super::{conn, ends, epoll, life, raw, route, udp};

/// Queues of a process that are looked into.
const QUEUES: usize = 64;

/// Of `linux/io_uring.h`: where parts lie in the structures that the kernel and programs share.
mod layout {
    pub const ENTRIES: usize = 0;
    pub const FLAGS: usize = 2;
    pub const HEAD: usize = 10;
    pub const TAIL: usize = 11;
    pub const MASK: usize = 12;
    pub const ARRAY: usize = 16;
    pub const OF_QUEUE: usize = 0;
    pub const OF_REQUESTS: usize = 0x1000_0000;
    pub const REQUEST_BYTES: usize = 64;
}

/// Flags of a queue: how its answers come, how large it is, who may submit. They change nothing of what is looked at.
const HARMLESS: u32 = 1 << 3 | 1 << 4 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 12 | 1 << 13 | NO_ARRAY;
const NO_ARRAY: u32 = 1 << 16;
/// The descriptor of the call is a number of another kind.
const ENTER_REGISTERED: usize = 1 << 4;
/// What may be registered without giving descriptors other numbers: buffers, who is told, questions, workers.
const HARMLESS_REGISTRATIONS: [usize; 11] = [0, 1, 4, 5, 7, 8, 15, 16, 17, 18, 19];

/// Kinds of requests.
const NOTHING: u8 = 0;
const SEND_MESSAGE: u8 = 9;
const CLOSE: u8 = 19;
const EPOLL_CONTROL: u8 = 29;
const SPLICE: u8 = 30;
const TEE: u8 = 33;
/// Those that name no descriptor: time limits, cancelling.
const WITHOUT_DESCRIPTOR: [u8; 5] = [NOTHING, 11, 12, 14, 15];
/// Flags of a request: its descriptor has another number; only failures are answered.
const FIXED: u8 = 1;
const SILENT: u8 = 1 << 6;

/// One queue.
struct Queue {
    used: AtomicBool,
    /// Its descriptor; -1 while it is none.
    fd: AtomicI32,
    shared: AtomicPtr<u8>,
    bytes: AtomicU32,
    requests: AtomicPtr<AioRequest>,
    entries: AtomicU32,
    /// Places in the shared memory; no array: requests stand in order.
    head: AtomicU32,
    tail: AtomicU32,
    mask: AtomicU32,
    array: AtomicU32,
}

/// What the program asks of the kernel; it may change it at any time.
#[repr(C)]
#[derive(Clone, Copy)]
struct AioRequest {
    kind: u8,
    flags: u8,
    priority: u16,
    fd: c_int,
    offset: u64,
    address: u64,
    length: u32,
    kind_flags: u32,
    user_data: u64,
    buffer: u32,
    other_fd: c_int,
    rest: [u64; 2],
}

const _: () = assert!(size_of::<AioRequest>() == layout::REQUEST_BYTES);

static ALL: [Queue; QUEUES] = [const {
    Queue {
        used: AtomicBool::new(false),
        fd: AtomicI32::new(-1),
        shared: AtomicPtr::new(std::ptr::null_mut()),
        bytes: AtomicU32::new(0),
        requests: AtomicPtr::new(std::ptr::null_mut()),
        entries: AtomicU32::new(0),
        head: AtomicU32::new(0),
        tail: AtomicU32::new(0),
        mask: AtomicU32::new(0),
        array: AtomicU32::new(0),
    }
}; QUEUES];

/// How many there are: most programs have none.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Requests that nobody of us sees may move bytes of any socket: all are the kernel's from now on.
fn unseen() {
    super::accelerate_no_more();
    udp::withdraw_all(Reason::KernelCall);
    life::hand_back_everything(Reason::KernelCall);
}

/// After `io_uring_setup` has made `fd`.
///
/// # Safety
/// `parameters` are those that the kernel has written.
pub unsafe fn after_setup(fd: c_int, parameters: *const u32) {
    let _errno = raw::KeepErrno::new();
    // SAFETY: the caller's: the kernel has written the whole structure.
    let part = |at: usize| unsafe { parameters.add(at).read_unaligned() };
    if part(layout::FLAGS) & !HARMLESS != 0 || !note(fd, part) {
        unseen();
    }
}

/// Those whose descriptors are from `first` to `last`.
fn of(first: c_int, last: c_int) -> impl Iterator<Item = &'static Queue> {
    let all: &[Queue] = if COUNT.load(Ordering::Acquire) == 0 { &[] } else { &ALL };
    all.iter().filter(move |queue| (first..=last).contains(&queue.fd.load(Ordering::Acquire)))
}

fn note(fd: c_int, part: impl Fn(usize) -> u32) -> bool {
    let free = |queue: &Queue| queue.used.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    // The number was another one's, of which we have not seen the end.
    closed(fd, fd);
    let Some(queue) = ALL.iter().find(|queue| free(queue)) else { return false };
    let entries = part(layout::ENTRIES);
    let has_array = part(layout::FLAGS) & NO_ARRAY == 0;
    let last = [layout::HEAD, layout::TAIL, layout::MASK].map(&part).into_iter().max().unwrap_or(0) + 4;
    let array = if has_array { part(layout::ARRAY) } else { 0 };
    let bytes = if has_array { last.max(array + entries * 4) } else { last };
    let shared = map(fd, layout::OF_QUEUE, bytes as usize);
    let requests = map(fd, layout::OF_REQUESTS, entries as usize * layout::REQUEST_BYTES);
    queue.shared.store(shared, Ordering::Relaxed);
    queue.bytes.store(bytes, Ordering::Relaxed);
    queue.requests.store(requests.cast(), Ordering::Relaxed);
    queue.entries.store(entries, Ordering::Relaxed);
    queue.head.store(part(layout::HEAD), Ordering::Relaxed);
    queue.tail.store(part(layout::TAIL), Ordering::Relaxed);
    queue.mask.store(part(layout::MASK), Ordering::Relaxed);
    queue.array.store(array, Ordering::Relaxed);
    COUNT.fetch_add(1, Ordering::Release);
    queue.fd.store(fd, Ordering::Release);
    if shared.is_null() || requests.is_null() {
        forget(queue);
        return false;
    }
    true
}

/// Shares what the kernel has for `fd`; null where that cannot be.
fn map(fd: c_int, at: usize, bytes: usize) -> *mut u8 {
    let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: asks for new memory only.
    match unsafe { raw::call(libc::SYS_mmap, [0, bytes, access, libc::MAP_SHARED as usize, fd as usize, at]) } {
        -4095..0 => std::ptr::null_mut(),
        address => address as *mut u8,
    }
}

/// The program closes all from `first` to `last`.
pub fn closed(first: c_int, last: c_int) {
    of(first.max(0), last).for_each(forget);
}

/// What is mapped would keep the queue, and what it has been asked for, alive.
fn forget(queue: &Queue) {
    queue.fd.store(-1, Ordering::Release);
    let bytes = queue.entries.load(Ordering::Relaxed) as usize * layout::REQUEST_BYTES;
    let parts = [
        (queue.shared.swap(std::ptr::null_mut(), Ordering::AcqRel), queue.bytes.load(Ordering::Relaxed) as usize),
        (queue.requests.swap(std::ptr::null_mut(), Ordering::AcqRel).cast(), bytes),
    ];
    for (at, bytes) in parts.into_iter().filter(|(at, _)| !at.is_null()) {
        // SAFETY: mapped by us. Whoever submits to a queue while it is closed may fault, as he would in his own mapping
        // of it.
        unsafe { raw::unmap(at, bytes) };
    }
    COUNT.fetch_sub(1, Ordering::Release);
    queue.used.store(false, Ordering::Release);
}

/// Before `io_uring_register`.
pub fn before_register(operation: usize) {
    if !HARMLESS_REGISTRATIONS.contains(&operation) {
        unseen();
    }
}

/// Before `io_uring_enter`: looks at what is about to be submitted.
pub fn before_enter(fd: c_int, count: u32, flags: usize) {
    if count == 0 {
        return;
    }
    let _errno = raw::KeepErrno::new();
    match of(fd, fd).next() {
        Some(queue) if flags & ENTER_REGISTERED == 0 => look_into(queue, count),
        _ => unseen(),
    }
}

fn look_into(queue: &Queue, count: u32) {
    let (shared, requests) = (queue.shared.load(Ordering::Acquire), queue.requests.load(Ordering::Relaxed));
    // SAFETY: a word of the queue, at a place that the kernel has named; mapped as far as that.
    let word = |at: u32| unsafe { &*shared.add(at as usize).cast::<AtomicU32>() };
    let (entries, array) = (queue.entries.load(Ordering::Relaxed), queue.array.load(Ordering::Relaxed));
    let head = word(queue.head.load(Ordering::Relaxed)).load(Ordering::Acquire);
    let tail = word(queue.tail.load(Ordering::Relaxed)).load(Ordering::Acquire);
    let mask = word(queue.mask.load(Ordering::Relaxed)).load(Ordering::Relaxed);
    for number in 0..count.min(tail.wrapping_sub(head)).min(entries) {
        let at = head.wrapping_add(number) & mask & (entries - 1);
        let at = if array == 0 { at } else { word(array + at * 4).load(Ordering::Relaxed) };
        if at < entries {
            // SAFETY: there are so many; the program writes them before it calls.
            look_at(unsafe { &mut *requests.add(at as usize) });
        }
    }
}

fn look_at(request: &mut AioRequest) {
    match request.kind {
        EPOLL_CONTROL if request.flags & !SILENT == 0 => register(request),
        EPOLL_CONTROL => life::hand_back(request.offset as c_int, Reason::KernelCall),
        kind if WITHOUT_DESCRIPTOR.contains(&kind) => {}
        _ if request.flags & FIXED != 0 => unseen(),
        CLOSE => {
            ends::before_close(request.fd);
            conn::forget(request.fd);
        }
        kind => {
            if kind == SEND_MESSAGE && request.address != 0 {
                // SAFETY: the header that the program gives to the kernel.
                unsafe { route::before_passing(&*(request.address as *const libc::msghdr)) };
            }
            if matches!(kind, SPLICE | TEE) {
                take_away(request.other_fd);
            }
            take_away(request.fd);
        }
    }
}

/// The kernel alone is to use this descriptor.
fn take_away(fd: c_int) {
    match table::entry(fd) {
        Some(Entry::Connection(_) | Entry::Datagram(_)) => life::hand_back(fd, Reason::KernelCall),
        // It would not tell of what is in rings.
        Some(Entry::Set(_)) => {
            life::hand_back_everything(Reason::KernelCall);
            unseen();
        }
        _ => {}
    }
}

/// Registers by our call, and leaves a request that does nothing. One that fails the kernel shall refuse itself.
fn register(request: &mut AioRequest) {
    let (set, operation, fd) = (request.fd, request.length as c_int, request.offset as c_int);
    // SAFETY: what the program gives to the kernel.
    if unsafe { epoll::control(set, operation, fd, (request.address as *mut c_void).cast()) } == 0 {
        *request = AioRequest {
            kind: NOTHING,
            priority: 0,
            fd: -1,
            offset: 0,
            address: 0,
            length: 0,
            kind_flags: 0,
            buffer: 0,
            other_fd: 0,
            rest: [0; 2],
            ..*request
        };
    }
}
