//! Posting: packets into a connection, or into what waits for one.

use super::device::{Lately, Standing, TcpDevice, inline_of};
use crate::contract::Posted;
use crate::copying;
use std::io::IoSlice;
use weft_wire::cell::{CONTROL_WORDS, Head};
use weft_wire::tcp::{Front, LARGEST_PACKET};

/// Packets up to this length wait for company where more may follow.
const SHORT_BYTES: usize = 512;
/// From here on it matters where a payload stands.
const LONG_BYTES: usize = 4096;
/// Packets that leave in one system call at most.
const TRAIN: usize = 8;

/// A packet: what stands before its bulk payload, and that.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    pub front: &'a [u8],
    pub bulk: &'a [u8],
}

impl Piece<'_> {
    fn bytes(&self) -> usize {
        self.front.len() + self.bulk.len()
    }
}

/// What the kernel has taken of some packets.
struct Taken {
    /// Packets of which at least the beginning has left, and the bytes of all of them.
    packets: usize,
    bytes: usize,
}

/// The first packet counts as taken, whatever has left of it: the rest of it waits.
fn taken(pieces: &[Piece<'_>], sent: usize) -> Taken {
    let mut taken = Taken { packets: 0, bytes: 0 };
    for piece in pieces {
        if taken.packets > 0 && sent <= taken.bytes {
            break;
        }
        taken = Taken { packets: taken.packets + 1, bytes: taken.bytes + piece.bytes() };
    }
    taken
}

impl TcpDevice {
    /// Posts the first of these packets, and as many of the others as leave with it in the same system call; answers how
    /// many bytes of bulk payload those have.
    pub(super) fn post(&mut self, to: u32, pieces: &[Piece<'_>]) -> Posted {
        let peer = &mut self.peers[to as usize];
        if peer.standing != Standing::Open {
            return self.refuse(to);
        }
        let count = match &mut peer.link {
            Some(link) if peer.output.is_empty() => {
                let short = self.gathering && pieces[0].bytes() <= SHORT_BYTES;
                let more = short && peer.lately != Lately::Nothing;
                let record;
                let pieces = match &mut link.sealed {
                    None => pieces,
                    Some(sealed) => {
                        record = [Piece { front: sealed.record_of(pieces[0].front, pieces[0].bulk), bulk: &[] }];
                        &record[..]
                    }
                };
                let mut parts = [IoSlice::new(&[]); 2 * TRAIN];
                for (parts, piece) in parts.chunks_exact_mut(2).zip(pieces) {
                    (parts[0], parts[1]) = (IoSlice::new(piece.front), IoSlice::new(piece.bulk));
                }
                // A connection that has ended is noticed where it is read, after all that came before its end.
                let Ok(sent) = link.socket.write(&parts[..2 * pieces.len()], more) else { return Posted::Full };
                if more {
                    peer.lately = Lately::Held;
                } else if short {
                    peer.lately = Lately::Sent;
                    self.written.push(to);
                }
                let taken = taken(pieces, sent);
                if sent < taken.bytes {
                    let Piece { front, bulk } = pieces[taken.packets - 1];
                    let left = front.len() + bulk.len() - (taken.bytes - sent);
                    peer.output.add(front.get(left..).unwrap_or_default());
                    peer.output.add(&bulk[left.saturating_sub(front.len())..]);
                    self.waiting.push(to);
                }
                taken.packets
            }
            link => {
                if !peer.output.has_room(pieces[0].bytes()) {
                    return Posted::Full;
                }
                let dialled = link.is_some() || peer.dial.is_some();
                peer.add(pieces[0].front, pieces[0].bulk);
                if !dialled {
                    self.dial(to);
                }
                1
            }
        };
        let pieces = &pieces[..count];
        self.counters.packets += count as u64;
        self.counters.bytes += pieces.iter().map(|piece| piece.bytes() as u64).sum::<u64>();
        Posted::Sent(pieces.iter().map(|piece| piece.bulk.len()).sum())
    }

    /// Posts a packet with bulk payload, and the rest of that in packets which have nothing but the header `next` before
    /// it, as many as leave in the same system call. Answers how many bytes of bulk payload that are: whole packets, or all.
    ///
    /// Where sender and receiver meet at a socket for each packet of a long message, each makes the other wait: between two
    /// namespaces 1 MiB took 204 us in calls of 64 KiB, and 130 in calls of 512.
    ///
    /// # Safety
    /// As [`crate::Device::post_bulk`].
    pub unsafe fn post_train(
        &mut self,
        to: u32,
        head: Head,
        control: &[u64],
        next: Head,
        data: *const u8,
        length: usize,
    ) -> Posted {
        debug_assert!(control.len() <= CONTROL_WORDS && length > 0);
        // SAFETY: readable by the caller's promise.
        let data = unsafe { std::slice::from_raw_parts(data, length.min(TRAIN * LARGEST_PACKET)) };
        let (bulk, rest) = data.split_at(data.len().min(LARGEST_PACKET));
        let first = Front::new(head, &inline_of(control)[..control.len() * 8], Some(bulk.len()));
        let first = well_placed(first, bulk, 0);
        let first = Piece { front: first.bytes(), bulk };
        if rest.is_empty() {
            return self.post(to, &[first]);
        }
        let mut fronts = [Front::new(next, &[], Some(LARGEST_PACKET)); TRAIN - 1];
        let mut at = first.bytes();
        for (front, bulk) in fronts.iter_mut().zip(rest.chunks(LARGEST_PACKET)) {
            *front = well_placed(Front::new(next, &[], Some(bulk.len())), bulk, at);
            at += front.bytes().len() + bulk.len();
        }
        let mut pieces = [first; TRAIN];
        for ((piece, front), bulk) in pieces[1..].iter_mut().zip(&fronts).zip(rest.chunks(LARGEST_PACKET)) {
            *piece = Piece { front: front.bytes(), bulk };
        }
        self.post(to, &pieces[..data.len().div_ceil(LARGEST_PACKET)])
    }

    /// A post to a peer that takes nothing any more.
    #[cold]
    fn refuse(&mut self, to: u32) -> Posted {
        if self.peers[to as usize].standing == Standing::Left {
            self.lose(to, "it has left the job, and takes no messages any more");
        }
        Posted::Full
    }
}

/// The front of a packet before which `at` bytes of the same call stand, with a gap where the kernel would be slow to copy
/// the payload otherwise: it keeps the bytes of a call from the beginning of a page on, unless some of the last are not gone.
fn well_placed(front: Front, bulk: &[u8], at: usize) -> Front {
    if bulk.len() < LONG_BYTES {
        return front;
    }
    let (from, to) = (bulk.as_ptr() as usize, at + front.bytes().len());
    // Tests have gaps on every processor.
    let is_slow = if cfg!(test) { copying::is_slow(from, to) } else { copying::is_slow_for_the_kernel(from, to) };
    if is_slow { front.with_gap() } else { front }
}

/// The most that one call of [`TcpDevice::post_train`] takes.
pub const TRAIN_BYTES: usize = TRAIN * LARGEST_PACKET;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_which_nothing_has_left_are_not_taken_but_the_first() {
        let (front, bulk) = ([0; 40], [0; 60]);
        let pieces = [Piece { front: &front, bulk: &bulk }; 3];
        for (sent, packets) in [(0, 1), (1, 1), (99, 1), (100, 1), (101, 2), (200, 2), (201, 3), (300, 3)] {
            let taken = taken(&pieces, sent);
            assert_eq!((taken.packets, taken.bytes), (packets, packets * 100), "{sent} bytes have left");
        }
    }
}
