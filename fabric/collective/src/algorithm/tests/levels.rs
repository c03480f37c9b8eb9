//! Operations in two levels, for every way in which few ranks can lie on hosts and some in which more do.

use super::super::levels::{self, Hosts};
use super::*;
use crate::schedule::Step;
use std::collections::VecDeque;

/// The hosts of ranks: one after the other, in turn, reversed, uneven, and as it comes.
fn placements(size: u32, seed: u64) -> Vec<Vec<u32>> {
    let mut random = simulate::SeededRandom(seed + 1);
    let mut any = |hosts: u64| (0..size).map(|_| random.below(hosts) as u32).collect::<Vec<_>>();
    let (few, many) = (any(2), any(5));
    let mut all = vec![few, many];
    all.push((0..size).map(|rank| rank / 2).collect());
    all.push((0..size).map(|rank| rank % 2).collect());
    all.push((0..size).map(|rank| 7 - u32::from(rank > size / 3)).collect());
    all.push((0..size).map(|rank| u32::from(rank + 1 == size)).collect());
    all
}

fn hosts(placement: &[u32], me: Party) -> Hosts {
    Hosts::of(placement, me.rank).expect("two levels")
}

/// Each combination with a placement in two levels.
fn placed(counts: &[usize], mut each: impl FnMut(u64, &[u32], usize, Layout)) {
    let mut seed = 1;
    for size in 3..=13 {
        for placement in placements(size, u64::from(size)) {
            if Hosts::of(&placement, 0).is_none() {
                continue;
            }
            for &count in counts {
                seed += 1;
                each(seed, &placement, count, LAYOUTS[seed as usize % 3]);
            }
        }
    }
}

#[test]
fn one_level_is_enough_on_one_host_and_on_a_host_each() {
    assert_eq!(Hosts::of(&[3, 3, 3], 1), None);
    assert_eq!(Hosts::of(&[2, 0, 1], 1), None);
    assert_eq!(Hosts::of(&[2], 0), None);
    let hosts = |numbers: &[u32]| Hosts::of(numbers, 0).expect("two levels");
    assert!(hosts(&[5, 5, 0, 0]).may_fold(false) && hosts(&[1, 0, 0, 0]).may_fold(false));
    assert!(!hosts(&[0, 1, 0, 1]).may_fold(false) && hosts(&[0, 1, 0, 1]).may_fold(true));
    assert!(!hosts(&[0, 1, 1, 0]).may_fold(false));
}

/// Of whom each rank has heard, directly or not, when it has done its schedule.
fn heard(schedules: &[Schedule]) -> Vec<Vec<bool>> {
    let n = schedules.len();
    let mut known: Vec<Vec<bool>> = (0..n).map(|me| (0..n).map(|other| me == other).collect()).collect();
    let mut wires = vec![VecDeque::new(); n * n];
    let (mut at, mut awaited) = (vec![0; n], vec![Vec::new(); n]);
    let mut moved = true;
    while std::mem::take(&mut moved) {
        for me in 0..n {
            while let Some(step) = schedules[me].steps.get(at[me]) {
                match *step {
                    Step::Send { to, .. } => wires[me * n + to as usize].push_back(known[me].clone()),
                    Step::Receive { from, .. } => awaited[me].push(from as usize * n + me),
                    _ => {
                        if awaited[me].iter().any(|wire| wires[*wire].is_empty()) {
                            break;
                        }
                        for wire in std::mem::take(&mut awaited[me]) {
                            let told: Vec<bool> = wires[wire].pop_front().expect("looked at");
                            known[me].iter_mut().zip(told).for_each(|(mine, theirs)| *mine |= theirs);
                        }
                    }
                }
                at[me] += 1;
                moved = true;
            }
        }
    }
    assert!((0..n).all(|me| at[me] == schedules[me].steps.len()), "the schedules block each other");
    known
}

fn schedules(size: u32, build: impl Fn(&mut Schedule, Party)) -> Vec<Schedule> {
    let each = |me| {
        let mut schedule = Schedule::default();
        build(&mut schedule, me);
        schedule
    };
    parties(size).map(each).collect()
}

#[test]
fn nobody_leaves_a_barrier_of_several_hosts_before_everyone_has_come() {
    placed(&[0], |_, placement, _, _| {
        let all = schedules(placement.len() as u32, |s, me| levels::barrier(s, &hosts(placement, me)));
        assert!(heard(&all).iter().flatten().all(|heard| *heard), "{placement:?}");
    });
    let one_level = schedules(5, barrier::barrier);
    assert!(heard(&one_level).iter().flatten().all(|heard| *heard));
}

/// Messages between hosts.
fn crossings(schedules: &[Schedule], placement: &[u32]) -> usize {
    let crosses =
        |me: usize, step: &Step| matches!(step, Step::Send { to, .. } if placement[*to as usize] != placement[me]);
    schedules.iter().enumerate().map(|(me, s)| s.steps.iter().filter(|step| crosses(me, step)).count()).sum()
}

#[test]
fn between_hosts_go_as_few_messages_as_if_each_had_one_rank() {
    for placement in [&[0, 0, 1, 1][..], &[0, 1, 0, 1], &[0, 0, 0, 1], &[1, 0, 0, 0, 0, 0, 0, 0, 1]] {
        let size = placement.len() as u32;
        let views = |s: &mut Schedule| {
            let shape = s.add_shape(Layout::Dense.shape());
            (view(s, Area::Input, shape, 0, 1), view(s, Area::Output, shape, 0, 1))
        };
        let count = |build: &dyn Fn(&mut Schedule, &Hosts)| {
            crossings(&schedules(size, |s, me| build(s, &hosts(placement, me))), placement)
        };
        assert_eq!(count(&|s, hosts| levels::barrier(s, hosts)), 2, "{placement:?}");
        let allreduce = |s: &mut Schedule, hosts: &Hosts| {
            let (input, output) = views(s);
            levels::allreduce(s, hosts, input, output, true);
        };
        assert_eq!(count(&allreduce), 2, "{placement:?}");
        for root in 0..size {
            let bcast = |s: &mut Schedule, hosts: &Hosts| {
                let (_, output) = views(s);
                levels::bcast(s, hosts, root, output);
            };
            let reduce = |s: &mut Schedule, hosts: &Hosts| {
                let (input, output) = views(s);
                levels::reduce(s, hosts, root, input, output, true);
            };
            assert_eq!((count(&bcast), count(&reduce)), (1, 1), "{placement:?} {root}");
        }
        let allgather = |s: &mut Schedule, hosts: &Hosts| {
            let shape = s.add_shape(Layout::Dense.shape());
            let all: Vec<_> = (0..placement.len()).map(|rank| view(s, Area::Output, shape, rank, 1)).collect();
            levels::allgather(s, hosts, Some(view(s, Area::Input, shape, 0, 1)), &all);
        };
        assert_eq!(count(&allgather), 2, "{placement:?}");
    }
}

#[test]
fn bcast_reaches_every_host_whatever_the_layouts() {
    placed(&[0, 1, 5, 40, 9000, 140_000], |seed, placement, count, layout| {
        let size = placement.len() as u32;
        if count > 9000 && size > 5 {
            return;
        }
        let root = (seed % u64::from(size)) as u32;
        let layout_of = |me: u32| if me.is_multiple_of(2) { layout } else { other(layout) };
        let ranks = parties(size).map(|me| {
            let mine = layout_of(me.rank);
            let have = if me.rank == root { vector(root, 0..count) } else { Vec::new() };
            let build = |s: &mut Schedule| {
                let shape = s.add_shape(mine.shape());
                let data = view(s, Area::Output, shape, 0, count);
                levels::bcast(s, &hosts(placement, me), root, data);
            };
            rank(build, Vec::new(), buffer(mine, count, 0, &have))
        });
        for (me, output) in (0..).zip(simulate::run(seed, ranks.collect(), None)) {
            assert!(output == buffer(layout_of(me), count, 0, &vector(root, 0..count)), "{placement:?} {count}");
        }
    });
}

#[test]
fn reductions_of_hosts_in_order_keep_the_order_of_ranks() {
    placed(&[0, 1, 6, 2100], |seed, placement, count, layout| {
        let size = placement.len() as u32;
        if !hosts(placement, Party { rank: 0, size }).may_fold(false) {
            return;
        }
        let root = (seed % u64::from(size)) as u32;
        for in_place in [false, true] {
            let expected = buffer(layout, count, 0, &folded(0..size, 0..count));
            let case = (seed, size, count, layout, in_place);
            let all = reduction(case, |s, me, input, output| {
                levels::allreduce(s, &hosts(placement, me), input, output, false);
            });
            assert!(all.iter().all(|output| *output == expected), "{placement:?} {count} {layout:?} {in_place}");
            let one = reduction(case, |s, me, input, output| {
                let input = if me.rank == root { input } else { View { area: Area::Input, ..input } };
                levels::reduce(s, &hosts(placement, me), root, input, output, false);
            });
            assert!(one[root as usize] == expected, "{placement:?} {root} {count} {layout:?} {in_place}");
        }
    });
}

#[test]
fn commutative_reductions_fold_everyone_once() {
    placed(&[1, 6, 2100], |seed, placement, count, _| {
        let size = placement.len() as u32;
        let root = (seed % u64::from(size)) as u32;
        let add = |x: Element, y: Element| (x.0.wrapping_add(y.0), x.1.wrapping_add(y.1));
        let sums: Vec<_> = (0..count).map(|i| (0..size).map(|rank| value(rank, i)).reduce(add).unwrap()).collect();
        let expected = buffer(Layout::Dense, count, 0, &sums);
        for all in [false, true] {
            let ranks = parties(size).map(|me| {
                let build = |s: &mut Schedule| {
                    let shape = s.add_shape(Layout::Dense.shape());
                    let input = view(s, Area::Input, shape, 0, count);
                    let output = View { area: Area::Output, ..input };
                    match all {
                        true => levels::allreduce(s, &hosts(placement, me), input, output, true),
                        false => levels::reduce(s, &hosts(placement, me), root, input, output, true),
                    }
                };
                let room = buffer(Layout::Dense, count, 0, &[]);
                rank(build, buffer(Layout::Dense, count, 0, &vector(me.rank, 0..count)), room)
            });
            let outputs = simulate::run(seed, ranks.collect(), Some(sum()));
            let counts = |me: usize| all || me == root as usize;
            assert!(
                (0..).zip(&outputs).all(|(me, output)| !counts(me) || *output == expected),
                "{placement:?} {count}"
            );
        }
    });
}

#[test]
fn allgather_gives_every_host_every_block() {
    placed(&[0, 1, 3, 900], |seed, placement, count, layout| {
        let size = placement.len() as u32;
        for (equal, in_place, joined) in
            [(true, false, true), (true, true, false), (false, false, true), (false, true, false)]
        {
            let lengths = lengths(size, count, equal);
            let full = |r: u32| vector(r, 0..lengths[r as usize]);
            // Blocks side by side, which need no packing, or with gaps.
            let layout = if joined { Layout::Dense } else { layout };
            let starts: Vec<usize> = match joined {
                true => (0..lengths.len()).map(|rank| lengths[..rank].iter().sum()).collect(),
                false => starts(&lengths),
            };
            let room = lengths.iter().sum::<usize>() + lengths.len();
            let content = |fill: &dyn Fn(u32) -> bool| {
                let mut bytes = buffer(layout, room, 0, &[]);
                for r in (0..size).filter(|r| fill(*r)) {
                    for (i, element) in full(r).into_iter().enumerate() {
                        let [a, b] = layout.places(starts[r as usize] + i);
                        bytes[a..a + 4].copy_from_slice(&element.0.to_ne_bytes());
                        bytes[b..b + 4].copy_from_slice(&element.1.to_ne_bytes());
                    }
                }
                bytes
            };
            let ranks = parties(size).map(|me| {
                let build = |s: &mut Schedule| {
                    let (mine, places) = (s.add_shape(other(layout).shape()), s.add_shape(layout.shape()));
                    let given = view(s, Area::Input, mine, 0, lengths[me.rank as usize]);
                    let at = |r: usize| view(s, Area::Output, places, starts[r], lengths[r]);
                    let all: Vec<View> = (0..lengths.len()).map(at).collect();
                    levels::allgather(s, &hosts(placement, me), (!in_place).then_some(given), &all);
                };
                let output = content(&|r| in_place && r == me.rank);
                rank(build, buffer(other(layout), count * 2, 0, &full(me.rank)), output)
            });
            for output in simulate::run(seed, ranks.collect(), None) {
                assert!(output == content(&|_| true), "{placement:?} {count} {equal} {in_place} {joined}");
            }
        }
    });
}
