//! Everybody learns a small block of everybody: the one step that making communicators needs.

use crate::error::{Class, Error, Result};
use weft_fabric::{Endpoint, Envelope, Fault, Peer, RequestId, Selector, SendMode};

/// What one process tells the others.
pub type Block = [u64; 4];

/// An allgather of one block each, by doubling (after Bruck): in round `k` a process sends what it has to the member
/// `2^k` before it and receives as much from the one `2^k` after it. Nothing blocks: [`Self::poll`] moves it on.
///
/// Messages of several exchanges between the same processes are kept apart by context and tag.
pub struct Exchange {
    members: Vec<Peer>,
    me: usize,
    context: u32,
    tag: i32,
    /// `blocks[i]` is of member `me + i`; the first `known` are there. Its memory does not move.
    blocks: Vec<Block>,
    known: usize,
    under_way: Option<[RequestId; 2]>,
}

impl Exchange {
    /// `me` is the calling process's place among the members.
    pub fn new(members: Vec<Peer>, me: usize, context: u32, tag: i32, mine: Block) -> Self {
        let mut blocks = vec![[0; 4]; members.len()];
        blocks[0] = mine;
        Self { members, me, context, tag, blocks, known: 1, under_way: None }
    }

    /// The blocks in the order of the members, once all are known.
    pub fn poll(&mut self, endpoint: &mut Endpoint) -> Option<Result<Vec<Block>>> {
        loop {
            if let Some(requests) = self.under_way {
                if !requests.iter().all(|&request| endpoint.is_complete(request)) {
                    return self.give_up(endpoint, requests);
                }
                if let Some(error) = self.end_round(endpoint, requests) {
                    return Some(Err(error));
                }
            }
            if self.known == self.members.len() {
                return Some(Ok(self.in_order()));
            }
            self.under_way = Some(self.begin_round(endpoint));
        }
    }

    /// Who waits for one that waits for a member which is lost would wait for ever.
    fn give_up(&mut self, endpoint: &mut Endpoint, [receive, send]: [RequestId; 2]) -> Option<Result<Vec<Block>>> {
        let lost = self.members.iter().copied().find_map(|member| Some((member, endpoint.loss(member)?)));
        let closing = endpoint.closing(self.context);
        if lost.is_none() && closing.is_none() {
            return None;
        }
        if !endpoint.is_complete(receive) && !endpoint.cancel_receive(receive) {
            return None;
        }
        self.under_way = None;
        endpoint.take_outcome(receive);
        if endpoint.take_outcome(send).is_none() {
            // It is short, and whoever it goes to may take it yet.
            endpoint.release(send);
            std::mem::forget(std::mem::take(&mut self.blocks));
        }
        Some(Err(match (closing, lost) {
            (None, Some((member, fault))) => self::lost(member, Some(fault)),
            (closing, _) => crate::failure::closed(closing.unwrap_or(Fault::PeerLost)),
        }))
    }

    fn moving(&self) -> usize {
        self.known.min(self.members.len() - self.known)
    }

    fn begin_round(&mut self, endpoint: &mut Endpoint) -> [RequestId; 2] {
        let (n, distance, bytes) = (self.members.len(), self.known, self.moving() * size_of::<Block>());
        let after = self.members[(self.me + distance) % n];
        let before = self.members[(self.me + n - distance) % n];
        let selector = Selector { context: self.context, peer: Some(after), tag: Some(self.tag) };
        let envelope = Envelope { context: self.context, tag: self.tag, source: self.me as u32 };
        let (known, free) = self.blocks.split_at_mut(self.known);
        // SAFETY: the blocks live as long as the exchange, which ends after its requests; what is sent is not written
        // meanwhile, and what is received is not read.
        unsafe {
            let receive = endpoint.post_receive(selector, free.as_mut_ptr().cast(), bytes);
            let send = endpoint.post_send(before, envelope, known.as_ptr().cast(), bytes, SendMode::Standard);
            [receive, send]
        }
    }

    fn end_round(&mut self, endpoint: &mut Endpoint, requests: [RequestId; 2]) -> Option<Error> {
        self.under_way = None;
        let outcomes = requests.map(|request| endpoint.take_outcome(request).expect("it is complete"));
        if let Some(outcome) = outcomes.into_iter().find(|outcome| outcome.fault.is_some()) {
            return Some(lost(outcome.peer, outcome.fault));
        }
        self.known += self.moving();
        None
    }

    fn in_order(&self) -> Vec<Block> {
        let n = self.members.len();
        (0..n).map(|member| self.blocks[(member + n - self.me) % n]).collect()
    }
}

/// The error of an internal message that did not arrive whole.
pub fn lost(peer: Peer, fault: Option<Fault>) -> Error {
    let (class, why) = match fault {
        Some(Fault::Withdrawn) => return crate::failure::closed(Fault::Withdrawn),
        Some(Fault::NoMemory) => return crate::failure::cut_off(peer),
        Some(Fault::PeerLost) => (crate::failure::lost_class(), "has ended"),
        None => (Class::ProcAborted, "has ended"),
        Some(Fault::Cancelled) => (Class::ProcAborted, "was given up"),
        Some(Fault::Truncated) => (Class::ProcAborted, "passed other arguments"),
    };
    Error::new(class, format!("process {} {why} while a communicator was being made", peer.0))
}
