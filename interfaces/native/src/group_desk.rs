//! What moves the groups of this process, beside the endpoint.
//!
//! It is there from the moment on at which this process joins one, or is asked about one: where it waits or polls it
//! looks for that. So who has nothing to do with groups pays nothing for them.

use crate::error::{ErrorKind, NativeError, Result};
use std::sync::Arc;
use std::time::Duration;
use weft_group::{GroupError, GroupEvent, GroupId, GroupRules, OrderedGroups, process_of};
use weft_ports::{Endpoint, Peer, Selector};

/// The contexts of groups, this one and the next, are no ports.
const CONTEXT: u32 = 1 << 31;

/// A group that this process has joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupNumber(pub u32);

/// How a group is, for all its members alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinRules {
    /// A message is delivered when all members have it: what a member has delivered that dies, the others deliver, too.
    pub safe: bool,
    /// Who says nothing for some seconds counts as dead, if most of the members say so. All must wait or poll more
    /// often than that.
    pub counts_silence: bool,
}

/// What happens in a group, in the same order for all members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupNews {
    /// A message, which has this place among all of the group.
    Message { from: Peer, place: u64, bytes: Arc<[u8]> },
    /// The members from now on, in the order of joining.
    Members(Vec<Peer>),
    /// This process is no member any more: the others have taken it for dead.
    Excluded,
}

/// A group as this process sees it.
struct JoinedGroup {
    number: u32,
    id: GroupId,
    members: Vec<Peer>,
    /// What was taken and not received yet.
    first: Option<GroupNews>,
    is_over: bool,
}

/// All groups of this process.
pub struct GroupDesk {
    ordered: OrderedGroups,
    joined: Vec<JoinedGroup>,
    given: u32,
}

impl GroupDesk {
    pub fn new(endpoint: &mut Endpoint) -> Self {
        Self { ordered: OrderedGroups::new(endpoint, CONTEXT), joined: Vec::new(), given: 0 }
    }

    /// Whether somebody has asked about groups, before this process had anything to do with them.
    pub fn is_asked(endpoint: &mut Endpoint) -> bool {
        endpoint.probe(Selector { context: CONTEXT, peer: None, tag: None }).is_some()
    }

    /// Begins to join.
    pub fn join(
        &mut self,
        endpoint: &mut Endpoint,
        name: &str,
        rules: GroupRules,
    ) -> std::result::Result<GroupNumber, GroupError> {
        let id = self.ordered.join(endpoint, name, rules)?;
        let number = self.given;
        self.given += 1;
        self.joined.push(JoinedGroup { number, id, members: Vec::new(), first: None, is_over: false });
        Ok(GroupNumber(number))
    }

    /// Sends, if there is room now.
    pub fn try_send(
        &mut self,
        endpoint: &mut Endpoint,
        group: GroupNumber,
        bytes: Arc<[u8]>,
    ) -> Result<std::result::Result<bool, GroupError>> {
        let id = self.id(group)?;
        Ok(self.ordered.try_send(endpoint, id, bytes))
    }

    /// What has happened next in a group: `take` looks at it, and says whether it is received by that. `None`: nothing.
    ///
    /// # Errors
    /// This process is no member any more, and has received all before that; or never was one.
    pub fn receive<R>(
        &mut self,
        endpoint: &mut Endpoint,
        group: GroupNumber,
        take: impl FnOnce(&GroupNews) -> (R, bool),
    ) -> Result<Option<R>> {
        let at = self.group(group)?;
        if self.joined[at].is_over && self.joined[at].first.is_none() {
            return Err(over());
        }
        let Some(news) = self.look(endpoint, at) else { return Ok(None) };
        let (answer, takes) = take(news);
        if takes {
            self.joined[at].first = None;
        }
        Ok(Some(answer))
    }

    pub fn members(&self, group: GroupNumber) -> Result<Vec<Peer>> {
        self.group(group).map(|at| self.joined[at].members.clone())
    }

    /// Begins to leave.
    pub fn leave(&mut self, endpoint: &mut Endpoint, group: GroupNumber) -> Result<()> {
        let id = self.joined[self.group(group)?].id;
        self.ordered.leave(endpoint, id);
        Ok(())
    }

    /// Throws away what has come, and tells whether this process is no member any more.
    pub fn is_over(&mut self, endpoint: &mut Endpoint, group: GroupNumber) -> Result<bool> {
        let at = self.group(group)?;
        self.joined[at].first = None;
        while !self.joined[at].is_over && self.look(endpoint, at).is_some() {
            self.joined[at].first = None;
        }
        Ok(self.joined[at].is_over)
    }

    pub fn forget(&mut self, group: GroupNumber) {
        self.joined.retain(|one| one.number != group.0);
    }

    /// Whether all that was sent to a group has its place.
    pub fn is_placed(&self, group: GroupNumber) -> Result<bool> {
        let one = &self.joined[self.group(group)?];
        Ok(one.is_over || self.ordered.unplaced(one.id) == 0)
    }

    /// Whether all words have left, of messages that have their places.
    pub fn has_left(&mut self, endpoint: &mut Endpoint) -> bool {
        let Self { ordered, joined, .. } = self;
        let placed = joined.iter().all(|group| group.is_over || ordered.unplaced(group.id) == 0);
        ordered.has_left(endpoint) && placed
    }

    pub fn ordered(&mut self) -> &mut OrderedGroups {
        &mut self.ordered
    }

    pub fn longest_sleep(&self) -> Option<Duration> {
        self.ordered.longest_sleep()
    }

    fn group(&self, group: GroupNumber) -> Result<usize> {
        let at = self.joined.iter().position(|one| one.number == group.0);
        at.ok_or_else(|| NativeError::argument(format!("this process has joined no group {}", group.0 as i32)))
    }

    fn id(&self, group: GroupNumber) -> Result<GroupId> {
        let one = &self.joined[self.group(group)?];
        if one.is_over { Err(over()) } else { Ok(one.id) }
    }

    /// What has happened next in a group, which stays where it is.
    fn look(&mut self, endpoint: &mut Endpoint, at: usize) -> Option<&GroupNews> {
        let Self { ordered, joined, .. } = self;
        let group = &mut joined[at];
        if group.first.is_none() {
            let news = match ordered.take_event(endpoint, group.id)? {
                GroupEvent::Message { sequence, message } => {
                    GroupNews::Message { from: process_of(message.origin), place: sequence, bytes: message.bytes }
                }
                GroupEvent::View(view) => GroupNews::Members(view.members.into_iter().map(process_of).collect()),
                GroupEvent::Left | GroupEvent::Excluded => GroupNews::Excluded,
            };
            match &news {
                GroupNews::Members(members) => group.members.clone_from(members),
                GroupNews::Excluded => group.is_over = true,
                GroupNews::Message { .. } => {}
            }
            group.first = Some(news);
        }
        group.first.as_ref()
    }

    /// Whether there is something to receive.
    pub fn has_news(&mut self, endpoint: &mut Endpoint) -> bool {
        (0..self.joined.len()).any(|at| self.look(endpoint, at).is_some())
    }
}

#[cold]
fn over() -> NativeError {
    NativeError::new(ErrorKind::Lost, "this process is no member of the group any more")
}
