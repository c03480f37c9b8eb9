//! Joining, leaving, and who is there.

use super::answer;
use crate::desk::FABRIC;
use crate::error::NativeError;
use crate::join::{self, GoneHow};
use crate::known::{self, PortNumber};
use crate::port;
use std::ffi::c_int;
use weft_ports::Peer;

/// `WEFT_THREADS`.
const THREADS: c_int = 1;

/// A program that is started by its own name may be a whole job.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    weft_fabric::by_name::begin(c"weft_init", weft_init as *const ());
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_init(flags: c_int) -> c_int {
    answer(match flags & !THREADS {
        0 => join::join(flags == THREADS).map(|()| 0),
        _ => Err(NativeError::argument(format!("flags {flags}: 0 or WEFT_THREADS"))),
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_finish() -> c_int {
    answer(join::leave().map(|()| 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_me() -> c_int {
    answer(join::me().map(|me| me.0 as c_int))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_size() -> c_int {
    answer(join::size().map(|size| size as c_int))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_hosts() -> c_int {
    answer(join::hosts().map(|hosts| hosts as c_int))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_host_of(process: c_int) -> c_int {
    answer(join::host_of(Peer(process as u32)).map(|host| host as c_int))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_has_left(process: c_int) -> c_int {
    answer(join::gone(Peer(process as u32)).map(|gone| match gone {
        None => 0,
        Some(GoneHow::Left) => 1,
        Some(GoneHow::Lost) => 2,
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_poll() -> c_int {
    answer(known::allowed().map(|()| {
        FABRIC.poll();
        0
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_port_open(number: c_int) -> c_int {
    let number = if number == super::ANY { None } else { Some(number as u32) };
    answer(port::open_numbered(number).map(|port| port.0 as c_int))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_port_close(port: c_int) -> c_int {
    answer(port::close(PortNumber(port as u32)).map(|()| 0))
}
