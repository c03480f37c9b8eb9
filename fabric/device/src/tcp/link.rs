//! The connection of a pair once both ranks have proven themselves: packets out of received bytes.

use super::sealed::Sealed;
use super::socket::{Read, TcpSocket};
use crate::contract::{Foreign, Packet, Sink, words_of};
use crate::copying::{CopyBuffer, PAGE_BYTES, is_slow_for_the_kernel};
use crate::sync::AtomicU64;
use std::io;
use weft_wire::cell::{Head, Kind};
use weft_wire::tcp::record::{MOST_BYTES, RecordKeys};
use weft_wire::tcp::{FRONT_BYTES, LARGEST_PACKET, TcpFrame};

/// Bytes that are received before they are handed on: a packet of the largest kind that is handed on whole and has come
/// in part, and room for as much again. Memory that is never written to costs nothing, so a peer that sends little
/// takes little.
const BUFFER_BYTES: usize = 2 * (LARGEST_PACKET + FRONT_BYTES) + PAGE_BYTES;
/// After a bulk payload of so many bytes another one is expected: then only so many are received at first, and the rest
/// where it is to go.
const LONG_BYTES: usize = 32 << 10;
const PEEK_BYTES: usize = 1 << 10;
/// Packets of one peer that are handed on before the next peer has its turn.
const PACKETS_PER_TURN: usize = 64;

/// How a turn has ended.
#[derive(Debug)]
pub enum LinkTurn {
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
pub struct TcpLink {
    pub socket: TcpSocket,
    buffer: CopyBuffer,
    /// What has been received and not handed on.
    from: usize,
    to: usize,
    /// So many bytes are still to come of the bulk payload whose first part was handed on.
    rest: usize,
    /// The last bulk payload was a long part of a stream, and the next may be.
    is_long: bool,
    /// The kernel could not write where the bytes of this payload go.
    is_kept_out: bool,
    /// Where the connection is encrypted: both ends of that.
    pub sealed: Option<Box<Sealed>>,
}

impl TcpLink {
    pub fn new(socket: TcpSocket, session: Option<RecordKeys>) -> Self {
        let sealed = session.map(|session| Box::new(Sealed::new(&session)));
        Self {
            socket,
            buffer: CopyBuffer::new(BUFFER_BYTES),
            from: 0,
            to: 0,
            rest: 0,
            is_long: false,
            is_kept_out: false,
            sealed,
        }
    }

    /// Takes in what has arrived and hands its packets on as those of `peer`.
    pub fn receive<S: Sink>(&mut self, peer: u32, sink: &mut S) -> LinkTurn {
        if let Some(turn) = self.receive_in_place(peer, sink) {
            return turn;
        }
        self.make_room();
        let peeks = self.is_long && self.rest == 0 && self.from == self.to;
        let most = if peeks { self.to + PEEK_BYTES } else { self.buffer.len() };
        let read = match &mut self.sealed {
            None => self.socket.read(&mut self.buffer[self.to..most]),
            Some(sealed) => sealed.read(&self.socket),
        };
        match read {
            Ok(Read::Bytes(count)) => {
                self.to += if self.sealed.is_none() { count } else { 0 };
                match self.hand_on(peer, sink) {
                    // What follows is there already, mostly.
                    turn @ LinkTurn::Moved { more: false } if peeks && count == PEEK_BYTES => {
                        let follows = self.receive_in_place(peer, sink);
                        follows.filter(|follows| !matches!(follows, LinkTurn::Quiet)).unwrap_or(turn)
                    }
                    turn => turn,
                }
            }
            Ok(Read::Nothing) => LinkTurn::Quiet,
            Ok(Read::End) => LinkTurn::Ended(None),
            Err(error) => LinkTurn::Ended(Some(error)),
        }
    }

    /// Receives more of a bulk payload where that is to go, which saves a copy of it, and the beginning of the next
    /// packet; `None` where that cannot be. Not where the kernel's copy would be a slow one: its bytes lie in their
    /// pages as those before lie in ours.
    fn receive_in_place<S: Sink>(&mut self, peer: u32, sink: &mut S) -> Option<LinkTurn> {
        if self.rest == 0 || self.from < self.to || self.sealed.is_some() || self.is_kept_out {
            return None;
        }
        let room = sink.room(peer)?;
        let at = room.at();
        if is_slow_for_the_kernel(self.to, at as usize) {
            return None;
        }
        let bytes = self.rest.min(room.bytes());
        let start = (self.to + bytes) % PAGE_BYTES;
        let behind = if bytes == self.rest { PEEK_BYTES } else { 0 };
        let count = match self.socket.read_into(&room, bytes, &mut self.buffer[start..start + behind]) {
            Ok(Read::Bytes(count)) => count,
            Ok(Read::Nothing) => return Some(LinkTurn::Quiet),
            Ok(Read::End) => return Some(LinkTurn::Ended(None)),
            // Not mapped, or watched by the program, which notices when we write there.
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                self.is_kept_out = true;
                return None;
            }
            Err(error) => return Some(LinkTurn::Ended(Some(error))),
        };
        let there = count.min(bytes);
        // SAFETY: the bytes are there, and outlive the call.
        if let Err(what) = self.hand_on_rest(peer, unsafe { Foreign::new(at, there) }, sink) {
            return Some(LinkTurn::Nonsense(what));
        }
        let end = (self.to + there) % PAGE_BYTES;
        (self.from, self.to) = (end, end + count - there);
        Some(self.hand_on(peer, sink))
    }

    /// Hands on a part of a bulk payload that is not the first.
    fn hand_on_rest<S: Sink>(&mut self, peer: u32, part: Foreign<'_>, sink: &mut S) -> Result<(), &'static str> {
        self.rest -= part.len();
        let head = Head::control(Kind::More);
        sink.handle_packet(Packet {
            from: peer,
            head,
            inline_bytes: 0,
            words: &words_of(&[]).map(AtomicU64::new),
            bulk: Some(part),
        })
    }

    /// Puts a packet that has come in part to the beginning, where the rest of it has room.
    fn make_room(&mut self) {
        if self.from == self.to && self.rest > 0 {
            let start = self.from % PAGE_BYTES;
            (self.from, self.to) = (start, start);
        } else if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.buffer.len() - self.from < LARGEST_PACKET + FRONT_BYTES {
            self.move_back();
        }
    }

    /// To where it lies in its page as before. The kernel keeps the bytes of a long message page by page, so those that
    /// come next lie to theirs as these did: at the beginning of a buffer, and not at one of the places where copies
    /// are slow ([`crate::copying`]).
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
    pub fn hand_on<S: Sink>(&mut self, peer: u32, sink: &mut S) -> LinkTurn {
        for _ in 0..PACKETS_PER_TURN {
            match self.hand_on_next(peer, sink) {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(what) => return LinkTurn::Nonsense(what),
            }
        }
        LinkTurn::Moved { more: true }
    }

    /// Hands on the next packet, or what is there of it; how the turn ends, if it does.
    fn hand_on_next<S: Sink>(&mut self, peer: u32, sink: &mut S) -> Result<Option<LinkTurn>, &'static str> {
        const OVER: LinkTurn = LinkTurn::Moved { more: false };
        let bytes = &self.buffer[self.from..self.to];
        if self.rest > 0 {
            let there = self.rest.min(bytes.len());
            if there == 0 {
                return Ok((!self.open_next()?).then_some(OVER));
            }
            // SAFETY: the bytes are ours, and nothing is received into them during the call.
            let part = unsafe { Foreign::new(bytes.as_ptr(), there) };
            self.from += there;
            return self.hand_on_rest(peer, part, sink).map(|()| None);
        }
        let (claim, inline_at, bulk) = match TcpFrame::decode(bytes)? {
            TcpFrame::Packet { claim, inline_at, bulk } => (claim, inline_at, bulk),
            TcpFrame::Begun { claim, inline_at, bulk } if claim.head.kind.is_streamed() && bytes.len() > bulk.at => {
                (claim, inline_at, Some(bulk))
            }
            TcpFrame::Farewell => return Ok(Some(LinkTurn::Farewell)),
            TcpFrame::Begun { .. } | TcpFrame::Partial { .. } => return Ok((!self.open_next()?).then_some(OVER)),
        };
        let inline = &bytes[inline_at..inline_at + claim.inline_bytes as usize];
        let end = bulk.map_or(inline_at + inline.len(), |bulk| bulk.end());
        let there = end.min(bytes.len());
        let packet = Packet {
            from: peer,
            head: claim.head,
            inline_bytes: inline.len(),
            words: &words_of(inline).map(AtomicU64::new),
            bulk: bulk.map(|bulk| {
                let bulk = &bytes[bulk.at..there];
                // SAFETY: the bytes are ours and outlive the call.
                unsafe { Foreign::new(bulk.as_ptr(), bulk.len()) }
            }),
        };
        sink.handle_packet(packet)?;
        self.is_kept_out = false;
        self.is_long = claim.head.kind.is_streamed() && bulk.is_some_and(|bulk| bulk.bytes >= LONG_BYTES);
        (self.from, self.rest) = (self.from + there, end - there);
        Ok(None)
    }
}
