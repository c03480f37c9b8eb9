//! Groups: ordered sets of processes (MPI 5.0, section 7.3).

pub mod abi;
mod subset;

use weft_fabric::Peer;

/// An ordered set of processes. Immutable; shared by communicators and group handles.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    members: GroupMembers,
    /// The calling process's rank in the group.
    mine: Option<u32>,
    /// The session that the group comes from.
    session: Option<usize>,
}

/// The world's group is the common case and needs no list.
#[derive(Debug, PartialEq, Eq)]
enum GroupMembers {
    /// Peers `0..n`, each its own rank.
    Prefix(u32),
    Listed {
        by_rank: Vec<Peer>,
        /// Sorted by peer.
        ranks: Vec<(Peer, u32)>,
    },
}

impl Group {
    /// The group of `members` in this order, as seen by process `me`.
    pub fn new(members: Vec<Peer>, me: Peer) -> Self {
        let identity = members.iter().enumerate().all(|(rank, peer)| peer.0 as usize == rank);
        let members = if identity {
            GroupMembers::Prefix(members.len() as u32)
        } else {
            let mut ranks: Vec<_> = members.iter().enumerate().map(|(rank, &peer)| (peer, rank as u32)).collect();
            ranks.sort_unstable();
            GroupMembers::Listed { by_rank: members, ranks }
        };
        let mut group = Self { members, mine: None, session: None };
        group.mine = group.rank_of(me);
        group
    }

    /// The same group, as coming from the session with this handle.
    pub fn of_session(self, session: Option<usize>) -> Self {
        Self { session, ..self }
    }

    /// The handle of the session that the group comes from.
    pub fn session(&self) -> Option<usize> {
        self.session
    }

    #[inline]
    pub fn size(&self) -> u32 {
        match &self.members {
            GroupMembers::Prefix(size) => *size,
            GroupMembers::Listed { by_rank, .. } => by_rank.len() as u32,
        }
    }

    /// The process with this rank, which must be below [`Self::size`].
    #[inline]
    pub fn peer(&self, rank: u32) -> Peer {
        match &self.members {
            GroupMembers::Prefix(size) => {
                debug_assert!(rank < *size);
                Peer(rank)
            }
            GroupMembers::Listed { by_rank, .. } => by_rank[rank as usize],
        }
    }

    #[inline]
    pub fn rank_of(&self, peer: Peer) -> Option<u32> {
        match &self.members {
            GroupMembers::Prefix(size) => (peer.0 < *size).then_some(peer.0),
            GroupMembers::Listed { ranks, .. } => {
                let place = ranks.binary_search_by_key(&peer, |entry| entry.0).ok()?;
                Some(ranks[place].1)
            }
        }
    }

    /// The calling process's own rank.
    #[inline]
    pub fn mine(&self) -> Option<u32> {
        self.mine
    }

    pub fn peers(&self) -> impl Iterator<Item = Peer> + '_ {
        (0..self.size()).map(|rank| self.peer(rank))
    }
}

/// How alike two groups or communicators are, with the numbers of the standard ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum Likeness {
    /// The same object.
    Identical = crate::abi::IDENT,
    /// The same members in the same order.
    Congruent = crate::abi::CONGRUENT,
    /// The same members.
    Similar = crate::abi::SIMILAR,
    Unequal = crate::abi::UNEQUAL,
}

impl Group {
    /// Compares members; never [`Likeness::Identical`].
    pub fn likeness(&self, other: &Self) -> Likeness {
        if self.members == other.members {
            Likeness::Congruent
        } else if self.size() == other.size() && self.peers().all(|peer| other.rank_of(peer).is_some()) {
            Likeness::Similar
        } else {
            Likeness::Unequal
        }
    }
}
