//! The user-level fabric as interfaces see it: one [`Endpoint`] per process, requests on it, and one place to wait.
//!
//! - [`Endpoint`] sends and receives tagged messages between ports. It never blocks: `post_*` starts what completes
//!   later, `try_*` may answer "would block", `progress` is one bounded duty cycle.
//! - [`active`] messages call handlers of other endpoints ([`Endpoint::register_handler`]).
//! - [`Monitor`] holds the endpoint together with the interface's own state, gives exclusive access to both, and is
//!   the only place where a thread waits for other processes (spin, hand over, sleep) between joining and leaving.
//! - Several interfaces may be open in one process, each with an endpoint of its own ([`Endpoint::join_as`]); a thread
//!   that waits in one of them moves those that were lent ([`Monitor::lend`]).
//! - [`stream`] moves the bytes of connections beside their kernel sockets, for code in programs that know nothing of
//!   it. It shares nothing with the endpoint.
//! - [`datagram`] does so for datagrams.
//! - [`shared`] hands out memory that members of a group use by agreement.
//! - [`foreign`] makes processes of other jobs peers while the endpoint runs, [`door`] is where they introduce
//!   themselves, and [`spawn`] starts such jobs.
//! - [`region`] is memory of any size for the same, and copies into the memory of a process of this host.
//! - [`events`] tells tools of what happens inside.
//!
//! Not here: communicators, datatypes, windows (interfaces), collectives' algorithms (`weft-collective`), rings, and
//! what the kernel is asked for on the way of data (devices).
//!
//! Invariants:
//! - Buffers of an operation belong to the fabric until its request is complete (BUFFER-LIVES).
//! - A peer that breaks the protocol is lost: what needs it ends with [`Fault::PeerLost`], everything else goes on.
//! - A sender that cannot proceed receives meanwhile.
//! - A wake-up is never lost, and never sent to someone who is awake.
//!
//! Test: `cargo test -p weft-fabric` (messages on every path, random traffic against an oracle, rogues, waiting, what
//! the kernel is asked for).

pub mod active;
mod api;
pub mod by_name;
pub mod datagram;
mod devices;
mod distress;
pub mod door;
#[cfg(test)]
mod echo;
mod endpoint;
pub mod events;
pub mod foreign;
mod join;
mod limits;
mod links;
pub mod memory;
mod monitor;
mod pace;
mod port;
mod process;
mod protocol;
mod raw;
pub mod region;
mod requests;
pub mod shared;
pub mod spawn;
mod status;
pub mod stream;
mod switch;
mod watch;

pub use api::{Envelope, Fault, MatchedId, Outcome, Peer, RequestId, Selector, SendMode, Waiting};
pub use devices::Across;
pub use endpoint::Endpoint;
pub use join::{JoinError, ManagerError, abort, is_launched};
pub use limits::Limits;
pub use monitor::{DeliveryEnd, DeliveryThread, Driven, Monitor, MonitorGuard, Outside};
pub use pace::Bounds;
pub use port::ShownPlace;
pub use status::{CounterReader, Counters};
pub use weft_device::copying::copy;
pub use weft_device::shm::{Segment, ShownMemory};
pub use weft_device::sys::ticks;
pub use weft_device::udp::Faults;
pub use weft_device::xdp::Lanes;
pub use weft_device::{ProbeReport, probe};
pub use weft_protocol::{consensus, ordered, selector};
pub use weft_wire::interface::InterfaceName;
pub use weft_wire::job_map;
pub use weft_wire::settings::{self, Ports};
pub use weft_wire::settings::{
    Collectives, DeviceName, DeviceOrder, Progress, SettingError, Settings, SocketLog, XdpMode,
};
