//! Remote procedure calls.

use crate::calls::RpcCaller;
use crate::labels::{MessageLabel, MessagePurpose, waiting};
use crate::message::Content;
use crate::sending::{check_length, give};
use crate::takers;
use crate::world::WORLD;
use weft_fabric::Peer;

/// Calls the handler of a platform, and waits for its answer.
///
/// # Errors
/// The platform has ended.
#[inline]
pub fn trans(call: &'static str, server: Peer, bytes: &[u8]) -> Result<Content, Peer> {
    check_length(call, bytes.len());
    let mut world = WORLD.enter();
    let number = world.calls.begin(server);
    let label = MessageLabel { what: MessagePurpose::Request, beside: number };
    let mut leaving = None;
    if !world.try_send(server, label, bytes) {
        // SAFETY: they are borrowed until this returns, which is when they have left.
        leaving = Some(unsafe { world.start(server, label, bytes) });
    }
    drop(world);
    takers::wait(waiting(call, Some(server)), |world| {
        leaving = leaving.filter(|leaving| !world.has_left(*leaving));
        let has_left = leaving.is_none();
        has_left.then(|| world.calls.take(number)).flatten()
    })
}

/// Answers a call; from any thread, whenever it likes.
pub fn reply(call: &'static str, caller: RpcCaller, content: Content) {
    give(call, caller.from, MessageLabel { what: MessagePurpose::Reply, beside: caller.number }, content);
}
