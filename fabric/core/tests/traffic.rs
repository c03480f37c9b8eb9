//! Random traffic among four endpoints against an oracle of MPI's order: each seed is one life of a small world.

mod common;
use common::*;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use weft_fabric::Outcome;
use weft_fabric::{Endpoint, Fault, Limits, Peer, RequestId, Selector, SendMode};

/// Longer than any scheduling.
const LOST: Duration = Duration::from_secs(60);

const MEMBERS: usize = 4;
const TAGS: u64 = 3;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % n
    }

    fn length(&mut self) -> usize {
        let near = [0, 8, 48, 49, 200, 8192, 9000, 32_768, 33_000, 65_536, 70_000, 150_000, 400_000];
        near[self.below(near.len() as u64) as usize] + self.below(5) as usize
    }
}

struct Sent {
    from: usize,
    tag: i32,
    data: Vec<u8>,
}

/// A receive that was posted and has not ended, in the order of posting.
struct Posted {
    request: RequestId,
    selector: Selector,
    buffer: Vec<u8>,
}

struct Life {
    net: Vec<Endpoint>,
    /// Some are reached over a network.
    far: bool,
    random: Random,
    /// What each member was sent and has not received, per sender in the order of sending.
    on_the_way: Vec<Vec<VecDeque<Sent>>>,
    posted: Vec<Vec<Posted>>,
    sends: Vec<(usize, RequestId, Vec<u8>)>,
}

fn accepts(selector: &Selector, from: usize, tag: i32) -> bool {
    selector.peer.is_none_or(|p| p.0 as usize == from) && selector.tag.is_none_or(|t| t == tag)
}

impl Life {
    fn new(seed: u64, net: Vec<Endpoint>) -> Self {
        Self {
            far: (0..net.len() as u32).any(|peer| !net[0].is_local(Peer(peer))),
            net,
            random: Random(seed * 2 + 1),
            on_the_way: (0..MEMBERS).map(|_| (0..MEMBERS).map(|_| VecDeque::new()).collect()).collect(),
            posted: (0..MEMBERS).map(|_| Vec::new()).collect(),
            sends: Vec::new(),
        }
    }

    fn send(&mut self) {
        let (from, to) = (self.random.below(MEMBERS as u64) as usize, self.random.below(MEMBERS as u64) as usize);
        let tag = self.random.below(TAGS) as i32;
        let data = bytes(self.random.length(), self.random.below(250) as usize);
        let mode = if self.random.below(4) == 0 { SendMode::Synchronous } else { SendMode::Standard };
        let request = send_as(&mut self.net[from], to as u32, tag, &data, mode);
        self.on_the_way[to][from].push_back(Sent { from, tag, data: data.clone() });
        self.sends.push((from, request, data));
    }

    fn selector(&mut self) -> Selector {
        let peer = (self.random.below(3) > 0).then(|| Peer(self.random.below(MEMBERS as u64) as u32));
        let tag = (self.random.below(3) > 0).then(|| self.random.below(TAGS) as i32);
        Selector { context: CONTEXT, peer, tag }
    }

    fn receive(&mut self) {
        let at = self.random.below(MEMBERS as u64) as usize;
        let selector = self.selector();
        let mut buffer = vec![0xaa; self.random.length()];
        let request = receive(&mut self.net[at], selector, &mut buffer);
        self.posted[at].push(Posted { request, selector, buffer });
    }

    fn cancel(&mut self) {
        let at = self.random.below(MEMBERS as u64) as usize;
        if let Some(place) = self.posted[at].len().checked_sub(1) {
            let request = self.posted[at][place].request;
            if self.net[at].cancel_receive(request) {
                let outcome = self.net[at].take_outcome(request).expect("complete");
                assert_eq!(outcome.fault, Some(Fault::Cancelled));
                self.posted[at].remove(place);
            }
        }
    }

    /// Cancels every receive that has no message.
    fn withdraw(&mut self) {
        for (at, posted) in self.posted.iter_mut().enumerate() {
            let net = &mut self.net;
            posted.retain(|p| {
                let cancelled = net[at].cancel_receive(p.request);
                if cancelled {
                    net[at].take_outcome(p.request).expect("complete");
                }
                !cancelled
            });
        }
    }

    fn probe(&mut self) {
        let at = self.random.below(MEMBERS as u64) as usize;
        let selector = self.selector();
        let Some(seen) = self.net[at].probe(selector) else { return };
        let Some((message, outcome)) = self.net[at].take_matched(selector) else { panic!("the probe saw it") };
        assert_eq!(seen, outcome);
        let mut buffer = vec![0xaa; self.random.length()];
        // SAFETY: the buffer is kept until the request is complete.
        let request = unsafe { self.net[at].post_matched_receive(message, buffer.as_mut_ptr(), buffer.len()) };
        let net = &mut self.net;
        let ended = finish(net, at, request);
        let selector = Selector { context: CONTEXT, peer: Some(outcome.peer), tag: Some(outcome.tag) };
        self.judge(at, Posted { request, selector, buffer }, ended);
    }

    /// A receive has ended with `outcome`: that must be the first message of that sender which it accepts and which no
    /// receive posted earlier does.
    fn judge(&mut self, at: usize, posted: Posted, outcome: Outcome) {
        let from = outcome.peer.0 as usize;
        assert!(accepts(&posted.selector, from, outcome.tag), "{:?} got {outcome:?}", posted.selector);
        let queue = &mut self.on_the_way[at][from];
        let place = queue.iter().position(|s| s.tag == outcome.tag).expect("a message was sent");
        let sent = queue.remove(place).expect("it is there");
        assert_eq!((sent.from, sent.data.len() as u64), (from, outcome.length), "messages of one tag come in order");
        let fits = sent.data.len().min(posted.buffer.len());
        assert_eq!(outcome.fault, (fits < sent.data.len()).then_some(Fault::Truncated));
        assert!(posted.buffer[..fits] == sent.data[..fits], "the bytes of {outcome:?}");
        assert!(posted.buffer[fits..].iter().all(|b| *b == 0xaa), "nothing behind the message");
    }

    /// Ends what is complete. Receives may complete out of order; matching is judged in the order of posting, so a
    /// receive is judged when all earlier ones that could have had its message have been.
    fn reap(&mut self) {
        for at in 0..MEMBERS {
            let mut place = 0;
            while place < self.posted[at].len() {
                let selector = self.posted[at][place].selector;
                let overlaps = |p: &Posted| {
                    let peers =
                        p.selector.peer.is_none() || selector.peer.is_none() || p.selector.peer == selector.peer;
                    let tags = p.selector.tag.is_none() || selector.tag.is_none() || p.selector.tag == selector.tag;
                    peers && tags
                };
                let blocked = self.posted[at][..place].iter().any(overlaps);
                let ended = if blocked { None } else { self.net[at].take_outcome(self.posted[at][place].request) };
                match ended {
                    Some(outcome) => {
                        let posted = self.posted[at].remove(place);
                        self.judge(at, posted, outcome);
                        place = 0;
                    }
                    None => place += 1,
                }
            }
        }
        let net = &mut self.net;
        self.sends.retain(|(at, request, _)| match net[*at].take_outcome(*request) {
            Some(outcome) => {
                assert_eq!(outcome.fault, None);
                false
            }
            None => true,
        });
    }

    fn end(mut self) {
        self.withdraw();
        let (mut turns, start) = (0, Instant::now());
        while !(self.sends.is_empty() && self.on_the_way.iter().flatten().all(VecDeque::is_empty)) {
            for at in 0..MEMBERS {
                let waiting: usize = self.on_the_way[at].iter().map(VecDeque::len).sum();
                if self.posted[at].len() < waiting {
                    let mut buffer = vec![0xaa; 500_000];
                    let request = receive(&mut self.net[at], any(), &mut buffer);
                    self.posted[at].push(Posted { request, selector: any(), buffer });
                }
            }
            turn(&mut self.net);
            self.reap();
            turns += 1;
            // What comes over a network comes when the kernel gets to it.
            assert!(turns < 200_000 || self.far && start.elapsed() < LOST, "everything arrives");
            // A receive that nothing will ever satisfy stands before others that would be judged.
            if turns % 1000 == 0 {
                self.withdraw();
            }
        }
    }
}

fn live(seed: u64, net: Vec<Endpoint>) {
    let mut life = Life::new(seed, net);
    for _ in 0..400 {
        match life.random.below(12) {
            0..3 => life.send(),
            3..6 => life.receive(),
            6 => life.cancel(),
            _ => {
                let at = life.random.below(MEMBERS as u64) as usize;
                life.net[at].progress();
            }
        }
        life.reap();
        // A matched receive bypasses posted ones; it is judged only where those cannot confuse the oracle.
        if life.posted.iter().all(Vec::is_empty) && life.random.below(3) == 0 {
            life.probe();
        }
    }
    life.end();
}

#[test]
fn random_traffic_keeps_the_order_of_messages_and_receives() {
    let small = Limits { eager: 1000, single_copy: 20_000, single_copy_allowed: true, ..Limits::default() };
    let past_caches = Limits { cached: 100_000, ..streaming() };
    for seed in 0..60 {
        for limits in [copying(), streaming(), small, past_caches] {
            println!("seed {seed}, {limits:?}");
            live(seed, net_with(MEMBERS as u32, limits));
        }
    }
}

#[test]
fn so_does_traffic_between_hosts() {
    let small = Limits { eager: 1000, single_copy: 20_000, single_copy_allowed: true, ..Limits::default() };
    for seed in 0..20 {
        for (hosts, limits) in [([0, 1, 2, 3], streaming()), ([0, 0, 1, 1], copying()), ([1, 0, 1, 0], small)] {
            println!("seed {seed}, {hosts:?}, {limits:?}");
            live(seed, net_across(&hosts, if seed.is_multiple_of(2) { "auto" } else { "shm,tcp" }, limits));
        }
    }
}
