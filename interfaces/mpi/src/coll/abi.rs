//! Bodies of the collective calls: each operation in its blocking, nonblocking and persistent form.

mod moved;
mod nothing;
mod shared;

use super::algorithm::scan::Kind;
use super::call::{blocking, nonblocking, persistent};
use super::prepare::check::{Mixed, Uniform, Various};
use super::prepare::movement::{self, Blocks, Side};
use super::prepare::neighbor;
use super::prepare::reduction::{self, Folded, Shares};
use crate::abi::Counts;
use crate::error::Result;
pub use moved::{allgather, allgatherv, alltoall, alltoallv, alltoallw, gather, gatherv, scatter, scatterv};
use nothing::{are_empty, folds_nothing, is_empty};
pub use shared::{allreduce, barrier, bcast, reduce, reduce_scatter, reduce_scatter_block};
use std::ffi::c_void;

/// The forms of one operation: `names { parameters } => what prepares it`. What stands in brackets before it is the root
/// and whether the call is surely one of no bytes.
macro_rules! collective {
    ($call:literal: fn $blocking:ident(), fn $nonblocking:ident(), fn $persistent:ident()
     { $($name:ident: $kind:ty),* } $([$root:expr, $empty:expr])? $scene:ident => $prepare:expr) => {
        pub unsafe fn $blocking($($name: $kind,)* comm: usize) -> Result<()> {
            // SAFETY: the program keeps the promises of the standard for its buffers.
            unsafe { blocking(concat!("MPI_", $call), comm, |$scene| $prepare) }
        }

        pub unsafe fn $nonblocking($($name: $kind,)* comm: usize, request: *mut usize) -> Result<()> {
            // SAFETY: as above.
            unsafe {
                $(if $empty && nothing::is_complete(comm, $root, request)? {
                    return Ok(());
                })?
                nonblocking(comm, request, |$scene| $prepare)
            }
        }

        pub unsafe fn $persistent(
            $($name: $kind,)*
            comm: usize,
            _info: usize,
            request: *mut usize,
        ) -> Result<()> {
            // SAFETY: as above.
            unsafe { persistent(comm, request, |$scene| $prepare) }
        }
    };
}

fn uniform(buffer: *const c_void, count: i64, datatype: usize) -> Uniform {
    Uniform { buffer, count, datatype }
}

fn various(buffer: *const c_void, counts: Counts, displacements: Counts, datatype: usize) -> Various {
    Various { buffer, counts, displacements, datatype }
}

fn mixed(buffer: *const c_void, counts: Counts, displacements: Counts, datatypes: *const usize) -> Mixed {
    Mixed { buffer, counts, displacements, datatypes }
}

fn folded(sent: *const c_void, received: *const c_void, count: i64, datatype: usize, op: usize) -> Folded {
    Folded { sent, received, count, datatype, op }
}

/// Byte displacements of the neighbourhood calls are `MPI_Aint` in both widths.
fn addresses(at: *const isize) -> Counts {
    Counts { at: at.cast(), wide: true }
}

collective! { "Barrier": fn barrier_by_messages(), fn ibarrier(), fn barrier_init()
{} scene => movement::barrier(scene) }

collective! { "Bcast": fn bcast_by_messages(), fn ibcast(), fn bcast_init()
{ buffer: *mut c_void, count: i64, datatype: usize, root: i32 }
[Some(root), is_empty((buffer, count, datatype))]
scene => movement::bcast(scene, uniform(buffer, count, datatype), root) }

collective! { "Gather": fn gather_by_messages(), fn igather(), fn gather_init()
    { sendbuf: *const c_void, sendcount: i64, sendtype: usize,
      recvbuf: *mut c_void, recvcount: i64, recvtype: usize, root: i32 }
    [Some(root), are_empty((sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype))]
    scene => {
        let all = Blocks::Uniform(uniform(recvbuf, recvcount, recvtype));
        movement::gather(scene, uniform(sendbuf, sendcount, sendtype), all, root)
    }
}

collective! { "Gatherv": fn gatherv_by_messages(), fn igatherv(), fn gatherv_init()
    { sendbuf: *const c_void, sendcount: i64, sendtype: usize,
      recvbuf: *mut c_void, recvcounts: Counts, displs: Counts, recvtype: usize, root: i32 }
    scene => {
        let all = Blocks::Various(various(recvbuf, recvcounts, displs, recvtype));
        movement::gather(scene, uniform(sendbuf, sendcount, sendtype), all, root)
    }
}

collective! { "Scatter": fn scatter_by_messages(), fn iscatter(), fn scatter_init()
    { sendbuf: *const c_void, sendcount: i64, sendtype: usize,
      recvbuf: *mut c_void, recvcount: i64, recvtype: usize, root: i32 }
    [Some(root), are_empty((sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype))]
    scene => {
        let all = Blocks::Uniform(uniform(sendbuf, sendcount, sendtype));
        movement::scatter(scene, all, uniform(recvbuf, recvcount, recvtype), root)
    }
}

collective! { "Scatterv": fn scatterv_by_messages(), fn iscatterv(), fn scatterv_init()
    { sendbuf: *const c_void, sendcounts: Counts, displs: Counts, sendtype: usize,
      recvbuf: *mut c_void, recvcount: i64, recvtype: usize, root: i32 }
    scene => {
        let all = Blocks::Various(various(sendbuf, sendcounts, displs, sendtype));
        movement::scatter(scene, all, uniform(recvbuf, recvcount, recvtype), root)
    }
}

collective! { "Allgather": fn allgather_by_messages(), fn iallgather(), fn allgather_init()
    { sendbuf: *const c_void, sendcount: i64, sendtype: usize, recvbuf: *mut c_void, recvcount: i64, recvtype: usize }
    [None, are_empty((sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype))]
    scene => {
        let all = Blocks::Uniform(uniform(recvbuf, recvcount, recvtype));
        movement::allgather(scene, uniform(sendbuf, sendcount, sendtype), all)
    }
}

collective! { "Allgatherv": fn allgatherv_by_messages(), fn iallgatherv(), fn allgatherv_init()
    { sendbuf: *const c_void, sendcount: i64, sendtype: usize,
      recvbuf: *mut c_void, recvcounts: Counts, displs: Counts, recvtype: usize }
    scene => {
        let all = Blocks::Various(various(recvbuf, recvcounts, displs, recvtype));
        movement::allgather(scene, uniform(sendbuf, sendcount, sendtype), all)
    }
}

collective! { "Alltoall": fn alltoall_by_messages(), fn ialltoall(), fn alltoall_init()
    { sendbuf: *const c_void, sendcount: i64, sendtype: usize, recvbuf: *mut c_void, recvcount: i64, recvtype: usize }
    [None, are_empty((sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype))]
    scene => {
        let sent = Side::Uniform(uniform(sendbuf, sendcount, sendtype));
        movement::alltoall(scene, sent, Side::Uniform(uniform(recvbuf, recvcount, recvtype)))
    }
}

collective! { "Alltoallv": fn alltoallv_by_messages(), fn ialltoallv(), fn alltoallv_init()
    { sendbuf: *const c_void, sendcounts: Counts, sdispls: Counts, sendtype: usize,
      recvbuf: *mut c_void, recvcounts: Counts, rdispls: Counts, recvtype: usize }
    scene => {
        let sent = Side::Various(various(sendbuf, sendcounts, sdispls, sendtype));
        movement::alltoall(scene, sent, Side::Various(various(recvbuf, recvcounts, rdispls, recvtype)))
    }
}

collective! { "Alltoallw": fn alltoallw_by_messages(), fn ialltoallw(), fn alltoallw_init()
    { sendbuf: *const c_void, sendcounts: Counts, sdispls: Counts, sendtypes: *const usize,
      recvbuf: *mut c_void, recvcounts: Counts, rdispls: Counts, recvtypes: *const usize }
    scene => {
        let sent = Side::Mixed(mixed(sendbuf, sendcounts, sdispls, sendtypes));
        movement::alltoall(scene, sent, Side::Mixed(mixed(recvbuf, recvcounts, rdispls, recvtypes)))
    }
}

collective! { "Reduce": fn reduce_by_messages(), fn ireduce(), fn reduce_init()
{ sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: usize, op: usize, root: i32 }
[Some(root), folds_nothing(sendbuf, recvbuf, count, datatype, op)]
scene => reduction::reduce(scene, folded(sendbuf, recvbuf, count, datatype, op), root) }

collective! { "Allreduce": fn allreduce_by_messages(), fn iallreduce(), fn allreduce_init()
{ sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: usize, op: usize }
[None, folds_nothing(sendbuf, recvbuf, count, datatype, op)]
scene => reduction::allreduce(scene, folded(sendbuf, recvbuf, count, datatype, op)) }

collective! { "Reduce_scatter": fn reduce_scatter_by_messages(), fn ireduce_scatter(), fn reduce_scatter_init()
    { sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: Counts, datatype: usize, op: usize }
    scene => {
        let what = folded(sendbuf, recvbuf, 0, datatype, op);
        reduction::reduce_scatter(scene, what, Shares::Listed(recvcounts))
    }
}

collective! { "Reduce_scatter_block":
    fn reduce_scatter_block_by_messages(), fn ireduce_scatter_block(), fn reduce_scatter_block_init()
    { sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: i64, datatype: usize, op: usize }
    scene => {
        let what = folded(sendbuf, recvbuf, 0, datatype, op);
        reduction::reduce_scatter(scene, what, Shares::Equal(recvcount))
    }
}

collective! { "Scan": fn scan(), fn iscan(), fn scan_init()
{ sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: usize, op: usize }
scene => reduction::scan(scene, folded(sendbuf, recvbuf, count, datatype, op), Kind::Inclusive) }

collective! { "Exscan": fn exscan(), fn iexscan(), fn exscan_init()
{ sendbuf: *const c_void, recvbuf: *mut c_void, count: i64, datatype: usize, op: usize }
scene => reduction::scan(scene, folded(sendbuf, recvbuf, count, datatype, op), Kind::Exclusive) }

collective! { "Neighbor_allgather":
    fn neighbor_allgather(), fn ineighbor_allgather(), fn neighbor_allgather_init()
    { sendbuf: *const c_void, sendcount: i64, sendtype: usize, recvbuf: *mut c_void, recvcount: i64, recvtype: usize }
    scene => {
        let all = Side::Uniform(uniform(recvbuf, recvcount, recvtype));
        neighbor::allgather(scene, uniform(sendbuf, sendcount, sendtype), all)
    }
}

collective! { "Neighbor_allgatherv":
    fn neighbor_allgatherv(), fn ineighbor_allgatherv(), fn neighbor_allgatherv_init()
    { sendbuf: *const c_void, sendcount: i64, sendtype: usize,
      recvbuf: *mut c_void, recvcounts: Counts, displs: Counts, recvtype: usize }
    scene => {
        let all = Side::Various(various(recvbuf, recvcounts, displs, recvtype));
        neighbor::allgather(scene, uniform(sendbuf, sendcount, sendtype), all)
    }
}

collective! { "Neighbor_alltoall":
    fn neighbor_alltoall(), fn ineighbor_alltoall(), fn neighbor_alltoall_init()
    { sendbuf: *const c_void, sendcount: i64, sendtype: usize, recvbuf: *mut c_void, recvcount: i64, recvtype: usize }
    scene => {
        let sent = Side::Uniform(uniform(sendbuf, sendcount, sendtype));
        neighbor::alltoall(scene, sent, Side::Uniform(uniform(recvbuf, recvcount, recvtype)))
    }
}

collective! { "Neighbor_alltoallv":
    fn neighbor_alltoallv(), fn ineighbor_alltoallv(), fn neighbor_alltoallv_init()
    { sendbuf: *const c_void, sendcounts: Counts, sdispls: Counts, sendtype: usize,
      recvbuf: *mut c_void, recvcounts: Counts, rdispls: Counts, recvtype: usize }
    scene => {
        let sent = Side::Various(various(sendbuf, sendcounts, sdispls, sendtype));
        neighbor::alltoall(scene, sent, Side::Various(various(recvbuf, recvcounts, rdispls, recvtype)))
    }
}

collective! { "Neighbor_alltoallw":
    fn neighbor_alltoallw(), fn ineighbor_alltoallw(), fn neighbor_alltoallw_init()
    { sendbuf: *const c_void, sendcounts: Counts, sdispls: *const isize, sendtypes: *const usize,
      recvbuf: *mut c_void, recvcounts: Counts, rdispls: *const isize, recvtypes: *const usize }
    scene => {
        let sent = Side::Mixed(mixed(sendbuf, sendcounts, addresses(sdispls), sendtypes));
        neighbor::alltoall(scene, sent, Side::Mixed(mixed(recvbuf, recvcounts, addresses(rdispls), recvtypes)))
    }
}
