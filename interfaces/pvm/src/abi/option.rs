//! Options, and what children print.

use super::told;
use crate::errors::Error;
use crate::library::{OUTPUT_TAG, SYSTEM_CONTEXT, enrolled, library};
use crate::options::number;
use std::ffi::c_int;
use weft_pvm_machine::frame::{ByteString, Content, Request};

/// Under this name the tasks stand that a reset of the machine spares.
const SPARED: &str = "###_PVM_NO_RESET_###";

#[unsafe(no_mangle)]
pub extern "C" fn pvm_getopt(what: c_int) -> c_int {
    let value = library().options.get(what);
    told(c"pvm_getopt", value)
}

/// The old value.
#[unsafe(no_mangle)]
pub extern "C" fn pvm_setopt(what: c_int, value: c_int) -> c_int {
    told(c"pvm_setopt", set(what, value))
}

fn set(what: c_int, value: c_int) -> Result<c_int, Error> {
    let old = library().options.set(what, value)?;
    match what {
        number::SELF_OUTPUT_TID | number::SELF_OUTPUT_CODE if old != value && old.max(value) > 0 => {
            let mut library = enrolled()?;
            let destination = library.options.own_output();
            library.ask_code(&Request::PrintTo { destination })?;
        }
        number::NO_RESET if (old != 0) != (value != 0) => {
            let mut library = enrolled()?;
            let tid = library.task()?.identity.tid;
            let name = ByteString::from(SPARED);
            if value != 0 {
                let bytes = ByteString(tid.to_be_bytes().to_vec());
                let content = Content { encoding: 0, source: tid, tag: 0, bytes };
                library.spared_as = library.ask_code(&Request::Put { name, index: -1, flags: 2, content })?;
            } else {
                let index = library.spared_as;
                library.ask_code(&Request::Delete { name, index })?;
            }
        }
        _ => {}
    }
    Ok(old)
}

/// Writes what children print that are started from now on to a stream; a null pointer ends it.
///
/// # Safety
/// The stream stays open until another one is given, or the task leaves.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_catchout(stream: *mut libc::FILE) -> c_int {
    let outcome = enrolled().and_then(|mut library| {
        let tid = library.task()?.identity.tid;
        let (own, is_on) = (library.options.own_output(), !stream.is_null());
        let options = &mut library.options;
        let to = if is_on { (tid, SYSTEM_CONTEXT, OUTPUT_TAG) } else { (own.tid, own.context, own.tag) };
        options.set(number::OUTPUT_TID, to.0)?;
        options.set(number::OUTPUT_CONTEXT, to.1)?;
        options.set(number::OUTPUT_CODE, to.2)?;
        library.catching.set_stream(stream as usize);
        Ok(0)
    });
    told(c"pvm_catchout", outcome)
}
