//! Datagrams between two processes: what a slot of an arena holds when it stands for a pair of sockets and not for a
//! connection. The lines and rings lie where a connection has them ([`super::arena`]); what they mean is said here.
//!
//! A ring holds records, one behind the other: [`HEADING_BYTES`] of heading, the datagram, and what is missing to the
//! next multiple of [`ALIGNMENT`].
//!
//! The word *want kernel* of the receiver's line is the *gate*: 1 while the receiver sleeps in the kernel, or may. The
//! sender then sends by the kernel. It puts a record into the ring only between *sending* being 1 and being 0 again.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Bytes before each datagram.
pub const HEADING_BYTES: usize = 8;
/// Records begin at multiples of this.
pub const ALIGNMENT: usize = 8;
/// The largest datagram that goes by a ring: the largest that IPv4 carries.
pub const LONGEST: usize = 65_507;

/// What stands before a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramHeading {
    /// Bytes of the datagram.
    pub length: u32,
    /// The sender has sent by the kernel since the record before: what waits there came earlier.
    pub after_kernel: bool,
}

const AFTER_KERNEL: u32 = 1;

impl DatagramHeading {
    /// Length (u32), then bits (u32), in the byte order of the machine.
    pub fn pack(self) -> [u8; HEADING_BYTES] {
        let bits = if self.after_kernel { AFTER_KERNEL } else { 0 };
        let mut packed = [0; HEADING_BYTES];
        packed[..4].copy_from_slice(&self.length.to_ne_bytes());
        packed[4..].copy_from_slice(&bits.to_ne_bytes());
        packed
    }

    /// A claim of the peer; `None` for what no sender writes.
    pub fn parse(packed: [u8; HEADING_BYTES]) -> Option<Self> {
        let [a, b, c, d, e, f, g, h] = packed;
        let (length, bits) = (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]));
        let possible = length as usize <= LONGEST && bits & !AFTER_KERNEL == 0;
        possible.then_some(Self { length, after_kernel: bits & AFTER_KERNEL != 0 })
    }
}

/// Bytes of the ring that a datagram of this length takes.
pub const fn record_bytes(length: usize) -> u64 {
    ((HEADING_BYTES + length).next_multiple_of(ALIGNMENT)) as u64
}

/// The other socket of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DatagramPeer {
    /// As IPv6 has it; an address of IPv4 in its mapped form.
    pub address: [u8; 16],
    pub port: u16,
}

/// Where the address of IPv4 stands in a mapped one.
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

impl DatagramPeer {
    pub fn new(address: [u8; 16], port: u16) -> Self {
        Self { address, port }
    }

    /// `address` is in the order of the network.
    pub fn of_v4(address: [u8; 4], port: u16) -> Self {
        let mut mapped = [0; 16];
        mapped[..12].copy_from_slice(&MAPPED);
        mapped[12..].copy_from_slice(&address);
        Self { address: mapped, port }
    }

    pub fn of(address: SocketAddr) -> Self {
        match address.ip() {
            IpAddr::V4(v4) => Self::of_v4(v4.octets(), address.port()),
            IpAddr::V6(v6) => Self::new(v6.octets(), address.port()),
        }
    }

    /// The address of IPv4, if it is one.
    pub fn v4(&self) -> Option<[u8; 4]> {
        let (head, tail) = self.address.split_first_chunk::<12>()?;
        if *head == MAPPED { tail.try_into().ok() } else { None }
    }

    /// Whether it is 127.0.0.1 or ::1: addresses that a wildcard socket answers from, whatever the routes are.
    pub fn is_loopback(&self) -> bool {
        self.v4() == Some([127, 0, 0, 1]) || self.address == Ipv6Addr::LOCALHOST.octets()
    }

    /// As the standard library has it, in its mapped form.
    pub fn socket_address(&self) -> SocketAddr {
        SocketAddr::new(IpAddr::V6(Ipv6Addr::from(self.address)), self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_come_back() {
        for heading in
            [DatagramHeading { length: 0, after_kernel: false }, DatagramHeading { length: 65_507, after_kernel: true }]
        {
            assert_eq!(DatagramHeading::parse(heading.pack()), Some(heading));
        }
    }

    #[test]
    fn bytes_of_a_heading() {
        let packed = DatagramHeading { length: 0x0102, after_kernel: true }.pack();
        assert_eq!(
            packed,
            if cfg!(target_endian = "little") { [2, 1, 0, 0, 1, 0, 0, 0] } else { [0, 0, 1, 2, 0, 0, 0, 1] }
        );
    }

    #[test]
    fn headings_that_no_sender_writes_are_refused() {
        let with = |length: u32, bits: u32| {
            let mut packed = [0; HEADING_BYTES];
            packed[..4].copy_from_slice(&length.to_ne_bytes());
            packed[4..].copy_from_slice(&bits.to_ne_bytes());
            DatagramHeading::parse(packed)
        };
        assert_eq!((with(65_508, 0), with(u32::MAX, 0), with(1, 2)), (None, None, None));
        assert!(with(65_507, 1).is_some());
    }

    #[test]
    fn records_end_at_multiples_of_eight() {
        assert_eq!([0, 1, 8, 9, LONGEST].map(record_bytes), [8, 16, 16, 24, 65_520]);
    }

    #[test]
    fn loopback_is_one_address_of_each_kind() {
        assert!(DatagramPeer::of_v4([127, 0, 0, 1], 1).is_loopback());
        assert!(DatagramPeer::new(Ipv6Addr::LOCALHOST.octets(), 1).is_loopback());
        assert!(
            !DatagramPeer::of_v4([127, 0, 0, 2], 1).is_loopback()
                && !DatagramPeer::of_v4([10, 0, 0, 1], 1).is_loopback()
        );
        assert_eq!(DatagramPeer::of_v4([1, 2, 3, 4], 5).v4(), Some([1, 2, 3, 4]));
        assert_eq!(DatagramPeer::new(Ipv6Addr::LOCALHOST.octets(), 1).v4(), None);
    }
}
