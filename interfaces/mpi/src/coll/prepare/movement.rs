//! Barrier, broadcast, gather, scatter, allgather, all to all.

use super::check::{Draft, Mixed, Names, ONLY, RECEIVE, SEND, Uniform, Various, is_in_place, reject_in_place};
use crate::coll::algorithm::inter::{self, Role};
use crate::coll::algorithm::{allgather, alltoall, barrier, bcast, gather, levels};
use crate::coll::call::{Prepared, Scene};
use crate::coll::schedule::{Area, View};
use crate::error::Result;
use std::ffi::c_void;

pub fn barrier(scene: &Scene) -> Result<Prepared> {
    let mut draft = Draft::new(scene);
    let me = draft.party();
    let schedule = &mut draft.prepared.schedule;
    match scene.hosts() {
        _ if scene.comm.is_inter() => barrier::inter_barrier(schedule, me),
        Some(hosts) => levels::barrier(schedule, hosts),
        None => barrier::barrier(schedule, me),
    }
    Ok(draft.prepared)
}

pub fn bcast(scene: &Scene, data: Uniform, root: i32) -> Result<Prepared> {
    let mut draft = Draft::new(scene);
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

/// Equal blocks or each its own count: the receiving side of a gather, the sending one of a scatter.
#[derive(Clone, Copy)]
pub enum Blocks {
    Uniform(Uniform),
    Various(Various),
}

impl Blocks {
    fn buffer(&self) -> *const c_void {
        match self {
            Self::Uniform(blocks) => blocks.buffer,
            Self::Various(blocks) => blocks.buffer,
        }
    }

    fn views(&self, draft: &mut Draft, area: Area, names: Names, count: u32) -> Result<Vec<View>> {
        match *self {
            Self::Uniform(blocks) => draft.uniform(area, names, blocks, count),
            Self::Various(blocks) => draft.various(area, names, blocks, count),
        }
    }
}

pub fn gather(scene: &Scene, mine: Uniform, all: Blocks, root: i32) -> Result<Prepared> {
    let mut draft = Draft::new(scene);
    let me = draft.party();
    if draft.comm().is_inter() {
        return inter_gather(draft, mine, all, root);
    }
    let root = draft.root(root)?;
    let in_place = is_in_place(mine.buffer) && me.rank == root;
    let given = if in_place { None } else { Some(draft.single(Area::Input, SEND, mine)?) };
    let mut block_bytes = given.map_or(0, |given| draft.prepared.schedule.size(given));
    let mut places = Vec::new();
    if me.rank == root {
        places = all.views(&mut draft, Area::Output, RECEIVE, me.size)?;
        block_bytes = draft.prepared.schedule.size(places[root as usize]);
        if let Some(given) = given {
            draft.check_fits(given, places[root as usize]);
            draft.check_distinct(mine.buffer, all.buffer(), block_bytes)?;
            draft.check_blocks(given, places[root as usize])?;
        }
    }
    let schedule = &mut draft.prepared.schedule;
    match all {
        Blocks::Uniform(_) => gather::gather(schedule, me, root, block_bytes, given, &places),
        Blocks::Various(_) => gather::gatherv(schedule, me, root, given, &places),
    }
    Ok(draft.prepared)
}

fn inter_gather(mut draft: Draft, mine: Uniform, all: Blocks, root: i32) -> Result<Prepared> {
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

pub fn scatter(scene: &Scene, all: Blocks, mine: Uniform, root: i32) -> Result<Prepared> {
    let mut draft = Draft::new(scene);
    let me = draft.party();
    if draft.comm().is_inter() {
        return inter_scatter(draft, all, mine, root);
    }
    let root = draft.root(root)?;
    let in_place = is_in_place(mine.buffer) && me.rank == root;
    let taken = if in_place { None } else { Some(draft.single(Area::Output, RECEIVE, mine)?) };
    let mut block_bytes = taken.map_or(0, |taken| draft.prepared.schedule.size(taken));
    let mut places = Vec::new();
    if me.rank == root {
        places = all.views(&mut draft, Area::Input, SEND, me.size)?;
        block_bytes = draft.prepared.schedule.size(places[root as usize]);
        if let Some(taken) = taken {
            draft.check_fits(places[root as usize], taken);
            draft.check_distinct(all.buffer(), mine.buffer, block_bytes)?;
            draft.check_blocks(places[root as usize], taken)?;
        }
    }
    let schedule = &mut draft.prepared.schedule;
    match all {
        Blocks::Uniform(_) => gather::scatter(schedule, me, root, block_bytes, &places, taken),
        Blocks::Various(_) => gather::scatterv(schedule, me, root, &places, taken),
    }
    Ok(draft.prepared)
}

fn inter_scatter(mut draft: Draft, all: Blocks, mine: Uniform, root: i32) -> Result<Prepared> {
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

pub fn allgather(scene: &Scene, mine: Uniform, all: Blocks) -> Result<Prepared> {
    let mut draft = Draft::new(scene);
    let (me, others) = (draft.party(), draft.comm().remote_size());
    let places = all.views(&mut draft, Area::Output, RECEIVE, others)?;
    let in_place = is_in_place(mine.buffer) && !draft.comm().is_inter();
    let given = if in_place { None } else { Some(draft.single(Area::Input, SEND, mine)?) };
    if draft.comm().is_inter() {
        let inputs: Vec<View> = given.iter().cycle().take(places.len()).copied().collect();
        inter::exchange(&mut draft.prepared.schedule, me, &inputs, &places);
        return Ok(draft.prepared);
    }
    if let Some(given) = given {
        // Everybody gets our own block from where it was copied to.
        draft.prepared.misfit = !draft.check_fits(given, places[me.rank as usize]);
        draft.check_distinct(mine.buffer, all.buffer(), draft.prepared.schedule.size(given))?;
        draft.check_blocks(given, places[me.rank as usize])?;
    }
    match scene.hosts() {
        Some(hosts) => levels::allgather(&mut draft.prepared.schedule, hosts, given, &places),
        None => allgather::allgather(&mut draft.prepared.schedule, me, given, &places),
    }
    Ok(draft.prepared)
}

/// One side of an all to all exchange.
#[derive(Clone, Copy)]
pub enum Side {
    Uniform(Uniform),
    Various(Various),
    Mixed(Mixed),
}

impl Side {
    pub fn buffer(&self) -> *const c_void {
        match self {
            Self::Uniform(side) => side.buffer,
            Self::Various(side) => side.buffer,
            Self::Mixed(side) => side.buffer,
        }
    }

    pub fn views(&self, draft: &mut Draft, area: Area, names: Names, count: u32) -> Result<Vec<View>> {
        match *self {
            Self::Uniform(side) => draft.uniform(area, names, side, count),
            Self::Various(side) => draft.various(area, names, side, count),
            Self::Mixed(side) => draft.mixed(area, names, side, count),
        }
    }
}

pub fn alltoall(scene: &Scene, sent: Side, received: Side) -> Result<Prepared> {
    let mut draft = Draft::new(scene);
    let (me, peers, inter) = (draft.party(), draft.comm().remote_size(), draft.comm().is_inter());
    let outputs = received.views(&mut draft, Area::Output, RECEIVE, peers)?;
    let in_place = is_in_place(sent.buffer()) && !inter;
    if inter {
        reject_in_place(SEND.buffer, sent.buffer())?;
    }
    let inputs = match in_place {
        true => alltoall::saved(&mut draft.prepared.schedule, &outputs),
        false => sent.views(&mut draft, Area::Input, SEND, peers)?,
    };
    if inter {
        inter::exchange(&mut draft.prepared.schedule, me, &inputs, &outputs);
        return Ok(draft.prepared);
    }
    let own = me.rank as usize;
    draft.check_fits(inputs[own], outputs[own]);
    if !in_place {
        draft.check_blocks(inputs[own], outputs[own])?;
    }
    match received {
        Side::Uniform(_) => alltoall::alltoall(&mut draft.prepared.schedule, me, &inputs, &outputs),
        _ => alltoall::pairwise(&mut draft.prepared.schedule, me, &inputs, &outputs),
    }
    Ok(draft.prepared)
}
