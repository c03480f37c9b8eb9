//! Thousands of seeds: whatever the network does, everything arrives once, in order and whole, and both ends part.

use crate::ends::Sealer;
use crate::faults::{Faults, S};
use crate::random::Random;
use crate::traffic::Source;
use crate::world::{World, configs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use weft_protocol::reliable::{AckPolicy, Phase, ReliableCounters, Sizes};
use weft_wire::link::mac::Key;

const SEEDS: u64 = 2_000;

fn sealer(random: &mut Random) -> Sealer {
    match if random.chance(500_000) { 0 } else { random.next() as u8 } {
        key if key % 2 == 0 => Sealer::Keyed(Key([key; 16])),
        key => Sealer::Encrypted([key; 16]),
    }
}

fn world(seed: u64) -> World {
    let mut random = Random::new(seed);
    let faults = Faults::of_seed(&mut random);
    let mut configs = configs(0, random.pick(&[1_200, 1_472, 4_000, 9_000]));
    // Just before the wrap, or anywhere.
    let mut first = |within: u64| match random.pick(&[0, 1]) {
        0 => 0u32.wrapping_sub(random.range(0, within) as u32),
        _ => random.next() as u32,
    };
    let (first_number, first_position) = (first(300), first(20_000));
    for config in &mut configs {
        (config.first_number, config.first_position) = (first_number, first_position);
        config.window_bytes = random.pick(&[1, 1 << 18, 1 << 20]);
        config.send_bytes = random.pick(&[1 << 15, 1 << 17, 1 << 20]);
        config.ack = AckPolicy { delay_ns: random.pick(&[1_000, 25_000, 400_000]), every: random.pick(&[1, 2, 8]) };
        let smallest = 400;
        config.sizes = Sizes { smallest, first: config.sizes.first.max(smallest), ..config.sizes };
    }
    let sealer = sealer(&mut random);
    let sources = [0, 1].map(|_| Source::Bursts {
        left: random.pick(&[0, 1, 20, 60, 150]),
        next_ns: 0,
        pause_ns: random.pick(&[0, 1_000_000, 100_000_000]),
        largest: random.pick(&[100, 3_000, 60_000]),
        random: Random::new(random.next()),
    });
    let refuses_ppm = random.pick(&[0, 0, 10_000, 300_000]);
    let mut world = World::new(random, Vec::new());
    world.add_pair(configs, sealer, &faults, None, sources);
    world.ends.iter_mut().for_each(|end| end.refuses_ppm = refuses_ppm);
    world
}

/// What both ends of one seed have counted.
fn run(seed: u64) -> [ReliableCounters; 2] {
    let mut world = world(seed);
    let in_time = world.run(3_600 * S, World::all_over);
    let state = || -> Vec<_> {
        let end = |end: &crate::ends::End| (end.link.phase(), end.accepted.len(), *end.link.counters());
        world.ends.iter().map(end).collect()
    };
    assert!(in_time, "not over after an hour: {:#?}", state());
    for (side, end) in world.ends.iter().enumerate() {
        assert_eq!(end.link.phase(), Phase::Ended, "side {side} at {} ns: {:#?}", world.now_ns, state());
        assert!(end.accepted.is_empty(), "side {side}: {} packets have not arrived", end.accepted.len());
    }
    [0, 1].map(|side| *world.ends[side].link.counters())
}

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("the number of a seed, or of seeds"))
}

/// Runs a test for each seed that the environment asks for; one that fails says how to replay it.
fn each_seed(test: &str, mut run: impl FnMut(u64)) {
    let range = match asked("WEFT_TEST_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..asked("WEFT_TEST_SEEDS").unwrap_or(SEEDS),
    };
    for seed in range {
        if let Err(why) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            eprintln!("to replay: WEFT_TEST_SEED={seed} cargo test -p weft-protocol --test reliable {test}");
            std::panic::resume_unwind(why);
        }
    }
}

#[test]
fn whatever_the_network_does_everything_arrives_once_in_order_and_whole() {
    let mut met = [0; 9];
    each_seed("whatever_the_network_does", |seed| {
        for c in run(seed) {
            let more = [c.lost, c.overtaken, c.duplicates, c.replayed, c.forged, c.black_holes];
            let more = more.into_iter().chain([c.questions, c.bytes_sent_again, c.packets_received]);
            met.iter_mut().zip(more).for_each(|(met, more)| *met += more);
        }
    });
    let whole = asked("WEFT_TEST_SEED").is_none() && asked("WEFT_TEST_SEEDS").is_none_or(|seeds| seeds >= SEEDS);
    assert!(!whole || met.iter().all(|times| *times > 100), "something does not happen any more: {met:?}");
}
