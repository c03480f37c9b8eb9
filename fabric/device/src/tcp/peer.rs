//! What is known of a peer.

use super::dial::Dial;
use super::link::TcpLink;
use super::output::OutputQueue;
use std::net::SocketAddr;
use weft_wire::tcp::Key;

/// Where a peer is waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerPlace {
    /// The name of its host, for people.
    pub host: String,
    /// Where it may be reached, in the order in which that is tried.
    pub addresses: Vec<SocketAddr>,
}

/// A process among those of all jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerIdentity {
    /// The job.
    pub world: u64,
    pub rank: u32,
}

/// What a pair of processes of two jobs needs to find each other.
pub(super) struct Tie {
    pub them: PeerIdentity,
    /// Of our calls, and of theirs.
    pub calling: Key,
    pub called: Key,
    /// We choose which connection stays.
    pub leads: bool,
}

/// What a peer may still do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TcpStanding {
    Open,
    /// It has taken its leave.
    Left,
    Lost,
}

/// What a peer was sent since the last poll, of posts that more may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lately {
    Nothing,
    Sent,
    /// The kernel may still have some, and waits for more.
    Held,
}

pub(super) struct TcpPeer {
    pub place: PeerPlace,
    pub standing: TcpStanding,
    /// It has said farewell, whatever has become of it then.
    pub took_leave: bool,
    pub link: Option<Box<TcpLink>>,
    /// Where the link leads.
    pub address: Option<SocketAddr>,
    pub dial: Option<Box<Dial>>,
    pub output: OutputQueue,
    /// The link is watched for room as well.
    pub wants_room: bool,
    /// It could not be reached when nothing was posted.
    pub unreached: bool,
    pub lately: Lately,
    /// It is of another job.
    pub tie: Option<Box<Tie>>,
}

impl TcpPeer {
    pub fn new(place: PeerPlace) -> Self {
        Self {
            place,
            standing: TcpStanding::Open,
            took_leave: false,
            link: None,
            address: None,
            dial: None,
            output: OutputQueue::default(),
            wants_room: false,
            unreached: false,
            lately: Lately::Nothing,
            tie: None,
        }
    }

    /// Adds a packet to what waits.
    pub fn add(&mut self, front: &[u8], bulk: &[u8]) {
        match self.link.as_mut().and_then(|link| link.sealed.as_mut()) {
            Some(sealed) => self.output.add(sealed.record_of(front, bulk)),
            None => {
                self.output.add(front);
                self.output.add(bulk);
            }
        }
    }

    /// Who it is, for people.
    pub fn title(&self, number: u32) -> String {
        match &self.tie {
            None => format!("rank {number} on host {}", self.place.host),
            Some(tie) => format!("rank {} of another job ({})", tie.them.rank, self.place.host),
        }
    }
}
