//! `loopback`: endpoints of one process, joined by queues. The reference of the contract.

use crate::contract::{Capabilities, Device, Foreign, Packet, PeerFault, Posted, Sink, words_of};
use crate::sync::AtomicU64;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use weft_wire::cell::{Head, INLINE_WORDS};

/// Packets that a queue holds before posting answers [`Posted::Full`].
const QUEUE_PACKETS: usize = 64;
/// Largest bulk payload of one packet, bytes.
const LARGEST_PACKET: usize = 4096;

struct LoopedPacket {
    head: Head,
    inline_bytes: usize,
    words: [u64; INLINE_WORDS],
    bulk: Option<Vec<u8>>,
}

type Queue = Arc<Mutex<VecDeque<LoopedPacket>>>;

/// One endpoint of a loopback network.
pub struct Loopback {
    me: usize,
    outgoing: Vec<Queue>,
    incoming: Vec<Queue>,
    /// Peers that broke the rules of the protocol above.
    broken: Vec<bool>,
}

impl Loopback {
    /// A network of `n` endpoints, each with a queue to every one (itself included).
    pub fn network(n: u32) -> Vec<Self> {
        let n = n as usize;
        let queues: Vec<Vec<Queue>> = (0..n).map(|_| (0..n).map(|_| Queue::default()).collect()).collect();
        (0..n)
            .map(|me| Self {
                me,
                outgoing: queues[me].clone(),
                incoming: (0..n).map(|from| queues[from][me].clone()).collect(),
                broken: vec![false; n],
            })
            .collect()
    }

    pub fn me(&self) -> u32 {
        self.me as u32
    }

    fn push(&mut self, to: u32, packet: impl FnOnce() -> LoopedPacket) -> bool {
        let mut queue = self.outgoing[to as usize].lock().expect("no holder panics");
        if queue.len() >= QUEUE_PACKETS {
            return false;
        }
        queue.push_back(packet());
        true
    }
}

impl Device for Loopback {
    const CAPABILITIES: Capabilities = Capabilities::plain(LARGEST_PACKET);

    unsafe fn post_short(&mut self, to: u32, head: Head, data: *const u8, length: usize) -> Posted {
        let sent = self.push(to, || {
            // SAFETY: the caller's promise; an empty range may come with any pointer.
            let bytes = if length == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(data, length) } };
            LoopedPacket { head, inline_bytes: length, words: words_of(bytes), bulk: None }
        });
        if sent { Posted::Sent(0) } else { Posted::Full }
    }

    unsafe fn post_bulk(&mut self, to: u32, head: Head, control: &[u64], data: *const u8, length: usize) -> Posted {
        let piece = length.min(LARGEST_PACKET);
        let sent = self.push(to, || {
            let mut words = [0; INLINE_WORDS];
            words[..control.len()].copy_from_slice(control);
            words[INLINE_WORDS - 1] = piece as u64;
            // SAFETY: piece <= length, readable by the caller's promise.
            let bytes = unsafe { std::slice::from_raw_parts(data, piece) }.to_vec();
            LoopedPacket { head, inline_bytes: control.len() * 8, words, bulk: Some(bytes) }
        });
        if sent { Posted::Sent(piece) } else { Posted::Full }
    }

    fn poll<S: Sink>(&mut self, sink: &mut S) -> bool {
        let mut any = false;
        let broken = &mut self.broken;
        for (from, queue) in self.incoming.iter().enumerate() {
            for _ in 0..QUEUE_PACKETS {
                if broken[from] {
                    break;
                }
                let Some(packet) = queue.lock().expect("no holder panics").pop_front() else { break };
                any = true;
                let words = packet.words.map(AtomicU64::new);
                let answer = sink.handle_packet(Packet {
                    from: from as u32,
                    head: packet.head,
                    inline_bytes: packet.inline_bytes,
                    words: &words,
                    // SAFETY: the vector outlives the call.
                    bulk: packet.bulk.as_deref().map(|b| unsafe { Foreign::new(b.as_ptr(), b.len()) }),
                });
                if let Err(what) = answer {
                    broken[from] = true;
                    sink.handle_fault(PeerFault::Nonsense { peer: from as u32, what });
                }
            }
        }
        any
    }

    fn takes_whole(&mut self, to: u32, length: usize) -> bool {
        let room = QUEUE_PACKETS - self.outgoing[to as usize].lock().expect("no holder panics").len();
        length <= LARGEST_PACKET && room > 0
    }

    fn has_ended(&self, peer: u32) -> bool {
        self.broken[peer as usize]
    }

    /// Nobody is woken by a queue.
    fn arm(&mut self) -> bool {
        false
    }
}
