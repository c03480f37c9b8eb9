//! How large datagrams get, and what happens when the path does not carry them any more.

use crate::faults::{Faults, MS, S, US};
use crate::network::Bottleneck;
use crate::random::Random;
use crate::traffic::Source;
use crate::world::{SEALER, World, configs};

#[test]
fn large_datagrams_are_used_while_they_pass() {
    let mut world = World::new(Random::new(9), vec![Bottleneck::new(0.01, 1 << 20)]);
    let sources = [Source::Endless { bulk_bytes: 60_000 }, Source::Queue([].into())];
    world.add_pair(configs(0, 9_000), SEALER, &Faults::none(50 * US), Some(0), sources);
    world.ends.iter_mut().for_each(|end| end.closes = false);
    world.run_for(200 * MS);
    assert_eq!(world.ends[0].link.datagram_bytes(), 9_000);

    world.ends[0].way.faults.carries = 1_300;
    let before = world.ends[1].bytes_delivered;
    world.run_for(2 * S);
    let (size, delivered) = (world.ends[0].link.datagram_bytes(), world.ends[1].bytes_delivered - before);
    assert!((1_232..=1_300).contains(&size), "{size} bytes");
    assert!(delivered > 15_000_000, "{delivered} bytes of 20 MB");
    assert_eq!(world.ends[0].link.counters().black_holes, 1);

    world.ends[0].way.faults.carries = usize::MAX;
    world.run_for(6 * S);
    assert_eq!(world.ends[0].link.datagram_bytes(), 9_000);
}
