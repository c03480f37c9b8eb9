//! Jobs that share cores take turns, at the same time on all their hosts (the policy `gang`).
//!
//! The server in charge makes the table of all such jobs ([`table`]) and tells each host its part when the jobs change,
//! and now and then that it still holds. A host asks that server for its time, and gives its slicer ([`slicer`]) the
//! rows, the time and the processes ([`tree`]). No message is needed for a turn. What daemons do for it stands in
//! `giving`, and what one knows in [`state`].
//!
//! A table holds for a while. A host that hears nothing more, or does not know the time, lets all jobs run as others
//! do.

mod giving;
pub mod slicer;
pub mod state;
pub mod table;
pub mod tree;
