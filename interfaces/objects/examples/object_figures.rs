//! What operations cost, as the first process sees it, which orders, and the last: a read of a replicated object, a
//! write of one, and both of one that is on another process; and how long who asks for one waits while its process
//! computes. With `deliver` a thread of each process takes what comes meanwhile.
//! `weft run -n 2 target/release/examples/object_figures`

use std::hint::black_box;
use std::time::{Duration, Instant};
use weft_objects::standard::{BarrierObject, IntegerObject, SharedBarrier, SharedInteger};
use weft_objects::{ObjectFault, ObjectPlacement, Space, Strategy};

/// Nanoseconds of one of `count`.
fn each(count: u32, mut what: impl FnMut() -> Result<i64, ObjectFault>) -> Result<f64, ObjectFault> {
    let begin = Instant::now();
    for _ in 0..count {
        black_box(what()?);
    }
    Ok(begin.elapsed().as_nanos() as f64 / f64::from(count))
}

/// How long the last process computes before it calls something.
const COMPUTES: Duration = Duration::from_millis(20);

/// Microseconds, from the shortest on, that an operation takes whose object is on a process that computes.
fn while_it_computes(
    number: &SharedInteger,
    barrier: &SharedBarrier,
    is_asker: bool,
) -> Result<Vec<u128>, ObjectFault> {
    let mut waits = Vec::new();
    for _ in 0..20 {
        barrier.pass()?;
        let begin = Instant::now();
        if is_asker {
            // It has begun to compute by then.
            while begin.elapsed() < COMPUTES / 20 {}
            let asked = Instant::now();
            number.add(1)?;
            waits.push(asked.elapsed().as_micros());
        } else {
            while begin.elapsed() < COMPUTES {
                black_box((0..1000).map(f64::from).sum::<f64>());
            }
        }
    }
    waits.sort_unstable();
    Ok(waits)
}

fn main() -> Result<(), ObjectFault> {
    let space = Space::open()?;
    if std::env::args().nth(1).is_some_and(|word| word == "deliver") {
        space.deliver(true)?;
    }
    let (me, size) = space.place();
    let number = SharedInteger::share(&space, "number", IntegerObject::new(0))?;
    let barrier = SharedBarrier::share(&space, "barrier", BarrierObject::new(size))?;
    barrier.place(Strategy::Fixed(ObjectPlacement::Replicated))?;
    let places = [ObjectPlacement::Replicated, ObjectPlacement::Single(size - 1), ObjectPlacement::Single(0)];
    for place in places {
        barrier.pass()?;
        number.place(Strategy::Fixed(place))?;
        barrier.pass()?;
        for who in [0, size - 1] {
            if me == who {
                let read = match place {
                    ObjectPlacement::Single(on) if on != me => each(100_000, || number.value())?,
                    _ => each(20_000_000, || number.value())?,
                };
                let write = each(100_000, || number.add(1))?;
                println!("process {me} of {size}, {place:?}: read {read:.1} ns, write {write:.0} ns");
            }
            barrier.pass()?;
        }
    }
    number.place(Strategy::Fixed(ObjectPlacement::Single(size - 1)))?;
    if size > 1 && (me == 0 || me == size - 1) || size == 1 {
        let two = SharedBarrier::share(&space, "two", BarrierObject::new(size.min(2)))?;
        let waits = while_it_computes(&number, &two, me == 0)?;
        if let [least, .., most] = waits[..] {
            let middle = waits[waits.len() / 2];
            println!("an operation on a process that computes for {COMPUTES:?}: {least} to {most}, median {middle} us");
        }
    }
    space.close()
}
