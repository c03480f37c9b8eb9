//! Sending messages.

use super::{Call, Companion, GivenAway, Messenger, Subject, waiting};
use weft_fabric::{Endpoint, Envelope, Fault, Peer, SendMode};

impl<C: Companion> Messenger<C> {
    /// Sends; returns when `bytes` may be used again, which may be before the receiver has asked for them.
    ///
    /// # Errors
    /// The receiver is lost.
    #[inline]
    pub fn send(&self, call: Call, to: Peer, subject: Subject, bytes: &[u8]) -> Result<(), Fault> {
        self.send_by(call, to, subject, bytes, SendMode::Standard)
    }

    /// Sends; returns when the receiver has begun to receive.
    ///
    /// # Errors
    /// The receiver is lost.
    pub fn send_synchronously(&self, call: Call, to: Peer, subject: Subject, bytes: &[u8]) -> Result<(), Fault> {
        self.send_by(call, to, subject, bytes, SendMode::Synchronous)
    }

    #[inline]
    fn send_by(&self, call: Call, to: Peer, subject: Subject, bytes: &[u8], mode: SendMode) -> Result<(), Fault> {
        let mut world = self.monitor.enter();
        let envelope = envelope(&mut world.endpoint, subject);
        let (data, length) = (bytes.as_ptr(), bytes.len());
        // SAFETY: `bytes` is borrowed until this call returns.
        if mode == SendMode::Standard && unsafe { world.endpoint.try_send(to, envelope, data, length) } {
            return Ok(());
        }
        // SAFETY: `bytes` is borrowed until this call returns, which is when the request is complete.
        let request = unsafe { world.endpoint.post_send(to, envelope, data, length, mode) };
        world.awaited.push((request, to));
        drop(world);
        let what = waiting(call, Some(to), Some(subject.tag), subject.context);
        self.await_outcome(what, request).fault.map_or(Ok(()), Err)
    }

    /// Sends, and does not wait: what cannot leave at once is copied.
    ///
    /// # Errors
    /// The receiver is lost.
    #[inline]
    pub fn send_copy(&self, to: Peer, subject: Subject, bytes: &[u8]) -> Result<(), Fault> {
        let mut employed = self.monitor.enter();
        let envelope = envelope(&mut employed.endpoint, subject);
        // SAFETY: `bytes` is borrowed until this call returns.
        if unsafe { employed.endpoint.try_send(to, envelope, bytes.as_ptr(), bytes.len()) } {
            return Ok(());
        }
        if let Some(fault) = employed.endpoint.loss(to) {
            return Err(fault);
        }
        employed.give(to, envelope, bytes.into());
        Ok(())
    }

    /// Sends at once if the whole message can leave now; otherwise does nothing and answers false.
    #[inline]
    pub fn try_send(&self, to: Peer, envelope: Envelope, bytes: &[u8]) -> bool {
        let mut world = self.monitor.enter();
        // SAFETY: `bytes` is borrowed.
        unsafe { world.endpoint.try_send(to, envelope, bytes.as_ptr(), bytes.len()) }
    }

    /// As [`Self::send`], with an envelope of one's own.
    ///
    /// # Errors
    /// The receiver is lost.
    pub fn send_as(&self, call: Call, to: Peer, envelope: Envelope, bytes: &[u8]) -> Result<(), Fault> {
        let mut world = self.monitor.enter();
        let (data, length) = (bytes.as_ptr(), bytes.len());
        // SAFETY: `bytes` is borrowed until this call returns, which is when the request is complete.
        let request = unsafe { world.endpoint.post_send(to, envelope, data, length, SendMode::Standard) };
        world.awaited.push((request, to));
        drop(world);
        let what = waiting(call, Some(to), Some(envelope.tag), envelope.context);
        self.await_outcome(what, request).fault.map_or(Ok(()), Err)
    }

    /// Sends bytes that are given away, and does not wait. An answer of `None` says that they have left; else
    /// [`Self::has_left`] tells, and [`Self::close`] waits for them.
    pub fn send_owned(&self, to: Peer, subject: Subject, bytes: Box<[u8]>) -> Option<GivenAway> {
        let envelope = envelope(&mut self.monitor.enter().endpoint, subject);
        self.send_owned_as(to, envelope, bytes)
    }

    /// As [`Self::send_owned`], with an envelope of one's own.
    pub fn send_owned_as(&self, to: Peer, envelope: Envelope, bytes: Box<[u8]>) -> Option<GivenAway> {
        let mut world = self.monitor.enter();
        let (data, length) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the bytes are here.
        if unsafe { world.endpoint.try_send(to, envelope, data, length) } {
            return None;
        }
        Some(world.give(to, envelope, bytes))
    }

    /// Whether a message of [`Self::send_owned`] has left, or never will.
    pub fn has_left(&self, message: GivenAway) -> bool {
        self.monitor.enter().has_left(message)
    }

    /// Whether a message of [`Self::send_owned`] has not left yet.
    pub fn is_leaving(&self) -> bool {
        let mut employed = self.monitor.enter();
        employed.reclaim();
        !employed.leaving.is_empty()
    }

    /// Whether a process has taken its leave; one that has ended without has not.
    pub fn is_gone_well(&self, peer: Peer) -> bool {
        self.monitor.enter().endpoint.took_leave(peer)
    }

    /// Waits until all messages of [`Self::send_owned`] have left.
    pub fn settle(&self, call: Call) {
        self.monitor.wait(waiting(call, None, None, 0), |world| {
            world.reclaim();
            world.leaving.is_empty().then_some(())
        });
    }
}

fn envelope(endpoint: &mut Endpoint, subject: Subject) -> Envelope {
    Envelope { context: subject.context, tag: subject.tag, source: endpoint.me().0 }
}
