//! Active messages; see [`crate::active`].

use super::Endpoint;
use crate::active::{ActiveCall, ActiveFault, LandingId, Refusal, Unsent};
use crate::api::{Peer, RequestId};

impl Endpoint {
    /// Registers the handler of messages that name it by this number, in the place of the one before. It runs where
    /// progress is made, with the endpoint held: it reaches that by [`ActiveCall::reply`] alone, and calls nothing that
    /// waits.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use weft_fabric::{Endpoint, Segment};
    ///
    /// /// Numbers that both sides have agreed on.
    /// const SUM: u16 = 1;
    /// const RESULT: u16 = 2;
    ///
    /// let segment = Segment::create(2)?;
    /// let mut server = Endpoint::join_segment(segment.clone(), 0)?;
    /// let mut client = Endpoint::join_segment(segment, 1)?;
    ///
    /// server.register_handler(SUM, |call| {
    ///     let sum = call.bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>() + call.arguments[0];
    ///     call.reply(RESULT, &[sum], b"").expect("a short reply to a request");
    /// });
    /// let result = Arc::new(Mutex::new(None));
    /// let there = result.clone();
    /// client.register_handler(RESULT, move |call| *there.lock().expect("no panic") = Some(call.arguments[0]));
    ///
    /// // Who cannot send now takes meanwhile what comes.
    /// while !client.try_request(server.me(), SUM, &[100], &[1, 2, 3])? {
    ///     client.progress();
    /// }
    /// while result.lock().expect("no panic").is_none() {
    ///     // In a program of its own the server waits in a monitor.
    ///     server.progress();
    ///     client.progress();
    /// }
    /// assert_eq!(*result.lock().expect("no panic"), Some(106));
    ///
    /// // A long request lands in memory of the receiver first.
    /// let landing = server.register_landing(1 << 20).expect("the first one");
    /// server.register_handler(SUM, |call| {
    ///     assert_eq!((call.bytes.len(), call.bytes[99_999]), (100_000, 7));
    ///     call.reply(RESULT, &[0], b"").expect("a short reply to a request");
    /// });
    /// let sent = client.try_long_request(server.me(), SUM, &[], (landing, 4096), vec![7; 100_000]).expect("room");
    /// while *result.lock().expect("no panic") != Some(0) {
    ///     server.progress();
    ///     client.progress();
    /// }
    /// assert!(client.take_outcome(sent).is_some_and(|outcome| outcome.fault.is_none()));
    /// assert_eq!(server.landing(landing).expect("it is there")[4096..][..4], [7; 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn register_handler(&mut self, number: u16, handler: impl FnMut(ActiveCall<'_>) + Send + 'static) {
        self.switch.others.active.handlers.set(number, Some(Box::new(handler)));
    }

    /// From now on there is no handler of this number.
    pub fn remove_handler(&mut self, number: u16) {
        self.switch.others.active.handlers.set(number, None);
    }

    /// Registers what is called for messages of ours that are not handled: there is no such handler or place, or the
    /// peer is lost.
    pub fn register_refusal_handler(&mut self, handler: impl FnMut(&Refusal) + Send + 'static) {
        self.switch.others.active.handlers.set_on_refusal(Box::new(handler));
    }

    /// How often a message of ours was not handled.
    pub fn refusals(&self) -> u64 {
        self.switch.others.active.handlers.refusals()
    }

    /// New memory of so many bytes, zero at the start, in which long requests land. `None` after 16 million of them.
    pub fn register_landing(&mut self, bytes: usize) -> Option<LandingId> {
        self.switch.others.active.handlers.add_landing(vec![0; bytes].into())
    }

    /// The memory of a landing.
    pub fn landing(&mut self, landing: LandingId) -> Option<&mut [u8]> {
        self.switch.others.active.handlers.landing(landing)
    }

    /// Takes the memory of a landing out. What comes for it is refused from now on.
    pub fn take_landing(&mut self, landing: LandingId) -> Option<Box<[u8]>> {
        self.switch.others.active.handlers.take_landing(landing)
    }

    /// Sends a request if it can leave now; otherwise does nothing and answers false: then make progress, and try
    /// again. At most [`crate::active::MOST_ARGUMENTS`] arguments and [`crate::active::MEDIUM_BYTES`] bytes.
    ///
    /// # Errors
    /// It is too long, or nothing goes to the peer any more.
    #[inline]
    pub fn try_request(
        &mut self,
        to: Peer,
        handler: u16,
        arguments: &[u64],
        bytes: &[u8],
    ) -> Result<bool, ActiveFault> {
        let Self { switch, devices, .. } = self;
        let active = &mut switch.others.active;
        let sent = active.try_request(devices, &switch.port.requests, (to, handler), arguments, bytes);
        devices.push(to.0, false);
        sent
    }

    /// Starts a request of any length, whose bytes go to an offset in a landing of the peer before its handler is
    /// called. The request is complete when they have left.
    ///
    /// # Errors
    /// It cannot begin now, has too many arguments, or nothing goes to the peer any more. The bytes come back.
    pub fn try_long_request(
        &mut self,
        to: Peer,
        handler: u16,
        arguments: &[u64],
        (landing, offset): (LandingId, u64),
        bytes: Vec<u8>,
    ) -> Result<RequestId, Unsent> {
        let Self { switch, devices, .. } = self;
        let (active, requests) = (&mut switch.others.active, &mut switch.port.requests);
        let id = active.try_long_request(requests, (to, handler), arguments, (landing.0, offset), bytes)?;
        active.pump_busy(devices, requests);
        devices.push(to.0, false);
        Ok(id)
    }
}
