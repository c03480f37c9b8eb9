//! Error handlers (MPI 5.0, section 9.3).

use crate::error::Error;

/// The object whose error handler an error goes to.
#[derive(Clone, Copy, Debug)]
pub enum On {
    /// No object among the arguments: the handler of `MPI_COMM_SELF`.
    Process,
    Comm(usize),
    Win(usize),
    File(usize),
    Session(usize),
}

/// Reports `error` of the function `call` to the right error handler; what the call then returns.
#[cold]
pub fn raise(_call: &'static str, _on: On, error: Error) -> i32 {
    error.code
}
