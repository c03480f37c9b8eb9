//! What functions of the program are given: handles, error codes and statuses of the ABI that the program was built
//! for.
//!
//! Bodies work with the standard ABI. A front end for another one says once how values become the program's.

use crate::abi::Status;
use crate::handle::HandleKind;
use std::ffi::c_void;
use std::sync::OnceLock;

/// How values become the program's.
pub struct Speech {
    /// A handle, in the place of a pointer.
    pub handle: fn(HandleKind, usize) -> usize,
    /// An error code.
    pub code: fn(i32) -> i32,
    /// An error code that a function of the program returned.
    pub code_back: fn(i32) -> i32,
    /// A level of safety of callbacks of tools.
    pub safety: fn(i32) -> i32,
    /// Calls the function of a generalized request (its address) that fills a status.
    pub query: unsafe fn(usize, *mut c_void, &mut Status) -> i32,
}

static SPEECH: OnceLock<&'static Speech> = OnceLock::new();

/// Says how; the first one counts. Without it the program's values are those of the standard ABI.
pub fn speak(speech: &'static Speech) {
    let _ = SPEECH.set(speech);
}

/// The program's handle for one of ours.
pub fn handle(kind: HandleKind, handle: usize) -> usize {
    SPEECH.get().map_or(handle, |speech| (speech.handle)(kind, handle))
}

/// The program's number of a key of ours.
pub fn keyval(number: i32) -> i32 {
    handle(HandleKind::Keyval, number as u32 as usize) as i32
}

/// The program's number of an error code.
pub fn code(code: i32) -> i32 {
    SPEECH.get().map_or(code, |speech| (speech.code)(code))
}

/// The program's number of a level of safety of callbacks.
pub fn safety(level: i32) -> i32 {
    SPEECH.get().map_or(level, |speech| (speech.safety)(level))
}

/// Our number of an error code that a function of the program returned.
pub fn code_back(code: i32) -> i32 {
    SPEECH.get().map_or(code, |speech| (speech.code_back)(code))
}

/// Asks the program's function for the status of a generalized request.
///
/// # Safety
/// `function` is the address of a function of this kind.
pub unsafe fn query(function: usize, extra: *mut c_void, status: &mut Status) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        if let Some(speech) = SPEECH.get() {
            return (speech.query)(function, extra, status);
        }
        let function: unsafe extern "C" fn(*mut c_void, *mut Status) -> i32 = std::mem::transmute(function);
        function(extra, status)
    }
}
