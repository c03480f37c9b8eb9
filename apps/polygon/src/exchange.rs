//! The shared objects: what the first process says to the others, and they to it.
//!
//! Each of the others has an object with its part of the maps, on itself. The object with the results is on the first.

use crate::boxes::BoxList;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use weft_objects::object;

/// Rows of patches, and the boxes of both maps that touch them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MapPart {
    pub rows: Range<u16>,
    pub first: BoxList,
    pub second: BoxList,
}

/// What a process is to lay over each other.
#[derive(Default, Serialize, Deserialize)]
pub struct PartSlot {
    parts: Vec<MapPart>,
}

#[object]
impl PartSlot {
    #[operation(write)]
    pub fn give(&mut self, part: MapPart) {
        self.parts.push(part);
    }

    /// Waits until this part was given.
    #[operation(read, guard = self.parts.len() > *number)]
    pub fn await_part(&self, number: usize) {}

    /// A part that was given. A copy, where the object is.
    #[operation(read)]
    pub fn part(&self, number: usize) -> MapPart {
        self.parts[number].clone()
    }
}

/// The overlays of all parts that were given.
#[derive(Default, Serialize, Deserialize)]
pub struct Overlays {
    parts: Vec<BoxList>,
    missing: usize,
}

impl Overlays {
    pub fn new(processes: u32, parts: usize) -> Self {
        let missing = processes as usize * parts;
        Self { parts: vec![BoxList::default(); missing], missing }
    }
}

#[object]
impl Overlays {
    #[operation(write)]
    pub fn deliver(&mut self, number: usize, overlay: BoxList) {
        self.parts[number] = overlay;
        self.missing -= 1;
    }

    /// Waits until none is missing.
    #[operation(read, guard = self.missing == 0)]
    pub fn await_all(&self) {}

    /// All, one after the other.
    #[operation(read)]
    pub fn all(&self) -> BoxList {
        BoxList(self.parts.iter().flat_map(|part| part.0.iter().copied()).collect())
    }
}
