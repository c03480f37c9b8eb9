//! The tool information interface (MPI 5.0, section 15.3).
//!
//! - Control variables are the settings, by their names and in their words. A tool can change those that a rank reads
//!   when it joins its job, until it does; for one that comes later they are read-only.
//! - Performance variables are the counters of the status page. A handle counts from where it was started.
//! - Events are what happens to messages, collectives and processes, of which the fabric and the rooms here tell.
//! - Categories: one of each, and one that holds all.
//!
//! Its functions may be called before `MPI_Init` and after `MPI_Finalize`, from any thread, and by callbacks that run
//! where an event is: nothing here enters the world. They answer codes and call no error handler.

pub mod abi;
mod control;
mod event;
mod performance;

use crate::abi::{T_ERR_INVALID, T_ERR_INVALID_NAME, T_ERR_NOT_INITIALIZED, store_string};
pub use event::{tell_collective, wants_collectives};
use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use weft_fabric::{CounterReader, Endpoint, Settings};

/// Answers a code of the tool interface where something is wrong.
type Answer<T> = Result<T, i32>;

/// What is known of the job since the process joined it.
struct JobFacts {
    settings: Settings,
    counters: CounterReader,
}

static KNOWN: OnceLock<JobFacts> = OnceLock::new();

/// Whether the first tool came when the process had joined its job. What is said of a variable must not change later
/// (MPI 5.0, section 15.3.6), so it is settled then whether settings can be written.
static LATE: OnceLock<bool> = OnceLock::new();

/// The process has joined its job.
pub fn note_joined(endpoint: &Endpoint) {
    let _ = KNOWN.set(JobFacts { settings: *endpoint.settings(), counters: endpoint.counter_reader() });
}

/// Environment variables of settings that a tool has changed, with their values.
pub fn changed_settings() -> Vec<(&'static str, String)> {
    state().changes.clone()
}

/// What tools have made.
struct ToolState {
    /// Calls of `MPI_T_init_thread` without their `MPI_T_finalize`.
    users: u32,
    changes: Vec<(&'static str, String)>,
    controls: ToolHandles<usize>,
    sessions: ToolHandles<()>,
    counters: ToolHandles<performance::Handle>,
    registrations: ToolHandles<event::EventRegistration>,
    instances: ToolHandles<event::Instance>,
}

static STATE: Mutex<Option<ToolState>> = Mutex::new(None);

/// Access to the state, which is made at the first look.
struct ToolGuard(MutexGuard<'static, Option<ToolState>>);

fn state() -> ToolGuard {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.get_or_insert_with(|| ToolState {
        users: 0,
        changes: Vec::new(),
        controls: ToolHandles::default(),
        sessions: ToolHandles::default(),
        counters: ToolHandles::default(),
        registrations: ToolHandles::default(),
        instances: ToolHandles::default(),
    });
    ToolGuard(state)
}

impl std::ops::Deref for ToolGuard {
    type Target = ToolState;
    fn deref(&self) -> &ToolState {
        self.0.as_ref().expect("`state` has made it")
    }
}

impl std::ops::DerefMut for ToolGuard {
    fn deref_mut(&mut self) -> &mut ToolState {
        self.0.as_mut().expect("`state` has made it")
    }
}

/// The state, between `MPI_T_init_thread` and `MPI_T_finalize`.
fn running() -> Answer<ToolGuard> {
    let state = state();
    if state.users == 0 { Err(T_ERR_NOT_INITIALIZED) } else { Ok(state) }
}

/// Objects by handles that are never used again.
struct ToolHandles<T> {
    made: usize,
    live: HashMap<usize, T>,
}

impl<T> Default for ToolHandles<T> {
    fn default() -> Self {
        Self { made: 0, live: HashMap::new() }
    }
}

impl<T> ToolHandles<T> {
    fn insert(&mut self, value: T) -> usize {
        self.made += 1;
        // Above the constants of the interface, and even.
        let handle = crate::handle::FIRST_USER + 2 * self.made;
        self.live.insert(handle, value);
        handle
    }
}

/// The element that a program names by its index.
fn element<T>(list: &[T], index: i32, code: i32) -> Answer<&T> {
    usize::try_from(index).ok().and_then(|index| list.get(index)).ok_or(code)
}

/// Stores a result where the program wants it: a null pointer says that it does not.
///
/// # Safety
/// `at` is null or the program's place for the value.
unsafe fn tell<T>(at: *mut T, value: T) {
    if !at.is_null() {
        // SAFETY: the caller's promise.
        unsafe { *at = value };
    }
}

/// As [`tell`], where the result is what the call is for.
///
/// # Safety
/// As [`tell`].
unsafe fn give<T>(at: *mut T, value: T) -> Answer<()> {
    if at.is_null() {
        return Err(T_ERR_INVALID);
    }
    // SAFETY: the caller's promise.
    unsafe { *at = value };
    Ok(())
}

/// Stores a string by the rules of the tool interface (MPI 5.0, section 15.3.3): what fits, and the length that the
/// whole takes with its zero. Without a place for the length nothing is stored.
///
/// # Safety
/// `length` is null or a place that says how many bytes `at` has; `at` may be null.
unsafe fn tell_text(text: &str, at: *mut c_char, length: *mut i32) {
    if length.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        if let (false, Ok(room @ 1..)) = (at.is_null(), usize::try_from(*length)) {
            store_string(text, room, at, std::ptr::null_mut());
        }
        *length = text.len() as i32 + 1;
    }
}

/// The index that `find` knows a name by that the program gives.
///
/// # Safety
/// `name` is null or a C string, `index` null or the program's place.
unsafe fn index_of_name(name: *const c_char, index: *mut i32, find: impl FnOnce(&str) -> Option<usize>) -> Answer<()> {
    running()?;
    // SAFETY: the caller's promise.
    unsafe {
        let name = crate::abi::text_of(name, "name").map_err(|_| T_ERR_INVALID)?;
        give(index, find(&name).ok_or(T_ERR_INVALID_NAME)? as i32)
    }
}
