//! Groups that will not change.

use std::collections::BTreeMap;
use std::ffi::c_int;
use weft_pvm_machine::frame::ByteString;

/// Groups that are frozen, by name, with their members.
pub struct Frozen(pub BTreeMap<ByteString, Vec<c_int>>);

impl Frozen {
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}
