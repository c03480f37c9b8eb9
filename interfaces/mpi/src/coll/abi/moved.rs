//! The blocking calls that move data between all: on shared memory where that serves, else by messages.

use super::shared::{datatype, team};
use crate::abi::{Counts, Described, IN_PLACE};
use crate::coll::Team;
use crate::coll::call::{CheckedCall, Scene, planned, rest_by_messages};
use crate::coll::plan::{ALLGATHER_BYTES, Gather, Scatter};
use crate::coll::prepare::movement::{Allgather, Alltoall, MovementSide, Rooted};
use crate::coll::team::Refuses;
use crate::comm::Comm;
use crate::error::Result;
use std::ffi::c_void;
use std::ptr::NonNull;
use weft_collective::shared::SharedPiece;
use weft_fabric::settings::Algorithms;

/// # Safety
/// The program's buffers are as the arguments say, here and below.
pub unsafe fn gather(
    call: &'static str,
    comm: usize,
    mine: Described,
    all: MovementSide,
    root: i32,
    messages: impl FnOnce() -> Result<()>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let rooms = || Plain::of(&all);
        let is_equal = matches!(all, MovementSide::Uniform(_));
        if let Some(plain) =
            PlainRooted::new(call, Plain::one(mine), rooms, root, comm, Gather::is_prescribed, Team::gathered_bytes)?
        {
            plain.comm.collective.next_tag();
            let alike = plain.team.gather(plain.root, plain.mine, plain.block(), is_equal);
            return alike.map_err(|differs| differs.against(|member| plain.block()(member).bytes));
        }
        planned(call, comm, |scene| Ok(Gather(Rooted::gather(scene, mine, all, root)?)), messages)
    }
}

pub unsafe fn scatter(
    call: &'static str,
    comm: usize,
    all: MovementSide,
    mine: Described,
    root: i32,
    messages: impl FnOnce() -> Result<()>,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let blocks = || Plain::of(&all);
        let is_equal = matches!(all, MovementSide::Uniform(_));
        if let Some(plain) =
            PlainRooted::new(call, Plain::one(mine), blocks, root, comm, Scatter::is_prescribed, Team::scattered_bytes)?
        {
            plain.comm.collective.next_tag();
            let alike = match is_equal {
                true => plain.team.scatter(plain.root, plain.block(), plain.mine.bytes, plain.mine),
                false => plain.team.scatterv(plain.root, plain.block(), plain.mine),
            };
            return alike.map_err(|differs| differs.error(plain.mine.bytes));
        }
        planned(call, comm, |scene| Ok(Scatter(Rooted::scatter(scene, all, mine, root)?)), messages)
    }
}

pub unsafe fn allgather(
    call: &'static str,
    comm: usize,
    mine: Described,
    all: MovementSide,
    messages: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let (given, taken) = (Plain::one(mine), Plain::of(&all));
    if let Some(plain) = PlainPair::new(call, given, taken, comm, Allgather::is_prescribed, |_| ALLGATHER_BYTES)? {
        plain.count();
        let rooms = |member| plain.taken.piece(member);
        // SAFETY: the caller's promise.
        let alike = unsafe { plain.team.allgather(plain.given.piece(0), rooms) };
        return alike.map_err(|differs| differs.against(|member| rooms(member).bytes));
    }
    // SAFETY: the caller's promise.
    unsafe { planned(call, comm, |scene| Allgather::new(scene, mine, all), messages) }
}

pub unsafe fn alltoall(
    call: &'static str,
    comm: usize,
    sent: Described,
    received: Described,
    messages: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let (sent, received) = (MovementSide::Uniform(sent), MovementSide::Uniform(received));
    let (given, taken) = (Plain::of(&sent), Plain::of(&received));
    if let Some(plain) = PlainPair::new(call, given, taken, comm, Alltoall::is_prescribed, Team::dealt_bytes)? {
        plain.count();
        let (inputs, outputs) = (|member| plain.given.piece(member), |member| plain.taken.piece(member));
        let (block, all) = (outputs(0).bytes, plain.given.all(plain.team.size));
        // SAFETY: the caller's promise.
        let alike = unsafe { plain.team.alltoall(inputs, block, outputs, block, Some(all)) };
        return alike.map_err(|differs| differs.error(block));
    }
    // SAFETY: the caller's promise.
    unsafe { planned(call, comm, |scene| Alltoall::new(scene, sent, received), messages) }
}

pub unsafe fn alltoallv(
    call: &'static str,
    comm: usize,
    sent: MovementSide,
    received: MovementSide,
    messages: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let check = |scene: &Scene| Alltoall::new(scene, sent, received);
    let (given, taken) = (Plain::of(&sent), Plain::of(&received));
    let plain = PlainPair::new(call, given, taken, comm, Alltoall::is_prescribed, |_| usize::MAX >> 1)?;
    // SAFETY: the caller's promise.
    unsafe {
        let Some(plain) = plain else { return planned(call, comm, check, messages) };
        let (inputs, outputs) = (|member| plain.given.piece(member), |member| plain.taken.piece(member));
        match plain.team.alltoallv(inputs, outputs, true) {
            Ok(true) => {
                plain.count();
                Ok(())
            }
            Ok(false) => rest_by_messages(call, comm, check),
            Err(differs) => {
                plain.count();
                Err(differs.against(|member| outputs(member).bytes))
            }
        }
    }
}

/// One side of a call: elements without gaps, in blocks. Every field is a word: a shorter one would be copied together
/// with its neighbour, by loads that have to wait for the stores before them.
#[derive(Clone, Copy)]
struct Plain {
    at: NonNull<u8>,
    /// Bytes of an element.
    size: usize,
    count: i64,
    kind: BlocksKind,
    counts: *const c_void,
    displacements: *const c_void,
}

/// How the blocks of one side of a call lie in its buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum BlocksKind {
    One,
    /// One after the other, as long as each other.
    Equal,
    /// By counts and displacements, which are words of the one length or the other.
    Own,
    OwnWide,
}

impl Plain {
    /// A side of one block. `None`, here and below, where the general way has to look closer.
    #[inline]
    fn one(side: Described) -> Option<Self> {
        Self::new(side.buffer, side.count, side.datatype, BlocksKind::One, [std::ptr::null(); 2])
    }

    /// A side of a block for each member.
    #[inline]
    fn of(side: &MovementSide) -> Option<Self> {
        match *side {
            MovementSide::Uniform(side) => {
                Self::new(side.buffer, side.count, side.datatype, BlocksKind::Equal, [std::ptr::null(); 2])
            }
            MovementSide::Various(side) => {
                let (counts, displacements) = (side.counts, side.displacements);
                if counts.is_null() || displacements.is_null() || counts.wide != displacements.wide {
                    return None;
                }
                let kind = if counts.wide { BlocksKind::OwnWide } else { BlocksKind::Own };
                Self::new(side.buffer, 0, side.datatype, kind, [counts.at, displacements.at])
            }
            MovementSide::Mixed(_) => None,
        }
    }

    #[inline]
    fn new(
        buffer: *const c_void,
        count: i64,
        handle: usize,
        kind: BlocksKind,
        [counts, displacements]: [*const c_void; 2],
    ) -> Option<Self> {
        let held = datatype(handle)?;
        let (offset, size) = held.contiguous_span(1).filter(|_| held.is_contiguous(2))?;
        // Of nothing any address will do.
        let is_nothing = buffer.is_null() && count == 0 && matches!(kind, BlocksKind::One | BlocksKind::Equal);
        if (buffer.is_null() && !is_nothing) || buffer as usize == IN_PLACE {
            return None;
        }
        let at = match is_nothing {
            true => NonNull::dangling(),
            false => NonNull::new(buffer.cast_mut().cast::<u8>().wrapping_offset(offset as isize))?,
        };
        Some(Self { at, size: usize::try_from(size).ok()?, count, kind, counts, displacements })
    }

    fn has_own(&self) -> bool {
        matches!(self.kind, BlocksKind::Own | BlocksKind::OwnWide)
    }

    /// The element of one of the arrays for `member`.
    #[inline]
    fn element(&self, array: *const c_void, member: u32) -> i64 {
        let array = Counts { at: array, wide: self.kind == BlocksKind::OwnWide };
        // SAFETY: the array has an element for each member, as the standard demands.
        unsafe { array.get(member as usize) }
    }

    #[inline]
    fn count(&self, member: u32) -> i64 {
        if self.has_own() { self.element(self.counts, member) } else { self.count }
    }

    /// Whether each of the blocks has at most so many bytes.
    fn fits(&self, members: u32, most: usize) -> bool {
        let fits = |member| usize::try_from(self.count(member)).is_ok_and(|count| count <= most / self.size.max(1));
        if self.has_own() { (0..members).all(fits) } else { fits(0) }
    }

    /// Whether the two may be the same memory.
    fn meets(&self, other: &Self) -> bool {
        self.at == other.at && (self.count != 0 || self.has_own() || other.has_own())
    }

    /// Whether the block of `member` is as long as that of `other`, and lies elsewhere.
    fn is_apart(&self, member: u32, other: &Self, of: u32) -> bool {
        let (mine, theirs) = (self.piece(member), other.piece(of));
        mine.bytes == theirs.bytes && (mine.at != theirs.at || mine.bytes == 0)
    }

    /// Blocks that lie one after the other.
    fn all(&self, members: u32) -> SharedPiece {
        SharedPiece { at: self.at.as_ptr(), bytes: members as usize * self.piece(0).bytes }
    }

    #[inline]
    fn piece(&self, member: u32) -> SharedPiece {
        let bytes = self.count(member) as usize * self.size;
        let from = match self.kind {
            BlocksKind::One => 0,
            BlocksKind::Equal => member as usize * bytes,
            BlocksKind::Own | BlocksKind::OwnWide => {
                (self.element(self.displacements, member) as usize).wrapping_mul(self.size)
            }
        };
        SharedPiece { at: self.at.as_ptr().wrapping_add(from), bytes }
    }
}

/// A call about which nothing is doubtful, and of which everything goes through shared memory.
struct PlainPair {
    comm: &'static Comm,
    team: &'static Team,
    given: Plain,
    taken: Plain,
}

impl PlainPair {
    /// `most`: the longest block.
    fn new(
        call: &'static str,
        given: Option<Plain>,
        taken: Option<Plain>,
        comm: usize,
        is_prescribed: impl FnOnce(&Algorithms) -> bool,
        most: impl FnOnce(&Team) -> usize,
    ) -> Result<Option<Self>> {
        let (Some(given), Some(taken)) = (given, taken) else { return Ok(None) };
        let Some((comm, team)) = team(comm, call, is_prescribed)? else { return Ok(None) };
        let most = most(team);
        let plain = !given.meets(&taken) && given.fits(team.size, most) && taken.fits(team.size, most);
        Ok((plain && given.is_apart(team.me, &taken, team.me)).then_some(Self { comm, team, given, taken }))
    }

    /// As every call that goes this way, whether plain or not.
    fn count(&self) -> i32 {
        self.comm.collective.next_tag()
    }
}

/// The root's part in a gather or scatter, or another one's.
struct PlainRooted {
    comm: &'static Comm,
    team: &'static Team,
    root: u32,
    mine: SharedPiece,
    blocks: Option<Plain>,
}

impl PlainRooted {
    fn new(
        call: &'static str,
        mine: Option<Plain>,
        blocks: impl FnOnce() -> Option<Plain>,
        root: i32,
        comm: usize,
        is_prescribed: impl FnOnce(&Algorithms) -> bool,
        most: impl FnOnce(&Team) -> usize,
    ) -> Result<Option<Self>> {
        let Some(mine) = mine else { return Ok(None) };
        let Some((comm, team)) = team(comm, call, is_prescribed)? else { return Ok(None) };
        let Some(root) = u32::try_from(root).ok().filter(|root| *root < team.size) else { return Ok(None) };
        let most = most(team);
        if !mine.fits(1, most) {
            return Ok(None);
        }
        let mut plain = Self { comm, team, root, mine: mine.piece(0), blocks: None };
        if team.me == root {
            plain.blocks = blocks().filter(|blocks| {
                blocks.fits(team.size, most) && !blocks.meets(&mine) && blocks.is_apart(root, &mine, 0)
            });
        }
        Ok((team.me != root || plain.blocks.is_some()).then_some(plain))
    }

    /// At the root; nobody else asks.
    fn block(&self) -> impl Fn(u32) -> SharedPiece {
        move |member| self.blocks.as_ref().map_or(self.mine, |blocks| blocks.piece(member))
    }
}
