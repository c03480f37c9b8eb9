//! Barrier.

use super::team::{FLAT_MEMBERS, Team};

const CALL: &str = "MPI_Barrier";

impl Team {
    /// Small teams: everybody waits for everybody. Larger ones: member 0 collects, then lets all go.
    pub fn barrier(&self) {
        let operation = self.begin();
        self.slot_room(CALL, operation);
        if self.size <= FLAT_MEMBERS {
            self.publish(operation, 0..self.size);
            self.await_all(CALL, operation);
        } else if self.me == 0 {
            self.await_all(CALL, operation);
            self.publish(operation, 0..self.size);
        } else {
            self.publish(operation, 0..1);
            self.await_one(CALL, 0, operation);
            self.all_met(operation);
        }
        self.finish(operation);
    }
}
