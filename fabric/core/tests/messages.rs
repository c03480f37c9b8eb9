//! Messages of every size over every path, on endpoints that take turns in one thread.

mod common;
use common::*;
use weft_fabric::{Endpoint, Envelope, Fault, Limits, Peer, Selector, SendMode};

const SIZES: [usize; 25] = [
    0, 1, 7, 8, 47, 48, 49, 63, 64, 65, 4096, 8191, 8192, 8193, 32_767, 32_768, 32_769, 65_535, 65_536, 65_537,
    131_072, 262_145, 1_048_577, 3_000_001, 8_388_608,
];

fn limits() -> [Limits; 5] {
    let eager = Limits { eager: 1 << 20, single_copy: Some(1 << 21), single_copy_allowed: true, ..Limits::default() };
    let past_caches = Limits { cached: 0, ..streaming() };
    [copying(), streaming(), eager, past_caches, choosing()]
}

/// Sends `length` bytes into a buffer of `capacity`; the receive comes before or after the message.
fn one(net: &mut [Endpoint], length: usize, capacity: usize, mode: SendMode, early: bool) {
    let data = bytes(length, capacity);
    let mut buffer = vec![0xee; capacity + 64];
    let mut post = |net: &mut [Endpoint]| receive(&mut net[1], from(0, 3), &mut buffer[..capacity]);
    let (receiving, sending) = if early {
        (post(net), send_as(&mut net[0], 1, 3, &data, mode))
    } else {
        let sending = send_as(&mut net[0], 1, 3, &data, mode);
        settle(net);
        assert!(mode == SendMode::Standard || !net[0].is_complete(sending), "synchronous: nobody has begun to receive");
        (post(net), sending)
    };
    let fault = (length > capacity).then_some(Fault::Truncated);
    check(finish(net, 1, receiving), 0, 3, length, fault);
    assert_eq!(finish(net, 0, sending).fault, None);
    let whole = length.min(capacity);
    assert!(buffer[..whole] == data[..whole], "{length} into {capacity}");
    assert!(buffer[whole..].iter().all(|b| *b == 0xee), "{length} into {capacity}: nothing behind the message");
}

#[test]
fn every_size_arrives_whole_on_every_path_expected_and_not() {
    for limits in limits() {
        let mut net = net_with(2, limits);
        for size in SIZES {
            for mode in [SendMode::Standard, SendMode::Synchronous] {
                one(&mut net, size, size, mode, true);
                one(&mut net, size, size + 10, mode, false);
            }
        }
    }
}

#[test]
fn a_long_message_fills_a_short_buffer_and_nothing_else() {
    for limits in limits() {
        let mut net = net_with(2, limits);
        for (length, capacity) in [
            (1, 0),
            (48, 47),
            (48, 0),
            (49, 48),
            (5000, 4999),
            (30_000, 0),
            (30_000, 9000),
            (70_000, 0),
            (70_000, 1),
            (70_000, 65_536),
            (1 << 20, 100),
            (1 << 20, 300_000),
            (1 << 20, (1 << 20) - 1),
            (40_000, 8192),
        ] {
            for mode in [SendMode::Standard, SendMode::Synchronous] {
                one(&mut net, length, capacity, mode, true);
                one(&mut net, length, capacity, mode, false);
            }
        }
        one(&mut net, 8, 8, SendMode::Standard, true);
    }
}

#[test]
fn more_long_messages_than_copy_slots_go_both_ways_at_once() {
    for limits in limits() {
        let mut net = net_with(2, limits);
        let data: Vec<Vec<u8>> = (0..40).map(|i| bytes(200_000 + i * 777, i)).collect();
        let mut buffers = [data.clone(), data.clone()];
        buffers.iter_mut().flatten().for_each(|b| b.fill(0));
        let mut started = Vec::new();
        for (me, at) in net.iter_mut().enumerate() {
            for (i, data) in data.iter().enumerate() {
                started.push((me, send(at, 1 - me as u32, i as i32, data)));
            }
        }
        for (me, buffers) in buffers.iter_mut().enumerate() {
            for (i, buffer) in buffers.iter_mut().enumerate().rev() {
                started.push((me, receive(&mut net[me], from(1 - me as u32, i as i32), buffer)));
            }
        }
        for (me, request) in started {
            assert_eq!(finish(&mut net, me, request).fault, None);
        }
        assert!(buffers[0] == data && buffers[1] == data);
    }
}

#[test]
fn rings_full_both_ways_do_not_deadlock() {
    let mut net = net(2);
    let data = bytes(30_000, 1);
    let mut started = Vec::new();
    for i in 0..300 {
        for (me, at) in net.iter_mut().enumerate() {
            let length = if i % 3 == 0 { 30_000 } else { i % 49 };
            started.push((me, send(at, 1 - me as u32, i as i32, &data[..length])));
        }
    }
    let mut buffer = vec![0; 30_000];
    for i in 0..300 {
        for me in 0..2 {
            let length = if i % 3 == 0 { 30_000 } else { i % 49 };
            let request = receive(&mut net[me], from(1 - me as u32, i as i32), &mut buffer);
            check(finish(&mut net, me, request), 1 - me as u32, i as i32, length, None);
            assert!(buffer[..length] == data[..length]);
        }
    }
    for (me, request) in started {
        finish(&mut net, me, request);
    }
}

#[test]
fn messages_of_one_sender_match_in_order_whatever_their_path() {
    let mut net = net(2);
    let lengths = [100_000, 8, 20_000, 0, 65_536, 48, 49, 300_000, 1];
    let data: Vec<Vec<u8>> = lengths.iter().enumerate().map(|(i, n)| bytes(*n, i)).collect();
    let sends: Vec<_> = data.iter().map(|d| send(&mut net[0], 1, 7, d)).collect();
    for expected in &data {
        let mut buffer = vec![0; 300_000];
        let request = receive(&mut net[1], any(), &mut buffer);
        check(finish(&mut net, 1, request), 0, 7, expected.len(), None);
        assert!(buffer[..expected.len()] == expected[..]);
    }
    for request in sends {
        finish(&mut net, 0, request);
    }
}

#[test]
fn a_probe_sees_a_message_and_leaves_it_and_a_matched_one_takes_it() {
    let mut net = net(2);
    for (length, limit) in [(5, 5), (20_000, 20_000), (200_000, 200_000), (200_000, 10)] {
        assert_eq!(net[1].probe(any()), None);
        let data = bytes(length, 9);
        let sending = send(&mut net[0], 1, 4, &data);
        settle(&mut net);
        for _ in 0..2 {
            check(net[1].probe(from(0, 4)).expect("arrived"), 0, 4, length, None);
        }
        assert_eq!(net[1].probe(from(0, 5)), None);
        assert_eq!(net[1].probe(Selector { context: 6, peer: None, tag: None }), None);
        let (message, outcome) = net[1].take_matched(any()).expect("arrived");
        check(outcome, 0, 4, length, None);
        assert_eq!(net[1].probe(any()), None, "it is taken");
        let mut buffer = vec![0; limit];
        // SAFETY: the buffer lives until the request is complete.
        let request = unsafe { net[1].post_matched_receive(message, buffer.as_mut_ptr(), limit) };
        let fault = (limit < length).then_some(Fault::Truncated);
        check(finish(&mut net, 1, request), 0, 4, length, fault);
        assert!(buffer[..] == data[..limit]);
        finish(&mut net, 0, sending);
    }
}

#[test]
fn a_send_that_asks_can_be_taken_back_until_it_is_matched() {
    for limits in limits() {
        let mut net = net_with(2, limits);
        let data = bytes(300_000, 0);
        for to in [0, 1] {
            for seen in [false, true] {
                let sending = send_as(&mut net[0], to, 1, &data, SendMode::Synchronous);
                let kept = send_as(&mut net[0], to, 1, &data[1..], SendMode::Synchronous);
                if seen {
                    settle(&mut net);
                    assert!(net[to as usize].probe(any()).is_some());
                }
                net[0].cancel_send(sending);
                net[0].cancel_send(sending);
                assert_eq!(finish(&mut net, 0, sending).fault, Some(Fault::Cancelled));
                // The one behind it is what arrives, and cannot be taken back once it is matched.
                let mut buffer = vec![0; 300_000];
                let receiving = receive(&mut net[to as usize], from(0, 1), &mut buffer);
                net[0].cancel_send(kept);
                check(finish(&mut net, to as usize, receiving), 0, 1, 299_999, None);
                assert_eq!(finish(&mut net, 0, kept).fault, None);
                assert!(buffer[..299_999] == data[1..]);
                assert_eq!(net[to as usize].probe(any()), None);
            }
        }
    }
}

#[test]
fn a_cancelled_receive_gets_nothing_and_a_matched_one_cannot_be_cancelled() {
    let mut net = net(2);
    let (mut first, mut second) = ([0u8; 8], [0u8; 8]);
    for selector in [from(0, 1), any()] {
        let cancelled = receive(&mut net[1], selector, &mut first);
        let kept = receive(&mut net[1], selector, &mut second);
        assert!(net[1].cancel_receive(cancelled));
        assert!(!net[1].cancel_receive(cancelled));
        assert_eq!(net[1].take_outcome(cancelled).expect("complete").fault, Some(Fault::Cancelled));
        let sending = send(&mut net[0], 1, 1, &[7; 8]);
        check(finish(&mut net, 1, kept), 0, 1, 8, None);
        finish(&mut net, 0, sending);
        assert_eq!((first, second), ([0; 8], [7; 8]));
        second = [0; 8];
    }
    let data = bytes(300_000, 0);
    let mut buffer = vec![0; 300_000];
    let receiving = receive(&mut net[1], from(0, 1), &mut buffer);
    let sending = send(&mut net[0], 1, 1, &data);
    net[1].progress();
    assert!(!net[1].cancel_receive(receiving), "its bytes are on their way");
    finish(&mut net, 0, sending);
    assert_eq!(finish(&mut net, 1, receiving).fault, None);
}

#[test]
fn a_receive_may_come_while_its_message_is_still_arriving() {
    let mut net = net_with(2, Limits { eager: 1 << 20, ..streaming() });
    let data = bytes(500_000, 2);
    let sending = send(&mut net[0], 1, 1, &data);
    for _ in 0..3 {
        net[1].progress();
    }
    let mut buffer = vec![0; 500_000];
    let receiving = receive(&mut net[1], any(), &mut buffer);
    assert!(!net[1].is_complete(receiving));
    check(finish(&mut net, 1, receiving), 0, 1, 500_000, None);
    finish(&mut net, 0, sending);
    assert!(buffer == data);
}

/// While more of a message is to come nobody can reply to it, so all that is there is taken at once (decision 7).
#[test]
fn the_packets_of_one_message_are_taken_in_one_pass() {
    let mut net = net_with(2, streaming());
    let data = bytes(3 * 16 * 1024, 4);
    let mut buffers = [vec![0; data.len()], vec![0; data.len()]];
    let sendings = [send(&mut net[0], 1, 1, &data), send(&mut net[0], 1, 1, &data)];
    let receivings = buffers.each_mut().map(|buffer| receive(&mut net[1], from(0, 1), buffer));
    net[1].progress();
    assert!(net[1].is_complete(receivings[0]), "all of the first one");
    assert!(!net[1].is_complete(receivings[1]), "and nothing of the second one");
    for (member, request) in [(0, sendings[0]), (0, sendings[1]), (1, receivings[0]), (1, receivings[1])] {
        assert_eq!(finish(&mut net, member, request).fault, None);
    }
    assert!(buffers.iter().all(|buffer| *buffer == data));
}

#[test]
fn messages_to_oneself_arrive_in_every_mode_and_order() {
    let mut net = net(1);
    let limit = Limits::default().eager;
    for size in [0, 8, 49, limit, limit + 1, 1_000_000] {
        for mode in [SendMode::Standard, SendMode::Synchronous] {
            let data = bytes(size, 1);
            for early in [true, false] {
                let mut buffer = vec![0; size];
                let (receiving, sending) = if early {
                    (receive(&mut net[0], any(), &mut buffer), send_as(&mut net[0], 0, 2, &data, mode))
                } else {
                    let sending = send_as(&mut net[0], 0, 2, &data, mode);
                    let eager = mode == SendMode::Standard && size <= limit;
                    assert_eq!(net[0].is_complete(sending), eager);
                    check(net[0].probe(any()).expect("there"), 0, 2, size, None);
                    (receive(&mut net[0], from(0, 2), &mut buffer), sending)
                };
                check(finish(&mut net, 0, receiving), 0, 2, size, None);
                assert_eq!(finish(&mut net, 0, sending).fault, None);
                assert!(buffer == data);
            }
        }
    }
    let sending = send(&mut net[0], 0, 2, &[1; 100]);
    let mut short = [0; 10];
    let receiving = receive(&mut net[0], any(), &mut short);
    check(finish(&mut net, 0, receiving), 0, 2, 100, Some(Fault::Truncated));
    finish(&mut net, 0, sending);
}

#[test]
fn released_requests_complete_on_their_own() {
    let mut net = net(2);
    let data = bytes(300_000, 1);
    let mut buffers = vec![vec![0u8; 300_000]; 3];
    for length in [8, 20_000, 300_000] {
        for buffer in &mut buffers {
            let receiving = receive(&mut net[1], from(0, 1), buffer);
            net[1].release(receiving);
            let sending = send(&mut net[0], 1, 1, &data[..length]);
            net[0].release(sending);
        }
        settle(&mut net);
        assert!(buffers.iter().all(|b| b[..length] == data[..length]));
        buffers.iter_mut().for_each(|b| b.fill(0));
    }
}

#[test]
fn raw_bytes_arrive_in_order_across_any_boundaries() {
    let mut net = net(2);
    let data = bytes(300_000, 4);
    let mut buffer = vec![0; 300_000];
    let (mut sent, mut posted, mut requests) = (0, 0, Vec::new());
    for step in 1.. {
        if sent < data.len() {
            let length = (step * 997 % 20_000).min(data.len() - sent);
            // SAFETY: inside the data.
            sent += unsafe { net[0].try_raw_send(Peer(1), data[sent..].as_ptr(), length) };
        }
        if step % 3 != 0 && posted < buffer.len() {
            let length = (step * 613 % 9000).min(buffer.len() - posted);
            // SAFETY: disjoint parts of the buffer, which lives until the end.
            requests.push(unsafe { net[1].post_raw_receive(Peer(0), buffer[posted..].as_mut_ptr(), length) });
            posted += length;
        }
        turn(&mut net);
        requests.retain(|r| net[1].take_outcome(*r).is_none());
        if posted == buffer.len() && requests.is_empty() {
            break;
        }
        assert!(step < 100_000, "it ends");
    }
    assert!(buffer == data);
}

#[test]
fn offered_messages_wait_for_no_receive() {
    let mut net = net_with(2, choosing());
    for round in 0..40 {
        let (data, reply) = (bytes(50_000, round), bytes(50_000, round + 1));
        let sending = [send(&mut net[0], 1, 3, &data), send(&mut net[1], 0, 3, &reply)];
        // Nobody receives: both sends are over all the same.
        assert_eq!((finish(&mut net, 0, sending[0]).fault, finish(&mut net, 1, sending[1]).fault), (None, None));
        for (me, wanted) in [(1, data), (0, reply)] {
            let mut buffer = vec![0; 50_000];
            let receiving = receive(&mut net[me], from(1 - me as u32, 3), &mut buffer);
            check(finish(&mut net, me, receiving), 1 - me as u32, 3, 50_000, None);
            assert!(buffer == wanted, "round {round}");
        }
    }
    assert!(net[0].counters().single_copy_bytes >= 50_000, "some were offered");
}

/// The receiver computes after its receive, which was complete when it was posted.
#[test]
fn an_offered_message_needs_no_more_of_its_receiver_than_the_receive() {
    let mut net = net_with(2, choosing());
    for round in 0..20 {
        let data = bytes(50_000, round);
        let sending = send(&mut net[0], 1, 3, &data);
        // It arrives while nobody receives it.
        while net[1].probe(from(0, 3)).is_none() {
            net[1].progress();
        }
        let mut buffer = vec![0; 50_000];
        let receiving = receive(&mut net[1], from(0, 3), &mut buffer);
        for _ in 0..1000 {
            net[0].progress();
        }
        assert!(net[0].is_complete(sending), "round {round}: the sender is not kept waiting");
        check(finish(&mut net, 1, receiving), 0, 3, 50_000, None);
        assert_eq!(finish(&mut net, 0, sending).fault, None);
        assert!(buffer == data, "round {round}");
    }
}

#[test]
fn more_long_messages_than_copy_slots_are_all_copied() {
    let mut net = net_with(2, copying());
    let data: Vec<_> = (0..40).map(|i| bytes(100_000, i)).collect();
    let mut buffers = vec![vec![0; 100_000]; 40];
    let receiving: Vec<_> = buffers.iter_mut().map(|buffer| receive(&mut net[1], from(0, 3), buffer)).collect();
    let sending: Vec<_> = data.iter().map(|data| send(&mut net[0], 1, 3, data)).collect();
    for (receive, send) in receiving.into_iter().zip(sending) {
        check(finish(&mut net, 1, receive), 0, 3, 100_000, None);
        assert_eq!(finish(&mut net, 0, send).fault, None);
    }
    assert!(buffers == data);
    assert_eq!(net[0].counters().single_copy_bytes + net[1].counters().single_copy_bytes, 4_000_000);
}

#[test]
fn counters_prove_the_path() {
    let mut net = net_with(2, copying());
    one(&mut net, 1 << 20, 1 << 20, SendMode::Standard, true);
    assert_eq!(net[0].counters().single_copy_bytes + net[1].counters().single_copy_bytes, 1 << 20);
    assert_eq!((net[0].counters().rendezvous, net[1].counters().single_copy_refused), (1, 0));
    let mut net = net_with(2, streaming());
    one(&mut net, 1 << 20, 1 << 20, SendMode::Standard, true);
    assert_eq!(net[0].counters().single_copy_bytes + net[1].counters().single_copy_bytes, 0);
}

#[test]
fn try_send_sends_all_or_nothing() {
    let mut net = net(2);
    let envelope = Envelope { context: CONTEXT, tag: 1, source: 100 };
    let data = bytes(8192, 1);
    let mut accepted = 0;
    // SAFETY: the data is that long.
    while unsafe { net[0].try_send(Peer(1), envelope, data.as_ptr(), 8192) } {
        accepted += 1;
    }
    settle(&mut net);
    for _ in 0..accepted {
        let mut buffer = vec![0; 8192];
        let request = receive(&mut net[1], any(), &mut buffer);
        check(net[1].take_outcome(request).expect("it has arrived"), 0, 1, 8192, None);
        assert!(buffer == data);
    }
    assert!(accepted > 1 && net[1].probe(any()).is_none());
    // SAFETY: the data is that long.
    assert!(!unsafe { net[0].try_send(Peer(0), envelope, data.as_ptr(), 8) }, "not to oneself");
}

/// More than an `int` counts, over both long paths.
#[test]
fn a_message_above_two_gigabytes_arrives_whole() {
    let free = std::fs::read_to_string("/proc/meminfo").expect("meminfo");
    let line = free.lines().find_map(|l| l.strip_prefix("MemAvailable:")).expect("a line");
    let free_kb: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    if free_kb < 6 << 20 {
        println!("only {free_kb} kB of memory are available, 6 GiB are needed: the long message is not tried");
        return;
    }
    let length = (2usize << 30) + 12_345;
    let mut data = vec![0u8; length];
    for (i, page) in data.chunks_mut(4096).enumerate() {
        page[0] = i as u8 ^ 0x5a;
        page[page.len() - 1] = (i >> 8) as u8;
    }
    for limits in [copying(), streaming()] {
        let mut net = net_with(2, limits);
        let mut buffer = vec![0xffu8; length];
        let receiving = receive(&mut net[1], any(), &mut buffer);
        let sending = send(&mut net[0], 1, 1, &data);
        check(finish(&mut net, 1, receiving), 0, 1, length, None);
        finish(&mut net, 0, sending);
        assert!(buffer == data);
    }
}
