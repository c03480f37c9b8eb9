//! Packets for a process of another job that were posted before it was known how they go there. Their bytes are copied,
//! so that who sends little need not wait for it.

use std::collections::VecDeque;
use weft_device::Posted;
use weft_device::shm::LARGEST_PACKET;
use weft_wire::cell::{CONTROL_WORDS, Head, INLINE_BYTES, Kind};

/// Posts are refused if more than so many bytes would wait.
const LIMIT_BYTES: usize = 2 * LARGEST_PACKET;
/// What a packet counts besides its bulk payload.
const PACKET_BYTES: usize = 128;

struct Packet {
    head: Head,
    inline: [u8; INLINE_BYTES],
    inline_bytes: usize,
    bulk: Vec<u8>,
    /// So many bytes of the bulk payload have left.
    gone: usize,
}

/// The packets for one process, in their order.
#[derive(Default)]
pub(super) struct Held {
    packets: VecDeque<Packet>,
    bytes: usize,
}

/// Where held packets go.
pub(super) trait Out {
    fn post(&mut self, head: Head, inline: &[u8], bulk: Option<&[u8]>) -> Posted;
}

impl Held {
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Keeps a packet, of its bulk payload as much as one packet takes.
    pub fn keep(&mut self, head: Head, inline: &[u8], bulk: Option<&[u8]>) -> Posted {
        let bulk = bulk.unwrap_or_default();
        let bulk = &bulk[..bulk.len().min(LARGEST_PACKET)];
        if self.bytes + PACKET_BYTES + bulk.len() > LIMIT_BYTES {
            return Posted::Full;
        }
        let mut packet =
            Packet { head, inline: [0; INLINE_BYTES], inline_bytes: inline.len(), bulk: bulk.to_vec(), gone: 0 };
        packet.inline[..inline.len()].copy_from_slice(inline);
        self.bytes += PACKET_BYTES + bulk.len();
        self.packets.push_back(packet);
        Posted::Sent(bulk.len())
    }

    /// Lets go what there is room for; true if anything has left.
    pub fn flush(&mut self, out: &mut impl Out) -> bool {
        let mut any = false;
        while let Some(packet) = self.packets.front_mut() {
            let rest = &packet.bulk[packet.gone..];
            let posted = match packet.gone {
                0 => {
                    let bulk = (!rest.is_empty()).then_some(rest);
                    out.post(packet.head, &packet.inline[..packet.inline_bytes], bulk)
                }
                // A protocol beside port knows the rest by that it has no control words.
                _ if !packet.head.kind.is_of_port() => out.post(packet.head, &[], Some(rest)),
                _ => out.post(Head::control(Kind::More), &[], Some(rest)),
            };
            let Posted::Sent(piece) = posted else { break };
            any = true;
            packet.gone += piece;
            if packet.gone == packet.bulk.len() {
                self.bytes -= PACKET_BYTES + packet.bulk.len();
                self.packets.pop_front();
            }
        }
        any
    }
}

/// Inline payload as control words.
pub(super) fn words_of(inline: &[u8]) -> ([u64; CONTROL_WORDS], usize) {
    let mut words = [0; CONTROL_WORDS];
    for (word, bytes) in words.iter_mut().zip(inline.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    (words, inline.len() / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes of bulk at a time, and so many packets.
    struct Narrow {
        piece: usize,
        packets: usize,
        seen: Vec<(Kind, usize, Vec<u8>)>,
    }

    impl Out for Narrow {
        fn post(&mut self, head: Head, inline: &[u8], bulk: Option<&[u8]>) -> Posted {
            if self.packets == 0 {
                return Posted::Full;
            }
            self.packets -= 1;
            let bulk = bulk.unwrap_or_default();
            let piece = bulk.len().min(self.piece);
            self.seen.push((head.kind, inline.len(), bulk[..piece].to_vec()));
            Posted::Sent(piece)
        }
    }

    #[test]
    fn what_is_held_leaves_in_its_order_and_in_pieces_as_there_is_room() {
        let mut held = Held::default();
        assert_eq!(held.keep(Head::control(Kind::Short), &[1; 9], None), Posted::Sent(0));
        assert_eq!(held.keep(Head::control(Kind::Eager), &[2; 8], Some(&[7; 10])), Posted::Sent(10));
        assert_eq!(held.keep(Head::control(Kind::Raw), &[], Some(&[8; 5])), Posted::Sent(5));
        let mut out = Narrow { piece: 4, packets: 3, seen: Vec::new() };
        assert!(held.flush(&mut out) && !held.is_empty());
        assert!(!held.flush(&mut out), "there is no room");
        out.packets = 10;
        assert!(held.flush(&mut out) && held.is_empty());
        let seen: Vec<_> = out.seen.iter().map(|(kind, inline, bulk)| (*kind, *inline, bulk.len())).collect();
        let more = Kind::More;
        let wanted = [(Kind::Short, 9, 0), (Kind::Eager, 8, 4), (more, 0, 4), (more, 0, 2), (Kind::Raw, 0, 4)];
        assert_eq!((&seen[..5], &seen[5..]), (&wanted[..], &[(Kind::Raw, 0, 1)][..]));
    }

    #[test]
    fn no_more_is_held_than_the_limit() {
        let mut held = Held::default();
        assert_eq!(held.keep(Head::control(Kind::Eager), &[0; 8], Some(&[1; 100_000])), Posted::Sent(LARGEST_PACKET));
        while held.keep(Head::control(Kind::Short), &[], None) != Posted::Full {}
        assert!(held.bytes <= LIMIT_BYTES && held.bytes > LIMIT_BYTES - PACKET_BYTES);
    }
}
