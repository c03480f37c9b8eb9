//! Bodies of the topology functions: grids, and what all kinds share.

mod graphs;

pub use graphs::*;

use super::{Cartesian, Topology, balance};
use crate::abi::{CART, COMM_NULL, DIST_GRAPH, GRAPH, UNDEFINED, slice_of};
use crate::comm::Comm;
use crate::comm::abi::{intra, of};
use crate::comm::create::{everyone, insert, with_topology};
use crate::comm::{CommDraft, agree};
use crate::error::{Class, Error, Result, Unit};
use crate::group::Group;
use crate::world::WORLD;
use std::sync::Arc;

pub fn topo_test(comm: usize) -> Result<i32> {
    let kind = match of(comm)?.topology {
        None => UNDEFINED,
        Some(Topology::Cartesian(_)) => CART,
        Some(Topology::Graph(_)) => GRAPH,
        Some(Topology::Distributed(_)) => DIST_GRAPH,
    };
    Ok(kind)
}

/// Fills in the dimensions that are 0.
pub unsafe fn dims_create(nnodes: i32, ndims: i32, dims: *mut i32) -> Result<()> {
    // SAFETY: the program's array of ndims numbers.
    let given = unsafe { slice_of(dims, ndims, "ndims")? }.to_vec();
    if nnodes < 1 {
        return Err(Error::new(Class::Arg, format!("nnodes {nnodes} is not positive")));
    }
    if let Some(dim) = given.iter().find(|&&dim| dim < 0) {
        return Err(Error::new(Class::Dims, format!("dims holds {dim}, which is negative")));
    }
    let fixed = Cartesian::size(&given.iter().copied().filter(|&dim| dim > 0).collect::<Vec<_>>()).unwrap_or(u32::MAX);
    if !(nnodes as u32).is_multiple_of(fixed) {
        let detail = format!("nnodes {nnodes} is not a multiple of the {fixed} that dims asks for");
        return Err(Error::new(Class::Dims, detail));
    }
    let open = given.iter().filter(|&&dim| dim == 0).count();
    if open == 0 {
        let wrong = || Error::new(Class::Dims, format!("dims makes {fixed} processes, nnodes is {nnodes}"));
        return if fixed == nnodes as u32 { Ok(()) } else { Err(wrong()) };
    }
    let mut factors = balance(nnodes as u32 / fixed, open).into_iter();
    for (place, _) in given.iter().enumerate().filter(|(_, dim)| **dim == 0) {
        let factor = factors.next().expect("there are as many factors as open places");
        // SAFETY: within the program's array.
        unsafe { *dims.add(place) = factor as i32 };
    }
    Ok(())
}

/// A grid as the program describes it, and its size.
unsafe fn grid_of(comm: &Comm, ndims: i32, dims: *const i32, periods: *const i32) -> Result<(Cartesian, u32)> {
    // SAFETY: the program's arrays of ndims numbers.
    let (dims, periods) = unsafe { (slice_of(dims, ndims, "ndims")?, slice_of(periods, ndims, "ndims")?) };
    if let Some(dim) = dims.iter().find(|&&dim| dim < 1) {
        return Err(Error::new(Class::Dims, format!("dims holds {dim}, which is not positive")));
    }
    let size = Cartesian::size(dims).filter(|&size| size <= comm.size()).ok_or_else(|| {
        Error::new(
            Class::Dims,
            format!("dims {dims:?} makes more processes than the {} of the communicator", comm.size()),
        )
    })?;
    let periodic = periods.iter().map(|&period| period != 0).collect();
    Ok((Cartesian { dims: dims.to_vec(), periodic }, size))
}

pub unsafe fn cart_create(
    comm: usize,
    ndims: i32,
    dims: *const i32,
    periods: *const i32,
    _reorder: i32,
    out: *mut usize,
) -> Result<()> {
    // SAFETY: as the caller says. A refused call leaves the null handle.
    unsafe {
        *out = COMM_NULL;
        let comm = intra(comm)?;
        let (grid, size) = grid_of(&comm, ndims, dims, periods)?;
        let made = with_topology("MPI_Cart_create", &comm, size, Topology::Cartesian(grid))?;
        *out = made.unwrap_or(COMM_NULL);
    }
    Ok(())
}

/// The rank that a grid would give the process: its own.
pub unsafe fn cart_map(
    comm: usize,
    ndims: i32,
    dims: *const i32,
    periods: *const i32,
    newrank: *mut i32,
) -> Result<()> {
    let comm = intra(comm)?;
    // SAFETY: as the caller says.
    unsafe {
        let (_, size) = grid_of(&comm, ndims, dims, periods)?;
        *newrank = if comm.rank < size { comm.rank as i32 } else { UNDEFINED };
    }
    Ok(())
}

pub fn cartdim_get(comm: usize) -> Result<i32> {
    Ok(of(comm)?.cartesian()?.dims.len() as i32)
}

/// Stores as many of the values as there is room for.
unsafe fn store(values: impl IntoIterator<Item = i32>, room: i32, out: *mut i32) {
    for (place, value) in values.into_iter().take(room.max(0) as usize).enumerate() {
        // SAFETY: the program's array of `room` places.
        unsafe { *out.add(place) = value };
    }
}

pub unsafe fn cart_get(comm: usize, maxdims: i32, dims: *mut i32, periods: *mut i32, coords: *mut i32) -> Result<()> {
    let comm = of(comm)?;
    let grid = comm.cartesian()?;
    // SAFETY: the program's arrays of maxdims places.
    unsafe {
        store(grid.dims.iter().copied(), maxdims, dims);
        store(grid.periodic.iter().map(|&periodic| periodic as i32), maxdims, periods);
        store(grid.coordinates(comm.rank), maxdims, coords);
    }
    Ok(())
}

const PLACES: Unit = ("place", "places");
const DIMENSIONS: Unit = ("dimension", "dimensions");

pub unsafe fn cart_rank(comm: usize, coords: *const i32) -> Result<i32> {
    let comm = of(comm)?;
    let grid = comm.cartesian()?;
    // SAFETY: the program's array with one number for each dimension.
    let coords = unsafe { slice_of(coords, grid.dims.len() as i32, "ndims")? };
    let found = grid.rank(coords).map_err(|dimension| {
        let (place, dim) = (coords[dimension], grid.dims[dimension]);
        let given = format!("coords[{dimension}] is {place}");
        Error::outside(Class::Arg, given, "the grid, which is not periodic there,", PLACES, dim as usize)
    })?;
    Ok(found as i32)
}

pub unsafe fn cart_coords(comm: usize, rank: i32, maxdims: i32, coords: *mut i32) -> Result<()> {
    let comm = of(comm)?;
    let grid = comm.cartesian()?;
    comm.peer(rank)?;
    // SAFETY: the program's array of maxdims places.
    unsafe { store(grid.coordinates(rank as u32), maxdims, coords) };
    Ok(())
}

pub unsafe fn cart_shift(comm: usize, direction: i32, disp: i32, source: *mut i32, dest: *mut i32) -> Result<()> {
    let comm = of(comm)?;
    let grid = comm.cartesian()?;
    if direction < 0 || direction as usize >= grid.dims.len() {
        let given = format!("direction {direction}");
        return Err(Error::outside(Class::Arg, given, "the grid", DIMENSIONS, grid.dims.len()));
    }
    let dimension = direction as usize;
    // SAFETY: the program's places for the ranks.
    unsafe {
        *source = grid.shifted(comm.rank, dimension, disp.saturating_neg());
        *dest = grid.shifted(comm.rank, dimension, disp);
    }
    Ok(())
}

pub unsafe fn cart_sub(comm: usize, remain_dims: *const i32) -> Result<usize> {
    let comm = of(comm)?;
    let grid = comm.cartesian()?;
    // SAFETY: the program's array with one number for each dimension.
    let kept = unsafe { slice_of(remain_dims, grid.dims.len() as i32, "ndims")? };
    let kept: Vec<bool> = kept.iter().map(|&kept| kept != 0).collect();
    let (sub, color) = grid.sub(comm.rank, &kept);
    let (circle, me) = everyone(&comm);
    let agreed = agree::agree("MPI_Cart_sub", circle, [0; 3])?;
    let ranks = (0..comm.size()).filter(|&rank| grid.sub(rank, &kept).1 == color);
    let group = Group::new(ranks.map(|rank| comm.local.peer(rank)).collect(), me);
    let draft =
        CommDraft { topology: Some(Topology::Cartesian(sub)), ..CommDraft::from_parent(Arc::new(group), &comm) };
    Ok(insert(&mut WORLD.enter(), draft, agreed.context))
}
