//! What leaves: requests, which wait for room and poll meanwhile, and replies, which are kept where there is none.

use crate::failure::{Answer, bad, no_resource};
use crate::kept::{AmContext, Awaited, KeptBytes};
use crate::message::{AmCategory, EndpointId, FRONT_BYTES, MessageHead, Purpose, TOGETHER_BYTES};
use crate::polling::{poll, wait_polling};
use crate::tables::BundleId;
use crate::token::MessageToken;
use crate::world::{WORLD, enter};
use weft_fabric::Peer;

/// Messages of at most so many bytes are put together without asking for memory.
const SMALL_BYTES: usize = 256;

/// What a program sends.
pub struct AmOutgoing<'a> {
    pub call: &'static str,
    pub handler: u8,
    pub category: AmCategory,
    pub arguments: &'a [i32],
    pub bytes: &'a [u8],
    /// In the receiver's segment.
    pub offset: u64,
    /// The program leaves the bytes as they are until the answer has come.
    pub keeps: bool,
}

impl<'a> AmOutgoing<'a> {
    #[inline]
    fn head(&self, purpose: Purpose) -> MessageHead<'a> {
        let head = MessageHead::new(purpose, self.category, self.handler, self.arguments);
        MessageHead { offset: self.offset, ..head }
    }

    /// What travels as one message: what goes in front, and the bytes if they go with it.
    fn together(&self, head: &MessageHead<'_>) -> Vec<u8> {
        let mut front = [0; FRONT_BYTES];
        let bytes = if head.apart.is_some() { &[][..] } else { self.bytes };
        let length = head.write(bytes.len(), &mut front);
        let mut whole = Vec::with_capacity(length + bytes.len());
        whole.extend_from_slice(&front[..length]);
        whole.extend_from_slice(bytes);
        whole
    }

    /// The same of a small message, without asking for memory.
    #[inline]
    fn small<'r>(&self, head: &MessageHead<'_>, room: &'r mut [u8; SMALL_BYTES]) -> &'r [u8] {
        let begin = head.write(self.bytes.len(), room);
        let end = begin + self.bytes.len();
        room[begin..end].copy_from_slice(self.bytes);
        &room[..end]
    }

    #[inline]
    fn is_small(&self) -> bool {
        FRONT_BYTES + self.bytes.len() <= SMALL_BYTES
    }

    fn data(&self) -> usize {
        self.bytes.len() + 4 * self.arguments.len()
    }
}

/// Sends a request; returns when the bytes may be used again.
///
/// # Errors
/// There is no such endpoint, or nothing is mapped at the index.
#[inline]
pub fn request(from: EndpointId, index: u32, out: &AmOutgoing<'_>) -> Answer<()> {
    let mut world = enter()?;
    let bundle = world.tables.endpoint(from).ok_or(bad("no such endpoint"))?.bundle;
    if world.polled.take() != Some(bundle) {
        drop(world);
        poll(bundle);
        world = enter()?;
        world.polled = None;
    }
    let me = Peer(world.me());
    let endpoint = world.tables.endpoint(from).ok_or(bad("no such endpoint"))?;
    let entry =
        endpoint.translation(index).ok_or(bad("nothing is mapped at this index of the endpoint: see AM_Map"))?;
    let to = Peer(entry.name.rank);
    let mut head = MessageHead { tag: entry.tag, to: entry.name.id(), from, ..out.head(Purpose::Request) };
    endpoint.stats.sent(true, out.category, out.data(), FRONT_BYTES);
    if out.is_small() && world.try_send(to, head.word(), out.small(&head, &mut [0; SMALL_BYTES])) {
        return Ok(());
    }
    if out.bytes.len() > TOGETHER_BYTES {
        head.apart = Some((out.bytes.len() as u64, world.next_number()));
    }
    let whole = out.together(&head);
    if to == me {
        world.send_or_keep(to, head.word(), &whole);
    } else if !world.try_send(to, head.word(), &whole) {
        drop(world);
        let sent = wait_until_sent(out.call, to, bundle, (AmContext::Messages, head.word()), &whole);
        world = enter()?;
        if !sent {
            world.return_own(&head, to.0);
            return Ok(());
        }
    }
    let Some((_, number)) = head.apart else { return Ok(()) };
    if to == me {
        world.keep(to, AmContext::Bytes, number, out.bytes.into());
    } else if out.keeps {
        // SAFETY: the program has promised to leave them as they are.
        let request = unsafe { world.post(to, AmContext::Bytes, number, out.bytes) };
        world.outbound.kept.push(KeptBytes { request, _bytes: None });
    } else {
        drop(world);
        if !wait_until_sent(out.call, to, bundle, (AmContext::Bytes, number), out.bytes) {
            enter()?.return_own(&head, to.0);
        }
    }
    Ok(())
}

/// Sends what has no room now, and polls meanwhile. False if the receiver is lost.
#[cold]
fn wait_until_sent(
    call: &'static str,
    to: Peer,
    bundle: BundleId,
    (context, tag): (AmContext, i32),
    bytes: &[u8],
) -> bool {
    let mut world = WORLD.enter();
    // SAFETY: `bytes` is borrowed until this call returns, when the request is complete.
    let request = unsafe { world.post(to, context, tag, bytes) };
    world.outbound.waiting.push(Awaited { request, to });
    drop(world);
    let outcome = wait_polling(call, Some(to), bundle, |world| world.take_sent(request));
    outcome.fault.is_none()
}

/// Replies to the request whose handler runs. Never waits.
///
/// # Errors
/// It is no request, or was replied to.
#[inline]
pub fn reply(token: &MessageToken<'_>, out: &AmOutgoing<'_>) -> Answer<()> {
    if !token.take_reply() {
        return Err(no_resource("this message is not answered, or was before"));
    }
    let mut world = enter()?;
    let (to, from, asker) = (Peer(token.rank), token.head.to, token.head.from);
    let endpoint = world.tables.endpoint(from).ok_or(bad("the endpoint was given up"))?;
    let known = endpoint.translation(to.0).filter(|entry| entry.name.is_of(to.0, asker));
    let tag = known.map_or(0, |entry| entry.tag);
    let mut head = MessageHead { tag, to: asker, from, ..out.head(Purpose::Reply) };
    endpoint.stats.sent(false, out.category, out.data(), FRONT_BYTES);
    if out.is_small() {
        world.send_or_keep(to, head.word(), out.small(&head, &mut [0; SMALL_BYTES]));
        return Ok(());
    }
    if out.bytes.len() > TOGETHER_BYTES {
        head.apart = Some((out.bytes.len() as u64, world.next_number()));
    }
    let whole = out.together(&head);
    world.send_or_keep(to, head.word(), &whole);
    if let Some((_, number)) = head.apart {
        world.keep(to, AmContext::Bytes, number, out.bytes.into());
    }
    Ok(())
}
