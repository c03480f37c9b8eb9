//! An arena as one process of one side has it: the shared memory, the memory of the side, the memory of the process.
//!
//! ARENA-LIVES: references into an arena are `'static` in type. They are valid from [`Arena::open`] to
//! [`Arena::close`], which is called only when the process holds no slot of the arena any more; whoever uses a slot
//! holds it.

use super::bytes::StreamRing;
use super::lines::{KernelCounts, OwnSlot, SideListener, SlotDirection};
use crate::kernel;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use weft_wire::stream::arena::{
    BYTES, LISTENERS, MAGIC, RING_BYTES, SLOTS, VERSION, direction_at, header, listener_at, ring_at,
};

const OWN_BYTES: usize = SLOTS as usize * size_of::<OwnSlot>();
const TOKEN_BYTES: usize = SLOTS as usize * size_of::<AtomicU32>();
/// No listener was free for this process.
const DEAF: u32 = u32::MAX;

/// A place for one arena. A child by fork gets a copy of the place, with the same mappings.
pub struct Arena {
    /// 0 when vacant.
    name: AtomicU64,
    base: AtomicPtr<u8>,
    own: AtomicPtr<OwnSlot>,
    tokens: AtomicPtr<AtomicU32>,
    side: AtomicU32,
    listener: AtomicU32,
    /// Slots that this process holds.
    pub held: AtomicU32,
    /// No further slot comes.
    pub retired: AtomicU32,
    strange: AtomicU32,
}

/// Takes away a mapping whose arena did not come about.
fn discard(mapped: std::io::Result<*mut u8>, bytes: usize) {
    if let Ok(at) = mapped {
        // SAFETY: just mapped, and nobody knows it.
        unsafe { kernel::unmap(at, bytes) };
    }
}

impl Arena {
    pub const fn vacant() -> Self {
        Self {
            name: AtomicU64::new(0),
            base: AtomicPtr::new(std::ptr::null_mut()),
            own: AtomicPtr::new(std::ptr::null_mut()),
            tokens: AtomicPtr::new(std::ptr::null_mut()),
            side: AtomicU32::new(0),
            listener: AtomicU32::new(DEAF),
            held: AtomicU32::new(0),
            retired: AtomicU32::new(0),
            strange: AtomicU32::new(0),
        }
    }

    /// 0 when vacant.
    #[inline]
    pub fn name(&self) -> u64 {
        self.name.load(Ordering::SeqCst)
    }

    #[inline(always)]
    pub fn side(&self) -> usize {
        (self.side.load(Ordering::Relaxed) & 1) as usize
    }

    /// Maps the arena `name` for one side. False when the memory is not such an arena ([`Self::was_strange`]), or there
    /// is no room for it. The descriptor stays the caller's.
    pub fn open(&self, memory: RawFd, name: u64, side: u32) -> bool {
        let is_sealed = kernel::is_sealed(memory, BYTES);
        self.strange.store(u32::from(!is_sealed), Ordering::Relaxed);
        if !is_sealed {
            return false;
        }
        let base = kernel::map_shared(Some(memory), BYTES);
        let own = kernel::map_shared(None, OWN_BYTES);
        let tokens = kernel::map_private(TOKEN_BYTES);
        let (Ok(at), Ok(own_at), Ok(tokens_at)) = (&base, &own, &tokens) else {
            discard(base, BYTES);
            discard(own, OWN_BYTES);
            discard(tokens, TOKEN_BYTES);
            return false;
        };
        kernel::without_dump(*at, BYTES);
        self.base.store(*at, Ordering::Relaxed);
        self.own.store(own_at.cast(), Ordering::Relaxed);
        self.tokens.store(tokens_at.cast(), Ordering::Relaxed);
        self.side.store(side, Ordering::Relaxed);
        self.held.store(0, Ordering::Relaxed);
        self.retired.store(0, Ordering::Relaxed);
        if !self.is_arena(name) {
            self.strange.store(1, Ordering::Relaxed);
            discard(base, BYTES);
            discard(own, OWN_BYTES);
            discard(tokens, TOKEN_BYTES);
            return false;
        }
        // Before either side can send into a ring: publishers fence, and sleepers need not interrupt them. (The locks
        // do.)
        self.header(header::FENCES).store(1, Ordering::SeqCst);
        let _ = kernel::register_for_barriers();
        self.claim_listener();
        self.name.store(name, Ordering::Release);
        true
    }

    /// Whether the memory that was to be opened last is no such arena: one of another version.
    pub fn was_strange(&self) -> bool {
        self.strange.load(Ordering::Relaxed) != 0
    }

    fn is_arena(&self, name: u64) -> bool {
        let long = |at| u64::from(self.header(at).load(Ordering::Relaxed));
        let word = |at| long(at) | long(at + 4) << 32;
        word(header::MAGIC) == MAGIC
            && long(header::VERSION) == u64::from(VERSION)
            && long(header::SLOTS) == u64::from(SLOTS)
            && word(header::NAME) == name
    }

    /// Makes it look vacant; answers what [`Self::show`] needs to undo that.
    pub fn hide(&self) -> u64 {
        self.name.swap(0, Ordering::SeqCst)
    }

    pub fn show(&self, name: u64) {
        self.name.store(name, Ordering::SeqCst);
    }

    /// Unmaps.
    ///
    /// # Safety
    /// It is hidden, this process holds no slot of it, and nobody here looks at it (ARENA-LIVES).
    pub unsafe fn close(&self) {
        let taken = |place: &AtomicPtr<u8>| place.swap(std::ptr::null_mut(), Ordering::Relaxed);
        discard(Ok(taken(&self.base)), BYTES);
        discard(Ok(self.own.swap(std::ptr::null_mut(), Ordering::Relaxed).cast()), OWN_BYTES);
        discard(Ok(self.tokens.swap(std::ptr::null_mut(), Ordering::Relaxed).cast()), TOKEN_BYTES);
    }

    /// # Safety
    /// A `T` stands at the offset, aligned, and is made of atomics; the arena is open (ARENA-LIVES).
    #[inline(always)]
    unsafe fn at<T>(&self, offset: usize) -> &'static T {
        // SAFETY: the caller's.
        unsafe { &*self.base.load(Ordering::Relaxed).add(offset).cast::<T>() }
    }

    fn header(&self, at: usize) -> &'static AtomicU32 {
        // SAFETY: the header is a page of words.
        unsafe { self.at(at) }
    }

    /// Whether publishers must fence.
    #[inline(always)]
    pub fn fences(&self) -> bool {
        self.header(header::FENCES).load(Ordering::Relaxed) != 0
    }

    /// The direction in which `side` sends.
    #[inline(always)]
    pub fn direction(&self, slot: u32, side: usize) -> &'static SlotDirection {
        assert!(slot < SLOTS && side < 2);
        // SAFETY: inside, by the geometry; lines of atomics, checked against it.
        unsafe { self.at(direction_at(slot, side)) }
    }

    /// What the processes of `side` have done by the kernel on connections without a slot.
    pub fn by_kernel(&self, side: usize) -> &'static KernelCounts {
        // SAFETY: inside of the header, by the geometry; lines of atomics, checked against it.
        unsafe { self.at(header::kernel(side & 1)) }
    }

    #[inline(always)]
    pub fn ring(&self, slot: u32, side: usize) -> StreamRing<'static> {
        assert!(slot < SLOTS && side < 2);
        // SAFETY: inside, by the geometry; a power of two.
        unsafe { StreamRing::new(self.base.load(Ordering::Relaxed).add(ring_at(slot, side)), RING_BYTES) }
    }

    #[inline(always)]
    pub fn listeners(&self, side: usize) -> &'static [SideListener] {
        // SAFETY: inside, by the geometry: so many of them in a row.
        unsafe { std::slice::from_raw_parts(self.at::<SideListener>(listener_at(side & 1, 0)), LISTENERS) }
    }

    #[inline(always)]
    pub fn own(&self, slot: u32) -> &'static OwnSlot {
        assert!(slot < SLOTS);
        // SAFETY: there are so many; zero is a valid one.
        unsafe { &*self.own.load(Ordering::Relaxed).add(slot as usize) }
    }

    #[inline(always)]
    pub fn token(&self, slot: u32) -> &'static AtomicU32 {
        assert!(slot < SLOTS);
        // SAFETY: there are so many; zero is a valid one.
        unsafe { &*self.tokens.load(Ordering::Relaxed).add(slot as usize) }
    }

    /// Where this process is told of active slots; `None` when too many processes share the side.
    #[inline]
    pub fn listener(&self) -> Option<(usize, &'static SideListener)> {
        let index = self.listener.load(Ordering::Relaxed) as usize;
        self.listeners(self.side()).get(index).map(|listener| (index, listener))
    }

    /// Takes a listener that nobody, or a dead process, has: at the opening, and in the child of a fork.
    pub fn claim_listener(&self) {
        let me = kernel::process();
        let found = (0..LISTENERS).find(|index| {
            let claim = self.header(header::claim(self.side(), *index));
            let before = claim.load(Ordering::Relaxed);
            (before == 0 || !kernel::is_alive(before))
                && claim.compare_exchange(before, me, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        });
        self.listener.store(found.map_or(DEAF, |index| index as u32), Ordering::Relaxed);
    }

    /// The processes that say they share a side: numbers that a peer may have made up.
    pub fn processes(&self, side: usize) -> impl Iterator<Item = u32> {
        (0..LISTENERS).map(move |index| self.header(header::claim(side, index)).load(Ordering::Relaxed))
    }

    /// Nobody has this side any more, whoever says so.
    pub fn forget_processes(&self, side: usize) {
        for listener in 0..LISTENERS {
            self.header(header::claim(side, listener)).store(0, Ordering::SeqCst);
        }
    }

    /// Gives the pages of both rings back.
    ///
    /// # Safety
    /// Neither side uses the slot any more.
    pub unsafe fn forget_rings(&self, slot: u32) {
        let rings = self.base.load(Ordering::Relaxed).wrapping_add(ring_at(slot, 0));
        // SAFETY: the two rings of a slot lie side by side in the mapping.
        unsafe { kernel::forget(rings, 2 * RING_BYTES) };
    }
}
