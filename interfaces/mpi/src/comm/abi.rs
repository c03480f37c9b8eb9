//! Bodies of the communicator functions.

use super::agree::agree;
use super::bridge::{self, Bridge};
use super::{Comm, create, disconnect as leaving, idup};
use crate::abi::{
    COMM_NULL, COMM_TYPE_HW_GUIDED, COMM_TYPE_HW_UNGUIDED, COMM_TYPE_RESOURCE_GUIDED, COMM_TYPE_SHARED, UNDEFINED,
    gives,
};
use crate::error::{Class, Error, RANKS, Result};
use crate::group::{Likeness, abi as groups};
use crate::handle::FIRST_USER;
use crate::info::{self, Info};
use crate::point::Owner;
use crate::world::{WORLD, World};
use std::sync::Arc;

/// The communicator, kept alive beyond the monitor; for functions that are not hot.
pub(crate) fn of(handle: usize) -> Result<Arc<Comm>> {
    WORLD.enter().comms.get(handle).cloned()
}

/// An intracommunicator, as most constructors want it.
pub(crate) fn intra(handle: usize) -> Result<Arc<Comm>> {
    let comm = of(handle)?;
    let inter = || Error::new(Class::Comm, format!("comm ({handle:#x}) is an intercommunicator"));
    if comm.is_inter() { Err(inter()) } else { Ok(comm) }
}

fn inter(handle: usize) -> Result<Arc<Comm>> {
    let comm = of(handle)?;
    let intra = || Error::new(Class::Comm, format!("comm ({handle:#x}) is an intracommunicator"));
    if comm.is_inter() { Ok(comm) } else { Err(intra()) }
}

gives! {
    #[inline]
    size(comm) -> i32 = WORLD.enter().comms.get(comm)?.size() as i32;
    #[inline]
    rank(comm) -> i32 = WORLD.enter().comms.get(comm)?.rank as i32;
    remote_size(comm) -> i32 = inter(comm)?.remote_size() as i32;
    test_inter(comm) -> i32 = of(comm)?.is_inter() as i32;
    group(comm) -> usize = {
        let group = of(comm)?.local.clone();
        groups::insert(&mut WORLD.enter(), group)
    };
    remote_group(comm) -> usize = {
        let group = inter(comm)?.remote.clone().expect("`inter` checked it");
        groups::insert(&mut WORLD.enter(), group)
    };
    get_info(comm) -> usize = {
        let hints = of(comm)?.state().info.clone();
        info::insert(hints)
    };
}

pub fn compare(first: usize, second: usize) -> Result<i32> {
    let (a, b) = {
        let world = WORLD.enter();
        (world.comms.named("comm1", first)?.clone(), world.comms.named("comm2", second)?.clone())
    };
    let likeness = match (&a.remote, &b.remote) {
        _ if first == second => Likeness::Identical,
        (None, None) => a.local.likeness(&b.local),
        (Some(far_a), Some(far_b)) => a.local.likeness(&b.local).max(far_a.likeness(far_b)),
        _ => Likeness::Unequal,
    };
    Ok(likeness as i32)
}

pub unsafe fn dup(comm: usize, out: *mut usize) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { duplicate("MPI_Comm_dup", comm, None, out) }
}

pub unsafe fn dup_with_info(comm: usize, info: usize, out: *mut usize) -> Result<()> {
    let hints = understood(&info::copy_of(info)?);
    // SAFETY: as the caller says.
    unsafe { duplicate("MPI_Comm_dup_with_info", comm, Some(hints), out) }
}

unsafe fn duplicate(call: &'static str, handle: usize, hints: Option<Info>, out: *mut usize) -> Result<()> {
    let parent = of(handle)?;
    let (circle, _) = create::everyone(&parent);
    let context = agree(call, circle, [0; 3])?.context;
    let mut draft = create::duplicate(&parent);
    draft.info = hints.unwrap_or(draft.info);
    let attributes = parent.state().attributes.clone();
    match attributes.copy(handle) {
        Ok(attributes) => draft.attributes = attributes,
        Err(error) => {
            WORLD.enter().contexts.release(context);
            // SAFETY: the program's place for the handle.
            unsafe { *out = COMM_NULL };
            return Err(error);
        }
    }
    let handle = create::insert(&mut WORLD.enter(), draft, context);
    // SAFETY: as above.
    unsafe { *out = handle };
    Ok(())
}

/// The handles of the copy and of the request.
pub fn idup(comm: usize) -> Result<(usize, usize)> {
    idup::begin(comm, None)
}

pub fn idup_with_info(comm: usize, info: usize) -> Result<(usize, usize)> {
    idup::begin(comm, Some(understood(&info::copy_of(info)?)))
}

pub fn create(comm: usize, group: usize) -> Result<usize> {
    let comm = of(comm)?;
    let group = WORLD.enter().groups.get(group)?.clone();
    Ok(create::subset("MPI_Comm_create", &comm, &group)?.unwrap_or(COMM_NULL))
}

pub fn create_group(comm: usize, group: usize, tag: i32) -> Result<usize> {
    let comm = intra(comm)?;
    let group = WORLD.enter().groups.get(group)?.clone();
    check_tag(tag)?;
    Ok(create::from_group("MPI_Comm_create_group", &comm, &group, tag)?.unwrap_or(COMM_NULL))
}

fn check_tag(tag: i32) -> Result<()> {
    if tag < 0 { Err(Error::new(Class::Tag, format!("tag {tag} is negative"))) } else { Ok(()) }
}

pub fn split(comm: usize, color: i32, key: i32) -> Result<usize> {
    let comm = of(comm)?;
    let color = match color {
        UNDEFINED => None,
        _ => Some(
            u32::try_from(color)
                .map_err(|_| Error::new(Class::Arg, format!("color {color} is negative and not MPI_UNDEFINED")))?,
        ),
    };
    Ok(create::split("MPI_Comm_split", &comm, color, key)?.unwrap_or(COMM_NULL))
}

/// Besides shared memory no kinds of hardware are told apart, and no process sets but by sessions: such splits give
/// nobody a communicator, as the standard allows.
pub fn split_type(comm: usize, kind: i32, key: i32, info: usize) -> Result<usize> {
    let comm = of(comm)?;
    let wanted = info::value(info, "mpi_hw_resource_type")?;
    let shares_memory = match kind {
        COMM_TYPE_SHARED => true,
        COMM_TYPE_HW_GUIDED | COMM_TYPE_RESOURCE_GUIDED => wanted.as_deref() == Some("mpi_shared_memory"),
        COMM_TYPE_HW_UNGUIDED | UNDEFINED => false,
        _ => {
            let detail = format!("split_type {kind} is neither a MPI_COMM_TYPE nor MPI_UNDEFINED");
            return Err(Error::new(Class::Arg, detail));
        }
    };
    let color = shares_memory.then(|| create::shared_memory_color(&comm));
    Ok(create::split("MPI_Comm_split_type", &comm, color, key)?.unwrap_or(COMM_NULL))
}

/// Runs the delete functions of all attributes, the last one set first.
pub(crate) fn delete_attributes(handle: usize) -> Result<()> {
    let comm = of(handle)?;
    loop {
        let last = comm.state().attributes.last();
        let Some(attribute) = last else { return Ok(()) };
        attribute.delete(handle)?;
        comm.state().attributes.forget(&attribute);
    }
}

pub unsafe fn free(comm: *mut usize) -> Result<()> {
    // SAFETY: the program's handle.
    let handle = unsafe { *comm };
    release(handle)?;
    // SAFETY: as above.
    unsafe { *comm = COMM_NULL };
    Ok(())
}

fn check_not_predefined(handle: usize) -> Result<()> {
    let refused = || Error::new(Class::Comm, format!("comm ({handle:#x}) is predefined and cannot be freed"));
    if handle < FIRST_USER { Err(refused()) } else { Ok(()) }
}

/// Frees a communicator of the program's own.
pub(crate) fn release(handle: usize) -> Result<()> {
    of(handle)?;
    check_not_predefined(handle)?;
    delete_attributes(handle)?;
    let mut world = WORLD.enter();
    let comm = world.comms.remove(handle)?;
    world.contexts.release(comm.context);
    crate::failure::forget(&mut world, &comm);
    let World { point, endpoint, .. } = &mut *world;
    // The next communicator may get this handle.
    point.abandon(Owner::Comm(handle), endpoint);
    Ok(())
}

pub fn intercomm_create(
    local: usize,
    local_leader: i32,
    peer_comm: usize,
    remote_leader: i32,
    tag: i32,
) -> Result<usize> {
    let local = intra(local)?;
    check_tag(tag)?;
    if local_leader < 0 || local_leader as u32 >= local.size() {
        let (given, size) = (format!("local_leader {local_leader}"), local.size() as usize);
        return Err(Error::outside(Class::Rank, given, local.display_name(), RANKS, size));
    }
    let leads = local.rank == local_leader as u32;
    let bridge = if leads { Some(Bridge::new(&*of(peer_comm)?, remote_leader, tag)?) } else { None };
    bridge::create(&local, local_leader as u32, bridge)
}

pub fn intercomm_merge(intercomm: usize, high: i32) -> Result<usize> {
    let comm = inter(intercomm)?;
    create::merge("MPI_Intercomm_merge", &comm, high != 0)
}

/// Hints that the standard defines for communicators; others are ignored, as it allows.
pub(crate) fn understood(info: &Info) -> Info {
    let known = |key: &str| key.starts_with("mpi_assert_") || key == "mpi_memory_alloc_kinds";
    let mut hints = Info::default();
    for (key, value) in info.entries().iter().filter(|entry| known(&entry.0)) {
        hints.set(key, value);
    }
    hints
}

pub unsafe fn set_info(comm: usize, info: usize) -> Result<()> {
    let (comm, hints) = (of(comm)?, understood(&info::copy_of(info)?));
    let mut state = comm.state();
    hints.entries().iter().for_each(|(key, value)| state.info.set(key, value));
    Ok(())
}

/// Like `MPI_Comm_free` once nothing is under way on the communicator, here and at the other members.
pub unsafe fn disconnect(comm: *mut usize) -> Result<()> {
    // SAFETY: the program's handle.
    let handle = unsafe { *comm };
    let drained = of(handle)?;
    check_not_predefined(handle)?;
    leaving::drain(&drained)?;
    drop(drained);
    // SAFETY: as the caller says.
    unsafe { free(comm) }
}
