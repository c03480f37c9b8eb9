//! libpvm3: PVM 3.4 over the fabric.
//!
//! A task is an endpoint. Messages go from task to task, by shared memory on one host; the virtual machine's daemon
//! (crate `weft-pvm-machine`) numbers tasks and tells one the card of the other, and no message passes through it. The
//! fabric does the matching: a message's tag and context are PVM's, and its source word is the sender's task identifier
//! with the encoding in the two bits above.
//!
//! - `library`: the state of the process, behind one lock; `enrol`: becoming a task; `task`: ways to others, and
//!   sending; `receive`: finding messages; `courier`: what could not leave at once; `direct`: long messages past all
//!   copies.
//! - `buffer`: message buffers, packing and unpacking; `errors`: what goes wrong, told as PVM does; `group`: what
//!   members of a group do together; `handlers`, `calling`: functions of the program.
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
mod calling;
mod catching;
mod courier;
mod direct;
mod enrol;
mod errors;
mod fortran;
mod frozen;
mod group;
mod handlers;
mod identity;
mod library;
mod meet;
mod meetings;
mod options;
mod receive;
mod source;
mod stdio;
mod task;
mod waiting;
mod wanted;
