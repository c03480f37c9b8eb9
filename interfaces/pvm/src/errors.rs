//! What calls answer besides success: the numbers and texts of PVM 3.4, and the line that says so.
//!
//! A call that fails leaves its number in `pvm_errno` and says so on standard error, in one line that names the task
//! and the call, unless the program has asked for silence (the option `PvmAutoErr`).

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::identity::pvmmytid;

/// Why a call has not done what it was asked to: a number of the C interface, below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub c_int);

pub use self::Code as Error;

impl Code {
    pub const BAD_PARAM: Self = Self(-2);
    pub const MISMATCH: Self = Self(-3);
    pub const OVERFLOW: Self = Self(-4);
    pub const NO_DATA: Self = Self(-5);
    pub const NO_HOST: Self = Self(-6);
    pub const DENIED: Self = Self(-8);
    pub const NO_MEM: Self = Self(-10);
    pub const BAD_MSG: Self = Self(-12);
    pub const SYS_ERR: Self = Self(-14);
    pub const NO_BUF: Self = Self(-15);
    pub const NO_SUCH_BUF: Self = Self(-16);
    pub const NULL_GROUP: Self = Self(-17);
    pub const NOT_IN_GROUP: Self = Self(-20);
    pub const NO_INST: Self = Self(-21);
    pub const NOT_IMPL: Self = Self(-24);
    pub const NO_TASK: Self = Self(-31);
    pub const NOT_FOUND: Self = Self(-32);
    pub const EXISTS: Self = Self(-33);
}

/// How many texts there are.
pub const TEXTS: usize = 37;

/// The text of a number, its sign turned. Numbers that mean nothing have one, too.
const TEXT_OF: [&CStr; TEXTS] = [
    c"Error 0",
    c"Error 1",
    c"Bad parameter",
    c"Parameter mismatch",
    c"Value too large",
    c"End of buffer",
    c"No such host",
    c"No such file",
    c"Permission denied",
    c"Error 9",
    c"Malloc failed",
    c"Error 11",
    c"Can't decode message",
    c"Error 13",
    c"Can't contact local daemon",
    c"No current buffer",
    c"No such buffer",
    c"Null group name",
    c"Already in group",
    c"No such group",
    c"Not in group",
    c"No such instance",
    c"Host failed",
    c"No parent task",
    c"Not implemented",
    c"Pvmd system error",
    c"Version mismatch",
    c"Out of resources",
    c"Duplicate host",
    c"Can't start pvmd",
    c"Already in progress",
    c"No such task",
    c"Not Found",
    c"Already Exists",
    c"Hoster must run on master host",
    c"The parent was spawned with PvmNoSpawnParent",
    c"The master host has the address of its loopback",
];

/// The texts as C has them.
#[repr(transparent)]
pub struct TextList([*const c_char; TEXTS]);

// SAFETY: pointers to texts that nobody changes.
unsafe impl Sync for TextList {}

impl TextList {
    const fn new(texts: &[&'static CStr; TEXTS]) -> Self {
        let mut list = [std::ptr::null(); TEXTS];
        let mut at = 0;
        while at < TEXTS {
            list[at] = texts[at].as_ptr();
            at += 1;
        }
        Self(list)
    }
}

#[unsafe(no_mangle)]
pub static pvm_errlist: TextList = TextList::new(&TEXT_OF);

#[unsafe(no_mangle)]
pub static pvm_nerr: c_int = TEXTS as c_int;

/// The number of the last error.
#[unsafe(no_mangle)]
pub static pvm_errno: AtomicI32 = AtomicI32::new(0);

/// What is done about an error: 0 nothing, 1 a line, 2 a line and the end of the task, 3 a line and an abort.
pub static AUTO_ERROR: AtomicI32 = AtomicI32::new(1);

/// The text of a number.
pub fn text(code: c_int) -> &'static CStr {
    let at = usize::try_from(i64::from(code).wrapping_neg()).unwrap_or(TEXTS);
    TEXT_OF.get(at).copied().unwrap_or(c"Unknown Error")
}

/// A line on standard error about the last error; `what` says where.
pub fn say(what: &str) {
    let text = text(pvm_errno.load(Relaxed)).to_string_lossy();
    match pvmmytid.load(Relaxed) {
        -1 => eprintln!("libpvm [pid{}]: {what}: {text}", std::process::id()),
        task => eprintln!("libpvm [t{task:x}]: {what}: {text}"),
    }
}

/// Reports an error of a call, and answers it. Nobody may hold the library.
#[cold]
pub fn report(call: &CStr, code: c_int) -> c_int {
    pvm_errno.store(code, Relaxed);
    let asked = AUTO_ERROR.load(Relaxed);
    if asked == 0 {
        return code;
    }
    say(&format!("{}()", call.to_string_lossy()));
    match asked {
        2 => {
            // At its end the process leaves the machine, which may fail as well.
            AUTO_ERROR.store(1, Relaxed);
            // SAFETY: as the program has asked; nothing of ours is held.
            unsafe { libc::exit(code) }
        }
        3 => std::process::abort(),
        _ => code,
    }
}

/// What a call answers: what it has to say, or the error, which is reported.
#[inline]
pub fn answered(call: &CStr, answer: Result<c_int, Code>) -> c_int {
    answer.unwrap_or_else(|error| report(call, error.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_texts_that_programs_print() {
        assert_eq!((text(-5), text(-16), text(-33)), (c"End of buffer", c"No such buffer", c"Already Exists"));
        for nobody in [1, -37, i32::MIN, i32::MAX] {
            assert_eq!(text(nobody), c"Unknown Error");
        }
        // SAFETY: the texts are C strings.
        let last = unsafe { CStr::from_ptr(pvm_errlist.0[TEXTS - 1]) };
        assert_eq!((pvm_nerr, last), (37, text(-36)));
    }
}
