//! Everything the MPI interface keeps, next to the endpoint.

use crate::attribute::Attributes;
use crate::coll::{Active, CollectiveId};
use crate::comm::context::Contexts;
use crate::comm::{Coming, Comm};
use crate::datatype::Datatype;
use crate::group::Group;
use crate::handle::{HandleKind, HandleTable};
use crate::op::Op;
use crate::request::{Ground, Request};
use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use weft_collective::run::OutsideFold;
use weft_fabric::{Driven, Endpoint, Monitor, Outside};

/// Open from `MPI_Init` to `MPI_Finalize`.
pub static WORLD: Monitor<World> = Monitor::new();

/// Threads that wait for somebody to come through a door, or to be let in.
#[derive(Default)]
pub(crate) struct Attending {
    pub threads: u32,
    /// Where that shows.
    pub shows: Option<RawFd>,
}

/// The state of the interface. Objects that a program may use before `MPI_Init` (info, error handlers, added error
/// codes) live in their own files, each behind its own lock.
pub struct World {
    pub endpoint: Endpoint,
    pub comms: HandleTable<Arc<Comm>>,
    pub groups: HandleTable<Arc<Group>>,
    pub types: HandleTable<Datatype>,
    pub ops: HandleTable<Op>,
    pub requests: HandleTable<Request>,
    /// Messages taken by matched probes.
    pub messages: HandleTable<crate::point::ProbedMessage>,
    /// Schedules under way.
    pub collectives: Active,
    /// Partitioned operations.
    pub partitioned: crate::partitioned::ActivePartitions,
    pub windows: crate::window::Windows,
    /// What point-to-point keeps for the process (attached buffers).
    pub point: crate::point::PointState,
    /// Which contexts are taken.
    pub contexts: Contexts,
    /// Several threads may call at the same time.
    pub threads: bool,
    /// Names and attributes of datatypes, by handle; most have none.
    type_labels: HashMap<usize, Labels>,
    /// Communicators that are being made without anybody waiting for them.
    pub(crate) coming: Vec<Coming>,
    /// What goes on beside the program; in most programs nothing.
    tasks: Vec<Box<dyn Task>>,
    /// Learns what no message tells: who is lost. True if anything is new.
    learn: fn(&mut Self) -> bool,
    /// Passes that moved nothing since that was asked.
    unmoved: u32,
    pub(crate) attending: Attending,
    pub failures: crate::failure::Failures,
}

/// Something that goes on beside the program: each progress pass moves it, until it is over.
pub trait Task: Send {
    /// Moves it on; true once it is over.
    fn advance(&mut self, world: &mut World) -> bool;

    /// Called where passes move nothing, before a sleep and now and then; true if anything changed.
    fn idle(&mut self, _world: &mut World, _sleeps: bool) -> bool {
        false
    }

    /// How long a thread may sleep that waits for it, if nothing would wake it.
    fn longest_sleep(&self, _world: &World) -> Option<Duration> {
        None
    }
}

/// Unmoved passes of a program that tests between two looks after what no message tells.
const PASSES_PER_LOOK: u32 = 64;
/// Who waits for what wakes nobody looks so often.
const LOOK: Duration = Duration::from_millis(1);

/// Questions in a row that are answered "not yet" before the core is handed over where ranks outnumber cores.
const NOT_YETS: u32 = 16;

static NOT_YET: AtomicU32 = AtomicU32::new(0);

/// Asks for what may not be there yet, twice, with a progress pass between, so that a loop of probes or tests sees what
/// arrives. Such a loop waits, although no call in it does: where ranks share cores it would keep the one away that it
/// waits for until its time slice ends.
#[inline]
pub fn look<R>(mut ask: impl FnMut(&mut World) -> Option<R>) -> Option<R> {
    let mut answer = ask(&mut WORLD.enter());
    if answer.is_none() {
        WORLD.poll();
        answer = ask(&mut WORLD.enter());
    }
    let so_far = NOT_YET.load(Ordering::Relaxed);
    if answer.is_none() {
        NOT_YET.store(so_far + 1, Ordering::Relaxed);
        if so_far + 1 >= NOT_YETS {
            hand_over();
        }
    } else if so_far != 0 {
        NOT_YET.store(0, Ordering::Relaxed);
    }
    answer
}

#[cold]
fn hand_over() {
    static SHARED: OnceLock<bool> = OnceLock::new();
    NOT_YET.store(0, Ordering::Relaxed);
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    if *SHARED.get_or_init(|| WORLD.enter().endpoint.host_size() as usize > cores()) {
        std::thread::yield_now();
    }
}

/// What a program may attach to a datatype.
#[derive(Default)]
pub struct Labels {
    pub name: Option<String>,
    pub attributes: Attributes,
}

impl Labels {
    /// The name of a type that the program has not named.
    pub fn predefined_name(datatype: usize) -> &'static str {
        let names = crate::abi::DATATYPE_NAMES;
        let extra = (usize::from(crate::datatype::C_FLOAT16), "MPIX_C_FLOAT16");
        names.iter().chain([&extra]).find(|entry| entry.0 == datatype).map_or("", |entry| entry.1)
    }
}

impl World {
    /// The state at the start, without predefined objects. `learn` asks for losses.
    pub fn new(endpoint: Endpoint, threads: bool, learn: fn(&mut Self) -> bool) -> Self {
        Self {
            endpoint,
            comms: HandleTable::new(HandleKind::Comm),
            groups: HandleTable::new(HandleKind::Group),
            types: HandleTable::new(HandleKind::Datatype),
            ops: HandleTable::new(HandleKind::Op),
            requests: HandleTable::new(HandleKind::Request),
            messages: HandleTable::new(HandleKind::Message),
            collectives: Default::default(),
            partitioned: Default::default(),
            windows: Default::default(),
            point: Default::default(),
            contexts: Contexts::default(),
            threads,
            type_labels: HashMap::new(),
            coming: Vec::new(),
            tasks: Vec::new(),
            learn,
            unmoved: 0,
            attending: Attending::default(),
            failures: Default::default(),
        }
    }

    /// The labels of a live datatype.
    pub fn labels_of_type(&mut self, datatype: usize) -> crate::error::Result<&mut Labels> {
        self.types.get(datatype)?;
        Ok(self.type_labels.entry(datatype).or_default())
    }

    /// Forgets the labels of a datatype that is being freed.
    pub fn drop_labels_of_type(&mut self, datatype: usize) {
        self.type_labels.remove(&datatype);
    }

    /// Begins what goes on beside the program.
    pub fn begin(&mut self, mut task: Box<dyn Task>) {
        if !task.advance(self) {
            self.tasks.push(task);
        }
    }

    /// The same for what need not move before the next pass.
    pub fn add(&mut self, task: Box<dyn Task>) {
        self.tasks.push(task);
    }

    #[cold]
    fn advance_tasks(&mut self) {
        let mut tasks = std::mem::take(&mut self.tasks);
        tasks.retain_mut(|task| !task.advance(self));
        // What has begun meanwhile comes behind.
        tasks.append(&mut self.tasks);
        self.tasks = tasks;
    }

    /// Asks all of them; true if any of them says so.
    fn with_tasks(&mut self, ask: impl Fn(&mut dyn Task, &mut Self) -> bool) -> bool {
        let mut tasks = std::mem::take(&mut self.tasks);
        let yes = tasks.iter_mut().fold(false, |yes, task| ask(&mut **task, self) | yes);
        tasks.append(&mut self.tasks);
        self.tasks = tasks;
        yes
    }

    /// The requests, and what they stand on.
    #[inline]
    pub fn split(&mut self) -> (&mut HandleTable<Request>, Ground<'_>) {
        let Self { requests, endpoint, collectives, partitioned, point, .. } = self;
        (requests, Ground { endpoint, collectives, partitioned, point })
    }

    /// The live communicator with this handle.
    #[inline]
    pub fn comm(&self, handle: usize) -> crate::error::Result<&Arc<Comm>> {
        self.comms.get(handle)
    }
}

impl Driven for World {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    fn advance(&mut self) -> Option<Outside> {
        self.point.advance(&mut self.endpoint);
        self.partitioned.advance(&mut self.endpoint);
        if !self.tasks.is_empty() {
            self.advance_tasks();
        }
        let (id, fold) = self.collectives.advance(&mut self.endpoint)?;
        Some(Box::new(move || perform(id, fold)))
    }

    fn idle(&mut self, sleeps: bool) -> bool {
        self.unmoved += 1;
        if !sleeps && self.unmoved < PASSES_PER_LOOK {
            return false;
        }
        self.unmoved = 0;
        let learn = self.learn;
        learn(self) | self.with_tasks(|task, world| task.idle(world, sleeps))
    }

    fn attended(&self) -> Option<RawFd> {
        self.attending.shows.filter(|_| self.attending.threads == 1)
    }

    fn longest_sleep(&self) -> Option<Duration> {
        let attends = (self.attending.threads > 0 && self.attended().is_none()).then_some(LOOK);
        let tasks = self.tasks.iter().filter_map(|task| task.longest_sleep(self));
        tasks.chain(attends).chain(self.failures.longest_sleep(&self.endpoint)).min()
    }
}

/// Folds with the monitor left.
fn perform(id: CollectiveId, fold: OutsideFold) {
    let mut next = Some(fold);
    while let Some(fold) = next {
        fold.perform();
        let mut guard = WORLD.enter();
        let world = &mut *guard;
        next = world.collectives.come_back(id, &mut world.endpoint);
    }
}
