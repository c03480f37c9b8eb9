//! What is still there of a session when it ends: the end cleans it up (MPI 5.0, section 11.3.1).

use crate::comm::abi::release;
use crate::error::Result;
use crate::point::Owner;
use crate::world::{WORLD, World};

/// Frees windows, files and communicators that come from a session, and gives its buffer back.
///
/// Windows and files take all their members, each of which ends its session: they go in an order that is the same in all.
pub fn clean_up(session: usize) -> Result<()> {
    let (windows, files) = {
        let world = WORLD.enter();
        (world.windows.of_session(session), crate::file::of_session(&world, session))
    };
    for mut window in in_order(windows) {
        // SAFETY: a place for the handle.
        unsafe { crate::window::abi::free(&mut window)? };
    }
    in_order(files).into_iter().try_for_each(crate::file::close)?;
    let of_session = |world: &World| -> Vec<usize> {
        world.comms.iter().filter(|(_, comm)| comm.session == Some(session)).map(|(handle, _)| handle).collect()
    };
    let communicators = of_session(&WORLD.enter());
    communicators.into_iter().try_for_each(release)?;
    let World { point, endpoint, .. } = &mut *WORLD.enter();
    point.abandon(Owner::Session(session), endpoint);
    Ok(())
}

/// Handles by the contexts of their communicators.
fn in_order(mut found: Vec<(u32, usize)>) -> Vec<usize> {
    found.sort_unstable();
    found.into_iter().map(|(_, handle)| handle).collect()
}
