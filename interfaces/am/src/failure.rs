//! What calls answer, and the line that tells why where the program asked for such lines.

use std::ffi::{c_char, c_int};
use std::fmt;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// Error numbers of AM-II.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum AmError {
    NotInit = 1,
    BadArg = 2,
    Resource = 3,
}

/// Why a call has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmFailure {
    pub error: AmError,
    pub why: &'static str,
}

pub type Answer<T> = Result<T, AmFailure>;

pub const NOT_INIT: AmFailure = AmFailure { error: AmError::NotInit, why: "AM_Init was not called" };

pub const fn bad(why: &'static str) -> AmFailure {
    AmFailure { error: AmError::BadArg, why }
}

pub const fn no_resource(why: &'static str) -> AmFailure {
    AmFailure { error: AmError::Resource, why }
}

impl fmt::Display for AmFailure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.error {
            AmError::NotInit => "AM_ERR_NOT_INIT",
            AmError::BadArg => "AM_ERR_BAD_ARG",
            AmError::Resource => "AM_ERR_RESOURCE",
        };
        write!(to, "{name}: {}", self.why)
    }
}

/// Set by programs: each failure is told on standard error.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static AMX_VerboseErrors: AtomicI32 = AtomicI32::new(0);
/// Set by programs, and without meaning here, where nothing is said besides.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static AMX_SilentMode: AtomicI32 = AtomicI32::new(0);
/// As the other one: waiting is polite always.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static AMUDP_PoliteSync: AtomicI32 = AtomicI32::new(0);
/// Set by programs: what this process is called in lines of ours.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static AMX_ProcessLabel: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());

/// What a call answers, which is told where the program wants that.
#[inline]
pub fn answer(call: &'static str, result: Answer<()>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(failure) => tell(call, failure),
    }
}

#[cold]
fn tell(call: &'static str, failure: AmFailure) -> c_int {
    if AMX_VerboseErrors.load(Ordering::Relaxed) != 0 {
        eprintln!("weft: {call}: {failure}");
    }
    failure.error as c_int
}
