//! Every algorithm for 1 to 17 ranks, several layouts of the elements and several orders of events, against the
//! definition of the operation.

mod levels;

use super::*;
use crate::run::Combine;
use crate::schedule::{Area, Party, Schedule, ShapeId, View};
use crate::shape::{Codec, Shape};
use crate::simulate::{self, SimulatedRank};
use std::cell::Cell;
use std::sync::Arc;
use weft_fabric::settings::Algorithms;

/// An element: the function `x -> a x + b`. Composing them is associative and not commutative.
type Element = (u32, u32);

fn compose(left: Element, right: Element) -> Element {
    (left.0.wrapping_mul(right.0), left.0.wrapping_mul(right.1).wrapping_add(left.1))
}

fn fold(elements: impl Iterator<Item = Element>) -> Element {
    elements.reduce(compose).unwrap()
}

/// How elements lie in memory: one after the other, with gaps around, or torn apart.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    Dense,
    Padded,
    Torn,
}

const LAYOUTS: [Layout; 3] = [Layout::Dense, Layout::Padded, Layout::Torn];

struct TornCodec;

impl Codec for TornCodec {
    unsafe fn pack(&self, from: *const u8, count: u64, to: *mut u8) {
        for i in 0..count as usize {
            // SAFETY: the caller's promise; an element is 20 bytes long with data at 4 and 12.
            unsafe {
                to.add(i * 8).copy_from(from.add(i * 20 + 4), 4);
                to.add(i * 8 + 4).copy_from(from.add(i * 20 + 12), 4);
            }
        }
    }

    unsafe fn unpack(&self, from: *const u8, to: *mut u8, count: u64) {
        for i in 0..count as usize {
            // SAFETY: as in `pack`.
            unsafe {
                to.add(i * 20 + 4).copy_from(from.add(i * 8), 4);
                to.add(i * 20 + 12).copy_from(from.add(i * 8 + 4), 4);
            }
        }
    }
}

impl Layout {
    fn shape(self) -> Shape {
        match self {
            Self::Dense => Shape::dense(8),
            Self::Padded => Shape { size: 8, extent: 24, low: 8, high: 16, codec: None },
            Self::Torn => Shape { size: 8, extent: 20, low: 4, high: 16, codec: Some(Arc::new(TornCodec)) },
        }
    }

    /// Places of `a` and `b` of element `i`.
    fn places(self, i: usize) -> [usize; 2] {
        match self {
            Self::Dense => [i * 8, i * 8 + 4],
            Self::Padded => [i * 24 + 8, i * 24 + 12],
            Self::Torn => [i * 20 + 4, i * 20 + 12],
        }
    }

    fn combine(self) -> Combine {
        Combine::Function(Arc::new(move |left, into, count| {
            for i in 0..count as usize {
                let [a, b] = self.places(i);
                // SAFETY: both buffers have `count` elements of this layout.
                unsafe {
                    let read = |at: *const u8| at.cast::<u32>().read_unaligned();
                    let value = compose((read(left.add(a)), read(left.add(b))), (read(into.add(a)), read(into.add(b))));
                    into.add(a).cast::<u32>().write_unaligned(value.0);
                    into.add(b).cast::<u32>().write_unaligned(value.1);
                }
            }
        }))
    }
}

/// A buffer of `room` elements in which elements `first..` have these values and everything else is untouched.
fn buffer(layout: Layout, room: usize, first: usize, elements: &[Element]) -> Vec<u8> {
    let mut bytes = vec![0xee; room * 24 + 24];
    for (i, element) in elements.iter().enumerate() {
        let [a, b] = layout.places(first + i);
        bytes[a..a + 4].copy_from_slice(&element.0.to_ne_bytes());
        bytes[b..b + 4].copy_from_slice(&element.1.to_ne_bytes());
    }
    bytes
}

/// Element `i` of what `rank` contributes.
fn value(rank: u32, i: usize) -> Element {
    (2 * (rank * 31 + i as u32 * 7) + 3, rank * 1009 + i as u32)
}

fn vector(rank: u32, range: std::ops::Range<usize>) -> Vec<Element> {
    range.map(|i| value(rank, i)).collect()
}

fn view(s: &Schedule, area: Area, shape: ShapeId, first: usize, count: usize) -> View {
    View::new(area, first as i64 * s.shape(shape).extent, shape, count as u64)
}

fn parties(size: u32) -> impl Iterator<Item = Party> {
    (0..size).map(move |rank| Party { rank, size })
}

/// Each combination of size, count and layout with its own seed.
fn cases(counts: &[usize], mut each: impl FnMut(u64, u32, usize, Layout)) {
    let mut seed = 1;
    for size in 1..=17 {
        for &count in counts {
            for layout in LAYOUTS {
                seed += 1;
                each(seed, size, count, layout);
            }
        }
    }
}

thread_local! {
    /// What the schedules of this test are to be made of.
    static PRESCRIBED: Cell<Algorithms> = const { Cell::new(Algorithms::AUTO) };
}

fn rank(build: impl FnOnce(&mut Schedule), input: Vec<u8>, output: Vec<u8>) -> SimulatedRank {
    let mut schedule = Schedule::default();
    schedule.algorithms = PRESCRIBED.get();
    build(&mut schedule);
    SimulatedRank { schedule, input, output }
}

fn other(layout: Layout) -> Layout {
    LAYOUTS[(layout as usize + 1) % 3]
}

#[test]
fn nobody_leaves_a_barrier_before_everyone_has_come() {
    // A signal is needed from everyone: the schedules form a chain of waits from each rank to each other one.
    for size in 1..=17u32 {
        let mut known: Vec<Vec<bool>> = (0..size).map(|me| (0..size).map(|other| me == other).collect()).collect();
        let mut distance = 1;
        while distance < size {
            let before = known.clone();
            for me in parties(size) {
                let heard = &before[me.before(distance) as usize];
                known[me.rank as usize].iter_mut().zip(heard).for_each(|(mine, theirs)| *mine |= theirs);
            }
            distance *= 2;
        }
        assert!(known.iter().flatten().all(|&heard| heard));
        let ranks = parties(size).map(|me| rank(|s| barrier::barrier(s, me), Vec::new(), Vec::new())).collect();
        simulate::run(u64::from(size), ranks, None);
    }
}

#[test]
fn bcast_reaches_everyone_whatever_the_layouts() {
    type Algorithm = fn(&mut Schedule, Party, u32, View);
    let forced = |inner: Algorithm| {
        move |s: &mut Schedule, me: Party, root: u32, data: View| {
            let room = if me.rank == root { s.packed(data) } else { s.unpacked(data) };
            inner(s, me, root, room);
            if me.rank != root {
                s.unpack(room, data);
            }
        }
    };
    cases(&[0, 1, 5, 40], |seed, size, count, layout| {
        let root = (seed % u64::from(size)) as u32;
        for algorithm in 0..4 {
            let ranks = parties(size).map(|me| {
                let mine = if me.rank % 2 == 0 { layout } else { other(layout) };
                let have = if me.rank == root { vector(root, 0..count) } else { Vec::new() };
                let build = |s: &mut Schedule| {
                    let shape = s.add_shape(mine.shape());
                    let data = view(s, Area::Output, shape, 0, count);
                    match algorithm {
                        0 => bcast::bcast(s, me, root, data),
                        1 => forced(bcast::binomial)(s, me, root, data),
                        2 => forced(bcast::chain)(s, me, root, data),
                        _ => forced(bcast::scatter_allgather)(s, me, root, data),
                    }
                };
                rank(build, Vec::new(), buffer(mine, count, 0, &have))
            });
            let outputs = simulate::run(seed, ranks.collect(), None);
            for (me, output) in outputs.iter().enumerate() {
                let mine = if me % 2 == 0 { layout } else { other(layout) };
                assert_eq!(*output, buffer(mine, count, 0, &vector(root, 0..count)), "{size} {count} {algorithm}");
            }
        }
    });
}

#[test]
fn long_bcasts_take_the_chain_and_the_ring() {
    for (seed, count) in [(1, 5_000), (2, 150_000)] {
        for size in [2, 3, 6] {
            let ranks = parties(size).map(|me| {
                let have = if me.rank == 1 { vector(1, 0..count) } else { Vec::new() };
                let build = |s: &mut Schedule| {
                    let shape = s.add_shape(Layout::Dense.shape());
                    bcast::bcast(s, me, 1, View::new(Area::Output, 0, shape, count as u64));
                };
                rank(build, Vec::new(), buffer(Layout::Dense, count, 0, &have))
            });
            for output in simulate::run(seed, ranks.collect(), None) {
                assert!(output == buffer(Layout::Dense, count, 0, &vector(1, 0..count)));
            }
        }
    }
}

/// Block lengths: equal ones, or different ones with some empty.
fn lengths(size: u32, count: usize, equal: bool) -> Vec<usize> {
    (0..size as usize).map(|rank| if equal { count } else { count * (rank % 3) }).collect()
}

/// Places of blocks in a buffer, in order, with one element of distance.
fn starts(lengths: &[usize]) -> Vec<usize> {
    lengths.iter().scan(0, |at, &length| Some(std::mem::replace(at, *at + length + 1))).collect()
}

fn blocks(s: &Schedule, area: Area, shape: ShapeId, lengths: &[usize]) -> Vec<View> {
    starts(lengths).iter().zip(lengths).map(|(&at, &length)| view(s, area, shape, at, length)).collect()
}

/// A buffer of blocks; block `i` has what `content(i)` says, cut to its length.
fn blocks_buffer(layout: Layout, lengths: &[usize], content: impl Fn(u32) -> Vec<Element>) -> Vec<u8> {
    let room = lengths.iter().sum::<usize>() + lengths.len();
    let mut bytes = buffer(layout, room, 0, &[]);
    for ((rank, &at), &length) in (0..).zip(&starts(lengths)).zip(lengths) {
        for (i, element) in content(rank).into_iter().take(length).enumerate() {
            let [a, b] = layout.places(at + i);
            bytes[a..a + 4].copy_from_slice(&element.0.to_ne_bytes());
            bytes[b..b + 4].copy_from_slice(&element.1.to_ne_bytes());
        }
    }
    bytes
}

#[test]
fn gather_and_scatter_are_each_others_reverse() {
    cases(&[0, 1, 3, 300], |seed, size, count, layout| {
        let root = (seed % u64::from(size)) as u32;
        let in_place = seed % 4 < 2;
        for equal in [true, false] {
            let lengths = lengths(size, count, equal);
            let full = |r: u32| vector(r, 0..lengths[r as usize]);
            let there = other(layout);
            let gathering = parties(size).map(|me| {
                let build = |s: &mut Schedule| {
                    let (mine, places) = (s.add_shape(layout.shape()), s.add_shape(there.shape()));
                    let given = view(s, Area::Input, mine, 0, lengths[me.rank as usize]);
                    let given = (me.rank != root || !in_place).then_some(given);
                    let at_root = if me.rank == root { blocks(s, Area::Output, places, &lengths) } else { vec![] };
                    match equal {
                        true => gather::gather(s, me, root, count as u64 * 8, given, &at_root),
                        false => gather::gatherv(s, me, root, given, &at_root),
                    }
                };
                let output = blocks_buffer(there, &lengths, |r| if in_place && r == root { full(r) } else { vec![] });
                rank(build, buffer(layout, count * 2, 0, &full(me.rank)), output)
            });
            let outputs = simulate::run(seed, gathering.collect(), None);
            assert_eq!(outputs[root as usize], blocks_buffer(there, &lengths, full), "{size} {count} {equal}");

            let scattering = parties(size).map(|me| {
                let build = |s: &mut Schedule| {
                    let (mine, places) = (s.add_shape(layout.shape()), s.add_shape(there.shape()));
                    let taken = view(s, Area::Output, mine, 0, lengths[me.rank as usize]);
                    let taken = (me.rank != root || !in_place).then_some(taken);
                    let at_root = if me.rank == root { blocks(s, Area::Input, places, &lengths) } else { vec![] };
                    match equal {
                        true => gather::scatter(s, me, root, count as u64 * 8, &at_root, taken),
                        false => gather::scatterv(s, me, root, &at_root, taken),
                    }
                };
                rank(build, blocks_buffer(there, &lengths, full), buffer(layout, count * 2, 0, &[]))
            });
            for (me, output) in (0..).zip(simulate::run(seed, scattering.collect(), None)) {
                let taken = if in_place && me == root { vec![] } else { full(me) };
                assert_eq!(output, buffer(layout, count * 2, 0, &taken), "{size} {count} {equal}");
            }
        }
    });
}

#[test]
fn allgather_gives_everyone_every_block() {
    cases(&[0, 1, 3, 900], |seed, size, count, layout| {
        for (equal, in_place, forced) in [(true, false, 0), (true, true, 1), (false, false, 2), (false, true, 0)] {
            let lengths = lengths(size, count, equal);
            let full = |r: u32| vector(r, 0..lengths[r as usize]);
            let ranks = parties(size).map(|me| {
                let build = |s: &mut Schedule| {
                    let (mine, places) = (s.add_shape(other(layout).shape()), s.add_shape(layout.shape()));
                    let given = view(s, Area::Input, mine, 0, lengths[me.rank as usize]);
                    let all = blocks(s, Area::Output, places, &lengths);
                    if forced == 0 {
                        return allgather::allgather(s, me, (!in_place).then_some(given), &all);
                    }
                    if !in_place {
                        s.copy(given, all[me.rank as usize]);
                    }
                    if forced == 1 { allgather::ring(s, me, None, &all) } else { allgather::bruck(s, me, &all) }
                };
                let output =
                    blocks_buffer(layout, &lengths, |r| if in_place && r == me.rank { full(r) } else { vec![] });
                rank(build, buffer(other(layout), count * 2, 0, &full(me.rank)), output)
            });
            for output in simulate::run(seed, ranks.collect(), None) {
                assert!(output == blocks_buffer(layout, &lengths, full), "{size} {count} {equal} {in_place} {forced}");
            }
        }
    });
}

#[test]
fn allgather_of_blocks_that_each_rank_places_otherwise() {
    for (size, apart) in [2, 3, 4, 8, 16].into_iter().flat_map(|size| [(size, 0), (size, 1), (size, 3)]) {
        // Side by side in some ranks, so many elements apart in the others.
        let step = |rank: u32| if rank % 2 == 1 { 1 + apart } else { 1 };
        let ranks = parties(size).map(|me| {
            let build = |s: &mut Schedule| {
                let shape = s.add_shape(Layout::Dense.shape());
                let place = |r: u32| (r * step(me.rank)) as usize;
                let all: Vec<_> = (0..size).map(|r| view(s, Area::Output, shape, place(r), 1)).collect();
                allgather::allgather(s, me, Some(view(s, Area::Input, shape, 0, 1)), &all);
            };
            rank(build, buffer(Layout::Dense, 1, 0, &[value(me.rank, 0)]), buffer(Layout::Dense, 64, 0, &[]))
        });
        for (rank, output) in (0..).zip(simulate::run(u64::from(size), ranks.collect(), None)) {
            for r in 0..size {
                let at = (r * step(rank)) as usize;
                let (expected, bytes) = (buffer(Layout::Dense, 1, 0, &[value(r, 0)]), size_of_val(&value(r, 0)));
                assert_eq!(output[at * bytes..][..bytes], expected[..bytes], "rank {rank} of {size}, block {r}");
            }
        }
    }
}

#[test]
fn alltoall_exchanges_every_pair() {
    cases(&[0, 1, 3], |seed, size, count, layout| {
        for (variable, in_place, forced) in
            [(false, false, false), (false, false, true), (true, false, false), (false, true, false)]
        {
            let length = |from: u32, to: u32| if variable { count * ((from + 2 * to) % 3) as usize } else { count };
            let sent = |me: u32| (0..size).map(|to| length(me, to)).collect::<Vec<_>>();
            let got = |me: u32| (0..size).map(|from| length(from, me)).collect::<Vec<_>>();
            let message = |from: u32, to: u32| vector(from * 20 + to, 0..length(from, to));
            let from_layout = if in_place { layout } else { other(layout) };
            let ranks = parties(size).map(|me| {
                let build = |s: &mut Schedule| {
                    let (mine, theirs) = (s.add_shape(from_layout.shape()), s.add_shape(layout.shape()));
                    let outputs = blocks(s, Area::Output, theirs, &got(me.rank));
                    let inputs = match in_place {
                        true => alltoall::saved(s, &outputs),
                        false => blocks(s, Area::Input, mine, &sent(me.rank)),
                    };
                    match (variable, forced) {
                        (true, _) => alltoall::pairwise(s, me, &inputs, &outputs),
                        (_, true) => alltoall::bruck(s, me, &inputs, &outputs),
                        _ => alltoall::alltoall(s, me, &inputs, &outputs),
                    }
                };
                let given = blocks_buffer(from_layout, &sent(me.rank), |to| message(me.rank, to));
                let output = if in_place { given.clone() } else { blocks_buffer(layout, &got(me.rank), |_| vec![]) };
                rank(build, given, output)
            });
            for (me, output) in (0..).zip(simulate::run(seed, ranks.collect(), None)) {
                let expected = blocks_buffer(layout, &got(me), |from| message(from, me));
                assert_eq!(output, expected, "{size} {count} {variable} {in_place} {forced}");
            }
        }
    });
}

/// Runs a reduction on everyone's vector of `count` elements; `build` gets schedule, party, input and output.
fn reduction(
    (seed, size, count, layout, in_place): (u64, u32, usize, Layout, bool),
    build: impl Fn(&mut Schedule, Party, View, View),
) -> Vec<Vec<u8>> {
    let ranks = parties(size).map(|me| {
        let build = |s: &mut Schedule| {
            let shape = s.add_shape(layout.shape());
            let output = view(s, Area::Output, shape, 0, count);
            let input = if in_place { output } else { View { area: Area::Input, ..output } };
            build(s, me, input, output);
        };
        let mine = buffer(layout, count, 0, &vector(me.rank, 0..count));
        rank(build, mine.clone(), if in_place { mine } else { buffer(layout, count, 0, &[]) })
    });
    simulate::run(seed, ranks.collect(), Some(layout.combine()))
}

fn folded(ranks: impl Iterator<Item = u32> + Clone, range: std::ops::Range<usize>) -> Vec<Element> {
    range.map(|i| fold(ranks.clone().map(|rank| value(rank, i)))).collect()
}

#[test]
fn allreduce_folds_in_the_order_of_ranks() {
    cases(&[0, 1, 6, 2100], |seed, size, count, layout| {
        for in_place in [false, true] {
            let outputs = reduction((seed, size, count, layout, in_place), |s, me, input, output| {
                reduce::allreduce(s, me, input, output);
            });
            let expected = buffer(layout, count, 0, &folded(0..size, 0..count));
            assert!(outputs.iter().all(|output| *output == expected), "{size} {count} {layout:?} {in_place}");
        }
    });
}

#[test]
fn reduce_folds_in_the_order_of_ranks() {
    cases(&[0, 1, 6, 2100], |seed, size, count, layout| {
        let root = (seed % u64::from(size)) as u32;
        for in_place in [false, true] {
            let outputs = reduction((seed, size, count, layout, in_place), |s, me, input, output| {
                let input = if me.rank == root { input } else { View { area: Area::Input, ..input } };
                reduce::reduce(s, me, root, input, output, false);
            });
            let expected = buffer(layout, count, 0, &folded(0..size, 0..count));
            assert!(outputs[root as usize] == expected, "{size} {count} {layout:?} {in_place}");
        }
    });
}

/// Adds dense elements.
fn sum() -> Combine {
    Combine::Function(Arc::new(|left, into, count| {
        for i in 0..2 * count as usize {
            // SAFETY: both have `count` elements of two numbers.
            unsafe {
                let sum =
                    left.cast::<u32>().add(i).read_unaligned().wrapping_add(into.cast::<u32>().add(i).read_unaligned());
                into.cast::<u32>().add(i).write_unaligned(sum);
            }
        }
    }))
}

#[test]
fn a_commutative_reduce_begins_at_its_root() {
    for size in 1..=17 {
        for root in 0..size {
            let ranks = parties(size).map(|me| {
                let build = |s: &mut Schedule| {
                    let shape = s.add_shape(Layout::Dense.shape());
                    let input = view(s, Area::Input, shape, 0, 3);
                    reduce::reduce(s, me, root, input, View { area: Area::Output, ..input }, true);
                };
                rank(build, buffer(Layout::Dense, 3, 0, &vector(me.rank, 0..3)), buffer(Layout::Dense, 3, 0, &[]))
            });
            let outputs = simulate::run(u64::from(size * 20 + root), ranks.collect(), Some(sum()));
            let add = |x: Element, y: Element| (x.0.wrapping_add(y.0), x.1.wrapping_add(y.1));
            let expected: Vec<_> = (0..3).map(|i| (0..size).map(|rank| value(rank, i)).reduce(add).unwrap()).collect();
            assert_eq!(outputs[root as usize], buffer(Layout::Dense, 3, 0, &expected));
        }
    }
}

#[test]
fn reduce_scatter_gives_each_rank_its_block() {
    cases(&[0, 1, 130], |seed, size, count, layout| {
        for (equal, in_place) in [(true, false), (false, false), (true, true), (false, true)] {
            let lengths = lengths(size, count, equal);
            let total = lengths.iter().sum::<usize>();
            let counts: Vec<_> = lengths.iter().map(|&length| length as u64).collect();
            let outputs = reduction((seed, size, total, layout, in_place), |s, me, input, output| {
                let output = s.part(output, 0, counts[me.rank as usize]);
                reduce::reduce_scatter(s, me, &counts, input, output);
            });
            for (me, output) in (0..).zip(outputs) {
                let first: usize = lengths[..me as usize].iter().sum();
                let length = lengths[me as usize];
                let block = folded(0..size, first..first + length);
                let end = buffer(layout, length, 0, &block).len() - 24;
                let [last, _] = layout.places(length);
                assert_eq!(
                    output[..last.min(end)],
                    buffer(layout, total, 0, &block)[..last.min(end)],
                    "{size} {count}"
                );
            }
        }
    });
}

#[test]
fn scans_fold_the_ranks_before() {
    cases(&[0, 1, 6], |seed, size, count, layout| {
        for in_place in [false, true] {
            let inclusive = reduction((seed, size, count, layout, in_place), |s, me, input, output| {
                scan::scan(s, me, scan::ScanKind::Inclusive, input, output);
            });
            let exclusive = reduction((seed, size, count, layout, in_place), |s, me, input, output| {
                scan::scan(s, me, scan::ScanKind::Exclusive, input, output);
            });
            for me in 0..size {
                let expected = buffer(layout, count, 0, &folded(0..me + 1, 0..count));
                assert_eq!(inclusive[me as usize], expected, "{size} {count} {in_place}");
                if me > 0 {
                    let expected = buffer(layout, count, 0, &folded(0..me, 0..count));
                    assert_eq!(exclusive[me as usize], expected, "{size} {count} {in_place}");
                }
            }
        }
    });
}

#[test]
fn every_algorithm_that_is_prescribed_does_what_the_operation_is_defined_to_do() {
    for (operation, algorithms) in Algorithms::TABLE {
        for (word, _) in *algorithms {
            let prescribed = Algorithms::parse(&format!("{operation}:{word}")).expect("a word of the table");
            PRESCRIBED.set(prescribed);
            match *operation {
                "bcast" => bcast_reaches_everyone_whatever_the_layouts(),
                "reduce" => reduce_folds_in_the_order_of_ranks(),
                "allreduce" => allreduce_folds_in_the_order_of_ranks(),
                "reduce-scatter" => reduce_scatter_gives_each_rank_its_block(),
                "allgather" => {
                    allgather_gives_everyone_every_block();
                    allgather_of_blocks_that_each_rank_places_otherwise();
                }
                "alltoall" => alltoall_exchanges_every_pair(),
                "gather" | "scatter" => gather_and_scatter_are_each_others_reverse(),
                other => panic!("{other} has no test"),
            }
        }
    }
}
