//! Layout of the segment: the memory that the ranks of a job on one host share.
//!
//! ```text
//! section of interface 0 | section of interface 1 | ...
//! section: header | member 0 .. member n-1 | collective blocks | pair (0,0) (1,0) .. (n-1,n-1)
//! ```
//! An interface maps its section alone; only the first one says in its header what this is. A member is a mailbox page
//! and a status page. Pair (s, r) is what `s` sends to `r`: credits, copy slots, cells, bulk. The segment is sparse:
//! what is never touched costs nothing, so "first talk" is a first touch.

use crate::cell::CELL_BYTES;
use crate::interface::InterfaceName;

/// `weft-seg` as little-endian bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"weft-seg");
/// Changes with every change of what stands in the segment.
pub const VERSION: u32 = 8;
/// `weft-two` as little-endian bytes: the segment of two processes of different jobs.
pub const MAGIC_OF_TWO: u64 = u64::from_le_bytes(*b"weft-two");
/// Most members of a segment.
pub const MAX_MEMBERS: u32 = 4096;

pub const PAGE_BYTES: usize = 4096;

/// Offsets in the header.
pub mod header {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 8;
    pub const MEMBERS: usize = 12;
    /// In the segment of two processes of different jobs: two 64-bit words that its maker has told the other one.
    pub const TOKEN: usize = 16;
    /// Next collective block that was never used (64-bit counter).
    pub const NEXT_BLOCK: usize = 64;
    /// Heads of the lists of collective blocks that were given back, one 64-bit word for each length of a run.
    const GIVEN_BACK: usize = 1024;

    /// The list's head for runs of `count` blocks; `None` if there are no such runs.
    pub const fn given_back(count: usize) -> Option<usize> {
        if count == 0 || count > super::MOST_BLOCKS_IN_A_ROW { None } else { Some(GIVEN_BACK + count * 8) }
    }
}

/// Offsets in a member's mailbox page.
pub mod mailbox {
    /// The doorbell (32 bits): 1 while the owner sleeps on it, 2 while it sleeps on its bell.
    pub const DOORBELL: usize = 0;
    /// 1 once the owner has said that it orders others before it sleeps; until then who sends to it must fence. In the
    /// doorbell's line, which senders look at anyway.
    pub const ORDERS: usize = 4;
    /// Set of senders that the owner polls, one bit each, 64-bit words.
    /// The owner's own bit, which no packet sets: there is news in [`CUT_OFF`].
    pub const ACTIVE: usize = 64;
    /// Set of senders that have no memory for packets to the owner: none comes from them any more. Bits are only set.
    pub const CUT_OFF: usize = 1024;
    /// Process id of the member, 0 before it has joined.
    pub const PID: usize = 2048;
    /// [`super::MemberState`]
    pub const STATE: usize = 2052;
    /// 1 + the core that the member is bound to, 0 if it may use several.
    pub const CORE: usize = 2056;
    /// Which process ids [`PID`] is one of: number of the member's process id namespace, 0 if unknown.
    pub const NAMESPACE: usize = 2060;
    /// Number of the bell that the owner sleeps on (64 bits), 0 if it has none.
    pub const BELL: usize = 2064;
}

/// How far a member has come; the launcher reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MemberState {
    Absent = 0,
    Joined = 1,
    Left = 2,
}

impl MemberState {
    pub const fn from_word(word: u32) -> Option<Self> {
        Some(match word {
            0 => Self::Absent,
            1 => Self::Joined,
            2 => Self::Left,
            _ => return None,
        })
    }
}

/// Cells of a ring: with the control lines before them they fill two pages.
pub const RING_CELLS: usize = 112;
/// Bytes of a pair's bulk area. Small enough to stay in a core's second-level cache.
pub const BULK_BYTES: usize = 128 * 1024;
/// Copy slots of a pair: long messages that may be under way at once; further ones wait.
pub const COPY_SLOTS: usize = 12;

/// Offsets in a pair.
pub mod pair {
    use super::*;
    /// Written by the receiver: cells and bulk bytes it has consumed, and what reading costs it.
    pub const CREDITS: usize = 0;
    /// Written by the sender: 1 while it waits for credits.
    pub const STARVED: usize = 64;
    pub const SLOTS: usize = 256;
    pub const CELLS: usize = SLOTS + COPY_SLOTS * 64;
    pub const BULK: usize = CELLS + RING_CELLS * CELL_BYTES;
    pub const BYTES: usize = BULK + BULK_BYTES;
}
const _: () = assert!(pair::BULK == 2 * PAGE_BYTES);

/// Bytes of one collective block. A communicator takes blocks as it needs them; [`Geometry::blocks`] is how many there
/// are.
pub const BLOCK_BYTES: usize = 256 * 1024;
/// The longest run of blocks that can be given back.
pub const MOST_BLOCKS_IN_A_ROW: usize = 256;

/// What the beginning of a segment says to a tool that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    Segment(Geometry),
    OtherVersion(u32),
    /// Not a segment.
    Foreign,
}

impl Heading {
    /// Reads the first bytes of a segment; a claim of whoever made it.
    pub fn parse(bytes: &[u8]) -> Self {
        let Some((first, rest)) = bytes.split_first_chunk::<8>() else { return Self::Foreign };
        let word = |at: usize| rest.get(at - 8..)?.first_chunk().map(|word| u32::from_le_bytes(*word));
        match (u64::from_le_bytes(*first), word(header::VERSION), word(header::MEMBERS).and_then(Geometry::new)) {
            (MAGIC, Some(VERSION), Some(geometry)) => Self::Segment(geometry),
            (MAGIC, Some(version), _) if version != VERSION => Self::OtherVersion(version),
            _ => Self::Foreign,
        }
    }
}

/// Where things stand in a segment of `members`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub members: u32,
    has_blocks: bool,
}

impl Geometry {
    /// `None` if `members` is not in 1..=[`MAX_MEMBERS`].
    pub const fn new(members: u32) -> Option<Self> {
        if members == 0 || members > MAX_MEMBERS { None } else { Some(Self { members, has_blocks: true }) }
    }

    /// That of a segment of two processes of different jobs, which has no collective blocks.
    pub const fn of_two() -> Self {
        Self { members: 2, has_blocks: false }
    }

    pub const fn mailbox(&self, member: u32) -> usize {
        PAGE_BYTES + member as usize * 2 * PAGE_BYTES
    }

    pub const fn status(&self, member: u32) -> usize {
        self.mailbox(member) + PAGE_BYTES
    }

    /// Collective blocks of the segment: enough for a few hundred communicators of all members.
    pub const fn blocks(&self) -> usize {
        if self.has_blocks { 256 + 64 * self.members as usize } else { 0 }
    }

    pub const fn block(&self, index: usize) -> usize {
        self.mailbox(self.members) + index * BLOCK_BYTES
    }

    /// The pair in which `from` sends to `to`.
    pub const fn pair(&self, from: u32, to: u32) -> usize {
        self.block(self.blocks()) + (to as usize * self.members as usize + from as usize) * pair::BYTES
    }

    /// Bytes of a section, and of a segment of two.
    pub const fn bytes(&self) -> usize {
        self.pair(self.members, self.members - 1)
    }

    /// Where the section of an interface begins.
    pub const fn section(&self, interface: InterfaceName) -> usize {
        self.bytes() * interface.number() as usize
    }

    /// Bytes of a segment with the sections of all interfaces.
    pub const fn bytes_of_all(&self) -> usize {
        self.bytes() * InterfaceName::ALL.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_do_not_overlap_and_end_at_the_end() {
        let all = [1, 2, 3, 64, 4096].map(|members| Geometry::new(members).expect("in range"));
        for g in all.into_iter().chain([Geometry::of_two()]) {
            let members = g.members;
            assert_eq!(g.mailbox(0), PAGE_BYTES);
            assert!(g.status(members - 1) + PAGE_BYTES <= g.block(0));
            assert_eq!(g.block(g.blocks()), g.pair(0, 0));
            assert_eq!(g.pair(members - 1, members - 1) + pair::BYTES, g.bytes());
            assert_eq!(g.pair(0, 0) % PAGE_BYTES, 0);
        }
    }

    #[test]
    fn a_heading_is_believed_only_whole() {
        let heading = |magic: u64, version: u32, members: u32| {
            Heading::parse(&[&magic.to_le_bytes()[..], &version.to_le_bytes(), &members.to_le_bytes()].concat())
        };
        assert_eq!(heading(MAGIC, VERSION, 3), Heading::Segment(Geometry::new(3).expect("in range")));
        assert_eq!(heading(MAGIC, VERSION + 1, 3), Heading::OtherVersion(VERSION + 1));
        assert_eq!(heading(MAGIC, VERSION, 0), Heading::Foreign);
        assert_eq!(heading(!MAGIC, VERSION, 3), Heading::Foreign);
        assert_eq!(Heading::parse(&MAGIC.to_le_bytes()), Heading::Foreign);
    }

    #[test]
    fn the_lists_of_blocks_fit_into_the_header() {
        let last = header::given_back(MOST_BLOCKS_IN_A_ROW).expect("a list");
        assert!(last + 8 <= PAGE_BYTES && header::NEXT_BLOCK + 8 <= header::given_back(1).expect("a list"));
        assert_eq!((header::given_back(0), header::given_back(MOST_BLOCKS_IN_A_ROW + 1)), (None, None));
    }

    #[test]
    fn the_sets_of_senders_fit_between_doorbell_and_pid() {
        assert!(mailbox::ACTIVE + MAX_MEMBERS as usize / 8 <= mailbox::CUT_OFF);
        assert!(mailbox::CUT_OFF + MAX_MEMBERS as usize / 8 <= mailbox::PID);
    }

    #[test]
    fn no_segment_without_members() {
        assert_eq!(Geometry::new(0), None);
        assert_eq!(Geometry::new(MAX_MEMBERS + 1), None);
    }
}
