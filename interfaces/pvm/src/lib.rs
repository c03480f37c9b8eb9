//! libpvm3: PVM 3.4 over the fabric.
//!
//! A task is an endpoint. Messages go from task to task, by shared memory on one host; the virtual machine's daemon (crate
//! `weft-pvm-machine`) numbers tasks and tells one the card of the other, and no message passes through it. The fabric
//! does the matching: a message's tag and context are PVM's, and its source word is the sender's task identifier with the
//! encoding in the two bits above.
//!
//! - `library`: the state of the process, behind one lock; `task`: enrolling, ways to other tasks, sending; `receive`:
//!   finding messages; `handlers`, `options`, `catching`, `group`: what their names say.
//! - `buffer`: message buffers, packing and unpacking; `errors`: what goes wrong, told as PVM does.
//! - `abi`: the C functions, by subject; `fortran`: those of Fortran, over them.
//!
//! Invariants:
//! - The lock is not held while code of the program runs (message handlers, matchers, reductions).
//! - `pvm_send` waits for nobody.
//! - Between two tasks messages of one context arrive in the order in which they were sent.
//!
//! Test: `cargo test -p weft-pvm`, and C programs in `tests/c/pvm`.

mod abi;
mod buffer;
mod catching;
mod courier;
mod direct;
mod errors;
mod fortran;
mod group;
mod handlers;
mod library;
mod options;
mod receive;
mod task;
