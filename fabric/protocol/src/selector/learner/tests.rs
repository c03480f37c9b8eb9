//! Programs that send and receive, with times that are given.

use super::*;

const BYTES: u64 = 64 << 10;

/// Messages one after the other that take so long by each method; answers how many of them were copied.
fn exchange(grants: &mut Grants, messages: u32, stream_ns: u64, copy_ns: u64) -> u32 {
    let mut now = 0;
    (0..messages)
        .filter(|_| {
            let method = grants.begin(BYTES, now);
            now += if method == Method::Copy { copy_ns } else { stream_ns };
            grants.end(BYTES, now);
            method == Method::Copy
        })
        .count() as u32
}

#[test]
fn goes_the_faster_way_and_seldom_tries_the_other() {
    let mut grants = Grants::default();
    assert_eq!(exchange(&mut grants, 6, 10_000, 20_000), 3, "both are tried when the length is new");
    let copied = exchange(&mut grants, 100_000, 10_000, 20_000);
    assert!((50..130).contains(&copied), "{copied} of 100000 went the slower way");
}

#[test]
fn follows_a_machine_that_changes() {
    let mut grants = Grants::default();
    exchange(&mut grants, 10_000, 10_000, 20_000);
    let copied = exchange(&mut grants, 10_000, 40_000, 20_000);
    assert!(copied > 9_900, "{copied} of 10000 went the faster way after the other had become slow");
    let copied = exchange(&mut grants, 10_000, 10_000, 20_000);
    assert!(copied < 5_000, "{copied} of 10000 went the slower way after the other had become fast");
}

#[test]
fn one_odd_sample_changes_nothing() {
    let mut grants = Grants::default();
    exchange(&mut grants, 10, 10_000, 20_000);
    exchange(&mut grants, 1, 10_000_000, 20_000);
    assert_eq!(exchange(&mut grants, 1, 10_000, 20_000), 0);
}

/// A program that does not write its buffer: a copy is slow only where the message before was no copy.
#[test]
fn a_trial_sees_how_it_would_go_on() {
    let (mut grants, mut now, mut last, mut copied) = (Grants::default(), 0, Method::Stream, 0);
    for _ in 0..10_000 {
        let method = grants.begin(BYTES, now);
        now += match (method, last) {
            (Method::Stream, _) => 7_500,
            (Method::Copy, Method::Stream) => 20_000,
            (Method::Copy, Method::Copy) => 4_500,
        };
        grants.end(BYTES, now);
        copied += u32::from(method == Method::Copy);
        last = method;
    }
    assert!(copied > 9_900, "{copied} of 10000 were copied");
}

#[test]
fn a_window_that_is_granted_is_one_sample() {
    let mut grants = Grants::default();
    for window in 0..50 {
        let methods: Vec<Method> = (0..20).map(|_| grants.begin(BYTES, window * 1_000_000)).collect();
        assert!(methods.iter().all(|method| *method == methods[0]), "one window, one way");
        let ns = if methods[0] == Method::Copy { 100_000 } else { 400_000 };
        (0..20).for_each(|_| grants.end(BYTES, window * 1_000_000 + ns));
        let tried = window < 3 || (22..25).contains(&window);
        assert_eq!(methods[0] == Method::Copy, !tried, "window {window}");
    }
}

#[test]
fn granted_messages_without_end_are_decided_anew() {
    let mut grants = Grants::default();
    let (mut now, mut last) = (0, Method::Stream);
    grants.begin(BYTES, now);
    for _ in 0..2_000 {
        last = grants.begin(BYTES, now);
        now += if last == Method::Copy { 5_000 } else { 10_000 };
        grants.end(BYTES, now);
    }
    assert_eq!(last, Method::Copy);
}

#[test]
fn a_lost_peer_spoils_the_period() {
    let mut grants = Grants::default();
    for _ in 0..100 {
        grants.begin(BYTES, 0);
        grants.begin(BYTES, 0);
        grants.abandon();
        grants.end(BYTES, 1);
    }
    let class = &grants.classes[class_of(BYTES)];
    assert!(class.median(Method::Stream).is_none() && class.median(Method::Copy).is_none());
    assert_eq!(grants.under_way, 0);
}

/// A program that sends one message after the other, and does something for `pause_ns` before each; answers how many
/// were offered.
fn send(offers: &mut Offers, now: &mut u64, messages: u32, stream_ns: u64, offer_ns: u64, pause_ns: u64) -> u32 {
    (0..messages)
        .filter(|_| {
            *now += pause_ns;
            let offered = offers.pick(BYTES, 0, || *now, |_| false) == Method::Copy;
            *now += if offered { offer_ns } else { stream_ns };
            offered
        })
        .count() as u32
}

#[test]
fn offers_where_that_is_faster() {
    let (mut offers, mut now) = (Offers::default(), 0);
    let offered = send(&mut offers, &mut now, 10_000, 7_000, 5_000, 100);
    assert!(offered > 9_800, "{offered} of 10000 were offered");
    let offered = send(&mut offers, &mut now, 100_000, 7_000, 20_000, 100);
    assert!(offered < 1_000, "{offered} of 100000 were offered after offers had become slow");
}

#[test]
fn streams_become_fast() {
    let (mut offers, mut now) = (Offers::default(), 0);
    send(&mut offers, &mut now, 10_000, 7_000, 5_000, 100);
    let offered = send(&mut offers, &mut now, 80_000, 1_500, 5_000, 100);
    assert!(offered < 40_000, "{offered} of 80000 were offered after streams had become fast");
}

#[test]
fn where_it_makes_no_difference_nothing_is_offered() {
    let (mut offers, mut now) = (Offers::default(), 0);
    let offered = send(&mut offers, &mut now, 100_000, 7_000, 6_800, 1_000_000);
    assert!(offered < 1_000, "{offered} of 100000");
}

/// Whoever waits does so behind the last message of a window, which may be offered for another reason than the first.
#[test]
fn a_window_is_one_period() {
    let (mut offers, mut now, mut offered) = (Offers::default(), 0, 0);
    for _ in 0..1_000 {
        let mut ways = Vec::new();
        for message in 0..20 {
            ways.push(offers.pick(BYTES, message, || now, |last| last != 19) == Method::Copy);
            now += 10;
        }
        assert!(ways.iter().all(|way| *way == ways[0]), "one window, one way");
        now += if ways[0] { 60_000 } else { 100_000 };
        offered += u32::from(ways[0]);
    }
    assert!(offered > 950, "{offered} of 1000 windows");
}

#[test]
fn sent_messages_without_end_are_decided_anew() {
    let (mut offers, mut now, mut offered) = (Offers::default(), 0, 0);
    for message in 0..10_000 {
        let is_offered = offers.pick(BYTES, message % 2, || now, |_| true) == Method::Copy;
        now += if is_offered { 5_000 } else { 10_000 };
        offered += u32::from(is_offered);
    }
    assert!(offered > 9_000, "{offered} of 10000");
}

/// What is learned of one kind of memory, of one length or of one peer says nothing of another.
#[test]
fn each_thing_is_learned_by_itself() {
    let (mut learner, mut now) = (Learner::new(2), 0);
    for request in 0..800 {
        let method = learner.pick_offer(BufferKind::Shown, BYTES, request, || now, |_| false);
        now += if method == Method::Copy { 5_000 } else { 10_000 };
    }
    assert_eq!(learner.pick_offer(BufferKind::Shown, BYTES, 0, || now, |_| false), Method::Copy);
    assert_eq!(learner.pick_offer(BufferKind::Ordinary, BYTES, 0, || now, |_| false), Method::Stream);
    assert_eq!(learner.pick_offer(BufferKind::Shown, 4 * BYTES, 0, || now, |_| false), Method::Stream);
    assert_eq!(learner.begin_grant(BYTES, now), Method::Stream);
    learner.waits(1).note_granted();
    assert!(learner.waits(1).poll(1 << 20, 64 << 10).is_some() && learner.waits(0).poll(1 << 20, 64 << 10).is_none());
}
