//! What peers may do to each other, and what they may not.

use super::*;
use crate::Endpoint;
use std::sync::{Arc, Mutex};
use weft_device::Posted;
use weft_device::shm::Segment;
use weft_wire::active::{ActiveArguments, ActiveKind};
use weft_wire::cell::Head;

fn net(members: u32) -> Vec<Endpoint> {
    let segment = Segment::create(members).expect("memory");
    (0..members).map(|me| Endpoint::join_segment(segment.clone(), me).expect("a member")).collect()
}

fn settle(net: &mut [Endpoint]) {
    while net.iter_mut().fold(false, |moved, at| at.progress() | moved) {}
}

fn head(what: ActiveKind, handler: u32) -> ActiveHead {
    ActiveHead::new(what, handler, ActiveArguments::default())
}

/// Member 0 says these words to member 1, past its own protocol.
fn say(net: &mut [Endpoint], head: &ActiveHead, words: &[u64], bulk: &[u8]) {
    let devices = net[0].devices();
    let posted = match bulk.is_empty() {
        true => devices.post_control(1, head.head(), words),
        false => devices.post_bytes(1, head.head(), words, bulk),
    };
    assert_eq!(posted, Posted::Sent(bulk.len()));
    settle(net);
}

#[test]
fn who_breaks_the_rules_is_lost_and_nothing_is_handled() {
    let request = |answered| ActiveHead { answered, ..head(ActiveKind::Request, 1) };
    let long = ActiveHead { total: Some(8), ..head(ActiveKind::Long, 1) };
    let cases: [(&str, ActiveHead, &[u64], &[u8]); 8] = [
        ("answers to nothing", request(1), &[], &[]),
        ("a credit for nothing", ActiveHead { answered: 1, ..head(ActiveKind::Credit, 0) }, &[], &[]),
        ("a reply to nothing", head(ActiveKind::Reply, 1), &[], &[]),
        ("bytes of nothing", request(0), &[], &[1]),
        ("more bytes than it has", request(0), &[1], &[1, 2]),
        ("a long one without bytes", long, &[8, 0], &[]),
        ("no place for the length", long, &[8], &[1]),
        ("refused for no reason", head(ActiveKind::Refused, 1), &[9], &[]),
    ];
    for (what, head, words, bulk) in cases {
        let mut net = net(2);
        net[1].register_handler(1, move |_| panic!("{what}"));
        say(&mut net, &head, words, bulk);
        assert!(net[1].is_lost(Peer(0)), "{what}");
    }
}

#[test]
fn a_message_inside_another_breaks_the_rules() {
    let mut net = net(2);
    net[1].register_handler(1, |_| panic!("it is not whole"));
    say(&mut net, &head(ActiveKind::Request, 1), &[2], &[1]);
    assert!(!net[1].is_lost(Peer(0)));
    say(&mut net, &head(ActiveKind::Request, 1), &[], &[]);
    assert!(net[1].is_lost(Peer(0)));
}

#[test]
fn who_does_not_wait_for_answers_is_lost() {
    let mut net = net(2);
    let count = Arc::new(Mutex::new(0));
    let counted = count.clone();
    net[1].register_handler(1, move |_| *counted.lock().expect("no panic") += 1);
    // Member 1 sends credits after half of them, which member 0 has not asked for.
    net[0].switch.others.active.peer(1).unanswered = 1000;
    for _ in 0..WINDOW + DUE - 1 {
        say(&mut net, &head(ActiveKind::Request, 1), &[], &[]);
    }
    assert!(!net[1].is_lost(Peer(0)));
    // Those whose credits have left count no more, so let none leave.
    net[1].switch.others.active.peer(0).open = WINDOW;
    say(&mut net, &head(ActiveKind::Request, 1), &[], &[]);
    assert!(net[1].is_lost(Peer(0)));
    assert_eq!(*count.lock().expect("no panic"), WINDOW + DUE - 1);
}

/// A place is checked when a message begins, and again with each part: it may be gone by then.
#[test]
fn what_lands_outside_goes_nowhere_and_is_refused() {
    let mut net = net(2);
    net[1].register_handler(1, |_| panic!("it has not landed"));
    let (landing, gone) = (net[1].register_landing(64).expect("one"), net[1].register_landing(64).expect("two"));
    net[0].switch.others.active.peer(1).unanswered = 1000;
    let says = |net: &mut [Endpoint], landing: LandingId, offset, total: u64, bulk: &[u8]| {
        let long = ActiveHead { landing: landing.0, ..head(ActiveKind::Long, 1) };
        say(net, &long, &[total, offset], bulk);
    };
    for (offset, total) in [(60, 8), (65, 8), (u64::MAX, 8), (u64::MAX - 7, 8), (1 << 63, 8)] {
        says(&mut net, landing, offset, total, &[1; 8]);
    }
    says(&mut net, LandingId(7), 0, 8, &[1; 8]);
    says(&mut net, landing, 65, 0, &[]);
    assert_eq!(net[0].refusals(), 7);
    says(&mut net, gone, 0, 8, &[1; 4]);
    assert!(net[1].take_landing(gone).is_some_and(|memory| memory[..8] == [1, 1, 1, 1, 0, 0, 0, 0]));
    let rest = ActiveHead { landing: gone.0, ..head(ActiveKind::Long, 1) };
    say(&mut net, &rest, &[], &[1; 4]);
    assert_eq!(net[0].refusals(), 8);
    assert!(net[1].landing(landing).is_some_and(|memory| memory.iter().all(|byte| *byte == 0)));
    assert!(!net[1].is_lost(Peer(0)));
}

#[test]
fn random_nonsense_loses_its_author_and_nobody_else() {
    let mut lost = 0;
    for seed in 1..300u64 {
        let mut state = seed;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut net = net(3);
        for number in [0, 1] {
            net[1].register_handler(number, |call| {
                let bytes = call.bytes;
                // What is a reply is not answered.
                let _ = call.reply(1, &[], bytes);
            });
        }
        let landing = net[1].register_landing(5000).expect("one");
        for _ in 0..20 {
            let upper = [0, 0, 0, 1, u64::from(landing.0), next(1 << 24)][next(6) as usize];
            let source = next(7) | [0, 0, 1, next(16)][next(4) as usize] << 4 | upper << 8;
            let head = Head::of_protocol(active::NUMBER, next(3) as i32, source as u32);
            let mut word = || [next(10), next(6000), next(40_000), next(1 << 40), u64::MAX - next(9)][next(5) as usize];
            let words = [word(), word(), word(), word(), word()];
            let count = next(6) as usize;
            // Once it is lost its packets go nowhere.
            let _ = match next(2) {
                0 => net[0].devices().post_control(1, head, &words[..count]),
                _ => net[0].devices().post_bytes(1, head, &words[..count], &[9; 6000][..1 + next(5999) as usize]),
            };
            settle(&mut net);
        }
        lost += u32::from(net[1].is_lost(Peer(0)));
        let told = Arc::new(Mutex::new(0));
        let counted = told.clone();
        net[1].register_handler(7, |call| call.reply(8, &[], b"yes").expect("a request"));
        net[2].register_handler(8, move |call| *counted.lock().expect("no panic") += call.bytes.len());
        assert_eq!(net[2].try_request(Peer(1), 7, &[], &[3; 5000]), Ok(true));
        settle(&mut net);
        assert_eq!(*told.lock().expect("no panic"), 3, "seed {seed}");
    }
    assert!(lost > 200, "{lost}");
}
