//! Datagrams that go by a lane instead of the socket, to those from whom a believed one has come by it.

use crate::xdp::{Ends, Lane, LaneRoute};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::net::SocketAddr;

/// Who has not been heard by the lane for so long is sent to by the socket again, where the kernel asks anew for the
/// way: the other side may have moved to another card, or its filter may be gone.
const TRUSTED_NS: u64 = 200_000_000;

/// More ways than ranks have addresses. Beyond that those that are not trusted any more are forgotten.
const MOST_WAYS: usize = 4096;

pub struct ByLane {
    lane: Lane,
    /// Otherwise it is received from only.
    sends: bool,
    ways: HashMap<SocketAddr, LaneWay, BuildHasherDefault<AddressMix>>,
}

/// Mixes the few words of an address, several times as fast as the usual way, which is for keys that an enemy chooses.
/// Here are addresses of which something believed has come, of ranks of the job.
#[derive(Default)]
struct AddressMix(u64);

impl Hasher for AddressMix {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    #[inline]
    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(GOLDEN);
    }

    #[inline]
    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The table takes the highest bits and the lowest ones.
        self.0 ^ self.0 >> 32
    }
}

/// 2^64 by the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

struct LaneWay {
    route: LaneRoute,
    heard_ns: u64,
    /// The lane carries the largest datagram that goes there.
    fits: bool,
}

impl LaneWay {
    fn is_trusted(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.heard_ns) <= TRUSTED_NS
    }
}

impl ByLane {
    pub fn new(lane: Lane, sends: bool) -> Self {
        Self { lane, sends, ways: HashMap::default() }
    }

    pub fn into_lane(self) -> Lane {
        self.lane
    }

    pub fn lane(&self) -> &Lane {
        &self.lane
    }

    /// Whether datagrams to this address go by the lane, if it has room.
    #[inline]
    pub fn leads_to(&self, to: &SocketAddr, now_ns: u64) -> bool {
        self.ways.get(to).is_some_and(|way| way.fits && way.is_trusted(now_ns))
    }

    /// As [`super::UdpPort::send`]; leaves `write` where it is if the lane is not the way, or has no room.
    #[inline]
    pub fn send<F>(&mut self, to: &SocketAddr, now_ns: u64, write: &mut Option<F>) -> bool
    where
        F: FnOnce(&mut [u8]) -> Option<usize>,
    {
        let Some(way) = self.ways.get(to) else { return false };
        if !way.fits || !way.is_trusted(now_ns) {
            return false;
        }
        let sent = self.lane.send(&way.route, |place| write.take().and_then(|write| write(place)).unwrap_or(0));
        sent.is_some_and(|length| length > 0)
    }

    /// True if nothing is left.
    #[inline]
    pub fn flush(&mut self) -> bool {
        self.lane.flush()
    }

    /// Hands on what has come. The way of what is believed is the way back.
    #[inline]
    pub fn receive(&mut self, now_ns: u64, mut handle: impl FnMut(SocketAddr, &[u8]) -> bool) -> bool {
        let Self { lane, sends, ways } = self;
        let mut learned: Option<Ends> = None;
        let any = lane.receive(|frame| {
            if handle(frame.ends.from, frame.payload) && *sends {
                match ways.get_mut(&frame.ends.from) {
                    Some(way) if way.route.is_of(&frame.ends) => way.heard_ns = now_ns,
                    _ => learned = Some(frame.ends),
                }
            }
        });
        if let Some(ends) = learned {
            let route = LaneRoute::learn(&ends);
            let fits = lane.largest_payload(&route) >= super::largest_datagram(&ends.from);
            if ways.len() >= MOST_WAYS {
                ways.retain(|_, way| way.is_trusted(now_ns));
            }
            if ways.len() >= MOST_WAYS {
                ways.clear();
            }
            ways.insert(ends.from, LaneWay { route, heard_ns: now_ns, fits });
        }
        any > 0
    }
}
