//! Ping-pong, message rate and windowed bandwidth of the bare fabric between two processes of this host.

use std::time::Instant;
use weft_fabric::{Driven, Endpoint, Envelope, Monitor, Outside, Peer, Segment, Selector, SendMode, Waiting};

struct World(Endpoint);

impl Driven for World {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.0
    }
    #[inline]
    fn advance(&mut self) -> Option<Outside> {
        None
    }
}

static WORLD: Monitor<World> = Monitor::new();
const WAIT: Waiting = Waiting { call: "pingpong", peer: None, tag: None, context: 0 };

fn send(to: u32, data: &[u8]) {
    let envelope = Envelope { context: 0, tag: 1, source: 1 - to };
    // SAFETY: `data` outlives the wait below.
    unsafe {
        if WORLD.enter().0.try_send(Peer(to), envelope, data.as_ptr(), data.len()) {
            return;
        }
        let id = WORLD.enter().0.post_send(Peer(to), envelope, data.as_ptr(), data.len(), SendMode::Standard);
        WORLD.wait(WAIT, |w| w.0.take_outcome(id));
    }
}

fn receive(from: u32, buffer: &mut [u8]) {
    let selector = Selector { context: 0, peer: Some(Peer(from)), tag: Some(1) };
    // SAFETY: `buffer` outlives the wait.
    let id = unsafe { WORLD.enter().0.post_receive(selector, buffer.as_mut_ptr(), buffer.len()) };
    let outcome = WORLD.wait(WAIT, |w| w.0.take_outcome(id));
    assert_eq!(outcome.length as usize, buffer.len());
}

fn pin(core: usize) {
    // SAFETY: a plain system call on a set on our stack.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

fn windowed(me: u32, size: usize, count: usize) -> f64 {
    const WINDOW: usize = 64;
    let mut buffers: Vec<Vec<u8>> = (0..WINDOW).map(|_| vec![1u8; size]).collect();
    let start = Instant::now();
    for _ in 0..count / WINDOW {
        let ids: Vec<_> = buffers
            .iter_mut()
            .map(|b| {
                let world = &mut *WORLD.enter();
                let envelope = Envelope { context: 0, tag: 1, source: me };
                let selector = Selector { context: 0, peer: Some(Peer(1 - me)), tag: Some(1) };
                // SAFETY: the buffers outlive the waits.
                unsafe {
                    match me {
                        0 => world.0.post_send(Peer(1), envelope, b.as_ptr(), size, SendMode::Standard),
                        _ => world.0.post_receive(selector, b.as_mut_ptr(), size),
                    }
                }
            })
            .collect();
        for id in ids {
            WORLD.wait(WAIT, |w| w.0.take_outcome(id));
        }
        let mut ack = [0u8; 4];
        if me == 0 { receive(1, &mut ack) } else { send(0, &ack) }
    }
    start.elapsed().as_secs_f64() / count as f64
}

fn main() {
    let segment = Segment::create(2).expect("segment");
    // SAFETY: no threads yet.
    let me = if unsafe { libc::fork() } == 0 { 1 } else { 0u32 };
    pin(me as usize);
    WORLD.open(World(Endpoint::join_segment(segment, me).expect("join")), false);
    for size in [0usize, 8, 48, 64, 512, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 1 << 20, 4 << 20] {
        let mut buffer = vec![me as u8; size];
        let rounds = (200_000_000 / (size + 1000)).clamp(50, 100_000);
        let mut best = f64::MAX;
        for _ in 0..5 {
            let start = Instant::now();
            for _ in 0..rounds / 5 {
                if me == 0 {
                    send(1, &buffer);
                    receive(1, &mut buffer);
                } else {
                    receive(0, &mut buffer);
                    send(0, &buffer);
                }
            }
            best = best.min(start.elapsed().as_secs_f64() / (rounds / 5) as f64 / 2.0);
        }
        if me == 0 {
            println!("{size:>8} B  {:>9.1} ns one way  {:>7.2} GB/s", best * 1e9, size as f64 / best / 1e9);
        }
    }
    for (size, count) in [(8, 6_400_000), (4096, 640_000), (262144, 6400), (1 << 20, 1920)] {
        let t = windowed(me, size, count);
        if me == 0 {
            println!(
                "{size:>8} B  {:>9.1} ns each     {:>7.2} GB/s  {:>6.2} M/s",
                t * 1e9,
                size as f64 / t / 1e9,
                1e-6 / t
            );
        }
    }
    WORLD.close().0.leave();
}
