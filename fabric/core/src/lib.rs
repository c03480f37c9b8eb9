//! The user-level fabric as interfaces see it: one [`Endpoint`] per process, requests on it, and one place to wait.
//!
//! - [`Endpoint`] sends and receives tagged messages between ports. It never blocks: `post_*` starts what completes
//!   later, `try_*` may answer "would block", `progress` is one bounded duty cycle.
//! - [`Monitor`] holds the endpoint together with the interface's own state, gives exclusive access to both, and is
//!   the only place where a thread waits (spin, hand over, sleep).
//!
//! Not here: communicators, datatypes, collectives' algorithms (interfaces), rings and system calls (devices).

mod api;
mod endpoint;
mod join;
mod monitor;
mod pace;
mod port;
mod raw;
pub mod shared;
mod status;

pub use api::{Envelope, Fault, MatchedId, Outcome, Peer, RequestId, Selector, SendMode, Waiting};
pub use endpoint::Endpoint;
pub use join::{JoinError, ManagerError, abort};
pub use monitor::{Driven, Guard, Monitor, Outside};
pub use pace::Bounds;
pub use port::Limits;
pub use status::Counters;
pub use weft_device::shm::Segment;
pub use weft_device::{Report, probe};
pub use weft_wire::settings::{Collectives, Settings};
