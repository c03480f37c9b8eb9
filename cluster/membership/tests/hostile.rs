//! Arbitrary and wrong datagrams: no panic, bounded memory, and afterwards all is as if they had not come.

mod simulation;

use simulation::{SECOND_NS, SimulatedCluster};
use weft_membership::{Chance, Condition, DATAGRAM_BYTES, MemberId, MembershipView, VERSION};

const MEMBERS: [MemberId; 4] = [MemberId(10), MemberId(20), MemberId(30), MemberId(40)];

/// A machine, and its first datagram to `MEMBERS[1]`.
fn machine(at: usize) -> (MembershipView, Vec<u8>) {
    let mut machine = MembershipView::new(MEMBERS[at], 5, &MEMBERS, 1, 0);
    machine.handle_timeout(0);
    let sent = std::iter::from_fn(|| machine.poll_transmit());
    let sent: Vec<_> = sent.collect();
    let beat = sent.into_iter().find(|(to, _)| *to == MEMBERS[1]).map_or(Vec::new(), |(_, bytes)| bytes);
    (machine, beat)
}

fn drained(machine: &mut MembershipView) -> Vec<(MemberId, Vec<u8>)> {
    std::iter::from_fn(|| machine.poll_transmit()).collect()
}

#[test]
fn another_version_is_counted_and_named() {
    let (mut machine, _) = machine(1);
    machine.handle_datagram(1, MEMBERS[0], &[VERSION + 7, 1, 2, 3]);
    assert_eq!(machine.speaks(MEMBERS[0]), Some(VERSION + 7));
    assert_eq!(machine.dropped().other_versions, 1);
    assert_eq!(machine.state_of(MEMBERS[0]), Some(Condition::Unseen));
    let (_, beat) = self::machine(0);
    machine.handle_datagram(2, MEMBERS[0], &beat);
    assert_eq!((machine.speaks(MEMBERS[0]), machine.state_of(MEMBERS[0])), (None, Some(Condition::Alive)));
}

#[test]
fn who_is_no_member_or_writes_to_another_one_is_not_heard() {
    let (_, beat) = machine(0);
    let (mut two, _) = machine(1);
    two.handle_datagram(1, MemberId(77), &beat);
    two.handle_datagram(1, MEMBERS[1], &beat);
    let (mut three, _) = machine(2);
    three.handle_datagram(1, MEMBERS[0], &beat);
    assert_eq!((two.dropped().strangers, three.dropped().misdirected), (2, 1));
    for machine in [two, three] {
        assert_eq!(machine.state_of(MEMBERS[0]), Some(Condition::Unseen));
    }
}

#[test]
fn a_datagram_that_comes_again_later_is_no_sign_of_life() {
    let (mut one, beat) = machine(1);
    let mut now_ns = 0;
    while now_ns < 10 * SECOND_NS {
        now_ns = one.poll_timeout().expect("it watches").max(now_ns);
        one.handle_timeout(now_ns);
        one.handle_datagram(now_ns, MEMBERS[0], &beat);
        drained(&mut one);
    }
    assert!(matches!(one.state_of(MEMBERS[0]), Some(Condition::Suspect { .. })));
}

#[test]
fn a_number_that_was_wrong_once_does_not_silence_its_sender() {
    let mut cluster = SimulatedCluster::settled(2, 1);
    let mut bytes = overheard(&mut cluster, 0).remove(0).1;
    bytes[4..8].copy_from_slice(&0x4000_0000u32.to_le_bytes());
    let from = cluster.member(0);
    cluster.with(1, |machine, now_ns| machine.handle_datagram(now_ns, from, &bytes));
    cluster.run(60 * SECOND_NS);
    assert_eq!(cluster.suspicions_but_of(None), 0);
    assert!(cluster.datagrams < 150, "{} datagrams: nobody has to ask", cluster.datagrams);
}

#[test]
fn arbitrary_bytes_do_no_harm() {
    let mut chance = Chance::new(3);
    let (mut machine, _) = machine(1);
    for round in 0..200_000 {
        let mut bytes: Vec<u8> = (0..chance.below(1400)).map(|_| chance.word() as u8).collect();
        if let Some(first) = bytes.first_mut().filter(|_| round % 2 == 0) {
            *first = VERSION;
        }
        machine.handle_datagram(round, MEMBERS[chance.below(4) as usize], &bytes);
    }
    assert!(machine.dropped().malformed > 10_000);
    assert!(drained(&mut machine).len() < 100);
}

/// What members really say, with some of its bytes changed, from whomever, by clocks that leap.
#[test]
fn changed_datagrams_do_no_harm_and_all_is_well_afterwards() {
    for seed in 0..8 {
        let mut chance = Chance::new(seed);
        let mut cluster = SimulatedCluster::settled(12, seed);
        for _ in 0..2000 {
            let (from, to) = (chance.below(12) as usize, chance.below(12) as usize);
            let sent = overheard(&mut cluster, from);
            let Some((_, mut bytes)) = sent.into_iter().next() else { continue };
            for _ in 0..chance.below(4) {
                let at = chance.below(bytes.len() as u64) as usize;
                // Not what the datagram is for, so that it is heard.
                if !(8..16).contains(&at) && at != 0 {
                    bytes[at] = chance.word() as u8;
                }
            }
            bytes[8..16].copy_from_slice(&cluster.member(to).0.to_le_bytes());
            let from = cluster.member(from);
            cluster.with(to, |machine, now_ns| machine.handle_datagram(now_ns, from, &bytes));
            cluster.run(1_000_000);
        }
        let took = cluster.run_until(60 * SECOND_NS, |cluster| cluster.all_is_well());
        assert!(took.is_some(), "seed {seed}");
        cluster.run(20 * SECOND_NS);
        assert!(cluster.all_is_well(), "seed {seed}");
    }
}

/// What a member would say next.
fn overheard(cluster: &mut SimulatedCluster, by: usize) -> Vec<(MemberId, Vec<u8>)> {
    let mut copy = cluster.nodes[by].machine.clone();
    copy.handle_timeout(cluster.now_ns + SECOND_NS / 4);
    let sent = drained(&mut copy);
    assert!(sent.iter().all(|(_, bytes)| bytes.len() <= DATAGRAM_BYTES));
    match sent.is_empty() {
        true => {
            copy.leave(cluster.now_ns + SECOND_NS / 4);
            drained(&mut copy)
        }
        false => sent,
    }
}

#[test]
fn datagrams_that_nobody_fetches_are_dropped() {
    let mut machine = MembershipView::new(MEMBERS[0], 5, &MEMBERS, 1, 0);
    for _ in 0..10_000 {
        let now_ns = machine.poll_timeout().expect("it beats");
        machine.handle_timeout(now_ns);
    }
    assert!(machine.dropped().unsent > 1000);
    assert!(drained(&mut machine).len() <= 4096);
}

#[test]
fn members_come_and_go_with_the_database() {
    let mut cluster = SimulatedCluster::settled(10, 1);
    let all: Vec<MemberId> = (0..10).map(|at| cluster.member(at)).collect();
    let new = MemberId::of("another");
    let fewer: Vec<MemberId> = all[..9].iter().copied().chain([new]).collect();
    for at in 0..10 {
        cluster.with(at, |machine, now_ns| machine.set_members(now_ns, &fewer[..9]));
    }
    cluster.kill(9);
    cluster.run(10 * SECOND_NS);
    assert_eq!(cluster.suspicions_but_of(None), 0);
    let machine = &mut cluster.nodes[2].machine;
    assert_eq!((machine.state_of(all[9]), machine.members().count()), (None, 9));
    assert!(machine.members().all(|(_, condition)| condition == Condition::Alive));
    machine.set_members(cluster.now_ns, &fewer);
    assert_eq!(machine.state_of(new), Some(Condition::Unseen));
    assert_eq!(machine.state_of(all[1]), Some(Condition::Alive));
}

#[test]
fn a_member_alone_waits_for_nothing_but_its_beat() {
    let mut alone = MembershipView::new(MEMBERS[0], 5, &[], 1, 0);
    for _ in 0..100 {
        let now_ns = alone.poll_timeout().expect("it beats");
        alone.handle_timeout(now_ns);
    }
    assert_eq!((drained(&mut alone).len(), alone.poll_event()), (0, None));
    assert_eq!(alone.state_of(MEMBERS[0]), Some(Condition::Alive));
}
