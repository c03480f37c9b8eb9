//! `pan_mp_*`.

use super::rpc::into_content;
use super::{assert_open, give, object, platforms};
use crate::failure::{fail, platform};
use crate::labels::{MessageLabel, MessagePurpose, NUMBERS, waiting};
use crate::message::{Content, PandaMessage, words_of};
use crate::mp::{DIRECT, EntryHandler, MapFunction, ReceiveState};
use crate::sending;
use crate::takers;
use crate::upcalls;
use crate::world::WORLD;
use std::ffi::c_int;

const SYNC: c_int = 0;
const SYNC2: c_int = 1;
const ASYNC: c_int = 2;

/// The number of an entry that may be there on some platform.
fn entry(call: &str, number: c_int) -> u32 {
    let number = u32::try_from(number).ok().filter(|number| *number < NUMBERS);
    number.unwrap_or_else(|| fail(&format!("{call}: entries are 0 to {}", NUMBERS - 1)))
}

#[cold]
fn wrong_mode(call: &str, mode: c_int) -> ! {
    fail(&format!("{call}: mode {mode}, of MODE_SYNC 0, MODE_SYNC2 1 and, for sends, MODE_ASYNC 2"))
}

#[cold]
fn no_room(call: &str) -> ! {
    fail(&format!("{call}: too many maps, or messages on their way"))
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_mp_init() {
    assert_open("pan_mp_init");
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_mp_end() {
    assert_open("pan_mp_end");
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_mp_register_map() -> c_int {
    assert_open("pan_mp_register_map");
    let mut world = WORLD.enter();
    let Some(map) = world.entries.add_map() else { no_room("pan_mp_register_map") };
    world.look_at_early();
    map as c_int
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_mp_free_map(map: c_int) {
    assert_open("pan_mp_free_map");
    if !WORLD.enter().entries.remove_map(entry("pan_mp_free_map", map)) {
        fail(&format!("pan_mp_free_map: {map} is no map"));
    }
}

/// # Safety
/// The function may be called with messages, which are its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_mp_clear_map(map: c_int, clear: unsafe extern "C" fn(*mut PandaMessage)) {
    assert_open("pan_mp_clear_map");
    let queue = WORLD.enter().entries.take_queue(entry("pan_mp_clear_map", map));
    for content in queue.into_iter().flatten() {
        // SAFETY: the caller's promise.
        unsafe { clear(give(PandaMessage::of(content))) };
    }
}

/// # Safety
/// It is a message of the program's; with `MODE_ASYNC` it is the library's from here on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_mp_send_message(to: c_int, map: c_int, message: *mut PandaMessage, mode: c_int) -> c_int {
    let call = "pan_mp_send_message";
    assert_open(call);
    let to = platform(call, to, platforms());
    let label = MessageLabel { what: MessagePurpose::Entry(entry(call, map)), beside: 0 };
    // SAFETY: the caller's promise.
    let bytes = || unsafe { object(call, message) }.bytes();
    match mode {
        SYNC => {
            sending::send(call, to, label, &bytes());
            -1
        }
        SYNC2 => {
            let bytes = bytes();
            let mut world = WORLD.enter();
            let sent = world.try_send(to, label, &bytes);
            drop(world);
            // The program may use it again before it asks whether it has left, so it is copied.
            let copy = || Content { words: words_of(&bytes), length: bytes.len() };
            let kept = if sent { None } else { sending::give(call, to, label, copy()) };
            WORLD.enter().entries.add_send(kept).unwrap_or_else(|| no_room(call)) as c_int
        }
        ASYNC => {
            // SAFETY: the caller's promise.
            sending::give(call, to, label, unsafe { into_content(call, message) });
            -1
        }
        _ => wrong_mode(call, mode),
    }
}

/// Whether a send of `MODE_SYNC2` has left.
fn has_left(call: &str, number: c_int) -> bool {
    let mut world = WORLD.enter();
    world.reclaim();
    let Some(kept) = world.entries.sent(entry(call, number)) else {
        fail(&format!("{call}: {number} is no send of MODE_SYNC2"))
    };
    kept.is_none_or(|kept| !world.is_kept(kept))
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_mp_finish_send(number: c_int) {
    let call = "pan_mp_finish_send";
    assert_open(call);
    if !has_left(call, number) {
        let kept = WORLD.enter().entries.sent(entry(call, number)).flatten();
        upcalls::barred(|| {
            takers::wait(waiting(call, None), |world| {
                world.reclaim();
                kept.is_none_or(|kept| !world.is_kept(kept)).then_some(())
            });
        });
    }
    WORLD.enter().entries.free(entry(call, number));
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_mp_poll_send(number: c_int) -> c_int {
    assert_open("pan_mp_poll_send");
    takers::poll();
    has_left("pan_mp_poll_send", number).into()
}

/// # Safety
/// It is a message of the program's, which it does not use until it is received.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_mp_receive_message(map: c_int, message: *mut PandaMessage, mode: c_int) -> c_int {
    let call = "pan_mp_receive_message";
    assert_open(call);
    if !matches!(mode, SYNC | SYNC2) {
        wrong_mode(call, mode);
    }
    if map == DIRECT as c_int && mode == SYNC {
        fail(&format!("{call}: DIRECT_MAP needs MODE_SYNC2, whose answer says where to send to"));
    }
    let mut world = WORLD.enter();
    let Some(number) = world.entries.add_receive(entry(call, map), message) else {
        fail(&format!("{call}: {map} is no map without a handler"))
    };
    world.look_at_early();
    drop(world);
    if mode == SYNC2 {
        return number as c_int;
    }
    finish(call, number);
    -1
}

/// Waits until a receive has got its message.
fn finish(call: &'static str, number: u32) {
    let received = takers::wait(waiting(call, None), |world| match world.entries.take_received(number) {
        ReceiveState::NotYet => None,
        over => Some(over),
    });
    match received {
        // SAFETY: the program has given it for this receive, and does not use it meanwhile.
        ReceiveState::Now(into, content) => unsafe { object(call, into) }.fill(content),
        ReceiveState::Before => {}
        ReceiveState::Never | ReceiveState::NotYet => fail(&format!("{call}: {number} is no receive of MODE_SYNC2")),
    }
    WORLD.enter().entries.free(number);
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_mp_finish_receive(number: c_int) {
    let call = "pan_mp_finish_receive";
    assert_open(call);
    finish(call, entry(call, number));
}

/// After it has said 1 the message has its bytes.
#[unsafe(no_mangle)]
pub extern "C" fn pan_mp_poll_receive(number: c_int) -> c_int {
    let call = "pan_mp_poll_receive";
    assert_open(call);
    takers::poll();
    let number = entry(call, number);
    let received = WORLD.enter().entries.take_received(number);
    match received {
        ReceiveState::NotYet => return 0,
        // SAFETY: as in `finish`.
        ReceiveState::Now(into, content) => unsafe { object(call, into) }.fill(content),
        ReceiveState::Before => {}
        ReceiveState::Never => fail(&format!("{call}: {number} is no receive of MODE_SYNC2")),
    }
    1
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_mp_register_async_receive(map: c_int, handler: MapFunction) {
    let call = "pan_mp_register_async_receive";
    assert_open(call);
    let (map, handler) = (entry(call, map), EntryHandler(handler));
    let mut world = WORLD.enter();
    let Some(queue) = world.entries.set_handler(map, handler) else {
        fail(&format!("{call}: {map} is no map without a handler and receives"))
    };
    for content in queue {
        world.upcalls.push(upcalls::Upcall::Entry { handler, number: map, content });
    }
}
