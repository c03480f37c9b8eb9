//! Processes of other jobs: they come while we run, and each pair has keys of its own.
//!
//! Who calls such a process uses the key that this one has told, made anew for the caller; so the key says who calls, and the
//! numbers in a call are ranks of two jobs. Who calls before we have heard of it is kept waiting until we have.

use super::device::{Peer, Place, TcpDevice};
use super::dial::Dial;
use super::guest::Guest;
use super::socket;
use crate::contract::Device;
use std::io;
use std::os::fd::AsRawFd;
use weft_wire::tcp::{Call, GreetingError, HELLO_BYTES, Key, key_of_caller};

/// A process among those of all jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The job.
    pub world: u64,
    pub rank: u32,
}

/// What a pair of processes of two jobs needs to find each other.
pub(super) struct Tie {
    them: Identity,
    /// Of our calls, and of theirs.
    calling: Key,
    called: Key,
    /// We choose which connection stays.
    leads: bool,
}

/// Who calls, as far as we know it.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    pub peer: u32,
    pub key: Key,
    /// We choose which connection stays.
    pub we_lead: bool,
}

/// What a first message turns out to be.
pub(super) enum Found {
    Caller(Caller, Call),
    /// One of ours, who wanted somebody else.
    Misled,
    /// Perhaps of a job of which we have not heard yet.
    Unknown,
    Stranger,
}

/// All who may call.
pub struct Book<'a> {
    me: u32,
    key: &'a Key,
    pub encrypts: bool,
    peers: &'a [Peer],
    open: bool,
}

impl<'a> Book<'a> {
    pub(super) fn new(me: u32, key: &'a Key, encrypts: bool, peers: &'a [Peer], open: bool) -> Self {
        Self { me, key, encrypts, peers, open }
    }

    pub(super) fn find(&self, hello: &[u8; HELLO_BYTES]) -> Found {
        match Call::from_hello(hello, self.key) {
            Ok(call) => {
                let known = self.peers.get(call.from as usize).is_some_and(|peer| peer.tie.is_none());
                match known && call.to == self.me && call.from != self.me {
                    true => {
                        let caller = Caller { peer: call.from, key: *self.key, we_lead: self.me < call.from };
                        Found::Caller(caller, call)
                    }
                    false => Found::Misled,
                }
            }
            Err(GreetingError::Key) if self.open => self.find_foreign(hello),
            Err(_) => Found::Stranger,
        }
    }

    fn find_foreign(&self, hello: &[u8; HELLO_BYTES]) -> Found {
        for (number, peer) in self.peers.iter().enumerate() {
            let Some(tie) = &peer.tie else { continue };
            let Ok(call) = Call::from_hello(hello, &tie.called) else { continue };
            if (call.from, call.to) != (tie.them.rank, self.me) {
                return Found::Misled;
            }
            let caller = Caller { peer: number as u32, key: tie.called, we_lead: tie.leads };
            return Found::Caller(caller, call);
        }
        Found::Unknown
    }
}

/// What this process is for those of other jobs, who know its key.
pub(super) struct Front {
    me: Identity,
    key: Key,
}

impl TcpDevice {
    /// From now on processes of other jobs may call, once they are known.
    pub fn open_to_others(&mut self, me: Identity, key: Key) {
        self.front = Some(Front { me, key });
    }

    /// The port at which we listen.
    ///
    /// # Errors
    /// The kernel does not tell it.
    pub fn port(&self) -> io::Result<u16> {
        let name = socket::name_of(self.listener.as_raw_fd());
        name.map(|name| name.port()).ok_or_else(|| io::Error::other("the listener has no port"))
    }

    /// A process of another job, that has told its `key`, becomes a peer: the next one after all that there are.
    /// It is called at once, so that its end is noticed by whoever waits for it. Nothing happens where we are not open to
    /// others.
    pub fn adopt(&mut self, them: Identity, key: &Key, place: Place) {
        let Some(front) = &self.front else { return };
        let tie = Tie {
            them,
            calling: key_of_caller(key, front.me.world, front.me.rank),
            called: key_of_caller(&front.key, them.world, them.rank),
            leads: front.me < them,
        };
        let mut peer = Peer::new(place);
        peer.tie = Some(Box::new(tie));
        self.peers.push(peer);
        for index in 0..self.guests.len() {
            if self.guests[index].as_ref().is_some_and(Guest::is_unknown) {
                self.reconsider(index);
            }
        }
        self.reach(self.peers.len() as u32 - 1);
        self.look_soon();
    }

    /// Whether the connection to a peer serves to tell of its end alone: where all do, looks are rare.
    pub fn set_lifeline(&mut self, rank: u32, is_lifeline: bool) {
        match is_lifeline {
            true => self.lifelines.insert(rank),
            false => self.lifelines.remove(&rank),
        };
    }

    pub(super) fn new_dial(&self, to: u32, now_ns: u64) -> Dial {
        let peer = &self.peers[to as usize];
        let addresses = &peer.place.addresses;
        match &peer.tie {
            None => Dial::new(self.me, to, self.encrypts, addresses, now_ns),
            Some(tie) => Dial::new(self.me, tie.them.rank, self.encrypts, addresses, now_ns).for_another_job(tie.leads),
        }
    }

    /// The key of our calls to a peer.
    pub(super) fn calling_key(&self, to: u32) -> Key {
        self.peers.get(to as usize).and_then(|peer| peer.tie.as_ref()).map_or(self.key, |tie| tie.calling)
    }

    /// Whether this side of a pair chooses which connection stays.
    pub(super) fn leads(&self, peer: u32) -> bool {
        match &self.peers[peer as usize].tie {
            None => self.me < peer,
            Some(tie) => tie.leads,
        }
    }
}

impl Peer {
    /// Who it is, for people.
    pub(super) fn title(&self, number: u32) -> String {
        match &self.tie {
            None => format!("rank {number} on host {}", self.place.host),
            Some(tie) => format!("rank {} of another job ({})", tie.them.rank, self.place.host),
        }
    }
}
