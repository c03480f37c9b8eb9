//! The promises of [`weft_device::Device`] as tests of any device. They belong to this crate, and are compiled into the
//! tests of whoever has a device of his own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use weft_device::{Device, Packet, PeerFault, Posted, Sink};
use weft_wire::cell::{Head, INLINE_WORDS, Kind};

/// A way to make devices that reach each other.
pub trait DeviceNetwork {
    type Endpoint: Device + Send + 'static;
    fn of(members: u32) -> Vec<Self::Endpoint>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    pub from: u32,
    pub head: Head,
    pub inline: Vec<u8>,
    pub bulk: Option<Vec<u8>>,
}

#[derive(Default)]
pub struct Recorder {
    pub got: VecDeque<Got>,
    pub faults: Vec<PeerFault>,
    /// Packets of this tag are against the rules.
    pub refused_tag: Option<i32>,
}

impl Sink for Recorder {
    fn handle_packet(&mut self, packet: Packet<'_>) -> Result<(), &'static str> {
        if self.refused_tag == Some(packet.head.tag) {
            return Err("a refused tag");
        }
        let mut inline = vec![0; packet.inline_bytes];
        // SAFETY: as long as the payload.
        unsafe { packet.copy_inline(inline.as_mut_ptr(), inline.len()) };
        let bulk = packet.bulk.map(|bulk| {
            let mut bytes = vec![0; bulk.len()];
            // SAFETY: as long as the payload.
            unsafe { bulk.copy_to(bytes.as_mut_ptr(), bytes.len()) };
            bytes
        });
        self.got.push_back(Got { from: packet.from, head: packet.head, inline, bulk });
        Ok(())
    }

    fn handle_fault(&mut self, fault: PeerFault) {
        self.faults.push(fault);
    }
}

pub fn head(tag: i32) -> Head {
    Head { kind: Kind::Raw, context: 0xffff_fff7, tag, source: 9 }
}

pub fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + seed * 13 + 1) as u8).collect()
}

/// Posts; what the receiver should see if it was accepted.
pub fn post<D: Device>(device: &mut D, me: u32, to: u32, tag: i32, data: &[u8], bulk: bool) -> Option<Got> {
    let control = [tag as u64, !0];
    // SAFETY: the slice is readable.
    let posted = unsafe {
        match bulk {
            true => device.post_bulk(to, head(tag), &control, data.as_ptr(), data.len()),
            false => device.post_short(to, head(tag), data.as_ptr(), data.len()),
        }
    };
    let Posted::Sent(piece) = posted else { return None };
    assert!(piece <= D::CAPABILITIES.largest_packet.min(data.len()));
    assert_eq!(piece > 0, bulk, "a bulk post moves something, a short one has no bulk");
    let words: Vec<u8> = control.iter().flat_map(|w| w.to_le_bytes()).collect();
    Some(match bulk {
        true => Got { from: me, head: head(tag), inline: words, bulk: Some(data[..piece].to_vec()) },
        false => Got { from: me, head: head(tag), inline: data.to_vec(), bulk: None },
    })
}

/// Longer than any scheduling: what has not come after so long does not come.
pub const LOST: Duration = Duration::from_secs(60);

/// Polls everybody until `done` says so of what `at` has got, and nothing moves any more.
pub fn settle<D: Device>(net: &mut [D], at: usize, sink: &mut Recorder, done: impl Fn(&Recorder) -> bool) {
    let (start, mut others) = (Instant::now(), Recorder::default());
    loop {
        let mut moved = false;
        for (index, device) in net.iter_mut().enumerate() {
            moved |= device.poll(if index == at { &mut *sink } else { &mut others });
        }
        if !moved && done(sink) {
            break;
        }
        if !moved {
            assert!(start.elapsed() < LOST, "something was lost");
            std::thread::yield_now();
        }
    }
    assert_eq!((others.got.len(), others.faults), (0, vec![]));
}

/// Endpoints that have heard of each other already: on some devices the first packet makes a connection, or is refused
/// until the peer has answered.
pub fn acquainted<N: DeviceNetwork>(members: u32) -> Vec<N::Endpoint> {
    let mut net = N::of(members);
    for from in 0..members {
        for to in (0..members).filter(|to| *to != from) {
            let mut sink = Recorder::default();
            let (start, mut sent) = (Instant::now(), None);
            while sent.is_none() {
                assert!(start.elapsed() < LOST, "nothing is accepted");
                sent = post(&mut net[from as usize], from, to, 0, b"hello", false);
                net.iter_mut().for_each(|device| _ = device.poll(&mut sink));
            }
            settle(&mut net, to as usize, &mut sink, |sink| !sink.got.is_empty());
            assert_eq!(sink.got, sent.into_iter().collect::<Vec<_>>());
        }
    }
    net
}

pub fn every_size_arrives_whole<N: DeviceNetwork>() {
    let mut net = acquainted::<N>(2);
    let mut sink = Recorder::default();
    let largest = N::Endpoint::CAPABILITIES.largest_packet;
    let sizes = [1, 7, 8, 9, 47, 48, 49, 63, 64, 65, 4095, 4096, 4097, largest - 1, largest, largest + 1, 5 * largest];
    for length in (0..=N::Endpoint::CAPABILITIES.inline_bytes).map(|n| (n, false)).chain(sizes.map(|n| (n, true))) {
        let sent = post(&mut net[0], 0, 1, length.0 as i32, &bytes(length.0, 3), length.1).expect("room");
        settle(&mut net, 1, &mut sink, |sink| !sink.got.is_empty());
        assert_eq!(sink.got.pop_front(), Some(sent));
        assert!(sink.got.is_empty());
    }
    let words: Vec<u64> = (1..=INLINE_WORDS as u64).collect();
    assert_eq!(net[1].post_control(0, head(1), &words), Posted::Sent(0));
    settle(&mut net, 0, &mut sink, |sink| !sink.got.is_empty());
    assert_eq!(sink.got[0].inline, words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>());
}

/// Posts to the second of them until that is accepted. Where things are lost on the way, who has filled a device learns
/// later than all has arrived that there is room.
fn accepted<D: Device>(net: &mut [D], sink: &mut Recorder, tag: i32, data: &[u8], bulk: bool) -> Got {
    let start = Instant::now();
    loop {
        if let Some(packet) = post(&mut net[0], 0, 1, tag, data, bulk) {
            return packet;
        }
        assert!(start.elapsed() < LOST, "no room comes back");
        net[0].poll(&mut Recorder::default());
        net[1].poll(sink);
    }
}

pub fn a_refused_post_leaves_no_trace_and_room_comes_back<N: DeviceNetwork>() {
    let mut net = acquainted::<N>(2);
    let mut sink = Recorder::default();
    for round in 0..20 {
        for bulk in [false, true] {
            let data = bytes(if bulk { 5000 } else { 48 }, round);
            let mut sent: VecDeque<_> = (0..2).map(|tag| accepted(&mut net, &mut sink, tag, &data, bulk)).collect();
            while let Some(packet) = post(&mut net[0], 0, 1, sent.len() as i32, &data, bulk) {
                sent.push_back(packet);
                assert!(sent.len() < 1_000_000, "a device is bounded");
            }
            for _ in 0..3 {
                assert_eq!(post(&mut net[0], 0, 1, -1, &data, bulk), None);
            }
            settle(&mut net, 1, &mut sink, |sink| sink.got.len() >= sent.len());
            assert_eq!(sink.got, sent);
            sink.got.clear();
        }
    }
}

pub fn order_is_kept_over_many_laps<N: DeviceNetwork>() {
    let mut net = acquainted::<N>(2);
    let (mut sink, mut expected) = (Recorder::default(), VecDeque::new());
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let (mut posted, mut refused) = (0, 0);
    while posted < 20_000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let length = match random % 4 {
            0 => random as usize / 64 % 49,
            1 => 1 + random as usize / 64 % 200,
            _ => 1 + random as usize / 64 % 9000,
        };
        // Now and then all that there is room for: who takes things at once would never be full.
        let fills = length > 1000 && random >> 32 & 15 == 0;
        if random >> 60 < 15 {
            loop {
                posted += 1;
                match post(&mut net[0], 0, 1, posted, &bytes(length, posted as usize), length > 48) {
                    Some(packet) if fills => expected.push_back(packet),
                    Some(packet) => break expected.push_back(packet),
                    None => break refused += 1,
                }
            }
        } else {
            for _ in 0..random >> 40 & 63 {
                net[1].poll(&mut sink);
            }
            net[0].poll(&mut Recorder::default());
        }
        while let Some(got) = sink.got.pop_front() {
            assert_eq!(Some(got), expected.pop_front());
        }
    }
    settle(&mut net, 1, &mut sink, |sink| sink.got.len() >= expected.len());
    assert_eq!(sink.got, expected);
    assert!(refused > 100, "the test fills the device: {refused}");
}

const MEMBERS: u32 = 4;
const PACKETS: i32 = 3000;

pub fn many_threads_get_everything_in_order<N: DeviceNetwork>() {
    let done = Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = N::of(MEMBERS)
        .into_iter()
        .zip(0..)
        .map(|(mut device, me)| {
            let done = done.clone();
            std::thread::spawn(move || {
                let failing = Failing(&done);
                exchange(&mut device, me, &done);
                std::mem::forget(failing);
                // What was posted last may still have to leave.
                done.fetch_add(1, Ordering::AcqRel);
                while done.load(Ordering::Acquire) < MEMBERS {
                    device.poll(&mut Recorder::default());
                    std::thread::yield_now();
                }
                // A sender that waits for the last credits needs us no longer, but the memory stays until all are done.
                device
            })
        })
        .collect();
    let ended: Vec<_> = threads.into_iter().map(std::thread::JoinHandle::join).collect();
    assert!(ended.iter().all(Result::is_ok), "a member has failed");
}

/// Ends the wait of all for each other when one of them panics.
struct Failing<'a>(&'a AtomicU32);

impl Drop for Failing<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(MEMBERS, Ordering::AcqRel);
    }
}

/// Sends so many packets to each other member, and receives as many.
fn exchange<D: Device>(device: &mut D, me: u32, done: &AtomicU32) {
    let mut sink = Recorder::default();
    let (mut sent, mut got) = ([0; MEMBERS as usize], [0; MEMBERS as usize]);
    (sent[me as usize], got[me as usize]) = (PACKETS, PACKETS);
    let mut moved = Instant::now();
    while sent.iter().chain(&got).any(|n| *n < PACKETS) {
        let before = (sent, got);
        for (sent, to) in sent.iter_mut().zip(0..) {
            let tag = *sent;
            let data = bytes(if tag % 3 == 0 { 700 } else { 16 }, me as usize + tag as usize);
            if tag < PACKETS && post(device, me, to, tag, &data, tag % 3 == 0).is_some() {
                *sent += 1;
            }
        }
        device.poll(&mut sink);
        for packet in sink.got.drain(..) {
            let next = &mut got[packet.from as usize];
            assert_eq!(packet.head.tag, *next, "order");
            let body = packet.bulk.unwrap_or(packet.inline);
            let whole = bytes(700, packet.from as usize + *next as usize);
            assert_eq!(body, whole[..body.len()]);
            *next += 1;
        }
        if (sent, got) != before {
            moved = Instant::now();
        }
        assert!(moved.elapsed() < LOST, "something was lost: sent {sent:?}, got {got:?}");
        assert!(done.load(Ordering::Acquire) < MEMBERS, "another member has failed");
        std::thread::yield_now();
    }
    assert_eq!(sink.faults, []);
}

pub fn a_peer_that_the_protocol_refuses_is_heard_no_more<N: DeviceNetwork>() {
    let mut net = acquainted::<N>(3);
    let mut sink = Recorder { refused_tag: Some(13), ..Recorder::default() };
    for tag in [12, 13, 14] {
        post(&mut net[1], 1, 0, tag, b"abc", false).expect("room");
        post(&mut net[2], 2, 0, tag + 20, b"abc", false).expect("room");
    }
    let (start, mut last) = (Instant::now(), 0);
    while last < 100 {
        // Whom the fault names may itself learn of the end.
        net[1..].iter_mut().for_each(|device| _ = device.poll(&mut Recorder::default()));
        last = if net[0].poll(&mut sink) || sink.got.len() < 4 || sink.faults.is_empty() { 0 } else { last + 1 };
        assert!(start.elapsed() < LOST, "something was lost");
    }
    let faults: Vec<(u32, String)> = sink.faults.iter().map(|fault| (fault.peer(), fault.to_string())).collect();
    assert!(matches!(&faults[..], [(1, text)] if text.contains("a refused tag")), "{faults:?}");
    let mut tags: Vec<i32> = sink.got.iter().map(|g| g.head.tag).collect();
    tags.sort();
    assert_eq!(tags, [12, 32, 33, 34]);
}

/// All promises as tests, in a module for each network.
macro_rules! conformance {
    ($($name:ident: $network:ty),* $(,)?) => {
        $(mod $name {
            use super::suite::conformance;
            conformance! { @ $network;
                every_size_arrives_whole
                a_refused_post_leaves_no_trace_and_room_comes_back
                order_is_kept_over_many_laps
                many_threads_get_everything_in_order
                a_peer_that_the_protocol_refuses_is_heard_no_more
            }
        })*
    };
    (@ $network:ty; $($promise:ident)*) => {
        $(#[test] fn $promise() { super::suite::$promise::<$network>(); })*
    };
}
pub(crate) use conformance;
