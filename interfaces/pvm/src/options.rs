//! Options (`pvm_setopt(3PVM)`), of which most are accepted and change nothing here.

use crate::errors::{AUTO_ERROR, Error};
use std::ffi::c_int;
use std::sync::atomic::Ordering;
use weft_pvm_machine::frame::Destination;

/// By their numbers in `pvm3.h`.
pub mod number {
    use std::ffi::c_int;
    pub const ROUTE: c_int = 1;
    pub const AUTO_ERR: c_int = 3;
    pub const OUTPUT_TID: c_int = 4;
    pub const OUTPUT_CODE: c_int = 5;
    pub const FRAGMENT_SIZE: c_int = 10;
    pub const RESERVED_TIDS: c_int = 11;
    pub const SELF_OUTPUT_TID: c_int = 12;
    pub const SELF_OUTPUT_CODE: c_int = 13;
    pub const SHOW_TIDS: c_int = 18;
    pub const POLL_TYPE: c_int = 19;
    pub const POLL_TIME: c_int = 20;
    pub const OUTPUT_CONTEXT: c_int = 21;
    pub const SELF_OUTPUT_CONTEXT: c_int = 23;
    pub const SELF_TRACE_CONTEXT: c_int = 24;
    pub const NO_RESET: c_int = 25;
}

use number::*;

const COUNT: usize = 26;

pub struct Options {
    values: [c_int; COUNT],
    /// Contexts that this task has used.
    contexts: Vec<c_int>,
}

impl Options {
    pub const fn new() -> Self {
        let mut values = [0; COUNT];
        values[ROUTE as usize] = 2;
        values[FRAGMENT_SIZE as usize] = 4080;
        values[SHOW_TIDS as usize] = 1;
        values[POLL_TYPE as usize] = 1;
        Self { values, contexts: Vec::new() }
    }

    pub fn get(&self, what: c_int) -> Result<c_int, Error> {
        match what {
            AUTO_ERR => Ok(AUTO_ERROR.load(Ordering::Relaxed)),
            POLL_TYPE | POLL_TIME => Err(Error::NOT_IMPL),
            ROUTE..=NO_RESET => Ok(self.values[what as usize]),
            _ => Err(Error::BAD_PARAM),
        }
    }

    /// The old value.
    ///
    /// # Errors
    /// There is no such option, or it does not have this value.
    pub fn set(&mut self, what: c_int, value: c_int) -> Result<c_int, Error> {
        let old = self.get(what)?;
        let is_good = match what {
            ROUTE => (1..=3).contains(&value),
            AUTO_ERR => (0..=3).contains(&value),
            FRAGMENT_SIZE => (56..=1 << 20).contains(&value),
            SELF_OUTPUT_CONTEXT | SELF_TRACE_CONTEXT => return Err(Error::NOT_IMPL),
            _ => true,
        };
        if !is_good {
            return Err(Error::BAD_PARAM);
        }
        match what {
            AUTO_ERR => AUTO_ERROR.store(value, Ordering::Relaxed),
            SELF_OUTPUT_TID | SELF_OUTPUT_CODE => {
                self.values[what as usize] = value;
                // What its children print goes there, too.
                self.values[OUTPUT_TID as usize] = self.values[SELF_OUTPUT_TID as usize];
                self.values[OUTPUT_CODE as usize] = self.values[SELF_OUTPUT_CODE as usize];
                self.values[OUTPUT_CONTEXT as usize] = self.values[SELF_OUTPUT_CONTEXT as usize];
            }
            _ => self.values[what as usize] = value,
        }
        Ok(old)
    }

    /// Where the task's own output goes is where that of its children will, if it says nothing else.
    pub fn set_output(&mut self, to: &Destination) {
        if self.values[SELF_OUTPUT_TID as usize] < 0 {
            // Consoles want none.
            return;
        }
        for (tid, context, code) in
            [(SELF_OUTPUT_TID, SELF_OUTPUT_CONTEXT, SELF_OUTPUT_CODE), (OUTPUT_TID, OUTPUT_CONTEXT, OUTPUT_CODE)]
        {
            self.values[tid as usize] = to.tid;
            self.values[context as usize] = to.context;
            self.values[code as usize] = to.tag;
        }
    }

    fn destination(&self, tid: c_int, context: c_int, code: c_int) -> Destination {
        let value = |what: c_int| self.values[what as usize];
        Destination { tid: value(tid).max(0), context: value(context), tag: value(code) }
    }

    /// Where what children print goes.
    pub fn output(&self) -> Destination {
        self.destination(OUTPUT_TID, OUTPUT_CONTEXT, OUTPUT_CODE)
    }

    pub fn own_output(&self) -> Destination {
        self.destination(SELF_OUTPUT_TID, SELF_OUTPUT_CONTEXT, SELF_OUTPUT_CODE)
    }

    pub fn shows_tids(&self) -> bool {
        self.values[SHOW_TIDS as usize] != 0
    }

    /// Whether negative tags, and identifiers that are no task's, are the program's affair.
    #[inline]
    pub fn allows_reserved(&self) -> bool {
        self.values[RESERVED_TIDS as usize] != 0
    }

    pub fn note_context(&mut self, context: c_int) {
        if context > 0 && !self.contexts.contains(&context) {
            self.contexts.push(context);
        }
    }

    pub fn forget_context(&mut self, context: c_int) {
        self.contexts.retain(|there| *there != context);
    }

    /// All contexts that messages may come in which this task is meant to see.
    pub fn contexts(&self) -> Vec<c_int> {
        std::iter::once(0).chain(self.contexts.iter().copied()).collect()
    }
}
