//! Barrier.

use super::owner::TeamOwner;
use super::team::{FLAT_MEMBERS, Team};
use super::word::Alike;

impl<O: TeamOwner> Team<O> {
    /// Small teams: everybody waits for everybody. Larger ones: member 0 collects, then lets all go.
    pub fn barrier(&self) -> Alike {
        self.tell("barrier", 0);
        let operation = self.begin();
        self.slot_room(O::CALLS.barrier, operation)?;
        let met = self.meet(operation);
        self.finish(operation);
        met
    }

    #[inline]
    fn meet(&self, operation: u64) -> Alike {
        if self.size <= FLAT_MEMBERS {
            self.publish(operation, 0, 0..self.size);
            return self.await_all(O::CALLS.barrier, operation, 0);
        }
        if self.me == 0 {
            self.await_all(O::CALLS.barrier, operation, 0)?;
            self.publish(operation, 0, 0..self.size);
        } else {
            self.publish(operation, 0, 0..1);
            self.await_one(O::CALLS.barrier, 0, operation, 0)?;
            self.all_met(operation);
        }
        Ok(())
    }
}
