//! A peer that keeps the device's rules and breaks the protocol's: it loses its place, and nobody else notices.

mod common;
use common::*;
use weft_device::shm::ShmDevice;
use weft_device::{Device, Packet, PeerFault, Posted, Sink};
use weft_fabric::{Bounds, Endpoint, Fault, Limits, RequestId, Segment};
use weft_wire::cell::{Head, Kind};

/// What the rogue has received: kinds and control words.
#[derive(Default)]
struct Heard(Vec<(Kind, [u64; 6])>);

impl Sink for Heard {
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), &'static str> {
        self.0.push((packet.head.kind, std::array::from_fn(|i| packet.word(i))));
        Ok(())
    }
    fn handle_fault(&mut self, _: PeerFault) {}
}

/// Member 0 is an endpoint, member 1 the rogue, member 2 a good one.
struct Scene {
    net: Vec<Endpoint>,
    rogue: ShmDevice,
    heard: Heard,
}

impl Scene {
    fn new(limits: Limits) -> Self {
        let segment = Segment::create(3).expect("segment");
        let join = |me| Endpoint::join_segment_with(segment.clone(), me, limits, Bounds::default()).expect("join");
        let rogue = ShmDevice::join(segment.clone(), 1).expect("join");
        Self { net: vec![join(0), join(2)], rogue, heard: Heard::default() }
    }

    fn head(kind: Kind) -> Head {
        Head { kind, context: CONTEXT, tag: 1, source: 101 }
    }

    fn say(&mut self, kind: Kind, words: &[u64]) -> bool {
        self.rogue.post_control(0, Self::head(kind), words) != Posted::Full
    }

    fn say_bulk(&mut self, kind: Kind, words: &[u64], length: usize) -> bool {
        let data = vec![0x77u8; length];
        // SAFETY: the data is that long.
        unsafe { self.rogue.post_bulk(0, Self::head(kind), words, data.as_ptr(), length) != Posted::Full }
    }

    /// Everybody has a few turns; what the rogue hears meanwhile is answered.
    fn turns(&mut self) {
        for _ in 0..20 {
            turn(&mut self.net);
            self.rogue.poll(&mut self.heard);
        }
    }

    /// What member 0 granted the rogue's long message.
    fn last(&self, kind: Kind) -> [u64; 6] {
        self.heard.0.iter().rev().find(|(k, _)| *k == kind).expect("heard").1
    }

    fn check_lost(&mut self, request: RequestId) {
        self.turns();
        let outcome = self.net[0].take_outcome(request).expect("it ends");
        assert_eq!(outcome.fault, Some(Fault::PeerLost));
        self.check_others();
    }

    fn check_others(&mut self) {
        let data = bytes(100_000, 3);
        let mut buffer = vec![0; 100_000];
        let receiving = receive(&mut self.net[0], from(2, 9), &mut buffer);
        let sending = send(&mut self.net[1], 0, 9, &data);
        check(finish(&mut self.net, 0, receiving), 2, 9, 100_000, None);
        finish(&mut self.net, 1, sending);
        assert!(buffer == data);
        let late = receive(&mut self.net[0], from(1, 1), &mut buffer);
        assert_eq!(finish(&mut self.net, 0, late).fault, Some(Fault::PeerLost));
        assert!(self.say(Kind::Short, &[1]));
        turn(&mut self.net);
        assert_eq!(self.net[0].probe(any()), None, "nothing more arrives from it");
    }
}

/// Asks with `length` bytes that stand at an address of nothing.
fn asked(limits: Limits, length: usize, buffer: &mut [u8]) -> (Scene, RequestId) {
    let mut scene = Scene::new(limits);
    let receiving = receive(&mut scene.net[0], from(1, 1), buffer);
    scene.say(Kind::Ask, &[length as u64, u64::MAX - 4000, 3]);
    (scene, receiving)
}

#[test]
fn an_address_of_nothing_ends_in_a_stream_and_not_in_a_crash() {
    let mut buffer = vec![0; 200_000];
    let (mut scene, receiving) = asked(copying(), 200_000, &mut buffer);
    scene.turns();
    let [_, request, ..] = scene.last(Kind::GrantStream);
    assert!(scene.say_bulk(Kind::Open, &[request], 8192));
    scene.turns();
    // The copy was given up; news of it now would end the receive under the stream.
    scene.say(Kind::DoneReceive, &[request, 0]);
    scene.check_lost(receiving);
}

#[test]
fn an_offer_of_nothing_ends_in_a_stream_too() {
    for posted in [true, false] {
        let mut scene = Scene::new(choosing());
        let mut buffer = vec![0; 50_000];
        if !posted {
            scene.say(Kind::Ask, &[50_000, u64::MAX - 4000, 3, 1]);
            scene.turns();
        }
        let receiving = receive(&mut scene.net[0], from(1, 1), &mut buffer);
        if posted {
            scene.say(Kind::Ask, &[50_000, u64::MAX - 4000, 3, 1]);
        }
        scene.turns();
        let [_, request, ..] = scene.last(Kind::GrantStream);
        scene.say_bulk(Kind::Open, &[request], 8192);
        scene.say(Kind::DoneReceive, &[request, 0]);
        scene.check_lost(receiving);
    }
}

#[test]
fn an_offer_that_cannot_be_copied_is_streamed_though_nobody_receives_it() {
    let mut scene = Scene::new(choosing());
    scene.say(Kind::Ask, &[20_000, u64::MAX - 4000, 3, 1]);
    scene.turns();
    let [_, request, wanted, ..] = scene.last(Kind::GrantStream);
    assert_eq!(wanted, 20_000);
    scene.say_bulk(Kind::Open, &[request], 8_000);
    scene.turns();
    let mut buffer = vec![0; 20_000];
    let receiving = receive(&mut scene.net[0], from(1, 1), &mut buffer);
    scene.turns();
    assert!(!scene.net[0].is_complete(receiving), "12000 bytes are still to come");
    scene.say_bulk(Kind::More, &[], 8_000);
    scene.turns();
    scene.say_bulk(Kind::More, &[], 4_000);
    scene.turns();
    assert_eq!(finish(&mut scene.net, 0, receiving).fault, None);
}

#[test]
fn a_stream_cannot_be_opened_for_what_is_being_copied() {
    let mut buffer = vec![0; 200_000];
    let (mut scene, receiving) = asked(copying(), 200_000, &mut buffer);
    scene.net[0].progress();
    scene.say_bulk(Kind::Open, &[0], 8192);
    scene.check_lost(receiving);
}

#[test]
fn a_second_stream_or_more_bytes_than_granted_are_refused() {
    for (kind, words, length) in [(Kind::Open, vec![0], 100), (Kind::Eager, vec![100], 100), (Kind::More, vec![], 8192)]
    {
        let mut buffer = vec![0; 50_000];
        let (mut scene, receiving) = asked(streaming(), 9000, &mut buffer);
        scene.turns();
        let [_, request, ..] = scene.last(Kind::GrantStream);
        scene.say_bulk(Kind::Open, &[request], 8192);
        scene.say_bulk(kind, &words, length);
        scene.check_lost(receiving);
        assert!(buffer[9000..].iter().all(|b| *b == 0));
    }
}

#[test]
fn impossible_messages_are_refused() {
    let impossible: [(Kind, &[u64], usize); 10] = [
        (Kind::Ask, &[u64::MAX, 0, 0], 0),
        (Kind::Ask, &[1 << 63, 0, 0], 0),
        (Kind::Ask, &[1 << 30, 4096, 0, 1], 0),
        (Kind::Eager, &[1 << 40], 100),
        (Kind::Eager, &[99], 100),
        (Kind::Eager, &[10], 0),
        (Kind::More, &[], 10),
        (Kind::Open, &[u64::MAX], 10),
        (Kind::GrantStream, &[0, 0, 1], 0),
        (Kind::DoneSend, &[u64::MAX], 0),
    ];
    for (kind, words, bulk) in impossible {
        let mut scene = Scene::new(copying());
        let mut buffer = [0; 100];
        let receiving = receive(&mut scene.net[0], from(1, 1), &mut buffer);
        assert!(if bulk > 0 { scene.say_bulk(kind, words, bulk) } else { scene.say(kind, words) });
        scene.check_lost(receiving);
    }
}

#[test]
fn false_answers_to_a_send_are_refused() {
    let slot = |index: u64| index | 1 << 32;
    let cases: [(Kind, [u64; 5]); 6] = [
        (Kind::GrantStream, [0, 0, 0, 0, 0]),
        (Kind::GrantStream, [0, 0, 200_001, 0, 0]),
        (Kind::GrantCopy, [0, 0, slot(12), 4096, 200_000]),
        (Kind::GrantCopy, [0, 0, slot(u32::MAX as u64), 4096, 200_000]),
        (Kind::GrantCopy, [0, 0, slot(0), 4096, 200_001]),
        (Kind::GrantCopy, [0, 0, slot(0), 4096, 0]),
    ];
    for (kind, mut words) in cases {
        let mut scene = Scene::new(copying());
        let data = bytes(200_000, 1);
        let sending = send(&mut scene.net[0], 1, 1, &data);
        scene.turns();
        words[0] = scene.last(Kind::Ask)[2];
        scene.say(kind, &words);
        scene.check_lost(sending);
    }
    let mut scene = Scene::new(copying());
    let data = bytes(200_000, 1);
    let sending = send(&mut scene.net[0], 1, 1, &data);
    scene.turns();
    let request = scene.last(Kind::Ask)[2];
    scene.say(Kind::GrantCopy, &[request, 0, slot(0), u64::MAX - 100, 200_000]);
    scene.say(Kind::GrantCopy, &[request, 0, slot(1), u64::MAX - 100, 200_000]);
    scene.check_lost(sending);
}

#[test]
fn what_a_lost_peer_had_begun_ends_and_what_it_had_finished_stays() {
    let mut scene = Scene::new(copying());
    scene.say(Kind::Short, &[7]);
    scene.say_bulk(Kind::Eager, &[5000], 5000);
    scene.say(Kind::Ask, &[100_000, 4096, 0]);
    scene.say_bulk(Kind::Eager, &[9000], 1000);
    scene.turns();
    scene.turns();
    let mut buffers = vec![vec![0; 100_000]; 5];
    let mut requests = Vec::new();
    // The first receive takes the message that is still coming in, by wildcard.
    let (message, _) = {
        for _ in 0..3 {
            let (message, outcome) = scene.net[0].take_matched(any()).expect("there");
            requests.push((message, outcome.length));
        }
        scene.net[0].take_matched(any()).expect("the unfinished one")
    };
    let (unfinished, rest) = buffers.split_first_mut().expect("five");
    // SAFETY: the buffers live until the end.
    let unfinished = unsafe { scene.net[0].post_matched_receive(message, unfinished.as_mut_ptr(), 100_000) };
    // SAFETY: as above.
    let raw = unsafe { scene.net[0].post_raw_receive(weft_fabric::Peer(1), rest[3].as_mut_ptr(), 10) };
    scene.net[0].release(raw);
    scene.say(Kind::DoneSend, &[u64::MAX]);
    scene.check_lost(unfinished);
    for ((message, length), buffer) in requests.into_iter().zip(rest) {
        // SAFETY: as above.
        let request = unsafe { scene.net[0].post_matched_receive(message, buffer.as_mut_ptr(), 100_000) };
        let outcome = scene.net[0].take_outcome(request).expect("decided at once");
        assert_eq!(outcome.fault, (length == 100_000).then_some(Fault::PeerLost), "{length}");
    }
    // The released request was given back once: two new ones are two.
    let mut small = [[0u8; 4]; 2];
    let [a, b] = &mut small;
    assert_ne!(receive(&mut scene.net[0], any(), a), receive(&mut scene.net[0], any(), b));
}

#[test]
fn random_nonsense_loses_its_author_and_nobody_else() {
    let kinds = [Kind::Eager, Kind::Ask, Kind::GrantStream, Kind::GrantCopy, Kind::Open, Kind::More, Kind::DoneSend];
    let mut lost = 0;
    for seed in 1..120u64 {
        let mut state = seed;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut scene = Scene::new(if seed % 2 == 0 { streaming() } else { copying() });
        let mut buffers: Vec<Vec<u8>> = (0..12).map(|i| vec![0; [10, 5000, 100_000][i % 3]]).collect();
        let data = bytes(200_000, 1);
        let mut ours = Vec::new();
        for buffer in &mut buffers {
            ours.push(receive(&mut scene.net[0], from(1, 1), buffer));
            ours.push(send(&mut scene.net[0], 1, 1, &data));
        }
        for _ in 0..30 {
            let extra = [Kind::DoneReceive, Kind::Raw, Kind::Short, Kind::Retract, Kind::Retracted, Kind::Waited];
            let kind = *kinds.get(next(10) as usize).unwrap_or(&extra[next(6) as usize]);
            let mut words: Vec<u64> =
                (0..5).map(|_| [next(30), next(300_000), next(u64::MAX >> 40), 4096][next(4) as usize]).collect();
            words[2] |= next(2) << 32;
            if next(2) == 0 {
                scene.say(kind, &words)
            } else {
                scene.say_bulk(kind, &words, 1 + next(8192) as usize)
            };
            if next(3) == 0 {
                scene.turns();
            }
        }
        scene.say(Kind::DoneSend, &[u64::MAX]);
        scene.turns();
        scene.turns();
        scene.check_others();
        for request in ours {
            let outcome = scene.net[0].take_outcome(request).expect("everything with the lost peer ends");
            lost += (outcome.fault == Some(Fault::PeerLost)) as usize;
        }
    }
    assert!(lost > 1000, "{lost}");
}
