//! Functions of the program: message handlers, a matcher.

use super::told;
use crate::errors::{Error, report};
use crate::handlers::{Function, MatchFunction, ProgramMatcher};
use crate::library::{WaitingMessage, library};
use crate::wanted::WantedMessage;
use std::ffi::{c_char, c_int};
use weft_pvm_machine::code;

/// `PvmExists`.
const EXISTS: c_int = -33;

/// A function for messages from `source` with a tag and in a context, each of which may be -1 for any. Its number.
#[unsafe(no_mangle)]
pub extern "C" fn pvm_addmhf(source: c_int, tag: c_int, context: c_int, function: Option<Function>) -> c_int {
    let outcome = function.ok_or(Error::BAD_PARAM).and_then(|function| {
        let mut library = library();
        library.options.note_context(context);
        library.handlers.add(WantedMessage { tid: source, tag, context }, function).ok_or(Error(EXISTS))
    });
    told(c"pvm_addmhf", outcome)
}

#[unsafe(no_mangle)]
pub extern "C" fn pvm_delmhf(number: c_int) -> c_int {
    if number < 0 {
        return report(c"pvm_delmhf", Error::BAD_PARAM.0);
    }
    let was = library().handlers.remove(number);
    if was { code::OK } else { report(c"pvm_delmhf", code::NOT_FOUND) }
}

/// The way in which messages are chosen where the program has no other: by task, tag and this task's context.
extern "C" fn plain_match(buffer: c_int, tid: c_int, tag: c_int) -> c_int {
    let library = library();
    let message = library.arrived.iter().find(|message| message.buffer == buffer);
    message
        .map_or(Error::NO_SUCH_BUF.0, |message: &WaitingMessage| c_int::from(WantedMessage::here(tid, tag).is(message)))
}

/// From now on this function chooses; a null pointer stands for the plain way. The function before.
#[unsafe(no_mangle)]
pub extern "C" fn pvm_recvf(function: Option<MatchFunction>) -> MatchFunction {
    let mut library = library();
    let is_plain = |function: &MatchFunction| std::ptr::fn_addr_eq(*function, plain_match as MatchFunction);
    let new = function.filter(|function| !is_plain(function)).map(ProgramMatcher);
    std::mem::replace(&mut library.matcher, new).map_or(plain_match, |matcher| matcher.0)
}

/// For people who look for faults in handlers: which there are, on standard output.
///
/// # Safety
/// `who` and `line` are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvmdisplaymhfinfo(who: *const c_char, line: *const c_char, tid: c_int) {
    // SAFETY: the caller's promise. What the program has printed stands before.
    let (who, line) = unsafe {
        libc::fflush(std::ptr::null_mut());
        (super::text(who), super::text(line))
    };
    println!("{} t{tid:x}: {}", who.text(), line.text());
    for (_, wanted) in library().handlers.all() {
        println!("{} t{tid:x}: src=t{:x} ctx={} tag={}", who.text(), wanted.tid, wanted.context, wanted.tag);
    }
}
