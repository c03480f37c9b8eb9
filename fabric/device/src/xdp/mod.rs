//! `xdp`: a faster way for datagrams that would else go by a UDP socket.
//!
//! Underneath the UDP addresses of the ranks of a host lies a [`Lane`] for each of them. A filter on the interface
//! hands datagrams for a rank's port to its lane, past the kernel's stack; what a lane sends goes straight to the
//! interface. The bytes on the wire are those of UDP, so either side may use a lane or a socket. Where no filter is
//! attached, or the filter passes a packet on, the rank's socket gets it: lanes are in addition to sockets, never in
//! their place.
//!
//! | file | concern |
//! |---|---|
//! | `attach` | the privileged half: memory, sockets, filter. Descriptors come of it |
//! | `lane` | the rank's half |
//! | `shared` | the same for a lane that processes use by turns |
//! | `foresight` | where the next packet will stand |
//! | `header` | what stands before a datagram, read and written |
//! | `sender`, `tap` | how packets leave, and the device by which they do on a virtual cable |
//! | `program` | the filter, in the kernel's instructions |
//! | `area` | memory that all lanes of a host share, its lock, and whose turn a frame is |
//! | `socket`, `bpf`, `interface` | what is asked of the kernel |
//!
//! What must hold:
//! - A rank needs no privilege. It has its socket, and memory that it shares with the other ranks of its job on this
//!   host.
//! - Other traffic is not touched, and no packet is dropped that the kernel could have taken, but where a rank does not
//!   look for so long that its ring is full, or, behind the driver, where the kernel lacks memory in one piece for a
//!   long packet of TCP (decision 25).
//! - Whoever ends in whatever way holds no one up: the lock goes with its holder, and frames that are lost with a rank
//!   are counted in beforehand.
//! - The filter goes with the process that attached it.
//! - What stands in rings and frames is a claim. Nonsense ends the lane, not the rank.
//!
//! Not here: what a datagram means, whether it is genuine, and to whom which is sent.
//!
//! Test: `cargo test -p weft-device xdp`; in network namespaces, as root, `cargo test -p weft-device --features hosts`.

mod area;
mod attach;
mod bpf;
mod foresight;
mod header;
mod interface;
mod lane;
mod program;
mod sender;
mod shared;
mod socket;
mod tap;

pub use attach::{Lanes, Unusable, look, permitted};
pub use header::{Ends, LaneRoute};
pub use interface::{Interface, InterfaceFacts, all as interfaces, facts};
pub(crate) use lane::PACKET_BYTES;
pub use lane::{BATCH, Lane, LaneCounters, LaneFrame, LaneSockets};
pub use shared::{LaneState, SharedLane};
pub use socket::Statistics;

/// Of one lane with rings as small as they may be.
#[cfg(test)]
pub(crate) const LAYOUT: weft_wire::xdp::LaneLayout = weft_wire::xdp::LaneLayout {
    lanes: 1,
    frame_bytes: 2048,
    receive_entries: 64,
    send_frames: 64,
    mtu: 1500,
    interface: 1,
    queue: 0,
    sends_by_tap: false,
};
