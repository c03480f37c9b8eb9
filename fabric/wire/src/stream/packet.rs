//! What processes and the rendezvous say to each other: packets of 64 bytes on a `SOCK_SEQPACKET` socket, some with a
//! descriptor. One is longer: a process with its counters.

use super::arena::SLOTS;
use super::datagram::DatagramPeer;

pub const BYTES: usize = 64;
/// Changes with every change of a packet; said in the first one, and part of the names, so that programs of two
/// versions on one host have a rendezvous each.
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
pub struct SlotSide {
    /// Name of the arena.
    pub arena: u64,
    pub slot: u32,
    /// 0 or 1.
    pub side: u32,
    /// Which use of the slot, from 1 on.
    pub generation: u32,
}

type Packet = [u8; BYTES];

/// What stands somewhere in a packet. Numbers are little-endian.
trait PacketField: Sized {
    fn put(&self, packet: &mut Packet, at: usize);

    /// `None` where it means nothing.
    fn get(packet: &Packet, at: usize) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty)*) => { $(
        impl PacketField for $type {
            fn put(&self, packet: &mut Packet, at: usize) {
                packet[at..at + size_of::<Self>()].copy_from_slice(&self.to_le_bytes());
            }

            fn get(packet: &Packet, at: usize) -> Option<Self> {
                Some(Self::from_le_bytes(*packet[at..].first_chunk()?))
            }
        }
    )* };
}

numbers! { u16 u32 u64 }

impl<T: PacketField> PacketField for [T; 2] {
    fn put(&self, packet: &mut Packet, at: usize) {
        self[0].put(packet, at);
        self[1].put(packet, at + size_of::<T>());
    }

    fn get(packet: &Packet, at: usize) -> Option<Self> {
        Some([T::get(packet, at)?, T::get(packet, at + size_of::<T>())?])
    }
}

impl PacketField for DatagramPeer {
    fn put(&self, packet: &mut Packet, at: usize) {
        packet[at..at + 16].copy_from_slice(&self.address);
        self.port.put(packet, at + 16);
    }

    fn get(packet: &Packet, at: usize) -> Option<Self> {
        Some(Self::new(*packet[at..].first_chunk()?, u16::get(packet, at + 16)?))
    }
}

impl PacketField for SlotSide {
    fn put(&self, packet: &mut Packet, at: usize) {
        self.arena.put(packet, at);
        [self.slot, self.side].put(packet, at + 8);
        self.generation.put(packet, at + 16);
    }

    fn get(packet: &Packet, at: usize) -> Option<Self> {
        let [slot, side] = <[u32; 2]>::get(packet, at + 8)?;
        let place = Self { arena: u64::get(packet, at)?, slot, side, generation: u32::get(packet, at + 16)? };
        (slot < SLOTS && side < 2 && place.generation > 0).then_some(place)
    }
}

/// An enum of packets: each with its kind, which stands at the beginning, and its fields with their places.
macro_rules! packets {
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$doc:meta])* $kind:literal: $variant:ident
            $(($only:ident: $of:ty = $place:literal))? $({ $($field:ident: $type:ty = $at:literal),+ })?
            $(if $sound:expr)?,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant $(($of))? $({ $($field: $type),+ })?,)+
        }

        impl $name {
            pub fn pack(&self) -> Packet {
                let mut packet = [0; BYTES];
                match self {
                    $(Self::$variant $(($only))? $({ $($field),+ })? => {
                        u32::put(&$kind, &mut packet, 0);
                        $($only.put(&mut packet, $place);)?
                        $($($field.put(&mut packet, $at);)+)?
                    })+
                }
                packet
            }

            pub fn parse(packet: &Packet) -> Option<Self> {
                match u32::get(packet, 0)? {
                    $($kind => {
                        $(let $only = <$of>::get(packet, $place)?;)?
                        $($(let $field = <$type>::get(packet, $at)?;)+)?
                        $(if !($sound) {
                            return None;
                        })?
                        Some(Self::$variant $(($only))? $({ $($field),+ })?)
                    })+
                    _ => None,
                }
            }
        }
    };
}

packets! {
    /// What a process says.
    pub enum StreamRequest {
        /// The first packet; its descriptor is the process's page.
        1: Hello { version: u32 = 4 },
        /// The descriptor is a connected socket of this cookie.
        2: Offer { cookie: u64 = 8 },
        /// This side of the slot is not used any more.
        3: Release(place: SlotSide = 16),
        /// Asks for the list of processes and connections.
        4: Survey,
        /// The descriptor is a datagram socket of this cookie, which has exchanged datagrams with this peer.
        5: OfferPair { cookie: u64 = 8, peer: DatagramPeer = 40 },
        /// The socket of this cookie was shown, no mail has come for it, and the program closes it. Where it leads to
        /// another host, the rendezvous holds it open until it hears this.
        6: Withdraw { cookie: u64 = 8 },
    }
}

packets! {
    /// What the rendezvous says.
    pub enum Answer {
        /// Both ends of the connection whose end here has this cookie are known. With a descriptor, the arena's, when
        /// this process has not had it.
        16: Mail { cookie: u64 = 8, place: SlotSide = 16 },
        /// No further slot of this arena will be used.
        17: Retired { arena: u64 = 16 },
        /// A process. The counters of its page follow in the same packet.
        18: Process { pid: u32 = 4, offers: u32 = 8 },
        /// A connection: the processes at its ends, their ports, and the bytes that each has put into its ring.
        19: Connection { pids: [u32; 2] = 8, ports: [u16; 2] = 16, bytes: [u64; 2] = 24 },
        /// The list ends.
        20: End,
        /// As `Mail`, for a pair of datagram sockets: ours has this cookie, the other one this address.
        21: Pair { cookie: u64 = 8, place: SlotSide = 16, peer: DatagramPeer = 40 },
        /// One of the [`GATEWAY_PARTS`] descriptors by which a process reaches other hosts, in their order: the
        /// gateway, the memory of lanes, the lane's receiver and its sender. They come before the first mail whose
        /// arena is this one.
        22: Gateway { arena: u64 = 16, lane: u32 = 8, part: u32 = 12 } if part < GATEWAY_PARTS,
        /// A connection to another host: our process, the port of its end, the other end, and the bytes that each has
        /// put into its ring, ours first.
        23: Far { pid: u32 = 8, port: u16 = 16, peer: DatagramPeer = 40, bytes: [u64; 2] = 24 },
    }
}

/// Packets that bring a gateway.
pub const GATEWAY_PARTS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> DatagramPeer {
        DatagramPeer::of_v4([127, 0, 0, 1], 0x1234)
    }

    const PLACE: SlotSide = SlotSide { arena: 0x1122_3344_5566_7788, slot: 5, side: 1, generation: 9 };

    #[test]
    fn requests_come_back() {
        for request in [
            StreamRequest::Hello { version: VERSION },
            StreamRequest::Offer { cookie: 77 },
            StreamRequest::OfferPair { cookie: 78, peer: peer() },
            StreamRequest::Release(PLACE),
            StreamRequest::Survey,
            StreamRequest::Withdraw { cookie: 79 },
        ] {
            assert_eq!(StreamRequest::parse(&request.pack()), Some(request));
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
        for place in
            [SlotSide { slot: SLOTS, ..PLACE }, SlotSide { side: 2, ..PLACE }, SlotSide { generation: 0, ..PLACE }]
        {
            assert_eq!(StreamRequest::parse(&StreamRequest::Release(place).pack()), None, "{place:?}");
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
