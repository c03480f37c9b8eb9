//! What processes and the rendezvous say to each other: packets of 64 bytes on a `SOCK_SEQPACKET` socket, some with a
//! descriptor. One is longer: a process with its counters.

use super::arena::SLOTS;
use super::datagram::Peer;

pub const BYTES: usize = 64;
/// Changes with every change of a packet; said in the first one, and part of the names, so that programs of two versions
/// on one host have a rendezvous each.
pub const VERSION: u32 = 5;

/// The rendezvous that joins different users' processes; believed only where the kernel says that root answers.
pub const COMMON_NAME: &str = "weft-rendezvous-v5";

/// Where the user's number stands in a name.
const NUMBER_AT: usize = COMMON_NAME.len() + 1;

/// The abstract name of a user's rendezvous, without the leading zero byte: `weft-rendezvous-v5-` and the number.
pub fn user_name(user: u32) -> ([u8; NUMBER_AT + 10], usize) {
    let mut name = *b"weft-rendezvous-v5-0000000000";
    let mut digits = [0; 10];
    let (mut rest, mut count) = (user, 0);
    while rest > 0 || count == 0 {
        digits[count] = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
    }
    for at in 0..count {
        name[NUMBER_AT + at] = digits[count - 1 - at];
    }
    (name, NUMBER_AT + count)
}

/// One side of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the arena.
    pub arena: u64,
    pub slot: u32,
    /// 0 or 1.
    pub side: u32,
    /// Which use of the slot, from 1 on.
    pub generation: u32,
}

/// What a process says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The first packet; its descriptor is the process's page.
    Hello { version: u32 },
    /// The descriptor is a connected socket of this cookie.
    Offer { cookie: u64 },
    /// The descriptor is a datagram socket of this cookie, which has exchanged datagrams with this peer.
    OfferPair { cookie: u64, peer: Peer },
    /// This side of the slot is not used any more.
    Release(Place),
    /// Asks for the list of processes and connections.
    Survey,
    /// The socket of this cookie was shown, no mail has come for it, and the program closes it. Where it leads to another
    /// host, the rendezvous holds it open until it hears this.
    Withdraw { cookie: u64 },
}

/// What the rendezvous says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Both ends of the connection whose end here has this cookie are known. With a descriptor, the arena's, when this
    /// process has not had it.
    Mail { cookie: u64, place: Place },
    /// As `Mail`, for a pair of datagram sockets: ours has this cookie, the other one this address.
    Pair { cookie: u64, place: Place, peer: Peer },
    /// No further slot of this arena will be used.
    Retired { arena: u64 },
    /// A process. The counters of its page follow in the same packet.
    Process { pid: u32, offers: u32 },
    /// A connection: the processes at its ends, their ports, and the bytes that each has put into its ring.
    Connection { pids: [u32; 2], ports: [u16; 2], bytes: [u64; 2] },
    /// The list ends.
    End,
    /// One of the [`GATEWAY_PARTS`] descriptors by which a process reaches other hosts, in their order: the gateway, the
    /// memory of lanes, the lane's receiver and its sender. They come before the first mail whose arena is this one.
    Gateway { arena: u64, lane: u32, part: u32 },
    /// A connection to another host: our process, the port of its end, the other end, and the bytes that each has put into
    /// its ring, ours first.
    Far { pid: u32, port: u16, peer: Peer, bytes: [u64; 2] },
}

/// Packets that bring a gateway.
pub const GATEWAY_PARTS: u32 = 4;

type Packet = [u8; BYTES];

fn put(packet: &mut Packet, at: usize, bytes: &[u8]) {
    packet[at..at + bytes.len()].copy_from_slice(bytes);
}

fn u32_at(packet: &Packet, at: usize) -> u32 {
    u32::from_le_bytes(packet[at..at + 4].try_into().unwrap_or_default())
}

fn u64_at(packet: &Packet, at: usize) -> u64 {
    u64::from_le_bytes(packet[at..at + 8].try_into().unwrap_or_default())
}

fn of_kind(kind: u32) -> Packet {
    let mut packet = [0; BYTES];
    put(&mut packet, 0, &kind.to_le_bytes());
    packet
}

const PLACE: usize = 16;
const PEER: usize = 40;

fn write_peer(packet: &mut Packet, peer: &Peer) {
    put(packet, PEER, &peer.address);
    put(packet, PEER + 16, &peer.port.to_le_bytes());
}

fn read_peer(packet: &Packet) -> Peer {
    let address = packet[PEER..PEER + 16].try_into().unwrap_or_default();
    Peer::new(address, u16::from_le_bytes([packet[PEER + 16], packet[PEER + 17]]))
}

impl Place {
    fn write(&self, packet: &mut Packet) {
        put(packet, PLACE, &self.arena.to_le_bytes());
        put(packet, PLACE + 8, &self.slot.to_le_bytes());
        put(packet, PLACE + 12, &self.side.to_le_bytes());
        put(packet, PLACE + 16, &self.generation.to_le_bytes());
    }

    fn read(packet: &Packet) -> Option<Self> {
        let place = Self {
            arena: u64_at(packet, PLACE),
            slot: u32_at(packet, PLACE + 8),
            side: u32_at(packet, PLACE + 12),
            generation: u32_at(packet, PLACE + 16),
        };
        (place.slot < SLOTS && place.side < 2 && place.generation > 0).then_some(place)
    }
}

impl Request {
    pub fn pack(&self) -> Packet {
        match self {
            Self::Hello { version } => {
                let mut packet = of_kind(1);
                put(&mut packet, 4, &version.to_le_bytes());
                packet
            }
            Self::Offer { cookie } => {
                let mut packet = of_kind(2);
                put(&mut packet, 8, &cookie.to_le_bytes());
                packet
            }
            Self::Release(place) => {
                let mut packet = of_kind(3);
                place.write(&mut packet);
                packet
            }
            Self::Survey => of_kind(4),
            Self::OfferPair { cookie, peer } => {
                let mut packet = of_kind(5);
                put(&mut packet, 8, &cookie.to_le_bytes());
                write_peer(&mut packet, peer);
                packet
            }
            Self::Withdraw { cookie } => {
                let mut packet = of_kind(6);
                put(&mut packet, 8, &cookie.to_le_bytes());
                packet
            }
        }
    }

    pub fn parse(packet: &Packet) -> Option<Self> {
        Some(match u32_at(packet, 0) {
            1 => Self::Hello { version: u32_at(packet, 4) },
            2 => Self::Offer { cookie: u64_at(packet, 8) },
            3 => Self::Release(Place::read(packet)?),
            4 => Self::Survey,
            5 => Self::OfferPair { cookie: u64_at(packet, 8), peer: read_peer(packet) },
            6 => Self::Withdraw { cookie: u64_at(packet, 8) },
            _ => return None,
        })
    }
}

impl Answer {
    pub fn pack(&self) -> Packet {
        match self {
            Self::Mail { cookie, place } => {
                let mut packet = of_kind(16);
                put(&mut packet, 8, &cookie.to_le_bytes());
                place.write(&mut packet);
                packet
            }
            Self::Retired { arena } => {
                let mut packet = of_kind(17);
                put(&mut packet, 16, &arena.to_le_bytes());
                packet
            }
            Self::Process { pid, offers } => {
                let mut packet = of_kind(18);
                put(&mut packet, 4, &pid.to_le_bytes());
                put(&mut packet, 8, &offers.to_le_bytes());
                packet
            }
            Self::Connection { pids, ports, bytes } => {
                let mut packet = of_kind(19);
                for side in 0..2 {
                    put(&mut packet, 8 + 4 * side, &pids[side].to_le_bytes());
                    put(&mut packet, 16 + 2 * side, &ports[side].to_le_bytes());
                    put(&mut packet, 24 + 8 * side, &bytes[side].to_le_bytes());
                }
                packet
            }
            Self::End => of_kind(20),
            Self::Pair { cookie, place, peer } => {
                let mut packet = of_kind(21);
                put(&mut packet, 8, &cookie.to_le_bytes());
                place.write(&mut packet);
                write_peer(&mut packet, peer);
                packet
            }
            Self::Gateway { arena, lane, part } => {
                let mut packet = of_kind(22);
                put(&mut packet, 8, &lane.to_le_bytes());
                put(&mut packet, 12, &part.to_le_bytes());
                put(&mut packet, 16, &arena.to_le_bytes());
                packet
            }
            Self::Far { pid, port, peer, bytes } => {
                let mut packet = of_kind(23);
                put(&mut packet, 8, &pid.to_le_bytes());
                put(&mut packet, 16, &port.to_le_bytes());
                put(&mut packet, 24, &bytes[0].to_le_bytes());
                put(&mut packet, 32, &bytes[1].to_le_bytes());
                write_peer(&mut packet, peer);
                packet
            }
        }
    }

    pub fn parse(packet: &Packet) -> Option<Self> {
        let port = |at: usize| u16::from_le_bytes([packet[at], packet[at + 1]]);
        Some(match u32_at(packet, 0) {
            16 => Self::Mail { cookie: u64_at(packet, 8), place: Place::read(packet)? },
            17 => Self::Retired { arena: u64_at(packet, 16) },
            18 => Self::Process { pid: u32_at(packet, 4), offers: u32_at(packet, 8) },
            19 => Self::Connection {
                pids: [u32_at(packet, 8), u32_at(packet, 12)],
                ports: [port(16), port(18)],
                bytes: [u64_at(packet, 24), u64_at(packet, 32)],
            },
            20 => Self::End,
            21 => Self::Pair { cookie: u64_at(packet, 8), place: Place::read(packet)?, peer: read_peer(packet) },
            22 if u32_at(packet, 12) < GATEWAY_PARTS => {
                Self::Gateway { arena: u64_at(packet, 16), lane: u32_at(packet, 8), part: u32_at(packet, 12) }
            }
            23 => Self::Far {
                pid: u32_at(packet, 8),
                port: port(16),
                peer: read_peer(packet),
                bytes: [u64_at(packet, 24), u64_at(packet, 32)],
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> Peer {
        Peer::of_v4([127, 0, 0, 1], 0x1234)
    }

    const PLACE: Place = Place { arena: 0x1122_3344_5566_7788, slot: 5, side: 1, generation: 9 };

    #[test]
    fn requests_come_back() {
        for request in [
            Request::Hello { version: VERSION },
            Request::Offer { cookie: 77 },
            Request::OfferPair { cookie: 78, peer: peer() },
            Request::Release(PLACE),
            Request::Survey,
            Request::Withdraw { cookie: 79 },
        ] {
            assert_eq!(Request::parse(&request.pack()), Some(request));
        }
    }

    #[test]
    fn answers_come_back() {
        for answer in [
            Answer::Mail { cookie: 5, place: PLACE },
            Answer::Pair { cookie: 6, place: PLACE, peer: peer() },
            Answer::Retired { arena: 7 },
            Answer::Process { pid: 4, offers: 2 },
            Answer::Connection { pids: [3, 4], ports: [80, 65535], bytes: [1 << 40, 7] },
            Answer::End,
            Answer::Gateway { arena: 8, lane: 15, part: 3 },
            Answer::Far { pid: 5, port: 81, peer: peer(), bytes: [9, 1 << 41] },
        ] {
            assert_eq!(Answer::parse(&answer.pack()), Some(answer));
        }
    }

    #[test]
    fn bytes_of_a_mail() {
        let mut golden = [0; BYTES];
        golden[0] = 16;
        golden[8] = 5;
        golden[16..24].copy_from_slice(&[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        golden[24] = 5;
        golden[28] = 1;
        golden[32] = 9;
        assert_eq!(Answer::Mail { cookie: 5, place: PLACE }.pack(), golden);
    }

    #[test]
    fn bytes_of_a_pair() {
        let mut golden = [0; BYTES];
        golden[0] = 21;
        golden[8] = 6;
        golden[16..24].copy_from_slice(&[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        golden[24] = 5;
        golden[28] = 1;
        golden[32] = 9;
        golden[50..58].copy_from_slice(&[0xff, 0xff, 127, 0, 0, 1, 0x34, 0x12]);
        assert_eq!(Answer::Pair { cookie: 6, place: PLACE, peer: peer() }.pack(), golden);
    }

    #[test]
    fn bytes_of_a_gateway() {
        let mut golden = [0; BYTES];
        golden[0] = 22;
        golden[8] = 7;
        golden[12] = 2;
        golden[16..24].copy_from_slice(&[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        let gateway = Answer::Gateway { arena: PLACE.arena, lane: 7, part: 2 };
        assert_eq!(gateway.pack(), golden);
        golden[12] = 4;
        assert_eq!(Answer::parse(&golden), None, "there are four parts");
    }

    #[test]
    fn bytes_of_a_far_connection() {
        let mut golden = [0; BYTES];
        golden[0] = 23;
        golden[8] = 5;
        golden[16] = 81;
        golden[24] = 9;
        golden[37] = 2;
        golden[50..58].copy_from_slice(&[0xff, 0xff, 127, 0, 0, 1, 0x34, 0x12]);
        assert_eq!(Answer::Far { pid: 5, port: 81, peer: peer(), bytes: [9, 1 << 41] }.pack(), golden);
    }

    #[test]
    fn a_place_outside_the_arena_is_refused() {
        for place in [Place { slot: SLOTS, ..PLACE }, Place { side: 2, ..PLACE }, Place { generation: 0, ..PLACE }] {
            assert_eq!(Request::parse(&Request::Release(place).pack()), None, "{place:?}");
        }
    }

    #[test]
    fn names_of_users() {
        assert_eq!(COMMON_NAME, format!("weft-rendezvous-v{VERSION}"));
        for user in [0, 7, 1000, u32::MAX] {
            let (name, length) = user_name(user);
            assert_eq!(std::str::from_utf8(&name[..length]).expect("text"), format!("{COMMON_NAME}-{user}"));
        }
    }
}
