//! Bodies of the functions on sessions, and of those that make communicators out of groups.

use super::{PROCESS_SETS, ProcessSet, Session, of, sessions};
use crate::abi::{COMM_NULL, MAX_STRINGTAG_LEN, SESSION_NULL, store_string, text_of};
use crate::comm::from_groups;
use crate::errhandler::{self, Handler};
use crate::error::{Class, Error, RANKS, Result, Unit, null_place};
use crate::group::{Group, abi as groups};
use crate::handle::HandleKind;
use crate::info::{self, Info};
use crate::start;
use crate::world::WORLD;
use std::ffi::c_char;
use std::sync::{Arc, Mutex};

/// Errors go to the handler that is given.
pub fn init(info: usize, errhandler: usize) -> Result<usize> {
    let handler = errhandler::resolve(errhandler, HandleKind::Session)?;
    begin(info, &handler).map_err(|error| error.through(&handler))
}

fn begin(info: usize, handler: &Arc<Handler>) -> Result<usize> {
    let asked = info::value(info, "thread_level")?.map(|name| level_of(&name)).transpose()?;
    let level = start::begin_session(asked)?;
    let session = Session { errhandler: Mutex::new(handler.clone()), level };
    Ok(sessions().insert(Arc::new(session)))
}

/// The program relies on the level that it asks for, so one that there is not is no hint to be passed over.
fn level_of(name: &str) -> Result<i32> {
    start::phase::level_of_name(name).ok_or_else(|| {
        let allowed = "MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED and MPI_THREAD_MULTIPLE";
        Error::new(Class::InfoValue, format!("info key thread_level is {name:?}; allowed are {allowed}"))
    })
}

pub unsafe fn finalize(session: *mut usize) -> Result<()> {
    // SAFETY: the program's handle.
    let handle = unsafe { *session };
    of(handle)?;
    start::end_session(|| super::left::clean_up(handle))?;
    sessions().remove(handle)?;
    // SAFETY: as above.
    unsafe { *session = SESSION_NULL };
    Ok(())
}

pub fn get_info(session: usize) -> Result<usize> {
    let mut info = Info::default();
    info.set("thread_level", start::phase::level_name(of(session)?.level));
    Ok(info::insert(info))
}

pub fn get_num_psets(session: usize, info: usize) -> Result<i32> {
    of(session)?;
    info::copy_of(info)?;
    Ok(PROCESS_SETS.len() as i32)
}

/// What `n` counts.
const SETS: Unit = ("process set", "process sets");

/// `length` counts the zero, on the way in and on the way out. With 0 only the length is asked for.
pub unsafe fn get_nth_pset(session: usize, info: usize, n: i32, length: *mut i32, name: *mut c_char) -> Result<()> {
    of(session)?;
    info::copy_of(info)?;
    let outside = || Error::outside(Class::Arg, format!("n {n}"), "the session", SETS, PROCESS_SETS.len());
    let known = usize::try_from(n).ok().and_then(|n| PROCESS_SETS.get(n)).ok_or_else(outside)?.0;
    // SAFETY: the program's place for the length.
    let given = unsafe { *length };
    let room = usize::try_from(given).map_err(|_| Error::new(Class::Arg, format!("pset_len {given} is negative")))?;
    if room > 0 && name.is_null() {
        return Err(null_place("pset_name"));
    }
    // SAFETY: the program's place for the length; the name has room for as many bytes as it said.
    unsafe {
        if room > 0 {
            store_string(known, room, name, std::ptr::null_mut());
        }
        *length = known.len() as i32 + 1;
    }
    Ok(())
}

/// The process set that a program names.
unsafe fn set_of(session: usize, name: *const c_char) -> Result<Group> {
    of(session)?;
    // SAFETY: a C string of the program.
    let set = ProcessSet::named(&unsafe { text_of(name, "pset_name")? })?;
    Ok(set.group(&WORLD.enter()))
}

pub unsafe fn get_pset_info(session: usize, name: *const c_char) -> Result<usize> {
    let mut info = Info::default();
    // SAFETY: the program's string.
    info.set("mpi_size", &unsafe { set_of(session, name)? }.size().to_string());
    Ok(info::insert(info))
}

pub unsafe fn group_from_session_pset(session: usize, name: *const c_char) -> Result<usize> {
    // SAFETY: the program's string.
    let group = unsafe { set_of(session, name)? }.of_session(Some(session));
    Ok(groups::insert(&mut WORLD.enter(), Arc::new(group)))
}

/// The program's tag for a new communicator.
unsafe fn tag_of(stringtag: *const c_char) -> Result<String> {
    // SAFETY: a C string of the program.
    let tag = unsafe { text_of(stringtag, "stringtag")? };
    if tag.len() >= MAX_STRINGTAG_LEN as usize {
        let detail = format!("stringtag has {} bytes, allowed are at most {}", tag.len(), MAX_STRINGTAG_LEN - 1);
        return Err(Error::new(Class::Arg, detail));
    }
    Ok(tag)
}

/// Errors go to the handler that is given.
pub unsafe fn comm_create_from_group(
    group: usize,
    stringtag: *const c_char,
    info: usize,
    errhandler: usize,
) -> Result<usize> {
    let handler = errhandler::resolve(errhandler, HandleKind::Comm)?;
    // SAFETY: the program's string.
    let made = unsafe { from_group(group, stringtag, info, &handler) };
    Ok(made.map_err(|error| error.through(&handler))?.unwrap_or(COMM_NULL))
}

unsafe fn from_group(
    group: usize,
    stringtag: *const c_char,
    info: usize,
    handler: &Arc<Handler>,
) -> Result<Option<usize>> {
    let group = groups::of(group, "group")?;
    // SAFETY: a C string of the program.
    let tag = unsafe { tag_of(stringtag)? };
    let hints = crate::comm::abi::understood(&info::copy_of(info)?);
    if group.size() == 0 {
        return Ok(None);
    }
    from_groups::intra("MPI_Comm_create_from_group", group, &tag, hints, handler).map(Some)
}

/// Errors go to the handler that is given.
pub unsafe fn intercomm_create_from_groups(
    local: usize,
    local_leader: i32,
    remote: usize,
    remote_leader: i32,
    stringtag: *const c_char,
    info: usize,
    errhandler: usize,
) -> Result<usize> {
    let handler = errhandler::resolve(errhandler, HandleKind::Comm)?;
    let leaders = (local_leader, remote_leader);
    // SAFETY: the program's string.
    let made = unsafe { between(local, remote, leaders, stringtag, info, &handler) };
    made.map_err(|error| error.through(&handler))
}

/// The remote group and its leader count at the local leader only.
unsafe fn between(
    local: usize,
    remote: usize,
    (local_leader, remote_leader): (i32, i32),
    stringtag: *const c_char,
    info: usize,
    handler: &Arc<Handler>,
) -> Result<usize> {
    let local = groups::of(local, "local_group")?;
    // SAFETY: a C string of the program.
    let tag = unsafe { tag_of(stringtag)? };
    let hints = crate::comm::abi::understood(&info::copy_of(info)?);
    let leader = rank_in(&local, local_leader, ("local_leader", "local_group"))?;
    let to = if local.mine() == Some(leader) {
        let remote = groups::of(remote, "remote_group")?;
        Some(remote.peer(rank_in(&remote, remote_leader, ("remote_leader", "remote_group"))?))
    } else {
        None
    };
    from_groups::inter("MPI_Intercomm_create_from_groups", local, leader, to, &tag, hints, handler)
}

fn rank_in(group: &Group, rank: i32, (name, whose): (&str, &str)) -> Result<u32> {
    let outside = || Error::outside(Class::Rank, format!("{name} {rank}"), whose, RANKS, group.size() as usize);
    u32::try_from(rank).ok().filter(|rank| *rank < group.size()).ok_or_else(outside)
}
