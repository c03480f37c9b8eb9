//! What it costs, and brings, where messages are delivered: by whoever calls, or by a thread of its own.
//!
//! `cargo run --release -p weft-fabric --example placements [ROUNDS]`
//!
//! A client sends requests of 8 bytes, one after the other, to a server whose handler replies. The server waits in its
//! monitor, or computes; then without a thread it polls after each stretch of work, which it must not forget. A line
//! for each case: how long a reply takes for the client, and how long a stretch takes the server while requests come,
//! as multiples of what it takes alone.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use weft_fabric::{DeliveryThread, Driven, Endpoint, Monitor, Outside, Peer, Segment, Waiting};

const ASK: u16 = 1;
const TELL: u16 = 2;
/// Steps of a stretch: about a millisecond.
const STEPS: u32 = 1_000_000;
const WAIT: Waiting = Waiting { call: "example", peer: None, tag: None, context: 0 };

struct World(Endpoint);

impl Driven for World {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.0
    }

    fn advance(&mut self) -> Option<Outside> {
        None
    }
}

/// A stretch of work; how long it took.
fn compute() -> Duration {
    let start = Instant::now();
    black_box((0..STEPS).fold(1u64, |sum, step| black_box(sum.wrapping_mul(31) ^ u64::from(step))));
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The server, until `ends`; how long its stretches took.
fn serve(world: &Monitor<World>, computes: bool, by_thread: bool, ends: &AtomicBool) -> Vec<Duration> {
    let has_ended = || ends.load(Ordering::Relaxed);
    let mut stretches = Vec::new();
    if !computes {
        world.wait(WAIT, |_| has_ended().then_some(()));
    }
    while !has_ended() {
        stretches.push(compute());
        if !by_thread {
            world.poll();
        }
    }
    stretches
}

/// Reply times at the client, and the server's stretches.
fn measure(rounds: u32, computes: bool, by_thread: bool) -> [Duration; 2] {
    let segment = Segment::create(2).expect("shared memory");
    let [client, server] = [0, 1].map(|me| Endpoint::join_segment(segment.clone(), me).expect("a member"));
    let worlds: [&'static Monitor<World>; 2] = [client, server].map(|endpoint| {
        let world = &*Box::leak(Box::new(Monitor::new()));
        world.open(World(endpoint), true);
        world
    });
    let (told, ends) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let counted = told.clone();
    worlds[0].enter().0.register_handler(TELL, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let ended = ends.clone();
    worlds[1].enter().0.register_handler(ASK, move |call| {
        ended.store(call.arguments[0] == u64::from(rounds), Ordering::Relaxed);
        call.reply(TELL, &[], b"").expect("a request");
    });
    let thread = by_thread.then(|| DeliveryThread::start(worlds[1]).expect("a thread"));
    let server = std::thread::spawn(move || serve(worlds[1], computes, by_thread, &ends));
    let times = (1..=rounds).map(|round| {
        let start = Instant::now();
        let sent = |w: &mut World| w.0.try_request(Peer(1), ASK, &[round.into()], b"").ok().filter(|sent| *sent);
        worlds[0].wait(WAIT, sent);
        worlds[0].wait(WAIT, |_| (told.load(Ordering::Relaxed) == round).then_some(()));
        start.elapsed()
    });
    let reply = median(times.collect());
    let stretch = median(server.join().expect("the server ends"));
    drop(thread);
    [reply, stretch]
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(2000);
    let alone = median((0..50).map(|_| compute()).collect());
    println!("{:<10} {:<10} {:>14} {:>14}", "server", "delivery", "reply, us", "stretch");
    for (computes, by_thread) in [(false, false), (false, true), (true, false), (true, true)] {
        let [reply, stretch] = measure(rounds, computes, by_thread);
        let (server, delivery) = (["waits", "computes"], ["caller", "thread"]);
        let (server, delivery) = (server[usize::from(computes)], delivery[usize::from(by_thread)]);
        let times = stretch.as_secs_f64() / alone.as_secs_f64();
        println!("{server:<10} {delivery:<10} {:>14.1} {times:>14.2}", reply.as_secs_f64() * 1e6);
    }
}
