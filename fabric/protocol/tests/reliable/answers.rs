//! How many datagrams short messages take that are answered at once.

use super::world::{SEALER, configs};
use weft_protocol::reliable::Link;
use weft_wire::cell::{Head, Kind};

const HOP_NS: u64 = 3_000;

/// Two ends that have talked, so that each knows how much the other takes.
fn pair() -> [Link; 2] {
    let mut links = configs(0, 1_472).map(|config| Link::new(config, SEALER.at(&config), 0));
    let mut buffer = [0; 1_472];
    for turn in 0..4 {
        let length = post(&mut links[turn % 2], 0, &mut buffer);
        links[1 - turn % 2].handle_datagram(0, &buffer[..length], |_| true).expect("sound");
    }
    let length = links[0].poll_transmit(u64::MAX / 4, &mut buffer).expect("the last one's acknowledgement");
    links[1].handle_datagram(0, &buffer[..length], |_| true).expect("sound");
    links
}

fn post(link: &mut Link, now_ns: u64, buffer: &mut [u8]) -> usize {
    link.try_send(&Head { kind: Kind::Short, context: 1, tag: 2, source: 3 }, &[7; 8], None);
    assert!(link.may_transmit(now_ns));
    let length = link.poll_transmit(now_ns, buffer).expect("a datagram");
    assert!(!link.may_transmit(now_ns), "one is enough");
    length
}

#[test]
fn each_of_two_who_answer_each_other_sends_one_datagram_for_a_message() {
    let (mut links, mut buffer, mut now_ns) = (pair(), [0; 1_472], 0);
    let counted =
        |links: &[Link; 2]| links.each_ref().map(|link| (link.counters().datagrams_sent, link.counters().acks_sent));
    let before = counted(&links);
    for turn in 0..10_000 {
        let length = post(&mut links[turn % 2], now_ns, &mut buffer);
        now_ns += HOP_NS;
        let (link, mut got) = (&mut links[1 - turn % 2], 0);
        let deliver = |_: weft_protocol::reliable::LinkPacket<'_>| {
            got += 1;
            true
        };
        link.handle_datagram(now_ns, &buffer[..length], deliver).expect("sound");
        assert_eq!(got, 1);
        assert!(!link.may_transmit(now_ns), "what is to be said goes with the answer");
    }
    assert_eq!(counted(&links), before.map(|(datagrams, acks)| (datagrams + 5_000, acks)));
}

#[test]
fn what_is_not_answered_is_acknowledged_later() {
    let ([mut from, mut to], mut buffer) = (pair(), [0; 1_472]);
    let length = post(&mut from, 0, &mut buffer);
    to.handle_datagram(HOP_NS, &buffer[..length], |_| true).expect("sound");
    let due_ns = to.next_timeout().expect("an acknowledgement is due");
    assert!(due_ns > HOP_NS && !to.may_transmit(due_ns - 1) && to.may_transmit(due_ns));
    let length = to.poll_transmit(due_ns, &mut buffer).expect("an acknowledgement");
    from.handle_datagram(due_ns + HOP_NS, &buffer[..length], |_| true).expect("sound");
    assert_eq!((from.kept_bytes(), from.in_flight_bytes()), (0, 0));
}

/// The other does not look at its socket. Whoever sends to it may compute next, and not come here again for long.
#[test]
fn what_is_short_leaves_although_a_try_of_a_larger_datagram_is_not_answered() {
    let [config, _] = configs(0, 9_000);
    let (mut link, mut buffer, mut now_ns) = (Link::new(config, SEALER.at(&config), 0), [0; 9_000], 0);
    let mut longest = 0;
    for _ in 0..8 {
        link.try_send(&Head { kind: Kind::Short, context: 1, tag: 2, source: 3 }, &[7; 8], None);
        while let Some(length) = link.poll_transmit(now_ns, &mut buffer) {
            longest = longest.max(length);
        }
        assert_eq!(link.unsent_bytes(), 0, "at {now_ns} ns, with a window of {} bytes", link.window_bytes());
        now_ns = link.next_timeout().expect("it asks");
        link.handle_timeout(now_ns);
    }
    assert_eq!((longest, link.window_bytes()), (9_000, 4 * 1_232));
}
