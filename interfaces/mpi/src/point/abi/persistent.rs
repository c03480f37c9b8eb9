//! Bodies of the calls that make persistent operations (MPI 5.0, section 3.9).

use super::Described;
use crate::error::Result;
use crate::point::buffer::Buffer;
use crate::point::route::{Source, destination, selection};
use crate::point::transfer::Mode;
use crate::request::{Persistent, Plan, Request};
use crate::world::WORLD;
use std::ffi::c_void;

fn make_send(mode: Mode, (buf, count, datatype): Described, dest: i32, tag: i32, comm: usize) -> Result<usize> {
    let mut world = WORLD.enter();
    let route = destination(&world.comms, comm, dest, tag)?;
    let buffer = Buffer::with_partner(&world.types, (buf, count), ("datatype", datatype), route.is_some())?;
    let plan = route.map_or(Plan::SendNothing, |route| Plan::Send(route, mode));
    let persistent = Persistent { plan, buffer, comm, active: None };
    Ok(world.requests.insert(Request::Persistent(Box::new(persistent))))
}

/// The bodies of the sends, which differ in name and mode.
macro_rules! sends {
    ($($name:ident: $mode:ident;)*) => {$(
        pub unsafe fn $name(
            buf: *const c_void,
            count: i64,
            datatype: usize,
            dest: i32,
            tag: i32,
            comm: usize,
            request: *mut usize,
        ) -> Result<()> {
            let handle = make_send(Mode::$mode, (buf, count, datatype), dest, tag, comm)?;
            // SAFETY: the program's own place for the handle.
            unsafe { *request = handle };
            Ok(())
        }
    )*};
}

sends! {
    send_init: Standard;
    ssend_init: Synchronous;
    bsend_init: Buffered;
}

/// `MPI_Recv_init`.
pub unsafe fn recv_init(
    buf: *mut c_void,
    count: i64,
    datatype: usize,
    source: i32,
    tag: i32,
    comm: usize,
    request: *mut usize,
) -> Result<()> {
    let mut world = WORLD.enter();
    let from = selection(&world.comms, comm, source, tag)?;
    let buffer = Buffer::with_partner(&world.types, (buf, count), ("datatype", datatype), from.is_some())?;
    let plan = from.map_or(Plan::ReceiveNothing, |from| Plan::Receive(Source::Matching(from)));
    let persistent = Persistent { plan, buffer, comm, active: None };
    let handle = world.requests.insert(Request::Persistent(Box::new(persistent)));
    // SAFETY: the program's own place for the handle.
    unsafe { *request = handle };
    Ok(())
}
