//! Bytes between two processes, without messages.

use super::{Call, Companion, Messenger, waiting};
use weft_fabric::{Fault, Peer};

impl<C: Companion> Messenger<C> {
    /// Sends bytes over the raw channel; returns when they have left. One thread at a time to each process.
    ///
    /// # Errors
    /// The receiver has ended or is lost.
    #[inline]
    pub fn send_raw(&self, call: Call, to: Peer, bytes: &[u8]) -> Result<(), Fault> {
        // SAFETY: the slice is as long.
        let mut sent = self.with(|endpoint| unsafe { endpoint.try_raw_send(to, bytes.as_ptr(), bytes.len()) });
        if sent == bytes.len() {
            return Ok(());
        }
        self.wait_of(waiting(call, Some(to), None, 0), to, |endpoint, _| {
            let rest = &bytes[sent..];
            // SAFETY: the slice is as long.
            sent += unsafe { endpoint.try_raw_send(to, rest.as_ptr(), rest.len()) };
            let lost = || endpoint.loss(to).or_else(|| endpoint.has_ended(to).then_some(Fault::PeerLost));
            if sent == bytes.len() { Some(Ok(())) } else { lost().map(Err) }
        })
    }

    /// Receives the next bytes that a process has sent over the raw channel, as many as the room has.
    ///
    /// # Errors
    /// It has ended or is lost.
    #[inline]
    pub fn receive_raw(&self, call: Call, from: Peer, room: &mut [u8]) -> Result<(), Fault> {
        let mut world = self.monitor.enter();
        // SAFETY: `room` is borrowed until this call returns, which is when the request is complete.
        let request = unsafe { world.endpoint.post_raw_receive(from, room.as_mut_ptr(), room.len()) };
        if let Some(outcome) = world.endpoint.take_outcome(request) {
            return outcome.fault.map_or(Ok(()), Err);
        }
        world.awaited.push((request, from));
        drop(world);
        self.await_outcome(waiting(call, Some(from), None, 0), request).fault.map_or(Ok(()), Err)
    }
}
