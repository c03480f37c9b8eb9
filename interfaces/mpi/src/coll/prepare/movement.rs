//! Barrier, broadcast, gather, scatter, allgather, all to all.

use super::check::{BufferNames, CallDraft, MixedBuffer, ONLY, RECEIVE, SEND, is_in_place, reject_in_place};
use crate::abi::{Described, Various};
use crate::coll::call::{PreparedCall, Scene};
use crate::error::Result;
use std::ffi::c_void;
use weft_collective::algorithm::inter::{self, Role};
use weft_collective::algorithm::levels::Hosts;
use weft_collective::algorithm::{allgather, alltoall, barrier, bcast, gather, levels};
use weft_collective::schedule::{Area, Party, View};
use weft_fabric::settings::algorithms::{self, Gather, Scatter};

pub fn barrier(scene: &Scene) -> Result<PreparedCall> {
    let mut draft = CallDraft::new(scene);
    let me = draft.party();
    let schedule = &mut draft.prepared.schedule;
    match scene.hosts() {
        _ if scene.comm.is_inter() => barrier::inter_barrier(schedule, me),
        Some(hosts) => levels::barrier(schedule, hosts),
        None => barrier::barrier(schedule, me),
    }
    Ok(draft.prepared)
}

pub fn bcast(scene: &Scene, data: Described, root: i32) -> Result<PreparedCall> {
    let mut draft = CallDraft::new(scene);
    let me = draft.party();
    if draft.comm().is_inter() {
        let role = draft.role(root)?;
        if role != Role::Idle {
            let view = draft.single(Area::Output, ONLY, data)?;
            inter::broadcast(&mut draft.prepared.schedule, me, role, view);
        }
        return Ok(draft.prepared);
    }
    let root = draft.root(root)?;
    let view = draft.single(Area::Output, ONLY, data)?;
    match scene.hosts() {
        Some(hosts) => levels::bcast(&mut draft.prepared.schedule, hosts, root, view),
        None => bcast::bcast(&mut draft.prepared.schedule, me, root, view),
    }
    Ok(draft.prepared)
}

/// A buffer of blocks: the receiving side of a gather, the sending one of a scatter, both of an all to all exchange.
#[derive(Clone, Copy)]
pub enum MovementSide {
    Uniform(Described),
    Various(Various),
    Mixed(MixedBuffer),
}

impl MovementSide {
    fn buffer(&self) -> *const c_void {
        match self {
            Self::Uniform(side) => side.buffer,
            Self::Various(side) => side.buffer,
            Self::Mixed(side) => side.buffer,
        }
    }

    pub fn views(&self, draft: &mut CallDraft, area: Area, names: BufferNames, count: u32) -> Result<Vec<View>> {
        match *self {
            Self::Uniform(side) => draft.uniform(area, names, side, count),
            Self::Various(side) => draft.various(area, names, side, count),
            Self::Mixed(side) => draft.mixed(area, names, side, count),
        }
    }
}

/// A gather or scatter inside one group, checked. At the root there is a block for every rank, elsewhere none.
pub struct Rooted {
    pub prepared: PreparedCall,
    pub me: Party,
    pub root: u32,
    /// All blocks have as many bytes, which all ranks know.
    pub block_bytes: Option<u64>,
    /// This rank's own data; `None` at a root in place.
    pub mine: Option<View>,
    pub blocks: Vec<View>,
}

impl Rooted {
    pub fn gather(scene: &Scene, mine: Described, all: MovementSide, root: i32) -> Result<Self> {
        let mut draft = CallDraft::new(scene);
        let me = draft.party();
        let root = draft.root(root)?;
        let in_place = is_in_place(mine.buffer) && me.rank == root;
        let given = if in_place { None } else { Some(draft.single(Area::Input, SEND, mine)?) };
        let mut bytes = given.map_or(0, |given| draft.prepared.schedule.size(given));
        let mut blocks = Vec::new();
        if me.rank == root {
            blocks = all.views(&mut draft, Area::Output, RECEIVE, me.size)?;
            bytes = draft.prepared.schedule.size(blocks[root as usize]);
            if let Some(given) = given {
                draft.check_fits(given, blocks[root as usize]);
                draft.check_distinct(mine.buffer, all.buffer(), bytes)?;
                draft.check_blocks(given, blocks[root as usize])?;
            }
        }
        let block_bytes = matches!(all, MovementSide::Uniform(_)).then_some(bytes);
        Ok(Self { prepared: draft.prepared, me, root, block_bytes, mine: given, blocks })
    }

    pub fn scatter(scene: &Scene, all: MovementSide, mine: Described, root: i32) -> Result<Self> {
        let mut draft = CallDraft::new(scene);
        let me = draft.party();
        let root = draft.root(root)?;
        let in_place = is_in_place(mine.buffer) && me.rank == root;
        let taken = if in_place { None } else { Some(draft.single(Area::Output, RECEIVE, mine)?) };
        let mut bytes = taken.map_or(0, |taken| draft.prepared.schedule.size(taken));
        let mut blocks = Vec::new();
        if me.rank == root {
            blocks = all.views(&mut draft, Area::Input, SEND, me.size)?;
            bytes = draft.prepared.schedule.size(blocks[root as usize]);
            if let Some(taken) = taken {
                draft.check_fits(blocks[root as usize], taken);
                draft.check_distinct(all.buffer(), mine.buffer, bytes)?;
                draft.check_blocks(blocks[root as usize], taken)?;
            }
        }
        let block_bytes = matches!(all, MovementSide::Uniform(_)).then_some(bytes);
        Ok(Self { prepared: draft.prepared, me, root, block_bytes, mine: taken, blocks })
    }

    pub fn into_gather(mut self) -> PreparedCall {
        let schedule = &mut self.prepared.schedule;
        match self.block_bytes {
            Some(bytes) => gather::gather(schedule, self.me, self.root, bytes, self.mine, &self.blocks),
            None => {
                schedule.chose(Gather::Direct, self.me, self.mine.map_or(0, |mine| schedule.size(mine)));
                gather::gatherv(schedule, self.me, self.root, self.mine, &self.blocks);
            }
        }
        self.prepared
    }

    pub fn into_scatter(mut self) -> PreparedCall {
        let schedule = &mut self.prepared.schedule;
        match self.block_bytes {
            Some(bytes) => gather::scatter(schedule, self.me, self.root, bytes, &self.blocks, self.mine),
            None => {
                schedule.chose(Scatter::Direct, self.me, self.mine.map_or(0, |mine| schedule.size(mine)));
                gather::scatterv(schedule, self.me, self.root, &self.blocks, self.mine);
            }
        }
        self.prepared
    }
}

pub fn gather(scene: &Scene, mine: Described, all: MovementSide, root: i32) -> Result<PreparedCall> {
    match scene.comm.is_inter() {
        true => inter_gather(CallDraft::new(scene), mine, all, root),
        false => Ok(Rooted::gather(scene, mine, all, root)?.into_gather()),
    }
}

fn inter_gather(mut draft: CallDraft, mine: Described, all: MovementSide, root: i32) -> Result<PreparedCall> {
    let (me, role, others) = (draft.party(), draft.role(root)?, draft.comm().remote_size());
    let (mut given, mut places) = (View::bytes(Area::Input, 0, 0), Vec::new());
    match role {
        Role::Idle => {}
        Role::Root => places = all.views(&mut draft, Area::Output, RECEIVE, others)?,
        Role::Across(_) => given = draft.single(Area::Input, SEND, mine)?,
    }
    inter::collect(&mut draft.prepared.schedule, me, role, given, &places);
    Ok(draft.prepared)
}

pub fn scatter(scene: &Scene, all: MovementSide, mine: Described, root: i32) -> Result<PreparedCall> {
    match scene.comm.is_inter() {
        true => inter_scatter(CallDraft::new(scene), all, mine, root),
        false => Ok(Rooted::scatter(scene, all, mine, root)?.into_scatter()),
    }
}

fn inter_scatter(mut draft: CallDraft, all: MovementSide, mine: Described, root: i32) -> Result<PreparedCall> {
    let (me, role, others) = (draft.party(), draft.role(root)?, draft.comm().remote_size());
    let (mut taken, mut places) = (View::bytes(Area::Output, 0, 0), Vec::new());
    match role {
        Role::Idle => {}
        Role::Root => places = all.views(&mut draft, Area::Input, SEND, others)?,
        Role::Across(_) => taken = draft.single(Area::Output, RECEIVE, mine)?,
    }
    inter::deal(&mut draft.prepared.schedule, me, role, &places, taken);
    Ok(draft.prepared)
}

/// An allgather inside one group, checked.
pub struct Allgather {
    pub prepared: PreparedCall,
    pub me: Party,
    /// `None` in place.
    pub mine: Option<View>,
    pub places: Vec<View>,
}

impl Allgather {
    pub fn new(scene: &Scene, mine: Described, all: MovementSide) -> Result<Self> {
        let mut draft = CallDraft::new(scene);
        let me = draft.party();
        let places = all.views(&mut draft, Area::Output, RECEIVE, me.size)?;
        let in_place = is_in_place(mine.buffer);
        let given = if in_place { None } else { Some(draft.single(Area::Input, SEND, mine)?) };
        if let Some(given) = given {
            // Everybody gets our own block from where it was copied to.
            draft.prepared.misfit = !draft.check_fits(given, places[me.rank as usize]);
            draft.check_distinct(mine.buffer, all.buffer(), draft.prepared.schedule.size(given))?;
            draft.check_blocks(given, places[me.rank as usize])?;
        }
        Ok(Self { prepared: draft.prepared, me, mine: given, places })
    }

    pub fn into_prepared(mut self, hosts: Option<&Hosts>) -> PreparedCall {
        let schedule = &mut self.prepared.schedule;
        match hosts {
            Some(hosts) => levels::allgather(schedule, hosts, self.mine, &self.places),
            None => allgather::allgather(schedule, self.me, self.mine, &self.places),
        }
        self.prepared
    }
}

pub fn allgather(scene: &Scene, mine: Described, all: MovementSide) -> Result<PreparedCall> {
    if !scene.comm.is_inter() {
        return Ok(Allgather::new(scene, mine, all)?.into_prepared(scene.hosts()));
    }
    let mut draft = CallDraft::new(scene);
    let (me, others) = (draft.party(), draft.comm().remote_size());
    let places = all.views(&mut draft, Area::Output, RECEIVE, others)?;
    let given = draft.single(Area::Input, SEND, mine)?;
    let inputs = vec![given; places.len()];
    inter::exchange(&mut draft.prepared.schedule, me, &inputs, &places);
    Ok(draft.prepared)
}

/// An all to all exchange inside one group, checked.
pub struct Alltoall {
    pub prepared: PreparedCall,
    pub me: Party,
    /// All blocks have as many bytes, which all ranks know.
    pub equal: bool,
    /// `None` in place: what is sent lies where what is received goes.
    pub inputs: Option<Vec<View>>,
    pub outputs: Vec<View>,
}

impl Alltoall {
    pub fn new(scene: &Scene, sent: MovementSide, received: MovementSide) -> Result<Self> {
        let mut draft = CallDraft::new(scene);
        let me = draft.party();
        let outputs = received.views(&mut draft, Area::Output, RECEIVE, me.size)?;
        let in_place = is_in_place(sent.buffer());
        let inputs = if in_place { None } else { Some(sent.views(&mut draft, Area::Input, SEND, me.size)?) };
        if let Some(inputs) = &inputs {
            let own = (inputs[me.rank as usize], outputs[me.rank as usize]);
            draft.check_fits(own.0, own.1);
            draft.check_blocks(own.0, own.1)?;
        }
        let equal = matches!(received, MovementSide::Uniform(_));
        Ok(Self { prepared: draft.prepared, me, equal, inputs, outputs })
    }

    pub fn into_prepared(mut self) -> PreparedCall {
        let (schedule, outputs) = (&mut self.prepared.schedule, &self.outputs);
        let inputs = self.inputs.unwrap_or_else(|| alltoall::saved(schedule, outputs));
        match self.equal {
            true => alltoall::alltoall(schedule, self.me, &inputs, outputs),
            false => {
                let longest = inputs.iter().map(|input| schedule.size(*input)).max().unwrap_or(0);
                schedule.chose(algorithms::Alltoall::Pairwise, self.me, longest);
                alltoall::pairwise(schedule, self.me, &inputs, outputs);
            }
        }
        self.prepared
    }
}

pub fn alltoall(scene: &Scene, sent: MovementSide, received: MovementSide) -> Result<PreparedCall> {
    if !scene.comm.is_inter() {
        return Ok(Alltoall::new(scene, sent, received)?.into_prepared());
    }
    let mut draft = CallDraft::new(scene);
    let (me, others) = (draft.party(), draft.comm().remote_size());
    let outputs = received.views(&mut draft, Area::Output, RECEIVE, others)?;
    reject_in_place(SEND.buffer, sent.buffer())?;
    let inputs = sent.views(&mut draft, Area::Input, SEND, others)?;
    inter::exchange(&mut draft.prepared.schedule, me, &inputs, &outputs);
    Ok(draft.prepared)
}
