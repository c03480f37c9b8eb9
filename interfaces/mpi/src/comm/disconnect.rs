//! `MPI_Comm_disconnect`: a communicator goes when nothing is under way on it any more.

use super::agree::{meet, wait};
use super::{CONSTRUCTION, Comm};
use crate::error::Result;
use crate::world::World;

/// Waits until everything that this process has started on the communicator is complete, and until all members are as
/// far. What still waits for its call of completion keeps its outcome.
pub(crate) fn drain(comm: &Comm) -> Result<()> {
    const CALL: &str = "MPI_Comm_disconnect";
    wait(CALL, comm.context, |world| is_quiet(world, comm).then_some(()));
    meet(CALL, comm)
}

fn is_quiet(world: &mut World, comm: &Comm) -> bool {
    world.point.is_quiet(comm.handle, comm.context, &world.endpoint)
        && world.partitioned.is_quiet(comm.handle)
        && world.collectives.is_quiet_on(comm.context + super::COLLECTIVE)
        && world.coming.iter().all(|coming| coming.context != comm.context + CONSTRUCTION)
        && requests_are_complete(world, comm.handle)
}

fn requests_are_complete(world: &mut World, comm: usize) -> bool {
    let (requests, ground) = world.split();
    requests.iter().all(|(_, request)| !request.is_on(comm) || request.is_complete(&ground))
}
