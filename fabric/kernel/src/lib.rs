//! System calls, in one place, behind safe functions where they can be, a file for each subject.
//!
//! They are made by the instruction. A call of `libc` from within a preloaded library could come back to that library's
//! own function of the same name; these do not, touch neither `errno` nor any lock, and answer what the kernel answers.
//! Descriptors are numbers where programs may have closed them; what is surely ours is a [`Descriptor`], which is
//! closed by the kernel's call, too. `OwnedFd` is closed by the C library's, so nothing that programs load keeps one of
//! those.
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
mod memory;
mod processes;
mod quota;
mod sockets;
#[cfg(test)]
mod tests;
mod timers;
mod waiting;

pub use call::{call, checked};
pub use descriptors::{
    Descriptor, FileIdentity, await_events, close, close_all_but, control, identity, is_hung_up, limits,
    out_of_the_way, set_limits, set_lock, stat,
};
pub use epoll::DescriptorSet;
pub use event_loop::EventLoop;
pub use memory::{
    forget, is_sealed, map_over, map_private, map_shared, may_have_file_of, memory_with, sealable_memory, sealed_bytes,
    sealed_memory, unmap, without_dump,
};
pub use processes::{affinity, exists, is_alive, is_running, process, random, set_affinity, thread, true_random, user};
pub use quota::quota;
pub use sockets::{
    Abstract, admit_only, bind, connect, cookie, discard, option, peer, receive, receive_packet, send_packet, send_to,
    set_option, socket,
};
pub use timers::Timers;
pub use waiting::{barrier, futex_wait, futex_wake, now, register_for_barriers, timespec_of, yield_core};
