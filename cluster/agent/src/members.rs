//! What ranks say of themselves in the memory that they share: claims.
//!
//! That they have left their job, which a program that has closed descriptors it does not know cannot say over its PMI
//! socket; what they have sent, and what they do. The memory is here as long as we have it, also when they are gone.

use crate::sys;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;
use weft_cluster::usage::SentBytes;
use weft_ranks::{Doing, FoundJob, SeenRank};
use weft_wire::interface::InterfaceName;
use weft_wire::segment::{Geometry, Heading, MemberState, PAGE_BYTES, mailbox};
use weft_wire::status::{COUNTER_NAMES, StatusPage};

/// The members of the segment of this host, which are the ranks.
pub struct HostMembers {
    segment: File,
    geometry: Geometry,
}

impl HostMembers {
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
        let states: Vec<MemberState> = self.used_by(member).map(|interface| self.state(member, interface)).collect();
        states.contains(&MemberState::Left) && !states.contains(&MemberState::Joined)
    }

    /// What a member has sent by all its interfaces; nothing where it shows no status page.
    pub fn sent(&self, member: usize) -> Option<SentBytes> {
        let member = u32::try_from(member).ok().filter(|member| *member < self.geometry.members)?;
        let mut pages = self.used_by(member).filter_map(|interface| self.page(member, interface)).peekable();
        pages.peek()?;
        let mut sent = SentBytes::default();
        for page in pages {
            for (name, count) in COUNTER_NAMES.into_iter().zip(page.counters) {
                let sum = match name {
                    "shm_bytes" => &mut sent.shm,
                    "tcp_bytes" => &mut sent.tcp,
                    "udp_bytes" => &mut sent.udp,
                    "single_copy_bytes" => &mut sent.copied,
                    "sends" => &mut sent.messages,
                    "bytes_sent" => &mut sent.message_bytes,
                    _ => continue,
                };
                *sum = sum.saturating_add(count);
            }
        }
        Some(sent)
    }

    /// What each member does, and the milliseconds that it has been blocked there.
    pub fn doing(&self) -> Vec<(String, Option<u64>)> {
        let Ok(found) = self.segment.try_clone().and_then(FoundJob::of) else { return Vec::new() };
        let milliseconds = |time: Duration| time.as_millis() as u64;
        let told = |Doing { words, blocked }| (words, blocked.map(milliseconds));
        weft_ranks::SeenJob::read(&found).ranks.iter().map(SeenRank::doing).map(told).collect()
    }

    /// The interfaces in whose sections anything stands in the pages of a member: most programs use one or none.
    fn used_by(&self, member: u32) -> impl Iterator<Item = InterfaceName> {
        let mut next = 0;
        InterfaceName::ALL.into_iter().filter(move |interface| {
            let pages = [member, member + 1].map(|member| self.geometry.mailbox(member));
            let [begin, end] = pages.map(|at| (self.geometry.section(*interface) + at) as u64);
            if next < begin {
                next = sys::next_data(self.segment.as_raw_fd(), begin);
            }
            next < end
        })
    }

    fn page(&self, member: u32, interface: InterfaceName) -> Option<StatusPage> {
        let at = self.geometry.section(interface) + self.geometry.status(member);
        let mut bytes = [0; PAGE_BYTES];
        self.segment.read_exact_at(&mut bytes, at as u64).ok()?;
        StatusPage::parse(&bytes)
    }

    fn state(&self, member: u32, interface: InterfaceName) -> MemberState {
        let at = self.geometry.section(interface) + self.geometry.mailbox(member) + mailbox::STATE;
        let mut word = [0; 4];
        let read = self.segment.read_exact_at(&mut word, at as u64);
        let state = read.ok().and_then(|()| MemberState::from_word(u32::from_le_bytes(word)));
        state.unwrap_or(MemberState::Absent)
    }
}
