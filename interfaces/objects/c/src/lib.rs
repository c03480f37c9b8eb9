//! libweft_objects: shared objects for C programs (`include/weft_objects.h`), and for what calls C, as Python does.
//!
//! Shape: `abi` turns C into calls of the other files, which are safe for their callers. `kind` is a type of objects
//! that a program has described; `space` is what the process has opened, by number; `calls` is what a thread has
//! begun; `fault` is what goes wrong, by the numbers that C programs see. What objects do is all in `weft_objects`.
//!
//! Invariants:
//! - Whatever a caller gives is checked before it is used; no call panics on it.
//! - Functions of the program are called while nothing of ours is held but the one copy that they work on.
//! - A standard object is the same type as that of Rust programs, so processes of both can share one.
//!
//! Test: `cargo test -p weft-tests --test objects` after `cargo xtask tree`.

mod abi;
mod calls;
mod fault;
mod kind;
mod space;
