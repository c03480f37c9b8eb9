//! Answers that are numbers, and flags, as `pvm3.h` has them.

pub const OK: i32 = 0;
/// To who comes to a barrier: it is elsewhere, as was told ([`crate::frame::Event::MeetAt`]).
pub const ELSEWHERE: i32 = 1;
/// To who speaks another version than the daemon; no code of PVM's.
pub const OTHER_VERSION: i32 = -100;
pub const BAD_PARAM: i32 = -2;
pub const MISMATCH: i32 = -3;
pub const NO_HOST: i32 = -6;
pub const NO_FILE: i32 = -7;
pub const DENIED: i32 = -8;
pub const SYS_ERR: i32 = -14;
pub const NULL_GROUP: i32 = -17;
pub const DUP_GROUP: i32 = -18;
pub const NO_GROUP: i32 = -19;
pub const NOT_IN_GROUP: i32 = -20;
pub const NO_INST: i32 = -21;
pub const HOST_FAIL: i32 = -22;
pub const NO_PARENT: i32 = -23;
pub const OUT_OF_RES: i32 = -27;
pub const DUP_HOST: i32 = -28;
pub const CANT_START: i32 = -29;
pub const ALREADY: i32 = -30;
pub const NO_TASK: i32 = -31;
pub const NOT_FOUND: i32 = -32;

/// Flags of spawning.
pub mod spawn {
    pub const HOST: i32 = 1;
    pub const ARCH: i32 = 2;
    pub const DEBUG: i32 = 4;
    pub const COMPLEMENT: i32 = 32;
    pub const NO_PARENT: i32 = 64;
}

/// What to be notified of.
pub mod notify {
    pub const TASK_EXIT: i32 = 1;
    pub const HOST_DELETE: i32 = 2;
    pub const HOST_ADD: i32 = 3;
    pub const CANCEL: i32 = 256;
}

/// Flags of the mailbox; an index asked for stands above them.
pub mod mailbox {
    pub const PERSISTENT: i32 = 1;
    pub const MULTI_INSTANCE: i32 = 2;
    pub const OVERWRITABLE: i32 = 4;
    pub const FIRST_AVAILABLE: i32 = 8;
    pub const READ_AND_DELETE: i32 = 16;
    pub const WAIT: i32 = 32;
    pub const INDEX_SHIFT: u32 = 10;
}

/// The kind of architecture, as in `PVM_ARCH`.
pub const ARCHITECTURE: &str = if cfg!(target_pointer_width = "64") { "LINUX64" } else { "LINUX" };
/// The signature of the data representation of x86 processors and their like, by which programs see whether hosts
/// differ.
pub const SIGNATURE: i32 = 0x0040_8c41;
/// The relative speed of a host of which nothing else is said.
pub const SPEED: i32 = 1000;
