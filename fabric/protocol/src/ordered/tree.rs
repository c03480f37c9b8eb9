//! By which way what is for all reaches them: one copy for each host, which a member there passes on.
//!
//! It is the first of its host in the view that is not the message's origin, so all who know the view and the origin
//! know it, and nobody tells it. Where it dies on the way its host's members lack messages that others have: as those
//! of any member that dies, they come with the end of the view. Where it does not run they wait for it as the whole
//! group waits for a member without which nothing becomes stable, only sooner.

use super::{GroupMember, GroupView, OrderedGroup, Placed, Saying, WordTo};
use std::sync::Arc;

/// The number of each process's host, as all members of the group have it; a process that has none is on one with all
/// others of this kind.
pub type HostNumber = Arc<dyn Fn(GroupMember) -> u32 + Send + Sync>;

/// The members of a view by their hosts; none where there is one host, or no more than one member on each.
#[derive(Default)]
pub(super) struct HostTree {
    mine: Vec<GroupMember>,
    others: Vec<Vec<GroupMember>>,
}

impl HostTree {
    pub fn new(view: &GroupView, me: GroupMember, host_of: &HostNumber) -> Self {
        let my_host = host_of(me);
        let mut hosts: Vec<(u32, Vec<GroupMember>)> = vec![(my_host, Vec::new())];
        for member in view.members.iter().copied() {
            let host = host_of(member);
            match hosts.iter_mut().find(|(number, _)| *number == host) {
                Some((_, members)) => members.push(member),
                None => hosts.push((host, vec![member])),
            }
        }
        if hosts.len() == 1 || hosts.len() == view.members.len() {
            return Self::default();
        }
        let mut hosts = hosts.into_iter().map(|(_, members)| members);
        Self { mine: hosts.next().unwrap_or_default(), others: hosts.collect() }
    }

    fn is_none(&self) -> bool {
        self.others.is_empty()
    }

    /// Who passes on to a host's members what is of that origin.
    fn first(members: &[GroupMember], origin: GroupMember) -> Option<GroupMember> {
        members.iter().copied().find(|member| *member != origin)
    }

    /// To whom this process sends what is of that origin; to its own host only, where it passes it on.
    pub fn receivers(
        &self,
        me: GroupMember,
        origin: GroupMember,
        passes_on: bool,
    ) -> impl Iterator<Item = GroupMember> + Clone {
        let mine = self.mine.iter().copied().filter(move |member| *member != me && *member != origin);
        let others = if passes_on { &[][..] } else { &self.others };
        mine.chain(others.iter().filter_map(move |members| Self::first(members, origin)))
    }

    /// Whether this process passes on what it has got from there.
    fn passes_on(&self, me: GroupMember, from: GroupMember, origin: GroupMember) -> bool {
        !self.is_none() && !self.mine.contains(&from) && Self::first(&self.mine, origin) == Some(me)
    }
}

impl OrderedGroup {
    /// Where the members of this group run: what is long goes to each host once from then on.
    pub fn know_hosts(&mut self, host_of: HostNumber) {
        self.tree = HostTree::new(&self.view, self.me, &host_of);
        self.host_of = Some(host_of);
    }

    /// A message that has its place, for all who do not have it.
    pub(super) fn spread(&mut self, sequence: u64, stable: u64, message: Placed) {
        let origin = message.origin;
        let to = if self.goes_by_tree(&message) {
            WordTo::Hosts { origin, passes_on: false }
        } else {
            WordTo::Others { but: (origin != self.me).then_some(origin) }
        };
        self.say(to, Saying::Ordered { sequence, stable, message });
    }

    /// What has come for this host's members as well.
    #[inline]
    pub(super) fn pass_on(&mut self, from: GroupMember, sequence: u64, stable: u64, message: &Placed) {
        if self.goes_by_tree(message) && self.tree.passes_on(self.me, from, message.origin) {
            let to = WordTo::Hosts { origin: message.origin, passes_on: true };
            self.say(to, Saying::Ordered { sequence, stable, message: message.clone() });
        }
    }

    #[inline]
    fn goes_by_tree(&self, message: &Placed) -> bool {
        message.bytes.len() >= self.rules.tree_from && !self.tree.is_none()
    }

    /// Who gets a word that is for several.
    #[inline]
    pub fn receivers(&self, but: Option<GroupMember>) -> impl Iterator<Item = GroupMember> + Clone {
        let me = self.me;
        self.view.members.iter().copied().filter(move |member| *member != me && Some(*member) != but)
    }

    /// Who gets a word that goes by [`WordTo::Hosts`].
    pub fn receivers_by_hosts(
        &self,
        origin: GroupMember,
        passes_on: bool,
    ) -> impl Iterator<Item = GroupMember> + Clone {
        self.tree.receivers(self.me, origin, passes_on)
    }
}
