//! The same in calls that wait, for a messenger whose companion has groups.

use crate::{GroupError, GroupEvent, GroupId, GroupRules, OrderedGroups};
use std::sync::Arc;
use weft_ports::{Call, Companion, Messenger, Waiting};

/// A companion that has groups, and moves them.
pub trait HasGroups: Companion {
    fn groups(&mut self) -> &mut OrderedGroups;
}

impl HasGroups for OrderedGroups {
    fn groups(&mut self) -> &mut Self {
        self
    }
}

/// Calls that wait in the one place where threads wait.
pub trait GroupCalls {
    /// Wants to be a member; [`Self::await_event`] tells when this process is one.
    ///
    /// # Errors
    /// As [`OrderedGroups::join`].
    fn join_group(&self, name: &str, rules: GroupRules) -> Result<GroupId, GroupError>;

    /// Sends to all members; returns when the message is on its way to get its place.
    ///
    /// # Errors
    /// As [`OrderedGroups::try_send`].
    fn send_to_group(&self, call: Call, group: GroupId, bytes: Arc<[u8]>) -> Result<(), GroupError>;

    /// What happens next in a group.
    fn await_event(&self, call: Call, group: GroupId) -> GroupEvent;

    /// Leaves a group, and waits until it has.
    fn leave_group(&self, call: Call, group: GroupId);

    /// Waits until all words have left, before the messenger is closed. Who has not left its groups has died for the
    /// others.
    fn close_groups(&self, call: Call);
}

fn waiting(call: Call) -> Waiting {
    Waiting { call, peer: None, tag: None, context: 0 }
}

impl<C: HasGroups> GroupCalls for Messenger<C> {
    fn join_group(&self, name: &str, rules: GroupRules) -> Result<GroupId, GroupError> {
        self.with_both(|endpoint, all| all.groups().join(endpoint, name, rules))
    }

    #[inline]
    fn send_to_group(&self, call: Call, group: GroupId, bytes: Arc<[u8]>) -> Result<(), GroupError> {
        self.wait_both(waiting(call), |endpoint, all| match all.groups().try_send(endpoint, group, bytes.clone()) {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        })
    }

    #[inline]
    fn await_event(&self, call: Call, group: GroupId) -> GroupEvent {
        self.wait_both(waiting(call), |endpoint, all| all.groups().take_event(endpoint, group))
    }

    fn leave_group(&self, call: Call, group: GroupId) {
        self.with_both(|endpoint, all| all.groups().leave(endpoint, group));
        while !matches!(self.await_event(call, group), GroupEvent::Left | GroupEvent::Excluded) {}
    }

    fn close_groups(&self, call: Call) {
        self.wait_both(waiting(call), |endpoint, all| all.groups().has_left(endpoint).then_some(()));
    }
}
