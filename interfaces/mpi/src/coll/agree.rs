//! Small blocking exchanges for the making of communicators, files and windows.

use super::algorithm::{allgather, bcast, reduce};
use super::call::{self, Prepared};
use super::run::{Folding, Job, Route};
use super::schedule::{Area, BYTES, Party, Schedule, View};
use super::shape::Shape;
use crate::comm::{CONSTRUCTION, Comm};
use crate::error::Result;
use crate::group::Group;
use std::sync::Arc;
use weft_fabric::Peer;

/// Processes that agree on something, each by its rank. All of them call the same functions in the same order, none
/// with the monitor held.
#[derive(Clone)]
pub struct Circle {
    members: Arc<Group>,
    rank: u32,
    context: u32,
    tag: i32,
    /// The call of the program, for the status page.
    call: &'static str,
}

impl Route for Group {
    fn peer(&self, rank: u32) -> Peer {
        Group::peer(self, rank)
    }
}

impl Circle {
    /// The local group of a communicator, on its construction context.
    pub fn of(comm: &Comm, call: &'static str) -> Self {
        let tag = comm.collective.next_tag();
        Self { members: comm.local.clone(), rank: comm.rank, context: comm.context + CONSTRUCTION, tag, call }
    }

    /// Some group, of which the caller must be a member. No other traffic may have this context and tag meanwhile.
    pub fn among(members: Arc<Group>, context: u32, tag: i32, call: &'static str) -> Self {
        let rank = members.mine().expect("only members agree");
        Self { members, rank, context, tag, call }
    }

    pub fn rank(&self) -> u32 {
        self.rank
    }

    pub fn size(&self) -> u32 {
        self.members.size()
    }

    fn party(&self) -> Party {
        Party { rank: self.rank, size: self.size() }
    }

    fn complete(&self, route: Arc<dyn Route>, prepared: Prepared) -> Result<()> {
        let job = Job {
            schedule: prepared.schedule,
            route,
            context: self.context,
            tag: self.tag,
            source: self.rank,
            input: prepared.input,
            output: prepared.output,
            folding: prepared.folding,
        };
        // SAFETY: the callers below hand in buffers that outlive this call.
        unsafe { call::complete(self.call, job) }
    }

    /// The largest of everyone's values.
    pub fn agree_max(&self, value: u64) -> Result<u64> {
        self.agree(value, u64::max)
    }

    /// The bits that all values have.
    pub fn agree_and(&self, value: u64) -> Result<u64> {
        self.agree(value, |a, b| a & b)
    }

    /// The fold of everyone's values, the same on all.
    pub fn agree(&self, value: u64, fold: fn(u64, u64) -> u64) -> Result<u64> {
        let mut result = 0u64;
        let mut prepared = Prepared::default();
        let shape = prepared.schedule.add_shape(Shape::dense(8));
        let view = |area| View::new(area, 0, shape, 1);
        reduce::allreduce(&mut prepared.schedule, self.party(), view(Area::Input), view(Area::Output));
        prepared.input = (&raw const value).cast();
        prepared.output = (&raw mut result).cast();
        // SAFETY: the schedule folds single values of eight bytes, the output or aligned scratch.
        let combine = move |left: *const u8, into: *mut u8, _| unsafe {
            *into.cast::<u64>() = fold(*left.cast::<u64>(), *into.cast::<u64>());
        };
        prepared.folding = Some(Folding { combine: Arc::new(combine), foreign: false });
        self.complete(self.members.clone(), prepared)?;
        Ok(result)
    }

    /// Everyone's bytes by rank; they may differ in length.
    pub fn allgather_bytes(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut lengths = vec![0u64; self.size() as usize];
        lengths[self.rank as usize] = mine.len() as u64;
        self.allgather_in_place(lengths.as_mut_ptr().cast(), &vec![8; lengths.len()])?;
        let mut all = vec![0u8; lengths.iter().sum::<u64>() as usize];
        let first = lengths[..self.rank as usize].iter().sum::<u64>() as usize;
        all[first..first + mine.len()].copy_from_slice(mine);
        self.allgather_in_place(all.as_mut_ptr(), &lengths)?;
        let mut rest = all.as_slice();
        let cut = |&length: &u64| rest.split_off(..length as usize).expect("as long as the sum").to_vec();
        Ok(lengths.iter().map(cut).collect())
    }

    /// Blocks of these lengths one after the other, of which ours is in place.
    fn allgather_in_place(&self, output: *mut u8, lengths: &[u64]) -> Result<()> {
        let mut prepared = Prepared { output, ..Prepared::default() };
        let mut at = 0;
        let blocks: Vec<View> = lengths
            .iter()
            .map(|&length| {
                at += length;
                View::bytes(Area::Output, (at - length) as i64, length)
            })
            .collect();
        allgather::allgather(&mut prepared.schedule, self.party(), None, &blocks);
        self.complete(self.members.clone(), prepared)
    }

    /// The root's bytes; what the others bring is ignored.
    pub fn bcast_bytes(&self, root: u32, mine: &[u8]) -> Result<Vec<u8>> {
        let mut length = mine.len() as u64;
        self.bcast_in_place(root, (&raw mut length).cast(), 8)?;
        let mut data = if self.rank == root { mine.to_vec() } else { vec![0; length as usize] };
        self.bcast_in_place(root, data.as_mut_ptr(), length)?;
        Ok(data)
    }

    fn bcast_in_place(&self, root: u32, output: *mut u8, length: u64) -> Result<()> {
        let mut prepared = Prepared { output, ..Prepared::default() };
        bcast::bcast(&mut prepared.schedule, self.party(), root, View::new(Area::Output, 0, BYTES, length));
        self.complete(self.members.clone(), prepared)
    }

    /// Trades bytes with one process, which does the same with us: leaders of two groups. Takes the circle's context
    /// and tag, so the other one has to have the same.
    pub fn trade_bytes(&self, with: Peer, mine: &[u8]) -> Result<Vec<u8>> {
        let (ours, mut theirs) = (mine.len() as u64, 0u64);
        self.trade(with, (&raw const ours).cast(), 8, (&raw mut theirs).cast(), 8)?;
        let mut data = vec![0; theirs as usize];
        self.trade(with, mine.as_ptr(), ours, data.as_mut_ptr(), theirs)?;
        Ok(data)
    }

    fn trade(&self, with: Peer, input: *const u8, sent: u64, output: *mut u8, received: u64) -> Result<()> {
        struct Only(Peer);
        impl Route for Only {
            fn peer(&self, _: u32) -> Peer {
                self.0
            }
        }
        let mut schedule = Schedule::default();
        schedule.receive(0, View::bytes(Area::Output, 0, received));
        schedule.send(0, View::bytes(Area::Input, 0, sent));
        self.complete(Arc::new(Only(with)), Prepared { schedule, input, output, folding: None })
    }
}

/// The largest of the local group's values.
pub fn agree_max(comm: &Comm, call: &'static str, value: u64) -> Result<u64> {
    Circle::of(comm, call).agree_max(value)
}

/// The bytes of every rank of the local group.
pub fn allgather_bytes(comm: &Comm, call: &'static str, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
    Circle::of(comm, call).allgather_bytes(mine)
}

/// The bytes of the local group's rank `root`.
pub fn bcast_bytes(comm: &Comm, call: &'static str, root: u32, mine: &[u8]) -> Result<Vec<u8>> {
    Circle::of(comm, call).bcast_bytes(root, mine)
}
