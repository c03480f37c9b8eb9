//! What ends send each other, so that every byte can be checked.

use crate::random::Random;
use std::collections::VecDeque;
use std::sync::OnceLock;
use weft_protocol::reliable::LinkPacket;
use weft_wire::cell::{Head, Kind};

const PATTERN_BYTES: usize = 1 << 18;

/// Bytes from which all payloads are cut.
fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let mut random = Random::new(1);
        (0..PATTERN_BYTES).map(|_| random.next() as u8).collect()
    })
}

fn cut(at: usize, length: usize) -> &'static [u8] {
    &pattern()[at..at + length]
}

/// A packet, its payloads named by their place in the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    pub head: Head,
    inline: (usize, usize),
    bulk: (usize, usize),
}

impl Item {
    pub fn inline(&self) -> &'static [u8] {
        cut(self.inline.0, self.inline.1)
    }

    pub fn bulk(&self) -> Option<&'static [u8]> {
        (self.bulk.1 > 0).then(|| cut(self.bulk.0, self.bulk.1))
    }

    pub fn bytes(&self) -> u64 {
        (self.inline.1 + self.bulk.1) as u64
    }

    /// What was accepted of this packet, and what is left of it.
    pub fn split(self, accepted: usize) -> (Self, Option<Self>) {
        let (at, length) = self.bulk;
        let rest = Self { head: Head::control(Kind::More), inline: (0, 0), bulk: (at + accepted, length - accepted) };
        (Self { bulk: (at, accepted), ..self }, (accepted < length).then_some(rest))
    }

    pub fn check(&self, packet: &LinkPacket<'_>) {
        assert_eq!(packet.head, self.head);
        assert_eq!(packet.inline, self.inline());
        assert_eq!(packet.bulk[0].len() + packet.bulk[1].len(), self.bulk.1, "length of the bulk payload");
        let (first, second) = cut(self.bulk.0, self.bulk.1).split_at(packet.bulk[0].len());
        assert!(packet.bulk[0] == first && packet.bulk[1] == second, "bytes of the bulk payload");
    }
}

/// What one end wants to send.
pub enum Source {
    /// Bursts with pauses between them, and then the end: what is left, and when the next one may go.
    Bursts { random: Random, left: u32, next_ns: u64, pause_ns: u64, largest: u64 },
    /// As much as the link takes, in packets of so many bytes.
    Endless { bulk_bytes: usize },
    /// What is put there.
    Queue(VecDeque<Item>),
}

impl Source {
    pub fn poll(&mut self, now_ns: u64) -> Option<Item> {
        match self {
            Self::Endless { bulk_bytes } => Some(item(0, 8, *bulk_bytes)),
            Self::Queue(items) => items.pop_front(),
            Self::Bursts { left: 0, .. } => None,
            Self::Bursts { next_ns, .. } if *next_ns > now_ns => None,
            Self::Bursts { random, left, next_ns, pause_ns, largest } => {
                *left -= 1;
                if random.chance(100_000) {
                    *next_ns = now_ns + random.range(0, *pause_ns + 1);
                }
                let at = random.range(0, 1 << 16) as usize;
                let inline = random.range(0, 49) as usize;
                let bulk = if random.chance(300_000) { random.range(1, *largest + 1) as usize } else { 0 };
                Some(item(at, inline, bulk))
            }
        }
    }

    /// Whether nothing will come any more.
    pub fn is_dry(&self) -> bool {
        match self {
            Self::Bursts { left, .. } => *left == 0,
            Self::Queue(items) => items.is_empty(),
            Self::Endless { .. } => false,
        }
    }

    pub fn next_ns(&self) -> Option<u64> {
        match self {
            Self::Bursts { left, next_ns, .. } if *left > 0 => Some(*next_ns),
            _ => None,
        }
    }
}

pub fn item(at: usize, inline: usize, bulk: usize) -> Item {
    let head = Head { kind: Kind::Raw, context: at as u32, tag: -(at as i32), source: 7 };
    Item { head, inline: (at, inline), bulk: (at + 50, bulk) }
}
