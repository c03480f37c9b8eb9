//! The fabric's own Rust API as a small C library: what a second interface of a process is, for tests.
//!
//! `tests/c/together/native.h` declares what stands here.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_ulong, c_void};
use std::time::Duration;
use weft_fabric::{
    Driven, Endpoint, Envelope, InterfaceName, Monitor, Outside, Peer, RequestId, Selector, SendMode, Waiting,
};

static WORLD: Monitor<World> = Monitor::new();

/// How long a thread sleeps before it looks whether the one that it waits for has ended.
const LOOK: Duration = Duration::from_millis(50);

struct World {
    endpoint: Endpoint,
    /// A receive, and from whom.
    awaited: Option<(RequestId, Peer)>,
}

impl Driven for World {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    fn advance(&mut self) -> Option<Outside> {
        None
    }

    fn idle(&mut self, sleeps: bool) -> bool {
        let ended = |(_, peer): &(RequestId, Peer)| sleeps && self.endpoint.has_ended(*peer);
        let Some((request, _)) = self.awaited.filter(ended) else { return false };
        // What it has sent has arrived, since it has ended before.
        while self.endpoint.progress() {}
        self.endpoint.cancel_receive(request)
    }

    fn longest_sleep(&self) -> Option<Duration> {
        self.awaited.map(|_| LOOK)
    }
}

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Opens the interface numbered `interface`; 0, or -1 and a text.
#[unsafe(no_mangle)]
pub extern "C" fn native_open(interface: c_int, threads: c_int) -> c_int {
    let name = InterfaceName::ALL.into_iter().find(|name| name.number() as c_int == interface);
    match Endpoint::join_as(name.expect("an interface"), &[]) {
        Ok(endpoint) => {
            WORLD.open(World { endpoint, awaited: None }, threads != 0);
            WORLD.lend();
            0
        }
        Err(error) => {
            ERROR.set(CString::new(error.to_string()).expect("text"));
            -1
        }
    }
}

/// Why the last opening by this thread has failed.
#[unsafe(no_mangle)]
pub extern "C" fn native_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}

#[unsafe(no_mangle)]
pub extern "C" fn native_rank() -> c_int {
    WORLD.enter().endpoint.me().0 as c_int
}

#[unsafe(no_mangle)]
pub extern "C" fn native_size() -> c_int {
    WORLD.enter().endpoint.world_size() as c_int
}

fn waiting(call: &'static str, peer: Peer, tag: c_int) -> Waiting {
    Waiting { call, peer: Some(peer), tag: Some(tag), context: 0 }
}

/// Starts to send; the bytes stay as they are until [`native_sent`].
///
/// # Safety
/// `data` is readable for `length` bytes until then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn native_post(to: c_int, tag: c_int, data: *const c_void, length: c_ulong) -> c_long {
    let mut world = WORLD.enter();
    let envelope = Envelope { context: 0, tag, source: world.endpoint.me().0 };
    let mode = SendMode::Standard;
    // SAFETY: the caller's promise.
    let request = unsafe { world.endpoint.post_send(Peer(to as u32), envelope, data.cast(), length as usize, mode) };
    // The number of a request is its own affair, so it is kept in a box.
    Box::into_raw(Box::new(request)) as c_long
}

/// Whether a send is complete, after one look.
///
/// # Safety
/// `request` is of [`native_post`] and was not given to [`native_sent`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn native_is_sent(request: c_long) -> c_int {
    // SAFETY: the caller's promise.
    let request = unsafe { *(request as *const RequestId) };
    c_int::from(WORLD.enter().endpoint.is_complete(request))
}

/// Waits until a send is complete; 0 if it went well.
///
/// # Safety
/// As [`native_is_sent`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn native_sent(request: c_long) -> c_int {
    // SAFETY: the caller's promise.
    let request = *unsafe { Box::from_raw(request as *mut RequestId) };
    let done = |world: &mut World| world.endpoint.take_outcome(request);
    let outcome = WORLD.wait(waiting("native_sent", Peer(0), 0), done);
    if outcome.fault.is_none() { 0 } else { -1 }
}

/// Sends and waits until that is complete; 0 if it went well.
///
/// # Safety
/// `data` is readable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn native_send(to: c_int, tag: c_int, data: *const c_void, length: c_ulong) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { native_sent(native_post(to, tag, data, length)) }
}

/// Receives a message; its length, or -1 if none comes any more since its sender has ended.
///
/// # Safety
/// `buffer` is writable for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn native_receive(from: c_int, tag: c_int, buffer: *mut c_void, room: c_ulong) -> c_long {
    let peer = Peer(from as u32);
    let selector = Selector { context: 0, peer: Some(peer), tag: Some(tag) };
    let mut world = WORLD.enter();
    // SAFETY: the caller's promise.
    let request = unsafe { world.endpoint.post_receive(selector, buffer.cast(), room as usize) };
    world.awaited = Some((request, peer));
    drop(world);
    let outcome = WORLD.wait(waiting("native_receive", peer, tag), |world| world.endpoint.take_outcome(request));
    WORLD.enter().awaited = None;
    if outcome.fault.is_none() { outcome.length as c_long } else { -1 }
}

/// One progress pass.
#[unsafe(no_mangle)]
pub extern "C" fn native_poll() {
    WORLD.poll();
}

/// The counter of this name.
///
/// # Safety
/// `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn native_counter(name: *const c_char) -> c_ulong {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_str().expect("text");
    let mut world = WORLD.enter();
    let reader = world.endpoint.counter_reader();
    world.endpoint.counters();
    let at = weft_fabric::CounterReader::NAMES.iter().position(|known| *known == name).expect("a counter");
    reader.read(at)
}

#[unsafe(no_mangle)]
pub extern "C" fn native_close() {
    WORLD.close().endpoint.leave();
}
