//! Numbers of contexts, given to tasks that ask.

use crate::code;
use std::collections::BTreeMap;

/// ContextNumbers of the system stand above these.
const FIRST_OF_SYSTEM: i32 = 0x7fff6;

/// Who has which.
#[derive(Default)]
pub struct ContextNumbers {
    owners: BTreeMap<i32, i32>,
    last: i32,
}

impl ContextNumbers {
    pub fn new_for(&mut self, tid: i32) -> i32 {
        for _ in 1..FIRST_OF_SYSTEM {
            self.last = if self.last + 1 < FIRST_OF_SYSTEM { self.last + 1 } else { 1 };
            if let std::collections::btree_map::Entry::Vacant(place) = self.owners.entry(self.last) {
                place.insert(tid);
                return self.last;
            }
        }
        code::OUT_OF_RES
    }

    pub fn free(&mut self, tid: i32, context: i32) -> i32 {
        match self.owners.get(&context) {
            Some(owner) if *owner == tid => {
                self.owners.remove(&context);
                code::OK
            }
            _ => code::NOT_FOUND,
        }
    }

    pub fn forget(&mut self, tid: i32) {
        self.owners.retain(|_, owner| *owner != tid);
    }
}
