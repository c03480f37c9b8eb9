//! Whole clusters on a simulated network: what all members come to see when hosts die, freeze, leave, start anew, or
//! do not reach each other.
//!
//! Every test has its seeds. More, or one that failed: `WEFT_TEST_SEEDS=2000` and `WEFT_TEST_SEED=17`.

mod simulation;

use simulation::{MS_NS, SECOND_NS, SimulatedCluster, Weather};
use weft_membership::{Condition, MemberChange};

fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match number("WEFT_TEST_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("WEFT_TEST_SEEDS").unwrap_or(usual),
    }
}

fn is_suspect(condition: Condition) -> bool {
    matches!(condition, Condition::Suspect { .. })
}

fn is_alive(condition: Condition) -> bool {
    condition == Condition::Alive
}

fn is_dead(condition: Condition) -> bool {
    condition == Condition::Dead
}

const ROUGH: Weather = Weather { loss: 0.1, twice: 0.1, delay_ns: 300 * MS_NS };

#[test]
fn all_find_each_other_and_nobody_is_suspected_on_a_rough_network() {
    for seed in seeds(8) {
        let mut cluster = SimulatedCluster::new(2 + seed as usize * 3, seed);
        cluster.weather = ROUGH;
        cluster.run(10 * SECOND_NS);
        assert!(cluster.all_is_well(), "seed {seed}");
        cluster.run(600 * SECOND_NS);
        assert_eq!(cluster.suspicions_but_of(None), 0, "seed {seed}");
        assert!(cluster.all_is_well(), "seed {seed}");
    }
}

#[test]
fn a_killed_host_is_suspect_to_all_within_five_seconds() {
    for seed in seeds(8) {
        for size in [2, 3, 5, 10, 100] {
            let mut cluster = SimulatedCluster::settled(size, seed);
            cluster.kill(seed as usize % size);
            cluster.run(5 * SECOND_NS);
            let victim = seed as usize % size;
            assert_eq!(cluster.seen_as(victim, is_suspect), size - 1, "seed {seed}, {size} hosts");
            assert_eq!(cluster.suspicions_but_of(Some(victim)), 0, "seed {seed}, {size} hosts");
        }
    }
}

#[test]
fn of_a_thousand_all_know_of_a_killed_host_within_five_seconds() {
    let mut cluster = SimulatedCluster::settled(1000, 1);
    cluster.kill(500);
    cluster.run(5 * SECOND_NS);
    assert_eq!(cluster.seen_as(500, is_suspect), 999);
    assert_eq!(cluster.suspicions_but_of(Some(500)), 0);
}

#[test]
fn a_host_that_is_silent_for_long_is_never_dead_by_that() {
    let mut cluster = SimulatedCluster::settled(10, 3);
    let killed_ns = cluster.now_ns;
    cluster.kill(4);
    cluster.run(3600 * SECOND_NS);
    assert_eq!(cluster.seen_as(4, is_suspect), 9);
    let Condition::Suspect { since_ns } = cluster.condition(0, 4) else { panic!("it is suspect") };
    assert!(since_ns.abs_diff(killed_ns) < 2 * SECOND_NS, "so a job knows for how long it was silent");
}

#[test]
fn hosts_that_die_together_are_known_to_all_soon() {
    for seed in seeds(5) {
        let mut cluster = SimulatedCluster::settled(60, seed);
        (0..30).for_each(|at| cluster.kill(at));
        let took = cluster.run_until(30 * SECOND_NS, |cluster| cluster.all_is_well());
        assert!(took.is_some_and(|took_ns| took_ns < 12 * SECOND_NS), "seed {seed}: {took:?}");
    }
}

#[test]
fn nobody_notices_a_host_that_is_frozen_for_two_seconds() {
    for seed in seeds(6) {
        let mut cluster = SimulatedCluster::settled(20, seed);
        for at in 0..20 {
            cluster.freeze(at, 2 * SECOND_NS);
            cluster.run(3 * SECOND_NS);
        }
        assert_eq!(cluster.suspicions_but_of(None), 0, "seed {seed}");
    }
}

#[test]
fn a_host_that_was_frozen_for_long_is_alive_at_once_and_suspects_nobody() {
    for seed in seeds(8) {
        let mut cluster = SimulatedCluster::settled(20, seed);
        cluster.freeze(7, 30 * SECOND_NS);
        cluster.run(29 * SECOND_NS);
        assert_eq!(cluster.seen_as(7, is_suspect), 19, "seed {seed}");
        cluster.run(3 * SECOND_NS);
        assert!(cluster.all_is_well(), "seed {seed}");
        assert_eq!(cluster.suspicions_but_of(Some(7)), 0, "seed {seed}");
        let restarted = cluster.seen.iter().any(|seen| matches!(seen.change, MemberChange::Restarted { .. }));
        assert!(!restarted, "seed {seed}: it is the same incarnation");
    }
}

#[test]
fn a_clock_that_jumps_makes_nobody_suspect() {
    for seed in seeds(10) {
        let mut cluster = SimulatedCluster::settled(10, seed);
        cluster.nodes[2].ahead_ns = 3600 * SECOND_NS;
        cluster.run(10 * SECOND_NS);
        cluster.nodes[2].ahead_ns = 7200 * SECOND_NS;
        cluster.run(10 * SECOND_NS);
        assert_eq!(cluster.suspicions_but_of(None), 0, "seed {seed}");
    }
}

#[test]
fn two_halves_that_find_each_other_again_see_no_suspicion_while_they_do() {
    for seed in seeds(4) {
        let mut cluster = SimulatedCluster::settled(100, seed);
        (0..50).for_each(|at| cluster.nodes[at].side = 1);
        cluster.run(20 * SECOND_NS);
        for at in 0..100 {
            assert_eq!(cluster.seen_as(at, is_suspect), 50, "seed {seed}: {at} by the other half");
            assert_eq!(cluster.seen_as(at, is_alive), 49, "seed {seed}: {at} by its own half");
        }
        cluster.forget();
        (0..50).for_each(|at| cluster.nodes[at].side = 0);
        cluster.run(4 * SECOND_NS);
        assert!(cluster.all_is_well(), "seed {seed}");
        assert_eq!(cluster.suspicions_but_of(None), 0, "seed {seed}");
    }
}

#[test]
fn a_host_that_is_cut_off_suspects_all_and_finds_them_again() {
    for seed in seeds(4) {
        let mut cluster = SimulatedCluster::settled(100, seed);
        cluster.nodes[9].side = 1;
        cluster.run(8 * SECOND_NS);
        let suspected = (0..100).filter(|of| is_suspect(cluster.condition(9, *of))).count();
        assert_eq!((suspected, cluster.seen_as(9, is_suspect)), (99, 99), "seed {seed}");
        cluster.forget();
        cluster.nodes[9].side = 0;
        cluster.run(4 * SECOND_NS);
        assert!(cluster.all_is_well(), "seed {seed}");
        assert_eq!(cluster.suspicions_but_of(None), 0, "seed {seed}");
    }
}

#[test]
fn a_host_that_hears_nothing_or_says_nothing_is_suspect_and_nobody_else_is() {
    for (seed, hears) in seeds(5).flat_map(|seed| [(seed, true), (seed, false)]) {
        let mut cluster = SimulatedCluster::settled(30, seed);
        (cluster.nodes[5].hears, cluster.nodes[5].speaks) = (hears, !hears);
        cluster.run(8 * SECOND_NS);
        assert_eq!(cluster.seen_as(5, is_suspect), 29, "seed {seed}, hears {hears}");
        cluster.seen.retain(|seen| seen.by != 5);
        assert_eq!(cluster.suspicions_but_of(Some(5)), 0, "seed {seed}, hears {hears}");
        (cluster.nodes[5].hears, cluster.nodes[5].speaks) = (true, true);
        cluster.run(6 * SECOND_NS);
        assert!(cluster.all_is_well(), "seed {seed}, hears {hears}");
    }
}

#[test]
fn two_hosts_that_do_not_reach_each_other_are_alive_where_others_reach_both() {
    for seed in seeds(5) {
        let mut cluster = SimulatedCluster::settled(12, seed);
        cluster.cut = (1..12).map(|at| (at - 1, at)).collect();
        cluster.run(120 * SECOND_NS);
        assert_eq!(cluster.suspicions_but_of(None), 0, "seed {seed}");
    }
}

#[test]
fn slow_hosts_are_not_suspect() {
    for seed in seeds(4) {
        let mut cluster = SimulatedCluster::settled(20, seed);
        (0..10).for_each(|at| cluster.nodes[at].slow_ns = 500 * MS_NS);
        cluster.run(600 * SECOND_NS);
        assert_eq!(cluster.suspicions_but_of(None), 0, "seed {seed}");
    }
}

#[test]
fn who_leaves_is_dead_to_all_at_once_and_comes_back_as_another() {
    for seed in seeds(8) {
        let mut cluster = SimulatedCluster::settled(30, seed);
        cluster.leave(3);
        cluster.run(2 * SECOND_NS);
        assert_eq!(cluster.seen_as(3, is_dead), 29, "seed {seed}");
        let incarnation = cluster.nodes[3].incarnation + 1;
        cluster.forget();
        cluster.start(3, incarnation);
        cluster.run(3 * SECOND_NS);
        let back = MemberChange::Restarted { member: cluster.member(3), incarnation };
        let told = cluster.seen.iter().filter(|seen| seen.change == back).count();
        assert_eq!((cluster.all_is_well(), told), (true, 29), "seed {seed}");
    }
}

#[test]
fn a_daemon_that_starts_anew_before_anybody_missed_it_is_told_from_the_old_one() {
    for seed in seeds(8) {
        let mut cluster = SimulatedCluster::settled(30, seed);
        let incarnation = cluster.nodes[3].incarnation + 5;
        cluster.start(3, incarnation);
        cluster.run(3 * SECOND_NS);
        let back = MemberChange::Restarted { member: cluster.member(3), incarnation };
        let told = cluster.seen.iter().filter(|seen| seen.change == back).count();
        assert_eq!((told, cluster.suspicions_but_of(None)), (29, 0), "seed {seed}");
    }
}

#[test]
fn a_daemon_whose_clock_was_set_back_takes_the_next_incarnation() {
    for (seed, leaves) in seeds(5).flat_map(|seed| [(seed, true), (seed, false)]) {
        let mut cluster = SimulatedCluster::settled(30, seed);
        let before = cluster.nodes[3].incarnation;
        if leaves {
            cluster.leave(3);
            cluster.run(SECOND_NS);
        }
        cluster.start(3, 12);
        cluster.run(4 * SECOND_NS);
        assert!(cluster.all_is_well(), "seed {seed}");
        let next = MemberChange::Restarted { member: cluster.member(3), incarnation: before + 1 };
        assert!(cluster.seen.iter().any(|seen| seen.change == next), "seed {seed}");
    }
}

#[test]
fn an_idle_host_sends_few_datagrams_however_many_there_are() {
    for size in [10, 100, 400] {
        let mut cluster = SimulatedCluster::settled(size, 1);
        cluster.run(100 * SECOND_NS);
        let per_second = cluster.datagrams as f64 / size as f64 / 100.0;
        assert!(per_second < 5.0, "{size} hosts: {per_second}");
        assert!(cluster.bytes / cluster.datagrams < 60, "{} bytes", cluster.bytes / cluster.datagrams);
    }
}

/// Anything happens for two minutes; then nothing more does.
#[test]
fn whatever_has_happened_all_see_the_same_in_the_end() {
    for seed in seeds(25) {
        let size = 2 + seed as usize % 40;
        let mut cluster = SimulatedCluster::settled(size, seed);
        for _ in 0..60 {
            misfortune(&mut cluster);
            let pause_ns = cluster.chance.below(4 * SECOND_NS);
            cluster.run(pause_ns);
        }
        cluster.weather = Weather::default();
        cluster.cut.clear();
        for node in &mut cluster.nodes {
            (node.hears, node.speaks, node.side, node.slow_ns) = (true, true, 0, 0);
        }
        // Who is frozen is so for twelve seconds at most.
        cluster.run(12 * SECOND_NS);
        let took = cluster.run_until(20 * SECOND_NS, |cluster| cluster.all_is_well());
        assert!(took.is_some(), "seed {seed}, {size} hosts");
        cluster.forget();
        cluster.run(60 * SECOND_NS);
        assert_eq!((cluster.suspicions_but_of(None), cluster.all_is_well()), (0, true), "seed {seed}, {size} hosts");
    }
}

fn misfortune(cluster: &mut SimulatedCluster) {
    let at = cluster.chance.below(cluster.nodes.len() as u64) as usize;
    let other = cluster.chance.below(cluster.nodes.len() as u64) as usize;
    let some_ns = cluster.chance.below(12 * SECOND_NS);
    let is_up = cluster.nodes[at].is_up;
    match cluster.chance.below(12) {
        0 if is_up => cluster.kill(at),
        1 if is_up => cluster.leave(at),
        0..=2 => {
            let incarnation = cluster.chance.below(2_000_000);
            cluster.start(at, incarnation);
        }
        3 => cluster.freeze(at, some_ns),
        4 => cluster.nodes[at].side ^= 1,
        5 => (0..at).for_each(|at| cluster.nodes[at].side ^= 1),
        6 => cluster.cut.push((at, other)),
        7 => cluster.nodes[at].hears ^= true,
        8 => cluster.nodes[at].speaks ^= true,
        9 => cluster.nodes[at].slow_ns = some_ns / 8,
        10 => cluster.nodes[at].ahead_ns += some_ns,
        _ => cluster.weather.loss = 0.3 - cluster.weather.loss,
    }
}
