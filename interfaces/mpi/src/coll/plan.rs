//! What goes through the shared memory of a group, and what of it by messages.
//!
//! Blocking collectives but scans and those of neighbours use shared memory where all 2 to 256 members are on one host;
//! reductions do with predefined operations on predefined types. What is long goes by messages where these are faster:
//! blocks of an allgather above 1 MiB, of an all to all of which not all fit into a buffer, of a gather or scatter
//! above 16 KiB; broadcasts and reductions above 28 KiB between two ranks, and broadcasts above 4 MiB among more
//! (decision 8). Messages follow an algorithm chosen by length and number of ranks, or prescribed by `WEFT_ALGORITHMS`.

use super::Team;
use super::call::{CheckedCall, PreparedCall, Scene};
use super::prepare::movement::{Allgather, Alltoall, Rooted};
use super::team::Refuses;
use crate::error::Result;
use weft_collective::schedule::{Area, View};
use weft_collective::shared::SharedPiece;
use weft_fabric::settings::Algorithms;

/// Longest block of an allgather that goes through shared memory.
pub const ALLGATHER_BYTES: usize = 1 << 20;

/// Views of the program's memory as pieces of it. What does not lie in one piece is packed.
struct MemoryPieces {
    pieces: Vec<SharedPiece>,
    packed: Vec<Option<Box<[u8]>>>,
}

impl MemoryPieces {
    /// # Safety
    /// The buffers of `prepared` hold the views.
    unsafe fn new(prepared: &PreparedCall, views: &[View], pack: bool) -> Self {
        let (mut pieces, mut all_packed) = (Vec::with_capacity(views.len()), Vec::new());
        for (index, &view) in views.iter().enumerate() {
            let bytes = prepared.schedule.size(view) as usize;
            let Some(flat) = prepared.schedule.flat(view) else {
                let mut packed = vec![0; bytes].into_boxed_slice();
                if pack {
                    // SAFETY: the caller's promise; there is room for the packed bytes.
                    unsafe {
                        let shape = prepared.schedule.shape(view.shape);
                        shape.pack(address(prepared, view), view.count, packed.as_mut_ptr());
                    }
                }
                pieces.push(SharedPiece { at: packed.as_mut_ptr(), bytes });
                all_packed.resize_with(index, || None);
                all_packed.push(Some(packed));
                continue;
            };
            pieces.push(SharedPiece { at: address(prepared, flat), bytes });
        }
        Self { pieces, packed: all_packed }
    }

    /// Pieces that are sent.
    ///
    /// # Safety
    /// As [`Self::new`], for reading.
    unsafe fn sent(prepared: &PreparedCall, views: &[View]) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::new(prepared, views, true) }
    }

    /// Pieces that are received into; [`Self::unpack`] brings them to their places.
    ///
    /// # Safety
    /// As [`Self::new`], for writing.
    unsafe fn received(prepared: &PreparedCall, views: &[View]) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::new(prepared, views, false) }
    }

    fn at(&self) -> impl Fn(u32) -> SharedPiece {
        |member| self.pieces[member as usize]
    }

    /// Brings those pieces to their places that are not there and that `wanted` names.
    ///
    /// # Safety
    /// As [`Self::received`].
    unsafe fn unpack(&self, prepared: &PreparedCall, views: &[View], wanted: impl Fn(u32) -> bool) {
        for (member, (packed, &view)) in (0..).zip(self.packed.iter().zip(views)) {
            if let Some(packed) = packed.as_ref().filter(|_| wanted(member)) {
                let shape = prepared.schedule.shape(view.shape);
                // SAFETY: the caller's promise; the view has so many packed bytes.
                unsafe { shape.unpack(packed.as_ptr(), address(prepared, view), view.count) };
            }
        }
    }
}

fn address(prepared: &PreparedCall, view: View) -> *mut u8 {
    let base = if view.area == Area::Input { prepared.input.cast_mut() } else { prepared.output };
    base.wrapping_offset(view.at as isize)
}

impl CheckedCall for Allgather {
    unsafe fn share(&mut self, team: &Team) -> Result<bool> {
        let (prepared, me) = (&self.prepared, self.me.rank as usize);
        let sizes = |member: u32| prepared.schedule.size(self.places[member as usize]) as usize;
        let mine = self.mine.unwrap_or(self.places[me]);
        if (0..team.size).any(|member| sizes(member) > ALLGATHER_BYTES) {
            let bytes = prepared.schedule.size(mine) as usize;
            let alike = match bytes == sizes(self.me.rank) {
                true => team.announce("MPI_Allgather", bytes, sizes),
                false => team.give_up("MPI_Allgather"),
            };
            return alike.map(|()| false).map_err(|differs| differs.against(sizes));
        }
        // SAFETY: the caller's promise.
        unsafe {
            let (sent, rooms) = (MemoryPieces::sent(prepared, &[mine]), MemoryPieces::received(prepared, &self.places));
            let in_place = self.mine.is_none() && rooms.packed.get(me).is_none_or(Option::is_none);
            let alike = team.allgather(if in_place { rooms.pieces[me] } else { sent.pieces[0] }, rooms.at());
            alike.map_err(|differs| differs.against(sizes))?;
            rooms.unpack(prepared, &self.places, |_| true);
        }
        Ok(true)
    }

    fn prepare(self, scene: &Scene) -> PreparedCall {
        self.into_prepared(scene.hosts())
    }

    fn is_prescribed(algorithms: &Algorithms) -> bool {
        algorithms.allgather.is_some()
    }

    fn prepared(&mut self) -> &mut PreparedCall {
        &mut self.prepared
    }
}

impl CheckedCall for Alltoall {
    unsafe fn share(&mut self, team: &Team) -> Result<bool> {
        let prepared = &self.prepared;
        let inputs = self.inputs.as_ref().unwrap_or(&self.outputs);
        let (sent, block) =
            (prepared.schedule.size(inputs[0]) as usize, prepared.schedule.size(self.outputs[0]) as usize);
        if self.equal && sent.max(block) > team.dealt_bytes() {
            let alike = match sent == block {
                true => team.announce("MPI_Alltoall", sent, |_| block),
                false => team.give_up("MPI_Alltoall"),
            };
            return alike.map(|()| false).map_err(|differs| differs.error(block));
        }
        // SAFETY: the caller's promise.
        unsafe {
            let (given, taken) =
                (MemoryPieces::sent(prepared, inputs), MemoryPieces::received(prepared, &self.outputs));
            let done = match self.equal {
                true => team.alltoall(given.at(), sent, taken.at(), block, None).map(|()| true),
                false => team.alltoallv(given.at(), taken.at(), self.inputs.is_some()),
            };
            let done = done.map_err(|differs| differs.against(|member| taken.pieces[member as usize].bytes))?;
            if done {
                taken.unpack(prepared, &self.outputs, |_| true);
            }
            Ok(done)
        }
    }

    fn prepare(self, _: &Scene) -> PreparedCall {
        self.into_prepared()
    }

    fn is_prescribed(algorithms: &Algorithms) -> bool {
        algorithms.alltoall.is_some()
    }

    fn prepared(&mut self) -> &mut PreparedCall {
        &mut self.prepared
    }
}

pub struct Gather(pub Rooted);
pub struct Scatter(pub Rooted);

impl Rooted {
    fn is_root(&self) -> bool {
        self.me.rank == self.root
    }

    fn size(&self, view: View) -> usize {
        self.prepared.schedule.size(view) as usize
    }

    /// Our own data, where it lies in place at the root.
    fn own(&self) -> View {
        self.mine.unwrap_or_else(|| self.blocks[self.root as usize])
    }

    /// Leaves to messages what is longer than `most`. True if that is nothing.
    fn leave(&mut self, most: usize) -> bool {
        if !self.is_root() {
            return self.size(self.own()) <= most;
        }
        // Our own has been copied, and so has what is short.
        self.mine = None;
        let mut done = true;
        for rank in 0..self.blocks.len() {
            let long = self.size(self.blocks[rank]) > most;
            done &= !long || rank == self.root as usize;
            if !long {
                self.blocks[rank].count = 0;
            }
        }
        done
    }
}

impl CheckedCall for Gather {
    unsafe fn share(&mut self, team: &Team) -> Result<bool> {
        let Self(plan) = self;
        let most = team.gathered_bytes();
        // SAFETY: the caller's promise.
        unsafe {
            let sent = MemoryPieces::sent(&plan.prepared, &[plan.own()]);
            let rooms = MemoryPieces::received(&plan.prepared, &plan.blocks);
            let mine = match plan.mine {
                Some(_) => sent.pieces[0],
                None => rooms.pieces[plan.root as usize],
            };
            let alike = team.gather(plan.root, mine, rooms.at(), plan.block_bytes.is_some());
            alike.map_err(|differs| differs.against(|member| rooms.pieces[member as usize].bytes))?;
            rooms.unpack(&plan.prepared, &plan.blocks, |member| {
                let has_come = rooms.pieces[member as usize].bytes <= most;
                if member == plan.root { plan.mine.is_some() } else { has_come }
            });
        }
        Ok(plan.leave(most))
    }

    fn prepare(self, _: &Scene) -> PreparedCall {
        self.0.into_gather()
    }

    fn is_prescribed(algorithms: &Algorithms) -> bool {
        algorithms.gather.is_some()
    }

    fn prepared(&mut self) -> &mut PreparedCall {
        &mut self.0.prepared
    }
}

impl CheckedCall for Scatter {
    unsafe fn share(&mut self, team: &Team) -> Result<bool> {
        let Self(plan) = self;
        let most = team.scattered_bytes();
        // SAFETY: the caller's promise.
        unsafe {
            let blocks = MemoryPieces::sent(&plan.prepared, &plan.blocks);
            let room = MemoryPieces::received(&plan.prepared, &[plan.own()]);
            let mine = match plan.mine {
                Some(_) => room.pieces[0],
                None => blocks.pieces[plan.root as usize],
            };
            let alike = match plan.block_bytes {
                Some(bytes) => team.scatter(plan.root, blocks.at(), bytes as usize, mine),
                None => team.scatterv(plan.root, blocks.at(), mine),
            };
            alike.map_err(|differs| differs.error(mine.bytes))?;
            let has_come = plan.is_root() || mine.bytes <= most;
            room.unpack(&plan.prepared, &[plan.own()], |_| has_come && plan.mine.is_some());
        }
        Ok(plan.leave(most))
    }

    fn prepare(self, _: &Scene) -> PreparedCall {
        self.0.into_scatter()
    }

    fn is_prescribed(algorithms: &Algorithms) -> bool {
        algorithms.scatter.is_some()
    }

    fn prepared(&mut self) -> &mut PreparedCall {
        &mut self.0.prepared
    }
}
