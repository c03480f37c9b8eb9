//! Bodies of the calls that make persistent operations (MPI 5.0, section 3.9).

use crate::abi::Described;
use crate::error::Result;
use crate::point::buffer::Buffer;
use crate::point::route::{ReceiveSource, destination, selection};
use crate::point::transfer::PointMode;
use crate::request::{Persistent, PersistentPlan, Request};
use crate::world::WORLD;

fn make_send(mode: PointMode, what: Described, dest: i32, tag: i32, comm: usize) -> Result<usize> {
    let mut world = WORLD.enter();
    let route = destination(&world.comms, comm, dest, tag)?;
    let buffer = Buffer::with_partner(&world.types, what, "datatype", route.is_some())?;
    let plan = route.map_or(PersistentPlan::SendNothing, |route| PersistentPlan::Send(route, mode));
    let persistent = Persistent { plan, buffer, comm, active: None };
    Ok(world.requests.insert(Request::Persistent(Box::new(persistent))))
}

/// The bodies of the sends, which differ in name and mode.
macro_rules! sends {
    ($($name:ident: $mode:ident;)*) => {$(
        pub fn $name(what: Described, dest: i32, tag: i32, comm: usize) -> Result<usize> {
            make_send(PointMode::$mode, what, dest, tag, comm)
        }
    )*};
}

sends! {
    send_init: Standard;
    ssend_init: Synchronous;
    bsend_init: Buffered;
}

/// `MPI_Recv_init`.
pub fn recv_init(what: Described, source: i32, tag: i32, comm: usize) -> Result<usize> {
    let mut world = WORLD.enter();
    let from = selection(&world.comms, comm, source, tag)?;
    let buffer = Buffer::with_partner(&world.types, what, "datatype", from.is_some())?;
    let plan =
        from.map_or(PersistentPlan::ReceiveNothing, |from| PersistentPlan::Receive(ReceiveSource::Matching(from)));
    let persistent = Persistent { plan, buffer, comm, active: None };
    let handle = world.requests.insert(Request::Persistent(Box::new(persistent)));
    Ok(handle)
}
