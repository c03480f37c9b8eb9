//! Who is fenced for, and answers in borrowed bytes.

use super::*;

#[test]
fn who_cannot_order_others_is_fenced_for_whenever_it_joins() {
    let segment = Segment::create(3).expect("segment");
    let mut first = ShmDevice::enter(segment.clone(), 0, false).expect("join");
    assert!(first.bells[1].needs_fence() && !first.all_order(), "who has not joined has said nothing");
    let mut confined = ShmDevice::enter(segment.clone(), 1, true).expect("join");
    assert!(
        first.outgoing(1).expect("memory").mailbox.needs_fence() && first.bells[1].needs_fence() && !first.all_order()
    );
    assert!(
        confined.outgoing(0).expect("memory").mailbox.needs_fence() && !confined.all_order(),
        "nobody orders it either"
    );
    let mut third = ShmDevice::enter(segment, 2, false).expect("join");
    assert!(
        !first.outgoing(2).expect("memory").mailbox.needs_fence()
            && !third.outgoing(0).expect("memory").mailbox.needs_fence()
    );
    assert!(third.bells[1].needs_fence() && !third.all_order());
}

#[test]
fn no_fence_once_all_have_joined() {
    let segment = Segment::create(2).expect("segment");
    let mut first = ShmDevice::enter(segment.clone(), 0, false).expect("join");
    assert!(!first.all_order());
    let mut second = ShmDevice::enter(segment, 1, false).expect("join");
    assert!(first.all_order() && second.all_order());
}

/// What has arrived: checked against the number in its tag.
#[derive(Default)]
struct Checking {
    next: i32,
}

fn pattern(number: i32, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as i32 * 31 + number * 7 + (at >> 8) as i32) as u8).collect()
}

impl Sink for Checking {
    fn handle_packet(&mut self, packet: crate::contract::Packet<'_>) -> Result<(), &'static str> {
        let bulk = packet.bulk.expect("all have bulk");
        let mut place = vec![0; bulk.len()];
        // SAFETY: as long as the payload.
        unsafe { bulk.copy_to(place.as_mut_ptr(), place.len()) };
        assert!(place == pattern(packet.head.tag, place.len()), "{} bytes of {}", place.len(), packet.head.tag);
        assert_eq!(packet.head.tag, self.next);
        self.next += 1;
        Ok(())
    }

    fn handle_fault(&mut self, fault: crate::contract::PeerFault) {
        panic!("{fault:?}");
    }
}

/// Two members; each sends numbered packets.
struct Two {
    devices: Vec<ShmDevice>,
    sinks: [Checking; 2],
    sent: [i32; 2],
}

impl Two {
    fn new() -> Self {
        let segment = Segment::create(2).expect("segment");
        let devices = (0..2).map(|me| ShmDevice::join(segment.clone(), me).expect("join")).collect();
        Self { devices, sinks: Default::default(), sent: [0; 2] }
    }

    /// Bytes that went, 0 if there was no room.
    fn post(&mut self, me: usize, length: usize) -> usize {
        let (head, data) =
            (Head { tag: self.sent[me], ..Head::control(weft_wire::cell::Kind::More) }, pattern(self.sent[me], length));
        // SAFETY: the data is that long.
        match unsafe { self.devices[me].post_bulk(1 - me as u32, head, &[], data.as_ptr(), length) } {
            Posted::Sent(piece) => {
                self.sent[me] += 1;
                piece
            }
            _ => 0,
        }
    }

    fn poll(&mut self, me: usize) -> bool {
        self.devices[me].poll(&mut self.sinks[me])
    }

    fn borrowed(&self, me: usize) -> u64 {
        self.devices[me].incoming.iter().flatten().map(|ring| ring.borrowed_bytes()).sum()
    }
}

#[test]
fn an_answer_goes_in_the_bytes_that_it_answers() {
    for length in [1024, 4096, 10_000, LARGEST_PACKET] {
        let mut two = Two::new();
        for _ in 0..100 {
            assert!(two.post(0, length) > 0 && two.poll(1));
            while two.poll(1) {}
            assert!(two.post(1, length) > 0 && two.poll(0));
            while two.poll(0) {}
        }
        // Where an area ends, the two change places.
        let borrowed = two.borrowed(0) + two.borrowed(1);
        assert!(borrowed >= 80 * length as u64, "{borrowed} bytes of messages of {length} were borrowed");
    }
}

#[test]
fn what_both_send_arrives_whole_whoever_reads_when() {
    for seed in 1..40u64 {
        let (mut two, mut random) = (Two::new(), seed);
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize
        };
        for step in 0..6000 {
            let (me, length) = (next() % 2, 1 + next() % 40_000 / (1 + next() % 8));
            // For a while one of them reads nothing.
            let silent = step / 300 % 3;
            match next() % 8 {
                0..4 => drop(two.post(me, length)),
                7 if next() % 8 == 0 => {
                    two.devices[me].arm();
                    two.devices[me].disarm();
                }
                _ if me == silent => {}
                _ => drop(two.poll(me)),
            }
        }
        while [0, 1].map(|me| two.poll(me)) != [false, false] {}
        assert_eq!([two.sinks[1].next, two.sinks[0].next], two.sent);
        // Whatever was lent, there is room again for the longest packet.
        for me in [0, 1] {
            let (begin, mut turns) = (two.sent[me], 0);
            while two.post(me, LARGEST_PACKET) == 0 || two.sent[me] - begin < 8 {
                let _ = [0, 1].map(|me| two.poll(me));
                turns += 1;
                assert!(turns < 100, "seed {seed}: no room for who sends");
            }
            while two.poll(1 - me) {}
        }
        assert!(two.borrowed(0) + two.borrowed(1) > 0);
    }
}
