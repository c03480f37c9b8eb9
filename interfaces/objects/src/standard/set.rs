//! A set of values.

use crate::{Shareable, object};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A set of values.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "T: Shareable + Ord")]
pub struct SetObject<T> {
    values: BTreeSet<T>,
}

impl<T> Default for SetObject<T> {
    fn default() -> Self {
        Self { values: BTreeSet::new() }
    }
}

#[object(handle = SharedSet)]
impl<T: Shareable + Ord> SetObject<T> {
    /// Whether it was not there.
    #[operation(write)]
    pub fn insert(&mut self, value: T) -> bool {
        self.values.insert(value)
    }

    /// Whether it was there.
    #[operation(write)]
    pub fn remove(&mut self, value: &T) -> bool {
        self.values.remove(value)
    }

    /// Takes the least. Waits until there is one.
    #[operation(write, guard = !self.values.is_empty())]
    pub fn take_least(&mut self) -> T {
        self.values.pop_first().expect("the guard")
    }

    #[operation(read)]
    pub fn contains(&self, value: &T) -> bool {
        self.values.contains(value)
    }

    /// Waits until the value is there.
    #[operation(read, guard = self.values.contains(value))]
    pub fn await_value(&self, value: &T) {}

    #[operation(read)]
    pub fn length(&self) -> u64 {
        self.values.len() as u64
    }

    /// All values, in their order.
    #[operation(read)]
    pub fn values(&self) -> Vec<T> {
        self.values.iter().cloned().collect()
    }
}
