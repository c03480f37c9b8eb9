//! Two ranks that send messages of some lengths to each other, one after the other. Only `weft tune` starts them.

use anyhow::{Context, bail, ensure};
use std::time::{Duration, Instant};
use weft_fabric::{Driven, Endpoint, Envelope, Monitor, Outside, Peer, Selector, SendMode, Waiting, memory};

/// What the pair does.
#[derive(Clone, Debug, clap::Args)]
pub struct TunePairArgs {
    /// From and into memory that the interface makes
    #[arg(long)]
    shown: bool,
    /// Where rank 1 runs
    #[arg(long)]
    far: Option<usize>,
    /// Least time for each length
    #[arg(long, default_value_t = 5)]
    milliseconds: u64,
    lengths: Vec<usize>,
}

struct Tuner(Endpoint);

impl Driven for Tuner {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.0
    }

    #[inline]
    fn advance(&mut self) -> Option<Outside> {
        None
    }
}

static WORLD: Monitor<Tuner> = Monitor::new();
const WAIT: Waiting = Waiting { call: "tune-pair", peer: None, tag: None, context: 0 };
/// Messages between two looks at the clock.
const BATCH: u64 = 16;
/// Of a message that ends the exchange, and of others.
const LAST: i32 = 2;
const TAG: i32 = 1;
const PAGE: usize = 4096;
/// Begins the line in which a rank says what it had of its processor, and in which time.
pub const USED: &str = "used";

/// A buffer at the beginning of a page, as long as the process lives.
fn buffer(bytes: usize, shown: bool) -> anyhow::Result<*mut u8> {
    let address = match shown {
        true => memory::allocate(bytes, PAGE).context("no memory that can be shown")?,
        false => {
            let memory = Vec::leak(vec![0u8; bytes + PAGE]);
            // The page begins inside: there is one more than is needed.
            let begin = memory.as_ptr().align_offset(PAGE);
            memory[begin..].as_mut_ptr()
        }
    };
    // SAFETY: as long as that, and nobody else's.
    unsafe { address.write_bytes(1, bytes) };
    Ok(address)
}

struct Player {
    me: u32,
    out: *const u8,
    into: *mut u8,
    length: usize,
}

impl Player {
    fn other(&self) -> Peer {
        Peer(1 - self.me)
    }

    fn send(&self, tag: i32) {
        let envelope = Envelope { context: 0, tag, source: self.me };
        // SAFETY: the buffer lives as long as the process and is not written while it is sent.
        unsafe {
            if WORLD.enter().0.try_send(self.other(), envelope, self.out, self.length) {
                return;
            }
            let request = WORLD.enter().0.post_send(self.other(), envelope, self.out, self.length, SendMode::Standard);
            WORLD.wait(WAIT, |world| world.0.take_outcome(request));
        }
    }

    /// The tag of the message that came.
    fn receive(&self) -> anyhow::Result<i32> {
        let selector = Selector { context: 0, peer: Some(self.other()), tag: None };
        // SAFETY: the buffer lives as long as the process and is read by nobody.
        let request = unsafe { WORLD.enter().0.post_receive(selector, self.into, self.length) };
        let outcome = WORLD.wait(WAIT, |world| world.0.take_outcome(request));
        match outcome.fault {
            None => Ok(outcome.tag),
            Some(fault) => bail!("{} bytes have not arrived: {fault:?}", self.length),
        }
    }

    /// Nanoseconds one way: the median of the batches, of which the first quarter does not count.
    fn lead(&self, least: Duration) -> anyhow::Result<u64> {
        let (began, mut batches) = (Instant::now(), Vec::new());
        while began.elapsed() < least || batches.len() < 8 {
            let batch = Instant::now();
            for _ in 0..BATCH {
                self.send(TAG);
                self.receive()?;
            }
            batches.push(batch.elapsed().as_nanos() as u64 / (2 * BATCH));
        }
        self.send(LAST);
        self.receive()?;
        let counted = &mut batches[..];
        let first = counted.len() / 4;
        let counted = &mut counted[first..];
        counted.sort_unstable();
        Ok(counted[counted.len() / 2])
    }

    fn follow(&self) -> anyhow::Result<()> {
        loop {
            let tag = self.receive()?;
            self.send(tag);
            if tag == LAST {
                return Ok(());
            }
        }
    }
}

/// Runs as one of the two ranks; rank 0 prints a line for each length.
///
/// # Errors
/// It was not started so, or a message was lost.
pub fn run(args: &TunePairArgs) -> anyhow::Result<()> {
    let endpoint = Endpoint::join().context("cannot join")?;
    let me = endpoint.me().0;
    ensure!(endpoint.world_size() == 2, "{} ranks, where two are needed", endpoint.world_size());
    WORLD.open(Tuner(endpoint), false);
    if let Some(far) = args.far.filter(|_| me == 1) {
        crate::layers::bind_to(far)?;
    }
    let longest = args.lengths.iter().copied().max().unwrap_or(0);
    let (out, into) = (buffer(longest, args.shown)?, buffer(longest, args.shown)?);
    let (began, before) = (Instant::now(), processor_ns());
    for length in args.lengths.iter().copied() {
        let side = Player { me, out, into, length };
        match me {
            0 => println!("{length} {}", side.lead(Duration::from_millis(args.milliseconds))?),
            _ => side.follow()?,
        }
    }
    println!("{USED} {} {}", processor_ns() - before, began.elapsed().as_nanos());
    WORLD.close().0.leave();
    Ok(())
}

/// The shortest time of a system call that does nothing.
pub fn system_call_ns() -> u64 {
    super::least_of(200, || {
        let began = Instant::now();
        for _ in 0..100 {
            // SAFETY: it only answers.
            unsafe { libc::getppid() };
        }
        began.elapsed()
    }) / 100
}

/// Processor time of this process.
fn processor_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes a time there and nothing else.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
