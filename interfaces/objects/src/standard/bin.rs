//! A place for one value, which is put there and taken by turns.

use crate::{Shareable, object};
use serde::{Deserialize, Serialize};

/// A place for one value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BinObject<T> {
    value: Option<T>,
}

impl<T> Default for BinObject<T> {
    fn default() -> Self {
        Self { value: None }
    }
}

#[object(handle = SharedBin)]
impl<T: Shareable> BinObject<T> {
    /// Waits until the place is free, and puts the value there.
    #[operation(write, guard = self.value.is_none())]
    pub fn put(&mut self, value: T) {
        self.value = Some(value);
    }

    /// Waits until there is a value, and takes it.
    #[operation(write, guard = self.value.is_some())]
    pub fn take(&mut self) -> T {
        self.value.take().expect("the guard")
    }

    #[operation(read)]
    pub fn is_empty(&self) -> bool {
        self.value.is_none()
    }
}
