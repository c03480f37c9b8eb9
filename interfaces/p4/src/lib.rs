//! libp4: P4 1.4b over the fabric, for C (`p4.h`) and Fortran (`p4f.h`).
//!
//! - [`start`]: from `p4_initenv` to `p4_wait_for_end`. The processes of one host are forks of the first one, so that
//!   they have all its memory, and share what `p4_shmalloc` has given; under `weft run` each process is a cluster of
//!   its own. [`arguments`] and [`procgroup`] read what the user has given; [`launch`] starts several clusters.
//! - [`family`]: the processes that this one has forked, and what happens when one of them is lost.
//! - [`place`]: who we are. [`failure`]: how a job ends that cannot go on.
//! - [`area`]: memory that a cluster shares. [`lock`] and [`monitors`]: what P4 has on it.
//! - [`buffer`], [`message`]: messages. [`together`]: what all do together, with [`operations`] on numbers.
//!
//! Invariants:
//! - A send waits for nobody, unless an acknowledgement is asked for: what cannot leave at once is copied.
//! - Who waits for a lock lets messages leave that it has sent.
//! - When one process of a job is killed all others end, and whoever has started the job sees a line.
//!
//! Test: `cargo test -p weft-p4`, and `tests/tests/p4.rs` over the installed library.

mod abi;
mod area;
mod arguments;
mod buffer;
mod failure;
mod family;
mod launch;
mod lock;
mod message;
mod monitors;
mod operations;
mod place;
mod procgroup;
mod start;
mod together;
