//! Ranks that have left their job, as their shared memory says: a program that has closed descriptors which it does not know
//! cannot say so over its PMI socket.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use weft_wire::interface::InterfaceName;
use weft_wire::segment::{Geometry, Heading, MemberState, mailbox};

/// The members of the segment of this host, which are the ranks.
pub(super) struct Members {
    segment: File,
    geometry: Geometry,
}

impl Members {
    /// Of the segment among what ranks inherit.
    pub fn of(inherited: &[(String, OwnedFd)]) -> Option<Self> {
        let (_, segment) = inherited.iter().find(|(name, _)| name == crate::SEGMENT_VARIABLE)?;
        let segment = File::from(segment.try_clone().ok()?);
        let mut head = [0; 64];
        segment.read_exact_at(&mut head, 0).ok()?;
        match Heading::parse(&head) {
            Heading::Segment(geometry) => Some(Self { segment, geometry }),
            _ => None,
        }
    }

    /// What a rank says of itself, a claim: it is in no interface any more, and was in one.
    pub fn has_left(&self, rank: usize) -> bool {
        let Some(member) = u32::try_from(rank).ok().filter(|member| *member < self.geometry.members) else {
            return false;
        };
        let states = InterfaceName::ALL.map(|interface| self.state(member, interface));
        states.contains(&MemberState::Left) && !states.contains(&MemberState::Joined)
    }

    fn state(&self, member: u32, interface: InterfaceName) -> MemberState {
        let at = self.geometry.section(interface) + self.geometry.mailbox(member) + mailbox::STATE;
        let mut word = [0; 4];
        let read = self.segment.read_exact_at(&mut word, at as u64);
        let state = read.ok().and_then(|()| MemberState::from_word(u32::from_le_bytes(word)));
        state.unwrap_or(MemberState::Absent)
    }
}
