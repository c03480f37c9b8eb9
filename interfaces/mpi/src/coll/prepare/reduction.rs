//! Reductions and scans.

use super::check::{BufferNames, CallDraft, counts, is_in_place, reject_in_place};
use crate::abi::{Counts, Described};
use crate::coll::call::{PreparedCall, Scene};
use crate::error::Result;
use std::ffi::c_void;
use weft_collective::algorithm::inter::{self, Role};
use weft_collective::algorithm::{levels, reduce, scan};
use weft_collective::schedule::{Area, View};

const SEND: BufferNames = BufferNames { buffer: "sendbuf", count: "count", datatype: "datatype" };
const RECEIVE: BufferNames = BufferNames { buffer: "recvbuf", count: "count", datatype: "datatype" };

/// What is folded and how, as the program names it.
#[derive(Clone, Copy)]
pub struct Folded {
    pub sent: *const c_void,
    pub received: Described,
    pub op: usize,
}

/// A reduction being prepared: the function stands, and the views can be made.
struct Reduction<'a> {
    draft: CallDraft<'a>,
    folded: Folded,
    commutative: bool,
}

impl<'a> Reduction<'a> {
    fn new(scene: &'a Scene<'a>, folded: Folded) -> Result<Self> {
        let mut draft = CallDraft::new(scene);
        let datatype = draft.datatype(SEND.datatype, folded.received.datatype)?;
        let op = scene.world.ops.get(folded.op)?;
        let (folding, commutative) = super::fold::folding(op, datatype, folded.received.datatype)?;
        draft.prepared.folding = Some(folding);
        Ok(Self { draft, folded, commutative })
    }

    fn vector(&mut self, area: Area, names: BufferNames, buffer: *const c_void) -> Result<View> {
        self.draft.single(area, names, Described { buffer, ..self.folded.received })
    }

    fn output(&mut self) -> Result<View> {
        self.vector(Area::Output, RECEIVE, self.folded.received.buffer)
    }

    fn input(&mut self) -> Result<View> {
        self.vector(Area::Input, SEND, self.folded.sent)
    }

    /// Input and output where both count; in place they are one.
    fn both(&mut self) -> Result<(View, View)> {
        let output = self.output()?;
        if is_in_place(self.folded.sent) && !self.draft.comm().is_inter() {
            return Ok((output, output));
        }
        let input = View { shape: output.shape, ..self.input()? };
        let bytes = self.draft.prepared.schedule.size(input);
        self.draft.check_distinct(self.folded.sent, self.folded.received.buffer, bytes)?;
        Ok((input, output))
    }
}

pub fn reduce(scene: &Scene, folded: Folded, root: i32) -> Result<PreparedCall> {
    if scene.comm.is_inter() {
        return inter_reduce(scene, folded, root);
    }
    let mut reduction = Reduction::new(scene, folded)?;
    let me = reduction.draft.party();
    let root = reduction.draft.root(root)?;
    let (input, output) = if me.rank == root {
        reduction.both()?
    } else {
        let input = reduction.input()?;
        (input, View { area: Area::Output, ..input })
    };
    let commutative = reduction.commutative;
    let schedule = &mut reduction.draft.prepared.schedule;
    match scene.hosts().filter(|hosts| hosts.may_fold(commutative)) {
        Some(hosts) => levels::reduce(schedule, hosts, root, input, output, commutative),
        None => reduce::reduce(schedule, me, root, input, output, commutative),
    }
    Ok(reduction.draft.prepared)
}

fn inter_reduce(scene: &Scene, folded: Folded, root: i32) -> Result<PreparedCall> {
    let draft = CallDraft::new(scene);
    let role = draft.role(root)?;
    // Who has no part may pass anything for the other arguments.
    if let Role::Idle = role {
        return Ok(draft.prepared);
    }
    let mut reduction = Reduction::new(scene, folded)?;
    let me = reduction.draft.party();
    let view = match role {
        Role::Root | Role::Idle => reduction.output()?,
        Role::Across(_) => reduction.input()?,
    };
    let commutative = reduction.commutative;
    inter::reduce_to(&mut reduction.draft.prepared.schedule, me, role, view, view, commutative);
    Ok(reduction.draft.prepared)
}

pub fn allreduce(scene: &Scene, folded: Folded) -> Result<PreparedCall> {
    let mut reduction = Reduction::new(scene, folded)?;
    let (input, output) = reduction.both()?;
    let (me, commutative) = (reduction.draft.party(), reduction.commutative);
    let schedule = &mut reduction.draft.prepared.schedule;
    match scene.hosts().filter(|hosts| hosts.may_fold(commutative)) {
        _ if scene.comm.is_inter() => inter::allreduce(schedule, me, input, output, commutative),
        Some(hosts) => levels::allreduce(schedule, hosts, input, output, commutative),
        None => reduce::allreduce(schedule, me, input, output),
    }
    Ok(reduction.draft.prepared)
}

pub fn scan(scene: &Scene, folded: Folded, kind: scan::ScanKind) -> Result<PreparedCall> {
    let mut reduction = Reduction::new(scene, folded)?;
    reduction.draft.reject_inter()?;
    let (input, output) = reduction.both()?;
    let me = reduction.draft.party();
    scan::scan(&mut reduction.draft.prepared.schedule, me, kind, input, output);
    Ok(reduction.draft.prepared)
}

/// The counts of the blocks that a reduce-scatter deals out.
#[derive(Clone, Copy)]
pub enum Shares {
    Equal(i64),
    Listed(Counts),
}

/// `folded.received.count` is not used: the counts of the blocks say how long the vector is.
pub fn reduce_scatter(scene: &Scene, folded: Folded, shares: Shares) -> Result<PreparedCall> {
    let size = scene.comm.size();
    let shares = match shares {
        Shares::Equal(count) => vec![super::check::count("recvcount", count)?; size as usize],
        Shares::Listed(array) => counts("recvcount", array, size)?,
    };
    let total = shares.iter().sum::<u64>() as i64;
    let received = Described { count: total, ..folded.received };
    let mut reduction = Reduction::new(scene, Folded { received, ..folded })?;
    let me = reduction.draft.party();
    let inter = scene.comm.is_inter();
    let in_place = is_in_place(folded.sent) && !inter;
    let whole = if in_place { reduction.output()? } else { reduction.input()? };
    reduction.folded.received.count = shares[me.rank as usize] as i64;
    let own = reduction.output()?;
    let output = View { shape: whole.shape, ..own };
    if !in_place {
        reject_in_place(SEND.buffer, folded.sent)?;
        reduction.draft.check_distinct(folded.sent, received.buffer, reduction.draft.prepared.schedule.size(own))?;
    }
    let commutative = reduction.commutative;
    let schedule = &mut reduction.draft.prepared.schedule;
    match inter {
        true => inter::reduce_scatter(schedule, me, &shares, whole, output, commutative),
        false => reduce::reduce_scatter(schedule, me, &shares, whole, output),
    }
    Ok(reduction.draft.prepared)
}
