//! What operations cost, as the first process sees it, which orders, and the last: a read of a replicated object, a
//! write of one, and both of one that is on another process.
//! `weft run -n 2 target/release/examples/object_figures`

use std::hint::black_box;
use std::time::Instant;
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

fn main() -> Result<(), ObjectFault> {
    let space = Space::open()?;
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
    space.close()
}
