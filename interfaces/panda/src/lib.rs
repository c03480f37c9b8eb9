//! libpanda: Panda 2.0 over the fabric: remote procedure calls, message passing, ordered groups, fragments, threads.
//! [`Rpc`] has the calls for Rust, with bytes and closures.
//!
//! A message of Panda is one of the fabric's port: its tag says what it is for, and the number beside it which call it
//! belongs to. Handlers are *upcalls*: they run by themselves while the program computes.
//!
//! - `message`, `fragments`: a stack of pieces, and parts of it. - `labels`: what messages say. - `calls`, `mp`,
//!   `points`, `groups`: what each module keeps. - `upcalls`: which are to run. All these know nothing of the
//!   endpoint's monitor.
//! - `world`: what stands beside the endpoint, and how it takes in what has come. - `sending`: what leaves. - `takers`:
//!   who waits. - `rpc`, `membership`, `clock`, `life`, `call`: what programs ask for. - `shared`: locks and time. -
//!   `abi`: C.
//!
//! Invariants:
//! - Upcalls run one at a time, in the order of arrival, in a thread that waits in the library or polls, else in the
//!   thread that delivers. While one waits for an answer others run above it, in its thread; so calls may go in
//!   circles. Those of groups keep their order: none runs above another one.
//! - A thread that holds one of Panda's locks runs none, so an upcall that takes the lock waits for another thread.
//! - What comes for a handler that is not there yet is kept until it is, up to a bound.
//! - Sends of upcalls never wait. Others wait where much has not left yet, and no upcall runs there.
//! - A call whose server has ended ends the job with a line; in Rust it is an error.
//!
//! Not here: tracing (its macros are empty), and limits of packets: a fragment has at most 16 KiB.
//!
//! Test: `cargo test -p weft-panda`; `tests/tests/panda.rs`.

mod abi;
mod call;
mod calls;
mod clock;
mod early;
mod failure;
mod fragments;
mod groups;
mod labels;
mod life;
mod membership;
mod message;
mod mp;
mod points;
mod rpc;
mod sending;
mod shared;
mod takers;
mod upcalls;
mod world;

pub use call::{PlatformLost, Rpc, RpcRequest};
