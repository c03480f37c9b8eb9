//! What stands before a datagram in an Ethernet packet: read from what arrives, and written from a template for each
//! peer.
//!
//! Nothing here asks anybody where a peer is. A route is learned from a packet of the peer: the way back is the way it
//! came, with hardware and IP addresses and ports swapped.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

const ETHERNET: usize = 14;
const V4_BYTES: usize = 20;
const V6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;
const UDP: u8 = 17;
const V4_KIND: [u8; 2] = [0x08, 0x00];
const V6_KIND: [u8; 2] = [0x86, 0xdd];
/// Hops that a packet may take.
const HOPS: u8 = 64;
/// Of the largest header.
pub const MOST_HEADER_BYTES: usize = ETHERNET + V6_BYTES + UDP_BYTES;

/// The ends of a datagram that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// Of whom it came from on the wire, and of us.
    pub source_hardware: [u8; 6],
    pub own_hardware: [u8; 6],
}

impl Ends {
    /// Words for a record: kind and hardware addresses, then address and port of either end. Ends that are equal have
    /// equal words, and others have others.
    pub fn to_words(&self) -> [u64; LaneRoute::WORDS] {
        let mut bytes = [0; LaneRoute::WORDS * 8];
        bytes[0] = if self.from.is_ipv4() { 4 } else { 6 };
        bytes[2..8].copy_from_slice(&self.source_hardware);
        bytes[8..14].copy_from_slice(&self.own_hardware);
        for (at, end) in [(16, self.from), (36, self.to)] {
            match end.ip() {
                IpAddr::V4(v4) => bytes[at..at + 4].copy_from_slice(&v4.octets()),
                IpAddr::V6(v6) => bytes[at..at + 16].copy_from_slice(&v6.octets()),
            }
            bytes[at + 16..at + 18].copy_from_slice(&end.port().to_be_bytes());
        }
        let mut words = [0; LaneRoute::WORDS];
        for (word, at) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(address(at, 0));
        }
        words
    }

    /// None for words that are no ends.
    fn from_words(words: &[u64; LaneRoute::WORDS]) -> Option<Self> {
        let mut bytes = [0; LaneRoute::WORDS * 8];
        for (at, word) in bytes.chunks_exact_mut(8).zip(words) {
            at.copy_from_slice(&word.to_le_bytes());
        }
        let end = |at: usize| {
            let ip: IpAddr = match bytes[0] {
                4 => address::<4>(&bytes, at).into(),
                6 => address::<16>(&bytes, at).into(),
                _ => return None,
            };
            Some(SocketAddr::new(ip, number(&bytes, at + 16)))
        };
        let (from, to) = (end(16)?, end(36)?);
        let ends = Self { from, to, source_hardware: address(&bytes, 2), own_hardware: address(&bytes, 8) };
        // What means nothing is zero.
        (ends.to_words() == *words).then_some(ends)
    }
}

fn address<const N: usize>(packet: &[u8], at: usize) -> [u8; N] {
    packet[at..at + N].try_into().expect("N bytes")
}

fn number(packet: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(address(packet, at))
}

/// The ends of the datagram in an Ethernet packet, and where its payload lies. None for what is no whole datagram: only
/// such packets are redirected to us, but their lengths have not been looked at. Behind a datagram there may be
/// padding. Checksums are left to the protocol above, which has a better one: a host next door may have sent the packet
/// without.
pub fn parse(packet: &[u8]) -> Option<(Ends, Range<usize>)> {
    let kind: [u8; 2] = packet.get(12..14)?.try_into().ok()?;
    let (start, whole, from, to): (usize, usize, IpAddr, IpAddr) = match kind {
        V4_KIND if packet.len() >= ETHERNET + V4_BYTES + UDP_BYTES => {
            let is_plain = packet[14] == 0x45 && number(packet, 20) & 0x3fff == 0 && packet[23] == UDP;
            let from = Ipv4Addr::from(address::<4>(packet, 26));
            let to = Ipv4Addr::from(address::<4>(packet, 30));
            is_plain.then_some((ETHERNET + V4_BYTES, number(packet, 16).into(), from.into(), to.into()))?
        }
        V6_KIND if packet.len() >= ETHERNET + V6_BYTES + UDP_BYTES => {
            let is_plain = packet[14] >> 4 == 6 && packet[20] == UDP;
            let from = Ipv6Addr::from(address::<16>(packet, 22));
            let to = Ipv6Addr::from(address::<16>(packet, 38));
            let whole = V6_BYTES + usize::from(number(packet, 18));
            is_plain.then_some((ETHERNET + V6_BYTES, whole, from.into(), to.into()))?
        }
        _ => return None,
    };
    let datagram = usize::from(number(packet, start + 4));
    let fits = datagram >= UDP_BYTES && start + datagram <= ETHERNET + whole && ETHERNET + whole <= packet.len();
    let ends = Ends {
        from: SocketAddr::new(from, number(packet, start)),
        to: SocketAddr::new(to, number(packet, start + 2)),
        source_hardware: address(packet, 6),
        own_hardware: address(packet, 0),
    };
    fits.then_some((ends, start + UDP_BYTES..start + datagram))
}

/// The way to a peer: all that stands before a payload for it, but what depends on the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneRoute {
    header: [u8; MOST_HEADER_BYTES],
    bytes: usize,
    /// Of the IPv4 header with no length, or of what IPv6 puts before a datagram for its checksum, again with no
    /// length.
    sum: u32,
    ends: Ends,
}

impl LaneRoute {
    /// Words that a route takes in a record.
    pub const WORDS: usize = 7;

    /// The route as it may stand in shared memory. [`Ends::to_words`] of a datagram that came by it are the same.
    pub fn to_words(&self) -> [u64; Self::WORDS] {
        self.ends.to_words()
    }

    /// What stands in shared memory is a claim: none for words that are no route.
    pub fn from_words(words: &[u64; Self::WORDS]) -> Option<Self> {
        Ends::from_words(words).map(|ends| Self::learn(&ends))
    }

    /// The way back to whom a datagram came from.
    pub fn learn(ends: &Ends) -> Self {
        let mut header = [0; MOST_HEADER_BYTES];
        header[..6].copy_from_slice(&ends.source_hardware);
        header[6..12].copy_from_slice(&ends.own_hardware);
        let (udp, sum) = match (ends.to.ip(), ends.from.ip()) {
            (IpAddr::V4(own), IpAddr::V4(peer)) => v4_header(&mut header, own, peer),
            (IpAddr::V6(own), IpAddr::V6(peer)) => v6_header(&mut header, own, peer),
            _ => unreachable!("both ends of a packet are of one kind"),
        };
        header[udp..udp + 2].copy_from_slice(&ends.to.port().to_be_bytes());
        header[udp + 2..udp + 4].copy_from_slice(&ends.from.port().to_be_bytes());
        Self { header, bytes: udp + UDP_BYTES, sum, ends: *ends }
    }

    /// Whether a datagram with these ends came by this way.
    pub fn is_of(&self, ends: &Ends) -> bool {
        self.ends == *ends
    }

    pub fn peer(&self) -> SocketAddr {
        self.ends.from
    }

    /// Before the payload.
    pub fn header_bytes(&self) -> usize {
        self.bytes
    }

    /// Completes a packet whose payload of `length` bytes already stands behind the room for the header. Answers how
    /// many bytes the packet has. `length` is at most 65507.
    pub fn complete(&self, packet: &mut [u8], length: usize) -> usize {
        let end = self.bytes + length;
        packet[..self.bytes].copy_from_slice(&self.header[..self.bytes]);
        let udp = self.bytes - UDP_BYTES;
        let datagram = (UDP_BYTES + length) as u16;
        packet[udp + 4..udp + 6].copy_from_slice(&datagram.to_be_bytes());
        if self.bytes == MOST_HEADER_BYTES {
            packet[18..20].copy_from_slice(&datagram.to_be_bytes());
            let sum = self.sum + u32::from(datagram) + sum_words(&packet[udp..end]);
            // No checksum at all would be 0, so a sum of 0 is written as its other form.
            let checksum = match !fold(sum) {
                0 => 0xffff,
                other => other,
            };
            packet[udp + 6..udp + 8].copy_from_slice(&checksum.to_be_bytes());
        } else {
            let whole = V4_BYTES as u16 + datagram;
            packet[16..18].copy_from_slice(&whole.to_be_bytes());
            packet[24..26].copy_from_slice(&(!fold(self.sum + u32::from(whole))).to_be_bytes());
        }
        end
    }
}

/// Where the UDP header begins, and the sum. The datagram's own checksum is left out, as IPv4 allows.
fn v4_header(header: &mut [u8], own: Ipv4Addr, peer: Ipv4Addr) -> (usize, u32) {
    header[12..14].copy_from_slice(&V4_KIND);
    // Not to be cut on the way, so it needs no number.
    header[14..24].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, HOPS, UDP]);
    header[26..30].copy_from_slice(&own.octets());
    header[30..34].copy_from_slice(&peer.octets());
    (ETHERNET + V4_BYTES, sum_words(&header[14..34]))
}

fn v6_header(header: &mut [u8], own: Ipv6Addr, peer: Ipv6Addr) -> (usize, u32) {
    header[12..14].copy_from_slice(&V6_KIND);
    header[14..22].copy_from_slice(&[0x60, 0, 0, 0, 0, 0, UDP, HOPS]);
    header[22..38].copy_from_slice(&own.octets());
    header[38..54].copy_from_slice(&peer.octets());
    (ETHERNET + V6_BYTES, sum_words(&header[22..54]) + u32::from(UDP))
}

/// The sum of RFC 1071, in 16 bits.
fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

/// The sum of words in the network's order, folded to less than 2^17; a last odd byte counts as the upper half of a
/// word.
fn sum_words(bytes: &[u8]) -> u32 {
    let mut sum = 0u64;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_be_bytes(word.try_into().expect("eight bytes"));
        sum += (word >> 32) + (word & 0xffff_ffff);
    }
    for rest in words.remainder().chunks(2) {
        sum += u64::from(rest[0]) << 8 | u64::from(rest.get(1).copied().unwrap_or(0));
    }
    while sum >> 17 > 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(v6: bool) -> Ends {
        let (from, to) = if v6 { ("[fd00::2]:4660", "[fd00::1]:40001") } else { ("10.77.0.2:4660", "10.77.0.1:40001") };
        Ends {
            from: from.parse().expect("an address"),
            to: to.parse().expect("an address"),
            source_hardware: [2, 0, 0, 0, 0, 9],
            own_hardware: [2, 0, 0, 0xab, 0xcd, 0xef],
        }
    }

    fn packet(route: &LaneRoute, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0xee; route.header_bytes()];
        packet.extend(payload);
        assert_eq!(route.complete(&mut packet, payload.len()), packet.len());
        packet
    }

    #[test]
    fn a_packet_has_these_bytes() {
        let golden = [
            2, 0, 0, 0, 0, 9, 2, 0, 0, 0xab, 0xcd, 0xef, 8, 0, // Ethernet
            0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0x26, 0x32, 10, 77, 0, 1, 10, 77, 0, 2, // IPv4
            0x9c, 0x41, 0x12, 0x34, 0, 11, 0, 0, b'a', b'b', b'c', // UDP
        ];
        assert_eq!(packet(&LaneRoute::learn(&ends(false)), b"abc"), golden);
    }

    #[test]
    fn a_packet_of_the_sixth_version_has_these_bytes() {
        let mut golden = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0xab, 0xcd, 0xef, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 11, 17, 64];
        golden.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        golden.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        golden.extend([0x9c, 0x41, 0x12, 0x34, 0, 11, 0x92, 0xfb, b'a', b'b', b'c']);
        assert_eq!(packet(&LaneRoute::learn(&ends(true)), b"abc"), golden);
    }

    #[test]
    fn sums_come_out_as_the_receiver_wants_them() {
        for length in 0..300 {
            let payload: Vec<u8> = (0..length).map(|i| (i * 7 + length) as u8).collect();
            let v4 = packet(&LaneRoute::learn(&ends(false)), &payload);
            assert_eq!(fold(sum_words(&v4[14..34])), 0xffff, "{length}");
            let v6 = packet(&LaneRoute::learn(&ends(true)), &payload);
            let sum = sum_words(&v6[22..54]) + 17 + 8 + length as u32 + sum_words(&v6[54..]);
            assert_eq!(fold(sum), 0xffff, "{length}");
        }
    }

    #[test]
    fn an_answer_leads_back() {
        for v6 in [false, true] {
            let there = packet(&LaneRoute::learn(&ends(v6)), b"hello");
            let (ends_there, payload) = parse(&there).expect("a datagram");
            assert_eq!(&there[payload], b"hello");
            let back = packet(&LaneRoute::learn(&ends_there), b"");
            assert_eq!(parse(&back).expect("a datagram").0, ends(v6));
            assert!(LaneRoute::learn(&ends(v6)).is_of(&ends(v6)) && !LaneRoute::learn(&ends(v6)).is_of(&ends_there));
        }
    }

    #[test]
    fn a_route_comes_back_out_of_its_words() {
        for v6 in [false, true] {
            let route = LaneRoute::learn(&ends(v6));
            let words = route.to_words();
            assert_eq!((LaneRoute::from_words(&words), words), (Some(route), ends(v6).to_words()));
            for bit in 0..LaneRoute::WORDS * 64 {
                let mut other = words;
                other[bit / 64] ^= 1 << (bit % 64);
                // Another route, or none, and never the same one.
                let read = LaneRoute::from_words(&other);
                assert!(read.is_none_or(|read| read.to_words() == other && !read.is_of(&ends(v6))), "bit {bit}");
            }
        }
        assert_eq!((LaneRoute::from_words(&[0; 7]), LaneRoute::from_words(&[u64::MAX; 7])), (None, None));
    }

    #[test]
    fn padding_is_left_out_and_a_short_packet_is_none() {
        for v6 in [false, true] {
            let mut whole = packet(&LaneRoute::learn(&ends(v6)), b"hello");
            for length in 0..whole.len() {
                assert_eq!(parse(&whole[..length]), None, "{length} bytes");
            }
            let payload = parse(&whole).expect("a datagram").1;
            whole.extend([0; 20]);
            assert_eq!(parse(&whole).expect("with padding").1, payload);
        }
    }

    #[test]
    fn lengths_that_contradict_each_other_are_no_datagram() {
        for v6 in [false, true] {
            let good = packet(&LaneRoute::learn(&ends(v6)), b"hello");
            let udp = good.len() - 13;
            for (at, value) in [(udp + 5, 7), (udp + 5, 14), (udp + 4, 1), (if v6 { 19 } else { 17 }, 12)] {
                let mut packet = good.clone();
                packet[at] = value;
                assert_eq!(parse(&packet), None, "byte {at} = {value}");
            }
        }
    }
}
