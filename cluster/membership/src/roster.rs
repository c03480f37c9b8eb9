//! All members with their reputes, and digests by which two rosters are compared.

use crate::MemberId;
use crate::chance::mix;
use crate::repute::Repute;

/// Groups of members that have a digest of their own: a datagram has room for all of them.
pub(crate) const GROUPS: usize = 64;

/// What one member knows of all. Members are places in a sorted list.
#[derive(Clone, Debug)]
pub(crate) struct Roster {
    members: Vec<MemberId>,
    reputes: Vec<Repute>,
    /// For each group, the digests of its members folded by XOR.
    groups: [u64; GROUPS],
    digest: u64,
}

impl Roster {
    /// Of these members, each once, of whom nothing is known yet.
    pub(crate) fn new(mut members: Vec<MemberId>) -> Self {
        members.sort_unstable();
        members.dedup();
        let reputes = vec![Repute::default(); members.len()];
        Self { members, reputes, groups: [0; GROUPS], digest: 0 }
    }

    pub(crate) fn members(&self) -> &[MemberId] {
        &self.members
    }

    pub(crate) fn place(&self, member: MemberId) -> Option<usize> {
        self.members.binary_search(&member).ok()
    }

    pub(crate) fn member(&self, place: usize) -> MemberId {
        self.members[place]
    }

    pub(crate) fn repute(&self, place: usize) -> Repute {
        self.reputes[place]
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// The digests of the groups, as they travel.
    pub(crate) fn groups(&self) -> [u32; GROUPS] {
        self.groups.map(|group| group as u32)
    }

    /// Takes what is said of a member, if it is above what is known. Whether it was.
    pub(crate) fn merge(&mut self, place: usize, said: Repute) -> bool {
        let known = self.reputes[place];
        if said <= known {
            return false;
        }
        let member = self.members[place];
        let change = known.digest(member) ^ said.digest(member);
        self.groups[group(member)] ^= change;
        self.digest ^= change;
        self.reputes[place] = said;
        true
    }

    /// What is known of the members of the groups in which another roster differs.
    pub(crate) fn differing(&self, other: &[u32; GROUPS]) -> Vec<(MemberId, Repute)> {
        let differs: [bool; GROUPS] = std::array::from_fn(|group| self.groups[group] as u32 != other[group]);
        let all = self.members.iter().copied().zip(self.reputes.iter().copied());
        all.filter(|(member, repute)| differs[group(*member)] && *repute != Repute::default()).collect()
    }
}

fn group(member: MemberId) -> usize {
    mix(member.0) as usize % GROUPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rosters_with_the_same_claims_in_any_order_have_the_same_digest() {
        let members: Vec<MemberId> = (0..200).map(MemberId).collect();
        let (mut one, mut other) = (Roster::new(members.clone()), Roster::new(members));
        let said = [(3, Repute::first(9)), (70, Repute::first(2).ended()), (3, Repute::first(9).accused())];
        for (place, repute) in said {
            one.merge(place, repute);
        }
        for (place, repute) in said.into_iter().rev() {
            other.merge(place, repute);
        }
        assert_eq!((one.digest(), one.groups()), (other.digest(), other.groups()));
        assert_ne!(one.digest(), 0);
        other.merge(70, Repute::first(3));
        assert_ne!(one.digest(), other.digest());
        assert_eq!(other.differing(&one.groups()).iter().filter(|(member, _)| member.0 == 70).count(), 1);
        assert!(one.differing(&other.groups()).len() < 20, "one group, not all");
    }
}
