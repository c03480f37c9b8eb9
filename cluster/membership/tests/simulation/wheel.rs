//! What will happen when: a wheel of slots of a quarter of a millisecond, faster than a heap by far.

const SLOT_NS: u64 = 250_000;
/// Two seconds; what is later goes around again.
const SLOTS: u64 = 8192;

/// A datagram that arrives, or a timer that ends (`from` nobody).
#[derive(Debug)]
pub struct Happening {
    pub at_ns: u64,
    pub to: u32,
    pub from: Option<u32>,
    pub bytes: Vec<u8>,
}

pub struct Wheel {
    slots: Vec<Vec<Happening>>,
    /// The slot that is being taken from, and what remains in it, the next one last.
    slot: u64,
    current: Vec<Happening>,
}

impl Wheel {
    pub fn new(now_ns: u64) -> Self {
        let slots = (0..SLOTS).map(|_| Vec::new()).collect();
        Self { slots, slot: now_ns / SLOT_NS, current: Vec::new() }
    }

    /// What would fall into the slot of now comes with the next one.
    pub fn push(&mut self, due: Happening) {
        let slot = (due.at_ns / SLOT_NS).clamp(self.slot + 1, self.slot + SLOTS - 1);
        self.slots[(slot % SLOTS) as usize].push(due);
    }

    /// The next that is due before `end_ns`.
    pub fn next(&mut self, end_ns: u64) -> Option<Happening> {
        while self.current.is_empty() {
            if (self.slot + 1) * SLOT_NS >= end_ns {
                return None;
            }
            self.slot += 1;
            let at = (self.slot % SLOTS) as usize;
            std::mem::swap(&mut self.current, &mut self.slots[at]);
            let past_ns = (self.slot + 1) * SLOT_NS;
            if self.current.iter().any(|due| due.at_ns >= past_ns) {
                let (later, now): (Vec<Happening>, Vec<Happening>) =
                    self.current.drain(..).partition(|due| due.at_ns >= past_ns);
                self.current = now;
                later.into_iter().for_each(|due| self.push(due));
            }
            self.current.sort_unstable_by_key(|due| std::cmp::Reverse(due.at_ns));
        }
        self.current.pop()
    }
}
