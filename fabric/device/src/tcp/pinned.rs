//! Long payloads that the kernel sends from where they are (`MSG_ZEROCOPY`, `msg_zerocopy.rst` of the kernel's documentation).
//!
//! It saves the sender a copy where the kernel makes each packet whole for a filter behind the driver, which is a copy already: 1 MiB
//! between two namespaces takes 169 us in the place of 215. Elsewhere it is not done: on a virtual cable without a filter the kernel
//! copies what arrives in smaller pieces (bare programs: 206 us, for 113), and with one in the driver each page of a packet costs
//! (1303, for 1267).
//!
//! The memory belongs to the kernel until it says that it has sent it and the other side has it. The end of each payload is copied,
//! so that nobody waits for a confirmation that the other side delays: it confirms what came before when more comes.

use super::socket::Socket;
use std::io::IoSlice;
use weft_wire::tcp::LARGEST_PACKET;

/// From here on it pays to have the kernel find the pages.
const LONG_BYTES: usize = 256 << 10;
/// So much of the end of a payload is copied.
const COPIED_BYTES: usize = 16 << 10;
// What is posted whole is complete at once, and must not be sent so.
const _: () = assert!(LONG_BYTES > LARGEST_PACKET && LONG_BYTES > COPIED_BYTES);

/// Of one connection: calls that were made so, and those that are over. The numbers wrap.
#[derive(Default)]
pub struct Pinned {
    begun: u32,
    over: u32,
}

impl Pinned {
    /// For a connection with which it may be done.
    pub fn of(socket: &Socket) -> Option<Self> {
        socket.allow_pinning().then(Self::default)
    }

    pub fn takes(&self, bulk: &[u8]) -> bool {
        bulk.len() >= LONG_BYTES
    }

    /// Sends a packet as far as there is room; how many bytes of it.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn write(&mut self, socket: &Socket, front: &[u8], bulk: &[u8]) -> std::io::Result<usize> {
        let begun = socket.write(&[IoSlice::new(front)], true)?;
        if begun < front.len() {
            return Ok(begun);
        }
        let (pinned, copied) = bulk.split_at(bulk.len() - COPIED_BYTES);
        let rest = match socket.write_pinned(pinned) {
            Some(sent) => {
                self.begun = self.begun.wrapping_add(1);
                if sent < pinned.len() {
                    return Ok(begun + sent);
                }
                copied
            }
            // The kernel may pin no more for us now.
            None => bulk,
        };
        // An end of the connection is noticed where it is read.
        let sent = socket.write(&[IoSlice::new(rest)], false).unwrap_or(0);
        Ok(begun + bulk.len() - rest.len() + sent)
    }

    /// Whether the kernel may still read what was sent so.
    pub fn is_under_way(&self) -> bool {
        self.over != self.begun
    }

    /// A mark that [`Self::has_passed`] when all is over that was begun before.
    pub fn mark(&self) -> u32 {
        self.begun
    }

    pub fn has_passed(&self, mark: u32) -> bool {
        self.over.wrapping_sub(mark) as i32 >= 0
    }

    /// Looks at what the kernel says; true if anything is over.
    pub fn look(&mut self, socket: &Socket) -> bool {
        let before = self.over;
        // They may come out of order where something was sent again. Its bytes are confirmed then, and what is said too early of them
        // is said of a copy on its way, which the other side takes no more.
        while self.over != self.begun
            && let Some(calls) = socket.take_notice()
        {
            self.over = self.over.wrapping_add(calls);
        }
        self.over != before
    }
}
