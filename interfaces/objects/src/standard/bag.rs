//! Values in no order, of which some may be equal.

use crate::{Shareable, object};
use serde::{Deserialize, Serialize};

/// Values in no order, of which some may be equal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BagObject<T> {
    values: Vec<T>,
}

impl<T> Default for BagObject<T> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}

#[object(handle = SharedBag)]
impl<T: Shareable + PartialEq> BagObject<T> {
    #[operation(write)]
    pub fn add(&mut self, value: T) {
        self.values.push(value);
    }

    /// Waits until there is a value, and takes one.
    #[operation(write, guard = !self.values.is_empty())]
    pub fn take(&mut self) -> T {
        self.values.pop().expect("the guard")
    }

    /// Takes a value, if there is one.
    #[operation(write)]
    pub fn try_take(&mut self) -> Option<T> {
        self.values.pop()
    }

    /// How many are equal to this one.
    #[operation(read)]
    pub fn count(&self, value: &T) -> u64 {
        self.values.iter().filter(|other| *other == value).count() as u64
    }

    #[operation(read)]
    pub fn length(&self) -> u64 {
        self.values.len() as u64
    }
}
