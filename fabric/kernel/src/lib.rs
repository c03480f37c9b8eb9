//! System calls, in one place, behind safe functions where they can be, a file for each subject.
//!
//! They are made by the instruction. A call of `libc` from within a preloaded library could come back to that library's
//! own function of the same name; these do not, touch neither `errno` nor any lock, and answer what the kernel answers.
//! Descriptors are numbers where programs may have closed them; what is surely ours is a [`Descriptor`], which is closed
//! by the kernel's call, too. `OwnedFd` is closed by the C library's, so nothing that programs load keeps one of those.
//!
//! [`EventLoop`] and [`Timers`] are for processes that only serve: launcher, agent and rendezvous.
//!
//! Not here: what belongs to one device or one socket family. It stays there, and makes its calls by [`system_call`].
//!
//! Test: `cargo test -p weft-kernel`, and those of all who use it.

mod call;
mod descriptors;
mod epoll;
mod event_loop;
mod timers;

pub use call::{call, checked};
pub use descriptors::{Descriptor, await_events, close};
pub use epoll::Set;
pub use event_loop::EventLoop;
pub use timers::Timers;
