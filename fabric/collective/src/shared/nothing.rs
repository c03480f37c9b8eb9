//! The part of a member that brings nothing, or cannot go on.

use super::owner::TeamOwner;
use super::team::Team;
use super::word::{Alike, Differs};

impl<O: TeamOwner> Team<O> {
    /// Our part in an operation in which nobody brings a byte: we wait for nobody, not even for room. Those who expect
    /// something all the same see that we have finished without it.
    #[inline]
    pub fn bring_nothing(&self) {
        let operation = self.begin();
        self.finish_and_wake(operation);
    }

    /// Tells the others that we cannot go on with them, instead of what they would take for our part.
    #[cold]
    pub fn give_up(&self, call: &'static str) -> Alike {
        let operation = self.begin();
        self.slot_room(call, operation)?;
        self.publish_difference(operation);
        self.finish(operation);
        Err(Differs::Length { member: self.me, bytes: None })
    }
}
