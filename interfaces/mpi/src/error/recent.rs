//! The last error of each thread, so that `MPI_Error_string` can tell more than the class.

use std::cell::RefCell;

thread_local! {
    static LAST: RefCell<Option<(i32, String)>> = const { RefCell::new(None) };
}

/// Keeps the line of an error that was returned to the program.
pub fn remember(code: i32, line: &str) {
    LAST.with_borrow_mut(|last| *last = Some((code, line.to_owned())));
}

/// The line of the thread's last error, if that had this code.
pub fn recall(code: i32) -> Option<String> {
    LAST.with_borrow(|last| last.as_ref().filter(|last| last.0 == code).map(|last| last.1.clone()))
}
