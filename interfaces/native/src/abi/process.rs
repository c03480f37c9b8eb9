//! Joining, leaving, and who is there.

use super::{answer, put_text};
use crate::desk::FABRIC;
use crate::end_desk::GoneHow;
use crate::error::NativeError;
use crate::join;
use crate::known::{self, PortNumber};
use crate::port;
use std::ffi::{c_char, c_int};
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

macro_rules! answers {
    ($($name:ident($($number:ident)?) = $result:expr;)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($number: c_int)?) -> c_int {
            answer($result)
        }
    )* };
}

answers! {
    weft_finish() = join::leave().map(|()| 0);
    weft_me() = join::me().map(|me| me.0 as c_int);
    weft_size() = join::size().map(|size| size as c_int);
    weft_hosts() = join::hosts().map(|hosts| hosts as c_int);
    weft_host_of(process) = join::host_of(Peer(process as u32)).map(|host| host as c_int);
    weft_has_left(process) = join::gone(Peer(process as u32)).map(|gone| match gone {
        None => 0,
        Some(GoneHow::Left) => 1,
        Some(GoneHow::Lost) => 2,
    });
    weft_poll() = known::allowed().map(|()| {
        FABRIC.poll();
        0
    });
    weft_port_open(number) = {
        let number = if number == super::ANY { None } else { Some(number as u32) };
        port::open_numbered(number).map(|port| port.0 as c_int)
    };
    weft_port_close(port) = port::close(PortNumber(port as u32)).map(|()| 0);
}

/// # Safety
/// `name` is null, or writable for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_host_name(host: c_int, name: *mut c_char, size: usize) -> c_int {
    let found = join::host_name(host as u32);
    // SAFETY: the caller's promise.
    answer(found.and_then(|found| unsafe { put_text(&found, "the name", name, size) }))
}
