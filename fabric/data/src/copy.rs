//! The loops that copy blocks between a program's buffer and packed bytes, either way.
//!
//! A loop is compiled for each way to copy a block (`CopiedBlock`), so that nothing is decided block by block. There
//! are four: blocks at listed displacements, two levels of loops, the same in patches, and a column that is paced.
//!
//! SAFETY invariant COPY, which every unsafe function here relies on: each block that the arguments describe is valid
//! in the buffer and in the packed bytes, for reading on the side that is read and for writing on the other, and the
//! sides do not overlap.

use std::ptr::copy_nonoverlapping;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Lines at this distance, or a multiple of it, share one or two sets of a first cache with 4 KiB a way.
const SAME_SET: usize = 2048;
/// Lines that such a set holds, more or less.
const WAYS: usize = 8;
/// Lines that the sets of larger first caches hold: of fewer none need be thrown out.
const MOST_LINES: usize = 64;

/// One level of a nest of loops: how often, and how far apart on either side.
#[derive(Clone, Copy)]
pub(super) struct Level {
    pub count: usize,
    pub buffer: isize,
    pub packed: isize,
}

impl Level {
    const ONCE: Self = Self { count: 1, buffer: 0, packed: 0 };
}

/// How one block is copied.
trait CopiedBlock: Copy {
    /// # Safety
    /// Invariant COPY for this block.
    unsafe fn copy(self, from: *const u8, to: *mut u8);
}

/// A block of 1, 2 or 4 `PARTS` of `WORD` bytes each. Parts overlap where the block is shorter.
#[derive(Clone, Copy)]
struct WordBlock<const WORD: usize, const PARTS: usize>(usize);

impl<const WORD: usize, const PARTS: usize> CopiedBlock for WordBlock<WORD, PARTS> {
    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // SAFETY: COPY; every part lies in the block, as `by_length` chooses the parts.
        let word = |at: usize| unsafe { copy_nonoverlapping(from.add(at), to.add(at), WORD) };
        word(0);
        if PARTS == 4 {
            word(WORD);
            word(self.0 - 2 * WORD);
        }
        if PARTS > 1 {
            word(self.0 - WORD);
        }
    }
}

/// A block that is worth a call.
#[derive(Clone, Copy)]
struct Long(usize);

impl CopiedBlock for Long {
    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // SAFETY: COPY.
        unsafe { weft_fabric::copy(from, to, self.0) };
    }
}

/// What is done with blocks of one length.
trait BlockJob {
    /// # Safety
    /// Invariant COPY for all blocks of the job, which have the length of this one.
    unsafe fn work(self, block: impl CopiedBlock);
}

/// # Safety
/// Invariant COPY for all blocks of the job, which are `len` bytes long.
#[inline(always)]
unsafe fn by_length(len: usize, job: impl BlockJob) {
    // SAFETY: COPY is handed on; each kind of block covers exactly `len` bytes.
    unsafe {
        match len {
            0 => {}
            1 => job.work(WordBlock::<1, 1>(len)),
            2 => job.work(WordBlock::<2, 1>(len)),
            3 => job.work(WordBlock::<2, 2>(len)),
            4 => job.work(WordBlock::<4, 1>(len)),
            5..=7 => job.work(WordBlock::<4, 2>(len)),
            8 => job.work(WordBlock::<8, 1>(len)),
            9..=15 => job.work(WordBlock::<8, 2>(len)),
            16 => job.work(WordBlock::<16, 1>(len)),
            17..=32 => job.work(WordBlock::<16, 2>(len)),
            33..=64 => job.work(WordBlock::<16, 4>(len)),
            _ => job.work(Long(len)),
        }
    }
}

/// Copies one block, to the packed bytes (`PACK`) or back.
///
/// # Safety
/// Invariant COPY.
#[inline(always)]
unsafe fn copy_one<const PACK: bool>(block: impl CopiedBlock, buffer: *mut u8, packed: *mut u8) {
    let (from, to) = if PACK { (buffer, packed) } else { (packed, buffer) };
    // SAFETY: COPY.
    unsafe { block.copy(from, to) };
}

struct One<const PACK: bool> {
    buffer: *mut u8,
    packed: *mut u8,
}

impl<const PACK: bool> BlockJob for One<PACK> {
    #[inline(always)]
    unsafe fn work(self, block: impl CopiedBlock) {
        // SAFETY: COPY.
        unsafe { copy_one::<PACK>(block, self.buffer, self.packed) };
    }
}

/// One block.
///
/// # Safety
/// Invariant COPY.
#[inline]
pub(super) unsafe fn run<const PACK: bool>(buffer: *mut u8, packed: *mut u8, len: usize) {
    // SAFETY: COPY.
    unsafe { by_length(len, One::<PACK> { buffer, packed }) };
}

/// Blocks at a list of displacements, side by side when packed.
struct ListedBlocks<'a, const PACK: bool> {
    buffer: *mut u8,
    packed: *mut u8,
    displacements: &'a [i32],
    len: usize,
}

impl<const PACK: bool> BlockJob for ListedBlocks<'_, PACK> {
    #[inline(always)]
    unsafe fn work(self, block: impl CopiedBlock) {
        let mut packed = self.packed;
        for &displacement in self.displacements {
            // SAFETY: COPY.
            unsafe { copy_one::<PACK>(block, self.buffer.wrapping_offset(displacement as isize), packed) };
            packed = packed.wrapping_add(self.len);
        }
    }
}

/// Blocks of `len` bytes at these displacements in the buffer.
///
/// # Safety
/// Invariant COPY.
pub(super) unsafe fn listed<const PACK: bool>(buffer: *mut u8, packed: *mut u8, len: usize, displacements: &[i32]) {
    // SAFETY: COPY.
    unsafe { by_length(len, ListedBlocks::<PACK> { buffer, packed, displacements, len }) };
}

/// Two levels of loops.
struct Nest<const PACK: bool> {
    buffer: *mut u8,
    packed: *mut u8,
    outer: Level,
    inner: Level,
}

impl<const PACK: bool> Nest<PACK> {
    /// Where a block is on both sides.
    #[inline(always)]
    fn place(&self, outer: usize, inner: usize) -> (*mut u8, *mut u8) {
        let offset = |by_outer: isize, by_inner: isize| {
            (outer as isize).wrapping_mul(by_outer).wrapping_add((inner as isize).wrapping_mul(by_inner))
        };
        (
            self.buffer.wrapping_offset(offset(self.outer.buffer, self.inner.buffer)),
            self.packed.wrapping_offset(offset(self.outer.packed, self.inner.packed)),
        )
    }

    /// Some steps of the inner level in one of the outer.
    ///
    /// # Safety
    /// Invariant COPY for these blocks.
    #[inline(always)]
    unsafe fn column(&self, block: impl CopiedBlock, outer: usize, first: usize, steps: usize) {
        let (mut buffer, mut packed) = self.place(outer, first);
        for _ in 0..steps {
            // SAFETY: COPY.
            unsafe { copy_one::<PACK>(block, buffer, packed) };
            buffer = buffer.wrapping_offset(self.inner.buffer);
            packed = packed.wrapping_offset(self.inner.packed);
        }
    }
}

impl<const PACK: bool> BlockJob for Nest<PACK> {
    #[inline(always)]
    unsafe fn work(self, block: impl CopiedBlock) {
        for outer in 0..self.outer.count {
            // SAFETY: COPY is handed on.
            unsafe { self.column(block, outer, 0, self.inner.count) };
        }
    }
}

/// Columns one after the other that share lines, which have left the cache when the next column comes
/// ([`is_transposed`]): as many columns as share a line are copied together, a few rows at a time, which stay in the
/// cache meanwhile.
struct Patches<const PACK: bool>(Nest<PACK>);

impl<const PACK: bool> BlockJob for Patches<PACK> {
    #[inline(never)]
    unsafe fn work(self, block: impl CopiedBlock) {
        let Self(nest) = self;
        let (columns, rows) = (nest.outer.count, nest.inner.count);
        let together = (LINE / nest.outer.buffer.unsigned_abs().max(1)).clamp(2, 16);
        for row in (0..rows).step_by(WAYS) {
            for first in (0..columns).step_by(together) {
                for column in first..columns.min(first + together) {
                    // SAFETY: COPY is handed on. The usual number of rows is known to the compiler.
                    unsafe {
                        match rows - row {
                            few @ 0..WAYS => nest.column(block, column, row, few),
                            _ => nest.column(block, column, row, WAYS),
                        }
                    }
                }
            }
        }
    }
}

/// One level whose lines share a set of the first cache ([`shares_sets`]). When many of them are asked for at a time
/// they throw each other out before they are used. So `SPARE` stores follow each block: the processor has room for so
/// many stores only, and runs ahead less far. The count is read each time, which keeps the compiler from unrolling the
/// loop: the processor foresees the lines of one instruction, not those of four by turns.
struct Paced<const PACK: bool, const SPARE: usize> {
    buffer: *mut u8,
    packed: *mut u8,
    level: Level,
}

impl<const PACK: bool, const SPARE: usize> BlockJob for Paced<PACK, SPARE> {
    #[inline(never)]
    unsafe fn work(self, block: impl CopiedBlock) {
        let (mut buffer, mut packed) = (self.buffer, self.packed);
        let (count, mut done, mut spare) = (self.level.count, 0, 0);
        // SAFETY: our own memory, and COPY for the block.
        unsafe {
            while done < (&raw const count).read_volatile() {
                copy_one::<PACK>(block, buffer, packed);
                buffer = buffer.wrapping_offset(self.level.buffer);
                packed = packed.wrapping_offset(self.level.packed);
                done += 1;
                (0..SPARE).for_each(|_| (&raw mut spare).write_volatile(done));
            }
        }
    }
}

/// Some blocks of `len` bytes in one level, which is neither paced nor cut: they stay in the first cache.
///
/// # Safety
/// Invariant COPY.
pub(super) unsafe fn few<const PACK: bool>(buffer: *mut u8, packed: *mut u8, len: usize, level: Level) {
    // SAFETY: COPY.
    unsafe { by_length(len, Nest::<PACK> { buffer, packed, outer: Level::ONCE, inner: level }) };
}

/// Blocks of `len` bytes in two levels of loops.
///
/// # Safety
/// Invariant COPY.
pub(super) unsafe fn nest<const PACK: bool>(buffer: *mut u8, packed: *mut u8, len: usize, outer: Level, inner: Level) {
    let nest = || Nest::<PACK> { buffer, packed, outer, inner };
    // SAFETY: COPY is handed on, in the end for each step of the outer level.
    unsafe {
        if len > LINE {
            return long(nest(), len);
        }
        if is_transposed(len, outer, inner) {
            return by_length(len, Patches(nest()));
        }
        if !shares_sets(len, inner) {
            return by_length(len, nest());
        }
        for step in 0..outer.count as isize {
            let buffer = buffer.wrapping_offset(step.wrapping_mul(outer.buffer));
            let packed = packed.wrapping_offset(step.wrapping_mul(outer.packed));
            match PACK {
                true => by_length(len, Paced::<PACK, 5> { buffer, packed, level: inner }),
                false if len <= 16 => by_length(len, Paced::<PACK, 2> { buffer, packed, level: inner }),
                // Stores enough without spare ones.
                false => Paced::<PACK, 0> { buffer, packed, level: inner }.work(WordBlock::<8, 4>(len)),
            }
        }
    }
}

/// A nest of long blocks, apart from the loops of short ones: among them it is slower by 3%.
///
/// # Safety
/// Invariant COPY.
#[inline(never)]
unsafe fn long<const PACK: bool>(nest: Nest<PACK>, len: usize) {
    // SAFETY: COPY.
    unsafe { nest.work(Long(len)) };
}

/// Whether columns one after the other share lines.
fn is_transposed(len: usize, outer: Level, inner: Level) -> bool {
    len < LINE && outer.count > 1 && outer.buffer.unsigned_abs() < LINE && inner.buffer.unsigned_abs() >= LINE
}

/// Whether the lines of a column share a set of the first cache, and are too many for it.
fn shares_sets(len: usize, column: Level) -> bool {
    let stride = column.buffer.unsigned_abs();
    len <= LINE / 2 && column.count > MOST_LINES && stride > 0 && stride.is_multiple_of(SAME_SET)
}
