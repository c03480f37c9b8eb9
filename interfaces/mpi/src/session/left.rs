//! What is still there of a session when it ends: the end cleans it up (MPI 5.0, section 11.3.1).

use crate::comm::abi::release;
use crate::error::Result;
use crate::point::Owner;
use crate::world::{WORLD, World};
use std::collections::HashSet;

/// Frees windows, files and communicators that come from a session, and gives its buffer back.
///
/// Windows and files take all their members, each of which ends its session: they go in an order that is the same in
/// all.
pub fn clean_up(session: usize) -> Result<()> {
    each(
        |world| world.windows.of_session(session),
        |mut window| {
            // SAFETY: a place for the handle.
            unsafe { crate::window::abi::free(&mut window) }
        },
    )?;
    each(|_| crate::file::of_session(session), crate::file::close)?;
    let ours = |world: &World| {
        let comms = world.comms.iter().filter(|(_, comm)| comm.session == Some(session));
        comms.map(|(handle, _)| (0, handle)).collect()
    };
    each(ours, release)?;
    let World { point, endpoint, .. } = &mut *WORLD.enter();
    point.abandon(Owner::Session(session), endpoint);
    Ok(())
}

/// Ends each handle once, by the contexts of their communicators; looked up anew each time, since functions of the
/// program that are called then (of attributes) may end others.
fn each(found: impl Fn(&World) -> Vec<(u32, usize)>, end: impl Fn(usize) -> Result<()>) -> Result<()> {
    let mut ended = HashSet::new();
    let next = |ended: &HashSet<usize>| {
        let found = found(&WORLD.enter());
        found.into_iter().filter(|(_, handle)| !ended.contains(handle)).min().map(|(_, handle)| handle)
    };
    while let Some(handle) = next(&ended) {
        ended.insert(handle);
        end(handle)?;
    }
    Ok(())
}
