//! What is known of a rank.

use super::calls::Calls;
use super::trouble::Trouble;
use std::net::SocketAddr;
use weft_device::tcp::PeerPlace;
use weft_protocol::reliable::{JobSeal, Link};
use weft_wire::link::header::Process;

/// The incarnation of nobody.
pub const UNKNOWN: u32 = 0;

/// What a rank may still do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Open,
    /// It has taken its leave.
    Left,
    Lost,
}

/// Whether datagrams reach it.
pub enum DatagramWay {
    /// Nobody has wanted to know.
    Unknown,
    Calling(Box<Calls>),
    /// It has answered.
    Open,
    /// It has not, and another device leads there. It is still called, rarely.
    Other(Box<Calls>),
}

pub struct LinkPeer {
    pub place: PeerPlace,
    /// Its incarnation is 0 until it is known.
    pub process: Process,
    /// Calls to it so far, and the last one of its own that was answered: whose, and which.
    pub calls: u32,
    pub answered: (u32, u32),
    pub standing: Standing,
    pub way: DatagramWay,
    pub link: Option<Box<Link<JobSeal>>>,
    /// What the link holds at most in either direction.
    pub window_bytes: usize,
    /// Where it last was.
    pub route: Option<SocketAddr>,
    /// Something may be there to send.
    pub is_dirty: bool,
    /// Bytes that were posted since the last push, and when that was.
    pub posted_bytes: usize,
    pub pushed_ticks: u64,
    /// When its farewell came, or 0.
    pub left_ns: u64,
    /// It was to get something after that, and it was said that it cannot.
    pub is_missed: bool,
    /// What the network says of it.
    pub trouble: Option<Trouble>,
    /// What it must not have sent.
    pub nonsense: Option<&'static str>,
}

impl LinkPeer {
    /// Whether a process may be this rank, as far as is known.
    #[inline]
    pub fn may_be(&self, process: Process) -> bool {
        let known = self.process.incarnation;
        process.incarnation != UNKNOWN && (known == UNKNOWN || known == process.incarnation)
    }

    /// Whether this is one of the addresses that it was said to have at the start.
    pub fn is_at(&self, address: &SocketAddr) -> bool {
        self.place.addresses.iter().any(|own| (own.ip(), own.port()) == (address.ip(), address.port()))
    }

    pub fn new(place: PeerPlace, rank: u32) -> Self {
        Self {
            place,
            process: Process { rank, incarnation: UNKNOWN },
            calls: 0,
            answered: (UNKNOWN, 0),
            standing: Standing::Open,
            way: DatagramWay::Unknown,
            link: None,
            window_bytes: 0,
            route: None,
            is_dirty: false,
            posted_bytes: 0,
            pushed_ticks: 0,
            left_ns: 0,
            is_missed: false,
            trouble: None,
            nonsense: None,
        }
    }
}
