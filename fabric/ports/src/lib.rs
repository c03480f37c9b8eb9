//! What an interface for messages needs of the fabric, in calls that are safe and wait: a static [`Messenger`] that is
//! open while the process takes part, sends and receives of slices, and one place to wait.
//!
//! An interface has one [`Messenger`]. What has no call here it does with the endpoint itself ([`Messenger::with`],
//! [`Messenger::wait`]). [`TreePlace`] is for what all processes do together.
//!
//! [`ready`] has receives for interfaces that take messages of anybody, and [`missives`] messages of any length for
//! them.
//!
//! Invariants:
//! - A buffer that is given by reference is the fabric's until the call returns, and no longer. One that is given away
//!   comes back, or is freed, when its message has left.
//! - A send that cannot proceed receives meanwhile.
//!
//! Test: `cargo test -p weft-ports`.

pub mod missives;
mod raw;
pub mod ready;
mod receive;
mod send;
mod tree;

pub use receive::room_of;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;
pub use tree::TreePlace;
use weft_fabric::{DeliveryThread, Driven, Monitor, Outside, SendMode};
pub use weft_fabric::{
    Endpoint, Envelope, Fault, InterfaceName, JoinError, MatchedId, Outcome, Peer, RequestId, Selector, Waiting, ticks,
};

/// How long a thread sleeps before it looks whether the one that it waits for has ended.
const LOOK: Duration = Duration::from_millis(20);

/// After so many messages were given away it is looked which of them have left.
const RECLAIMED: usize = 32;

/// What an interface keeps beside the endpoint, and has looked after where its threads wait.
pub trait Companion: Send + 'static {
    /// As [`Driven::advance`]: called after each progress pass.
    #[inline]
    fn advance(&mut self, endpoint: &mut Endpoint) {
        let _ = endpoint;
    }

    /// As [`Driven::idle`]: called where a pass moved nothing. True if anything changed.
    fn idle(&mut self, endpoint: &mut Endpoint, sleeps: bool) -> bool {
        let _ = (endpoint, sleeps);
        false
    }

    /// As [`Driven::is_awaited`]: whether a thread waits, where that is known.
    fn is_awaited() -> Option<bool> {
        None
    }

    /// What a thread that sleeps is to be woken for besides, when it can be read.
    fn attended(&self) -> Option<RawFd> {
        None
    }

    /// How long a thread may sleep before it looks again; `None`: until it is woken.
    fn longest_sleep(&self) -> Option<Duration> {
        None
    }

    /// Gives up what the endpoint has of it, which leaves next: nobody moves it any more.
    fn withdraw(&mut self, endpoint: &mut Endpoint) {
        let _ = endpoint;
    }
}

impl Companion for () {}

/// An interface's access to the fabric: a `static`.
pub struct Messenger<C: Companion = ()> {
    monitor: Monitor<Employed<C>>,
}

struct Employed<C> {
    endpoint: Endpoint,
    companion: C,
    /// What threads wait for that takes one other process.
    awaited: Vec<(RequestId, Peer)>,
    /// Processes that threads look for a message of, each with whether it was seen to have ended.
    looking: Vec<(Peer, bool)>,
    leaving: Vec<Owned>,
    /// How many messages were given away, which numbers them.
    given: u64,
}

/// A message whose bytes were given away, and which has not left yet.
struct Owned {
    number: u64,
    request: RequestId,
    to: Peer,
    _bytes: Box<[u8]>,
}

impl<C: Companion> Driven for Employed<C> {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    #[inline]
    fn advance(&mut self) -> Option<Outside> {
        self.companion.advance(&mut self.endpoint);
        None
    }

    /// Whether a process has ended is looked at here only, since the kernel is asked.
    fn idle(&mut self, sleeps: bool) -> bool {
        if self.companion.idle(&mut self.endpoint, sleeps) {
            return true;
        }
        if !sleeps || self.awaited.is_empty() && self.leaving.is_empty() && self.looking.is_empty() {
            return false;
        }
        if self.endpoint.keeps_going() && !self.endpoint.look_for_lost().is_empty() {
            return true;
        }
        let Self { endpoint, looking, awaited, .. } = self;
        awaited.iter().map(|(_, of)| *of).chain(looking.iter().map(|(of, _)| *of)).for_each(|of| endpoint.attend(of));
        if let Some(looking) = looking.iter_mut().find(|(peer, has_ended)| !has_ended && endpoint.has_ended(*peer)) {
            looking.1 = true;
            // What it has sent has arrived, since it has ended before.
            while endpoint.progress() {}
            return true;
        }
        self.reclaim();
        let leaving = self.leaving.iter().map(|message| (message.request, message.to));
        let mut all = self.awaited.iter().copied().chain(leaving);
        let ended =
            |&(request, of): &(RequestId, Peer)| !self.endpoint.is_complete(request) && self.endpoint.has_ended(of);
        let Some((request, of)) = all.find(ended) else { return false };
        // What it has sent has arrived, since it has ended before.
        while self.endpoint.progress() {}
        if !self.endpoint.is_complete(request) && !self.endpoint.cancel_receive(request) {
            self.endpoint.lose_ended(of);
        }
        true
    }

    fn is_awaited() -> Option<bool> {
        C::is_awaited()
    }

    fn attended(&self) -> Option<RawFd> {
        self.companion.attended()
    }

    fn longest_sleep(&self) -> Option<Duration> {
        let looks = !self.looking.is_empty() || !self.awaited.is_empty() || !self.leaving.is_empty();
        let look = looks.then_some(LOOK);
        look.into_iter().chain(self.companion.longest_sleep()).min()
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
    /// Joins the job, or makes one of this process alone where nobody has launched it. With `threads` several threads
    /// may call at the same time.
    ///
    /// # Errors
    /// Why the process cannot join.
    ///
    /// # Panics
    /// If it is open.
    pub fn open(&'static self, interface: InterfaceName, threads: bool) -> Result<(), JoinError> {
        self.open_beside(Endpoint::join_as(interface, &[])?, (), threads);
        self.lend();
        Ok(())
    }

    /// As [`Self::open`], with an endpoint that has joined.
    pub fn open_with(&self, endpoint: Endpoint, threads: bool) {
        self.open_beside(endpoint, (), threads);
    }
}

impl<C: Companion> Messenger<C> {
    pub const fn new() -> Self {
        Self { monitor: Monitor::new() }
    }

    /// Opens with an endpoint that has joined, and what is kept beside it.
    ///
    /// # Panics
    /// If it is open.
    pub fn open_beside(&self, endpoint: Endpoint, companion: C, threads: bool) {
        self.monitor.open(Employed::new(endpoint, companion), threads);
    }

    /// Lets threads that wait in other interfaces of the process move this one. To be called once it is open.
    pub fn lend(&'static self) {
        self.monitor.lend();
    }

    /// Takes what arrives by a thread of its own while the others compute, until the answer is dropped.
    ///
    /// # Errors
    /// The system gives no thread.
    ///
    /// # Panics
    /// In the thread, if the ports were opened for one thread.
    pub fn deliver(&'static self) -> io::Result<Delivery<C>> {
        DeliveryThread::start(&self.monitor).map(|thread| Delivery { _thread: thread })
    }

    /// Leaves the job, once everything has left that was sent. What comes meanwhile is thrown away, so that two that
    /// close do not wait for each other.
    pub fn close(&self) {
        self.monitor.wait(waiting("leaving", None, None, 0), |world| {
            world.reclaim();
            let has_left = world.leaving.is_empty();
            if !has_left {
                world.endpoint.discard_arrived();
            }
            has_left.then_some(())
        });
        let Employed { mut endpoint, mut companion, .. } = self.monitor.close();
        companion.withdraw(&mut endpoint);
        endpoint.leave();
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

    /// The same with what is kept beside it.
    pub fn with_both<R>(&self, what: impl FnOnce(&mut Endpoint, &mut C) -> R) -> R {
        let mut guard = self.monitor.enter();
        let Employed { endpoint, companion, .. } = &mut *guard;
        what(endpoint, companion)
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

    /// As [`Self::wait`], with what is kept beside the endpoint, and a word of whom it is for.
    pub fn wait_both<R>(&self, what: Waiting, mut done: impl FnMut(&mut Endpoint, &mut C) -> Option<R>) -> R {
        self.monitor.wait(what, |world| done(&mut world.endpoint, &mut world.companion))
    }

    /// As [`Self::wait_both`], for what one other process does; it is looked whether that has ended, and `done` asked
    /// then.
    pub fn wait_of<R>(&self, what: Waiting, of: Peer, mut done: impl FnMut(&mut Endpoint, &mut C) -> Option<R>) -> R {
        self.monitor.enter().looking.push((of, false));
        self.monitor.wait(what, |world| {
            let answer = done(&mut world.endpoint, &mut world.companion)?;
            world.look_no_more(of);
            Some(answer)
        })
    }

    /// As [`Self::wait`] for what a process stores into shared memory before it wakes this one ([`Endpoint::wake`]).
    pub fn wait_for_memory<R>(&self, call: Call, mut done: impl FnMut(&mut Endpoint) -> Option<R>) -> R {
        self.monitor.wait_for_memory(waiting(call, None, None, 0), |world| done(&mut world.endpoint))
    }

    /// The same, with what is kept beside the endpoint.
    pub fn wait_both_for_memory<R>(
        &self,
        what: Waiting,
        mut done: impl FnMut(&mut Endpoint, &mut C) -> Option<R>,
    ) -> R {
        self.monitor.wait_for_memory(what, |world| done(&mut world.endpoint, &mut world.companion))
    }

    /// Does what sleeps elsewhere than in the fabric, and has it shown meanwhile as waiting in `call`.
    pub fn say_blocked<R>(&self, call: Call, sleep: impl FnOnce() -> R) -> R {
        self.with(|endpoint| endpoint.begin_blocked(&waiting(call, None, None, 0)));
        let answer = sleep();
        self.with(Endpoint::end_blocked);
        answer
    }

    /// This process's number in the job.
    pub fn me(&self) -> Peer {
        self.with(|endpoint| endpoint.me())
    }

    /// Processes of the job.
    pub fn size(&self) -> u32 {
        self.with(|endpoint| endpoint.world_size())
    }
}

/// A thread that makes progress beside those of the program ([`Messenger::deliver`]).
pub struct Delivery<C: Companion = ()> {
    _thread: DeliveryThread<Employed<C>>,
}

impl<C: Companion> Default for Messenger<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> Employed<C> {
    fn new(endpoint: Endpoint, companion: C) -> Self {
        Self { endpoint, companion, awaited: Vec::new(), looking: Vec::new(), leaving: Vec::new(), given: 0 }
    }

    /// Starts to send bytes that are kept until they have left.
    fn give(&mut self, to: Peer, envelope: Envelope, bytes: Box<[u8]>) -> GivenAway {
        if self.leaving.len() % RECLAIMED == RECLAIMED - 1 {
            self.reclaim();
        }
        let (data, length) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the bytes are kept in `leaving`, where nobody touches them, until the request is complete.
        let request = unsafe { self.endpoint.post_send(to, envelope, data, length, SendMode::Standard) };
        self.given += 1;
        self.leaving.push(Owned { number: self.given, request, to, _bytes: bytes });
        GivenAway(self.given)
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

    fn take_first(&mut self, from: &[Selector]) -> Option<Result<(usize, MatchedId, Outcome), Fault>> {
        let take = |endpoint: &mut Endpoint| {
            let mut all = from.iter().enumerate();
            all.find_map(|(at, from)| endpoint.take_matched(*from).map(|(message, outcome)| (at, message, outcome)))
        };
        if let Some(taken) = take(&mut self.endpoint) {
            return Some(Ok(taken));
        }
        from.iter().all(|from| from.peer.is_some_and(|peer| self.is_gone(peer))).then_some(Err(Fault::PeerLost))
    }

    /// Whether a process that is looked for has been lost, or was seen to have ended.
    fn is_gone(&self, peer: Peer) -> bool {
        self.endpoint.is_lost(peer) || self.looking.contains(&(peer, true))
    }

    fn look_no_more(&mut self, peer: Peer) {
        let own = self.looking.iter().position(|(of, _)| *of == peer);
        own.into_iter().for_each(|own| _ = self.looking.swap_remove(own));
    }

    /// A message that has come, or that none will.
    fn look(&mut self, from: Selector) -> Option<Result<Outcome, Fault>> {
        if let Some(seen) = self.endpoint.probe(from) {
            return Some(Ok(seen));
        }
        self.is_gone(from.peer?).then_some(Err(Fault::PeerLost))
    }
}

/// A message that was given away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenAway(u64);

#[cfg(test)]
mod tests;
