//! How a member stands, in two numbers of which everybody keeps the higher.

use crate::MemberId;
use crate::chance::mix;

/// What is said of a member. Of two reputes the higher holds, whoever said it and in whichever order they come, so all
/// end with the same one.
///
/// A member begins with an even count. An accusation of silence makes it odd, and only the member itself makes it even
/// again, by the next number. The highest count is the end of this incarnation, and only a higher incarnation comes
/// after it. Incarnation 0 is that of a member whom nobody has heard of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Repute {
    pub(crate) incarnation: u64,
    pub(crate) count: u32,
}

/// The highest incarnation that is believed, so that there is always a next one.
pub(crate) const INCARNATION_MAX: u64 = 1 << 62;
/// The count of an incarnation that has ended.
const ENDED: u32 = u32::MAX;
/// Who has refuted so often takes the next incarnation.
const COUNT_MAX: u32 = 1 << 30;

impl Repute {
    pub(crate) fn first(incarnation: u64) -> Self {
        Self { incarnation: incarnation.clamp(1, INCARNATION_MAX), count: 0 }
    }

    pub(crate) fn has_ended(self) -> bool {
        self.count == ENDED
    }

    pub(crate) fn is_accused(self) -> bool {
        !self.has_ended() && self.count % 2 == 1
    }

    /// Nobody has heard of this member yet.
    pub(crate) fn is_unseen(self) -> bool {
        self.incarnation == 0
    }

    pub(crate) fn accused(self) -> Self {
        Self { count: self.count | 1, ..self }
    }

    pub(crate) fn ended(self) -> Self {
        Self { count: ENDED, ..self }
    }

    /// The lowest repute above `claim` in which its member is well. `renews` says whether it is of a new incarnation:
    /// where the claim says that the old one has ended, or is of a later one than `self`.
    pub(crate) fn above(self, claim: Self) -> (Self, bool) {
        let renews = claim.incarnation != self.incarnation || claim.count >= COUNT_MAX;
        match renews {
            true => (Self { incarnation: claim.incarnation.saturating_add(1), count: 0 }, true),
            false => (Self { count: (claim.count | 1) + 1, ..self }, false),
        }
    }

    /// Whether somebody may say so of a member: there is a repute above it.
    pub(crate) fn is_sound(self) -> bool {
        self.incarnation <= INCARNATION_MAX + (1 << 32)
    }

    /// What this member with this repute adds to a digest. Nothing, where nobody knows anything.
    pub(crate) fn digest(self, member: MemberId) -> u64 {
        match self == Self::default() {
            true => 0,
            false => mix(mix(member.0 ^ u64::from(self.count) << 32) ^ self.incarnation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refutation_stands_above_the_accusation_and_the_end_above_both() {
        let first = Repute::first(7);
        let accused = first.accused();
        let (refuted, renews) = first.above(accused);
        assert!(first < accused && accused < refuted && refuted < first.ended() && !renews);
        assert!(accused.is_accused() && !refuted.is_accused() && !first.ended().is_accused());
        assert!(first.ended() < Repute::first(8));
    }

    #[test]
    fn who_was_said_to_have_ended_comes_back_with_the_next_incarnation() {
        let first = Repute::first(7);
        assert_eq!(first.above(first.ended()), (Repute::first(8), true));
        assert_eq!(first.above(Repute::first(70)), (Repute::first(71), true));
        let worn = Repute { incarnation: 7, count: COUNT_MAX + 1 };
        assert_eq!(first.above(worn), (Repute::first(8), true));
    }
}
