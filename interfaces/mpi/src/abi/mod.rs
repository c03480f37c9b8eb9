//! The C boundary: types, constants and the generated entry points.

mod counts;
mod status;

pub use counts::{Callback, CountOut, Counts};
pub use status::Status;

// Values of the standard ABI (MPI 5.0, chapter 20); the names lose `MPI_`.
pub const SUCCESS: i32 = 0;
pub const ANY_SOURCE: i32 = -1;
pub const ANY_TAG: i32 = -2;
pub const PROC_NULL: i32 = -3;
pub const ROOT: i32 = -4;
pub const UNDEFINED: i32 = -32766;
pub const BOTTOM: usize = 0;
pub const IN_PLACE: usize = 1;
pub const BUFFER_AUTOMATIC: usize = 2;
pub const BSEND_OVERHEAD: i32 = 512;
pub const COMM_NULL: usize = 0x100;
pub const COMM_WORLD: usize = 0x101;
pub const COMM_SELF: usize = 0x102;
pub const GROUP_NULL: usize = 0x108;
pub const GROUP_EMPTY: usize = 0x109;
pub const MESSAGE_NULL: usize = 0x128;
pub const MESSAGE_NO_PROC: usize = 0x129;
pub const INFO_NULL: usize = 0x130;
pub const INFO_ENV: usize = 0x131;
pub const ERRHANDLER_NULL: usize = 0x140;
pub const ERRORS_ARE_FATAL: usize = 0x141;
pub const ERRORS_ABORT: usize = 0x142;
pub const ERRORS_RETURN: usize = 0x143;
pub const REQUEST_NULL: usize = 0x180;
pub const DATATYPE_NULL: usize = 0x200;
pub const OP_NULL: usize = 0x20;
