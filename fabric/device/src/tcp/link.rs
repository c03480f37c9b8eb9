//! The connection of a pair once both ranks have proven themselves: packets out of received bytes.

use super::sealed::Sealed;
use super::socket::{Read, Socket};
use crate::contract::{Foreign, Packet, Sink};
use crate::copying::{Buffer, PAGE_BYTES};
use crate::sync::AtomicU64;
use std::io;
use weft_wire::cell::INLINE_WORDS;
use weft_wire::tcp::record::{MOST_BYTES, Session};
use weft_wire::tcp::{FRONT_BYTES, Frame, LARGEST_PACKET};

/// Bytes that are received before they are handed on: a packet of the largest kind that has come in part, and room for as
/// much again. Memory that is never written to costs nothing, so a peer that sends little takes little.
const BUFFER_BYTES: usize = 2 * (LARGEST_PACKET + FRONT_BYTES) + PAGE_BYTES;
/// Packets of one peer that are handed on before the next peer has its turn.
const PACKETS_PER_TURN: usize = 64;

/// How a turn has ended.
#[derive(Debug)]
pub enum Turn {
    /// Nothing was there.
    Quiet,
    /// Packets were handed on; if `more`, whole ones are still in the buffer.
    Moved { more: bool },
    /// The peer has taken its leave.
    Farewell,
    /// The connection has ended without one.
    Ended(Option<io::Error>),
    /// The peer has broken a rule.
    Nonsense(&'static str),
}

/// The receiving side of a connection.
pub struct Link {
    pub socket: Socket,
    buffer: Buffer,
    /// What has been received and not handed on.
    from: usize,
    to: usize,
    /// Where the connection is encrypted: both ends of that.
    pub sealed: Option<Box<Sealed>>,
}

impl Link {
    pub fn new(socket: Socket, session: Option<Session>) -> Self {
        let sealed = session.map(|session| Box::new(Sealed::new(&session)));
        Self { socket, buffer: Buffer::new(BUFFER_BYTES), from: 0, to: 0, sealed }
    }

    /// Takes in what has arrived and hands its packets on as those of `peer`.
    pub fn receive<S: Sink>(&mut self, peer: u32, sink: &mut S) -> Turn {
        self.make_room();
        let read = match &mut self.sealed {
            None => self.socket.read(&mut self.buffer[self.to..]),
            Some(sealed) => sealed.read(&self.socket),
        };
        match read {
            Ok(Read::Bytes(count)) => {
                self.to += if self.sealed.is_none() { count } else { 0 };
                self.hand_on(peer, sink)
            }
            Ok(Read::Nothing) => Turn::Quiet,
            Ok(Read::End) => Turn::Ended(None),
            Err(error) => Turn::Ended(Some(error)),
        }
    }

    /// Puts a packet that has come in part to the beginning, where the rest of it has room.
    fn make_room(&mut self) {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.buffer.len() - self.from < LARGEST_PACKET + FRONT_BYTES {
            self.move_back();
        }
    }

    /// To where it lies in its page as before. The kernel keeps the bytes of a long message page by page, so those that
    /// come next lie to theirs as these did: at the beginning of a buffer, and not at one of the places where copies are slow
    /// ([`crate::copying`]).
    fn move_back(&mut self) {
        let start = self.from % PAGE_BYTES;
        self.buffer.copy_within(self.from..self.to, start);
        (self.from, self.to) = (start, start + self.to - self.from);
    }

    /// Decrypts the next record, if one has come whole; true if there is more in the buffer now.
    fn open_next(&mut self) -> Result<bool, &'static str> {
        if self.sealed.is_none() {
            return Ok(false);
        }
        // A packet that has come in part is shorter than the largest, so that the largest piece has room behind it.
        if self.buffer.len() - self.to < MOST_BYTES {
            self.move_back();
        }
        let Some(sealed) = &mut self.sealed else { return Ok(false) };
        let count = sealed.open_next(&mut self.buffer[self.to..])?;
        self.to += count;
        Ok(count > 0)
    }

    /// Hands on packets that are in the buffer.
    pub fn hand_on<S: Sink>(&mut self, peer: u32, sink: &mut S) -> Turn {
        for _ in 0..PACKETS_PER_TURN {
            let bytes = &self.buffer[self.from..self.to];
            match Frame::decode(bytes) {
                Ok(Frame::Packet { claim, inline_at, bulk }) => {
                    let inline = &bytes[inline_at..inline_at + claim.inline_bytes as usize];
                    let words = words_of(inline);
                    let packet = Packet {
                        from: peer,
                        head: claim.head,
                        inline_bytes: inline.len(),
                        words: &words,
                        bulk: bulk.map(|bulk| {
                            let bulk = &bytes[bulk.at..bulk.at + bulk.bytes];
                            // SAFETY: the bytes are ours and outlive the call.
                            unsafe { Foreign::new(bulk.as_ptr(), bulk.len()) }
                        }),
                    };
                    if let Err(what) = sink.handle_packet(packet) {
                        return Turn::Nonsense(what);
                    }
                    self.from += bulk.map_or(inline_at + inline.len(), |bulk| bulk.at + bulk.bytes);
                }
                Ok(Frame::Farewell) => return Turn::Farewell,
                Ok(Frame::Partial { .. }) => match self.open_next() {
                    Ok(true) => {}
                    Ok(false) => return Turn::Moved { more: false },
                    Err(what) => return Turn::Nonsense(what),
                },
                Err(what) => return Turn::Nonsense(what),
            }
        }
        Turn::Moved { more: true }
    }
}

/// Inline payload as the words of a cell.
fn words_of(inline: &[u8]) -> [AtomicU64; INLINE_WORDS] {
    let mut words = [0; INLINE_WORDS];
    for (word, bytes) in words.iter_mut().zip(inline.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
    words.map(AtomicU64::new)
}
