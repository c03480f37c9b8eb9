//! The table of started operations, which all protocols share, and how those end that need a peer which is lost.

use crate::api::{Fault, Outcome, Peer, RequestId};

/// What a request is and how far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestState {
    Free,
    /// A send that waits in the outbound queue or streams.
    Sending,
    /// A send that waits for the receiver's grant.
    Asked,
    /// A send whose bytes both sides copy.
    SharedSend,
    /// A receive in the posted queue.
    Posted,
    /// A receive whose bytes are on their way.
    Receiving,
    /// A receive whose sender was told to stream and has not begun.
    Granted,
    /// A receive whose bytes both sides are to copy once there is a slot for it.
    WithoutSlot,
    /// A receive whose bytes both sides copy.
    Copying,
    Complete,
}

/// One operation. The buffer belongs to the user, who keeps it valid until completion (invariant BUFFER-LIVES).
#[derive(Clone, Copy)]
pub(crate) struct RequestEntry {
    pub state: RequestState,
    /// Nobody will ask for the outcome.
    pub released: bool,
    pub buffer: *mut u8,
    /// Bytes: of the message (sends), of the buffer (receives).
    pub capacity: usize,
    /// The other side's request, where the protocol needs it.
    pub remote: u32,
    /// Copy slot of a long receive, or `u32::MAX`.
    pub slot: u32,
    /// A long receive that the port's learner is told of when it ends.
    pub timed: bool,
    /// The message that is kept until somebody receives it, for which this request stands.
    pub keeps: Option<u32>,
    pub outcome: Outcome,
}

const VACANT: Outcome = Outcome { peer: Peer(0), source: 0, tag: 0, length: 0, fault: None };

pub(crate) struct Requests {
    entries: Vec<RequestEntry>,
    free: Vec<u32>,
    /// Of each peer that is lost, how what needs it ends.
    lost: Vec<Option<Fault>>,
}

impl Requests {
    pub fn new(peers: u32) -> Self {
        Self { entries: Vec::new(), free: Vec::new(), lost: vec![None; peers as usize] }
    }

    pub fn add_peer(&mut self) {
        self.lost.push(None);
    }

    /// How what needs a peer ends, if it is lost.
    #[inline]
    pub fn loss(&self, peer: Peer) -> Option<Fault> {
        self.lost[peer.0 as usize]
    }

    pub fn note_loss(&mut self, peer: Peer, fault: Fault) {
        self.lost[peer.0 as usize] = Some(fault);
    }

    #[inline]
    pub fn insert(&mut self, entry: RequestEntry) -> RequestId {
        if let Some(index) = self.free.pop() {
            self.entries[index as usize] = entry;
            return RequestId(index);
        }
        self.grow(entry)
    }

    #[cold]
    fn grow(&mut self, entry: RequestEntry) -> RequestId {
        self.entries.push(entry);
        RequestId(self.entries.len() as u32 - 1)
    }

    /// A started operation of `state` with nothing known of its outcome yet.
    pub fn entry(state: RequestState, buffer: *mut u8, capacity: usize, peer: Peer) -> RequestEntry {
        let outcome = Outcome { peer, ..VACANT };
        RequestEntry {
            state,
            released: false,
            buffer,
            capacity,
            remote: 0,
            slot: u32::MAX,
            timed: false,
            keeps: None,
            outcome,
        }
    }

    #[inline]
    pub fn at(&mut self, id: RequestId) -> &mut RequestEntry {
        &mut self.entries[id.0 as usize]
    }

    /// A request that a peer has named; `None` if there is none such.
    pub fn claimed(&mut self, claim: u64) -> Option<(RequestId, &mut RequestEntry)> {
        let index = u32::try_from(claim).ok()?;
        let entry = self.entries.get_mut(index as usize)?;
        (entry.state != RequestState::Free).then_some((RequestId(index), entry))
    }

    #[inline]
    pub fn is_complete(&self, id: RequestId) -> bool {
        self.entries[id.0 as usize].state == RequestState::Complete
    }

    #[inline]
    pub fn is_under_way(&self, id: RequestId) -> bool {
        !matches!(self.entries[id.0 as usize].state, RequestState::Free | RequestState::Complete)
    }

    /// Complete, without fault.
    #[inline]
    pub fn is_good(&self, id: RequestId) -> bool {
        let entry = &self.entries[id.0 as usize];
        entry.state == RequestState::Complete && entry.outcome.fault.is_none()
    }

    #[inline]
    pub fn complete(&mut self, id: RequestId) {
        let entry = &mut self.entries[id.0 as usize];
        entry.state = RequestState::Complete;
        if entry.released {
            self.remove(id);
        }
    }

    #[inline(always)]
    pub fn take_outcome(&mut self, id: RequestId) -> Option<Outcome> {
        let entry = &self.entries[id.0 as usize];
        if entry.state != RequestState::Complete {
            return None;
        }
        let outcome = entry.outcome;
        self.remove(id);
        Some(outcome)
    }

    #[inline]
    fn remove(&mut self, id: RequestId) {
        self.entries[id.0 as usize].state = RequestState::Free;
        self.free.push(id.0);
    }

    pub fn release(&mut self, id: RequestId) {
        let entry = &mut self.entries[id.0 as usize];
        entry.released = true;
        if entry.state == RequestState::Complete {
            self.remove(id);
        }
    }

    /// Operations under way with `peer`.
    pub fn under_way_with(&self, peer: Peer) -> Vec<RequestId> {
        let busy = |e: &RequestEntry| {
            !matches!(e.state, RequestState::Free | RequestState::Complete | RequestState::Posted)
                && e.outcome.peer == peer
        };
        (0..self.entries.len() as u32).filter(|i| busy(&self.entries[*i as usize])).map(RequestId).collect()
    }
}
