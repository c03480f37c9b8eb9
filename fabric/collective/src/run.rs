//! Running a schedule: one operation under way.

use super::schedule::{SCRATCH_ALIGN, Schedule, Step, View};
use std::sync::Arc;
use weft_fabric::{Endpoint, Envelope, Fault, Peer, RequestId, Selector, SendMode};

/// How a message ended.
#[derive(Clone, Copy)]
pub struct EndedMessage {
    /// As it was sent, bytes.
    pub length: u64,
    pub fault: Option<Fault>,
}

/// What a schedule needs of an endpoint.
pub trait Network {
    type Id: Copy;

    /// Starts a send; `None` if it is complete already.
    ///
    /// # Safety
    /// As [`Endpoint::post_send`].
    unsafe fn send(&mut self, to: Peer, envelope: Envelope, data: *const u8, length: usize) -> Option<Self::Id>;

    /// Starts a receive.
    ///
    /// # Safety
    /// As [`Endpoint::post_receive`].
    unsafe fn receive(&mut self, from: Selector, buffer: *mut u8, capacity: usize) -> Self::Id;

    /// How it ended, if it has; asked no more once it was.
    fn ended(&mut self, id: Self::Id) -> Option<EndedMessage>;

    /// How operations on a context end, if it was closed.
    fn closing(&self, context: u32) -> Option<Fault> {
        let _ = context;
        None
    }

    /// Whether the job goes on without processes that are lost.
    fn keeps_going(&self) -> bool {
        false
    }
}

impl Network for Endpoint {
    type Id = RequestId;

    unsafe fn send(&mut self, to: Peer, envelope: Envelope, data: *const u8, length: usize) -> Option<RequestId> {
        // SAFETY: the caller's promise is the endpoint's.
        unsafe {
            if self.try_send(to, envelope, data, length) {
                return None;
            }
            Some(self.post_send(to, envelope, data, length, SendMode::Standard))
        }
    }

    unsafe fn receive(&mut self, from: Selector, buffer: *mut u8, capacity: usize) -> RequestId {
        // SAFETY: the caller's promise is the endpoint's.
        unsafe { self.post_receive(from, buffer, capacity) }
    }

    fn ended(&mut self, id: RequestId) -> Option<EndedMessage> {
        self.take_outcome(id).map(|outcome| EndedMessage { length: outcome.length, fault: outcome.fault })
    }

    fn closing(&self, context: u32) -> Option<Fault> {
        Endpoint::closing(self, context)
    }

    fn keeps_going(&self) -> bool {
        Endpoint::keeps_going(self)
    }
}

/// Whom the ranks of a schedule mean, and the envelope of its messages.
pub trait RankRoute: Send + Sync {
    /// Ranks beyond the local group are those of the remote one.
    fn peer(&self, rank: u32) -> Peer;
}

/// A loop over `count` elements: left operand, right operand, result. The result may be one of the operands.
///
/// Safety: all three are valid for `count` elements of the type that the kernel was chosen for; alignment does not
/// matter.
pub type Kernel = unsafe fn(*const u8, *const u8, *mut u8, usize);

/// `into = left op into` over a number of elements.
#[derive(Clone)]
pub enum Combine {
    Kernel(Kernel),
    Function(Arc<dyn Fn(*const u8, *mut u8, u64) + Send + Sync>),
}

/// How a schedule folds.
#[derive(Clone)]
pub struct Folding {
    pub combine: Combine,
    /// User code, which may call us again: runs with the monitor left.
    pub foreign: bool,
}

/// Everything that stays the same each time the operation is started.
pub struct CollectiveJob {
    pub schedule: Schedule,
    pub route: Arc<dyn RankRoute>,
    pub context: u32,
    pub tag: i32,
    /// Our rank, by which receivers know us.
    pub source: u32,
    pub input: *const u8,
    pub output: *mut u8,
    pub folding: Option<Folding>,
    /// This rank's part has another length than the others expect, so what it sends shows that.
    pub misfit: bool,
}

// SAFETY: the buffers belong to whoever waits for the operation, whichever thread moves it (`CollectiveRun::new`).
unsafe impl Send for CollectiveJob {}

/// A fold to be done outside; see [`RunTurn::Outside`].
pub struct OutsideFold {
    combine: Combine,
    left: *const u8,
    into: *mut u8,
    count: u64,
}

// SAFETY: as for `CollectiveJob`, whose buffers these are.
unsafe impl Send for OutsideFold {}

impl OutsideFold {
    pub fn perform(self) {
        let Self { combine, left, into, count } = self;
        match combine {
            // SAFETY: a run folds views of the kernel's type that do not overlap.
            Combine::Kernel(kernel) => unsafe { kernel(left, into, into, count as usize) },
            Combine::Function(function) => function(left, into, count),
        }
    }
}

/// Why an operation was not performed, or not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFailure {
    /// A member is lost, or the context was closed: the operation ended there.
    Stopped(Fault),
    /// A message ended so: its length as it was sent, and the bytes that are expected.
    Message { fault: Fault, length: u64, expected: usize },
}

/// Where a run stands after it was moved.
pub enum RunTurn {
    /// Nothing to do until the network moves.
    Blocked,
    /// This fold is to be performed with the monitor left; then move on.
    Outside(OutsideFold),
    Done,
}

/// A receive or send that was started, with the packed copy it works on.
struct PendingMessage<I> {
    id: I,
    receives: bool,
    bytes: usize,
    packed: Option<Box<[u8]>>,
    /// Where to unpack to.
    target: Option<View>,
}

/// Scratch memory that is kept for the next run, at most.
const MOST_ROOM_BYTES: usize = 4096;

/// A schedule under way. Messages start in the order of the steps, so that two ranks that exchange several match them
/// in that order.
pub struct CollectiveRun<I = RequestId> {
    job: CollectiveJob,
    next: usize,
    pending: Vec<PendingMessage<I>>,
    scratch: ScratchMemory,
    failure: Option<RunFailure>,
    /// The ranks were called with different lengths, as far as we have seen. Then nothing is folded any more, and what
    /// we send has a wrong length on purpose, so that those who would take it for good see it too.
    misfit: bool,
}

/// Memory for the scratch area; what it holds is never read before it was written.
struct ScratchMemory(Vec<u8>);

impl ScratchMemory {
    /// With room to begin at a multiple of [`SCRATCH_ALIGN`], which costs less than to ask for such memory.
    fn new(mut room: Vec<u8>, bytes: u64) -> Self {
        if bytes > 0 {
            room.reserve_exact((bytes + SCRATCH_ALIGN) as usize);
        }
        Self(room)
    }

    fn base(&mut self) -> *mut u8 {
        let memory = self.0.as_mut_ptr();
        memory.wrapping_add(memory.align_offset(SCRATCH_ALIGN as usize))
    }
}

impl<I: Copy> CollectiveRun<I> {
    /// # Safety
    /// The job's buffers hold what the schedule's views name, readable (input) and writable (output), until the run is
    /// done or, if it is started again, as long as it lives.
    pub unsafe fn new(mut job: CollectiveJob) -> Self {
        let room = std::mem::take(&mut job.schedule.room);
        let scratch = ScratchMemory::new(room, job.schedule.scratch);
        let misfit = job.misfit;
        Self { job, next: 0, pending: Vec::new(), scratch, failure: None, misfit }
    }

    /// On which the messages travel.
    pub fn context(&self) -> u32 {
        self.job.context
    }

    /// Back to the first step, for the next start of a persistent operation.
    pub fn rewind(&mut self) {
        debug_assert!(self.pending.is_empty());
        self.next = 0;
        self.failure = None;
        self.misfit = self.job.misfit;
    }

    /// What it was made from, for the next one, when it is done.
    pub fn take_schedule(&mut self) -> Schedule {
        let mut schedule = std::mem::take(&mut self.job.schedule);
        if self.scratch.0.capacity() <= MOST_ROOM_BYTES {
            schedule.room = std::mem::take(&mut self.scratch.0);
        }
        schedule
    }

    /// What went wrong in a run that is done.
    pub fn failure(&self) -> Option<RunFailure> {
        self.failure
    }

    /// Moves on as far as possible. After [`RunTurn::Outside`] the fold has to be performed before the next call.
    pub fn advance(&mut self, net: &mut impl Network<Id = I>) -> RunTurn {
        if let Some(fault) = net.closing(self.job.context) {
            self.stop(fault);
        }
        while let Some(&step) = self.job.schedule.steps.get(self.next) {
            match step {
                Step::Send { to, view } => self.start_send(net, to, view),
                Step::Receive { from, view } => self.start_receive(net, from, view),
                Step::Wait if !self.all_complete(net) => return RunTurn::Blocked,
                Step::Wait => {}
                Step::Copy { from, to } => self.copy(from, to),
                Step::Fold { .. } if self.misfit => {}
                Step::Fold { left, into } => {
                    let fold = self.fold(left, into);
                    self.next += 1;
                    if self.job.folding.as_ref().is_some_and(|folding| folding.foreign) {
                        return RunTurn::Outside(fold);
                    }
                    fold.perform();
                    continue;
                }
            }
            self.next += 1;
        }
        if self.all_complete(net) { RunTurn::Done } else { RunTurn::Blocked }
    }

    /// A member is lost, or the communicator revoked: nothing more is begun. All members do so, each when it learns of
    /// it. What is under way ends first, since it has the program's buffers.
    #[cold]
    fn stop(&mut self, fault: Fault) {
        self.next = self.job.schedule.steps.len();
        self.failure = Some(RunFailure::Stopped(fault));
    }

    fn address(&mut self, view: View) -> *mut u8 {
        let base = match view.area {
            super::schedule::Area::Input => self.job.input.cast_mut(),
            super::schedule::Area::Output => self.job.output,
            super::schedule::Area::Scratch => self.scratch.base(),
        };
        // Wrapping, since an element's address may lie outside of the memory that its data occupy.
        base.wrapping_offset(view.at as isize)
    }

    fn start_send(&mut self, net: &mut impl Network<Id = I>, to: u32, view: View) {
        let bytes = self.job.schedule.size(view) as usize;
        let mut packed = None;
        let data = match self.job.schedule.flat(view) {
            Some(flat) => self.address(flat).cast_const(),
            None => packed.insert(self.packed(view)).as_ptr(),
        };
        let envelope = Envelope { context: self.job.context, tag: self.job.tag, source: self.job.source };
        let (data, bytes) = if self.misfit { another_length(bytes) } else { (data, bytes) };
        // SAFETY: `CollectiveRun::new` promises the user's buffers; scratch and packed bytes live in this run until it
        // is done.
        let id = unsafe { net.send(self.job.route.peer(to), envelope, data, bytes) };
        self.pending.extend(id.map(|id| PendingMessage { id, receives: false, bytes, packed, target: None }));
    }

    fn start_receive(&mut self, net: &mut impl Network<Id = I>, from: u32, view: View) {
        let bytes = self.job.schedule.size(view) as usize;
        let mut packed = None;
        let flat = self.job.schedule.flat(view);
        let buffer = match flat {
            Some(flat) => self.address(flat),
            None => packed.insert(vec![0; bytes].into_boxed_slice()).as_mut_ptr(),
        };
        let peer = Some(self.job.route.peer(from));
        let selector = Selector { context: self.job.context, peer, tag: Some(self.job.tag) };
        // SAFETY: as for sends.
        let id = unsafe { net.receive(selector, buffer, bytes) };
        let target = flat.is_none().then_some(view);
        self.pending.push(PendingMessage { id, receives: true, bytes, packed, target });
    }

    /// Ends what is complete; true if nothing is left.
    fn all_complete(&mut self, net: &mut impl Network<Id = I>) -> bool {
        let mut at = 0;
        while at < self.pending.len() {
            let Some(EndedMessage { length, fault }) = net.ended(self.pending[at].id) else {
                at += 1;
                continue;
            };
            let ended = self.pending.swap_remove(at);
            // Where all ranks were called alike, every message has the length that is expected.
            let short = ended.receives && length < ended.bytes as u64;
            match fault.or(short.then_some(Fault::Truncated)) {
                // The device knows it before the launcher has told everybody. What depends on it must not go on.
                Some(fault) if fault.is_loss() && net.keeps_going() => self.stop(fault),
                Some(fault) => {
                    self.misfit |= fault == Fault::Truncated;
                    let failure = RunFailure::Message { fault, length, expected: ended.bytes };
                    self.failure = self.failure.or(Some(failure));
                }
                None => self.unpack(&ended),
            }
        }
        self.pending.is_empty()
    }

    fn unpack(&mut self, ended: &PendingMessage<I>) {
        if let (Some(packed), Some(view)) = (&ended.packed, ended.target) {
            let to = self.address(view);
            // SAFETY: `packed` has the packed size of the view, whose memory `CollectiveRun::new` promises.
            unsafe { self.job.schedule.shape(view.shape).unpack(packed.as_ptr(), to, view.count) };
        }
    }

    fn packed(&mut self, view: View) -> Box<[u8]> {
        let mut packed = vec![0; self.job.schedule.size(view) as usize].into_boxed_slice();
        let from = self.address(view);
        // SAFETY: as in `unpack`.
        unsafe { self.job.schedule.shape(view.shape).pack(from, view.count, packed.as_mut_ptr()) };
        packed
    }

    fn copy(&mut self, from: View, to: View) {
        let (source, target) = (self.address(from), self.address(to));
        let schedule = &self.job.schedule;
        let (flat_from, flat_to) = (schedule.flat(from), schedule.flat(to));
        let bytes = schedule.size(from).min(schedule.size(to)) as usize;
        if schedule.size(from) != schedule.size(to) && (flat_from.is_none() || flat_to.is_none()) {
            return self.copy_common(from, to, bytes);
        }
        // SAFETY: both views lie in memory promised by `CollectiveRun::new` or in scratch. The builders never copy
        // between views that overlap, except flat ones, which may.
        unsafe {
            match (flat_from, flat_to) {
                (Some(flat_from), Some(flat_to)) => {
                    self.address(flat_to).copy_from(self.address(flat_from), bytes);
                }
                (Some(flat_from), None) => {
                    let packed = self.address(flat_from);
                    self.job.schedule.shape(to.shape).unpack(packed, target, to.count);
                }
                (None, Some(flat_to)) => {
                    let packed = self.address(flat_to);
                    self.job.schedule.shape(from.shape).pack(source, from.count, packed);
                }
                (None, None) => {
                    let packed = self.packed(from);
                    self.job.schedule.shape(to.shape).unpack(packed.as_ptr(), target, to.count);
                }
            }
        }
    }

    /// A copy between views of different sizes, which only wrong arguments bring about: whole elements among the first
    /// `bytes`.
    #[cold]
    fn copy_common(&mut self, from: View, to: View, bytes: usize) {
        let (packed, target) = (self.packed(from), self.address(to));
        let shape = self.job.schedule.shape(to.shape);
        let count = (bytes as u64).checked_div(shape.size).unwrap_or(0);
        // SAFETY: as in `copy`; `count` elements of `to` are no more than `from` has bytes for.
        unsafe { shape.unpack(packed.as_ptr(), target, count) };
    }

    fn fold(&mut self, left: View, into: View) -> OutsideFold {
        let folding = self.job.folding.as_ref().expect("a schedule with folds comes with their function");
        let combine = folding.combine.clone();
        OutsideFold { combine, left: self.address(left), into: self.address(into), count: into.count }
    }
}

/// What is sent instead of so many bytes.
#[cold]
fn another_length(bytes: usize) -> (*const u8, usize) {
    static ONE: u8 = 0;
    (&raw const ONE, if bytes == 0 { 1 } else { 0 })
}
