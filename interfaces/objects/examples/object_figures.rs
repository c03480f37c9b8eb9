//! What operations cost: a read of a replicated object, a write of one, and a call of one that is on another process.
//!
//! `cargo run --release -p weft-objects --example object_figures`

use std::hint::black_box;
use std::time::Instant;
use weft_objects::standard::{IntegerObject, SharedInteger};
use weft_objects::{ObjectFault, Space};

/// Nanoseconds of one of `count`.
fn each(count: u32, mut what: impl FnMut() -> Result<(), ObjectFault>) -> Result<f64, ObjectFault> {
    let begin = Instant::now();
    (0..count).try_for_each(|_| what())?;
    Ok(begin.elapsed().as_nanos() as f64 / f64::from(count))
}

fn main() -> Result<(), ObjectFault> {
    let space = Space::alone();
    let number = SharedInteger::share(&space, "number", IntegerObject::new(0))?;
    for _ in 0..3 {
        let read = each(20_000_000, || number.value().map(|value| drop(black_box(value))))?;
        let write = each(1_000_000, || number.add(1).map(|value| drop(black_box(value))))?;
        println!("read {read:.1} ns, write {write:.1} ns");
    }
    Ok(())
}
