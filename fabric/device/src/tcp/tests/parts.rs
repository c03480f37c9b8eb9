//! Parts of streams that are received where they are to go.

use super::*;
use crate::contract::ReceiveRoom;
use crate::copying::PAGE_BYTES;

/// What the sender sends one after the other: streams of these lengths, with a short packet behind each group.
const GROUPS: [[usize; 3]; 4] =
    [[1, 5000, LARGEST_PACKET], [40_000, LARGEST_PACKET, 60_000], [300_077, 50_000, 100_000], [35_000, 36_000, 37_000]];

/// Puts streams behind each other, and says where the next bytes go by turns: not at all, for a few, or for all.
struct Placing {
    into: Vec<u8>,
    filled: usize,
    /// Where streams end, and how much had come when a short packet did.
    ends: Vec<usize>,
    shorts: Vec<usize>,
    asked: usize,
    /// What was there before it was handed on.
    placed: usize,
    expected: Vec<u8>,
}

impl Sink for Placing {
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), &'static str> {
        let Some(bulk) = packet.bulk else {
            self.shorts.push(self.filled);
            return Ok(());
        };
        let range = self.filled..self.filled + bulk.len();
        let begins = self.filled == 0 || self.ends.contains(&self.filled);
        assert_eq!(packet.head.kind == Kind::Eager, begins, "after {} bytes", self.filled);
        let to = &mut self.into[range.clone()];
        let is_placed = *to == self.expected[range.clone()];
        self.placed += if is_placed { range.len() } else { 0 };
        // SAFETY: as long as that.
        unsafe { bulk.copy_to(to.as_mut_ptr(), to.len()) };
        self.filled = range.end;
        Ok(())
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        panic!("{fault:?}");
    }

    fn room(&mut self, _: u32) -> Option<ReceiveRoom<'_>> {
        let end = self.ends.iter().copied().find(|end| *end > self.filled)?;
        self.asked += 1;
        let bytes = match self.asked % 4 {
            0 => return None,
            1 => 100.min(end - self.filled),
            _ => end - self.filled,
        };
        // SAFETY: as long as that.
        unsafe { ReceiveRoom::new(self.into[self.filled..].as_mut_ptr(), bytes) }
    }
}

#[test]
fn parts_of_streams_are_received_where_they_go_and_nothing_else_is() {
    for (kind, mut net) in [network(2), narrow_network(2), network(2)].into_iter().enumerate() {
        let encrypts = kind == 2;
        net.iter_mut().for_each(|device| device.set_encrypts(encrypts));
        let lengths = GROUPS.as_flattened();
        let total: usize = lengths.iter().sum();
        let data: Vec<u8> = (0..total).map(|at| (at * 7 + (at >> 9)) as u8 | 1).collect();
        let ends: Vec<usize> = (1..=lengths.len()).map(|count| lengths[..count].iter().sum()).collect();
        let group_ends: Vec<usize> = ends.chunks(3).map(|ends| ends[2]).collect();
        let mut placing = Placing {
            into: vec![0; total + 1000],
            filled: 0,
            ends: ends.clone(),
            shorts: Vec::new(),
            asked: 0,
            placed: 0,
            expected: data.clone(),
        };
        let (mut sent, mut shorts, mut got, start) = (0, 0, Got::default(), Instant::now());
        while placing.shorts.len() < GROUPS.len() {
            if sent < group_ends[shorts.min(GROUPS.len() - 1)] {
                let begins = sent == 0 || ends.contains(&sent);
                let end = ends.iter().copied().find(|end| *end > sent).expect("of a group");
                let head = |kind| Head { kind, ..head(7) };
                let opens = head(if begins { Kind::Eager } else { Kind::More });
                let bytes = &data[sent..end];
                // SAFETY: the bytes are readable.
                let posted = unsafe { net[0].post_bulk(1, opens, &[], bytes.as_ptr(), bytes.len()) };
                sent += if let Posted::Sent(bytes) = posted { bytes } else { 0 };
            } else if shorts < GROUPS.len() && send(&mut net[0], 1, 8) != Posted::Full {
                shorts += 1;
            }
            net[0].poll(&mut got);
            net[1].poll(&mut placing);
            assert!(start.elapsed() < LOST, "{} of {total} bytes", placing.filled);
        }
        println!("{kind}: {} of {total} placed", placing.placed);
        assert!(placing.into[..total] == data && placing.into[total..].iter().all(|byte| *byte == 0));
        assert_eq!(placing.shorts, group_ends, "each behind its group");
        assert!(if encrypts { placing.placed == 0 } else { placing.placed > 10_000 }, "{} placed", placing.placed);
    }
}

/// Says that bytes go where nothing can be written.
struct KeptOut {
    page: *mut u8,
    got: Vec<u8>,
}

impl Sink for KeptOut {
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), &'static str> {
        let bulk = packet.bulk.ok_or("no bytes")?;
        let before = self.got.len();
        self.got.resize(before + bulk.len(), 0);
        // SAFETY: as long as that.
        unsafe { bulk.copy_to(self.got[before..].as_mut_ptr(), bulk.len()) };
        Ok(())
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        panic!("{fault:?}");
    }

    fn room(&mut self, _: u32) -> Option<ReceiveRoom<'_>> {
        // SAFETY: the kernel says that it is not.
        unsafe { ReceiveRoom::new(self.page, PAGE_BYTES) }
    }
}

#[test]
fn bytes_come_also_where_the_kernel_cannot_write_to_their_place() {
    let (at, kind) = (std::ptr::null_mut(), libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping.
    let page = unsafe { libc::mmap(at, PAGE_BYTES, libc::PROT_NONE, kind, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    let mut sink = KeptOut { page: page.cast(), got: Vec::new() };
    let data: Vec<u8> = (0..400_000).map(|at| (at * 7 + (at >> 9)) as u8).collect();
    stream(&mut network(2), &data, &mut sink, |sink| sink.got.len());
    assert!(sink.got == data);
    // SAFETY: our own, which nobody uses any more.
    unsafe { libc::munmap(page, PAGE_BYTES) };
}
