//! The functions of C, a file for each module of Panda.
//!
//! Objects are boxes that the program holds by their pointers, as it does in the original.

/// Functions on what their first argument leads to, which `$find` looks at.
macro_rules! on_object {
    ($find:ident: $($name:ident(
        $object:ident: $type:ty $(, $argument:ident: $other:ty)*
    ) $(-> $answer:ty)? $body:block)*) => { $(
        /// # Safety
        /// What is passed is the program's, of this type, and null nowhere.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($object: $type $(, $argument: $other)*) $(-> $answer)? {
            // SAFETY: the caller's promise.
            let $object = unsafe { $find(stringify!($name), $object) };
            $body
        }
    )* };
}

/// Functions that take an object of the program's back, if it is not null.
macro_rules! clears {
    ($($(#[$comment:meta])* $name:ident: $type:ty;)*) => { $(
        /// # Safety
        /// It is null, or the program's, and nothing uses it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(object: *mut $type) {
            // SAFETY: the caller's promise.
            drop(unsafe { crate::abi::take(object) });
        }
    )* };
}

mod group;
mod memory;
mod message;
mod mp;
mod parameters;
mod points;
mod pset;
mod rpc;
mod system;
mod threads;
mod time;
mod typed;
mod utility;

use crate::failure::fail;
use std::sync::atomic::{AtomicU32, Ordering};

/// This process's number, and how many there are; 0 until the job was joined.
static PLACE: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];

fn me() -> u32 {
    PLACE[0].load(Ordering::Relaxed)
}

fn platforms() -> u32 {
    PLACE[1].load(Ordering::Relaxed)
}

/// Ends the job if `call` comes before `pan_init` or after `pan_end`.
#[inline]
fn assert_open(call: &str) {
    if platforms() == 0 {
        fail(&format!("{call}: called before pan_init or after pan_end"));
    }
}

/// A new object of the program's.
fn give<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// # Safety
/// It is null, or was made by [`give`] and not taken back yet.
unsafe fn take<T>(pointer: *mut T) -> Option<Box<T>> {
    // SAFETY: the caller's promise.
    (!pointer.is_null()).then(|| unsafe { Box::from_raw(pointer) })
}

/// What a pointer of the program leads to; the job ends if it is null.
///
/// # Safety
/// It is null, or leads to such an object, which nothing else uses until this returns to the program.
#[inline]
unsafe fn object<'a, T>(call: &str, pointer: *mut T) -> &'a mut T {
    // SAFETY: the caller's promise.
    match unsafe { pointer.as_mut() } {
        Some(object) => object,
        None => fail(&format!("{call}: a null pointer")),
    }
}

/// A number that counts something; the job ends if it is negative.
#[inline]
fn count(call: &str, number: i32) -> usize {
    usize::try_from(number).unwrap_or_else(|_| fail(&format!("{call}: {number} is not a number of bytes")))
}
