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

#[unsafe(no_mangle)]
pub extern "C" fn pvm_mkbuf(how: c_int) -> c_int {
    let made = encoding(how).map(|encoding| library().buffers.make(encoding, my_tid()));
    answered(c"pvm_mkbuf", made)
}

/// A new message in the place of the one that was packed.
#[inline(always)]
pub(super) fn begin(how: c_int) -> Result<c_int, Code> {
    encoding(how).map(|encoding| library().buffers.begin_sending(encoding, my_tid()))
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_initsend(how: c_int) -> c_int {
    answered(c"pvm_initsend", begin(how))
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_freebuf(buffer: c_int) -> c_int {
    let freed = library().buffers.free(buffer);
    answered(c"pvm_freebuf", freed.map(|()| 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_getsbuf() -> c_int {
    library().buffers.active_send()
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_getrbuf() -> c_int {
    library().buffers.active_receive()
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_setsbuf(buffer: c_int) -> c_int {
    let old = library().buffers.set_active_send(buffer);
    answered(c"pvm_setsbuf", old)
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_setrbuf(buffer: c_int) -> c_int {
    let old = library().buffers.set_active_receive(buffer);
    answered(c"pvm_setrbuf", old)
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

/// The number by which a reply finds its request.
#[unsafe(no_mangle)]
pub extern "C" fn pvm_getmwid(buffer: c_int) -> c_int {
    answered(c"pvm_getmwid", info(buffer).map(|info| info.wait))
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_setmwid(buffer: c_int, wait: c_int) -> c_int {
    let set = library().buffers.message_mut(buffer).map(|message| message.heading.wait = wait);
    answered(c"pvm_setmwid", set.map(|()| 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_pkmesg(buffer: c_int) -> c_int {
    let packed = library().buffers.pack_nested(buffer, true);
    answered(c"pvm_pkmesg", packed.map(|()| 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_pkmesgbody(buffer: c_int) -> c_int {
    let packed = library().buffers.pack_nested(buffer, false);
    answered(c"pvm_pkmesgbody", packed.map(|()| 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_upkmesg() -> c_int {
    let unpacked = library().buffers.unpack_nested();
    answered(c"pvm_upkmesg", unpacked)
}
