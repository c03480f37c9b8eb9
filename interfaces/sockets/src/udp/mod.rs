//! UDP between preloaded processes: datagrams go by a ring while their receiver looks at it, and by the kernel
//! otherwise.
//!
//! The kernel's socket stays, and is what wakes people. A receiver that may sleep closes the gates of its socket first;
//! senders then send by the kernel, so that every sleep is the program's own call, with the kernel's time limits,
//! errors and signals, and whoever waits in a set, a list or a call of his own is woken.
//!
//! - `socket`: one record per socket, with its peers; `pairs`: counted, offered, attached, retired; `gate`: opening,
//!   resting, leaving; `left`: unread at a fork; `incoming`, `outgoing`: the calls; `names`: addresses; `calls`: what C
//!   asks for.
//!
//! Invariants:
//! - The gates of a socket are open only while no thread of the process sleeps on it, or is about to.
//! - A datagram goes one way: by the ring or by the kernel, decided once.
//! - A ring is used only with a peer that the rendezvous has seen on the address that the datagram is sent to.
//! - It takes only what comes from a peer of whom the kernel has brought a datagram.
//! - What a look has shown is what the next receive takes.
//! - A socket without rings makes the program's own calls.
//! - What cannot be done exactly is left to the kernel; a socket that asks for it is the kernel's for good.

mod calls;
mod gate;
mod incoming;
mod left;
mod names;
mod outgoing;
mod pairs;
mod socket;

pub use calls::{
    after_connect, before_connect, before_fcntl, before_ioctl, before_set, first_length, receive, receive_header,
    receive_headers, send, send_header, send_headers,
};
pub use gate::{SleepHold, after_fork_in_child, before_fork, leave, rest, withdraw, withdraw_all};
pub use pairs::deliver;
pub use socket::{
    add_descriptor, arrived, await_let_go, drop_descriptor, has_rings, hold, is_waiting, life, note, start,
};
