//! Who we are, and all who may call.

use super::peer::{PeerIdentity, TcpPeer};
use weft_wire::tcp::{Dialling, GreetingError, HELLO_BYTES, Key};

/// Who we are, and what we prove it with.
pub(super) struct Badge {
    pub me: u32,
    pub key: Key,
    pub encrypts: bool,
    /// Where we are open to other jobs.
    pub front: Option<JobFront>,
}

/// What this process is for those of other jobs, who know its key.
pub(super) struct JobFront {
    pub me: PeerIdentity,
    pub key: Key,
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
pub(super) enum FoundPeer {
    Caller(Caller, Dialling),
    /// One of ours, who wanted somebody else.
    Misled,
    /// Perhaps of a job of which we have not heard yet.
    Unknown,
    Stranger,
}

/// All who may call.
pub(super) struct Book<'a> {
    pub badge: &'a Badge,
    pub peers: &'a [TcpPeer],
}

impl Book<'_> {
    pub fn find(&self, hello: &[u8; HELLO_BYTES]) -> FoundPeer {
        match Dialling::from_hello(hello, &self.badge.key) {
            Ok(call) => {
                let known = self.peers.get(call.from as usize).is_some_and(|peer| peer.tie.is_none());
                match known && call.to == self.badge.me && call.from != self.badge.me {
                    true => {
                        let caller =
                            Caller { peer: call.from, key: self.badge.key, we_lead: self.badge.me < call.from };
                        FoundPeer::Caller(caller, call)
                    }
                    false => FoundPeer::Misled,
                }
            }
            Err(GreetingError::Key) if self.badge.front.is_some() => self.find_foreign(hello),
            Err(_) => FoundPeer::Stranger,
        }
    }

    fn find_foreign(&self, hello: &[u8; HELLO_BYTES]) -> FoundPeer {
        for (number, peer) in self.peers.iter().enumerate() {
            let Some(tie) = &peer.tie else { continue };
            let Ok(call) = Dialling::from_hello(hello, &tie.called) else { continue };
            if (call.from, call.to) != (tie.them.rank, self.badge.me) {
                return FoundPeer::Misled;
            }
            let caller = Caller { peer: number as u32, key: tie.called, we_lead: tie.leads };
            return FoundPeer::Caller(caller, call);
        }
        FoundPeer::Unknown
    }
}
