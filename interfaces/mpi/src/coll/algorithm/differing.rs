//! Ranks that were called with different lengths: whatever the algorithms that they come to, nobody waits for ever.

use super::gather::{gather, gatherv, scatter, scatterv};
use super::{allgather, alltoall, bcast, levels, reduce, scan};
use crate::coll::run::Combine;
use crate::coll::schedule::{Area, Party, Schedule, View};
use crate::coll::shape::Shape;
use crate::coll::simulate::{Rank, run_differing};
use std::sync::Arc;

/// What one rank that brings `count` elements of eight bytes to an operation does.
type Build = fn(&mut Schedule, Party, u64);

fn views(s: &mut Schedule, count: u64) -> (View, View) {
    let shape = s.add_shape(Shape::dense(8));
    (View::new(Area::Input, 0, shape, count), View::new(Area::Output, 0, shape, count))
}

fn blocks(view: View, me: Party) -> Vec<View> {
    (0..i64::from(me.size)).map(|rank| View { at: rank * view.count as i64 * 8, ..view }).collect()
}

/// Ranks on three hosts in turn, and one more on the first; too few of them have one level.
fn on_hosts(me: Party, build: impl FnOnce(&levels::Hosts)) {
    let placement: Vec<u32> = (0..me.size).map(|rank| if rank + 1 == me.size { 0 } else { rank % 3 }).collect();
    levels::Hosts::of(&placement, me.rank).as_ref().map(build);
}

const OPERATIONS: &[(&str, Build)] = &[
    ("bcast", |s, me, count| {
        let (_, output) = views(s, count);
        bcast::bcast(s, me, 0, output);
    }),
    ("reduce", |s, me, count| {
        let (input, output) = views(s, count);
        reduce::reduce(s, me, 0, input, output, true);
    }),
    ("reduce in the order of ranks", |s, me, count| {
        let (input, output) = views(s, count);
        reduce::reduce(s, me, me.size - 1, input, output, false);
    }),
    ("allreduce", |s, me, count| {
        let (input, output) = views(s, count);
        reduce::allreduce(s, me, input, output);
    }),
    ("reduce-scatter", |s, me, count| {
        let (input, output) = views(s, count);
        let whole = View { count: count * u64::from(me.size), ..input };
        reduce::reduce_scatter(s, me, &vec![count; me.size as usize], whole, output);
    }),
    ("scan", |s, me, count| {
        let (input, output) = views(s, count);
        scan::scan(s, me, scan::Kind::Inclusive, input, output);
    }),
    ("exclusive scan", |s, me, count| {
        let (input, output) = views(s, count);
        scan::scan(s, me, scan::Kind::Exclusive, input, output);
    }),
    ("allgather", |s, me, count| {
        let (input, output) = views(s, count);
        allgather::allgather(s, me, Some(input), &blocks(output, me));
    }),
    ("alltoall", |s, me, count| {
        let (input, output) = views(s, count);
        alltoall::alltoall(s, me, &blocks(input, me), &blocks(output, me));
    }),
    ("gather", |s, me, count| {
        let (input, output) = views(s, count);
        let places = if me.rank == 0 { blocks(output, me) } else { vec![] };
        gather(s, me, 0, count * 8, Some(input), &places);
    }),
    ("gather by lists", |s, me, count| {
        let (input, output) = views(s, count);
        let places = if me.rank == 0 { blocks(output, me) } else { vec![] };
        gatherv(s, me, 0, Some(input), &places);
    }),
    ("bcast in two levels", |s, me, count| {
        let (_, output) = views(s, count);
        on_hosts(me, |hosts| levels::bcast(s, hosts, 0, output));
    }),
    ("reduce in two levels", |s, me, count| {
        let (input, output) = views(s, count);
        on_hosts(me, |hosts| levels::reduce(s, hosts, me.size - 1, input, output, true));
    }),
    ("allreduce in two levels", |s, me, count| {
        let (input, output) = views(s, count);
        on_hosts(me, |hosts| levels::allreduce(s, hosts, input, output, true));
    }),
    ("allgather in two levels", |s, me, count| {
        let (input, output) = views(s, count);
        on_hosts(me, |hosts| levels::allgather(s, hosts, Some(input), &blocks(output, me)));
    }),
    ("scatter", |s, me, count| {
        let (input, output) = views(s, count);
        let places = if me.rank == 0 { blocks(input, me) } else { vec![] };
        scatter(s, me, 0, count * 8, &places, Some(output));
    }),
    ("scatter by lists", |s, me, count| {
        let (input, output) = views(s, count);
        let places = if me.rank == 0 { blocks(input, me) } else { vec![] };
        scatterv(s, me, 0, &places, Some(output));
    }),
];

fn combine() -> Combine {
    Combine::Function(Arc::new(|left, into, count| {
        for i in 0..count as usize {
            // SAFETY: both buffers have `count` elements of eight bytes.
            unsafe {
                into.cast::<u64>().add(i).write(left.cast::<u64>().add(i).read() | into.cast::<u64>().add(i).read())
            };
        }
    }))
}

fn ends(seed: u64, (name, build): (&str, Build), counts: &[u64]) {
    let size = counts.len() as u32;
    let ranks = (0..size).zip(counts).map(|(rank, &count)| {
        let mut schedule = Schedule::default();
        build(&mut schedule, Party { rank, size }, count);
        let room = vec![0; (count * u64::from(size) * 8) as usize];
        Rank { schedule, input: room.clone(), output: room }
    });
    let failed = run_differing(seed, ranks.collect(), Some(combine()));
    let alike = counts.iter().all(|count| *count == counts[0]);
    assert!(!alike || !failed.contains(&true), "{name} with {counts:?}, seed {seed}: an error where all is well");
}

#[test]
fn one_rank_of_another_length_keeps_nobody() {
    let lengths: &[u64] = &[0, 1, 600, 5000];
    let mut seed = 1;
    for operation in OPERATIONS {
        for size in [2, 3, 4, 5, 17] {
            for (odd, even) in lengths.iter().flat_map(|odd| lengths.iter().map(move |even| (*odd, *even))) {
                for who in [0, size - 1] {
                    let mut counts = vec![even; size];
                    counts[who] = odd;
                    seed += 1;
                    ends(seed, *operation, &counts);
                }
            }
        }
    }
}

#[test]
fn ranks_of_any_lengths_keep_nobody() {
    let lengths = [0, 1, 2, 40, 257, 600, 2049, 5000];
    let mut random = crate::coll::simulate::Random(0x5eed);
    for seed in 1..120 {
        let size = 2 + random.below(8);
        let counts: Vec<u64> = (0..size).map(|_| lengths[random.below(lengths.len() as u64) as usize]).collect();
        for operation in OPERATIONS {
            ends(seed, *operation, &counts);
        }
    }
}

#[test]
fn the_chain_and_the_other_ways_of_a_long_bcast_do_not_wait_for_each_other() {
    for counts in [[140_000, 4096, 4096, 4096], [4096, 140_000, 140_000, 140_000], [140_000, 9000, 140_000, 1]] {
        ends(3, OPERATIONS[0], &counts);
        ends(4, OPERATIONS[0], &counts[..3]);
    }
}
