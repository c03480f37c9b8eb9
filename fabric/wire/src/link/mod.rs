//! Datagrams between the processes of two hosts, byte by byte: what `udp` and `xdp` devices put into their packets.
//!
//! A datagram is a [`header`], up to 16 words of acknowledgements, payload, padding, and a [seal](SEAL_BYTES). The
//! payload is a piece of the sender's stream; the stream is a row of [`record`]s, each a packet as a device has it. A
//! record may be cut anywhere. Before the first one the two say [`hello`]. All numbers are little-endian.
//! `docs/wire/link.md` shows the whole on one page.

pub mod aegis;
pub mod header;
pub mod hello;
pub mod keys;
pub mod mac;
pub mod record;

/// The last bytes of a datagram, over everything before them and the packet number in full: a message authentication
/// code. Where the payload is encrypted, the tag of that stands there instead, which is longer.
pub const SEAL_BYTES: usize = 8;

/// What a datagram has besides payload and words of acknowledgements.
pub const OVERHEAD_BYTES: usize = header::BYTES + SEAL_BYTES;

/// The largest datagram: what UDP over IPv4 carries.
pub const LONGEST: usize = 65_507;
