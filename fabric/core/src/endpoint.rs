//! The endpoint: a process's place in the fabric.
//!
//! The way of a short message, up to 48 bytes: [`Endpoint::try_send`] writes header and payload together as one cell,
//! one cache line, into the ring of the pair. The receiver's progress sees the line change, matches it, and copies the
//! payload into the buffer of the receive that waits. On this way there is no system call, no dynamic call, no lock
//! unless threads share the endpoint, and no allocation once the queues have grown to what the program needs. A test
//! sends a million messages under a filter that kills the process at the first system call.

mod active;
mod leave;
mod lost;
mod raw;
mod wake;

use crate::api::{Envelope, MatchedId, Outcome, Peer, RequestId, Selector, SendMode, Waiting};
use crate::devices::{Across, Devices, Sleeper};
use crate::events::{self, Event, tell};
use crate::foreign::Foreigners;
use crate::join::{self, JobMembership, JoinError, Joined};
use crate::limits::Limits;
use crate::pace::{Bounds, Policy};
use crate::port::{Port, ShownPlace};
use crate::region::{Attach, Region, Ticket};
use crate::shared::SharedBlocks;
use crate::status::{CounterReader, Counters, PageCounters, StatusMemory, StatusWriter};
use crate::switch::Switch;
use std::io;
use weft_device::past_caches::share_of_cache;
use weft_device::shm::{Doorbell, Segment, ShmDevice, ShownMemory};
use weft_wire::interface::InterfaceName;
use weft_wire::segment::MemberState;
use weft_wire::settings::{DeviceOrder, Settings, SingleCopy};

/// A process's place in the fabric. Not synchronised: see [`crate::Monitor`].
pub struct Endpoint {
    devices: Devices,
    pub(crate) switch: Switch,
    policy: Policy,
    status: StatusWriter,
    settings: Settings,
    /// Part in the process's membership of its job.
    membership: Option<JobMembership>,
    pub(crate) foreigners: Foreigners,
    /// The door of those who have spawned this process.
    pub(crate) parent: Option<String>,
    me: u32,
    size: u32,
    /// The launcher lets the others live when a process is lost, and tells of it.
    keeps_going: bool,
}

impl Endpoint {
    /// Joins the job that started this process, or makes a job of one, as the fabric's own interface.
    pub fn join() -> Result<Self, JoinError> {
        Self::join_as(InterfaceName::Native, &[])
    }

    /// Joins as this interface, of which a process has one, beside others. `changes`: settings, named by their
    /// environment variables, that are not what the environment says.
    ///
    /// Interfaces of a process are opened one after the other. Between hosts all ranks of the job open one together.
    pub fn join_as(interface: InterfaceName, changes: &[(&'static str, String)]) -> Result<Self, JoinError> {
        Self::from_joined(join::join(interface, changes)?)
    }

    /// Joins a segment of this host as `member` (tests, and programs that place themselves).
    pub fn join_segment(segment: Segment, member: u32) -> Result<Self, JoinError> {
        Self::from_joined(Joined::plain(segment, member))
    }

    /// As [`Self::join_segment`], with thresholds and bounds of waiting of one's own.
    pub fn join_segment_with(segment: Segment, member: u32, limits: Limits, bounds: Bounds) -> Result<Self, JoinError> {
        Self::from_joined(Joined { limits, bounds, ..Joined::plain(segment, member) })
    }

    /// Joins as a rank of a job on several hosts, of which `segment` has the members of this one.
    pub fn join_across(
        segment: Segment,
        across: Across,
        order: DeviceOrder,
        limits: Limits,
        bounds: Bounds,
    ) -> Result<Self, JoinError> {
        let mut settings = Settings::default();
        settings.device = order;
        let member = across.map.ranks[across.rank as usize].member;
        let plain = Joined::plain(segment, member);
        Self::from_joined(Joined { across: Some(across), limits, bounds, settings, ..plain })
    }

    fn from_joined(joined: Joined) -> Result<Self, JoinError> {
        let Joined { segment, member, across, job, world, limits, bounds, settings, mut membership } = joined;
        // Only our own launcher tells.
        let watched = membership.as_ref().filter(|of| settings.keep_going && !job.is_empty() && of.has_manager());
        watched.map_or(Ok(()), JobMembership::watch)?;
        let keeps_going = watched.is_some();
        let device = ShmDevice::join(segment.clone(), member)?;
        let (me, size) = match &across {
            None => (member, segment.members()),
            Some(across) => (across.rank, across.map.ranks.len() as u32),
        };
        let devices = match across {
            None => Devices::local(device, me, size, settings.device)?,
            Some(across) => Devices::across(device, across, settings.device)?,
        };
        let single_copy_allowed = limits.single_copy_allowed && try_single_copy(settings.single_copy)?;
        let cached = limits.cached.min(share_of_cache(segment.members()));
        let limits = Limits { single_copy_allowed, cached, ..limits };
        let page = StatusMemory::new(&segment, member, settings.status);
        let counters = PageCounters::new(page.clone());
        let switch = Switch::new(me, size, Port::new(me, size, limits, devices.slots(), counters));
        let status = StatusWriter::new(page, me, size, &job, &devices.ways());
        let policy = Policy::new(bounds, &segment, member);
        segment.set_state(member, MemberState::Joined);
        // A program that a rank has started finds the name of a job that it is not of.
        let is_started = membership.as_ref().is_some_and(JobMembership::has_manager);
        let foreigners = Foreigners::new(if is_started { &world } else { "" });
        let parent = membership.as_ref().and_then(JobMembership::parent);
        membership.iter_mut().for_each(JobMembership::settle);
        Ok(Self { devices, switch, policy, status, settings, membership, foreigners, parent, me, size, keeps_going })
    }

    pub(crate) fn devices(&mut self) -> &mut Devices {
        &mut self.devices
    }

    /// The launcher that has started this process, if it is one of ours.
    pub(crate) fn own_launcher(&self) -> Option<&JobMembership> {
        self.membership.as_ref().filter(|membership| membership.is_launched())
    }

    pub(crate) fn membership(&self) -> Option<&JobMembership> {
        self.membership.as_ref()
    }

    pub(crate) fn add_peer(&mut self) {
        self.switch.add_peer();
    }

    /// The settings that this process started with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn me(&self) -> Peer {
        Peer(self.me)
    }

    /// Processes in the world.
    pub fn world_size(&self) -> u32 {
        self.size
    }

    /// Processes of the world on this host.
    pub fn host_size(&self) -> u32 {
        self.devices.segment().members()
    }

    /// Whether `peer` runs on this host and shares memory with us. Where the setting forbids shared memory nobody does.
    pub fn is_local(&self, peer: Peer) -> bool {
        peer.0 < self.size && self.devices.is_local(peer.0)
    }

    /// The number of the host that `peer`, a process of the world, runs on; the same in every process of the job.
    pub fn host_of(&self, peer: Peer) -> u32 {
        self.devices.host_of(peer.0)
    }

    /// The names of the job's hosts by their numbers, as the user wrote them; none of a job on one host.
    pub fn host_names(&self) -> &[String] {
        self.devices.host_names()
    }

    /// Which devices lead to whom now, for people.
    pub fn ways(&self) -> String {
        self.devices.ways()
    }

    /// Sends at once if the whole message can leave now; otherwise does nothing and answers false.
    ///
    /// # Safety
    /// `data` is readable for `length` bytes.
    #[inline]
    pub unsafe fn try_send(&mut self, to: Peer, envelope: Envelope, data: *const u8, length: usize) -> bool {
        // SAFETY: the caller's promise.
        let sent = unsafe { self.switch.port.try_send(&mut self.devices, to, envelope, data, length) };
        self.devices.push(to.0, false);
        sent
    }

    /// As [`Self::try_send`], where more sends may follow before anything is waited for: to another host, short
    /// messages that follow each other closely then travel together.
    ///
    /// # Safety
    /// As [`Self::try_send`].
    #[inline]
    pub unsafe fn try_send_among_others(
        &mut self,
        to: Peer,
        envelope: Envelope,
        data: *const u8,
        length: usize,
    ) -> bool {
        self.devices.gather(true);
        // SAFETY: the caller's promise.
        let sent = unsafe { self.switch.port.try_send(&mut self.devices, to, envelope, data, length) };
        self.devices.gather(false);
        self.devices.push(to.0, true);
        sent
    }

    /// Starts a send.
    ///
    /// # Safety
    /// `data` stays readable and unchanged for `length` bytes until the request is complete.
    pub unsafe fn post_send(
        &mut self,
        to: Peer,
        envelope: Envelope,
        data: *const u8,
        length: usize,
        mode: SendMode,
    ) -> RequestId {
        self.devices.gather(true);
        // SAFETY: the caller's promise.
        let request = unsafe { self.switch.port.post_send(&mut self.devices, to, envelope, data, length, mode) };
        self.devices.gather(false);
        // The message may be complete for its sender, who then need not come back for long.
        self.devices.push(to.0, false);
        request
    }

    /// Starts a receive.
    ///
    /// # Safety
    /// `buffer` stays writable for `capacity` bytes and is not touched otherwise until the request is complete.
    #[inline]
    pub unsafe fn post_receive(&mut self, from: Selector, buffer: *mut u8, capacity: usize) -> RequestId {
        // SAFETY: the caller's promise.
        let request = unsafe { self.switch.port.post_receive(from, buffer, capacity) };
        self.answer();
        request
    }

    /// What a receive answered at once leaves at once: if it is complete by that, nobody need come back for long, and
    /// the sender waits.
    #[inline]
    fn answer(&mut self) {
        if self.switch.port.has_backlog() {
            self.switch.port.pump_outbound(&mut self.devices);
        }
    }

    /// The first message that `from` would receive, if one has arrived. Does not make progress.
    pub fn probe(&mut self, from: Selector) -> Option<Outcome> {
        self.switch.port.probe(from)
    }

    /// Like [`Self::probe`], and takes the message out of matching.
    pub fn take_matched(&mut self, from: Selector) -> Option<(MatchedId, Outcome)> {
        let (message, outcome) = self.switch.port.take_matched(from)?;
        tell(events::EventKind::Taken, || Event::Taken { context: from.context, message: outcome });
        Some((MatchedId(message), outcome))
    }

    /// Starts to receive a message taken by [`Self::take_matched`].
    ///
    /// # Safety
    /// As [`Self::post_receive`].
    pub unsafe fn post_matched_receive(&mut self, message: MatchedId, buffer: *mut u8, capacity: usize) -> RequestId {
        // SAFETY: the caller's promise.
        let request = unsafe { self.switch.port.post_matched_receive(message.0, buffer, capacity) };
        self.answer();
        request
    }

    /// Cancels a receive that no message has matched yet; true if so (it is then complete with
    /// [`crate::Fault::Cancelled`]).
    pub fn cancel_receive(&mut self, request: RequestId) -> bool {
        self.switch.port.cancel_receive(request)
    }

    /// Cancels a send that asks and that nothing has matched yet. Whether it came in time is known when the request is
    /// complete, which it is soon: as soon as the receiver looks.
    pub fn cancel_send(&mut self, request: RequestId) {
        self.switch.port.cancel_send(request);
        self.answer();
    }

    #[inline]
    pub fn is_complete(&self, request: RequestId) -> bool {
        self.switch.port.requests.is_complete(request)
    }

    /// Whether the request is complete and did all that it was asked to.
    #[inline]
    pub fn is_complete_and_good(&self, request: RequestId) -> bool {
        self.switch.port.requests.is_good(request)
    }

    /// The outcome of a complete request, which ends it; `None` while it is under way.
    #[inline(always)]
    pub fn take_outcome(&mut self, request: RequestId) -> Option<Outcome> {
        self.switch.port.requests.take_outcome(request)
    }

    /// Gives the request up: it completes on its own and its outcome is dropped.
    pub fn release(&mut self, request: RequestId) {
        self.switch.port.requests.release(request);
    }

    /// One bounded duty cycle over the device and what waits; true if anything moved.
    #[inline]
    pub fn progress(&mut self) -> bool {
        let moved = self.devices.poll(&mut self.switch);
        if self.switch.has_work() { self.work(moved) } else { moved }
    }

    #[cold]
    fn work(&mut self, polled: bool) -> bool {
        let moved = self.switch.pump(&mut self.devices) | self.give_up_unreachable() | polled;
        let copied = self.switch.port.step_copies() || self.switch.port.keep_offer(!moved);
        // What a finished copy has to say goes out at once.
        if copied {
            self.switch.port.pump_outbound(&mut self.devices);
        }
        self.devices.push_all();
        moved | copied
    }

    /// Ends what waits for peers that nothing can be sent to; true if there were any.
    fn give_up_unreachable(&mut self) -> bool {
        let mut any = false;
        while let Some(refusal) = self.devices.take_refusal() {
            self.switch.handle_no_memory(&refusal);
            any = true;
        }
        self.switch.refusals_are_told();
        any
    }

    /// The next pass looks at everything, also at what is else looked at now and then only.
    pub fn look_soon(&mut self) {
        self.devices.look_soon();
    }

    /// Collective blocks: shared memory for the members of a communicator.
    pub fn shared_blocks(&mut self) -> SharedBlocks {
        SharedBlocks::new(self.devices.segment().clone())
    }

    /// The region of `bytes` that `of`, a process of this host, has made and told the ticket of.
    pub fn open_region(&self, of: Peer, ticket: Ticket, bytes: usize) -> io::Result<Region> {
        let pid = self.switch.port.pid(of.0).ok_or_else(|| io::Error::other("it cannot be seen from here"))?;
        Region::open(pid, ticket, bytes)
    }

    /// The memory of `peer`, if it runs on this host and copying between processes is allowed here. Whether the kernel
    /// allows it for this pair is seen at the first copy.
    pub fn attach(&self, peer: Peer) -> Option<Attach> {
        self.switch.port.attachable(peer.0).map(|pid| Attach { pid })
    }

    /// What `peer` says that it has at a place; `None` where that does not lead to memory of this kind, or copying
    /// between processes is not allowed here.
    pub fn see(&mut self, peer: Peer, place: ShownPlace, bytes: usize) -> Option<ShownMemory> {
        self.switch.port.see(peer.0, place, bytes as u64)
    }

    /// Wakes `peer` if it sleeps: to be called after storing into a shared block what it may wait for.
    #[inline]
    pub fn wake(&mut self, peer: Peer) {
        self.devices.wake(peer.0);
    }

    /// How often this process has gone to sleep; counted before its last look.
    #[inline]
    pub fn sleeps(&self) -> u64 {
        self.switch.port.counters.sleeps
    }

    /// Orders an earlier store into a shared block before a later look at whether somebody waits for it.
    #[inline]
    pub fn order_before_look(&mut self) {
        self.devices.order_before_look();
    }

    /// Whether ranks of this job want more cores than there are for them, or others take turns on ours.
    #[inline]
    pub fn shares_core(&self) -> bool {
        self.policy.shares_core()
    }

    /// Bytes were copied out of what a peer shows.
    pub fn count_single_copy(&mut self, bytes: u64) {
        self.switch.port.counters.single_copy_bytes += bytes;
    }

    #[inline]
    pub fn count_shared_collective(&mut self) {
        self.switch.port.counters.collectives_shared += 1;
    }

    #[inline]
    pub(crate) fn policy(&mut self) -> &mut Policy {
        &mut self.policy
    }

    /// Says what the interface calls this process, for people: a task's identifier, open ports. Nothing until then.
    pub fn set_known_as(&mut self, text: &str) {
        self.status.set_known_as(text);
    }

    /// Says that this process waits now, elsewhere than here.
    pub fn begin_blocked(&mut self, what: &Waiting) {
        self.set_blocked(what, weft_device::sys::now_ns());
    }

    /// It has waited.
    pub fn end_blocked(&mut self) {
        self.clear_blocked();
    }

    pub(crate) fn set_blocked(&mut self, what: &Waiting, since_ns: u64) {
        self.status.set_blocked(what, since_ns);
    }

    pub(crate) fn clear_blocked(&mut self) {
        self.status.clear_blocked();
    }

    /// Nothing more is posted for now: what waits for company goes. Waiting does this by itself.
    #[inline]
    pub fn push_out(&mut self) {
        self.devices.push_all();
    }

    pub(crate) fn note_yield(&mut self) {
        self.switch.port.counters.yields += 1;
        self.devices.look_soon();
    }

    pub(crate) fn arm(&mut self) -> bool {
        if self.switch.port.has_copies() {
            return false;
        }
        self.switch.port.counters.sleeps += 1;
        self.devices.count(&mut self.switch.port.counters);
        if let Some(ways) = self.devices.new_ways() {
            self.status.set_ways(&ways);
        }
        self.devices.arm()
    }

    /// For a thread that waits beside one that sleeps on the doorbell: false if there is something to do.
    pub(crate) fn arm_beside(&mut self) -> bool {
        !self.switch.port.has_copies() && self.devices.arm_beside()
    }

    /// What this process has counted; the same numbers as on its status page.
    pub fn counters(&mut self) -> &Counters {
        self.devices.count(&mut self.switch.port.counters);
        &self.switch.port.counters
    }

    /// Reads the counters from any thread at any time, also after the endpoint's end.
    pub fn counter_reader(&self) -> CounterReader {
        self.status.counter_reader()
    }

    pub(crate) fn disarm(&mut self) {
        self.devices.disarm();
    }

    /// To be called before [`Self::arm`]: whether the sleep is on a descriptor, too.
    pub(crate) fn will_sleep(&mut self, beside: bool) {
        self.devices.will_sleep(beside);
    }

    pub(crate) fn doorbell(&self) -> Doorbell {
        self.devices.doorbell()
    }

    pub(crate) fn sleeper(&self) -> Sleeper {
        self.devices.sleeper()
    }
}

/// Whether long messages may be copied straight out of the sender's memory.
fn try_single_copy(setting: SingleCopy) -> Result<bool, JoinError> {
    match setting {
        SingleCopy::Off => Ok(false),
        SingleCopy::Auto => Ok(weft_device::sys::attach_works().is_ok()),
        SingleCopy::On => weft_device::sys::attach_works().map(|()| true).map_err(JoinError::SingleCopy),
    }
}
