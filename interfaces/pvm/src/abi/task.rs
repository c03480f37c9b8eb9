//! Who this task is.

use super::{put, told};
use crate::errors::{Error, report};
use crate::library::{enrolled, library, my_context, my_tid, pvmmyctx};
use crate::receive::{WaitPatience, receive};
use crate::waiting::wait_until;
use crate::wanted::WantedMessage;
use std::ffi::{CString, c_char, c_int};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};
use weft_pvm_machine::frame::Request;
use weft_pvm_machine::{code, tid};

/// A program that is started by its own name may be a whole job.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    weft_fabric::by_name::begin(c"pvm_mytid", pvm_mytid as *const ());
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_mytid() -> c_int {
    told(c"pvm_mytid", enrolled().map(|_| my_tid()))
}

/// Enrols where that has not happened; 0 or a code. Debian's `libgpvm3` calls it.
#[unsafe(no_mangle)]
pub extern "C" fn pvmbeatask() -> c_int {
    enrolled().map_or_else(|error| error.0, |_| 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_parent() -> c_int {
    match enrolled().and_then(|mut library| Ok(library.task()?.identity.parent)) {
        Ok(0) => code::NO_PARENT,
        Ok(parent) => parent,
        Err(error) => report(c"pvm_parent", error.0),
    }
}

/// A list that the program may read until the next call of the same function.
pub(super) struct ShownList<T>(AtomicPtr<(Vec<T>, Vec<CString>)>);

impl<T> ShownList<T> {
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Shows a list in the place of the one before, and keeps texts that it points at.
    pub(super) fn show(&self, list: Vec<T>, texts: Vec<CString>) -> *mut T {
        let mut held = Box::new((list, texts));
        let shown = held.0.as_mut_ptr();
        let before = self.0.swap(Box::into_raw(held), Ordering::AcqRel);
        if !before.is_null() {
            // SAFETY: of a box, and nobody else's since the exchange; the program looks at it no more.
            drop(unsafe { Box::from_raw(before) });
        }
        shown
    }
}

static SIBLINGS: ShownList<c_int> = ShownList::new();

/// # Safety
/// `tids` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_siblings(tids: *mut *mut c_int) -> c_int {
    let siblings = enrolled().and_then(|mut library| Ok(library.task()?.identity.siblings.clone()));
    told(
        c"pvm_siblings",
        siblings.map(|siblings| {
            let count = siblings.len() as c_int;
            // SAFETY: the caller's promise.
            unsafe { put(tids, SIBLINGS.show(siblings, Vec::new())) };
            count
        }),
    )
}

/// Leaves the virtual machine. The process goes on, and is another task when it calls again.
#[unsafe(no_mangle)]
pub extern "C" fn pvm_exit() -> c_int {
    if my_tid() == -1 {
        return code::OK;
    }
    await_output();
    // Messages that nobody will receive any more go, and their senders go on.
    let context = my_context();
    while let Ok(Some(buffer)) = receive("pvm_exit", WantedMessage { tid: -1, tag: -1, context }, WaitPatience::None) {
        let _ = library().buffers.free(buffer);
    }
    // SAFETY: all streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    let mut library = library();
    let left = library.leave();
    library.handlers.clear();
    library.frozen.clear();
    let waiting: Vec<c_int> = library.arrived.drain(..).map(|message| message.buffer).collect();
    waiting.into_iter().for_each(|buffer| _ = library.buffers.free(buffer));
    drop(library);
    told(c"pvm_exit", left.map(|()| code::OK))
}

/// As [`pvm_exit`], without more ado: what consoles call whose daemon has gone.
#[unsafe(no_mangle)]
pub extern "C" fn pvmendtask() -> c_int {
    let _ = library().leave();
    code::OK
}

/// Waits until nothing more comes that children print, where that is caught.
fn await_output() {
    let awaits = |shows: bool| {
        let library = library();
        (library.catching.awaits(), shows && library.options.shows_tids())
    };
    if let (true, shows) = awaits(true) {
        if shows {
            eprintln!("libpvm [t{:x}]: child task(s) still running.  waiting...", my_tid());
        }
        while awaits(false).0 {
            let mut library = library();
            let until = Instant::now() + Duration::from_millis(100);
            let heard = wait_until("pvm_exit", Some(until), false, |endpoint, _| match library.listen(endpoint) {
                Ok(_) if library.catching.awaits() && Instant::now() < until => None,
                other => Some(other),
            });
            if heard.is_err() {
                break;
            }
            if let Ok(task) = library.task() {
                task.flush();
            }
        }
    }
    library().catching.clear();
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_tidtohost(of: c_int) -> c_int {
    of & tid::HOST_MASK
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_getcontext() -> c_int {
    my_context()
}

/// The context before.
#[unsafe(no_mangle)]
pub extern "C" fn pvm_setcontext(context: c_int) -> c_int {
    library().options.note_context(context);
    pvmmyctx.swap(context, Ordering::Relaxed)
}

answers! {
    pvm_newcontext c"pvm_newcontext"() = enrolled().and_then(|mut library| {
        let context = library.ask_code(&Request::Context { free: 0 })?;
        library.options.note_context(context);
        Ok(context)
    });
    pvm_freecontext c"pvm_freecontext"(context) = enrolled().and_then(|mut library| {
        if context <= 0 {
            return Err(Error::BAD_PARAM);
        }
        library.options.forget_context(context);
        library.ask_code(&Request::Context { free: context })
    });
}

/// Descriptors that can be read when there may be news. Messages of other tasks come by shared memory, and show there
/// only as the machine's word that somebody wants to send for the first time.
///
/// # Safety
/// `descriptors` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvm_getfds(descriptors: *mut *mut c_int) -> c_int {
    static SHOWN: ShownList<c_int> = ShownList::new();
    told(
        c"pvm_getfds",
        enrolled().and_then(|mut library| {
            let list = vec![library.task()?.client.descriptor()];
            // SAFETY: the caller's promise.
            unsafe { put(descriptors, SHOWN.show(list, Vec::new())) };
            Ok(1)
        }),
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_version() -> *const c_char {
    c"3.4.6".as_ptr()
}
