//! Epoll sets: the kernel's own set stays, and what the rings have is added to it.
//!
//! Every registration of a connection stands in the kernel's set and in ours. While the connection is the kernel's,
//! ours only remembers. Once it is attached, arrivals and room in the ring are found here; ends, errors and bytes that
//! still come by the kernel are found there: a ring leaves nothing to read in the kernel, so its word on reading is
//! right as it is. Its word on writing is replaced by the ring's.
//!
//! Members are *hot* (looked at one by one) or armed (the peer marks them active and rings the set's bell, which stands
//! in the kernel's set). Before a sleep all are armed; what comes alive becomes hot.
//!
//! Invariant: a member that is not hot is armed, or its mark is on the way. Everything of a set is touched under its
//! lock; signal handlers that interrupted its holder touch nothing, and leave a note.

mod control;
mod lock;
mod members;
mod order;
mod resting;
mod set;
mod wait;

pub use control::{attached, closed, control, datagrams_attached, refresh};
pub use members::{
    any_ready, awaits_room, dispatch_active, is_ready_inside, leave_dead_rings, leave_to_sleepers, take_out, watch,
};
pub use resting::RestingSet;
pub use set::{add_descriptor, create, drop_descriptor, forked, has_members, lock_all, start, unlock_all};
pub use wait::wait;
