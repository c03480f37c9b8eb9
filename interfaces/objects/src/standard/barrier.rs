//! A barrier: nobody passes before all have come.

use crate::{ObjectFault, object};
use serde::{Deserialize, Serialize};

/// A barrier for a number of callers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BarrierObject {
    callers: u32,
    arrived: u32,
    rounds: u64,
}

impl BarrierObject {
    /// For that many callers, at least one.
    pub fn new(callers: u32) -> Self {
        Self { callers: callers.max(1), arrived: 0, rounds: 0 }
    }
}

#[object(handle = SharedBarrier)]
impl BarrierObject {
    /// Has come; the round that ends when all have.
    #[operation(write)]
    pub fn arrive(&mut self) -> u64 {
        let round = self.rounds;
        self.arrived += 1;
        if self.arrived == self.callers {
            self.arrived = 0;
            self.rounds += 1;
        }
        round
    }

    /// Waits until a round has ended.
    #[operation(read, guard = self.rounds > *round)]
    pub fn await_end(&self, round: u64) {}
}

impl SharedBarrier {
    /// Waits until all have called this.
    ///
    /// # Errors
    /// The object is lost.
    pub fn pass(&self) -> Result<(), ObjectFault> {
        self.await_end(self.arrive()?)
    }
}
