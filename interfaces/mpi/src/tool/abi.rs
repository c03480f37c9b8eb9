//! Bodies of the tool interface. Each answers its code itself.

mod category;
mod control;
mod event;
mod performance;

pub use category::*;
use control::enum_of_event;
pub use control::*;
pub use event::*;
pub use performance::*;

use super::{Answer, KNOWN, LATE, running, state};
use crate::abi::{SUCCESS, T_ERR_INVALID, T_ERR_NOT_INITIALIZED, THREAD_MULTIPLE, THREAD_SINGLE};

/// The code of what a body found.
fn code(answer: Answer<()>) -> i32 {
    answer.err().unwrap_or(SUCCESS)
}

/// The level provided is the one required: the interface locks what it has.
pub unsafe fn init_thread(required: i32, provided: *mut i32) -> i32 {
    if provided.is_null() {
        return T_ERR_INVALID;
    }
    LATE.get_or_init(|| KNOWN.get().is_some());
    state().users += 1;
    // SAFETY: the program's place for the level.
    unsafe { *provided = required.clamp(THREAD_SINGLE, THREAD_MULTIPLE) };
    SUCCESS
}

/// The last one ends what tools have made; changed settings stay.
pub unsafe fn finalize() -> i32 {
    let mut state = state();
    match state.users {
        0 => return T_ERR_NOT_INITIALIZED,
        1 => {
            state.controls.live.clear();
            state.sessions.live.clear();
            state.counters.live.clear();
            state.registrations.live.clear();
            state.instances.live.clear();
            state.settle_interest();
        }
        _ => {}
    }
    state.users -= 1;
    SUCCESS
}
