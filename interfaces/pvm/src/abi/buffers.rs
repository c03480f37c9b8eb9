//! Message buffers: making, freeing and choosing them, and what is known of a message.

use std::ffi::c_int;

use crate::buffer::{Encoding, MessageHeading};
use crate::errors::{Code, answered, report};
use crate::library::{library, my_tid};

/// What a program reads and writes of a message (`struct pvmminfo`).
#[repr(C)]
pub struct MessageInfo {
    length: c_int,
    context: c_int,
    tag: c_int,
    wait: c_int,
    encoding: c_int,
    checksum: c_int,
    source: c_int,
    destination: c_int,
}

/// Messages of the user's trace events are not written: nobody receives traces.
fn encoding(number: c_int) -> Result<Encoding, Code> {
    match number {
        0 => Ok(Encoding::Default),
        1 => Ok(Encoding::Raw),
        2 => Ok(Encoding::InPlace),
        4 => Err(Code::NOT_IMPL),
        _ => Err(Code::BAD_PARAM),
    }
}

answers! {
    pvm_mkbuf c"pvm_mkbuf"(how) = encoding(how).map(|encoding| library().buffers.make(encoding, my_tid()));
    pvm_initsend c"pvm_initsend"(how) = begin(how);
    pvm_freebuf c"pvm_freebuf"(buffer) = library().buffers.free(buffer).map(|()| 0);
    pvm_setsbuf c"pvm_setsbuf"(buffer) = library().buffers.set_active_send(buffer);
    pvm_setrbuf c"pvm_setrbuf"(buffer) = library().buffers.set_active_receive(buffer);
    /// The number by which a reply finds its request.
    pvm_getmwid c"pvm_getmwid"(buffer) = info(buffer).map(|info| info.wait);
    pvm_setmwid c"pvm_setmwid"(buffer, wait) = {
        let set = library().buffers.message_mut(buffer).map(|message| message.heading.wait = wait);
        set.map(|()| 0)
    };
    pvm_pkmesg c"pvm_pkmesg"(buffer) = library().buffers.pack_nested(buffer, true).map(|()| 0);
    pvm_pkmesgbody c"pvm_pkmesgbody"(buffer) = library().buffers.pack_nested(buffer, false).map(|()| 0);
    pvm_upkmesg c"pvm_upkmesg"() = library().buffers.unpack_nested();
}

/// A new message in the place of the one that was packed.
#[inline(always)]
pub(super) fn begin(how: c_int) -> Result<c_int, Code> {
    encoding(how).map(|encoding| library().buffers.begin_sending(encoding, my_tid()))
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_getsbuf() -> c_int {
    library().buffers.active_send()
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_getrbuf() -> c_int {
    library().buffers.active_receive()
}

fn info(buffer: c_int) -> Result<MessageInfo, Code> {
    let library = library();
    let message = library.buffers.message(buffer)?;
    let MessageHeading { context, tag, wait, checksum, source, destination } = message.heading;
    let length = c_int::try_from(message.length()).unwrap_or(c_int::MAX);
    let encoding = message.encoding().signature();
    Ok(MessageInfo { length, context, tag, wait, encoding, checksum, source, destination })
}

/// # Safety
/// Each pointer is null, or that of a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_bufinfo(buffer: c_int, length: *mut c_int, tag: *mut c_int, task: *mut c_int) -> c_int {
    match info(buffer) {
        Ok(info) => {
            for (to, value) in [(length, info.length), (tag, info.tag), (task, info.source)] {
                if !to.is_null() {
                    // SAFETY: as the caller says.
                    unsafe { to.write(value) };
                }
            }
            0
        }
        Err(error) => report(c"pvm_bufinfo", error.0),
    }
}

/// # Safety
/// `to` is null, or has room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_getminfo(buffer: c_int, to: *mut MessageInfo) -> c_int {
    let found = if to.is_null() { Err(Code::BAD_PARAM) } else { info(buffer) };
    // SAFETY: it is not null, then.
    answered(c"pvm_getminfo", found.map(|info| unsafe { to.write(info) }).map(|()| 0))
}

/// # Safety
/// `from` is null, or can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_setminfo(buffer: c_int, from: *const MessageInfo) -> c_int {
    // SAFETY: as the caller says.
    let given = unsafe { from.as_ref() };
    let set = given.ok_or(Code::BAD_PARAM).and_then(|given| {
        let mut library = library();
        let heading = &mut library.buffers.message_mut(buffer)?.heading;
        let MessageInfo { context, tag, wait, source, destination, .. } = *given;
        *heading = MessageHeading { context, tag, wait, source, destination, checksum: heading.checksum };
        Ok(0)
    });
    answered(c"pvm_setminfo", set)
}
