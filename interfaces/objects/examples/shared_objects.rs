//! A job with shared objects, each with a result that is known: `weft run -n 4 shared_objects`.
//!
//! A counter that all write, jobs that each is done once, a barrier that nobody passes early, and an object that moves.
//! With `killed`, under `--keep-going`, the last process ends in the middle. With `loops` each calls as often as it
//! can, and nobody is kept out.

use std::time::{Duration, Instant};
use weft_objects::standard::{
    BarrierObject, IntegerObject, JobQueueObject, SharedBarrier, SharedInteger, SharedJobQueue, SharedTable,
    TableObject,
};
use weft_objects::{ObjectFault, ObjectPlacement, Space, Strategy};

const ADDITIONS: i64 = 500;
const JOBS: u64 = 300;
const ROUNDS: i64 = 50;

fn main() -> Result<(), ObjectFault> {
    let space = Space::open()?;
    let (me, size) = space.place();
    match std::env::args().nth(1).as_deref() {
        Some("killed") => return with_a_death(space),
        Some("loops") => return with_loops(space),
        _ => {}
    }
    let all = i64::from(size);
    let barrier = SharedBarrier::share(&space, "barrier", BarrierObject::new(size))?;

    // All replicas of a counter see all additions, and each addition sees those before.
    let counter = SharedInteger::share(&space, "counter", IntegerObject::new(0))?;
    let seen: Vec<i64> = (0..ADDITIONS).map(|_| counter.add(1)).collect::<Result<_, _>>()?;
    assert!(seen.is_sorted_by(|a, b| a < b));
    counter.await_at_least(all * ADDITIONS)?;
    assert_eq!(counter.value()?, all * ADDITIONS);

    // The first process has jobs, and the others wait for them.
    let jobs = SharedJobQueue::share(&space, "jobs", JobQueueObject::<u64>::default())?;
    let sum = SharedInteger::share(&space, "sum", IntegerObject::new(0))?;
    if me == 0 {
        for job in 1..=JOBS {
            jobs.add(job)?;
        }
        jobs.close()?;
    }
    while let Some(job) = jobs.take()? {
        sum.add(job as i64)?;
    }
    barrier.pass()?;
    assert_eq!(sum.value()?, (JOBS * (JOBS + 1) / 2) as i64);

    // Nobody is a round ahead, wherever the object is that they count in.
    let rounds = SharedInteger::share(&space, "rounds", IntegerObject::new(0))?;
    barrier.pass()?;
    for round in 1..=ROUNDS {
        if round % 10 == i64::from(me) {
            let strategy = match round % 3 {
                0 => ObjectPlacement::Replicated,
                _ => ObjectPlacement::Single((me + 1) % size),
            };
            rounds.place(Strategy::Fixed(strategy))?;
        }
        rounds.add(1)?;
        barrier.pass()?;
        let value = rounds.value()?;
        assert!((all * round..all * (round + 1)).contains(&value), "round {round}: {value}");
        barrier.pass()?;
    }
    if me == 0 {
        println!("{} additions, {JOBS} jobs, {ROUNDS} rounds by {size} processes", all * ADDITIONS);
    }
    space.close()
}

/// What is on the process that ends is lost, and all else goes on.
fn with_a_death(space: Space) -> Result<(), ObjectFault> {
    let (me, size) = space.place();
    let last = size - 1;
    let number = SharedInteger::share(&space, "number", IntegerObject::new(0))?;
    let here = SharedInteger::share(&space, "here", IntegerObject::new(0))?;
    here.place(Strategy::Fixed(ObjectPlacement::Replicated))?;
    here.add(1)?;
    here.await_at_least(i64::from(size))?;
    number.place(Strategy::Fixed(ObjectPlacement::Single(last)))?;
    here.add(1)?;
    here.await_at_least(i64::from(2 * size))?;
    if me == last {
        std::process::abort();
    }
    let lost = loop {
        if let Err(fault) = number.add(1) {
            break fault;
        }
    };
    assert!(matches!(&lost, ObjectFault::OwnerLost { process, .. } if *process == last), "{lost}");
    // It is there again for who shares it.
    let number = SharedInteger::share(&space, "number", IntegerObject::new(0))?;
    here.add(1)?;
    here.await_at_least(i64::from(2 * size + last))?;
    number.add(1)?;
    number.await_at_least(i64::from(last))?;
    if me == 0 {
        println!("{lost}; {last} went on");
    }
    space.close()
}

/// How long each process calls in a loop, and how often it has to get through at least: a hundredth of what is usual.
const LOOP: Duration = Duration::from_millis(500);
const LEAST: u64 = 50;

/// Nobody is kept out by a process that calls in a loop what it has itself.
fn with_loops(space: Space) -> Result<(), ObjectFault> {
    let (me, size) = space.place();
    let barrier = SharedBarrier::share(&space, "barrier", BarrierObject::new(size))?;
    let shares = SharedTable::share(&space, "shares", TableObject::<(u32, u32), u64>::default())?;
    let number = SharedInteger::share(&space, "number", IntegerObject::new(0))?;
    let single = ObjectPlacement::Single(size - 1);
    let strategies = [Strategy::Automatic, Strategy::Fixed(ObjectPlacement::Replicated), Strategy::Fixed(single)];
    for (round, strategy) in (0..).zip(strategies) {
        barrier.pass()?;
        number.place(strategy)?;
        barrier.pass()?;
        let begin = Instant::now();
        let mut mine = 0;
        while begin.elapsed() < LOOP {
            number.add(1)?;
            mine += 1;
        }
        shares.insert((round, me), mine)?;
        let all: Vec<u64> = (0..size).map(|of| shares.await_value(&(round, of))).collect::<Result<_, _>>()?;
        assert!(all.iter().all(|share| *share >= LEAST), "{strategy:?}: {all:?}");
    }
    let jobs = SharedJobQueue::share(&space, "jobs", JobQueueObject::<u64>::default())?;
    barrier.pass()?;
    if me == 0 {
        (0..JOBS).try_for_each(|job| jobs.add(job).map(drop))?;
        jobs.close()?;
    }
    let mut mine = 0;
    while jobs.take()?.is_some() {
        std::thread::sleep(Duration::from_millis(1));
        mine += 1;
    }
    shares.insert((9, me), mine)?;
    let all: Vec<u64> = (0..size).map(|of| shares.await_value(&(9, of))).collect::<Result<_, _>>()?;
    assert!(all.iter().all(|share| *share * 4 * u64::from(size) >= JOBS), "jobs: {all:?}");
    space.close()
}
