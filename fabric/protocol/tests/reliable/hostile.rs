//! Datagrams that nobody of ours has sent, or not now: they are counted, and change nothing.

use crate::ends::Sealer;
use crate::faults::{Faults, MS, S, US};
use crate::random::Random;
use crate::traffic::{Source, item};
use crate::world::{SEALER, World, configs};
use weft_protocol::reliable::{Config, Dropped, Gone, Keyed, Link, Phase, ReliableCounters};
use weft_wire::link::header::{Header, Process};
use weft_wire::link::mac::Key;

fn queue(count: usize, bulk: usize) -> Source {
    Source::Queue((0..count).map(|at| item(at, 8, bulk)).collect())
}

fn keyed(byte: u8) -> Sealer {
    Sealer::Keyed(Key([byte; 16]))
}

const ENCRYPTED: Sealer = Sealer::Encrypted([5; 16]);

/// A pair that has exchanged some packets, and every datagram of the first end.
fn after_talk(sealer: Sealer) -> (World, Vec<Vec<u8>>) {
    let mut world = World::new(Random::new(3), Vec::new());
    world.add_pair(configs(0, 1_472), sealer, &Faults::none(50 * US), None, [queue(200, 700), queue(3, 10)]);
    world.ends.iter_mut().for_each(|end| end.closes = false);
    world.ends[0].keeps = Some(Vec::new());
    world.run_for(100 * MS);
    assert!(world.ends[0].accepted.is_empty());
    let kept = world.ends[0].keeps.take().expect("kept");
    (world, kept)
}

/// What the second end counts when these datagrams arrive, and that talking goes on after.
fn counted(world: &mut World, datagrams: Vec<Vec<u8>>) -> ReliableCounters {
    let before = *world.ends[1].link.counters();
    for datagram in datagrams {
        world.network.inject(world.now_ns + 1, 1, datagram);
    }
    world.run_for(10 * MS);
    let after = *world.ends[1].link.counters();
    assert_eq!(after.packets_received, before.packets_received);
    assert_eq!(after.datagrams_received, before.datagrams_received, "none was taken");
    world.ends[0].source = queue(20, 700);
    world.drive(0);
    world.run_for(10 * MS);
    assert!(world.ends[0].accepted.is_empty() && world.ends[1].link.phase() == Phase::Open);
    after
}

#[test]
fn what_is_replayed_is_dropped() {
    for sealer in [keyed(1), ENCRYPTED] {
        let (mut world, kept) = after_talk(sealer);
        let count = kept.len() as u64;
        assert!(count > 100);
        assert_eq!(counted(&mut world, kept).replayed, count);
    }
}

#[test]
fn what_has_another_number_or_no_key_is_forged() {
    let (mut world, kept) = after_talk(keyed(1));
    let (last, count) = (kept.len() as u32, kept.len() as u64);
    let renumbered = |mut datagram: Vec<u8>| {
        let number = u32::from_le_bytes(datagram[20..24].try_into().expect("four bytes"));
        datagram[20..24].copy_from_slice(&(number + last + 1_000).to_le_bytes());
        datagram
    };
    let datagrams: Vec<Vec<u8>> = kept.into_iter().map(renumbered).collect();
    assert_eq!(counted(&mut world, datagrams.clone()).forged, count);

    let reseal = |mut datagram: Vec<u8>| {
        let at = datagram.len() - 8;
        let number = (1 << 32) + u64::from(Header::parse(&datagram).expect("sound").number);
        let seal = Keyed::new(&Key([2; 16])).code(number, &datagram[..at]);
        datagram[at..].copy_from_slice(&seal.to_le_bytes());
        datagram
    };
    let resealed = datagrams.into_iter().map(reseal).collect();
    assert_eq!(counted(&mut world, resealed).forged, 2 * count);
}

#[test]
fn an_encrypted_datagram_of_which_a_bit_was_changed_is_dropped_and_counted() {
    let [ours, theirs] = configs(0, 1_472);
    let mut from = Link::new(ours, ENCRYPTED.at(&ours), 0);
    let mut to = Link::new(theirs, ENCRYPTED.at(&theirs), 0);
    let item = item(0, 8, 30);
    from.try_send(&item.head, item.inline(), item.bulk());
    let mut buffer = [0; 1_472];
    let length = from.poll_transmit(0, &mut buffer).expect("a datagram");
    for at in 0..length {
        let mut datagram = buffer[..length].to_vec();
        datagram[at] ^= 1 << (at % 8);
        assert!(to.handle_datagram(0, &datagram, |_| panic!("it was taken")).is_err(), "byte {at}");
    }
    let dropped = *to.counters();
    // All but what the header tells by itself: where it goes and comes from, and lengths that cannot be.
    assert!(dropped.forged >= length as u64 - 30, "{dropped:?}");
    let all = dropped.forged + dropped.malformed + dropped.strangers + dropped.stale + dropped.replayed;
    assert_eq!(all, length as u64, "{dropped:?}");
    let mut count = 0;
    let taken = to.handle_datagram(0, &buffer[..length], |packet| {
        item.check(&packet);
        count += 1;
        true
    });
    assert_eq!((taken, count), (Ok(()), 1));
}

#[test]
fn what_is_encrypted_shows_nothing_of_the_payload() {
    let text = item(3, 8, 700);
    let shows = |kept: &[Vec<u8>]| {
        let bulk = text.bulk().expect("it has one");
        kept.iter().any(|datagram| datagram.windows(16).any(|window| window == &bulk[..16]))
    };
    assert!(shows(&after_talk(keyed(1)).1), "what is not encrypted shows it");
    assert!(!shows(&after_talk(ENCRYPTED).1));
}

#[test]
fn datagrams_of_an_earlier_process_and_of_strangers_are_dropped() {
    let (mut world, _) = after_talk(SEALER);
    let [config, _] = configs(0, 1_472);
    let by = |config: Config| {
        let mut link = Link::new(config, SEALER.at(&config), 0);
        let item = item(0, 8, 0);
        link.try_send(&item.head, item.inline(), None);
        let mut buffer = [0; 1_472];
        let length = link.poll_transmit(0, &mut buffer).expect("a datagram");
        buffer[..length].to_vec()
    };
    let process = |rank, incarnation| Process { rank, incarnation };
    let Process { rank, incarnation } = config.local;
    let other = config.remote;
    let earlier = [
        Config { local: process(rank, incarnation - 1), ..config },
        Config { remote: process(other.rank, other.incarnation + 5), ..config },
    ];
    let strangers = [
        Config { local: process(rank + 9, incarnation), ..config },
        Config { remote: process(other.rank + 9, other.incarnation), ..config },
    ];
    assert_eq!(counted(&mut world, earlier.map(by).to_vec()).stale, 2);
    assert_eq!(counted(&mut world, strangers.map(by).to_vec()).strangers, 2);
}

#[test]
fn noise_is_dropped_whatever_it_looks_like() {
    let (mut world, kept) = after_talk(SEALER);
    let mut random = Random::new(11);
    let noise = (0..3_000).map(|turn| {
        let mut datagram = if turn % 2 == 0 {
            random.pick(&[&kept[0], &kept[kept.len() - 1]]).clone()
        } else {
            vec![0; random.range(0, 1_500) as usize]
        };
        let spoilt = if turn % 2 == 0 { 1 + random.range(0, 8) as usize } else { datagram.len() };
        for _ in 0..spoilt {
            let at = random.range(0, datagram.len() as u64) as usize;
            datagram[at] ^= 1 + random.range(0, 255) as u8;
        }
        datagram
    });
    counted(&mut world, noise.collect());
}

/// What it is, a payload, and what is wrong with the header.
type Case = (&'static str, Vec<u8>, fn(&mut Header));

/// The seal is right: the peer itself breaks the rules, and only its link ends.
#[test]
fn a_peer_that_sends_nonsense_loses_its_link() {
    let [config, theirs] = configs(0, 1_472);
    let nonsense = |payload: &[u8], change: fn(&mut Header)| {
        let mut header =
            Header { to: config.local, from: theirs.local, payload_bytes: payload.len() as u16, ..Header::default() };
        change(&mut header);
        let mut datagram = [&header.pack()[..], payload].concat();
        let seal = Keyed::on(false, &Key([7; 16]));
        datagram.extend(seal.code((1 << 32) + u64::from(header.number), &datagram).to_le_bytes());
        let mut link = Link::new(config, seal, 0);
        (link.handle_datagram(0, &datagram, |_| true), link.phase())
    };
    let end = [[0, 0xff].to_vec(), vec![0; 15]].concat();
    let cases: [Case; 4] = [
        ("a record of no kind", vec![0; 16], |_| {}),
        ("bytes behind the end", end, |_| {}),
        ("a receipt for what was not sent", vec![], |header| header.received = 5),
        ("an acknowledgement of what was not sent", vec![], |header| (header.acked, header.run) = (3, 1)),
    ];
    for (what, payload, change) in cases {
        let (taken, phase) = nonsense(&payload, change);
        assert_eq!(taken, Ok(()), "{what}");
        assert!(matches!(phase, Phase::Gone(Gone::Nonsense { .. })), "{what}: {phase:?}");
    }
    let beyond = nonsense(&[0; 16], |header| header.position = 65_530);
    assert_eq!(beyond, (Err(Dropped::BeyondCredit), Phase::Open));
}

#[test]
fn who_takes_nothing_is_sent_no_more_than_it_promised() {
    let mut world = World::new(Random::new(3), Vec::new());
    let mut configs = configs(0, 1_472);
    configs[1].window_bytes = 1 << 18;
    world.add_pair(configs, SEALER, &Faults::none(50 * US), None, [queue(100, 20_000), queue(0, 0)]);
    world.ends[1].refusing_until_ns = 5 * S;
    world.run_for(4 * S);
    let (sender, receiver) = (world.ends[0].link.counters(), world.ends[1].link.counters());
    let fresh = sender.bytes_sent - sender.bytes_sent_again;
    assert_eq!((receiver.packets_received, receiver.beyond_credit), (0, 0));
    assert!(((1 << 18)..(1 << 18) * 12 / 10).contains(&fresh), "{fresh} bytes were sent");
    assert!(sender.datagrams_sent < 2_000, "it asks too often: {sender:?}");
    assert!(world.run(10 * S, World::all_over));
    assert!(world.ends[0].accepted.is_empty());
}
