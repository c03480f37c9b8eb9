//! What is known of a rank.

use super::calls::Calls;
use super::ends::Trouble;
use std::net::SocketAddr;
use weft_device::tcp::Place;
use weft_protocol::reliable::{Keyed, Link};
use weft_wire::link::header::Process;

/// What a rank may still do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Open,
    /// It has taken its leave.
    Left,
    Lost,
}

/// Whether datagrams reach it.
pub enum Way {
    /// Nobody has wanted to know.
    Unknown,
    Calling(Box<Calls>),
    /// It has answered.
    Open,
    /// It has not, and another device leads there.
    Other,
}

pub struct Peer {
    pub place: Place,
    pub process: Process,
    pub standing: Standing,
    pub way: Way,
    pub link: Option<Box<Link<Keyed>>>,
    /// Where it last was.
    pub route: Option<SocketAddr>,
    /// Something may be there to send.
    pub is_dirty: bool,
    /// Bytes that were posted since the last push, and when that was.
    pub posted_bytes: usize,
    pub pushed_ticks: u64,
    /// When its farewell came.
    pub left_ns: u64,
    /// What the network says of it.
    pub trouble: Option<Trouble>,
    /// What it must not have sent.
    pub nonsense: Option<&'static str>,
}

impl Peer {
    pub fn new(place: Place, process: Process) -> Self {
        Self {
            place,
            process,
            standing: Standing::Open,
            way: Way::Unknown,
            link: None,
            route: None,
            is_dirty: false,
            posted_bytes: 0,
            pushed_ticks: 0,
            left_ns: 0,
            trouble: None,
            nonsense: None,
        }
    }
}
