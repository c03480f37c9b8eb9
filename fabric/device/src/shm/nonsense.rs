//! A peer that writes anything anywhere in what it shares with us: the worst is a fault of that peer.

use super::ring::{LARGEST_PACKET, borrowed_word};
use super::views::PairView;
use super::{Copied, CopyJob, Direction, Segment, ShmDevice};
use crate::contract::{Device, Packet, PeerFault, Posted, Sink};
use crate::sync::Ordering;
use weft_wire::cell::{Head, Kind, stamp};
use weft_wire::segment::{BULK_BYTES, RING_CELLS};

const VICTIM: u32 = 0;
const ROGUE: u32 = 1;
const GOOD: u32 = 2;

#[derive(Default)]
struct Counting {
    next: i32,
    from_rogue: usize,
    faults: Vec<PeerFault>,
}

impl Sink for Counting {
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), &'static str> {
        // Everything that can be touched is touched, so that the address sanitizer sees it.
        let mut place = vec![0u8; packet.inline_bytes];
        // SAFETY: as long as the payload.
        unsafe { packet.copy_inline(place.as_mut_ptr(), place.len()) };
        if let Some(bulk) = packet.bulk {
            let mut place = vec![0u8; bulk.len()];
            // SAFETY: as long as the payload.
            unsafe { bulk.copy_to(place.as_mut_ptr(), place.len()) };
        }
        if packet.from == GOOD {
            assert_eq!(packet.head.tag, self.next, "order of the others");
            self.next += 1;
        } else {
            assert_eq!(packet.from, ROGUE);
            assert!(self.faults.is_empty(), "nothing arrives after a fault");
            self.from_rogue += 1;
        }
        Ok(())
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        self.faults.push(fault);
    }
}

fn three() -> (Segment, Vec<ShmDevice>) {
    let segment = Segment::create(3).expect("segment");
    let net = (0..3).map(|me| ShmDevice::join(segment.clone(), me).expect("join")).collect();
    (segment, net)
}

struct NonsenseRandom(u64);

impl NonsenseRandom {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Mostly numbers that lie near what code compares with.
    fn tempting(&mut self) -> u64 {
        let near =
            [0, 1, 48, 64, 8192, RING_CELLS as u64, BULK_BYTES as u64, u32::MAX as u64, i64::MAX as u64, u64::MAX];
        match self.next() % 4 {
            3 => borrowed_word(self.next() as usize % (2 * BULK_BYTES), self.next() as usize % (2 * LARGEST_PACKET)),
            0 => near[self.next() as usize % near.len()].wrapping_add(self.next() % 3).wrapping_sub(1),
            1 => self.next(),
            _ => self.next() % 300,
        }
    }
}

/// Scribbles over one random place of what the rogue sends to the victim.
fn scribble(random: &mut NonsenseRandom, pair: &PairView) {
    let value = random.tempting();
    match random.next() % 16 {
        0 => pair.credits.cells.store(value, Ordering::Relaxed),
        1 if value.is_multiple_of(2) => pair.credits.bulk.store(value, Ordering::Relaxed),
        1 => pair.credits.borrowed.store(value, Ordering::Relaxed),
        2 => pair.starved.store(value as u32, Ordering::Relaxed),
        3 | 4 => {
            let slot = &pair.slots[random.next() as usize % pair.slots.len()];
            slot.taken.store(value as u32, Ordering::Relaxed);
            slot.failed.store(random.next() as u32, Ordering::Relaxed);
            slot.claimed.store(random.tempting(), Ordering::Relaxed);
            slot.finished.store(random.tempting(), Ordering::Relaxed);
        }
        5 => {
            let at = random.next() as usize % (BULK_BYTES - 8);
            // SAFETY: inside the bulk area.
            unsafe { pair.bulk.add(at).cast::<u64>().write_unaligned(value) };
        }
        choice => {
            let cell = &pair.cells[random.next() as usize % RING_CELLS];
            let plausible = (random.next() % 12) << 8 | (random.next() % 52) << 16 | ((random.next() % 3) & 1) << 24;
            let first = if choice < 8 { value } else { plausible | stamp(random.next() % 3) as u64 };
            for word in &cell.inline {
                word.store(random.tempting(), Ordering::Relaxed);
            }
            cell.head[0].store(first, Ordering::Release);
        }
    }
}

fn one_life(seed: u64) -> Counting {
    let (segment, mut net) = three();
    let mut random = NonsenseRandom(seed.wrapping_mul(2) + 1);
    let (to_victim, to_rogue) = (segment.views.pair(ROGUE, VICTIM), segment.views.pair(VICTIM, ROGUE));
    let mailbox = segment.views.mailbox(VICTIM, true);
    let mut sink = Counting::default();
    let mut posted = 0;
    let data = vec![7u8; 9000];
    let control = Head::control(Kind::Raw);
    for _ in 0..3000 {
        match random.next() % 8 {
            0..3 => scribble(&mut random, &to_victim),
            3 => scribble(&mut random, &to_rogue),
            4 => {
                mailbox.active[0].fetch_or(random.next() | 1 << ROGUE, Ordering::SeqCst);
                if random.next().is_multiple_of(4) {
                    mailbox.active[0].fetch_and(1 << GOOD | random.next(), Ordering::SeqCst);
                }
                mailbox.doorbell.store(random.tempting() as u32, Ordering::SeqCst);
            }
            5 => {
                let head = Head { tag: posted, ..control };
                let length = 1 + random.next() as usize % 9000;
                // SAFETY: the data is that long. The good one and the victim, whose posts end in the rogue's ring.
                let sent = unsafe { net[GOOD as usize].post_bulk(VICTIM, head, &[], data.as_ptr(), length) };
                posted += (sent != Posted::Full) as i32;
                // SAFETY: as above.
                unsafe { net[VICTIM as usize].post_bulk(ROGUE, control, &[1, 2], data.as_ptr(), length) };
            }
            6 => {
                net[VICTIM as usize].arm();
                net[VICTIM as usize].disarm();
            }
            _ => {
                net[VICTIM as usize].poll(&mut sink);
            }
        }
    }
    for _ in 0..2 * RING_CELLS {
        net[VICTIM as usize].poll(&mut sink);
    }
    assert_eq!(sink.next, posted, "the others do not notice");
    assert!(sink.faults.iter().all(|fault| fault.peer() == ROGUE) && sink.faults.len() <= 1);
    sink
}

#[test]
fn scribbling_faults_the_scribbler_and_nobody_else() {
    let lives: Vec<Counting> = (0..60).map(one_life).collect();
    assert!(lives.iter().filter(|life| !life.faults.is_empty()).count() > 10, "the nonsense is noticed");
    assert!(lives.iter().map(|life| life.from_rogue).sum::<usize>() > 10, "some of it looks like packets");
}

/// The victim's answer to one cell of the rogue.
fn answer_to(first: u64, last: u64) -> Counting {
    let (segment, mut net) = three();
    let cell = &segment.views.pair(ROGUE, VICTIM).cells[0];
    cell.inline[5].store(last, Ordering::Relaxed);
    cell.head[0].store(first | stamp(0) as u64, Ordering::Release);
    segment.views.mailbox(VICTIM, true).announce(ROGUE);
    let mut sink = Counting::default();
    for _ in 0..3 {
        net[VICTIM as usize].poll(&mut sink);
    }
    sink
}

#[test]
fn a_bulk_length_that_nobody_could_have_sent_is_a_fault() {
    let first = Head::control(Kind::More).first_word(0, true);
    for length in [0, LARGEST_PACKET as u64 + 1, 65_536, 65_537, u32::MAX as u64 + 1, u64::MAX - 63, u64::MAX] {
        let sink = answer_to(first, length);
        assert_eq!((sink.faults.len(), sink.from_rogue), (1, 0), "length {length}");
    }
    assert_eq!(answer_to(first, LARGEST_PACKET as u64).from_rogue, 1);
}

#[test]
fn an_answer_in_bytes_that_were_not_lent_is_a_fault() {
    let first = Head::control(Kind::More).first_word(0, true);
    for (offset, length) in [(0, 64), (0, 0), (64, LARGEST_PACKET), (BULK_BYTES, 64), ((1 << 30) - 1, 1)] {
        let sink = answer_to(first, borrowed_word(offset, length));
        assert_eq!((sink.faults.len(), sink.from_rogue), (1, 0), "{length} bytes at {offset}");
    }
}

#[test]
fn a_header_that_nobody_could_have_sent_is_a_fault() {
    for first in [0, (Kind::Other as u64 + 1) << 8, 0xff << 8, 1 << 8 | 49 << 16, 1 << 8 | 255 << 16, 1 << 8 | 2 << 24]
    {
        let sink = answer_to(first, 0);
        assert_eq!((sink.faults.len(), sink.from_rogue), (1, 0), "first word {first:#x}");
    }
}

#[test]
fn credits_for_what_was_never_sent_are_not_believed() {
    let (segment, mut net) = three();
    let credits = segment.views.pair(VICTIM, ROGUE).credits;
    let data = [1u8; 48];
    let mut sent = 0;
    // SAFETY: the data is that long.
    while unsafe { net[0].post_short(ROGUE, Head::control(Kind::Raw), data.as_ptr(), 48) } != Posted::Full {
        sent += 1;
    }
    assert_eq!(sent, RING_CELLS);
    for claim in [RING_CELLS as u64 + 1, u64::MAX, 1 << 63] {
        credits.cells.store(claim, Ordering::Release);
        // SAFETY: the data is that long.
        let posted = unsafe { net[0].post_short(ROGUE, Head::control(Kind::Raw), data.as_ptr(), 48) };
        assert_eq!(posted, Posted::Full, "claim {claim}");
    }
}

#[test]
fn copy_slots_full_of_nonsense_never_lead_outside_the_buffer() {
    let (segment, net) = three();
    let slots = net[VICTIM as usize].copy_slots();
    let shared = segment.views.pair(ROGUE, VICTIM).slots;
    let source = vec![5u8; 300_000];
    let mut random = NonsenseRandom(77);
    for _ in 0..300 {
        let mut target = vec![0u8; 300_000].into_boxed_slice();
        let Some(slot) = slots.take(ROGUE) else {
            for slot in shared {
                slot.taken.store(0, Ordering::Relaxed);
            }
            continue;
        };
        let job = CopyJob {
            slot,
            pid: std::process::id() as i32,
            local: target.as_mut_ptr(),
            remote: if random.next().is_multiple_of(4) { random.next() } else { source.as_ptr() as u64 },
            bytes: target.len() as u64,
            direction: Direction::Pull,
            shown: None,
        };
        let at = &shared[slot.index as usize];
        for _ in 0..8 {
            if random.next().is_multiple_of(2) {
                at.claimed.store((slot.generation as u64) << 32 | random.tempting() & 0xffff_ffff, Ordering::Relaxed);
                at.finished.store(random.tempting(), Ordering::Relaxed);
            }
            // SAFETY: the target has that many bytes.
            if unsafe { job.step() } == Copied::NothingLeft {
                break;
            }
        }
    }
    assert!(slots.granted(ROGUE, 12, 0).is_none() && slots.granted(ROGUE, u32::MAX, 0).is_none());
}
