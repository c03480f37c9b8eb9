//! Each standard object, in a space of one process: what its operations answer, and what waits for what.

use super::*;
use crate::{ObjectFault, Space};
use std::thread;

type Checked = Result<(), ObjectFault>;

#[test]
fn an_integer_counts_and_is_waited_for() -> Checked {
    let space = Space::alone();
    let number = SharedInteger::share(&space, "number", IntegerObject::new(5))?;
    assert_eq!((number.add(2)?, number.assign(10)?, number.value()?), (7, 7, 10));
    assert_eq!((number.lower_to(3)?, number.lower_to(9)?, number.raise_to(4)?), (3, 3, 4));
    thread::scope(|scope| {
        let waits = scope.spawn(|| number.await_at_least(6));
        let waits_too = scope.spawn(|| number.await_value(6));
        assert_eq!(number.add(2)?, 6);
        waits_too.join().expect("no panic")?;
        assert_eq!(waits.join().expect("no panic")?, 6);
        Ok(())
    })
}

#[test]
fn a_job_queue_gives_each_job_to_one_and_ends() -> Checked {
    let space = Space::alone();
    let queue = SharedJobQueue::share(&space, "jobs", JobQueueObject::<u32>::default())?;
    thread::scope(|scope| {
        let work = || std::iter::from_fn(|| queue.take().expect("a queue")).collect::<Vec<_>>();
        let workers: Vec<_> = (0..3).map(|_| scope.spawn(work)).collect();
        for job in 0..100 {
            assert!(queue.add(job)?);
        }
        queue.close()?;
        assert!(!queue.add(100)?);
        let done: Vec<Vec<u32>> = workers.into_iter().map(|worker| worker.join().expect("no panic")).collect();
        assert!(done.iter().all(|jobs| jobs.is_sorted()), "oldest first: {done:?}");
        let mut all = done.concat();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        assert_eq!(queue.length()?, 0);
        Ok(())
    })
}

#[test]
fn nobody_passes_a_barrier_before_all_have_come() -> Checked {
    let space = Space::alone();
    let barrier = SharedBarrier::share(&space, "barrier", BarrierObject::new(4))?;
    let seen = SharedInteger::share(&space, "seen", IntegerObject::new(0))?;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 1..=10 {
                    seen.add(1).expect("an integer");
                    barrier.pass().expect("a barrier");
                    assert!(seen.value().expect("an integer") >= 4 * round);
                }
            });
        }
    });
    assert_eq!(seen.value()?, 40);
    Ok(())
}

#[test]
fn a_poll_is_yes_if_all_say_so() -> Checked {
    let space = Space::alone();
    let poll = SharedPoll::share(&space, "poll", PollObject::new(2))?;
    assert!(poll.vote(0, true)? && poll.vote(0, true)? && poll.vote(1, false)?);
    assert!(poll.await_decision(0)? && !poll.await_decision(1)?);
    assert!(!poll.vote(1, true)?, "it is decided");
    Ok(())
}

#[test]
fn a_bin_holds_one_value_at_a_time() -> Checked {
    let space = Space::alone();
    let bin = SharedBin::share(&space, "bin", BinObject::<String>::default())?;
    thread::scope(|scope| {
        scope.spawn(|| (0..20).for_each(|n| bin.put(n.to_string()).expect("a bin")));
        for n in 0..20 {
            assert_eq!(bin.take()?, n.to_string());
        }
        assert!(bin.is_empty()?);
        Ok(())
    })
}

#[test]
fn a_bag_has_equal_values_and_a_set_has_not() -> Checked {
    let space = Space::alone();
    let bag = SharedBag::share(&space, "bag", BagObject::<u8>::default())?;
    let set = SharedSet::share(&space, "set", SetObject::<u8>::default())?;
    for value in [3, 1, 3] {
        bag.add(value)?;
        set.insert(value)?;
    }
    assert_eq!((bag.count(&3)?, bag.length()?, set.length()?), (2, 3, 2));
    assert_eq!((set.values()?, set.contains(&1)?, set.remove(&9)?), (vec![1, 3], true, false));
    set.await_value(&3)?;
    assert_eq!((set.take_least()?, set.take_least()?, set.length()?), (1, 3, 0));
    let mut taken = [bag.take()?, bag.take()?, bag.try_take()?.unwrap_or(0)];
    taken.sort_unstable();
    assert_eq!((taken, bag.try_take()?), ([1, 3, 3], None));
    Ok(())
}

#[test]
fn a_table_answers_by_keys_and_waits_for_rows() -> Checked {
    let space = Space::alone();
    let table = SharedTable::share(&space, "rows", TableObject::<u32, Vec<f64>>::default())?;
    thread::scope(|scope| {
        let waits = scope.spawn(|| table.await_value(&7));
        assert_eq!((table.insert(3, vec![1.5])?, table.insert(3, vec![2.5])?), (None, Some(vec![1.5])));
        table.insert(7, vec![0.5; 3])?;
        assert_eq!(waits.join().expect("no panic")?, [0.5; 3]);
        assert_eq!((table.keys()?, table.value(&4)?, table.length()?), (vec![3, 7], None, 2));
        assert_eq!((table.remove(&3)?, table.remove(&3)?), (Some(vec![2.5]), None));
        Ok(())
    })
}
