//! Calls of groups: what a member sends is delivered to all of them in one order, and who is a member changes in the
//! same order.

use crate::desk::{self, FABRIC};
use crate::error::{ErrorKind, NativeError, Result};
use crate::group_desk::{GroupDesk, GroupNews, GroupNumber, JoinRules};
use crate::known;
use std::sync::Arc;
use std::time::Duration;
use weft_group::{GroupError, GroupRules, USUAL_RULES};
use weft_ports::{Endpoint, Peer, Waiting};

#[cold]
fn failed(error: &GroupError) -> NativeError {
    let kind = match error {
        GroupError::Name(_) | GroupError::Joined(_) => ErrorKind::Name,
        GroupError::Over => ErrorKind::Lost,
        GroupError::Long(_) => ErrorKind::Argument,
    };
    NativeError::new(kind, error.to_string())
}

fn waiting(call: &'static str) -> Waiting {
    Waiting { call, peer: None, tag: None, context: 0 }
}

fn with_groups<R>(what: impl FnOnce(&mut Endpoint, &mut GroupDesk) -> R) -> R {
    FABRIC.with_both(|endpoint, desk| {
        let groups = desk.groups.get_or_insert_with(|| Box::new(GroupDesk::new(endpoint)));
        what(endpoint, groups)
    })
}

/// Waits until `done` answers, at most for `patience`.
fn wait<R>(
    call: &'static str,
    patience: Option<Duration>,
    mut done: impl FnMut(&mut Endpoint, &mut GroupDesk) -> Option<R>,
) -> Option<R> {
    desk::wait(waiting(call), patience, |endpoint, desk| {
        let groups = desk.groups.as_deref_mut()?;
        done(endpoint, groups)
    })
}

/// Joins the group of this name, and waits until its members have let this process in.
pub(crate) fn join(name: &str, rules: JoinRules) -> Result<GroupNumber> {
    known::allowed()?;
    let silence_ms = if rules.counts_silence { USUAL_RULES.silence_ms } else { u64::MAX };
    let rules = GroupRules { safe: rules.safe, silence_ms, ..USUAL_RULES };
    let group = with_groups(|endpoint, groups| groups.join(endpoint, name, rules)).map_err(|error| failed(&error))?;
    // The first that happens is that this process is a member; it stays, to be received.
    wait("weft_group_join", None, |endpoint, groups| groups.receive(endpoint, group, |_| ((), false)).transpose());
    Ok(group)
}

/// Sends to all members, this process among them; returns when the message is on its way to get its place.
pub(crate) fn send(group: GroupNumber, bytes: Arc<[u8]>) -> Result<()> {
    known::allowed()?;
    let sent =
        wait("weft_group_send", None, |endpoint, groups| match groups.try_send(endpoint, group, bytes.clone()) {
            Ok(Ok(false)) => None,
            Ok(Ok(true)) => Some(Ok(())),
            Ok(Err(error)) => Some(Err(failed(&error))),
            Err(error) => Some(Err(error)),
        });
    sent.unwrap_or(Ok(()))
}

/// What happens next in a group: `take` looks at it, and says whether it is received by that. `None`: the time is over.
pub(crate) fn receive<R>(
    group: GroupNumber,
    patience: Option<Duration>,
    mut take: impl FnMut(&GroupNews) -> (R, bool),
) -> Result<Option<R>> {
    known::allowed()?;
    with_groups(|_, groups| groups.members(group))?;
    let found =
        wait("weft_group_receive", patience, |endpoint, groups| groups.receive(endpoint, group, &mut take).transpose());
    found.transpose()
}

/// The members, as this process has last heard in the order of the group.
pub(crate) fn members(group: GroupNumber) -> Result<Vec<Peer>> {
    known::allowed()?;
    with_groups(|_, groups| groups.members(group))
}

/// Leaves a group once what this process has sent has its place; what was not received is thrown away.
pub(crate) fn leave(group: GroupNumber) -> Result<()> {
    known::allowed()?;
    with_groups(|_, groups| groups.members(group))?;
    let until = |done: fn(&mut Endpoint, &mut GroupDesk, GroupNumber) -> Result<bool>| {
        // One that another thread has left meanwhile is left.
        wait("weft_group_leave", None, |endpoint, groups| done(endpoint, groups, group).unwrap_or(true).then_some(()));
    };
    until(|endpoint, groups, group| Ok(groups.is_over(endpoint, group)? || groups.is_placed(group)?));
    with_groups(|endpoint, groups| groups.leave(endpoint, group))?;
    until(|endpoint, groups, group| groups.is_over(endpoint, group));
    with_groups(|_, groups| groups.forget(group));
    Ok(())
}

/// The process leaves the job: waits until all words have left. Its groups see it as one that has ended.
pub(crate) fn close() {
    if FABRIC.with_both(|_, desk| desk.groups.is_some()) {
        wait("weft_finish", None, |endpoint, groups| groups.has_left(endpoint).then_some(()));
    }
}
