//! Error classes of the functions for tools (MPI 5.0, section 15.3.10), which answer them without an error handler.

use crate::abi;

const CLASSES: [(i32, &str, &str); 18] = [
    (abi::T_ERR_CANNOT_INIT, "MPI_T_ERR_CANNOT_INIT", "the interface for tools cannot be started"),
    (abi::T_ERR_NOT_ACCESSIBLE, "MPI_T_ERR_NOT_ACCESSIBLE", "this cannot be accessed now"),
    (abi::T_ERR_NOT_INITIALIZED, "MPI_T_ERR_NOT_INITIALIZED", "the interface for tools has not been started"),
    (abi::T_ERR_NOT_SUPPORTED, "MPI_T_ERR_NOT_SUPPORTED", "this is not supported"),
    (abi::T_ERR_MEMORY, "MPI_T_ERR_MEMORY", "there is not enough memory"),
    (abi::T_ERR_INVALID, "MPI_T_ERR_INVALID", "the use or an argument is not valid"),
    (abi::T_ERR_INVALID_INDEX, "MPI_T_ERR_INVALID_INDEX", "there is nothing with this index"),
    (abi::T_ERR_INVALID_ITEM, "MPI_T_ERR_INVALID_ITEM", "the item is outside the enumeration"),
    (abi::T_ERR_INVALID_SESSION, "MPI_T_ERR_INVALID_SESSION", "the session is not valid"),
    (abi::T_ERR_INVALID_HANDLE, "MPI_T_ERR_INVALID_HANDLE", "the handle is not valid"),
    (abi::T_ERR_INVALID_NAME, "MPI_T_ERR_INVALID_NAME", "there is nothing with this name"),
    (abi::T_ERR_OUT_OF_HANDLES, "MPI_T_ERR_OUT_OF_HANDLES", "there are no more handles"),
    (abi::T_ERR_OUT_OF_SESSIONS, "MPI_T_ERR_OUT_OF_SESSIONS", "there are no more sessions"),
    (abi::T_ERR_CVAR_SET_NOT_NOW, "MPI_T_ERR_CVAR_SET_NOT_NOW", "the variable cannot be set now"),
    (abi::T_ERR_CVAR_SET_NEVER, "MPI_T_ERR_CVAR_SET_NEVER", "the variable can never be set"),
    (abi::T_ERR_PVAR_NO_WRITE, "MPI_T_ERR_PVAR_NO_WRITE", "the variable cannot be written or reset"),
    (abi::T_ERR_PVAR_NO_STARTSTOP, "MPI_T_ERR_PVAR_NO_STARTSTOP", "the variable cannot be started or stopped"),
    (abi::T_ERR_PVAR_NO_ATOMIC, "MPI_T_ERR_PVAR_NO_ATOMIC", "the variable cannot be read and written in one step"),
];

/// Name and explanation of a class.
pub fn of(code: i32) -> Option<(&'static str, &'static str)> {
    CLASSES.iter().find(|class| class.0 == code).map(|class| (class.1, class.2))
}
