//! Active messages over every device: in a process, inside a host, between hosts, between jobs.

mod common;
use common::*;
use std::sync::{Arc, Mutex};
use weft_fabric::active::{ActiveCall, ActiveFault, LandingId, MEDIUM_BYTES, Refusal, WINDOW};
use weft_fabric::{Bounds, Endpoint, Fault, Faults, Limits, Monitor, Peer};

const ASK: u16 = 3;
const TELL: u16 = 40_000;
const LONG: u16 = 7;

/// What a handler has been called with: peer, arguments, bytes.
type Calls = Arc<Mutex<Vec<(u32, Vec<u64>, Vec<u8>)>>>;

/// Registers a handler that notes its calls.
fn notes(at: &mut Endpoint, number: u16) -> Calls {
    let calls = Calls::default();
    let noted = calls.clone();
    at.register_handler(number, move |call| {
        let call = (call.peer.0, call.arguments.to_vec(), call.bytes.to_vec());
        noted.lock().expect("no panic").push(call);
    });
    calls
}

fn count(calls: &Calls) -> usize {
    calls.lock().expect("no panic").len()
}

/// Replies with what it was called with.
fn answers(call: ActiveCall<'_>) {
    let (arguments, bytes) = (call.arguments, call.bytes);
    call.reply(TELL, arguments, bytes).expect("it is as long as the request");
}

/// Turns until something is so.
fn until(net: &mut [Endpoint], what: &str, mut done: impl FnMut(&mut [Endpoint]) -> bool) {
    for _ in 0..20_000_000 {
        if done(net) {
            return;
        }
        turn(net);
    }
    panic!("{what}");
}

fn request(net: &mut [Endpoint], from: usize, to: u32, handler: u16, arguments: &[u64], bytes: &[u8]) {
    until(net, "there is no room for a request", |net| {
        net[from].try_request(Peer(to), handler, arguments, bytes).expect("it can be sent")
    });
}

/// Who asks, whom, and as whom it is known there.
type Pair = (usize, u32, u32);

/// Each kind of net: what it is, the endpoints, and which of them ask whom.
fn nets() -> Vec<(&'static str, Vec<Endpoint>, [Pair; 2])> {
    let both = [(0, 1, 0), (1, 0, 1)];
    vec![
        ("oneself", net(1), [(0, 0, 0), (0, 0, 0)]),
        ("oneself beside others", net(2), [(0, 0, 0), (0, 0, 0)]),
        ("shm", net(2), both),
        ("udp", net_across(&[0, 1], "udp", Limits::default()), both),
        ("tcp", net_across(&[0, 1], "tcp", Limits::default()), both),
        ("udp and tcp", net_across(&[0, 1], "auto", Limits::default()), both),
        ("another job", two_jobs(), [(0, 1, 1), (1, 1, 1)]),
    ]
}

/// Two jobs of one, each of which knows the other as peer 1.
fn two_jobs() -> Vec<Endpoint> {
    let mut all: Vec<Endpoint> = (0..2).flat_map(|_| net(1)).collect();
    let cards: Vec<_> = all.iter_mut().map(|at| at.card().expect("a card")).collect();
    assert_eq!(all[0].adopt(&cards[1]).expect("a peer"), Peer(1));
    assert_eq!(all[1].adopt(&cards[0]).expect("a peer"), Peer(1));
    all
}

/// Where the endpoint is in the net that `asker` asks as `to`.
fn place_of(net: &[Endpoint], asker: usize, to: u32) -> usize {
    if net[asker].is_foreign(Peer(to)) { 1 - asker } else { to as usize }
}

#[test]
fn requests_of_every_length_are_handled_in_order_and_answered() {
    let lengths = [0, 1, 8, 24, 25, 40, 41, 48, 49, 500, 4096, 4097, 20_000, MEDIUM_BYTES];
    for (what, mut net, pairs) in nets() {
        for (from, to, known) in pairs {
            let server = place_of(&net, from, to);
            net[server].register_handler(ASK, answers);
            let told = notes(&mut net[from], TELL);
            let mut asked = Vec::new();
            for (seed, length) in lengths.into_iter().enumerate() {
                let arguments: Vec<u64> = (0..seed as u64 % 4).map(|at| at << 40 | seed as u64).collect();
                let data = bytes(length, seed);
                request(&mut net, from, to, ASK, &arguments, &data);
                asked.push((to, arguments, data));
            }
            until(&mut net, what, |_| count(&told) == lengths.len());
            assert!(*told.lock().expect("no panic") == asked, "{what}: from {from} to {to}, known as {known}");
        }
    }
}

#[test]
fn a_long_request_lands_where_it_was_to_go_and_then_calls_its_handler() {
    for (what, mut net, pairs) in nets() {
        for (seed, (from, to, known)) in pairs.into_iter().enumerate() {
            let server = place_of(&net, from, to);
            let landing = net[server].register_landing(3_000_000).expect("one");
            let calls = notes(&mut net[server], LONG);
            for (length, offset) in [(0, 3_000_000), (1, 5), (100_000, 77), (2_500_000, 500_000)] {
                let data = bytes(length, seed);
                let sent = net[from].try_long_request(Peer(to), LONG, &[9, 8, 7], (landing, offset), data.clone());
                let outcome = finish(&mut net, from, sent.expect("room"));
                assert_eq!((outcome.length, outcome.fault), (length as u64, None));
                until(&mut net, what, |_| count(&calls) > 0);
                let call = calls.lock().expect("no panic").pop().expect("one");
                assert!(call == (known, vec![9, 8, 7], data.clone()), "{what}: {length}");
                assert!(net[server].landing(landing).expect("it is there")[offset as usize..][..length] == data);
            }
        }
    }
}

/// More than any ring or queue holds, from both sides at once, and each is answered.
#[test]
fn two_that_flood_each_other_with_requests_both_go_on() {
    const COUNT: usize = 2000;
    for (what, mut net, pairs) in nets() {
        let (mut left, mut told) = ([COUNT; 2], Vec::new());
        for (from, to, _) in pairs {
            let server = place_of(&net, from, to);
            net[server].register_handler(ASK, answers);
        }
        for (from, ..) in pairs {
            told.push(notes(&mut net[from], TELL));
        }
        let data = bytes(MEDIUM_BYTES, 1);
        until(&mut net, what, |net| {
            for ((from, to, _), left) in pairs.into_iter().zip(&mut left) {
                let length = if *left % 3 == 0 { MEDIUM_BYTES } else { *left % 48 };
                while *left > 0
                    && net[from].try_request(Peer(to), ASK, &[*left as u64], &data[..length]).expect("it can be sent")
                {
                    *left -= 1;
                }
            }
            left == [0, 0]
        });
        // To oneself both ask from the same place, where the last handler counts.
        let last = told.last().expect("two").clone();
        let wanted = if pairs[0] == pairs[1] { 2 * COUNT } else { COUNT };
        until(&mut net, what, |_| count(&last) == wanted);
        until(&mut net, what, |_| pairs[0] == pairs[1] || count(&told[0]) == COUNT);
        assert!(net.iter_mut().all(|at| at.refusals() == 0), "{what}");
    }
}

/// Requests without replies: the window opens again as they are handled, and not before.
#[test]
fn who_is_not_answered_may_send_a_window_and_no_more() {
    let mut net = net(2);
    let calls = notes(&mut net[1], ASK);
    let send = |net: &mut [Endpoint]| net[0].try_request(Peer(1), ASK, &[], b"one way").expect("it can be sent");
    let sent = std::iter::from_fn(|| send(&mut net).then_some(())).count();
    assert_eq!(sent, WINDOW as usize);
    net[0].progress();
    assert!(!send(&mut net), "nobody has handled them");
    let long = net[0].try_long_request(Peer(1), ASK, &[], (LandingId(0), 0), vec![1, 2]).expect_err("no room");
    assert_eq!((long.why, long.bytes), (ActiveFault::WouldBlock, vec![1, 2]));
    settle(&mut net);
    assert_eq!(count(&calls), sent);
    assert!(send(&mut net));
}

#[test]
fn what_nobody_handles_is_told_to_its_sender() {
    for (what, mut net, pairs) in nets() {
        let (from, to, _) = pairs[0];
        let server = place_of(&net, from, to);
        let (refusals, told) = (Arc::new(Mutex::new(Vec::new())), notes(&mut net[from], TELL));
        let noted = refusals.clone();
        net[from].register_refusal_handler(move |refusal| noted.lock().expect("no panic").push(*refusal));
        net[server].register_handler(ASK, answers);
        net[server].register_handler(LONG, |_| panic!("it has not landed"));
        request(&mut net, from, to, 99, &[1], b"nobody");
        let landing = net[server].register_landing(100).expect("one");
        for place in [(landing, 99), (LandingId(5), 0)] {
            let sent = net[from].try_long_request(Peer(to), LONG, &[], place, vec![0; 2]).expect("room");
            assert!(finish(&mut net, from, sent).fault.is_none());
        }
        net[server].take_landing(landing);
        net[from].try_long_request(Peer(to), LONG, &[], (landing, 0), vec![0; 2]).expect("room");
        request(&mut net, from, to, ASK, &[2], b"somebody");
        until(&mut net, what, |_| count(&told) == 1);
        let peer = Peer(to);
        let nowhere = Refusal::NoPlace { peer, handler: LONG };
        let all = [Refusal::NoHandler { peer, handler: 99 }, nowhere, nowhere, nowhere];
        assert_eq!(*refusals.lock().expect("no panic"), all, "{what}");
        assert_eq!(net[from].refusals(), 4);
        assert!(!net[server].is_lost(peer) || net[server].me() == peer);
    }
}

#[test]
fn a_reply_that_nobody_handles_is_told_to_who_replied_and_is_not_answered() {
    let mut net = net(2);
    net[1].register_handler(ASK, answers);
    request(&mut net, 0, 1, ASK, &[], b"");
    settle(&mut net);
    assert_eq!((net[0].refusals(), net[1].refusals()), (0, 1));
    net[0].register_handler(TELL, |call| assert_eq!(call.reply(ASK, &[], b""), Err(ActiveFault::NoRequest)));
    request(&mut net, 0, 1, ASK, &[], b"");
    settle(&mut net);
    net[1].remove_handler(ASK);
    request(&mut net, 0, 1, ASK, &[], b"");
    settle(&mut net);
    assert_eq!((net[0].refusals(), net[1].refusals()), (1, 1));
}

#[test]
fn what_is_too_long_is_not_sent() {
    let mut net = net(2);
    let too_long = vec![0; MEDIUM_BYTES + 1];
    assert_eq!(net[0].try_request(Peer(1), ASK, &[], &too_long), Err(ActiveFault::TooLong(too_long.len())));
    assert_eq!(net[0].try_request(Peer(1), ASK, &[0; 4], b""), Err(ActiveFault::TooManyArguments(4)));
    let unsent = net[0].try_long_request(Peer(1), ASK, &[0; 4], (LandingId(0), 0), vec![5]).expect_err("too many");
    assert_eq!((unsent.why, unsent.bytes), (ActiveFault::TooManyArguments(4), vec![5]));
    net[1].register_handler(ASK, move |call| {
        assert_eq!(call.reply(TELL, &[], &too_long), Err(ActiveFault::TooLong(too_long.len())));
    });
    request(&mut net, 0, 1, ASK, &[], b"");
    settle(&mut net);
    assert_eq!((net[0].refusals(), net[1].refusals()), (0, 0));
}

/// Requests and replies are handled once and in order however bad the network is.
#[test]
fn over_a_bad_network_each_request_is_handled_once() {
    let job = job_across(&[0, 1]).into_iter().zip(0..);
    let join = |((segment, mut across), seed): ((_, weft_fabric::Across), u64)| {
        across.faults = Some(Faults::new(seed, 50, 30, 30, 50));
        join_across((segment, across), order("udp"), Limits::default(), Bounds::default())
    };
    let mut net: Vec<Endpoint> = job.map(join).collect();
    net[1].register_handler(ASK, answers);
    let told = notes(&mut net[0], TELL);
    for at in 0..300usize {
        request(&mut net, 0, 1, ASK, &[at as u64], &bytes(at * 37 % 9000, at));
    }
    until(&mut net, "a reply does not come", |_| count(&told) == 300);
    let told = told.lock().expect("no panic");
    assert!(told.iter().enumerate().all(|(at, call)| call.1 == [at as u64] && call.2 == bytes(at * 37 % 9000, at)));
}

/// The other process ends while it owes answers and a long request is on its way there.
#[test]
fn who_is_lost_is_told_of_and_ends_what_is_under_way() {
    let mut all = two_jobs();
    let calls = notes(&mut all[1], ASK);
    request(&mut all, 0, 1, ASK, &[], b"before");
    until(&mut all, "it does not arrive", |_| count(&calls) == 1);
    let refusals = Arc::new(Mutex::new(Vec::new()));
    let noted = refusals.clone();
    all[0].register_refusal_handler(move |refusal| noted.lock().expect("no panic").push(*refusal));
    let sent = all[0].try_long_request(Peer(1), LONG, &[], (LandingId(0), 0), vec![1; 5 << 20]).expect("room");
    drop(all.remove(1));
    assert_eq!(finish(&mut all, 0, sent).fault, Some(Fault::PeerLost));
    assert_eq!(*refusals.lock().expect("no panic"), [Refusal::PeerLost { peer: Peer(1), unanswered: 2 }]);
    assert_eq!(all[0].try_request(Peer(1), ASK, &[], b""), Err(ActiveFault::PeerLost(Fault::PeerLost)));
}

/// In processes that sleep: a request wakes who waits, and so does a reply.
#[test]
fn who_sleeps_is_woken_by_requests_and_replies() {
    watch(|| {
        let job = job_across(&[0, 0]);
        let segment = job[0].0.clone();
        let rounds = 200;
        let ends: Vec<_> = (0..2)
            .map(|me| Endpoint::join_segment_with(segment.clone(), me, Limits::default(), ASLEEP).expect("join"))
            .collect();
        std::thread::scope(|scope| {
            for (me, mut at) in ends.into_iter().enumerate() {
                scope.spawn(move || {
                    let world = Monitor::new();
                    at.register_handler(ASK, answers);
                    let (told, asked) = (notes(&mut at, TELL), notes(&mut at, LONG));
                    world.open(World(at), false);
                    let peer = Peer(1 - me as u32);
                    for round in 1..=rounds {
                        let sent = |w: &mut World| w.0.try_request(peer, ASK, &[], b"?").expect("sent").then_some(());
                        world.wait(WAIT, sent);
                        world.wait(WAIT, |_| (count(&told) == round).then_some(()));
                    }
                    // The other one may still ask.
                    world.wait(WAIT, |w| w.0.try_request(peer, LONG, &[], b"").expect("sent").then_some(()));
                    world.wait(WAIT, |_| (count(&asked) == 1).then_some(()));
                    world.close().0.leave();
                });
            }
        });
    });
}
