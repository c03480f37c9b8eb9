//! Message buffers: what a program packs and unpacks, by number.
//!
//! - [`TypedMessage`] (`message`): one message, its bytes and how they are written. `encoding`: the three ways to write
//!   one, and the types of elements; `swap`: the loops; `nested`: messages within messages.
//! - [`Buffers`]: all messages of the process, with the two that calls without a number mean: the one that is packed,
//!   to be sent, and the one that was received, to be unpacked.
//!
//! Numbers come from the program, and what is unpacked from a peer: both are checked. A number that was freed is not
//! given out again before [`REST`] others were freed, so that a program that uses it still hears of it.
//!
//! Invariants:
//! - The active numbers are 0 or those of living messages.
//! - Freed messages leave their memory to new ones: up to [`SPARES`] pieces, of [`LARGEST_SPARE`] bytes at most.
//!
//! Test: `cargo test -p weft-pvm buffer`.

mod encoding;
mod message;
mod nested;
mod swap;
#[cfg(test)]
mod tests;

pub use self::ArrivedMessage as IncomingMessage;
pub use encoding::{ElementKind, Encoding};
pub use message::{MessageHeading, TypedMessage};

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::c_int;

use crate::errors::Code;

/// Numbers that are free before one of them is used again.
const REST: usize = 8;
/// Pieces of memory that are kept for new messages.
const SPARES: usize = 8;
const LARGEST_SPARE: usize = 4 << 20;

/// A message as it is sent.
pub struct LeavingMessage<'a> {
    pub encoding: Encoding,
    pub bytes: Cow<'a, [u8]>,
}

/// A message as it has arrived.
#[derive(Debug, PartialEq, Eq)]
pub struct ArrivedMessage {
    pub encoding: Encoding,
    pub bytes: Vec<u8>,
    /// The sending task.
    pub source: i32,
    pub tag: i32,
    pub context: i32,
}

/// All messages of this process.
pub struct Buffers {
    /// By number; the first is none. A free one is empty.
    slots: Vec<BufferSlot>,
    /// Numbers that are free, the first for the longest time.
    free: VecDeque<c_int>,
    /// Memory of freed messages; the last was used last.
    spares: Vec<Vec<u8>>,
    sending: c_int,
    receiving: c_int,
}

struct BufferSlot {
    lives: bool,
    message: TypedMessage,
}

impl BufferSlot {
    fn living(&self) -> Option<&TypedMessage> {
        self.lives.then_some(&self.message)
    }

    fn living_mut(&mut self) -> Option<&mut TypedMessage> {
        self.lives.then_some(&mut self.message)
    }
}

impl Buffers {
    pub const fn new() -> Self {
        Self { slots: Vec::new(), free: VecDeque::new(), spares: Vec::new(), sending: 0, receiving: 0 }
    }

    /// Memory of a freed message, if there is any. What stands in it means nothing, but need not be written before a
    /// message is received over it.
    #[inline]
    pub fn spare(&mut self) -> Vec<u8> {
        self.spares.pop().unwrap_or_default()
    }

    /// Keeps the memory of a message that is no more.
    #[inline]
    fn keep(&mut self, bytes: Vec<u8>) {
        if bytes.capacity() != 0 && bytes.capacity() <= LARGEST_SPARE && self.spares.len() < SPARES {
            self.spares.push(bytes);
        }
    }

    /// An empty message with a number, which lives from here on.
    #[inline]
    fn add(&mut self, encoding: Encoding, bytes: Vec<u8>, heading: MessageHeading) -> c_int {
        let free = if self.free.len() >= REST { self.free.pop_front() } else { None };
        let id = free.unwrap_or_else(|| self.add_slot());
        let slot = &mut self.slots[id as usize];
        slot.lives = true;
        slot.message.begin(encoding, bytes, heading);
        id
    }

    #[cold]
    fn add_slot(&mut self) -> c_int {
        let none = || BufferSlot { lives: false, message: TypedMessage::default() };
        if self.slots.is_empty() {
            self.slots.push(none());
        }
        self.slots.push(none());
        (self.slots.len() - 1) as c_int
    }

    /// A new, empty message of the task `source`, to be packed.
    #[inline]
    pub fn make(&mut self, encoding: Encoding, source: i32) -> c_int {
        let mut bytes = self.spare();
        bytes.clear();
        self.add(encoding, bytes, MessageHeading { source, ..MessageHeading::default() })
    }

    /// A new message in the place of the one that was packed, which is freed.
    #[inline]
    pub fn begin_sending(&mut self, encoding: Encoding, source: i32) -> c_int {
        if let Some(bytes) = self.take(self.sending) {
            self.keep(bytes);
        }
        let id = self.make(encoding, source);
        self.sending = id;
        id
    }

    /// A number for a message that has arrived. It is not the active one; it is unpacked from its beginning.
    #[inline]
    pub fn accept(&mut self, message: ArrivedMessage) -> c_int {
        let ArrivedMessage { encoding, bytes, source, tag, context } = message;
        self.add(encoding, bytes, MessageHeading { context, tag, source, ..MessageHeading::default() })
    }

    /// Takes a message out again that was accepted.
    pub fn give_back(&mut self, id: c_int) -> Option<ArrivedMessage> {
        let message = self.message(id).ok()?;
        let MessageHeading { context, tag, source, .. } = message.heading;
        let encoding = message.encoding();
        Some(ArrivedMessage { encoding, bytes: self.take(id)?, source, tag, context })
    }

    /// The memory of a message whose number is free from here on.
    #[inline]
    fn take(&mut self, id: c_int) -> Option<Vec<u8>> {
        let slot = self.slots.get_mut(usize::try_from(id).ok()?).filter(|slot| slot.lives)?;
        slot.lives = false;
        let bytes = slot.message.end();
        self.free.push_back(id);
        if self.sending == id {
            self.sending = 0;
        }
        if self.receiving == id {
            self.receiving = 0;
        }
        Some(bytes)
    }

    /// Frees a message. To free number 0 is no error.
    ///
    /// # Errors
    /// There is no such message.
    #[inline]
    pub fn free(&mut self, id: c_int) -> Result<(), Code> {
        if id < 0 {
            return Err(Code::BAD_PARAM);
        }
        match self.take(id) {
            Some(bytes) => self.keep(bytes),
            None if id == 0 => (),
            None => return Err(Code::NO_SUCH_BUF),
        }
        Ok(())
    }

    /// The message of a number.
    ///
    /// # Errors
    /// The number is not positive, or nobody's.
    pub fn message(&self, id: c_int) -> Result<&TypedMessage, Code> {
        let at = usize::try_from(id).ok().filter(|at| *at != 0).ok_or(Code::BAD_PARAM)?;
        self.slots.get(at).and_then(BufferSlot::living).ok_or(Code::NO_SUCH_BUF)
    }

    /// The message of a number.
    ///
    /// # Errors
    /// The number is not positive, or nobody's.
    pub fn message_mut(&mut self, id: c_int) -> Result<&mut TypedMessage, Code> {
        let at = usize::try_from(id).ok().filter(|at| *at != 0).ok_or(Code::BAD_PARAM)?;
        self.slots.get_mut(at).and_then(BufferSlot::living_mut).ok_or(Code::NO_SUCH_BUF)
    }

    /// A message as it is sent.
    ///
    /// # Errors
    /// There is no such message; with number 0, which is that of no active message, no buffer.
    #[inline]
    pub fn outgoing(&self, id: c_int) -> Result<LeavingMessage<'_>, Code> {
        if id == 0 {
            return Err(Code::NO_BUF);
        }
        let message = self.message(id)?;
        Ok(LeavingMessage { encoding: message.encoding(), bytes: message.body() })
    }

    /// Notes where a message was sent to.
    #[inline]
    pub fn set_sent(&mut self, id: c_int, to: i32, tag: i32, context: i32) {
        if let Ok(message) = self.message_mut(id) {
            message.heading = MessageHeading { context, tag, destination: to, ..message.heading };
        }
    }

    /// The number of the message that is packed; 0: none.
    #[inline]
    pub fn active_send(&self) -> c_int {
        self.sending
    }

    /// The number of the message that is unpacked; 0: none.
    #[inline]
    pub fn active_receive(&self) -> c_int {
        self.receiving
    }

    /// Chooses the message that is packed, at its end; answers the one before. 0: none.
    ///
    /// # Errors
    /// There is no such message.
    pub fn set_active_send(&mut self, id: c_int) -> Result<c_int, Code> {
        if id != 0 {
            self.message_mut(id)?.pack_on();
            if self.receiving == id {
                self.receiving = 0;
            }
        }
        Ok(std::mem::replace(&mut self.sending, id))
    }

    /// Chooses the message that is unpacked; answers the one before. 0: none. One that has been unpacked goes on where
    /// that stopped.
    ///
    /// # Errors
    /// There is no such message.
    #[inline]
    pub fn set_active_receive(&mut self, id: c_int) -> Result<c_int, Code> {
        if id != 0 {
            self.message_mut(id)?.unpack_on();
            if self.sending == id {
                self.sending = 0;
            }
        }
        Ok(std::mem::replace(&mut self.receiving, id))
    }

    /// The message that is packed.
    ///
    /// # Errors
    /// There is none.
    #[inline]
    pub fn packed(&mut self) -> Result<&mut TypedMessage, Code> {
        self.slots.get_mut(self.sending as usize).and_then(BufferSlot::living_mut).ok_or(Code::NO_BUF)
    }

    /// The message that is unpacked.
    ///
    /// # Errors
    /// There is none.
    #[inline]
    pub fn unpacked(&mut self) -> Result<&mut TypedMessage, Code> {
        self.slots.get_mut(self.receiving as usize).and_then(BufferSlot::living_mut).ok_or(Code::NO_BUF)
    }

    /// Packs a message into the one that is packed: with its heading, or the body alone.
    ///
    /// # Errors
    /// There is no such message, none that is packed, or it is the same one.
    pub fn pack_nested(&mut self, id: c_int, with_heading: bool) -> Result<(), Code> {
        self.message(id)?;
        let sending = self.sending;
        if id == sending {
            return Err(Code::BAD_PARAM);
        }
        let mut into = std::mem::take(self.packed()?);
        let nested = self.message(id);
        let done = nested.and_then(|nested| match with_heading {
            true => into.pack_message(nested),
            false => into.pack_body(nested),
        });
        self.slots[sending as usize].message = into;
        done
    }

    /// Unpacks a message from the one that is unpacked.
    ///
    /// # Errors
    /// There is none that is unpacked, or no message in it.
    pub fn unpack_nested(&mut self) -> Result<c_int, Code> {
        let (encoding, body, heading) = self.unpacked()?.unpack_message()?;
        Ok(self.add(encoding, body, heading))
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self::new()
    }
}
