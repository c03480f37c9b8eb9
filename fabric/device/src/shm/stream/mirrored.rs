//! A connection between two hosts over a network that loses, doubles and reorders, against a plain queue.

use super::mirror::{Mirror, Record, Tick};
use super::properties::{GENERATION, SIZE, StreamWorld};
use super::receiver::ByteSource;
use super::sender::SendTarget;
use crate::sync::Ordering;
use proptest::prelude::*;
use std::collections::VecDeque;
use weft_wire::link::mac::Key;
use weft_wire::stream::parcel::HEADER_BYTES;

const KEYS: [Key; 2] = [Key([1; 16]), Key([2; 16])];
/// Datagrams are cut so short that most sends need several.
const LONGEST: usize = HEADER_BYTES + 24;

/// One host's half of the connection: the program's two directions, and what stands for the other host.
struct MirroredHost {
    out: StreamWorld,
    into: StreamWorld,
    record: Box<Record>,
}

impl MirroredHost {
    fn new(number: usize) -> Self {
        // SAFETY: zeros are a record.
        let record: Box<Record> = unsafe { Box::new(std::mem::zeroed()) };
        let host = Self { out: StreamWorld::new(), into: StreamWorld::new(), record };
        host.record.begin((5, GENERATION), [KEYS[number], KEYS[1 - number]]);
        host.record.generation.store(GENERATION, Ordering::Relaxed);
        host.record.has_route.store(1, Ordering::Relaxed);
        host.mirror().begin();
        // The program attaches.
        host.out.direction.sender.attached.store(GENERATION, Ordering::Relaxed);
        host.into.direction.watch.attached.store(GENERATION, Ordering::Relaxed);
        host
    }

    fn mirror(&self) -> Mirror<'_, super::bytes::StreamRing<'_>> {
        Mirror {
            record: &self.record,
            out: &self.out.direction,
            into: &self.into.direction,
            out_ring: self.out.ring(),
            into_ring: self.into.ring(),
            listeners: &self.out.listeners,
            slot: 5,
            fences: false,
        }
    }

    fn datagram(&self, ask: bool) -> Vec<u8> {
        let mut place = vec![0; LONGEST];
        let length = self.mirror().compose(&mut place, ask);
        place.truncate(length);
        place
    }

    fn tell(&self, network: &mut Vec<Vec<u8>>) {
        while self.mirror().is_untold() {
            network.push(self.datagram(false));
        }
    }

    fn tick(&self, network: &mut Vec<Vec<u8>>) {
        match self.mirror().tick() {
            Tick::Nothing => {}
            Tick::Tell => network.push(self.datagram(false)),
            Tick::Again => network.push(self.datagram(true)),
        }
        self.tell(network);
    }

    fn take(&self, datagram: &[u8], network: &mut Vec<Vec<u8>>) {
        let (parcel, bytes) = self.record.open(datagram, GENERATION).expect("the other host has made it");
        self.mirror().take(&parcel, bytes, |_| {});
        if parcel.flags & weft_wire::stream::parcel::flag::ASK != 0 {
            network.push(self.datagram(false));
        }
        self.tell(network);
    }
}

/// What the kernel carries one way, what was counted there, and what the program of the other side has still to get.
#[derive(Default)]
struct MirroredWay {
    /// On its way, and there.
    coming: VecDeque<u8>,
    there: VecDeque<u8>,
    sent: u64,
    received: u64,
    queue: VecDeque<u8>,
    next: u8,
}

impl MirroredWay {
    fn send(&mut self, host: &MirroredHost, length: usize, stays: bool) {
        let mut sender = host.out.sender();
        if sender.route() == SendTarget::GiveBack {
            let given = sender.give_back(|piece| {
                self.coming.extend(piece);
                self.sent += piece.len() as u64;
                Ok(piece.len())
            });
            let _ = given.expect("the kernel takes all");
        }
        if sender.route() == SendTarget::MaySwitch && !stays {
            sender.switch_to_ring(self.sent);
        }
        let bytes: Vec<u8> = (0..length).map(|n| self.next.wrapping_add(n as u8)).collect();
        let sent = match sender.route() {
            SendTarget::Ring => sender.push(&bytes, |_| {}),
            SendTarget::Kernel | SendTarget::MaySwitch => {
                self.coming.extend(&bytes);
                self.sent += length as u64;
                length
            }
            SendTarget::NotYet => 0,
            other => panic!("{other:?}"),
        };
        let _ = sender.publish();
        sender.end();
        self.queue.extend(&bytes[..sent]);
        self.next = self.next.wrapping_add(sent as u8);
    }

    fn receive(&mut self, host: &MirroredHost, most: usize) -> Result<usize, TestCaseError> {
        let mut receiver = host.into.receiver();
        if host.into.direction.sender.leaving.load(Ordering::Relaxed) != 0 {
            receiver.want_kernel_too();
        }
        let got: Vec<u8> = match receiver.route(self.received) {
            ByteSource::Kernel(limit) => {
                let most = limit.map_or(most, |limit| most.min(limit as usize)).min(self.there.len());
                self.received += most as u64;
                self.there.drain(..most).collect()
            }
            ByteSource::Ring => {
                let mut place = vec![0; most];
                let bytes = receiver.pull(&mut place, |_| {});
                place.truncate(bytes);
                place
            }
            ByteSource::Broken => panic!("nobody broke it"),
        };
        let _ = receiver.publish();
        receiver.end();
        let right: Vec<u8> = self.queue.drain(..got.len().min(self.queue.len())).collect();
        prop_assert_eq!(&got, &right);
        Ok(got.len())
    }
}

#[derive(Clone, Debug)]
enum MirroredStep {
    Send(usize, usize),
    Receive(usize, usize),
    Tell(usize),
    Tick(usize),
    /// One of the datagrams for a host arrives, and goes on existing with the last number.
    Deliver(usize, usize, bool),
    Lose(usize, usize),
    /// So many bytes of the kernel arrive.
    Kernel(usize, usize),
    SwitchToKernel(usize),
    AskToLeave(usize),
    WantKernel(usize),
    /// The program is no more.
    Leave(usize),
}

fn steps() -> impl Strategy<Value = Vec<MirroredStep>> {
    let host = 0..2usize;
    let step = prop_oneof![
        60 => (host.clone(), 1..90usize).prop_map(|(host, bytes)| MirroredStep::Send(host, bytes)),
        60 => (host.clone(), 1..90usize).prop_map(|(host, bytes)| MirroredStep::Receive(host, bytes)),
        60 => host.clone().prop_map(MirroredStep::Tell),
        30 => host.clone().prop_map(MirroredStep::Tick),
        120 => (host.clone(), 0..9usize, prop::bool::weighted(0.2)).prop_map(|(h, n, d)| MirroredStep::Deliver(h, n, d)),
        20 => (host.clone(), 0..9usize).prop_map(|(host, number)| MirroredStep::Lose(host, number)),
        60 => (host.clone(), 1..200usize).prop_map(|(host, bytes)| MirroredStep::Kernel(host, bytes)),
        2 => host.clone().prop_map(MirroredStep::SwitchToKernel),
        2 => host.clone().prop_map(MirroredStep::AskToLeave),
        2 => host.clone().prop_map(MirroredStep::WantKernel),
        1 => host.prop_map(MirroredStep::Leave),
    ];
    prop::collection::vec(step, 1..600)
}

fn apply_to_network(
    step: &MirroredStep,
    hosts: &[MirroredHost; 2],
    networks: &mut [Vec<Vec<u8>>; 2],
    ways: &mut [MirroredWay; 2],
) {
    match *step {
        MirroredStep::Tell(host) => hosts[host].tell(&mut networks[1 - host]),
        MirroredStep::Tick(host) => hosts[host].tick(&mut networks[1 - host]),
        MirroredStep::Deliver(host, number, again) if number < networks[host].len() => {
            let datagram = networks[host].remove(number);
            if again {
                networks[host].push(datagram.clone());
            }
            hosts[host].take(&datagram, &mut networks[1 - host]);
        }
        MirroredStep::Lose(host, number) if number < networks[host].len() => _ = networks[host].remove(number),
        MirroredStep::Kernel(host, bytes) => {
            let way = &mut ways[1 - host];
            let bytes = bytes.min(way.coming.len());
            way.there.extend(way.coming.drain(..bytes));
        }
        MirroredStep::Leave(host) => hosts[host].record.leave(),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_sent_is_received_in_order_whatever_the_network_does(steps in steps(), late in 0..200u64) {
        let hosts = [MirroredHost::new(0), MirroredHost::new(1)];
        let mut networks = [Vec::new(), Vec::new()];
        let mut ways = [MirroredWay::default(), MirroredWay::default()];
        for step in steps {
            let (MirroredStep::Send(host, _)
            | MirroredStep::Receive(host, _)
            | MirroredStep::SwitchToKernel(host)
            | MirroredStep::AskToLeave(host)
            | MirroredStep::WantKernel(host)) = step
            else {
                apply_to_network(&step, &hosts, &mut networks, &mut ways);
                continue;
            };
            if hosts[host].record.is_left() {
                continue;
            }
            match step {
                // The switch comes a while after the beginning.
                MirroredStep::Send(host, length) => {
                    let stays = ways[host].sent < late;
                    ways[host].send(&hosts[host], length, stays);
                }
                MirroredStep::Receive(host, most) => _ = ways[1 - host].receive(&hosts[host], most)?,
                MirroredStep::SwitchToKernel(host) => {
                    let mut sender = hosts[host].out.sender();
                    if sender.route() != SendTarget::GiveBack {
                        let _ = sender.switch_to_kernel();
                    }
                    sender.end();
                }
                MirroredStep::AskToLeave(host) => {
                    let sender = hosts[host].out.sender();
                    sender.ask_to_leave();
                    sender.end();
                }
                MirroredStep::WantKernel(host) => _ = hosts[host].into.receiver().want_kernel(),
                _ => {}
            }
        }
        // From now on everything arrives.
        let mut idle = 0;
        let is_left = |host: usize| hosts[host].record.is_left();
        let is_awaited = |ways: &[MirroredWay; 2], host: usize| !is_left(1 - host) && !ways[host].queue.is_empty();
        while [0, 1].iter().any(|host| is_awaited(&ways, *host)) || !hosts.iter().all(|host| host.mirror().is_confirmed()) {
            let mut moved = 0;
            for host in [0, 1] {
                if !is_left(host) {
                    ways[host].send(&hosts[host], 0, false);
                }
                hosts[host].tick(&mut networks[1 - host]);
                for datagram in std::mem::take(&mut networks[host]) {
                    hosts[host].take(&datagram, &mut networks[1 - host]);
                }
                let way = &mut ways[1 - host];
                way.there.extend(way.coming.drain(..));
                if !is_left(host) {
                    moved += way.receive(&hosts[host], 1000)?;
                }
                // The kernel's end comes last.
                if is_left(1 - host) && hosts[1 - host].mirror().is_confirmed() && way.there.is_empty() {
                    let mut receiver = hosts[host].into.receiver();
                    receiver.kernel_ended(way.received);
                    let _ = receiver.publish();
                    receiver.end();
                }
            }
            idle = if moved > 0 { 0 } else { idle + 1 };
            prop_assert!(idle < 3000, "{:?} bytes are lost", [ways[0].queue.len(), ways[1].queue.len()]);
        }
        let counts = [0, 1].map(|host| hosts[host].mirror().out.receiver.tail.load(Ordering::Relaxed));
        prop_assert!(counts.iter().all(|tail| *tail <= 1 << 20));
        prop_assert!(SIZE >= 64);
    }
}

/// What both have to say to each other, without loss, until neither has anything.
fn exchange(hosts: &[MirroredHost; 2]) {
    let mut networks = [Vec::new(), Vec::new()];
    for _ in 0..8 {
        for host in [0, 1] {
            hosts[host].tick(&mut networks[1 - host]);
            std::mem::take(&mut networks[host]).iter().for_each(|datagram| {
                hosts[host].take(datagram, &mut networks[1 - host]);
            });
        }
    }
}

#[test]
fn an_end_that_is_gone_without_a_word_is_waited_for_by_nobody() {
    let hosts = [MirroredHost::new(0), MirroredHost::new(1)];
    // It has never attached, so it says nothing of what it sends and reads.
    hosts[0].out.direction.sender.attached.store(0, Ordering::Relaxed);
    hosts[0].into.direction.watch.attached.store(0, Ordering::Relaxed);
    exchange(&hosts);
    let mut sender = hosts[1].out.sender();
    let _ = sender.switch_to_kernel();
    sender.end();
    assert!(!hosts[1].into.receiver().want_kernel());
    assert_ne!(hosts[1].out.direction.watch.reading_kernel.load(Ordering::SeqCst), 0);
    hosts[0].record.leave();
    exchange(&hosts);
    assert!(hosts[1].into.receiver().want_kernel());
    assert_eq!(hosts[1].out.direction.watch.reading_kernel.load(Ordering::SeqCst), 0);
}

#[test]
fn who_has_not_read_all_is_called_when_its_peer_wants_the_kernel() {
    let hosts = [MirroredHost::new(0), MirroredHost::new(1)];
    let (mut there, mut back) = (MirroredWay::default(), MirroredWay::default());
    exchange(&hosts);
    there.send(&hosts[0], 60, false);
    exchange(&hosts);
    assert!(!hosts[0].into.receiver().want_kernel());
    exchange(&hosts);
    // It has sent nothing that were to be given back, and yet.
    assert!(hosts[1].record.has_seen(weft_wire::stream::parcel::flag::WANTS));
    assert!(hosts[1].mirror().awaits_program());
    back.send(&hosts[1], 0, true);
    let _ = hosts[1].into.receiver().want_kernel();
    assert!(!hosts[1].mirror().awaits_program());
}

#[test]
fn a_program_that_is_refused_before_it_has_begun_stays_with_the_kernel() {
    let hosts = [MirroredHost::new(0), MirroredHost::new(1)];
    let begin = |generation| {
        hosts[0].out.direction.sender.attached.store(generation, Ordering::Relaxed);
        hosts[0].into.direction.watch.attached.store(generation, Ordering::Relaxed);
    };
    begin(0);
    exchange(&hosts);
    assert!(hosts[0].mirror().refuse());
    begin(GENERATION);
    exchange(&hosts);
    assert!(hosts[0].out.sender().route() == SendTarget::Kernel);
    assert!(!hosts[1].mirror().refuse());
    assert!(hosts[1].out.sender().route() == SendTarget::MaySwitch, "who has begun may go on");
}

#[test]
fn an_end_is_none_of_a_broken_ring_where_its_sender_s_word_of_having_left_it_is_late() {
    let hosts = [MirroredHost::new(0), MirroredHost::new(1)];
    let mut there = MirroredWay::default();
    exchange(&hosts);
    there.send(&hosts[0], 60, false);
    exchange(&hosts);
    assert!(!hosts[1].into.receiver().want_kernel());
    exchange(&hosts);
    // All of it comes back, and more goes by the kernel; nothing of that is said.
    there.send(&hosts[0], 40, false);
    there.there.extend(there.coming.drain(..));
    while there.receive(&hosts[1], 30).expect("in order") > 0 {}
    let mut receiver = hosts[1].into.receiver();
    receiver.kernel_ended(there.received);
    assert!(matches!(receiver.route(there.received), ByteSource::Kernel(None)) && !receiver.is_broken());
    receiver.end();
}
