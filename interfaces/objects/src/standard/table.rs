//! Values by their keys.

use crate::{Shareable, object};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values by their keys: results that others wait for, rows of a matrix, settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "K: Shareable + Ord, V: Shareable")]
pub struct TableObject<K, V> {
    rows: BTreeMap<K, V>,
}

impl<K, V> Default for TableObject<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new() }
    }
}

#[object(handle = SharedTable)]
impl<K: Shareable + Ord, V: Shareable> TableObject<K, V> {
    /// The value before.
    #[operation(write)]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.rows.insert(key, value)
    }

    /// The value, if there was one.
    #[operation(write)]
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.rows.remove(key)
    }

    #[operation(read)]
    pub fn value(&self, key: &K) -> Option<V> {
        self.rows.get(key).cloned()
    }

    /// Waits until there is a value of this key.
    #[operation(read, guard = self.rows.contains_key(key))]
    pub fn await_value(&self, key: &K) -> V {
        self.rows[key].clone()
    }

    /// All keys, in their order.
    #[operation(read)]
    pub fn keys(&self) -> Vec<K> {
        self.rows.keys().cloned().collect()
    }

    #[operation(read)]
    pub fn length(&self) -> u64 {
        self.rows.len() as u64
    }
}
