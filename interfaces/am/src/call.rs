//! Calling handlers.

use crate::message::{AmCategory, MessageHead, Purpose};
use crate::returned::default_handler;
use crate::tables::{AfterHandler, BeforeHandler, CFunction};
use crate::token::{self, MessageToken};
use std::ffi::c_void;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Message,
    /// It has come back: why, and what call it was.
    Returned {
        status: u32,
        opcode: u32,
    },
}

/// A handler that is to be called.
pub struct AmHandlerCall {
    pub function: Option<CFunction>,
    pub manner: Manner,
    pub before: Option<BeforeHandler>,
    pub after: Option<AfterHandler>,
    pub pointer: *mut c_void,
    pub length: usize,
}

type OnReturned = unsafe extern "C" fn(i32, i32, *mut c_void);

impl AmHandlerCall {
    #[inline]
    pub fn run(self, head: &MessageHead<'_>, rank: u32) {
        let Self { function, manner, before, after, pointer, length } = self;
        let token = MessageToken::new(head, rank);
        token::begin(&token);
        let place = (&raw const token).cast_mut().cast::<c_void>();
        let (category, is_request) = (head.category as u32, i32::from(head.purpose == Purpose::Request));
        let is_message = manner == Manner::Message;
        let given = head.arguments;
        if let Some(before) = before.filter(|_| is_message) {
            let mut shown = [0; crate::message::MOST_ARGUMENTS];
            shown[..given.len()].copy_from_slice(given);
            let (handler, count) = (i32::from(head.handler), given.len() as i32);
            // SAFETY: the program has given a function of this type (`AMUDP_SetHandlerCallbacks`).
            unsafe { before(category, is_request, handler, place, pointer, length, count, shown.as_mut_ptr().cast()) };
        }
        match (manner, function) {
            (Manner::Returned { status, opcode }, Some(function)) => {
                // SAFETY: handler 0 is a function of this type, says AM-II.
                let function = unsafe { std::mem::transmute::<CFunction, OnReturned>(function) };
                // SAFETY: as above.
                unsafe { function(status as i32, opcode as i32, place) };
            }
            (Manner::Returned { status, opcode }, None) => default_handler(status, opcode, &token),
            // SAFETY: the program has registered a function that takes what this message brings; a sender that means
            // another one with other arguments is in error, and what follows is as in C.
            (Manner::Message, Some(function)) if head.category == AmCategory::Short => unsafe {
                call_short(function, place, given);
            },
            // SAFETY: as above.
            (Manner::Message, Some(function)) => unsafe { call_with_bytes(function, place, pointer, length, given) },
            (Manner::Message, None) => {}
        }
        if let Some(after) = after.filter(|_| is_message) {
            // SAFETY: as for `before`.
            unsafe { after(category, is_request) };
        }
        token::end(&token);
    }
}

/// The type of an argument.
macro_rules! argument {
    ($at:literal) => {
        i32
    };
}

/// Calls `function` with its fixed arguments and so many more.
macro_rules! call {
    ($function:ident, $given:ident, [$($fixed:ident: $type:ty),*], $($at:literal)*) => {{
        let function = std::mem::transmute::<CFunction, unsafe extern "C" fn($($type,)* $(argument!($at)),*)>($function);
        function($($fixed,)* $($given[$at]),*)
    }};
}

/// Calls `function` with as many arguments as there are.
macro_rules! call_any {
    ($f:ident, $given:ident, $fixed:tt) => {
        match $given.len() {
            0 => call!($f, $given, $fixed,),
            1 => call!($f, $given, $fixed, 0),
            2 => call!($f, $given, $fixed, 0 1),
            3 => call!($f, $given, $fixed, 0 1 2),
            4 => call!($f, $given, $fixed, 0 1 2 3),
            5 => call!($f, $given, $fixed, 0 1 2 3 4),
            6 => call!($f, $given, $fixed, 0 1 2 3 4 5),
            7 => call!($f, $given, $fixed, 0 1 2 3 4 5 6),
            8 => call!($f, $given, $fixed, 0 1 2 3 4 5 6 7),
            9 => call!($f, $given, $fixed, 0 1 2 3 4 5 6 7 8),
            10 => call!($f, $given, $fixed, 0 1 2 3 4 5 6 7 8 9),
            11 => call!($f, $given, $fixed, 0 1 2 3 4 5 6 7 8 9 10),
            12 => call!($f, $given, $fixed, 0 1 2 3 4 5 6 7 8 9 10 11),
            13 => call!($f, $given, $fixed, 0 1 2 3 4 5 6 7 8 9 10 11 12),
            14 => call!($f, $given, $fixed, 0 1 2 3 4 5 6 7 8 9 10 11 12 13),
            15 => call!($f, $given, $fixed, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
            _ => call!($f, $given, $fixed, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
        }
    };
}

/// # Safety
/// `function` takes a token and these arguments.
#[inline]
unsafe fn call_short(function: CFunction, token: *mut c_void, given: &[i32]) {
    // SAFETY: the caller's promise.
    unsafe { call_any!(function, given, [token: *mut c_void]) }
}

/// # Safety
/// `function` takes a token, a pointer, a length and these arguments.
unsafe fn call_with_bytes(function: CFunction, token: *mut c_void, pointer: *mut c_void, length: usize, given: &[i32]) {
    // SAFETY: the caller's promise.
    unsafe { call_any!(function, given, [token: *mut c_void, pointer: *mut c_void, length: usize]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::with_token;
    use std::ptr::null_mut;
    use std::sync::Mutex;

    static GOT: Mutex<Vec<i32>> = Mutex::new(Vec::new());

    extern "C" fn takes_three(token: *mut c_void, a: i32, b: i32, c: i32) {
        let known = with_token(token, |token| (token.rank, token.take_reply(), token.take_reply()));
        assert_eq!(known, Some((5, true, false)));
        assert_eq!(with_token(token.wrapping_byte_add(8), |_| ()), None);
        *GOT.lock().expect("no panic") = vec![a, b, c];
    }

    #[test]
    fn a_handler_gets_its_arguments_and_knows_its_message() {
        let head = MessageHead::new(Purpose::Request, AmCategory::Short, 1, &[7, -8, 9]);
        let function = takes_three as extern "C" fn(*mut c_void, i32, i32, i32);
        // SAFETY: it is called with the arguments that it takes.
        let function = unsafe { std::mem::transmute::<extern "C" fn(*mut c_void, i32, i32, i32), CFunction>(function) };
        let (pointer, length) = (null_mut(), 0);
        let manner = Manner::Message;
        AmHandlerCall { function: Some(function), manner, before: None, after: None, pointer, length }.run(&head, 5);
        assert_eq!(*GOT.lock().expect("no panic"), [7, -8, 9]);
    }
}
