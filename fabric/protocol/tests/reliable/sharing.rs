//! Many links over one bottleneck, and one over a bad path: how much gets through, and who gets it.

use crate::faults::{Faults, MS, US};
use crate::network::Bottleneck;
use crate::random::Random;
use crate::traffic::Source;
use crate::world::{SEALER, World, configs};

/// A network to measure: the rate of its bottleneck, the delay of one way, and the room in its queue.
#[derive(Clone, Copy, Debug)]
struct Shape {
    bytes_per_ns: f64,
    delay_ns: u64,
    queue_bytes: usize,
}

const GIGABIT: Shape = Shape { bytes_per_ns: 0.125, delay_ns: 50 * US, queue_bytes: 1 << 20 };
const TEN_GIGABIT: Shape = Shape { bytes_per_ns: 1.25, delay_ns: 20 * US, queue_bytes: 1 << 20 };
/// A cheap switch: far less room than eight senders want.
const SHORT_QUEUE: Shape = Shape { queue_bytes: 64 << 10, ..GIGABIT };

/// Senders with as much to send as there is room for; sender `n` begins after `n * apart_ns`.
fn world(shape: Shape, senders: usize, apart_ns: u64, loss_ppm: u32) -> World {
    let bottleneck = Bottleneck::new(shape.bytes_per_ns, shape.queue_bytes);
    let mut world = World::new(Random::new(5), vec![bottleneck]);
    let faults = Faults { loss_ppm, ..Faults::none(shape.delay_ns) };
    for sender in 0..senders {
        let sources = [Source::Endless { bulk_bytes: 60_000 }, Source::Queue([].into())];
        world.add_pair(configs(sender, 1_472), SEALER, &faults, Some(0), sources);
        let [.., first, second] = &mut world.ends[..] else { unreachable!("just added") };
        (first.closes, second.closes) = (false, false);
        first.starts_ns = sender as u64 * apart_ns;
    }
    world
}

/// Bytes of payload that each sender gets through between two times.
fn goodput(shape: Shape, senders: usize, apart_ns: u64, loss_ppm: u32, between_ns: (u64, u64)) -> Vec<u64> {
    let mut world = world(shape, senders, apart_ns, loss_ppm);
    let delivered =
        |world: &World| -> Vec<u64> { world.ends.iter().skip(1).step_by(2).map(|end| end.bytes_delivered).collect() };
    world.run_for(between_ns.0);
    let before = delivered(&world);
    world.run_for(between_ns.1 - between_ns.0);
    delivered(&world).iter().zip(before).map(|(after, before)| after - before).collect()
}

/// What the bottleneck carries of payload, if nothing but full datagrams pass.
fn alone(shape: Shape, between_ns: (u64, u64)) -> u64 {
    goodput(shape, 1, 0, 0, between_ns)[0]
}

fn parts(shares: &[u64], of: u64) -> Vec<f64> {
    shares.iter().map(|share| *share as f64 / of as f64).collect()
}

#[test]
fn one_sender_fills_the_bottleneck() {
    for shape in [GIGABIT, TEN_GIGABIT, SHORT_QUEUE] {
        let between_ns = (100 * MS, 500 * MS);
        let carried = shape.bytes_per_ns * (between_ns.1 - between_ns.0) as f64;
        let part = alone(shape, between_ns) as f64 / carried;
        eprintln!("alone: {part:.3} of the bottleneck {shape:?}");
        assert!(part > 0.85, "{part:.3} of the bottleneck, {shape:?}");
    }
}

#[test]
fn two_senders_share_a_bottleneck_whenever_they_began() {
    for (shape, apart_ns) in [(GIGABIT, 0), (GIGABIT, 333 * MS), (TEN_GIGABIT, 111 * MS), (SHORT_QUEUE, 333 * MS)] {
        let between_ns = (1_000 * MS, 1_500 * MS);
        let (shares, alone) = (goodput(shape, 2, apart_ns, 0, between_ns), alone(shape, between_ns));
        let parts = parts(&shares, alone);
        eprintln!("two: {parts:.3?} of one alone, {shape:?}");
        let (least, sum) = (parts[0].min(parts[1]), parts[0] + parts[1]);
        assert!(least >= 0.4 * sum, "{parts:?} of one alone, {shape:?} {apart_ns}");
        assert!(sum >= 0.9, "{parts:?} of one alone, {shape:?} {apart_ns}");
    }
}

/// What waits at the bottleneck is what the senders aim at, not what the queue would hold.
#[test]
fn the_queue_of_a_full_bottleneck_stays_short() {
    let mut world = world(GIGABIT, 2, 0, 0);
    world.run_for(150 * MS);
    let wanted_bytes = 2 * configs(0, 1_472)[0].queue_bytes;
    let wanted_ns = 2 * GIGABIT.delay_ns + (wanted_bytes as f64 / GIGABIT.bytes_per_ns) as u64;
    for end in world.ends.iter().step_by(2) {
        let rtt_ns = end.link.rtt_ns();
        assert!((wanted_ns / 2..wanted_ns * 3 / 2).contains(&rtt_ns), "{rtt_ns} ns, {wanted_ns} are wanted");
    }
}

#[test]
fn eight_senders_to_one_do_not_collapse() {
    for shape in [GIGABIT, TEN_GIGABIT, SHORT_QUEUE] {
        let between_ns = (0, 400 * MS);
        let (shares, alone) = (goodput(shape, 8, 0, 0, between_ns), alone(shape, between_ns));
        let parts = parts(&shares, alone);
        eprintln!("eight: {parts:.3?} of one alone, {shape:?}");
        assert!(parts.iter().sum::<f64>() >= 0.9, "{parts:?} of one alone, {shape:?}");
        assert!(parts.iter().all(|part| *part > 0.03), "{parts:?} of one alone, {shape:?}");
    }
}

#[test]
fn one_datagram_in_a_hundred_lost_leaves_more_than_half() {
    for shape in [GIGABIT, TEN_GIGABIT] {
        let between_ns = (100 * MS, 400 * MS);
        let part = goodput(shape, 1, 0, 10_000, between_ns)[0] as f64 / alone(shape, between_ns) as f64;
        eprintln!("1 % lost: {part:.3} of without, {shape:?}");
        assert!(part > 0.5, "{part:.3} of without, {shape:?}");
    }
}
