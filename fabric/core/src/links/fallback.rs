//! Another device that leads to the same ranks: what it is asked for, and which ranks it has.
//!
//! It is asked to reach a rank that does not answer. If it does, and the rank still does not answer, it has that rank
//! until an answer comes.

use super::Links;
use super::peer::{DatagramWay, Standing};
use weft_device::PeerFault;

#[derive(Default)]
pub(super) struct Fallback {
    /// Ranks that do not answer, each once.
    pub(super) doubts: Vec<u32>,
    /// Those that the other device was told of.
    pub(super) asked: Vec<u32>,
    /// Those that it has.
    pub(super) others: Vec<u32>,
    /// Of these, which datagrams reach by now.
    pub(super) returns: Vec<u32>,
}

impl Links {
    /// A rank that the other device should try to reach.
    pub fn take_doubt(&mut self) -> Option<u32> {
        let fallback = self.fallback.as_mut()?;
        let rank = fallback.doubts.pop();
        fallback.asked.extend(rank);
        rank
    }

    /// Whether an answer is awaited of a rank that the other device was asked for.
    #[inline]
    pub fn has_doubts(&self) -> bool {
        self.fallback.as_ref().is_some_and(|fallback| !fallback.asked.is_empty())
    }

    /// `is_linked` says whether the other device has reached a rank that it was asked for.
    pub fn settle_doubts(&mut self, is_linked: impl Fn(u32) -> bool) {
        let (peers, clock) = (&mut self.peers, &mut self.clock);
        let Some(fallback) = &mut self.fallback else { return };
        fallback.asked.retain(|rank| match &mut peers[*rank as usize].way {
            DatagramWay::Calling(calls) => {
                if is_linked(*rank) {
                    calls.note_linked(clock.now_ns());
                }
                true
            }
            _ => false,
        });
    }

    /// A rank that datagrams do not reach and the other device does.
    pub fn take_other(&mut self) -> Option<u32> {
        self.fallback.as_mut()?.others.pop()
    }

    /// Such a rank that has answered since: datagrams reach it now.
    #[inline]
    pub fn take_return(&mut self) -> Option<u32> {
        self.fallback.as_mut()?.returns.pop()
    }

    /// The other device cannot reach a rank either, as its story says: then nothing does.
    pub fn give_up_other(&mut self, rank: u32, story: &str) {
        let peer = &mut self.peers[rank as usize];
        let DatagramWay::Calling(calls) = &peer.way else { return };
        let said = calls.story();
        let host = &peer.place.host;
        let story = format!("rank {rank} on host {host} cannot be reached: by udp: {said}; by tcp: {story}");
        peer.standing = Standing::Lost;
        self.faults.push(PeerFault::Lost { peer: rank, story });
        self.fallback.iter_mut().for_each(|fallback| fallback.asked.retain(|other| *other != rank));
        self.live.retain(|other| *other != rank);
    }
}
