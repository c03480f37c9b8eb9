//! The shared counter of `NXTVAL`: the numbers from 0 on, each to one process only, until all have said that they are
//! done.
//!
//! Where all processes share memory it is a word there, and nobody serves it. Where they do not, process 0 answers
//! active messages; a thread of the fabric takes them while its program computes. Who is done waits for the others
//! asleep: for a word in the one case, in the other for a message of the one that comes last.

use crate::failure::{fail, lost};
use crate::place::{MESSENGER, TcgmsgContext, me, size};
use crate::together;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, OnceLock};
use weft_fabric::active::ActiveCall;
use weft_fabric::shared::Block;
use weft_ports::{Delivery, Endpoint, Peer};

/// Offsets in the block, in lines of their own: the next number, how many are done, and how often all were.
const NEXT: usize = 0;
const DONE: usize = 64;
const ROUND: usize = 128;

/// Handlers: at process 0, and where the answer goes.
const ASK: u16 = 1;
const ANSWER: u16 = 2;

/// First arguments of a question.
const ASKS_NEXT: u64 = 0;
const ASKS_END: u64 = 1;

/// How processes come to the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterWay {
    Memory,
    /// Process 0 serves the counter, and whether this is it.
    Served {
        here: bool,
    },
}

impl CounterWay {
    pub fn of(endpoint: &Endpoint) -> Self {
        let all = (0..endpoint.world_size()).all(|peer| endpoint.is_local(Peer(peer)));
        if all { Self::Memory } else { Self::Served { here: endpoint.me().0 == 0 } }
    }

    /// Whether a thread of our own makes progress beside the program's.
    pub fn needs_thread(self) -> bool {
        self == Self::Served { here: true }
    }
}

static BLOCK: OnceLock<Block> = OnceLock::new();
static DELIVERY: Mutex<Option<Delivery>> = Mutex::new(None);
/// The answer to the question that is open.
static ANSWERED: Mutex<Option<CounterAnswer>> = Mutex::new(None);

struct CounterAnswer {
    number: u64,
    /// Those to wake, if this process is the last one.
    others: Vec<u32>,
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

pub fn begin(way: CounterWay) {
    match way {
        CounterWay::Memory => begin_in_memory(),
        CounterWay::Served { here } => {
            MESSENGER.with(|endpoint| {
                endpoint.register_handler(ANSWER, take_answer);
                let mut counter = Served::default();
                if here {
                    endpoint.register_handler(ASK, move |call| counter.serve(call));
                }
            });
            if here {
                let thread = MESSENGER.deliver().unwrap_or_else(|error| {
                    fail(&format!("PBEGIN: no thread for the counter of NXTVAL: {error}, node"), 0)
                });
                *locked(&DELIVERY) = Some(thread);
            }
            // Nobody asks before there is a handler.
            together::synchronize(0);
        }
    }
}

fn begin_in_memory() {
    let blocks = MESSENGER.with(|endpoint| endpoint.shared_blocks());
    let mut index = [0; 8];
    if me() == 0 {
        let taken = blocks.take(1).map_or(u64::MAX, |first| first as u64);
        if let Some(block) = usize::try_from(taken).ok().and_then(|first| blocks.open(first, 1)) {
            [NEXT, DONE, ROUND].into_iter().for_each(|word| block.publish(word, 0));
        }
        index = taken.to_ne_bytes();
    }
    together::broadcast(0, &mut index, 0);
    let block = usize::try_from(u64::from_ne_bytes(index)).ok().and_then(|first| blocks.open(first, 1));
    let block = block.unwrap_or_else(|| fail("PBEGIN: no shared memory for the counter of NXTVAL, node", me().into()));
    let _ = BLOCK.set(block);
}

pub fn end() {
    if DELIVERY.lock().is_ok_and(|thread| thread.is_some()) {
        // The others may still ask.
        together::synchronize(0);
        drop(locked(&DELIVERY).take());
    } else if BLOCK.get().is_none() {
        together::synchronize(0);
    }
}

/// The next number.
pub fn next() -> i64 {
    match BLOCK.get() {
        Some(block) => block.word(NEXT).fetch_add(1, Ordering::Relaxed) as i64,
        None => ask(ASKS_NEXT, 0).number as i64,
    }
}

/// Says that this process wants no more numbers, and returns when so many have said so; numbers begin anew then.
pub fn finish(processes: u64) {
    match BLOCK.get() {
        Some(block) => finish_in_memory(block, processes),
        None => finish_served(processes),
    }
}

fn finish_in_memory(block: &Block, processes: u64) {
    // ORDER: next-round. It cannot change before this process has said that it is done.
    let round = block.observe(ROUND);
    if block.word(DONE).fetch_add(1, Ordering::AcqRel) + 1 < processes {
        MESSENGER.wait_for_memory("NXTVAL", |_| (block.observe(ROUND) != round).then_some(()));
        return;
    }
    block.publish(NEXT, 0);
    block.publish(DONE, 0);
    // ORDER: next-round
    block.publish(ROUND, round.wrapping_add(1));
    MESSENGER.with(|endpoint| {
        endpoint.order_before_look();
        (0..size()).filter(|peer| *peer != me()).for_each(|peer| endpoint.wake(Peer(peer)));
    });
}

fn finish_served(processes: u64) {
    let answer = ask(ASKS_END, processes);
    if answer.number == 0 {
        let waited = MESSENGER.receive("NXTVAL", TcgmsgContext::Counter.from(None), &mut []);
        waited.unwrap_or_else(|fault| lost("NXTVAL", 0, fault));
        return;
    }
    for other in answer.others.into_iter().filter(|other| *other != me() && *other < size()) {
        let sent = MESSENGER.send("NXTVAL", Peer(other), TcgmsgContext::Counter.subject(0), &[]);
        sent.unwrap_or_else(|fault| lost("NXTVAL", other, fault));
    }
}

fn ask(what: u64, processes: u64) -> CounterAnswer {
    MESSENGER.wait("NXTVAL", |endpoint| match endpoint.try_request(Peer(0), ASK, &[what, processes], &[]) {
        Ok(sent) => sent.then_some(()),
        Err(error) => fail(&format!("NXTVAL: node 0 cannot be asked ({error}), node"), 0),
    });
    MESSENGER.wait("NXTVAL", |_| locked(&ANSWERED).take())
}

fn take_answer(call: ActiveCall<'_>) {
    let others = call.bytes.chunks_exact(4).map(|peer| u32::from_ne_bytes(peer.try_into().expect("four bytes")));
    let number = call.arguments.first().copied().unwrap_or(0);
    *locked(&ANSWERED) = Some(CounterAnswer { number, others: others.collect() });
}

/// The counter at process 0.
#[derive(Default)]
struct Served {
    next: u64,
    done: Vec<u32>,
}

impl Served {
    fn serve(&mut self, call: ActiveCall<'_>) {
        let (number, others) = match *call.arguments {
            [ASKS_NEXT, ..] => (self.take(), Vec::new()),
            [ASKS_END, processes, ..] => self.end(call.peer.0, processes),
            _ => return,
        };
        let bytes: Vec<u8> = others.into_iter().flat_map(u32::to_ne_bytes).collect();
        // Who has asked may be gone.
        let _ = call.reply(ANSWER, &[number], &bytes);
    }

    fn take(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// 1 for the last one, which is told who waits.
    fn end(&mut self, peer: u32, processes: u64) -> (u64, Vec<u32>) {
        self.done.push(peer);
        if (self.done.len() as u64) < processes {
            return (0, Vec::new());
        }
        self.next = 0;
        (1, std::mem::take(&mut self.done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_anew_when_so_many_are_done() {
        let mut served = Served::default();
        assert_eq!([served.take(), served.take()], [0, 1]);
        assert_eq!(served.end(2, 3), (0, vec![]));
        assert_eq!(served.take(), 2);
        assert_eq!(served.end(0, 3), (0, vec![]));
        assert_eq!(served.end(1, 3), (1, vec![2, 0, 1]));
        assert_eq!((served.take(), served.end(1, 1)), (0, (1, vec![1])));
    }
}
