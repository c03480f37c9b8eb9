//! What networks do to datagrams, done on purpose: for tests, by seed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Datagrams that come so long after their time.
const HELD: usize = 8;

/// Drops, doubles, spoils and holds back datagrams that arrive: of each so many in a thousand.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    pub dropped: u32,
    pub doubled: u32,
    pub spoilt: u32,
    pub held: u32,
    /// What chance begins with.
    pub seed: u64,
    /// While this is set, nothing arrives.
    cut: Option<Arc<AtomicBool>>,
    waiting: Vec<(SocketAddr, Vec<u8>)>,
    /// So many datagrams were dropped, doubled, spoilt and held.
    pub done: [u64; 4],
}

impl Faults {
    pub fn new(seed: u64, dropped: u32, doubled: u32, spoilt: u32, held: u32) -> Self {
        Self { dropped, doubled, spoilt, held, seed, ..Self::default() }
    }

    /// A network that is cut for as long as `cut` is set, and good otherwise.
    pub fn while_cut(cut: Arc<AtomicBool>) -> Self {
        Self { cut: Some(cut), ..Self::default() }
    }

    /// Whether it happens, what has so many chances in a thousand.
    fn chance(&mut self, of_thousand: u32) -> bool {
        self.next() % 1000 < u64::from(of_thousand)
    }

    /// SplitMix64 (Steele, Lea, Flood, 2014).
    fn next(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A datagram arrives.
    pub fn pass(&mut self, from: SocketAddr, datagram: &[u8], handle: &mut impl FnMut(SocketAddr, &[u8])) {
        if self.cut.as_ref().is_some_and(|cut| cut.load(Ordering::Relaxed)) || self.chance(self.dropped) {
            self.done[0] += 1;
            return;
        }
        let mut bytes = datagram.to_vec();
        if self.chance(self.spoilt) && !bytes.is_empty() {
            self.done[2] += 1;
            let at = self.next() as usize % bytes.len();
            bytes[at] ^= 1 << (self.next() % 8);
        }
        if self.chance(self.held) && self.waiting.len() < HELD {
            self.done[3] += 1;
            self.waiting.push((from, bytes));
            return;
        }
        handle(from, &bytes);
        if self.chance(self.doubled) {
            self.done[1] += 1;
            handle(from, &bytes);
        }
    }

    /// No more comes now: what was held does.
    pub fn release(&mut self, handle: &mut impl FnMut(SocketAddr, &[u8])) -> bool {
        let waiting = std::mem::take(&mut self.waiting);
        let any = !waiting.is_empty();
        waiting.into_iter().rev().for_each(|(from, datagram)| handle(from, &datagram));
        any
    }
}
