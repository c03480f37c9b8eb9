//! The fabric's own layers between two processes: the raw channel, and ports with matching.
//!
//! Runs in a process of its own, which forks: only the hidden command `weft bench fabric-pair` comes here. The other
//! process answers (ping-pong) or does the same as this one (exchange) until it is killed.

use crate::payload::{look, mark, middle};
use anyhow::{Context, bail};
use std::time::Instant;
use weft_fabric::{
    Driven, Endpoint, Envelope, Monitor, Outside, Peer, RequestId, Segment, Selector, SendMode, Waiting,
};

/// One layer of the fabric, timed between two processes.
#[derive(Clone, Debug, clap::Args)]
pub struct PairArgs {
    layer: Layer,
    what: PairWhat,
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    bytes: u32,
    #[arg(value_parser = crate::seconds::seconds)]
    seconds: f64,
    /// Where this process runs, and where the other one
    #[arg(num_args = 2)]
    cpus: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Layer {
    Raw,
    Port,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PairWhat {
    Pingpong,
    Exchange,
}

struct PairWorld(Endpoint);

impl Driven for PairWorld {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.0
    }

    #[inline]
    fn advance(&mut self) -> Option<Outside> {
        None
    }
}

static WORLD: Monitor<PairWorld> = Monitor::new();
const WAIT: Waiting = Waiting { call: "fabric-pair", peer: None, tag: None, context: 0 };
const TAG: i32 = 1;
/// The clock is read once per so many messages.
const CLOCK_EVERY: u64 = 8;

/// One side, with the buffers that it sends from and receives into.
struct PairSide {
    layer: Layer,
    me: u32,
    out: Vec<u8>,
    into: Vec<u8>,
}

impl PairSide {
    fn new(layer: Layer, me: u32, bytes: usize) -> Self {
        let message: Vec<u8> = (0..bytes).map(middle).collect();
        Self { layer, me, out: message.clone(), into: message }
    }

    fn other(&self) -> Peer {
        Peer(1 - self.me)
    }

    /// The message `number` may come into our buffer from now on.
    fn expect(&mut self) -> RequestId {
        let (from, length) = (self.other(), self.into.len());
        let world = &mut *WORLD.enter();
        // SAFETY: the buffer is neither touched nor dropped before `arrive` has seen the request complete.
        unsafe {
            match self.layer {
                Layer::Raw => world.0.post_raw_receive(from, self.into.as_mut_ptr(), length),
                Layer::Port => {
                    let selector = Selector { context: 0, peer: Some(from), tag: Some(TAG) };
                    world.0.post_receive(selector, self.into.as_mut_ptr(), length)
                }
            }
        }
    }

    fn arrive(&mut self, request: RequestId, number: u64) -> anyhow::Result<()> {
        let outcome = WORLD.wait(WAIT, |world| world.0.take_outcome(request));
        if let Some(fault) = outcome.fault {
            bail!("message {number} has not arrived: {fault:?}");
        }
        look(&self.into, number)
    }

    /// Sends the message `number` and waits until its buffer is ours again.
    fn send(&mut self, number: u64) {
        mark(&mut self.out, number);
        match self.layer {
            Layer::Raw => self.send_raw(),
            Layer::Port => self.send_to_port(),
        }
    }

    fn send_raw(&mut self) {
        let mut sent = 0;
        loop {
            let rest = &self.out[sent..];
            // SAFETY: all of `rest` is readable.
            sent += unsafe { WORLD.enter().0.try_raw_send(self.other(), rest.as_ptr(), rest.len()) };
            if sent == self.out.len() {
                return;
            }
            // Who cannot send receives meanwhile.
            WORLD.poll();
        }
    }

    fn send_to_port(&mut self) {
        let (to, envelope) = (self.other(), Envelope { context: 0, tag: TAG, source: self.me });
        let (data, length) = (self.out.as_ptr(), self.out.len());
        // SAFETY: the buffer is not touched before the send is complete, which is waited for here.
        unsafe {
            if WORLD.enter().0.try_send(to, envelope, data, length) {
                return;
            }
            let request = WORLD.enter().0.post_send(to, envelope, data, length, SendMode::Standard);
            WORLD.wait(WAIT, |world| world.0.take_outcome(request));
        }
    }

    /// Sends and receives the message `number`: ours first, so that it answers itself in a ping-pong.
    fn lead(&mut self, number: u64) -> anyhow::Result<()> {
        let request = self.expect();
        self.send(number);
        self.arrive(request, number)
    }

    /// Receives, then answers.
    fn follow(&mut self, number: u64) -> anyhow::Result<()> {
        let request = self.expect();
        self.arrive(request, number)?;
        self.send(number);
        Ok(())
    }
}

/// Measures and prints the mean time: of one way, or of an exchange.
///
/// # Errors
/// The other process cannot be had, or wrong data arrived.
pub fn run(args: &PairArgs) -> anyhow::Result<()> {
    let &[here, there] = &args.cpus[..] else { bail!("two processors are needed, not {}", args.cpus.len()) };
    let segment = Segment::create(2).context("shared memory")?;
    // SAFETY: this process has one thread.
    let other = unsafe { libc::fork() };
    if other < 0 {
        return Err(std::io::Error::last_os_error()).context("cannot fork");
    }
    let me = u32::from(other == 0);
    if me == 1 {
        // SAFETY: no memory is passed.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    }
    bind_to(if me == 0 { here } else { there })?;
    WORLD.open(PairWorld(Endpoint::join_segment(segment, me).context("cannot join")?), false);
    let mut side = PairSide::new(args.layer, me, args.bytes as usize);
    if me == 1 {
        keep_company(&mut side, args.what);
    }
    let measured = lead(&mut side, args.seconds);
    // SAFETY: the child is ours and was not waited for.
    unsafe {
        libc::kill(other, libc::SIGKILL);
        libc::waitpid(other, std::ptr::null_mut(), 0);
    }
    let round = measured?;
    match args.what {
        PairWhat::Pingpong => println!("figure pingpong {:e} s", round / 2.0),
        PairWhat::Exchange => println!("figure exchange {round:e} s"),
    }
    Ok(())
}

/// Mean seconds of a round.
fn lead(side: &mut PairSide, seconds: f64) -> anyhow::Result<f64> {
    let (mut begin, mut first, mut number) = (Instant::now(), 0, 0);
    let (mut measuring, mut spent) = (false, 0.0);
    while !measuring || spent < seconds {
        side.lead(number)?;
        number += 1;
        if number.is_multiple_of(CLOCK_EVERY) {
            spent = begin.elapsed().as_secs_f64();
            if !measuring && spent >= seconds / 10.0 {
                (measuring, begin, first, spent) = (true, Instant::now(), number, 0.0);
            }
        }
    }
    Ok(spent / (number - first) as f64)
}

/// The other process, until it is killed.
fn keep_company(side: &mut PairSide, what: PairWhat) -> ! {
    for number in 0.. {
        let well = match what {
            PairWhat::Pingpong => side.follow(number),
            PairWhat::Exchange => side.lead(number),
        };
        if let Err(error) = well {
            eprintln!("fabric-pair: error: {error:#}");
            std::process::exit(1);
        }
    }
    unreachable!("there are more numbers than time")
}

/// Two ranks of a job, one on each of two hosts.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Distance {
    /// Seconds for 8 bytes, one way.
    pub latency_s: f64,
    /// Bytes a second in messages of 1 MiB.
    pub bandwidth: f64,
    /// Packets that left by the devices between hosts; datagrams that went past the kernel in either direction.
    pub xdp_datagrams: u64,
    pub udp_packets: u64,
    pub tcp_packets: u64,
}

/// Runs as one of the two ranks of a job that was started for this; rank 0 prints a [`Distance`].
///
/// # Errors
/// It was not started so, or wrong data arrived.
pub fn run_distance() -> anyhow::Result<()> {
    let endpoint = Endpoint::join().context("cannot join")?;
    let me = endpoint.me().0;
    anyhow::ensure!(endpoint.world_size() == 2, "{} ranks, where two are needed", endpoint.world_size());
    WORLD.open(PairWorld(endpoint), false);
    let latency_s = rounds(me, 8, 2_000)? / 2.0;
    let bytes = 1 << 20;
    let bandwidth = bytes as f64 / (rounds(me, bytes, 40)? / 2.0);
    let mut endpoint = WORLD.close().0;
    let counters = endpoint.counters();
    let distance = Distance {
        latency_s,
        bandwidth,
        xdp_datagrams: counters.xdp_datagrams,
        udp_packets: counters.udp_packets,
        tcp_packets: counters.tcp_packets,
    };
    endpoint.leave();
    if me == 0 {
        println!("{}", serde_json::to_string(&distance)?);
    }
    Ok(())
}

/// Mean seconds of so many rounds, of which a tenth more go before.
fn rounds(me: u32, bytes: usize, count: u64) -> anyhow::Result<f64> {
    let mut side = PairSide::new(Layer::Port, me, bytes);
    let mut begin = Instant::now();
    let early = count / 10;
    for number in 0..early + count {
        if number == early {
            begin = Instant::now();
        }
        if me == 0 { side.lead(number)? } else { side.follow(number)? }
    }
    Ok(begin.elapsed().as_secs_f64() / count as f64)
}

pub fn bind_to(cpu: usize) -> anyhow::Result<()> {
    weft_kernel::set_affinity(&[cpu]).with_context(|| format!("cannot run on processor {cpu}"))
}
