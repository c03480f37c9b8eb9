//! Connections to other hosts, as the process has them whose they are: by the gateway that the rendezvous has given to
//! it.
//!
//! A process has one gateway, until it ends. It comes as four descriptors, one in each of as many packets, before the
//! first connection that is to go by it. What is here lives as long as the process, as [`device::Arena`] says of
//! arenas.

use super::connection::Stream;
use super::guards::me;
use super::pulse::Pulse;
use std::os::fd::{IntoRawFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};
use weft_device::kernel::{self, Descriptor};
use weft_device::shm::stream::{Arena, Gateway, PROGRAM};
use weft_device::xdp::SharedLane;
use weft_wire::stream::packet::GATEWAY_PARTS;

static GATEWAY: AtomicPtr<Gateway> = AtomicPtr::new(std::ptr::null_mut());
/// Its arena, once there is a connection.
static ARENA: AtomicPtr<Arena> = AtomicPtr::new(std::ptr::null_mut());
/// The gateway that goes with the arena, also where the lane was given up; and how the rendezvous is, by its beat.
static WATCHED: AtomicPtr<Gateway> = AtomicPtr::new(std::ptr::null_mut());
static PULSE: Pulse = Pulse::new();
/// The arena of a gateway that this process could not take: what is to go by it stays with the kernel.
static REFUSED: AtomicU64 = AtomicU64::new(0);

const NONE: RawFd = -1;
const PARTS: usize = GATEWAY_PARTS as usize;
/// Those that have come.
static COME: [AtomicI32; PARTS] = [const { AtomicI32::new(NONE) }; PARTS];

#[inline(always)]
fn gateway() -> Option<(&'static Gateway, &'static Arena)> {
    let (gateway, arena) = (GATEWAY.load(Ordering::Acquire), ARENA.load(Ordering::Acquire));
    // SAFETY: what is there stays there, and is only read.
    if gateway.is_null() || arena.is_null() { None } else { unsafe { Some((&*gateway, &*arena)) } }
}

/// One of the parts of a gateway; its descriptor is ours. By the one thread that talks to the rendezvous.
pub(super) fn take_part(arena: u64, lane: u32, part: u32, descriptor: Descriptor) {
    let Some(place) = COME.get(part as usize) else { return };
    let before = place.swap(descriptor.into_raw_fd(), Ordering::Relaxed);
    if before != NONE {
        kernel::close(before);
    }
    if part + 1 < GATEWAY_PARTS {
        return;
    }
    let [memory, lanes, receiver, sender] = std::array::from_fn(|part| COME[part].swap(NONE, Ordering::Relaxed));
    let is_first = GATEWAY.load(Ordering::Relaxed).is_null();
    let is_whole = [memory, lanes, receiver, sender].iter().all(|descriptor| *descriptor != NONE);
    let opened = if is_first && is_whole {
        open(memory, SharedLane::adopt(lanes, receiver, sender, lane))
    } else {
        [lanes, receiver, sender].into_iter().filter(|descriptor| *descriptor != NONE).for_each(kernel::close);
        None
    };
    if memory != NONE {
        kernel::close(memory);
    }
    // Parts may come twice, where the mail behind them did not.
    // SAFETY: as in `gateway`.
    let known = opened.or_else(|| unsafe { GATEWAY.load(Ordering::Acquire).as_ref() });
    if known.is_none_or(|gateway| gateway.names() != (lane, arena)) {
        REFUSED.store(arena, Ordering::Relaxed);
    }
}

fn open(memory: RawFd, lane: std::io::Result<SharedLane>) -> Option<&'static Gateway> {
    let place = kernel::map_private(size_of::<Gateway>()).ok()?.cast::<Gateway>();
    let gateway = Gateway::open(memory, lane.ok()?)?;
    // SAFETY: new pages, aligned, with room for it.
    unsafe { place.write(gateway) };
    GATEWAY.store(place, Ordering::Release);
    // SAFETY: just written, and never taken away.
    Some(unsafe { &*place })
}

/// Whether this process has, or had, a gateway.
pub(super) fn has_gateway() -> bool {
    !WATCHED.load(Ordering::Acquire).is_null()
}

/// Whether what is to go by this arena cannot.
pub(super) fn refuses(arena: u64) -> bool {
    REFUSED.load(Ordering::Relaxed) == arena
}

/// This process has a new arena: perhaps that of its gateway.
pub(super) fn note_arena(arena: &'static Arena) {
    let gateway = GATEWAY.load(Ordering::Acquire);
    // SAFETY: as in `gateway`.
    let is_its = !gateway.is_null() && unsafe { &*gateway }.names().1 == arena.name();
    if is_its && arena.side() == PROGRAM {
        WATCHED.store(gateway, Ordering::Release);
        ARENA.store(std::ptr::from_ref(arena).cast_mut(), Ordering::Release);
    }
}

/// Whether whoever drives may look into this arena at any time.
pub(super) fn keeps(arena: &Arena) -> bool {
    std::ptr::eq(arena, ARENA.load(Ordering::Acquire))
}

/// In the child of a fork: it has no connection to another host, and the lane is its parent's.
pub(super) fn forked() {
    let gateway = GATEWAY.swap(std::ptr::null_mut(), Ordering::Relaxed);
    ARENA.store(std::ptr::null_mut(), Ordering::Relaxed);
    WATCHED.store(std::ptr::null_mut(), Ordering::Relaxed);
    COME.iter().for_each(|part| {
        let descriptor = part.swap(NONE, Ordering::Relaxed);
        if descriptor != NONE {
            kernel::close(descriptor);
        }
    });
    if !gateway.is_null() {
        // SAFETY: as in `gateway`.
        unsafe { &*gateway }.lane().descriptors().into_iter().for_each(kernel::close);
    }
}

/// The lowest descriptor of ours from `first` to `last`.
#[inline]
pub(super) fn first_of_ours(first: RawFd, last: RawFd) -> Option<RawFd> {
    let gateway = GATEWAY.load(Ordering::Acquire);
    if gateway.is_null() {
        return None;
    }
    // SAFETY: as in `gateway`.
    let all = unsafe { &*gateway }.lane().descriptors();
    all.into_iter().filter(|descriptor| (first..=last).contains(descriptor)).min()
}

/// The program is about to put another file in the place of `descriptor`: if that is the lane's, only the rendezvous
/// moves the bytes from now on, some milliseconds later.
pub(super) fn give_up(descriptor: RawFd) {
    if first_of_ours(descriptor, descriptor).is_some() {
        GATEWAY.store(std::ptr::null_mut(), Ordering::SeqCst);
    }
}

/// Takes what has come from other hosts; true if something has. Without a gateway, or when nothing has come: few loads.
#[inline(always)]
pub(super) fn drive() -> bool {
    gateway().is_some_and(|(gateway, arena)| gateway.lane().has_arrived() && gateway.drive(arena, me()))
}

/// Whether something has come that [`drive`] would take.
#[inline(always)]
pub(super) fn has_arrived() -> bool {
    gateway().is_some_and(|(gateway, _)| gateway.lane().has_arrived())
}

/// Whether this process has connections to other hosts.
#[inline]
pub(super) fn has_any() -> bool {
    let arena = ARENA.load(Ordering::Acquire);
    // SAFETY: as in `gateway`.
    !arena.is_null() && unsafe { &*arena }.held.load(Ordering::Relaxed) > 0
}

/// Whether the rendezvous has not looked after this process's gateway for seconds, as looks have found since.
pub(super) fn is_deserted() -> bool {
    let gateway = WATCHED.load(Ordering::Acquire);
    // SAFETY: as in `gateway`.
    !gateway.is_null() && PULSE.has_stopped(kernel::now(), || unsafe { &*gateway }.last_beat())
}

/// What becomes readable when something comes from other hosts, if this process has connections to them.
#[inline]
pub(super) fn descriptor() -> Option<RawFd> {
    gateway().map(|(gateway, _)| gateway.lane().receiver())
}

impl Stream {
    /// Whether the other end is on another host.
    #[inline(always)]
    pub fn is_far(&self) -> bool {
        std::ptr::eq(self.arena, ARENA.load(Ordering::Relaxed))
    }

    /// Tells the other host what is new: bytes that were published, and how this end stands. To be called after each
    /// such change of a stream that is far.
    #[inline]
    pub fn tell(&self) {
        if let Some((gateway, arena)) = gateway().filter(|_| self.is_far()) {
            gateway.tell(arena, self.slot, me());
        }
    }

    /// Whether the other host knows all of that, or is not to be told any more.
    pub fn is_told(&self) -> bool {
        let far = gateway().filter(|_| self.is_far());
        // Without its gateway nobody knows.
        far.map_or(!self.is_far(), |(gateway, arena)| {
            gateway.is_left(self.slot) || gateway.is_confirmed(arena, self.slot)
        })
    }
}
