//! The part of a communicator in shared memory: what `weft_collective::shared` has to know of this interface, and what
//! its outcomes mean here.

use super::{MpiTeams, Team};
use crate::comm::agree::tell;
use crate::comm::{COLLECTIVE, Comm};
use crate::error::{Class, Error, Result};
use crate::tool::{tell_collective, wants_collectives};
use crate::world::{WORLD, World};
use weft_collective::shared::{CallNames, Differs, Forming, TeamOwner};
use weft_fabric::Monitor;

impl TeamOwner for MpiTeams {
    type State = World;

    const CALLS: CallNames = CallNames {
        barrier: "MPI_Barrier",
        bcast: "MPI_Bcast",
        reduce: "MPI_Reduce",
        allreduce: "MPI_Allreduce",
        reduce_scatter: "MPI_Reduce_scatter",
        gather: "MPI_Gather",
        scatter: "MPI_Scatter",
        allgather: "MPI_Allgather",
        alltoall: "MPI_Alltoall",
        alltoallv: "MPI_Alltoallv",
    };

    #[inline(always)]
    fn monitor() -> &'static Monitor<World> {
        &WORLD
    }

    #[inline]
    fn listens() -> bool {
        wants_collectives()
    }

    fn tell(operation: &str, context: u32, members: u32, bytes: u64) {
        tell_collective(operation, None, context, members, bytes);
    }
}

/// The communicator's team; the first call makes it, together with all members.
#[inline]
pub fn team_of<'a>(comm: &'a Comm, call: &'static str) -> Result<Option<&'a Team>> {
    match comm.collective.team.get() {
        Some(team) => Ok(team),
        None => form(comm, call),
    }
}

#[cold]
fn form<'a>(comm: &'a Comm, call: &'static str) -> Result<Option<&'a Team>> {
    if comm.is_inter() {
        return Ok(None);
    }
    let (context, closed_with) = (comm.context, comm.context + COLLECTIVE);
    let group = Forming { me: comm.rank, peers: comm.local.peers().collect(), context, closed_with };
    let hand_round = |word| tell(call, comm, [word, 0, 0, 0]).map(|said| said[0][0]);
    let team = Team::form(group, hand_round)?;
    Ok(comm.collective.team.fill(team))
}

/// Why members cannot go on together, as errors.
pub trait Refuses {
    /// The error of a call whose members all have to bring the same; this one has `mine` bytes.
    fn error(self, mine: usize) -> Error;

    /// The same where something else is expected of each member.
    fn against(self, expected: impl Fn(u32) -> usize) -> Error;
}

impl Refuses for Differs {
    #[cold]
    fn against(self, expected: impl Fn(u32) -> usize) -> Error {
        match self {
            Self::Length { member, .. } => self.error(expected(member)),
            Self::Closed(_) => self.error(0),
        }
    }

    #[cold]
    fn error(self, mine: usize) -> Error {
        let detail = match self {
            Self::Closed(fault) => return crate::failure::closed(fault),
            Self::Length { member, bytes: Some(bytes) } => {
                format!("rank {member} passes {bytes} bytes, this one {mine}; all have to pass the same")
            }
            Self::Length { .. } => {
                format!("the ranks pass different lengths, this one {mine} bytes; all have to pass the same")
            }
        };
        Error::new(Class::Truncate, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_both_lengths() {
        let said = |bytes| Differs::Length { member: 3, bytes }.error(4).detail;
        assert_eq!(said(Some(40)), "rank 3 passes 40 bytes, this one 4; all have to pass the same");
        assert!(said(Some(1 << 40)).starts_with("rank 3 passes 1099511627776 bytes, this one 4;"));
        assert!(said(None).contains("this one 4 bytes"));
    }
}
