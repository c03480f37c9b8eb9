//! Everything the MPI interface keeps, next to the endpoint.

use crate::attribute::Attributes;
use crate::comm::Comm;
use crate::comm::context::Contexts;
use crate::comm::idup::Construction;
use crate::datatype::Datatype;
use crate::group::Group;
use crate::handle::{Kind, Table};
use crate::op::Op;
use crate::request::Request;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use weft_fabric::{Driven, Endpoint, Monitor, Outside};

/// Open from `MPI_Init` to `MPI_Finalize`.
pub static WORLD: Monitor<World> = Monitor::new();

/// The state of the interface. Objects that a program may use before `MPI_Init` (info, error handlers, added error
/// codes) live in their own files, each behind its own lock.
pub struct World {
    pub endpoint: Endpoint,
    pub comms: Table<Arc<Comm>>,
    pub groups: Table<Arc<Group>>,
    pub types: Table<Datatype>,
    pub ops: Table<Op>,
    pub requests: Table<Request>,
    /// Messages taken by matched probes.
    pub messages: Table<crate::point::Message>,
    /// Schedules under way.
    pub collectives: crate::coll::Active,
    /// Partitioned operations.
    pub partitioned: crate::partitioned::Active,
    pub windows: crate::window::Windows,
    pub files: Table<Arc<crate::file::File>>,
    /// The shared pointers of files that this process keeps.
    pub(crate) pointers: Vec<crate::file::Keeper>,
    /// What point-to-point keeps for the process (attached buffers).
    pub point: crate::point::State,
    /// Which contexts are taken.
    pub contexts: Contexts,
    /// Several threads may call at the same time.
    pub threads: bool,
    /// Names and attributes of datatypes, by handle; most have none.
    type_labels: HashMap<usize, Labels>,
    /// Communicators that are being made without anybody waiting for them.
    pub(crate) constructions: Vec<Construction>,
    /// Threads that wait for something that wakes nobody.
    pub(crate) attending: u32,
    pub failures: crate::failure::Failures,
}

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
    /// The state at the start, without predefined objects.
    pub fn new(endpoint: Endpoint, threads: bool) -> Self {
        Self {
            endpoint,
            comms: Table::new(Kind::Comm),
            groups: Table::new(Kind::Group),
            types: Table::new(Kind::Datatype),
            ops: Table::new(Kind::Op),
            requests: Table::new(Kind::Request),
            messages: Table::new(Kind::Message),
            collectives: Default::default(),
            partitioned: Default::default(),
            windows: Default::default(),
            files: Table::new(Kind::File),
            pointers: Vec::new(),
            point: Default::default(),
            contexts: Contexts::default(),
            threads,
            type_labels: HashMap::new(),
            constructions: Vec::new(),
            attending: 0,
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
        crate::window::advance(self);
        crate::comm::idup::advance(self);
        crate::failure::advance_constructions(self);
        crate::file::advance(self);
        crate::coll::advance(self)
    }

    fn idle(&mut self, sleeps: bool) -> bool {
        crate::window::idle(self, sleeps) | crate::failure::idle(self, sleeps)
    }

    fn longest_sleep(&self) -> Option<Duration> {
        let attends = (self.attending > 0).then_some(crate::dynamic::LOOK);
        let failures = self.failures.longest_sleep(&self.endpoint);
        let rooms = [self.windows.longest_sleep(), attends, failures];
        rooms.into_iter().flatten().min()
    }
}
