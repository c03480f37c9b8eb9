//! `pan_rpc_*`.

use super::{assert_open, give, object, platforms, take};
use crate::calls::{RequestHandler, RpcCaller, RpcFunction};
use crate::failure::{fail, platform};
use crate::message::{Content, PandaMessage};
use crate::rpc::{self, trans};
use crate::world::WORLD;
use std::ffi::{c_int, c_void};

#[unsafe(no_mangle)]
pub extern "C" fn pan_rpc_init() {
    assert_open("pan_rpc_init");
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_rpc_end() {
    assert_open("pan_rpc_end");
    WORLD.enter().calls.forget_handler();
}

#[unsafe(no_mangle)]
pub extern "C" fn pan_rpc_register(handler: RpcFunction) {
    assert_open("pan_rpc_register");
    let mut world = WORLD.enter();
    if !world.calls.register(RequestHandler::C(handler)) {
        fail("pan_rpc_register: there is a handler");
    }
    world.look_at_early();
}

/// # Safety
/// The request is a message of the program's, and there is a place for the answer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_rpc_trans(to: c_int, request: *mut PandaMessage, answer: *mut *mut PandaMessage) {
    assert_open("pan_rpc_trans");
    let to = platform("pan_rpc_trans", to, platforms());
    // SAFETY: the caller's promise.
    let bytes = unsafe { object("pan_rpc_trans", request) }.bytes();
    match trans("pan_rpc_trans", to, &bytes) {
        // SAFETY: as above.
        Ok(content) => unsafe { answer.write(give(PandaMessage::of(content))) },
        Err(server) => fail(&format!("pan_rpc_trans: platform {} has ended and answers no more", server.0)),
    }
}

/// # Safety
/// The answer is a message of the program's, which is the library's from here on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pan_rpc_reply(caller: *mut c_void, answer: *mut PandaMessage) {
    assert_open("pan_rpc_reply");
    let Some(caller) = RpcCaller::from_pointer(caller).filter(|caller| caller.from.0 < platforms()) else {
        fail("pan_rpc_reply: the upcall is none that a handler was given")
    };
    // SAFETY: the caller's promise.
    rpc::reply("pan_rpc_reply", caller, unsafe { into_content("pan_rpc_reply", answer) });
}

/// What a message has, which is cleared.
///
/// # Safety
/// It is a message of the program's, and is not any more.
pub unsafe fn into_content(call: &str, message: *mut PandaMessage) -> Content {
    // SAFETY: the caller's promise.
    let taken = unsafe { object(call, message) };
    if taken.releases.is_empty() {
        // SAFETY: as above.
        return unsafe { take(message) }.map_or_else(Content::default, |message| message.into_content());
    }
    let mut copy = PandaMessage::default();
    copy.copy_from(taken);
    // SAFETY: as above.
    unsafe { super::message::pan_msg_clear(message) };
    copy.into_content()
}
