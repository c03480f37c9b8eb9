//! What an interface for messages needs of the fabric, in calls that are safe and wait: a static [`Messenger`] that is open
//! while the process takes part, sends and receives of slices, and one place to wait.
//!
//! An interface has one [`Messenger`]. What has no call here it does with the endpoint itself ([`Messenger::with`],
//! [`Messenger::wait`]).
//!
//! Invariants:
//! - A buffer that is given by reference is the fabric's until the call returns, and no longer. One that is given away
//!   comes back, or is freed, when its message has left.
//! - A send that cannot proceed receives meanwhile.
//!
//! Test: `cargo test -p weft-ports`.

use std::time::Duration;
use weft_fabric::{Driven, Monitor, Outside, RequestId, SendMode, Waiting};
pub use weft_fabric::{Endpoint, Envelope, Fault, InterfaceName, JoinError, Outcome, Peer, Selector};

/// How long a thread sleeps before it looks whether the one that it waits for has ended.
const LOOK: Duration = Duration::from_millis(20);

/// An interface's access to the fabric: a `static`.
pub struct Messenger {
    monitor: Monitor<Employed>,
}

struct Employed {
    endpoint: Endpoint,
    /// Receives from one process that threads wait for.
    awaited: Vec<(RequestId, Peer)>,
    /// Threads that look for a message of one process.
    looking: u32,
    leaving: Vec<Owned>,
    /// How many messages were given away, which numbers them.
    given: u64,
}

/// A message whose bytes were given away, and which has not left yet.
struct Owned {
    number: u64,
    request: RequestId,
    _bytes: Box<[u8]>,
}

impl Driven for Employed {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    fn advance(&mut self) -> Option<Outside> {
        None
    }

    fn idle(&mut self, sleeps: bool) -> bool {
        if !sleeps || self.awaited.is_empty() {
            return false;
        }
        let ended = |of: &&(RequestId, Peer)| self.endpoint.has_ended(of.1);
        let Some(&(request, _)) = self.awaited.iter().find(ended) else { return false };
        // What it has sent has arrived, since it has ended before.
        while self.endpoint.progress() {}
        self.endpoint.cancel_receive(request)
    }

    fn longest_sleep(&self) -> Option<Duration> {
        (self.looking != 0 || !self.awaited.is_empty()).then_some(LOOK)
    }
}

/// What a thread is in, as `weft ps` shows it: the interface's own name of the call.
pub type Call = &'static str;

fn waiting(call: Call, peer: Option<Peer>, tag: Option<i32>, context: u32) -> Waiting {
    Waiting { call, peer, tag, context }
}

/// What the receiver selects a message by, besides its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    pub context: u32,
    pub tag: i32,
}

impl Messenger {
    pub const fn new() -> Self {
        Self { monitor: Monitor::new() }
    }

    /// Joins the job, or makes one of this process alone where nobody has launched it. With `threads` several threads may
    /// call at the same time.
    ///
    /// # Errors
    /// Why the process cannot join.
    ///
    /// # Panics
    /// If it is open.
    pub fn open(&'static self, interface: InterfaceName, threads: bool) -> Result<(), JoinError> {
        self.open_with(Endpoint::join_as(interface, &[])?, threads);
        self.monitor.lend();
        Ok(())
    }

    /// As [`Self::open`], with an endpoint that has joined.
    pub fn open_with(&self, endpoint: Endpoint, threads: bool) {
        self.monitor.open(Employed::new(endpoint), threads);
    }

    /// Leaves the job, once everything has left that was sent.
    pub fn close(&self) {
        self.settle("leaving");
        self.monitor.close().endpoint.leave();
    }

    #[inline]
    pub fn is_open(&self) -> bool {
        self.monitor.is_open()
    }

    /// Does something with the endpoint. Not re-entrant: `what` calls nothing of this.
    #[inline]
    pub fn with<R>(&self, what: impl FnOnce(&mut Endpoint) -> R) -> R {
        what(&mut self.monitor.enter().endpoint)
    }

    /// One progress pass.
    pub fn poll(&self) {
        self.monitor.poll();
    }

    /// Makes progress until `done` answers; it is asked first, and after each pass.
    #[inline]
    pub fn wait<R>(&self, call: Call, mut done: impl FnMut(&mut Endpoint) -> Option<R>) -> R {
        self.monitor.wait(waiting(call, None, None, 0), |world| done(&mut world.endpoint))
    }

    /// This process's number in the job.
    pub fn me(&self) -> Peer {
        self.with(|endpoint| endpoint.me())
    }

    /// Processes of the job.
    pub fn size(&self) -> u32 {
        self.with(|endpoint| endpoint.world_size())
    }

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
        drop(world);
        let what = waiting(call, Some(to), Some(subject.tag), subject.context);
        let outcome = self.monitor.wait(what, |world| world.endpoint.take_outcome(request));
        outcome.fault.map_or(Ok(()), Err)
    }

    /// Sends bytes that are given away, and does not wait. An answer of `None` says that they have left; else
    /// [`Self::has_left`] tells, and [`Self::close`] waits for them.
    pub fn send_owned(&self, to: Peer, subject: Subject, bytes: Box<[u8]>) -> Option<GivenAway> {
        let mut world = self.monitor.enter();
        let envelope = envelope(&mut world.endpoint, subject);
        let (data, length) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the bytes are here.
        if unsafe { world.endpoint.try_send(to, envelope, data, length) } {
            return None;
        }
        // SAFETY: the bytes are kept in `leaving`, where nobody touches them, until the request is complete.
        let request = unsafe { world.endpoint.post_send(to, envelope, data, length, SendMode::Standard) };
        world.given += 1;
        let number = world.given;
        world.leaving.push(Owned { number, request, _bytes: bytes });
        Some(GivenAway(number))
    }

    /// Whether a message of [`Self::send_owned`] has left, or never will.
    pub fn has_left(&self, message: GivenAway) -> bool {
        self.monitor.enter().has_left(message)
    }

    /// Waits until a message of [`Self::send_owned`] has left.
    pub fn wait_until_left(&self, call: Call, message: GivenAway) {
        self.monitor.wait(waiting(call, None, None, 0), |world| world.has_left(message).then_some(()));
    }

    /// Waits until all messages of [`Self::send_owned`] have left.
    pub fn settle(&self, call: Call) {
        self.monitor.wait(waiting(call, None, None, 0), |world| {
            world.reclaim();
            world.leaving.is_empty().then_some(())
        });
    }

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
        if let Some(peer) = from.peer {
            world.awaited.push((request, peer));
        }
        drop(world);
        let outcome = self.monitor.wait(waiting(call, from.peer, from.tag, from.context), |world| {
            let outcome = world.endpoint.take_outcome(request)?;
            world.awaited.retain(|(awaited, _)| *awaited != request);
            Some(outcome)
        });
        settled(outcome)
    }

    /// Receives a message of any length.
    ///
    /// # Errors
    /// The only process that it may come from has ended or is lost.
    pub fn receive_whole(&self, call: Call, from: Selector) -> Result<(Outcome, Vec<u8>), Fault> {
        let seen = self.await_message(call, from)?;
        let mut bytes = vec![0; seen.length as usize];
        // Only this thread's own selection may take it away in between, which an interface does not do.
        let exact = Selector { peer: Some(seen.peer), tag: Some(seen.tag), ..from };
        let outcome = self.receive(call, exact, &mut bytes)?;
        bytes.truncate(outcome.length as usize);
        Ok((outcome, bytes))
    }

    /// Waits until a message is there that `from` would receive, and leaves it there.
    ///
    /// # Errors
    /// The only process that it may come from has ended or is lost.
    pub fn await_message(&self, call: Call, from: Selector) -> Result<Outcome, Fault> {
        let looking = u32::from(from.peer.is_some());
        self.monitor.enter().looking += looking;
        self.monitor.wait(waiting(call, from.peer, from.tag, from.context), |world| {
            let seen = world.look(from)?;
            world.looking -= looking;
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

impl Default for Messenger {
    fn default() -> Self {
        Self::new()
    }
}

impl Employed {
    fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, awaited: Vec::new(), looking: 0, leaving: Vec::new(), given: 0 }
    }

    /// Frees the bytes of what has left.
    fn reclaim(&mut self) {
        let Self { endpoint, leaving, .. } = self;
        leaving.retain(|message| endpoint.take_outcome(message.request).is_none());
    }

    fn has_left(&mut self, message: GivenAway) -> bool {
        self.reclaim();
        self.leaving.iter().all(|left| left.number != message.0)
    }

    /// A message that has come, or that none will.
    fn look(&mut self, from: Selector) -> Option<Result<Outcome, Fault>> {
        if let Some(seen) = self.endpoint.probe(from) {
            return Some(Ok(seen));
        }
        let peer = from.peer?;
        (self.endpoint.is_lost(peer) || self.endpoint.has_ended(peer)).then_some(())?;
        // What it has sent has arrived, since it has ended before.
        while self.endpoint.progress() {}
        Some(self.endpoint.probe(from).ok_or(Fault::PeerLost))
    }
}

/// A message that was given away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenAway(u64);

fn envelope(endpoint: &mut Endpoint, subject: Subject) -> Envelope {
    Envelope { context: subject.context, tag: subject.tag, source: endpoint.me().0 }
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

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric::Segment;

    const SUBJECT: Subject = Subject { context: 3, tag: 7 };

    fn from(peer: u32) -> Selector {
        Selector { context: SUBJECT.context, peer: Some(Peer(peer)), tag: Some(SUBJECT.tag) }
    }

    /// Each of two processes does its part in a thread.
    fn two(first: impl FnOnce(&Messenger) + Send, second: impl FnOnce(&Messenger) + Send) {
        let segment = Segment::create(2).expect("memory");
        let (one, other) = (Messenger::new(), Messenger::new());
        for (member, ports) in [&one, &other].into_iter().enumerate() {
            ports.open_with(Endpoint::join_segment(segment.clone(), member as u32).expect("a member"), false);
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                first(&one);
                one.close();
            });
            scope.spawn(|| {
                second(&other);
                other.close();
            });
        });
    }

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    #[test]
    fn what_is_sent_arrives_whole_at_all_lengths() {
        let lengths = [0, 1, 48, 49, 4096, 65_536, 3_000_000];
        two(
            |ports| lengths.iter().for_each(|n| ports.send("send", Peer(1), SUBJECT, &pattern(*n)).expect("sent")),
            |ports| {
                for length in lengths {
                    let (outcome, bytes) = ports.receive_whole("receive", from(0)).expect("received");
                    assert_eq!((outcome.peer, outcome.tag, bytes), (Peer(0), 7, pattern(length)));
                }
            },
        );
    }

    #[test]
    fn both_send_much_before_they_receive() {
        let part = |ports: &Messenger, other: u32| {
            let sent = ports.send_owned(Peer(other), SUBJECT, pattern(5_000_000).into());
            let (_, bytes) = ports.receive_whole("receive", from(other)).expect("received");
            assert_eq!(bytes, pattern(5_000_000));
            sent.into_iter().for_each(|message| {
                ports.wait_until_left("send", message);
                assert!(ports.has_left(message));
            });
        };
        two(|ports| part(ports, 1), |ports| part(ports, 0));
    }

    #[test]
    fn a_longer_message_fills_the_room_and_says_its_length() {
        two(
            |ports| ports.send("send", Peer(1), SUBJECT, &pattern(100)).expect("sent"),
            |ports| {
                let mut room = [0; 60];
                let outcome = ports.receive("receive", from(0), &mut room).expect("received");
                assert_eq!((outcome.length, outcome.fault), (100, Some(Fault::Truncated)));
                assert_eq!(room[..], pattern(100)[..60]);
            },
        );
    }

    #[test]
    fn who_waits_for_a_process_that_has_ended_is_told() {
        two(
            |ports| ports.send("send", Peer(1), SUBJECT, &[1]).expect("sent"),
            |ports| {
                assert_eq!(ports.receive_whole("receive", from(0)).expect("what it has sent").1, [1]);
                assert_eq!(ports.await_message("probe", from(0)), Err(Fault::PeerLost));
                assert_eq!(ports.receive("receive", from(0), &mut [0]), Err(Fault::PeerLost));
            },
        );
    }
}
