//! Receiving messages, and looking for them.

use super::{Call, Companion, Messenger, waiting};
use weft_fabric::{Endpoint, Fault, MatchedId, Outcome, Peer, RequestId, Selector, Waiting};

impl<C: Companion> Messenger<C> {
    /// Receives into `room`; what the message was. One that is longer fills the room, and its outcome says the fault.
    ///
    /// # Errors
    /// The only process that it may come from has ended or is lost.
    #[inline]
    pub fn receive(&self, call: Call, from: Selector, room: &mut [u8]) -> Result<Outcome, Fault> {
        let mut world = self.monitor.enter();
        // SAFETY: `room` is borrowed until this call returns, which is when the request is complete.
        let request = unsafe { world.endpoint.post_receive(from, room.as_mut_ptr(), room.len()) };
        if let Some(outcome) = world.endpoint.take_outcome(request) {
            return settled(outcome);
        }
        drop(world);
        settled(self.await_receive(call, from, request))
    }

    /// Waits for a receive that was started with `from` ([`Endpoint::post_receive`]). It is cancelled if the only
    /// process that it may come from has ended.
    #[inline]
    pub fn await_receive(&self, call: Call, from: Selector, request: RequestId) -> Outcome {
        if let Some(peer) = from.peer {
            self.monitor.enter().awaited.push((request, peer));
        }
        self.await_outcome(waiting(call, from.peer, from.tag, from.context), request)
    }

    /// Waits for what stands among what is awaited.
    #[inline]
    pub(super) fn await_outcome(&self, what: Waiting, request: RequestId) -> Outcome {
        self.monitor.wait(what, |world| {
            let outcome = world.endpoint.take_outcome(request)?;
            world.awaited.retain(|(awaited, _)| *awaited != request);
            Some(outcome)
        })
    }

    /// Receives a message of any length.
    ///
    /// # Errors
    /// The only process that it may come from has ended or is lost.
    pub fn receive_whole(&self, call: Call, from: Selector) -> Result<(Outcome, Vec<u8>), Fault> {
        let (_, message, seen) = self.take_first(call, &[from])?;
        let mut bytes = room_of(Vec::new(), seen.length)?;
        let outcome = self.receive_taken(call, (message, seen.peer), &mut bytes)?;
        bytes.truncate(outcome.length as usize);
        Ok((outcome, bytes))
    }

    /// Waits until a message is there that one of these would receive, and takes it out of matching: which of them, the
    /// message, and what is known of it. The first of them that has one gets it.
    ///
    /// # Errors
    /// Each may come from one process only, and all those have ended or are lost.
    pub fn take_first(&self, call: Call, from: &[Selector]) -> Result<(usize, MatchedId, Outcome), Fault> {
        let peers = || from.iter().filter_map(|from| from.peer);
        self.monitor.enter().looking.extend(peers().map(|peer| (peer, false)));
        let what =
            from.first().map_or(waiting(call, None, None, 0), |from| waiting(call, from.peer, from.tag, from.context));
        self.monitor.wait(what, |world| {
            let taken = world.take_first(from)?;
            peers().for_each(|peer| world.look_no_more(peer));
            Some(taken)
        })
    }

    /// Receives a message that was taken; what it was, as [`Self::receive`] tells.
    ///
    /// # Errors
    /// Its sender is lost.
    pub fn receive_taken(
        &self,
        call: Call,
        (message, from): (MatchedId, Peer),
        room: &mut [u8],
    ) -> Result<Outcome, Fault> {
        let mut world = self.monitor.enter();
        // SAFETY: `room` is borrowed until this call returns, which is when the request is complete.
        let request = unsafe { world.endpoint.post_matched_receive(message, room.as_mut_ptr(), room.len()) };
        world.awaited.push((request, from));
        drop(world);
        settled(self.await_outcome(waiting(call, Some(from), None, 0), request))
    }

    /// As [`Self::receive`], without looking whether the sender has ended: after each pass `meanwhile` is asked, and
    /// the receive is given up when it answers false.
    ///
    /// # Errors
    /// As [`Self::receive`]; `Cancelled` where it was given up.
    pub fn receive_while(
        &self,
        call: Call,
        from: Selector,
        room: &mut [u8],
        mut meanwhile: impl FnMut(&mut Endpoint, &mut C) -> bool,
    ) -> Result<Outcome, Fault> {
        let mut world = self.monitor.enter();
        // SAFETY: `room` is borrowed until this call returns, which is when the request is complete.
        let request = unsafe { world.endpoint.post_receive(from, room.as_mut_ptr(), room.len()) };
        drop(world);
        let outcome = self.monitor.wait(waiting(call, from.peer, from.tag, from.context), |world| {
            let outcome = world.endpoint.take_outcome(request);
            if outcome.is_none() && !meanwhile(&mut world.endpoint, &mut world.companion) {
                world.endpoint.cancel_receive(request);
            }
            outcome
        });
        match outcome.fault {
            Some(Fault::Cancelled) => Err(Fault::Cancelled),
            _ => settled(outcome),
        }
    }

    /// Waits until a message is there that `from` would receive, and leaves it there.
    ///
    /// # Errors
    /// The only process that it may come from has ended or is lost.
    pub fn await_message(&self, call: Call, from: Selector) -> Result<Outcome, Fault> {
        self.monitor.enter().looking.extend(from.peer.map(|peer| (peer, false)));
        self.monitor.wait(waiting(call, from.peer, from.tag, from.context), |world| {
            let seen = world.look(from)?;
            from.peer.into_iter().for_each(|peer| world.look_no_more(peer));
            Some(seen)
        })
    }

    /// The message that `from` would receive, if one has arrived.
    pub fn probe(&self, from: Selector) -> Option<Outcome> {
        let seen = self.with(|endpoint| endpoint.probe(from));
        seen.or_else(|| {
            self.poll();
            self.with(|endpoint| endpoint.probe(from))
        })
    }
}

/// A message that was cut has come all the same.
fn settled(outcome: Outcome) -> Result<Outcome, Fault> {
    match outcome.fault {
        None | Some(Fault::Truncated) => Ok(outcome),
        // Only we cancel, where the sender has ended.
        Some(Fault::Cancelled) => Err(Fault::PeerLost),
        Some(fault) => Err(fault),
    }
}

/// Memory for a message of this length, which its sender claims.
///
/// # Errors
/// There is not so much.
pub fn room_of(mut bytes: Vec<u8>, length: u64) -> Result<Vec<u8>, Fault> {
    let length = usize::try_from(length).map_err(|_| Fault::NoMemory)?;
    bytes.try_reserve_exact(length.saturating_sub(bytes.len())).map_err(|_| Fault::NoMemory)?;
    bytes.resize(length, 0);
    Ok(bytes)
}
