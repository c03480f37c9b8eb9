//! Walks the runs of a layout that hold a given range of the packed bytes.
//!
//! Addresses are made with wrapping arithmetic, so that a null base with absolute displacements works like any other.
//!
//! SAFETY invariant WALK, which every unsafe function here relies on: the memory that `base`, the layout and the count
//! describe is the caller's, valid for what the sink does with it, and the range lies within the packed size.

use super::layout::{FEW, Layout, LayoutBlock, LayoutKind};

/// So many, so many bytes apart.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    pub count: usize,
    pub stride: i64,
}

impl Steps {
    const ONCE: Self = Self { count: 1, stride: 0 };

    /// The places of all steps from `at` on.
    pub fn places(self, at: *mut u8) -> impl Iterator<Item = *mut u8> {
        (0..self.count as i64).map(move |i| at.wrapping_offset(i.wrapping_mul(self.stride) as isize))
    }
}

/// Takes the runs in packed order; it keeps its own position in the packed bytes. Where many are told at once, the
/// packed order is that of the provided function; in which order they are used is the sink's own affair.
pub(crate) trait RunSink {
    /// # Safety
    /// `len` bytes at `at` are valid for what the sink does (invariant WALK).
    unsafe fn run(&mut self, at: *mut u8, len: usize);

    /// Blocks of one length in two levels of loops.
    ///
    /// # Safety
    /// As `run`, for each of the blocks.
    unsafe fn nest(&mut self, at: *mut u8, block: usize, outer: Steps, inner: Steps) {
        for place in outer.places(at).flat_map(|at| inner.places(at)) {
            // SAFETY: WALK; each block is one of those that the caller vouches for.
            unsafe { self.run(place, block) };
        }
    }

    /// Blocks of one length at these displacements.
    ///
    /// # Safety
    /// As `run`, for each of the blocks.
    unsafe fn listed(&mut self, at: *mut u8, block: usize, displacements: &[i32]) {
        for &displacement in displacements {
            // SAFETY: as `nest`.
            unsafe { self.run(at.wrapping_offset(displacement as isize), block) };
        }
    }

    /// Copies of a few blocks, each `size` bytes when packed.
    ///
    /// # Safety
    /// As `run`, for each block of each copy.
    unsafe fn repeated(&mut self, at: *mut u8, list: &[LayoutBlock], _size: usize, copies: Steps) {
        // SAFETY: handed on.
        unsafe { one_by_one(self, at, list, copies) };
    }
}

/// Copies of a few blocks, in packed order.
///
/// # Safety
/// As [`RunSink::repeated`].
pub(crate) unsafe fn one_by_one<S: RunSink + ?Sized>(sink: &mut S, at: *mut u8, list: &[LayoutBlock], copies: Steps) {
    for place in copies.places(at) {
        for block in list {
            // SAFETY: WALK; each block is one of those that the caller vouches for.
            unsafe { sink.run(place.wrapping_offset(block.disp as isize), block.len as usize) };
        }
    }
}

/// The packed bytes `from..to` of `count` copies of the layout, `extent` bytes apart.
///
/// # Safety
/// Invariant WALK.
pub(crate) unsafe fn copies<S: RunSink>(
    layout: &Layout,
    extent: i64,
    base: *mut u8,
    count: i64,
    from: i64,
    to: i64,
    sink: &mut S,
) {
    if from >= to {
        return;
    }
    let at = base.wrapping_offset(layout.disp as isize);
    // SAFETY: WALK is handed on unchanged: each form below describes the same bytes.
    unsafe {
        match layout.kind {
            LayoutKind::Empty => {}
            LayoutKind::Run if count == 1 || extent == layout.size => {
                sink.run(at.wrapping_offset(from as isize), (to - from) as usize);
            }
            LayoutKind::Run => strided(at, layout.size, extent, from, to, sink),
            LayoutKind::Strided { block, stride, count: n } if extent == stride.wrapping_mul(n) => {
                strided(at, block, stride, from, to, sink);
            }
            _ => looped(base, layout, extent, from, to, sink),
        }
    }
}

/// # Safety
/// Invariant WALK.
unsafe fn part<S: RunSink>(layout: &Layout, base: *mut u8, from: i64, to: i64, sink: &mut S) {
    let at = base.wrapping_offset(layout.disp as isize);
    // SAFETY: WALK is handed on: every callee covers the same bytes or the part of them in its range.
    unsafe {
        match &layout.kind {
            LayoutKind::Empty => {}
            LayoutKind::Run => sink.run(at.wrapping_offset(from as isize), (to - from) as usize),
            LayoutKind::Strided { block, stride, .. } => strided(at, *block, *stride, from, to, sink),
            LayoutKind::Loop { stride, body, .. } => looped(at, body, *stride, from, to, sink),
            LayoutKind::Blocks(list) => blocks(list, at, from, to, sink),
            LayoutKind::Listed { block, displacements } => listed(at, *block, displacements, from, to, sink),
            LayoutKind::Seq(parts) => {
                let first = parts.partition_point(|part| part.start <= from) - 1;
                for member in &parts[first..] {
                    if member.start >= to {
                        break;
                    }
                    let (low, high) = ((from - member.start).max(0), (to - member.start).min(member.layout.size));
                    part(&member.layout, at, low, high, sink);
                }
            }
        }
    }
}

/// Copies of `body` one `stride` apart: the cut one at the start, the whole ones, the cut one at the end.
///
/// # Safety
/// Invariant WALK.
unsafe fn looped<S: RunSink>(base: *mut u8, body: &Layout, stride: i64, from: i64, to: i64, sink: &mut S) {
    let place = |i: i64| base.wrapping_offset(i.wrapping_mul(stride) as isize);
    let (mut i, offset) = divide(from, body.size);
    let mut done = from;
    // SAFETY: WALK; `i` and the ranges stay within the range given.
    unsafe {
        if offset != 0 {
            let end = body.size.min(offset + (to - from));
            part(body, place(i), offset, end, sink);
            (i, done) = (i + 1, from + end - offset);
        }
        let whole = (to - done) / body.size;
        whole_copies(base, body, stride, i, whole, sink);
        (i, done) = (i + whole, done + whole * body.size);
        if done < to {
            part(body, place(i), 0, to - done, sink);
        }
    }
}

/// Whole copies of `body`, number `first` and the following.
///
/// # Safety
/// Invariant WALK.
unsafe fn whole_copies<S: RunSink>(base: *mut u8, body: &Layout, stride: i64, first: i64, count: i64, sink: &mut S) {
    let base = base.wrapping_offset(first.wrapping_mul(stride) as isize);
    let (at, copies) = (base.wrapping_offset(body.disp as isize), Steps { count: count as usize, stride });
    // SAFETY: WALK; the copies are within the range that the caller divided.
    unsafe {
        match &body.kind {
            LayoutKind::Strided { block, stride, count } => {
                sink.nest(at, *block as usize, copies, Steps { count: *count as usize, stride: *stride });
            }
            LayoutKind::Blocks(list) if list.len() <= FEW => sink.repeated(at, list, body.size as usize, copies),
            _ => copies.places(base).for_each(|place| part(body, place, 0, body.size, sink)),
        }
    }
}

/// # Safety
/// Invariant WALK.
unsafe fn strided<S: RunSink>(base: *mut u8, block: i64, stride: i64, from: i64, to: i64, sink: &mut S) {
    let place = |i: i64| base.wrapping_offset(i.wrapping_mul(stride) as isize);
    let (mut i, offset) = divide(from, block);
    let mut done = from;
    // SAFETY: WALK; as in `looped`, with runs for bodies.
    unsafe {
        if offset != 0 {
            let len = (block - offset).min(to - from);
            sink.run(place(i).wrapping_offset(offset as isize), len as usize);
            (i, done) = (i + 1, from + len);
        }
        let whole = (to - done) / block;
        if whole > 0 {
            sink.nest(place(i), block as usize, Steps::ONCE, Steps { count: whole as usize, stride });
        }
        (i, done) = (i + whole, done + whole * block);
        if done < to {
            sink.run(place(i), (to - done) as usize);
        }
    }
}

/// # Safety
/// Invariant WALK.
unsafe fn blocks<S: RunSink>(list: &[LayoutBlock], base: *mut u8, from: i64, to: i64, sink: &mut S) {
    let first = list.partition_point(|block| block.start <= from) - 1;
    for block in &list[first..] {
        if block.start >= to {
            break;
        }
        let (low, high) = ((from - block.start).max(0), (to - block.start).min(block.len));
        let at = base.wrapping_offset(block.disp.wrapping_add(low) as isize);
        // SAFETY: WALK; `low..high` is inside this block.
        unsafe { sink.run(at, (high - low) as usize) };
    }
}

/// # Safety
/// Invariant WALK.
unsafe fn listed<S: RunSink>(base: *mut u8, block: i64, displacements: &[i32], from: i64, to: i64, sink: &mut S) {
    let place = |i: i64| base.wrapping_offset(displacements[i as usize] as isize);
    let (mut i, offset) = divide(from, block);
    let mut done = from;
    // SAFETY: WALK; as in `strided`.
    unsafe {
        if offset != 0 {
            let len = (block - offset).min(to - from);
            sink.run(place(i).wrapping_offset(offset as isize), len as usize);
            (i, done) = (i + 1, from + len);
        }
        let whole = (to - done) / block;
        sink.listed(base, block as usize, &displacements[i as usize..(i + whole) as usize]);
        (i, done) = (i + whole, done + whole * block);
        if done < to {
            sink.run(place(i), (to - done) as usize);
        }
    }
}

/// Quotient and remainder; the start of a message, the usual case, without the division.
fn divide(from: i64, size: i64) -> (i64, i64) {
    if from == 0 { (0, 0) } else { (from / size, from % size) }
}
