//! Peers that die, networks that fall apart for a while, and ends that part in order.

use crate::faults::{Faults, MS, Partition, S, US};
use crate::random::Random;
use crate::traffic::{Source, item};
use crate::world::{SEALER, World, configs};
use weft_protocol::reliable::{Gone, Link, LinkPosted, Phase};

fn queue(count: usize, bulk: usize) -> Source {
    Source::Queue((0..count).map(|at| item(at, 8, bulk)).collect())
}

/// A pair whose ends stay open when they have nothing left to send.
fn open_pair(faults: &Faults, sources: [Source; 2]) -> World {
    let mut world = World::new(Random::new(3), Vec::new());
    world.add_pair(configs(0, 1_472), SEALER, faults, None, sources);
    world.ends.iter_mut().for_each(|end| end.closes = false);
    world
}

#[test]
fn a_dead_peer_is_told_of_within_its_time() {
    for talking in [false, true] {
        let mut world = open_pair(&Faults::none(50 * US), [queue(10, 100), queue(10, 100)]);
        world.run_for(100 * MS);
        world.ends[1].is_killed = true;
        if talking {
            world.ends[0].source = queue(1_000, 1_000);
            world.drive(0);
        }
        let killed_ns = world.now_ns;
        assert!(world.run(killed_ns + 60 * S, |world| world.ends[0].is_over()), "never told, talking {talking}");
        let told_after_ns = world.now_ns - killed_ns;
        let dead_after_ns = configs(0, 1_472)[0].dead_after_ns;
        assert!(matches!(world.ends[0].link.phase(), Phase::Gone(Gone::Silent { .. })));
        assert!((dead_after_ns - S..=dead_after_ns + S).contains(&told_after_ns), "after {told_after_ns} ns");
        let item = item(0, 0, 0);
        assert_eq!(world.ends[0].link.try_send(&item.head, &[], None), LinkPosted::Gone);
    }
}

#[test]
fn a_partition_of_less_than_ten_seconds_leaves_no_error() {
    for shut in [[true, true], [true, false], [false, true]] {
        for closes in [false, true] {
            let partition = Partition { from_ns: 2 * MS, to_ns: 9_900 * MS, shut };
            let faults = Faults { partitions: vec![partition], ..Faults::none(50 * US) };
            let mut world = open_pair(&faults, [queue(2_000, 3_000), queue(2_000, 3_000)]);
            world.ends.iter_mut().for_each(|end| end.closes = closes);
            world.run(12 * S, |world| closes && world.all_over());
            let phase = if closes { Phase::Ended } else { Phase::Open };
            for end in &world.ends {
                assert_eq!((end.link.phase(), end.accepted.len()), (phase, 0), "{shut:?}, closing {closes}");
            }
        }
    }
}

#[test]
fn traffic_goes_on_soon_after_a_partition() {
    let partition = Partition { from_ns: 0, to_ns: 5 * S, shut: [true, true] };
    let mut world =
        open_pair(&Faults { partitions: vec![partition], ..Faults::none(50 * US) }, [queue(1, 0), queue(0, 0)]);
    let arrived = world.run(5 * S + 250 * MS, |world| world.ends[0].accepted.is_empty());
    assert!(arrived, "the packet has not arrived 250 ms after the network was whole");
}

#[test]
fn the_one_that_closes_first_still_receives_everything() {
    let mut world = open_pair(&Faults::none(50 * US), [queue(1, 10), queue(3_000, 2_000)]);
    world.ends[0].closes = true;
    world.run_for(S);
    assert_eq!(world.ends[0].link.phase(), Phase::Closing);
    assert!(world.ends[1].link.peer_has_closed() && world.ends[1].accepted.is_empty());
    world.ends[1].source = queue(10, 500);
    world.ends[1].closes = true;
    world.drive(1);
    assert!(world.run(2 * S, World::all_over));
    assert!(world.ends.iter().all(|end| end.link.phase() == Phase::Ended && end.accepted.is_empty()));
}

/// Who was not driven for a minute has not listened: silence is its own.
#[test]
fn who_was_away_does_not_take_its_peer_for_dead() {
    let [ours, theirs] = configs(0, 1_472);
    let mut a = Link::new(ours, SEALER.at(&ours), 0);
    let mut b = Link::new(theirs, SEALER.at(&theirs), 0);
    let mut buffer = [0; 1_472];
    let mut now_ns = 60 * S;
    let mut rounds = 0;
    while a.next_timeout().is_some_and(|at_ns| at_ns <= now_ns) || rounds < 3 {
        a.handle_timeout(now_ns);
        assert_eq!(a.phase(), Phase::Open, "round {rounds}");
        while let Some(length) = a.poll_transmit(now_ns, &mut buffer) {
            b.handle_datagram(now_ns, &buffer[..length], |_| true).expect("taken");
        }
        while let Some(length) = b.poll_transmit(now_ns, &mut buffer) {
            a.handle_datagram(now_ns, &buffer[..length], |_| true).expect("taken");
        }
        now_ns += 10 * US;
        rounds += 1;
        assert!(rounds < 100, "it asks again and again");
    }
}

#[test]
fn both_ends_part_at_once_and_without_asking() {
    let mut world = open_pair(&Faults::none(50 * US), [queue(20, 500), queue(1, 0)]);
    world.ends.iter_mut().for_each(|end| end.closes = true);
    assert!(world.run(5 * MS, World::all_over), "it takes longer than 5 ms");
    for end in &world.ends {
        assert_eq!((end.link.phase(), end.link.counters().questions), (Phase::Ended, 0));
    }
}
