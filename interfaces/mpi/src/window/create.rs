//! Making and freeing windows.
//!
//! All members learn the sizes of all, with the context of the window's communicator; then the first member of each
//! host tells the others where their common words and memory are; then all tell whether they could open it, and where
//! their memory begins. Where the kernel does not hand memory round, collective blocks of the segment serve, as far as
//! they reach.

use super::epoch::{Epochs, find};
use super::message::Service;
use super::words::WindowWords;
use super::{Flavor, Places, TargetMember, TargetWay, Window, WindowMemory};
use crate::comm::agree::{agree, meet, tell};
use crate::comm::create::everyone;
use crate::comm::{Comm, CommDraft};
use crate::errhandler::handler::Handler;
use crate::error::{Class, Error, Result};
use crate::info::Info;
use crate::world::{WORLD, World};
use std::sync::Arc;
use weft_fabric::memory::{self, Location};
use weft_fabric::region::{Region, Ticket};
use weft_fabric::shared::BLOCK_BYTES;
use weft_fabric::{Endpoint, Peer};

/// Where the memory of members begins in common memory: a page, so that no two share one.
const ALIGNMENT: u64 = 4096;

/// What the program asks for.
pub struct Plan {
    pub call: &'static str,
    pub flavor: Flavor,
    /// The program's memory, if it has some.
    pub base: *mut u8,
    pub size: isize,
    pub unit: i64,
    pub info: Info,
}

/// What one member brings.
#[derive(Clone, Copy)]
struct Brought {
    size: u64,
    unit: i64,
}

/// The members of this host and where their memory lies in the common one.
struct WindowHost {
    ranks: Vec<u32>,
    /// Of each of `ranks`.
    offsets: Vec<u64>,
    bytes: usize,
}

impl WindowHost {
    fn new(ranks: Vec<u32>, shares: &[Brought], contiguous: bool) -> Option<Self> {
        let mut offsets = Vec::with_capacity(ranks.len());
        let mut end = 0u64;
        for &rank in &ranks {
            offsets.push(end);
            end = end.checked_add(shares[rank as usize].size)?;
            if !contiguous {
                end = end.checked_next_multiple_of(ALIGNMENT)?;
            }
        }
        let bytes = usize::try_from(end.max(8)).ok()?;
        Some(Self { ranks, offsets, bytes })
    }

    fn place(&self, rank: u32) -> Option<usize> {
        self.ranks.iter().position(|&other| other == rank)
    }

    fn leader(&self) -> usize {
        self.ranks[0] as usize
    }
}

/// Answers the handle, and where this process's memory begins.
pub fn create(parent: &Comm, plan: Plan) -> Result<(usize, *mut u8)> {
    let checked = check(&plan);
    let (size, unit) = *checked.as_ref().unwrap_or(&(0, 1));
    let wrong = checked.as_ref().err().map_or(0, |error| error.code as u64);
    let (circle, me) = everyone(parent);
    let apart = plan.info.get("alloc_shared_noncontig") == Some("true");
    let agreed = agree(plan.call, circle, [size, unit as u64, u64::from(apart) | wrong << 1])?;
    if let Some(rank) = agreed.said.iter().position(|said| said[2] >> 1 != 0) {
        // Nobody makes a window that another process has no part in.
        WORLD.enter().contexts.release(agreed.context);
        checked?;
        let code = (agreed.said[rank][2] >> 1) as i32;
        let detail = format!("an argument of rank {rank} is wrong: {}", crate::error::text(code));
        return Err(Error::from_code(code, detail));
    }
    let shares: Vec<Brought> = agreed.said.iter().map(|said| Brought { size: said[0], unit: said[1] as i64 }).collect();
    let apart = agreed.said.iter().any(|said| said[2] & 1 != 0);
    let comm = own_comm(parent, agreed.context);
    let made = make(&comm, &plan, &shares, apart, me);
    if made.is_err() {
        forget_comm(&comm);
    }
    made
}

fn check(plan: &Plan) -> Result<(u64, i64)> {
    let size =
        u64::try_from(plan.size).map_err(|_| Error::new(Class::Size, format!("size {} is negative", plan.size)))?;
    if plan.unit <= 0 {
        return Err(Error::new(Class::Disp, format!("disp_unit {} is not positive", plan.unit)));
    }
    if plan.flavor == Flavor::Create && plan.base.is_null() && size > 0 {
        return Err(Error::new(Class::Base, format!("base is a null pointer, but size is {size}")));
    }
    Ok((size, plan.unit))
}

/// A communicator of the window's own, which the program does not know.
fn own_comm(parent: &Comm, context: u32) -> Arc<Comm> {
    let (errhandler, session) = (Arc::new(Handler::Return), parent.session);
    let draft = CommDraft { errhandler, session, ..CommDraft::new(parent.local.clone()) };
    let mut world = WORLD.enter();
    let handle = crate::comm::create::insert(&mut world, draft, context);
    world.comm(handle).expect("it was just made").clone()
}

fn forget_comm(comm: &Comm) {
    let mut world = WORLD.enter();
    if world.comms.remove(comm.handle).is_ok() {
        world.contexts.release(comm.context);
    }
}

fn ranks_of_host(endpoint: &Endpoint, comm: &Comm) -> Vec<u32> {
    let is_near = |&rank: &u32| rank == comm.rank || endpoint.is_local(comm.local.peer(rank));
    (0..comm.size()).filter(is_near).collect()
}

fn make(comm: &Arc<Comm>, plan: &Plan, shares: &[Brought], apart: bool, me: Peer) -> Result<(usize, *mut u8)> {
    let ranks = ranks_of_host(&WORLD.enter().endpoint, comm);
    if plan.flavor == Flavor::Shared && ranks.len() < comm.size() as usize {
        let other = (0..comm.size()).find(|rank| !ranks.contains(rank)).unwrap_or(0);
        let detail =
            format!("rank {other} of comm shares no memory with rank {}: split it by MPI_COMM_TYPE_SHARED", comm.rank);
        return Err(Error::new(Class::RmaShared, detail));
    }
    let host = WindowHost::new(ranks, shares, plan.flavor == Flavor::Shared && !apart);
    let host = host.ok_or_else(|| Error::new(Class::NoMem, "the sizes of the members are too large together"))?;
    let (words, memory) = common(comm, plan, &host)?;
    let place = host.place(comm.rank).expect("a process is on its own host");
    let base = match &memory {
        WindowMemory::None => plan.base,
        _ if plan.size == 0 => std::ptr::null_mut(),
        WindowMemory::Private(own) => own.at(0, plan.size as usize),
        memory => memory.at(host.offsets[place] as usize, plan.size as usize),
    };
    // Who has not opened the common words yet may still get there: all meet before the window is used.
    let shown = if plan.flavor == Flavor::Create { Shown::of(base, plan.size as usize) } else { Shown::default() };
    let said = tell(plan.call, comm, [base as u64, shown.token, shown.bytes, shown.place])?;
    let mut guard = WORLD.enter();
    let world = &mut *guard;
    let site = Site { comm, plan, shares, host: &host, memory: &memory, words_shared: words.is_shared(), base, me };
    let mut opened = Vec::new();
    let targets: Vec<TargetMember> =
        (0..comm.size()).map(|rank| site.target(&world.endpoint, rank, said[rank as usize], &mut opened)).collect();
    let mut service = Service::new(comm.context, comm.rank, targets.len());
    service.open(&mut world.endpoint);
    let (unit, flavor) = (plan.unit as i32, plan.flavor as i32);
    let places = Box::new(Places { size: plan.size, unit, flavor, model: crate::abi::WIN_UNIFIED });
    let handle = world.windows.table.reserve();
    let window = Window {
        handle,
        comm: comm.clone(),
        flavor: plan.flavor,
        base,
        epochs: Epochs::new(targets.len()),
        targets,
        host: if words.is_shared() { host.ranks } else { vec![comm.rank] },
        words,
        memory,
        opened,
        attached: Vec::new(),
        service,
        places,
        name: String::new(),
        errhandler: Arc::new(Handler::Initial),
        attributes: Default::default(),
        info: known_hints(plan),
    };
    world.windows.table.fill(handle, Box::new(window));
    world.windows.live.push(handle);
    super::serve::begin(world);
    Ok((handle, base))
}

/// What a member knows of a window that is being made.
struct Site<'a> {
    comm: &'a Comm,
    plan: &'a Plan,
    shares: &'a [Brought],
    host: &'a WindowHost,
    memory: &'a WindowMemory,
    words_shared: bool,
    /// Of this member's memory.
    base: *mut u8,
    me: Peer,
}

impl Site<'_> {
    /// How the member `rank`, which has `said` where its memory is, is reached. A region that is opened for it is kept
    /// in `opened`.
    fn target(&self, endpoint: &Endpoint, rank: u32, said: [u64; 4], opened: &mut Vec<Region>) -> TargetMember {
        let (peer, near) = (self.comm.local.peer(rank), self.host.place(rank));
        let Brought { size, unit } = self.shares[rank as usize];
        let is_dynamic = self.plan.flavor == Flavor::Dynamic;
        let way = match (self.memory, near) {
            _ if peer == self.me => TargetWay::Mapped(if is_dynamic { std::ptr::null_mut() } else { self.base }),
            (WindowMemory::None, Some(_)) => {
                let [_, token, bytes, place] = said;
                match (Shown { token, bytes, place }).open(endpoint, peer, size) {
                    Some((region, base)) => {
                        opened.push(region);
                        TargetWay::Mapped(base)
                    }
                    None => endpoint.attach(peer).map_or(TargetWay::Message, TargetWay::Attach),
                }
            }
            (WindowMemory::Private(_), _) | (_, None) => TargetWay::Message,
            (memory, Some(near)) => TargetWay::Mapped(memory.at(self.host.offsets[near] as usize, size as usize)),
        };
        let place = near.map(|near| near as u32).filter(|_| self.words_shared || peer == self.me);
        let base = if is_dynamic { 0 } else { said[0] };
        TargetMember { peer, way, base, size, unit, place }
    }
}

/// Where the program's memory lies in a region that others of the host may open, as members tell it.
#[derive(Clone, Copy, Default)]
struct Shown {
    token: u64,
    /// Of the region.
    bytes: u64,
    /// Offset in the region, above the descriptor's number plus 1; 0: nowhere.
    place: u64,
}

impl Shown {
    fn of(base: *mut u8, size: usize) -> Self {
        let location = memory::of(base as usize, size).filter(|_| size > 0);
        location.map_or(Self::default(), |Location { ticket, bytes, offset }| {
            let place = (offset as u64) << 32 | (u64::from(ticket.number) + 1);
            Self { token: ticket.token, bytes: bytes as u64, place }
        })
    }

    /// Maps what `peer` shows; answers where `size` bytes of it begin. What it says is a claim.
    fn open(self, endpoint: &Endpoint, peer: Peer, size: u64) -> Option<(Region, *mut u8)> {
        let number = (self.place as u32).checked_sub(1)?;
        let offset = self.place >> 32;
        let bytes = usize::try_from(self.bytes).ok()?;
        if offset.checked_add(size)? > self.bytes {
            return None;
        }
        let region = endpoint.open_region(peer, Ticket { number, token: self.token }, bytes).ok()?;
        let base = region.at(offset as usize, size as usize);
        Some((region, base))
    }
}

/// What the first member of a host tells the others. `number` and `first` are 1 above what they name.
#[derive(Clone, Copy, Default)]
struct MemoryOffer {
    words: u64,
    number: u64,
    token: u64,
    failed: u64,
}

/// The words, and the memory for all members of this host where the window makes it.
fn common(comm: &Arc<Comm>, plan: &Plan, host: &WindowHost) -> Result<(WindowWords, WindowMemory)> {
    let allocates = matches!(plan.flavor, Flavor::Allocate | Flavor::Shared);
    let leads = host.leader() == comm.rank as usize;
    let blocks = WORLD.enter().endpoint.shared_blocks();
    let (mut mine, mut region, mut trouble) = (MemoryOffer::default(), None, None);
    if leads && host.ranks.len() > 1 {
        mine.words = WindowWords::take(&blocks, host.ranks.len()).map_or(0, |first| first as u64 + 1);
    }
    if leads && allocates {
        match Region::create(host.bytes) {
            Ok(made) => {
                let Ticket { number, token } = made.ticket();
                (mine.number, mine.token) = (u64::from(number) + 1, token);
                region = Some(made);
            }
            Err(error) => {
                mine.failed = 1;
                trouble = Some(error.to_string());
            }
        }
    }
    let offers = tell(plan.call, comm, [mine.words, mine.number, mine.token, mine.failed])?;
    if let Some(failed) = offers.iter().position(|offer| offer[3] != 0) {
        if let Some(first) = mine.words.checked_sub(1) {
            blocks.give(first as usize, 1);
        }
        let why = trouble.unwrap_or_else(|| format!("rank {failed} of comm, on whose host it is, has none"));
        return Err(Error::new(Class::NoMem, format!("no memory for the window of {} bytes: {why}", host.bytes)));
    }
    let [first, number, token, _] = offers[host.leader()];
    let words = match first.checked_sub(1).and_then(|first| Some((first as usize, blocks.open(first as usize, 1)?))) {
        Some((first, block)) => WindowWords::Shared { block, blocks: blocks.clone(), first, is_mine: leads },
        None => WindowWords::own(),
    };
    if !allocates {
        return Ok((words, WindowMemory::None));
    }
    let wants = words.is_shared() || plan.flavor == Flavor::Shared;
    if !leads && wants && number > 0 {
        let ticket = Ticket { number: number as u32 - 1, token };
        let leader = comm.local.peer(host.ranks[0]);
        region = WORLD.enter().endpoint.open_region(leader, ticket, host.bytes).ok();
    }
    let misses = u64::from(region.is_none());
    let missing = tell(plan.call, comm, [misses, 0, 0, 0])?;
    if missing.iter().all(|said| said[0] == 0) {
        let memory = region.map_or(WindowMemory::None, WindowMemory::Region);
        return Ok((words, memory));
    }
    elsewhere(comm, plan, host, words, region.filter(|_| missing_here(host, &missing) == 0))
}

fn missing_here(host: &WindowHost, missing: &[[u64; 4]]) -> u64 {
    host.ranks.iter().map(|&rank| missing[rank as usize][0]).sum()
}

/// Common memory where somebody could not open a region: blocks of the segment for those hosts that have none.
fn elsewhere(
    comm: &Arc<Comm>,
    plan: &Plan,
    host: &WindowHost,
    words: WindowWords,
    region: Option<Region>,
) -> Result<(WindowWords, WindowMemory)> {
    let count = host.bytes.div_ceil(BLOCK_BYTES);
    let leads = host.leader() == comm.rank as usize;
    let blocks = WORLD.enter().endpoint.shared_blocks();
    let wanted = leads && region.is_none();
    let mine = if wanted { blocks.take(count).map_or(0, |first| first as u64 + 1) } else { 0 };
    let offers = tell(plan.call, comm, [mine, 0, 0, 0])?;
    if let Some(region) = region {
        return Ok((words, WindowMemory::Region(region)));
    }
    let first = offers[host.leader()][0].checked_sub(1);
    if let Some((first, block)) = first.and_then(|first| Some((first as usize, blocks.open(first as usize, count)?))) {
        return Ok((words, WindowMemory::Block { block, first, count }));
    }
    if plan.flavor == Flavor::Shared {
        words.give_back();
        let detail = format!("{} bytes cannot be shared: the kernel hands no memory round here", host.bytes);
        return Err(Error::new(Class::RmaShared, detail));
    }
    // Everybody by himself: others come by messages.
    let own = Region::create(plan.size as usize).map_err(|error| Error::new(Class::NoMem, error.to_string()))?;
    Ok((words, WindowMemory::Private(own)))
}

impl WindowWords {
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Shared { .. })
    }
}

impl WindowMemory {
    fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        match self {
            Self::None => std::ptr::null_mut(),
            Self::Region(region) | Self::Private(region) => region.at(offset, bytes),
            Self::Block { block, .. } => block.bytes(offset, bytes),
        }
    }
}

/// The hints of the standard that are given back; others are ignored, as it allows.
fn known_hints(plan: &Plan) -> Info {
    let mut hints = Info::default();
    let defaults = [
        ("no_locks", "false"),
        ("accumulate_ordering", "rar,raw,war,waw"),
        ("accumulate_ops", "same_op_no_op"),
        ("same_size", "false"),
        ("same_disp_unit", "false"),
        ("mpi_accumulate_granularity", "0"),
    ];
    for (key, value) in defaults {
        hints.set(key, plan.info.get(key).unwrap_or(value));
    }
    if plan.flavor == Flavor::Shared {
        hints.set("alloc_shared_noncontig", plan.info.get("alloc_shared_noncontig").unwrap_or("false"));
    }
    if let Some(kinds) = plan.info.get("mpi_memory_alloc_kinds") {
        hints.set("mpi_memory_alloc_kinds", kinds);
    }
    hints
}

/// Frees a window, together with all members; its attributes are deleted already.
pub fn free(handle: usize) -> Result<()> {
    let comm = find(&mut WORLD.enter(), handle)?.0.comm.clone();
    meet("MPI_Win_free", &comm)?;
    {
        let mut guard = WORLD.enter();
        let World { windows, endpoint, .. } = &mut *guard;
        let mut window = windows.table.remove(handle)?;
        windows.live.retain(|live| *live != handle);
        window.service.reap(endpoint);
        window.service.close(endpoint);
        if let WindowMemory::Block { first, count, .. } = window.memory
            && window.host[0] as usize == window.me()
        {
            endpoint.shared_blocks().give(first, count);
        }
        window.words.give_back();
    }
    forget_comm(&comm);
    Ok(())
}

/// Refuses to free a window with an open epoch.
pub fn check_free(handle: usize) -> Result<()> {
    let mut guard = WORLD.enter();
    let (window, _) = find(&mut guard, handle)?;
    match window.open_epoch() {
        Some(why) => Err(Error::new(Class::RmaSync, format!("{}: {why}", window.display_name()))),
        None => Ok(()),
    }
}
