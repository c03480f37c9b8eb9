//! Standard objects: those of Rust programs, with functions of their own.

use super::{answer, bytes, name, store, store_answer};
use crate::calls;
use crate::fault::{CallFault, Result};
use crate::space::{self, OpenObject};
use std::ffi::{c_char, c_int, c_void};
use weft_objects::ObjectFault;
use weft_objects::standard::{IntegerObject, JobQueueObject, SharedBarrier, SharedInteger, SharedJobQueue};

/// # Safety
/// `at` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_integer_share(at: *const c_char, initial: i64) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { name(at) };
    answer(name.and_then(|name| {
        space::add(|space| SharedInteger::share(space, name, IntegerObject::new(initial)).map(OpenObject::Integer))
    }))
}

/// An operation of an integer that answers with a value.
///
/// # Safety
/// `value` is null or valid.
unsafe fn integer(
    number: c_int,
    value: *mut i64,
    what: impl FnOnce(&SharedInteger) -> std::result::Result<i64, ObjectFault>,
) -> c_int {
    let found = space::object(number).and_then(|object| match &*object {
        OpenObject::Integer(integer) => Ok(what(integer)?),
        other => Err(other.is_not("an integer")),
    });
    answer(found.map(|found| {
        // SAFETY: the caller's promise.
        unsafe { store(value, found) };
        0
    }))
}

macro_rules! of_integer {
    ($($name:ident($integer:ident $(, $argument:ident)?) = $outcome:expr;)*) => { $(
        /// # Safety
        /// `value` is null or valid.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(number: c_int, $($argument: i64,)? value: *mut i64) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { integer(number, value, |$integer| $outcome) }
        }
    )* };
}

of_integer! {
    weft_integer_value(integer) = integer.value();
    weft_integer_assign(integer, to) = integer.assign(to);
    weft_integer_add(integer, by) = integer.add(by);
    weft_integer_lower_to(integer, to) = integer.lower_to(to);
    weft_integer_raise_to(integer, to) = integer.raise_to(to);
    weft_integer_await(integer, least) = integer.await_at_least(least);
}

/// # Safety
/// `at` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_queue_share(at: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { name(at) };
    answer(name.and_then(|name| {
        space::add(|space| SharedJobQueue::share(space, name, JobQueueObject::default()).map(OpenObject::Queue))
    }))
}

fn queue<R>(
    number: c_int,
    what: impl FnOnce(&SharedJobQueue<Vec<u8>>) -> std::result::Result<R, ObjectFault>,
) -> Result<R> {
    match &*space::object(number)? {
        OpenObject::Queue(queue) => Ok(what(queue)?),
        other => Err(other.is_not("a job queue")),
    }
}

/// # Safety
/// `job` is readable for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_queue_add(number: c_int, job: *const c_void, length: usize) -> c_int {
    // SAFETY: the caller's promise.
    let job = unsafe { bytes(job, length) };
    answer(job.and_then(|job| queue(number, |queue| queue.add(job.to_vec()))).map(c_int::from))
}

/// # Safety
/// `job` is null or writable for `size` bytes; `length` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_queue_take(number: c_int, job: *mut c_void, size: usize, length: *mut usize) -> c_int {
    answer(queue(number, SharedJobQueue::take).and_then(|taken| match taken {
        None => Ok(0),
        Some(taken) => {
            calls::keep(taken, 1);
            // SAFETY: the caller's promise.
            unsafe { store_answer(job, size, length) }
        }
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_queue_close(number: c_int) -> c_int {
    answer(queue(number, SharedJobQueue::close).map(|()| 0))
}

/// # Safety
/// `jobs` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_queue_length(number: c_int, jobs: *mut u64) -> c_int {
    answer(queue(number, SharedJobQueue::length).map(|length| {
        // SAFETY: the caller's promise.
        unsafe { store(jobs, length) };
        0
    }))
}

/// # Safety
/// `at` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_barrier_share(at: *const c_char, asked: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { name(at) };
    answer(name.and_then(|name| {
        let callers = u32::try_from(asked).ok().filter(|callers| *callers > 0);
        let callers = callers.ok_or_else(|| {
            let text = format!("barrier '{name}' for {asked} callers: a barrier has at least one");
            CallFault::argument(text)
        })?;
        space::add(|space| SharedBarrier::share_for(space, name, callers).map(OpenObject::Barrier))
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn weft_barrier_pass(number: c_int) -> c_int {
    answer(space::object(number).and_then(|object| match &*object {
        OpenObject::Barrier(barrier) => {
            barrier.pass()?;
            Ok(0)
        }
        other => Err(other.is_not("a barrier")),
    }))
}
