//! Whether there is an order of all operations that agrees with each thread's own, and in which each answers what it
//! did.
//!
//! All orders are tried, depth first; what was reached once by another way is not tried again.

use super::program::{Done, ScriptStep};
use std::collections::{BTreeMap, HashSet, VecDeque};

/// The states of all objects: integers, and queues.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Model {
    integers: BTreeMap<usize, i64>,
    queues: BTreeMap<usize, VecDeque<i64>>,
}

impl Model {
    /// Does an operation; what it answers, or `None` where it waits.
    fn answer(&mut self, deed: ScriptStep) -> Option<i64> {
        match deed {
            ScriptStep::Value(at) => Some(self.integers.get(&at).copied().unwrap_or(0)),
            ScriptStep::AwaitAtLeast(at, least) => self.integers.get(&at).copied().filter(|value| *value >= least),
            ScriptStep::Assign(at, value) => Some(self.integers.insert(at, value).unwrap_or(0)),
            ScriptStep::Add(at, by) => {
                let value = self.integers.entry(at).or_default();
                *value += by;
                Some(*value)
            }
            ScriptStep::Put(at, value) => {
                self.queues.entry(at).or_default().push_back(value);
                Some(1)
            }
            ScriptStep::Take(at) => self.queues.entry(at).or_default().pop_front(),
            ScriptStep::Length(at) => Some(self.queues.get(&at).map_or(0, VecDeque::len) as i64),
            ScriptStep::Place(..) => Some(0),
        }
    }
}

/// Whether there is such an order. `threads` are what each thread has done, in its order.
pub fn is_explained(threads: &[&[Done]]) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![(vec![0; threads.len()], Model::default())];
    while let Some((positions, model)) = open.pop() {
        if positions.iter().zip(threads).all(|(at, done)| *at == done.len()) {
            return true;
        }
        for (thread, done) in threads.iter().enumerate() {
            let Some((deed, answer)) = done.get(positions[thread]) else { continue };
            let mut next = model.clone();
            let is_so = matches!(deed, ScriptStep::Place(..)) || next.answer(*deed) == answer.as_ref().ok().copied();
            if !is_so || answer.is_err() && !matches!(deed, ScriptStep::Place(..)) {
                continue;
            }
            let mut positions = positions.clone();
            positions[thread] += 1;
            if seen.insert((positions.clone(), next.clone())) {
                open.push((positions, next));
            }
        }
    }
    false
}

#[test]
fn an_order_is_found_where_there_is_one() {
    // Both read before either writes: no order explains that.
    let first = [(ScriptStep::Assign(0, 1), Ok(0)), (ScriptStep::Value(1), Ok(0))];
    let second = [(ScriptStep::Assign(1, 1), Ok(0)), (ScriptStep::Value(0), Ok(0))];
    assert!(!is_explained(&[&first, &second]));
    let late = [(ScriptStep::Assign(1, 1), Ok(0)), (ScriptStep::Value(0), Ok(1))];
    assert!(is_explained(&[&first, &late]));
    // What one has taken the other cannot have.
    let puts = [(ScriptStep::Put(0, 7), Ok(1)), (ScriptStep::Length(0), Ok(0))];
    assert!(is_explained(&[&puts, &[(ScriptStep::Take(0), Ok(7))]]));
    assert!(!is_explained(&[&puts, &[(ScriptStep::Take(0), Ok(7))], &[(ScriptStep::Take(0), Ok(7))]]));
    assert!(!is_explained(&[&puts]));
}
