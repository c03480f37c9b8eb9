//! Bodies of the collective calls: each operation in its blocking, nonblocking and persistent form.
//!
//! A blocking call of a group goes through shared memory where that serves (`moved`, `shared`; `nothing` where a rank
//! has no byte in it); whatever that leaves goes by messages, as the other two forms do.

mod moved;
mod nothing;
mod shared;

use super::call::{blocking, nonblocking, persistent};
use super::prepare::check::MixedBuffer;
use super::prepare::movement::{self, MovementSide};
use super::prepare::neighbor;
use super::prepare::reduction::{self, Folded, Shares};
use crate::abi::{Counts, Described, Various};
use crate::error::Result;
use nothing::{are_empty, folds_nothing, is_empty};
use std::ffi::c_void;
use weft_collective::algorithm::scan::ScanKind;

/// The forms of one operation: its arguments, and
/// - in brackets: when a rank has nothing to do in the blocking form but to be counted (the name of its algorithms,
///   whether that counts a tag, the root, and whether this is surely a call of no bytes);
/// - `shared`: how the blocking form goes through shared memory. It is called with the name of the call, the
///   communicator, what stands here, and the way by messages, for whatever shared memory does not serve;
/// - `messages`: what prepares a schedule.
macro_rules! collective {
    (@run $messages:ident) => { $messages() };
    (@run $messages:ident, $shared:path, ($($argument:expr),*)) => { $shared($($argument,)* $messages) };
    ($call:literal: fn $blocking:ident(), fn $nonblocking:ident(), fn $persistent:ident()
     { $($name:ident: $kind:ty),* }
     $([$named:ident, $counts:literal, $root:expr, $empty:expr])?
     $(let $what:ident = $given:expr;)*
     $(shared $shared:path, ($($argument:expr),*);)?
     messages |$scene:ident| $prepare:expr) => {
        #[inline]
        pub unsafe fn $blocking($($name: $kind,)* comm: usize) -> Result<()> {
            const CALL: &str = concat!("MPI_", $call);
            $(let $what = $given;)*
            // SAFETY: the program keeps the promises of the standard for its buffers.
            unsafe {
                $(if $empty && nothing::is_over(CALL, comm, $root, $counts, |named| named.$named.is_some())? {
                    return Ok(());
                })?
                let messages = move || blocking(CALL, comm, move |$scene| $prepare);
                collective!(@run messages $(, $shared, (CALL, comm $(, $argument)*))?)
            }
        }

        pub unsafe fn $nonblocking($($name: $kind,)* comm: usize, request: *mut usize) -> Result<()> {
            $(let $what = $given;)*
            // SAFETY: as above.
            unsafe {
                $(if $empty && nothing::is_complete(comm, $root, request)? {
                    return Ok(());
                })?
                nonblocking(comm, request, move |$scene| $prepare)
            }
        }

        pub unsafe fn $persistent($($name: $kind,)* comm: usize, _: usize, request: *mut usize) -> Result<()> {
            $(let $what = $given;)*
            // SAFETY: as above.
            unsafe { persistent(comm, request, move |$scene| $prepare) }
        }
    };
}

fn mixed(buffer: *const c_void, counts: Counts, displacements: Counts, datatypes: *const usize) -> MixedBuffer {
    MixedBuffer { buffer, counts, displacements, datatypes }
}

/// Byte displacements of the neighbourhood calls are `MPI_Aint` in both widths.
fn addresses(at: *const isize) -> Counts {
    Counts { at: at.cast(), wide: true }
}

collective! { "Barrier": fn barrier(), fn ibarrier(), fn barrier_init() {}
    shared shared::barrier, ();
    messages |scene| movement::barrier(scene)
}

collective! { "Bcast": fn bcast(), fn ibcast(), fn bcast_init()
    { data: Described, root: i32 }
    [bcast, true, Some(root), is_empty(data)]
    shared shared::bcast, (data, root);
    messages |scene| movement::bcast(scene, data, root)
}

collective! { "Gather": fn gather(), fn igather(), fn gather_init()
    { mine: Described, all: Described, root: i32 }
    [gather, true, Some(root), are_empty(mine, all)]
    shared moved::gather, (mine, MovementSide::Uniform(all), root);
    messages |scene| movement::gather(scene, mine, MovementSide::Uniform(all), root)
}

collective! { "Gatherv": fn gatherv(), fn igatherv(), fn gatherv_init()
    { mine: Described, all: Various, root: i32 }
    shared moved::gather, (mine, MovementSide::Various(all), root);
    messages |scene| movement::gather(scene, mine, MovementSide::Various(all), root)
}

collective! { "Scatter": fn scatter(), fn iscatter(), fn scatter_init()
    { all: Described, mine: Described, root: i32 }
    [scatter, true, Some(root), are_empty(all, mine)]
    shared moved::scatter, (MovementSide::Uniform(all), mine, root);
    messages |scene| movement::scatter(scene, MovementSide::Uniform(all), mine, root)
}

collective! { "Scatterv": fn scatterv(), fn iscatterv(), fn scatterv_init()
    { all: Various, mine: Described, root: i32 }
    shared moved::scatter, (MovementSide::Various(all), mine, root);
    messages |scene| movement::scatter(scene, MovementSide::Various(all), mine, root)
}

collective! { "Allgather": fn allgather(), fn iallgather(), fn allgather_init()
    { mine: Described, all: Described }
    [allgather, true, None, are_empty(mine, all)]
    shared moved::allgather, (mine, MovementSide::Uniform(all));
    messages |scene| movement::allgather(scene, mine, MovementSide::Uniform(all))
}

collective! { "Allgatherv": fn allgatherv(), fn iallgatherv(), fn allgatherv_init()
    { mine: Described, all: Various }
    shared moved::allgather, (mine, MovementSide::Various(all));
    messages |scene| movement::allgather(scene, mine, MovementSide::Various(all))
}

collective! { "Alltoall": fn alltoall(), fn ialltoall(), fn alltoall_init()
    { sent: Described, received: Described }
    [alltoall, true, None, are_empty(sent, received)]
    shared moved::alltoall, (sent, received);
    messages |scene| movement::alltoall(scene, MovementSide::Uniform(sent), MovementSide::Uniform(received))
}

collective! { "Alltoallv": fn alltoallv(), fn ialltoallv(), fn alltoallv_init()
    { sent: Various, received: Various }
    shared moved::alltoallv, (MovementSide::Various(sent), MovementSide::Various(received));
    messages |scene| movement::alltoall(scene, MovementSide::Various(sent), MovementSide::Various(received))
}

collective! { "Alltoallw": fn alltoallw(), fn ialltoallw(), fn alltoallw_init()
    { sendbuf: *const c_void, sendcounts: Counts, sdispls: Counts, sendtypes: *const usize,
      recvbuf: *mut c_void, recvcounts: Counts, rdispls: Counts, recvtypes: *const usize }
    let sent = MovementSide::Mixed(mixed(sendbuf, sendcounts, sdispls, sendtypes));
    let received = MovementSide::Mixed(mixed(recvbuf, recvcounts, rdispls, recvtypes));
    shared moved::alltoallv, (sent, received);
    messages |scene| movement::alltoall(scene, sent, received)
}

collective! { "Reduce": fn reduce(), fn ireduce(), fn reduce_init()
    { sent: *const c_void, received: Described, op: usize, root: i32 }
    [reduce, false, Some(root), folds_nothing(sent, received, op)]
    let what = Folded { sent, received, op };
    shared shared::reduce, (what, root);
    messages |scene| reduction::reduce(scene, what, root)
}

collective! { "Allreduce": fn allreduce(), fn iallreduce(), fn allreduce_init()
    { sent: *const c_void, received: Described, op: usize }
    [allreduce, false, None, folds_nothing(sent, received, op)]
    let what = Folded { sent, received, op };
    shared shared::allreduce, (what);
    messages |scene| reduction::allreduce(scene, what)
}

collective! { "Reduce_scatter": fn reduce_scatter(), fn ireduce_scatter(), fn reduce_scatter_init()
    { sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: Counts, datatype: usize, op: usize }
    let received = Described { buffer: recvbuf, count: 0, datatype };
    let what = Folded { sent: sendbuf, received, op };
    shared shared::reduce_scatter, (what, Shares::Listed(recvcounts));
    messages |scene| reduction::reduce_scatter(scene, what, Shares::Listed(recvcounts))
}

collective! { "Reduce_scatter_block":
    fn reduce_scatter_block(), fn ireduce_scatter_block(), fn reduce_scatter_block_init()
    { sent: *const c_void, received: Described, op: usize }
    let what = Folded { sent, received, op };
    shared shared::reduce_scatter, (what, Shares::Equal(received.count));
    messages |scene| reduction::reduce_scatter(scene, what, Shares::Equal(received.count))
}

collective! { "Scan": fn scan(), fn iscan(), fn scan_init()
{ sent: *const c_void, received: Described, op: usize }
messages |scene| reduction::scan(scene, Folded { sent, received, op }, ScanKind::Inclusive) }

collective! { "Exscan": fn exscan(), fn iexscan(), fn exscan_init()
{ sent: *const c_void, received: Described, op: usize }
messages |scene| reduction::scan(scene, Folded { sent, received, op }, ScanKind::Exclusive) }

collective! { "Neighbor_allgather":
    fn neighbor_allgather(), fn ineighbor_allgather(), fn neighbor_allgather_init()
    { sent: Described, all: Described }
    messages |scene| neighbor::allgather(scene, sent, MovementSide::Uniform(all))
}

collective! { "Neighbor_allgatherv":
    fn neighbor_allgatherv(), fn ineighbor_allgatherv(), fn neighbor_allgatherv_init()
    { sent: Described, all: Various }
    messages |scene| neighbor::allgather(scene, sent, MovementSide::Various(all))
}

collective! { "Neighbor_alltoall":
    fn neighbor_alltoall(), fn ineighbor_alltoall(), fn neighbor_alltoall_init()
    { sent: Described, received: Described }
    messages |scene| neighbor::alltoall(scene, MovementSide::Uniform(sent), MovementSide::Uniform(received))
}

collective! { "Neighbor_alltoallv":
    fn neighbor_alltoallv(), fn ineighbor_alltoallv(), fn neighbor_alltoallv_init()
    { sent: Various, received: Various }
    messages |scene| neighbor::alltoall(scene, MovementSide::Various(sent), MovementSide::Various(received))
}

collective! { "Neighbor_alltoallw":
    fn neighbor_alltoallw(), fn ineighbor_alltoallw(), fn neighbor_alltoallw_init()
    { sendbuf: *const c_void, sendcounts: Counts, sdispls: *const isize, sendtypes: *const usize,
      recvbuf: *mut c_void, recvcounts: Counts, rdispls: *const isize, recvtypes: *const usize }
    messages |scene| {
        let sent = MovementSide::Mixed(mixed(sendbuf, sendcounts, addresses(sdispls), sendtypes));
        neighbor::alltoall(scene, sent, MovementSide::Mixed(mixed(recvbuf, recvcounts, addresses(rdispls), recvtypes)))
    }
}
