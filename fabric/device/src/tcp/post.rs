//! Posting: packets into a connection, or into what waits for one.
//!
//! Long messages are streamed in packets of up to 1 MiB, each in one system call and as long as the kernel has room
//! for. [`super::link`] hands them on as they come.

use super::device::TcpDevice;
use super::peer::{Lately, TcpStanding};
use crate::contract::Posted;
use std::io::IoSlice;
use weft_wire::cell::Kind;
use weft_wire::tcp::{LARGEST_PACKET, LARGEST_STREAMED};

/// Packets up to this length wait for company where more may follow.
const SHORT_BYTES: usize = 512;
impl TcpDevice {
    /// Posts a packet: what stands before its bulk payload, and that.
    pub(super) fn post(&mut self, to: u32, front: &[u8], bulk: &[u8]) -> Posted {
        let peer = &mut self.peers[to as usize];
        if peer.standing != TcpStanding::Open {
            return self.refuse(to);
        }
        let bytes = front.len() + bulk.len();
        match &mut peer.link {
            Some(link) if peer.output.is_empty() => {
                let short = self.company.gathering && bytes <= SHORT_BYTES;
                let more = short && peer.lately != Lately::Nothing;
                let (front, bulk) = match &mut link.sealed {
                    None => (front, bulk),
                    Some(sealed) => (sealed.record_of(front, bulk), &[][..]),
                };
                // A connection that has ended is noticed where it is read, after all that came before its end.
                let parts = [IoSlice::new(front), IoSlice::new(bulk)];
                let Ok(sent) = link.socket.write(&parts, more) else { return Posted::Full };
                if more {
                    peer.lately = Lately::Held;
                } else if short {
                    peer.lately = Lately::Sent;
                    self.company.written.push(to);
                }
                if sent < front.len() + bulk.len() {
                    peer.output.add(front.get(sent..).unwrap_or_default());
                    peer.output.add(&bulk[sent.saturating_sub(front.len())..]);
                    self.waiting.push(to);
                }
            }
            link => {
                if !peer.output.has_room(bytes) {
                    return Posted::Full;
                }
                let dialled = link.is_some() || peer.dial.is_some();
                peer.add(front, bulk);
                if !dialled {
                    self.dial(to);
                }
            }
        }
        self.counters.packets += 1;
        self.counters.bytes += bytes as u64;
        Posted::Sent(bulk.len())
    }

    /// The longest bulk payload of a packet to a peer.
    pub(super) fn longest(&self, to: u32, kind: Kind, wanted: usize) -> usize {
        let peer = &self.peers[to as usize];
        match &peer.link {
            // What the kernel does not take is copied and waits, so not much more than it has room for; but more, or it
            // would never make more.
            Some(link)
                if wanted > LARGEST_PACKET && kind.is_streamed() && peer.output.is_empty() && link.sealed.is_none() =>
            {
                link.socket.room().map_or(LARGEST_STREAMED, |room| (room + LARGEST_PACKET).min(LARGEST_STREAMED))
            }
            _ => LARGEST_PACKET,
        }
    }

    /// Whether the peer has said farewell, also if it was given up later.
    pub fn took_leave(&self, rank: u32) -> bool {
        self.peers[rank as usize].took_leave
    }

    /// A post to a peer that takes nothing any more.
    #[cold]
    fn refuse(&mut self, to: u32) -> Posted {
        if self.peers[to as usize].standing == TcpStanding::Left {
            self.lose(to, "it has left the job, and takes no messages any more");
        }
        Posted::Full
    }
}
