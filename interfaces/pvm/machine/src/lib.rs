//! The virtual machine of PVM: who its tasks and hosts are, and what they have in common.
//!
//! - [`VirtualMachine`] is pure: what the daemons of the hosts have seen goes in, what they are to do comes out. One
//!   daemon, the first, has it. It numbers tasks, knows who waits for whose end, and keeps mailbox, groups and
//!   contexts.
//! - [`hand`] is a daemon's hand on its host: sockets of tasks, processes that are started, what they print.
//! - [`daemon`] runs the two, and its like on other hosts, whose hands the first daemon moves.
//! - [`client`] is a task's or console's end; [`frame`] is what travels.
//!
//! Messages between tasks do not come here: the machine tells a task the card of another one, and the two talk by
//! themselves. Messages of the machine itself (somebody has ended, what a task prints) travel as events.
//!
//! Invariants:
//! - What a task or a host says is a claim, and never panics the machine.
//! - Nobody is waited for: a task that reads nothing has a queue, up to a limit, beyond which it is lost.
//! - A daemon leaves nothing in a file system but the log of what tasks print that nobody catches.
//!
//! Test: `cargo test -p weft-pvm-machine`.
#![deny(unsafe_code)]

pub mod client;
pub mod code;
pub mod daemon;
pub mod door;
pub mod frame;
pub mod hand;
mod launch;
mod machine;
pub mod terminal;
pub mod tid;

pub use machine::VirtualMachine;
