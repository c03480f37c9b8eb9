//! Where ions and electrons are.

use serde::{Deserialize, Serialize};

/// Where they are. There are as many of the one kind as of the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Particles {
    pub ions: Vec<[f64; 3]>,
    pub electrons: Vec<[f64; 3]>,
}

impl Particles {
    pub fn count(&self) -> usize {
        self.ions.len() + self.electrons.len()
    }
}
