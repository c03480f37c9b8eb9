//! Memory that a program asks for here, and that can be shown to other processes of the host: messages in it are copied
//! without the kernel, and windows over it are mapped.
//!
//! Blocks lie in *regions*: short ones together in pools, a long one in a region of its own. A block that lies in none
//! (the kernel gave no region, or the block is larger than is good to have filled before it is used) is plain memory,
//! which an interface takes from the C library. Whoever wants to show memory asks [`of`] where it lies, and tells the
//! others.

use crate::region::{Region, Ticket};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Blocks up to this size share pools.
const SHORT_BYTES: usize = 64 << 10;
const POOL_BYTES: usize = 1 << 20;
/// A longer block is better private memory, which the kernel gives huge pages.
const LONGEST_BYTES: usize = 256 << 20;
/// Each takes a descriptor of the process.
const MOST_REGIONS: usize = 128;
/// A cache line: so blocks begin, and so long are the shortest.
const GRAIN: usize = 64;
const PAGE: usize = 4096;

/// A region and the holes in it, in ascending order: offset and bytes.
struct Pool {
    region: Region,
    bytes: usize,
    holes: Vec<(usize, usize)>,
}

impl Pool {
    fn new(bytes: usize) -> Option<Self> {
        let region = Region::create(bytes).ok()?;
        Some(Self { region, bytes, holes: vec![(0, bytes)] })
    }

    /// The first hole that has room.
    fn take(&mut self, bytes: usize, alignment: usize) -> Option<usize> {
        let start = |hole: &(usize, usize)| hole.0.next_multiple_of(alignment);
        let at = self.holes.iter().position(|hole| start(hole) + bytes <= hole.0 + hole.1)?;
        let (from, end) = (start(&self.holes[at]), self.holes[at].0 + self.holes[at].1);
        let (before, after) = ((self.holes[at].0, from - self.holes[at].0), (from + bytes, end - from - bytes));
        self.holes.splice(at..=at, [before, after].into_iter().filter(|hole| hole.1 > 0));
        Some(from)
    }

    fn give(&mut self, from: usize, bytes: usize) {
        let at = self.holes.partition_point(|hole| hole.0 < from);
        self.holes.insert(at, (from, bytes));
        for left in [at, at.wrapping_sub(1)] {
            if let Some(&[a, b]) = self.holes.get(left..left.wrapping_add(2))
                && a.0 + a.1 == b.0
            {
                self.holes.splice(left..left + 2, [(a.0, a.1 + b.1)]);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.holes == [(0, self.bytes)]
    }
}

/// A block, by its address.
struct OwnedBlock {
    /// The key of its pool.
    pool: u64,
    offset: usize,
    bytes: usize,
}

#[derive(Default)]
struct SharedPool {
    pools: BTreeMap<u64, Pool>,
    /// By address.
    blocks: BTreeMap<usize, OwnedBlock>,
    next: u64,
}

/// Blocks that there are, so that programs without any take no lock.
static BLOCKS: AtomicUsize = AtomicUsize::new(0);

static MEMORY: Mutex<SharedPool> = Mutex::new(SharedPool { pools: BTreeMap::new(), blocks: BTreeMap::new(), next: 0 });

fn enter() -> MutexGuard<'static, SharedPool> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where memory lies that others can map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    pub ticket: Ticket,
    /// Of the region.
    pub bytes: usize,
    pub offset: usize,
}

/// A block of at least `bytes`, at a multiple of `alignment` (a power of two); `None` if it has to be plain memory.
pub fn allocate(bytes: usize, alignment: usize) -> Option<*mut u8> {
    if bytes > LONGEST_BYTES || alignment > PAGE {
        return None;
    }
    let (bytes, alignment) = (bytes.max(1).next_multiple_of(GRAIN), alignment.max(GRAIN));
    {
        let mut memory = enter();
        match memory.take(bytes, alignment) {
            Some(address) => return Some(address),
            None if memory.pools.len() >= MOST_REGIONS => return None,
            None => {}
        }
    }
    // The kernel may make all of its pages, and others need the lock meanwhile, if only to send a message.
    let pool = Pool::new(if bytes <= SHORT_BYTES { POOL_BYTES } else { bytes.next_multiple_of(PAGE) })?;
    enter().add(pool, bytes, alignment)
}

/// Gives a block back; `false` if it is none of ours.
pub fn free(address: usize) -> bool {
    let freed = enter().free(address);
    // What has become empty is given to the kernel with the lock left.
    freed.is_some()
}

/// Where `bytes` bytes from an address on lie, if all of them are in one block.
pub fn of(address: usize, bytes: usize) -> Option<Location> {
    if BLOCKS.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let memory = enter();
    let (start, block) = memory.blocks.range(..=address).next_back()?;
    let inside = address - start;
    let pool = memory.pools.get(&block.pool)?;
    let fits = inside.checked_add(bytes)? <= block.bytes;
    fits.then(|| Location { ticket: pool.region.ticket(), bytes: pool.bytes, offset: block.offset + inside })
}

impl SharedPool {
    /// A block in one of the pools that there are. A long one has a pool of its own.
    fn take(&mut self, bytes: usize, alignment: usize) -> Option<*mut u8> {
        if bytes > SHORT_BYTES {
            return None;
        }
        // Short blocks in what is left of a long one's region would keep all of it.
        let mut pools = self.pools.iter_mut().filter(|(_, pool)| pool.bytes == POOL_BYTES);
        let (key, offset) = pools.find_map(|(key, pool)| Some((*key, pool.take(bytes, alignment)?)))?;
        self.note(key, offset, bytes)
    }

    /// A block in a new pool, if there may be one more.
    fn add(&mut self, mut pool: Pool, bytes: usize, alignment: usize) -> Option<*mut u8> {
        if self.pools.len() >= MOST_REGIONS {
            return None;
        }
        let offset = pool.take(bytes, alignment)?;
        self.next += 1;
        self.pools.insert(self.next, pool);
        self.note(self.next, offset, bytes)
    }

    fn note(&mut self, pool: u64, offset: usize, bytes: usize) -> Option<*mut u8> {
        let address = self.pools.get(&pool)?.region.at(offset, bytes);
        self.blocks.insert(address as usize, OwnedBlock { pool, offset, bytes });
        BLOCKS.store(self.blocks.len(), Ordering::Relaxed);
        Some(address)
    }

    /// The pool that is empty by it, if it goes; `None` where there is no such block.
    fn free(&mut self, address: usize) -> Option<Option<Pool>> {
        let OwnedBlock { pool: key, offset, bytes } = self.blocks.remove(&address)?;
        BLOCKS.store(self.blocks.len(), Ordering::Relaxed);
        let Some(pool) = self.pools.get_mut(&key) else { return Some(None) };
        pool.give(offset, bytes);
        // The last pool of short blocks stays: programs that take and free one in a row are many.
        let goes = pool.is_empty() && (pool.bytes != POOL_BYTES || self.pools.len() > 1);
        Some(if goes { self.pools.remove(&key) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap_and_what_is_freed_becomes_one_hole_again() {
        let mut pool = Pool::new(1 << 16).expect("memory");
        let sizes = [64, 4096, 128, 640];
        let places: Vec<usize> = sizes.iter().map(|&bytes| pool.take(bytes, 64).expect("room")).collect();
        assert_eq!(places, [0, 64, 4160, 4288]);
        assert_eq!(pool.take(64, 4096), Some(8192), "aligned");
        assert_eq!(pool.take(1 << 16, 64), None);
        pool.give(8192, 64);
        for at in [1, 3, 0, 2] {
            pool.give(places[at], sizes[at]);
        }
        assert!(pool.is_empty(), "{:?}", pool.holes);
    }

    #[test]
    fn a_block_is_found_by_any_address_inside_and_not_beyond() {
        for bytes in [8, 100_000] {
            let at = allocate(bytes, 256).expect("memory") as usize;
            assert_eq!(at % 256, 0);
            let whole = of(at, bytes).expect("a block");
            let inside = of(at + 4, bytes - 4).expect("its inside");
            assert_eq!((inside.offset, inside.ticket), (whole.offset + 4, whole.ticket));
            assert_eq!(of(at, bytes.next_multiple_of(GRAIN) + 1), None);
            assert!(free(at) && !free(at));
            assert_eq!(of(at, bytes), None);
        }
        assert_eq!(allocate(LONGEST_BYTES + 1, 64), None);
        assert_eq!(allocate(8, 2 * PAGE), None);
    }

    #[test]
    fn what_one_process_writes_into_a_block_is_seen_through_its_ticket() {
        let at = allocate(1000, 64).expect("memory");
        let place = of(at as usize, 1000).expect("a block");
        // A region of this very process, opened as another one would.
        let path = format!("/proc/self/fd/{}", place.ticket.number);
        let file = std::fs::File::open(path).expect("the region");
        use std::os::unix::fs::FileExt;
        // SAFETY: ours.
        unsafe { at.add(999).write(77) };
        let mut byte = [0];
        file.read_exact_at(&mut byte, (PAGE + place.offset + 999) as u64).expect("the byte");
        assert_eq!(byte, [77]);
        assert!(free(at as usize));
    }
}
