//! A barrier: nobody passes before all have come.

use crate::{ObjectFault, Space, object};
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

    /// For how many callers it is.
    #[operation(read)]
    pub fn callers(&self) -> u32 {
        self.callers
    }
}

impl SharedBarrier {
    /// As [`Self::share`]; whoever has created it must have done so for as many callers.
    ///
    /// # Errors
    /// It is for another number of callers, and as those of [`Self::share`].
    pub fn share_for(space: &Space, name: &str, callers: u32) -> Result<Self, ObjectFault> {
        let barrier = Self::share(space, name, BarrierObject::new(callers))?;
        match barrier.callers()? {
            found if found == callers.max(1) => Ok(barrier),
            found => Err(ObjectFault::OtherCallers { name: name.to_owned(), callers: found, asked: callers }),
        }
    }

    /// Waits until all have called this.
    ///
    /// # Errors
    /// The object is lost.
    pub fn pass(&self) -> Result<(), ObjectFault> {
        self.await_end(self.arrive()?)
    }
}
