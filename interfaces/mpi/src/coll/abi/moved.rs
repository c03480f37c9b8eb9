//! The blocking calls that move data between all: shared memory where it serves, else messages.

use super as messages;
use super::nothing::{are_empty, is_over};
use super::shared::{datatype, team};
use super::{mixed, uniform, various};
use crate::abi::{Counts, IN_PLACE};
use crate::coll::call::{Plan, Scene, planned, rest_by_messages};
use crate::coll::plan::{ALLGATHER_BYTES, Gather, Scatter};
use crate::coll::prepare::movement::{self, Allgather, Alltoall, Blocks, Rooted};
use crate::coll::shared::{Piece, Team};
use crate::comm::Comm;
use crate::error::Result;
use crate::world::WORLD;
use std::ffi::c_void;
use std::ptr::NonNull;
use weft_fabric::settings::Algorithms;

/// Whether the call is one between two groups, which goes by messages. A handle that is not valid is none.
fn is_inter(comm: usize) -> bool {
    WORLD.enter().comm(comm).is_ok_and(|comm| comm.is_inter())
}

pub unsafe fn gather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: usize,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: usize,
    root: i32,
    comm: usize,
) -> Result<()> {
    let is_nothing = are_empty((sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype));
    if is_nothing && is_over("MPI_Gather", comm, Some(root), true, Gather::is_prescribed)? {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe {
        if is_inter(comm) {
            return messages::gather_by_messages(
                sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm,
            );
        }
        let mine = Side::new(sendbuf, sendcount, sendtype, List::One);
        let rooms = || Side::new(recvbuf, recvcount, recvtype, List::Equal);
        if let Some(plain) =
            PlainRooted::new("MPI_Gather", mine, rooms, root, comm, Gather::is_prescribed, Team::gathered_bytes)?
        {
            plain.comm.collective.next_tag();
            let alike = plain.team.gather(plain.root, plain.mine, plain.block(), true);
            return alike.map_err(|differs| differs.against(|member| plain.block()(member).bytes));
        }
        planned("MPI_Gather", comm, |scene| {
            let all = Blocks::Uniform(uniform(recvbuf, recvcount, recvtype));
            Ok(Gather(Rooted::gather(scene, uniform(sendbuf, sendcount, sendtype), all, root)?))
        })
    }
}

pub unsafe fn gatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: usize,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    displs: Counts,
    recvtype: usize,
    root: i32,
    comm: usize,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        if is_inter(comm) {
            return messages::gatherv_by_messages(
                sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm,
            );
        }
        let mine = Side::new(sendbuf, sendcount, sendtype, List::One);
        let rooms = || Side::new(recvbuf, 0, recvtype, List::Own(recvcounts, displs));
        if let Some(plain) =
            PlainRooted::new("MPI_Gatherv", mine, rooms, root, comm, Gather::is_prescribed, Team::gathered_bytes)?
        {
            plain.comm.collective.next_tag();
            let alike = plain.team.gather(plain.root, plain.mine, plain.block(), false);
            return alike.map_err(|differs| differs.against(|member| plain.block()(member).bytes));
        }
        planned("MPI_Gatherv", comm, |scene| {
            let all = Blocks::Various(various(recvbuf, recvcounts, displs, recvtype));
            Ok(Gather(Rooted::gather(scene, uniform(sendbuf, sendcount, sendtype), all, root)?))
        })
    }
}

pub unsafe fn scatter(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: usize,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: usize,
    root: i32,
    comm: usize,
) -> Result<()> {
    let is_nothing = are_empty((sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype));
    if is_nothing && is_over("MPI_Scatter", comm, Some(root), true, Scatter::is_prescribed)? {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe {
        if is_inter(comm) {
            return messages::scatter_by_messages(
                sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm,
            );
        }
        let mine = Side::new(recvbuf, recvcount, recvtype, List::One);
        let blocks = || Side::new(sendbuf, sendcount, sendtype, List::Equal);
        if let Some(plain) =
            PlainRooted::new("MPI_Scatter", mine, blocks, root, comm, Scatter::is_prescribed, Team::scattered_bytes)?
        {
            plain.comm.collective.next_tag();
            let alike = plain.team.scatter(plain.root, plain.block(), plain.mine.bytes, plain.mine);
            return alike.map_err(|differs| differs.error(plain.mine.bytes));
        }
        planned("MPI_Scatter", comm, |scene| {
            let all = Blocks::Uniform(uniform(sendbuf, sendcount, sendtype));
            Ok(Scatter(Rooted::scatter(scene, all, uniform(recvbuf, recvcount, recvtype), root)?))
        })
    }
}

pub unsafe fn scatterv(
    sendbuf: *const c_void,
    sendcounts: Counts,
    displs: Counts,
    sendtype: usize,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: usize,
    root: i32,
    comm: usize,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        if is_inter(comm) {
            return messages::scatterv_by_messages(
                sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm,
            );
        }
        let mine = Side::new(recvbuf, recvcount, recvtype, List::One);
        let blocks = || Side::new(sendbuf, 0, sendtype, List::Own(sendcounts, displs));
        if let Some(plain) =
            PlainRooted::new("MPI_Scatterv", mine, blocks, root, comm, Scatter::is_prescribed, Team::scattered_bytes)?
        {
            plain.comm.collective.next_tag();
            let alike = plain.team.scatterv(plain.root, plain.block(), plain.mine);
            return alike.map_err(|differs| differs.error(plain.mine.bytes));
        }
        planned("MPI_Scatterv", comm, |scene| {
            let all = Blocks::Various(various(sendbuf, sendcounts, displs, sendtype));
            Ok(Scatter(Rooted::scatter(scene, all, uniform(recvbuf, recvcount, recvtype), root)?))
        })
    }
}

/// How the blocks of one side of a call lie in its buffer.
#[derive(Clone, Copy)]
enum List {
    One,
    /// One after the other, as long as each other.
    Equal,
    /// Counts and displacements.
    Own(Counts, Counts),
}

/// One side of a call: elements without gaps, in blocks. Every field is a word: a shorter one would be copied together with
/// its neighbour, by loads that have to wait for the stores before them.
#[derive(Clone, Copy)]
struct Side {
    at: NonNull<u8>,
    /// Bytes of an element.
    size: usize,
    count: i64,
    kind: Kind,
    counts: *const c_void,
    displacements: *const c_void,
}

/// A [`List`] without its arrays.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Kind {
    One,
    Equal,
    Own,
    OwnWide,
}

impl Side {
    /// `None` where the general way has to look closer.
    #[inline]
    fn new(buffer: *const c_void, count: i64, handle: usize, list: List) -> Option<Self> {
        let held = datatype(handle)?;
        let (offset, size) = held.contiguous_span(1).filter(|_| held.is_contiguous(2))?;
        // Of nothing any address will do.
        let is_nothing = buffer.is_null() && count == 0 && !matches!(list, List::Own(..));
        if (buffer.is_null() && !is_nothing) || buffer as usize == IN_PLACE {
            return None;
        }
        let (kind, counts, displacements) = match list {
            List::One => (Kind::One, std::ptr::null(), std::ptr::null()),
            List::Equal => (Kind::Equal, std::ptr::null(), std::ptr::null()),
            List::Own(counts, displacements) if counts.is_null() || displacements.is_null() => return None,
            List::Own(counts, displacements) if counts.wide != displacements.wide => return None,
            List::Own(counts, displacements) => {
                (if counts.wide { Kind::OwnWide } else { Kind::Own }, counts.at, displacements.at)
            }
        };
        let at = match is_nothing {
            true => NonNull::dangling(),
            false => NonNull::new(buffer.cast_mut().cast::<u8>().wrapping_offset(offset as isize))?,
        };
        Some(Self { at, size: usize::try_from(size).ok()?, count, kind, counts, displacements })
    }

    fn has_own(&self) -> bool {
        matches!(self.kind, Kind::Own | Kind::OwnWide)
    }

    /// The element of one of the arrays for `member`.
    #[inline]
    fn element(&self, array: *const c_void, member: u32) -> i64 {
        let array = Counts { at: array, wide: self.kind == Kind::OwnWide };
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
    fn all(&self, members: u32) -> Piece {
        Piece { at: self.at.as_ptr(), bytes: members as usize * self.piece(0).bytes }
    }

    #[inline]
    fn piece(&self, member: u32) -> Piece {
        let bytes = self.count(member) as usize * self.size;
        let from = match self.kind {
            Kind::One => 0,
            Kind::Equal => member as usize * bytes,
            Kind::Own | Kind::OwnWide => (self.element(self.displacements, member) as usize).wrapping_mul(self.size),
        };
        Piece { at: self.at.as_ptr().wrapping_add(from), bytes }
    }
}

/// A call about which nothing is doubtful, and of which everything goes through shared memory.
struct Plain {
    comm: &'static Comm,
    team: &'static Team,
    given: Side,
    taken: Side,
}

impl Plain {
    /// `most`: the longest block.
    fn new(
        call: &'static str,
        given: Option<Side>,
        taken: Option<Side>,
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
    mine: Piece,
    blocks: Option<Side>,
}

impl PlainRooted {
    fn new(
        call: &'static str,
        mine: Option<Side>,
        blocks: impl FnOnce() -> Option<Side>,
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
    fn block(&self) -> impl Fn(u32) -> Piece {
        move |member| self.blocks.as_ref().map_or(self.mine, |blocks| blocks.piece(member))
    }
}

/// # Safety
/// The program's buffers are as the arguments say.
unsafe fn plain_allgather(
    call: &'static str,
    (sendbuf, sendcount, sendtype): (*const c_void, i64, usize),
    taken: Option<Side>,
    comm: usize,
) -> Result<bool> {
    let given = Side::new(sendbuf, sendcount, sendtype, List::One);
    let Some(plain) = Plain::new(call, given, taken, comm, Allgather::is_prescribed, |_| ALLGATHER_BYTES)? else {
        return Ok(false);
    };
    plain.count();
    let rooms = |member| plain.taken.piece(member);
    // SAFETY: the caller's promise.
    let alike = unsafe { plain.team.allgather(plain.given.piece(0), rooms) };
    alike.map(|()| true).map_err(|differs| differs.against(|member| rooms(member).bytes))
}

pub unsafe fn allgather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: usize,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: usize,
    comm: usize,
) -> Result<()> {
    let call = "MPI_Allgather";
    let is_nothing = are_empty((sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype));
    if is_nothing && is_over(call, comm, None, true, Allgather::is_prescribed)? {
        return Ok(());
    }
    let taken = Side::new(recvbuf, recvcount, recvtype, List::Equal);
    // SAFETY: the caller's promise.
    if unsafe { plain_allgather(call, (sendbuf, sendcount, sendtype), taken, comm)? } {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe {
        if is_inter(comm) {
            return messages::allgather_by_messages(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
        }
        planned(call, comm, |scene| {
            let all = Blocks::Uniform(uniform(recvbuf, recvcount, recvtype));
            Allgather::new(scene, uniform(sendbuf, sendcount, sendtype), all)
        })
    }
}

pub unsafe fn allgatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: usize,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    displs: Counts,
    recvtype: usize,
    comm: usize,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let taken = Side::new(recvbuf, 0, recvtype, List::Own(recvcounts, displs));
        if plain_allgather("MPI_Allgatherv", (sendbuf, sendcount, sendtype), taken, comm)? {
            return Ok(());
        }
        if is_inter(comm) {
            return messages::allgatherv_by_messages(
                sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
            );
        }
        planned("MPI_Allgatherv", comm, |scene| {
            let all = Blocks::Various(various(recvbuf, recvcounts, displs, recvtype));
            Allgather::new(scene, uniform(sendbuf, sendcount, sendtype), all)
        })
    }
}

pub unsafe fn alltoall(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: usize,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: usize,
    comm: usize,
) -> Result<()> {
    let call = "MPI_Alltoall";
    let is_nothing = are_empty((sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype));
    if is_nothing && is_over(call, comm, None, true, Alltoall::is_prescribed)? {
        return Ok(());
    }
    let given = Side::new(sendbuf, sendcount, sendtype, List::Equal);
    let taken = Side::new(recvbuf, recvcount, recvtype, List::Equal);
    if let Some(plain) = Plain::new(call, given, taken, comm, Alltoall::is_prescribed, Team::dealt_bytes)? {
        plain.count();
        let (inputs, outputs) = (|member| plain.given.piece(member), |member| plain.taken.piece(member));
        let block = outputs(0).bytes;
        // SAFETY: the program's buffers are as the arguments say.
        let alike =
            unsafe { plain.team.alltoall(inputs, block, outputs, block, Some(plain.given.all(plain.team.size))) };
        return alike.map_err(|differs| differs.error(block));
    }
    // SAFETY: the caller's promise.
    unsafe {
        if is_inter(comm) {
            return messages::alltoall_by_messages(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
        }
        planned(call, comm, |scene| {
            let sent = movement::Side::Uniform(uniform(sendbuf, sendcount, sendtype));
            Alltoall::new(scene, sent, movement::Side::Uniform(uniform(recvbuf, recvcount, recvtype)))
        })
    }
}

pub unsafe fn alltoallv(
    sendbuf: *const c_void,
    sendcounts: Counts,
    sdispls: Counts,
    sendtype: usize,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    rdispls: Counts,
    recvtype: usize,
    comm: usize,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        if is_inter(comm) {
            return messages::alltoallv_by_messages(
                sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm,
            );
        }
        let call = "MPI_Alltoallv";
        let check = |scene: &Scene| {
            let sent = movement::Side::Various(various(sendbuf, sendcounts, sdispls, sendtype));
            Alltoall::new(scene, sent, movement::Side::Various(various(recvbuf, recvcounts, rdispls, recvtype)))
        };
        let given = Side::new(sendbuf, 0, sendtype, List::Own(sendcounts, sdispls));
        let taken = Side::new(recvbuf, 0, recvtype, List::Own(recvcounts, rdispls));
        let Some(plain) = Plain::new(call, given, taken, comm, Alltoall::is_prescribed, |_| usize::MAX >> 1)? else {
            return planned(call, comm, check);
        };
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

pub unsafe fn alltoallw(
    sendbuf: *const c_void,
    sendcounts: Counts,
    sdispls: Counts,
    sendtypes: *const usize,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    rdispls: Counts,
    recvtypes: *const usize,
    comm: usize,
) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        if is_inter(comm) {
            return messages::alltoallw_by_messages(
                sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm,
            );
        }
        planned("MPI_Alltoallw", comm, |scene| {
            let sent = movement::Side::Mixed(mixed(sendbuf, sendcounts, sdispls, sendtypes));
            Alltoall::new(scene, sent, movement::Side::Mixed(mixed(recvbuf, recvcounts, rdispls, recvtypes)))
        })
    }
}
