//! Windows come and go (MPI 5.0, sections 12.2.1 to 12.2.7).

use crate::abi::{CountOut, PROC_NULL, WIN_NULL, gives};
use crate::attribute::abi::delete_win_attributes;
use crate::comm::abi::intra;
use crate::error::{Class, Error, Result};
use crate::group::abi as groups;
use crate::info;
use crate::window::create::{self, Plan};
use crate::window::epoch::{self, find};
use crate::window::{Flavor, Window};
use crate::world::WORLD;
use std::ffi::c_void;
use std::ptr::null_mut;

/// # Safety
/// `win` is the program's place for the handle, `baseptr`, if not null, its place for an address.
unsafe fn make(plan: Plan, comm: usize, baseptr: *mut c_void, win: *mut usize) -> Result<()> {
    let parent = intra(comm)?;
    let (handle, base) = create::create(&parent, plan)?;
    // SAFETY: the caller's promise.
    unsafe {
        *win = handle;
        if !baseptr.is_null() {
            *baseptr.cast::<*mut u8>() = base;
        }
    }
    Ok(())
}

fn check_place(baseptr: *mut c_void) -> Result<()> {
    if baseptr.is_null() { Err(crate::error::null_place("baseptr")) } else { Ok(()) }
}

/// Windows with memory of ours.
macro_rules! allocates {
    ($($name:ident: $call:literal, $flavor:ident;)*) => {$(
        pub unsafe fn $name(
            size: isize,
            unit: i64,
            info: usize,
            comm: usize,
            baseptr: *mut c_void,
            win: *mut usize,
        ) -> Result<()> {
            check_place(baseptr)?;
            let (call, flavor) = ($call, Flavor::$flavor);
            let plan = Plan { call, flavor, base: null_mut(), size, unit, info: info::copy_of(info)? };
            // SAFETY: the program's places.
            unsafe { make(plan, comm, baseptr, win) }
        }
    )*};
}

allocates! {
    allocate: "MPI_Win_allocate", Allocate;
    allocate_shared: "MPI_Win_allocate_shared", Shared;
}

pub unsafe fn create(
    base: *mut c_void,
    size: isize,
    unit: i64,
    info: usize,
    comm: usize,
    win: *mut usize,
) -> Result<()> {
    let (call, flavor) = ("MPI_Win_create", Flavor::Create);
    let plan = Plan { call, flavor, base: base.cast(), size, unit, info: info::copy_of(info)? };
    // SAFETY: the program's place.
    unsafe { make(plan, comm, null_mut(), win) }
}

pub unsafe fn create_dynamic(info: usize, comm: usize, win: *mut usize) -> Result<()> {
    let (call, flavor) = ("MPI_Win_create_dynamic", Flavor::Dynamic);
    let plan = Plan { call, flavor, base: null_mut(), size: 0, unit: 1, info: info::copy_of(info)? };
    // SAFETY: the program's place.
    unsafe { make(plan, comm, null_mut(), win) }
}

pub unsafe fn free(win: *mut usize) -> Result<()> {
    // SAFETY: the program's handle.
    let handle = unsafe { *win };
    create::check_free(handle).map_err(|error| error.on(handle))?;
    delete_win_attributes(handle)?;
    create::free(handle)?;
    // SAFETY: as above.
    unsafe { *win = WIN_NULL };
    Ok(())
}

pub unsafe fn attach(win: usize, base: *mut c_void, size: isize) -> Result<()> {
    epoch::attach(win, base as usize, size)
}

pub unsafe fn detach(win: usize, base: *const c_void) -> Result<()> {
    epoch::detach(win, base as usize)
}

gives! {
    get_group(win) -> usize = {
        let mut world = WORLD.enter();
        let members = find(&mut world, win)?.0.comm.local.clone();
        groups::insert(&mut world, members)
    };
    get_info(win) -> usize = {
        let hints = find(&mut WORLD.enter(), win)?.0.info.clone();
        info::insert(hints)
    };
}

/// Hints say how a program behaves; nothing here depends on them, and those that are known are given back.
pub unsafe fn set_info(win: usize, info: usize) -> Result<()> {
    let given = info::copy_of(info)?;
    let mut world = WORLD.enter();
    let (window, _) = find(&mut world, win)?;
    for (key, value) in given.entries() {
        if window.info.get(key).is_some() {
            window.info.set(key, value);
        }
    }
    Ok(())
}

pub unsafe fn shared_query(
    win: usize,
    rank: i32,
    size: *mut isize,
    unit: CountOut,
    baseptr: *mut c_void,
) -> Result<()> {
    check_place(baseptr)?;
    let (found, bytes, of) = {
        let mut world = WORLD.enter();
        let (window, _) = find(&mut world, win)?;
        if window.flavor == Flavor::Dynamic {
            let detail =
                format!("{} was made by MPI_Win_create_dynamic and has no memory of its own", window.display_name());
            return Err(Error::new(Class::RmaFlavor, detail));
        }
        let rank = match rank {
            PROC_NULL => window.first_with_memory(),
            rank => Some(window.rank(rank)?),
        };
        let shown = rank.and_then(|rank| window.mapped(rank).map(|at| (rank, at)));
        match (shown, rank) {
            (Some((rank, at)), _) => (at, window.targets[rank].size, window.targets[rank].unit),
            // Memory of no bytes, or none that loads and stores reach.
            (None, Some(rank)) => (null_mut(), 0, window.targets[rank].unit),
            (None, None) => (null_mut(), 0, 1),
        }
    };
    // SAFETY: the program's places.
    unsafe {
        *size = bytes as isize;
        unit.set(of);
        *baseptr.cast::<*mut u8>() = found;
    }
    Ok(())
}

impl Window {
    /// The lowest rank that has brought memory.
    fn first_with_memory(&self) -> Option<usize> {
        self.targets.iter().position(|target| target.size > 0)
    }
}
