//! Processes of other jobs (MPI 5.0, chapter 11): ports, spawned processes, published names, sockets of the program.
//!
//! Two jobs meet at a *door* of one of them (`weft_fabric::door`): the roots tell each other their cards there, and are
//! peers from then on. All else goes over the fabric: the roots are the leaders of `comm::bridge`, which makes an
//! intercommunicator of any two groups. Spawned processes go to a door of those who spawn them, as whoever connects
//! does.
//!
//! A root that spawns opens a door and has another launcher started, `weft spawned`, by the launcher of the job (the
//! supervisor's `spawned`) or, without one, by itself. That launcher comes to the door for its order, and the new
//! processes come in there too (decision 21).

pub mod abi;
mod join;
mod meet;
mod names;
mod ports;
mod spawn;

pub(crate) use names::withdraw_all as withdraw_names;
pub(crate) use spawn::greet_parent;

use crate::error::Result;
use crate::world::{WORLD, World};
use weft_fabric::Waiting;

/// Waits for what comes through a door. What `poll` leaves as attended wakes it.
fn attend<T>(call: &'static str, mut poll: impl FnMut(&mut World) -> Option<Result<T>>) -> Result<T> {
    WORLD.enter().attending.threads += 1;
    let waiting = Waiting { call, peer: None, tag: None, context: crate::comm::MEETING };
    let answer = WORLD.wait(waiting, |world| poll(world));
    let attending = &mut WORLD.enter().attending;
    (attending.threads, attending.shows) = (attending.threads - 1, None);
    answer
}
