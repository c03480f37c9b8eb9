//! MPI 5.0 over the fabric. The table of all functions and constants is `abi/*.abi`.
//!
//! - `abi`: types and constants of the standard ABI, which bodies take. A body stands in the `abi.rs` of a room. Entry
//!   points, which call bodies and turn an error into the call of the right error handler, are generated from the table
//!   in crates beside this one: `standard` (`libmpi_abi`) and `mpich` (`libmpi`, which converts values of another ABI).
//! - `world`: everything kept between calls, beside the endpoint, under one monitor. What is to move with each progress
//!   pass is begun there as a `Task` by the room that it belongs to; no room is called by name.
//! - `handle`: what C programs hold, and the tables behind it.
//! - rooms: `comm`, `group`, `topology`, `attribute`, `info`, `errhandler`, `error`, `start`, `datatype`, `op`,
//!   `status`, `convert`, `memory`, `point`, `partitioned`, `request`, `coll`, `session`, `tool`, `window`, `file`,
//!   `dynamic`.
//!
//! Invariants:
//! - No function of the program (user operation, attribute callback, error handler) runs while this crate holds the
//!   monitor or a lock.
//! - No call inside goes through an exported name, so that a tool sees what the program calls and nothing else.
//! - A handle that was freed is refused, not followed (as far as its generation reaches, see `handle`).
//!
//! Unsafe code stands where memory or functions of the program are touched:
//! - `abi` and the `abi` of each room: arguments of C.
//! - `datatype`, `op`, `point`, `partitioned`, `request`, `file/memory`, `file/access`, `file/pointer`,
//!   `file/collective/exchange`: the program's buffers, and messages.
//! - `window`: those, and the memory of windows. `coll` (but its algorithms): buffers and collective blocks.
//! - `attribute`, `errhandler`, `request/generalized`, `op`, `file/datarep`, `tool`: functions of the program, and its
//!   places for results.
//! - `file/disk`: system calls. `failure/letters`: messages. `comm`, `topology`, `info`, `start`, `dynamic`: small
//!   calls.
//!
//! Test: `cargo test -p weft-mpi` (datatypes, operations, algorithms of collectives, the header against the table);
//! the C programs of `tests/c/mpi` on several ranks (`cargo test -p weft-tests`, after `cargo xtask tree`).
#![allow(clippy::too_many_arguments, reason = "bodies have the arguments that the standard gives them")]
#![allow(
    clippy::missing_safety_doc,
    reason = "what a body asks of its caller is what the standard asks of the program"
)]

pub mod abi;
pub mod attribute;
pub mod coll;
pub mod comm;
pub mod convert;
pub mod datatype;
pub mod dynamic;
pub mod errhandler;
pub mod error;
pub mod failure;
pub mod file;
pub mod group;
pub mod handle;
pub mod info;
pub mod op;
pub mod partitioned;
pub mod point;
pub mod program;
pub mod request;
pub mod session;
pub mod start;
pub mod status;
pub mod tool;
pub mod topology;
pub mod window;
pub mod world;
