//! What holds in every course of events. `WEFT_TEST_SEEDS=N` tries more, `WEFT_TEST_SEED=N` one.

use super::Rule;
use super::checker::is_explained;
use super::network::Dice;
use super::program::{Course, Done, ScriptStep};
use crate::message::ObjectPlacement::{Replicated, Single};
use crate::message::Strategy;
use std::env;
use std::ops::Range;

fn number_of(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

fn seeds(usual: u64) -> Range<u64> {
    match number_of("WEFT_TEST_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number_of("WEFT_TEST_SEEDS").unwrap_or(usual),
    }
}

/// A strategy, of those that a script may ask for.
fn strategy(dice: &mut Dice, size: usize) -> Strategy {
    match dice.below(4) {
        0 => Strategy::Fixed(Replicated),
        1 => Strategy::Automatic,
        _ => Strategy::Fixed(Single(dice.below(size) as u32)),
    }
}

/// A script without guards: integers that are assigned and read, and moved in between.
fn plain(dice: &mut Dice, size: usize, integers: usize, length: usize, mark: i64) -> Vec<ScriptStep> {
    let mut deed = |at: usize| {
        let object = dice.below(integers);
        match dice.below(9) {
            0..4 => ScriptStep::Value(object),
            4..7 => ScriptStep::Assign(object, mark + at as i64),
            7 => ScriptStep::Add(object, 1),
            _ => ScriptStep::Place(object, strategy(dice, size)),
        }
    };
    (0..length).map(&mut deed).collect()
}

/// A small course: two to four processes, some with two threads, and few operations.
fn small(seed: u64, rule: Rule) -> Course {
    let mut dice = Dice::new(seed ^ 0xabcd);
    let size = 2 + dice.below(3);
    let mut course = Course::new(seed, size, (3, 0), rule);
    for thread in 0..size.max(3) {
        let mut script = plain(&mut dice, size, 3, 6, 100 * (1 + thread as i64));
        // Objects of both kinds from the beginning.
        script.insert(0, ScriptStep::Place(thread % 3, strategy(&mut dice, size)));
        course.add_worker(thread % size, script);
    }
    course
}

fn histories(course: &Course) -> Vec<&[Done]> {
    course.workers.iter().map(|worker| &worker.done[..]).collect()
}

/// How many of the courses no order explains.
fn unexplained(seeds: Range<u64>, rule: Rule) -> Vec<u64> {
    let is_wrong = |seed: &u64| {
        let mut course = small(*seed, rule);
        assert!(course.run(), "seed {seed}: somebody waits for ever");
        !is_explained(&histories(&course))
    };
    seeds.filter(is_wrong).collect()
}

#[test]
fn all_operations_are_as_if_one_after_the_other() {
    assert_eq!(unexplained(seeds(3000), Rule::default()), Vec::<u64>::new());
}

#[test]
fn without_the_delays_they_are_not() {
    let undelayed_requests = Rule { requests: false, ..Rule::default() };
    let undelayed_answers = Rule { answers: false, ..Rule::default() };
    assert!(!unexplained(0..3000, undelayed_requests).is_empty(), "requests need not be delayed?");
    assert!(!unexplained(0..3000, undelayed_answers).is_empty(), "answers need not be delayed?");
}

/// Those who put and those who take, an integer that is waited for, and somebody who moves all.
fn guarded(seed: u64, size: usize, jobs: usize) -> Course {
    let mut course = Course::new(seed, size, (1, 1), Rule::default());
    let mut dice = Dice::new(seed ^ 0x77);
    for process in 0..size {
        let mut script = Vec::new();
        for job in 0..jobs {
            script.push(match process % 2 {
                0 => ScriptStep::Put(0, (100 * process + job) as i64),
                _ => ScriptStep::Take(0),
            });
            if dice.is_one_of(3) {
                script.push(ScriptStep::Place(dice.below(2), strategy(&mut dice, size)));
            }
            if dice.is_one_of(4) {
                script.push(ScriptStep::Length(0));
            }
        }
        script.push(ScriptStep::Add(0, 1));
        script.push(ScriptStep::AwaitAtLeast(0, size as i64));
        course.add_worker(process, script);
    }
    course
}

#[test]
fn what_waits_for_a_guard_is_done_once_wherever_the_object_goes() {
    for seed in seeds(1500) {
        let mut course = guarded(seed, 2, 3);
        assert!(course.run(), "seed {seed}: somebody waits for ever");
        assert!(is_explained(&histories(&course)), "seed {seed}: {:?}", histories(&course));
    }
    for seed in seeds(300) {
        let size = 2 * (1 + seed as usize % 4);
        let mut course = guarded(seed, size, 20);
        assert!(course.run(), "seed {seed}: somebody waits for ever");
        let all = course.workers.iter().flat_map(|worker| &worker.done);
        let mut taken: Vec<i64> =
            all.filter(|(deed, _)| *deed == ScriptStep::Take(0)).map(|(_, job)| *job.as_ref().unwrap()).collect();
        taken.sort_unstable();
        let put = (0..size).step_by(2).flat_map(|process| (0..20).map(move |job| (100 * process + job) as i64));
        assert_eq!(taken, put.collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn all_replicas_end_in_the_same_state() {
    for seed in seeds(200) {
        let size = 2 + seed as usize % 7;
        let mut course = Course::new(seed, size, (2, 0), Rule::default());
        let mut dice = Dice::new(seed);
        for thread in 0..size + 2 {
            let mut script: Vec<ScriptStep> = (0..100).map(|_| ScriptStep::Add(dice.below(2), 1)).collect();
            script.insert(dice.below(100), ScriptStep::Place(dice.below(2), strategy(&mut dice, size)));
            course.add_worker(thread % size, script);
        }
        assert!(course.run(), "seed {seed}: somebody waits for ever");
        let asked: Vec<usize> = course
            .workers
            .iter()
            .flat_map(|worker| &worker.script)
            .filter_map(|deed| match deed {
                ScriptStep::Add(object, _) => Some(*object),
                _ => None,
            })
            .collect();
        for object in 0..2 {
            let sum = asked.iter().filter(|of| **of == object).count() as i64;
            let states = course.states(object);
            let sum = crate::object::encode(&crate::standard::IntegerObject::new(sum)).unwrap();
            assert!(!states.is_empty() && states.iter().all(|state| *state == sum), "seed {seed}: {states:?}");
        }
    }
}

#[test]
fn an_object_goes_where_it_is_used() {
    let mut course = Course::new(1, 3, (2, 0), Rule::default());
    for process in 0..3 {
        let uses = |n| match process {
            2 => ScriptStep::Add(0, n),
            _ => ScriptStep::Value(1),
        };
        let rarely = (process == 0).then_some(ScriptStep::Add(1, 1));
        let script = (0..300).flat_map(|n| [Some(uses(n)), rarely.filter(|_| n % 4 == 0)]).flatten();
        course.add_worker(process, script.collect());
    }
    assert!(course.run());
    assert_eq!((course.placement(0, 0), course.placement(0, 1)), (Some(Single(2)), Some(Replicated)));
}

#[test]
fn who_has_ended_holds_nobody_up() {
    for seed in seeds(1500) {
        let size = 2 + seed as usize % 4;
        let mut course = Course::new(seed, size, (3, 0), Rule::default());
        let mut dice = Dice::new(seed ^ 0x99);
        for process in 0..size {
            let script = plain(&mut dice, size, 3, 20, 1000 * process as i64);
            course.add_worker(process, script);
        }
        let victim = dice.below(size);
        let steps = dice.below(120 * size);
        (0..steps).all(|_| course.step());
        course.cluster.end(victim, &mut course.dice);
        (0..course.dice.below(60)).all(|_| course.step());
        course.cluster.announce_end(victim);
        assert!(course.run(), "seed {seed}: somebody waits for ever");
        for object in 0..3 {
            let states = course.states(object);
            assert!(states.windows(2).all(|pair| pair[0] == pair[1]), "seed {seed}: {states:?}");
        }
    }
}
