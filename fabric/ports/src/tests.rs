//! Messages between two processes, each a thread.

use super::*;
use weft_fabric::Segment;

const SUBJECT: Subject = Subject { context: 3, tag: 7 };

fn from(peer: u32) -> Selector {
    Selector { context: SUBJECT.context, peer: Some(Peer(peer)), tag: Some(SUBJECT.tag) }
}

/// Each of two processes does its part in a thread.
fn two(first: impl FnOnce(&Messenger) + Send, second: impl FnOnce(&Messenger) + Send) {
    let segment = Segment::create(2).expect("memory");
    let (one, other) = (Messenger::new(), Messenger::new());
    for (member, ports) in [&one, &other].into_iter().enumerate() {
        ports.open_with(Endpoint::join_segment(segment.clone(), member as u32).expect("a member"), false);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            first(&one);
            one.close();
        });
        scope.spawn(|| {
            second(&other);
            other.close();
        });
    });
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
}

#[test]
fn what_is_sent_arrives_whole_at_all_lengths() {
    let lengths = [0, 1, 48, 49, 4096, 65_536, 3_000_000];
    two(
        |ports| lengths.iter().for_each(|n| ports.send("send", Peer(1), SUBJECT, &pattern(*n)).expect("sent")),
        |ports| {
            for length in lengths {
                let (outcome, bytes) = ports.receive_whole("receive", from(0)).expect("received");
                assert_eq!((outcome.peer, outcome.tag, bytes), (Peer(0), 7, pattern(length)));
            }
        },
    );
}

#[test]
fn both_send_much_before_they_receive() {
    let part = |ports: &Messenger, other: u32| {
        let sent = ports.send_owned(Peer(other), SUBJECT, pattern(5_000_000).into());
        let (_, bytes) = ports.receive_whole("receive", from(other)).expect("received");
        assert_eq!(bytes, pattern(5_000_000));
        ports.settle("send");
        assert!(sent.is_none_or(|message| ports.has_left(message)));
    };
    two(|ports| part(ports, 1), |ports| part(ports, 0));
}

#[test]
fn a_longer_message_fills_the_room_and_says_its_length() {
    two(
        |ports| ports.send("send", Peer(1), SUBJECT, &pattern(100)).expect("sent"),
        |ports| {
            let mut room = [0; 60];
            let outcome = ports.receive("receive", from(0), &mut room).expect("received");
            assert_eq!((outcome.length, outcome.fault), (100, Some(Fault::Truncated)));
            assert_eq!(room[..], pattern(100)[..60]);
        },
    );
}

#[test]
fn a_long_message_to_a_process_that_has_ended_is_not_waited_for() {
    two(
        |ports| ports.send("send", Peer(1), SUBJECT, &[1]).expect("sent"),
        |ports| {
            ports.receive_whole("receive", from(0)).expect("what it has sent");
            assert_eq!(ports.await_message("probe", from(0)), Err(Fault::PeerLost));
            ports.send_owned(Peer(0), SUBJECT, pattern(5_000_000).into()).expect("it waits");
            ports.settle("send");
            assert_eq!(ports.send("send", Peer(0), SUBJECT, &pattern(5_000_000)), Err(Fault::PeerLost));
            assert!(ports.is_gone_well(Peer(0)));
        },
    );
}

#[test]
fn a_long_message_that_was_given_away_arrives_though_its_sender_leaves() {
    let given =
        |ports: &Messenger, to| assert!(ports.send_owned(Peer(to), SUBJECT, pattern(5_000_000).into()).is_some());
    two(
        |ports| given(ports, 1),
        |ports| {
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(ports.receive_whole("receive", from(0)).expect("received").1, pattern(5_000_000));
        },
    );
    // Nobody receives what both have sent.
    two(|ports| given(ports, 1), |ports| given(ports, 0));
}

#[test]
fn the_first_of_several_messages_is_taken_and_received_once() {
    let other = Subject { context: 4, ..SUBJECT };
    let both = [from(0), Selector { context: 4, peer: None, tag: None }];
    two(
        |ports| {
            ports.send("send", Peer(1), other, &pattern(70_000)).expect("sent");
            ports.send("send", Peer(1), SUBJECT, &[2]).expect("sent");
        },
        |ports| {
            let mut seen = Vec::new();
            for _ in 0..2 {
                let (which, message, outcome) = ports.take_first("receive", &both).expect("a message");
                let mut room = vec![0; outcome.length as usize];
                ports.receive_taken("receive", (message, outcome.peer), &mut room).expect("received");
                seen.push((which, room));
            }
            seen.sort();
            assert!(seen == [(0, vec![2]), (1, pattern(70_000))]);
            assert_eq!(ports.take_first("receive", &both[..1]).err(), Some(Fault::PeerLost));
        },
    );
}

#[test]
fn who_waits_for_a_process_that_has_ended_is_told() {
    two(
        |ports| ports.send("send", Peer(1), SUBJECT, &[1]).expect("sent"),
        |ports| {
            assert_eq!(ports.receive_whole("receive", from(0)).expect("what it has sent").1, [1]);
            assert_eq!(ports.await_message("probe", from(0)), Err(Fault::PeerLost));
            assert_eq!(ports.receive("receive", from(0), &mut [0]), Err(Fault::PeerLost));
        },
    );
}
