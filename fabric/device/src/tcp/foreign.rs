//! Processes of other jobs: they come while we run, and each pair has keys of its own.
//!
//! Who calls such a process uses the key that this one has told, made anew for the caller; so the key says who calls,
//! and the numbers in a call are ranks of two jobs. Who calls before we have heard of it is kept waiting until we have.

use super::book::JobFront;
use super::device::TcpDevice;
use super::dial::Dial;
use super::guest::Guest;
use super::peer::{PeerIdentity, PeerPlace, TcpPeer, Tie};
use super::socket;
use crate::contract::Device;
use std::io;
use std::os::fd::AsRawFd;
use weft_wire::tcp::{Key, key_of_caller};

impl TcpDevice {
    /// From now on processes of other jobs may call, once they are known.
    pub fn open_to_others(&mut self, me: PeerIdentity, key: Key) {
        self.badge.front = Some(JobFront { me, key });
    }

    /// The port at which we listen.
    ///
    /// # Errors
    /// The kernel does not tell it.
    pub fn port(&self) -> io::Result<u16> {
        let name = self.reception.listeners.first().and_then(|listener| socket::name_of(listener.as_raw_fd()));
        name.map(|name| name.port()).ok_or_else(|| io::Error::other("the listener has no port"))
    }

    /// A process of another job, that has told its `key`, becomes a peer: the next one after all that there are. It is
    /// called at once, so that its end is noticed by whoever waits for it. Nothing happens where we are not open to
    /// others.
    pub fn adopt(&mut self, them: PeerIdentity, key: &Key, place: PeerPlace) {
        let Some(front) = &self.badge.front else { return };
        let tie = Tie {
            them,
            calling: key_of_caller(key, front.me.world, front.me.rank),
            called: key_of_caller(&front.key, them.world, them.rank),
            leads: front.me < them,
        };
        let mut peer = TcpPeer::new(place);
        peer.tie = Some(Box::new(tie));
        self.peers.push(peer);
        for index in 0..self.reception.guests.len() {
            if self.reception.guests[index].as_ref().is_some_and(Guest::is_unknown) {
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
            None => Dial::new(self.badge.me, to, self.badge.encrypts, addresses, now_ns),
            Some(tie) => Dial::new(self.badge.me, tie.them.rank, self.badge.encrypts, addresses, now_ns)
                .for_another_job(tie.leads),
        }
    }

    /// The key of our calls to a peer.
    pub(super) fn calling_key(&self, to: u32) -> Key {
        self.peers.get(to as usize).and_then(|peer| peer.tie.as_ref()).map_or(self.badge.key, |tie| tie.calling)
    }

    /// Whether this side of a pair chooses which connection stays.
    pub(super) fn leads(&self, peer: u32) -> bool {
        match &self.peers[peer as usize].tie {
            None => self.badge.me < peer,
            Some(tie) => tie.leads,
        }
    }
}
