//! A number.

use crate::object;
use serde::{Deserialize, Serialize};

/// A number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IntegerObject {
    value: i64,
}

impl IntegerObject {
    pub fn new(value: i64) -> Self {
        Self { value }
    }
}

#[object(handle = SharedInteger)]
impl IntegerObject {
    #[operation(read)]
    pub fn value(&self) -> i64 {
        self.value
    }

    /// Waits until it has that value.
    #[operation(read, guard = self.value == *value)]
    pub fn await_value(&self, value: i64) {}

    /// Waits until it has that value or a greater one, and tells which.
    #[operation(read, guard = self.value >= *value)]
    pub fn await_at_least(&self, value: i64) -> i64 {
        self.value
    }

    /// The value before.
    #[operation(write)]
    pub fn assign(&mut self, value: i64) -> i64 {
        std::mem::replace(&mut self.value, value)
    }

    /// The value after. It wraps around.
    #[operation(write)]
    pub fn add(&mut self, by: i64) -> i64 {
        self.value = self.value.wrapping_add(by);
        self.value
    }

    /// Takes `value` if that is less; the value after.
    #[operation(write)]
    pub fn lower_to(&mut self, value: i64) -> i64 {
        self.value = self.value.min(value);
        self.value
    }

    /// Takes `value` if that is more; the value after.
    #[operation(write)]
    pub fn raise_to(&mut self, value: i64) -> i64 {
        self.value = self.value.max(value);
        self.value
    }
}
