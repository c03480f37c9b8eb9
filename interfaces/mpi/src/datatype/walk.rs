//! Walks the runs of a layout that hold a given range of the packed bytes.
//!
//! Addresses are made with wrapping arithmetic, so that a null base with absolute displacements works like any other.
//!
//! SAFETY invariant WALK, which every unsafe function here relies on: the memory that `base`, the layout and the count describe is
//! the caller's, valid for what the sink does with it, and the range lies within the packed size.

use super::layout::{Block, Kind, Layout};

/// Takes the runs in packed order; it keeps its own position in the packed bytes.
pub(crate) trait Sink {
    /// # Safety
    /// `len` bytes at `at` are valid for what the sink does (invariant WALK).
    unsafe fn run(&mut self, at: *mut u8, len: usize);

    /// # Safety
    /// As `run`, for each of `count` blocks.
    unsafe fn strided(&mut self, at: *mut u8, block: usize, stride: i64, count: usize) {
        for i in 0..count {
            // SAFETY: WALK; each block is one of those that the caller vouches for.
            unsafe { self.run(at.wrapping_offset((i as i64).wrapping_mul(stride) as isize), block) };
        }
    }
}

/// The packed bytes `from..to` of `count` copies of the layout, `extent` bytes apart.
///
/// # Safety
/// Invariant WALK.
pub(crate) unsafe fn copies<S: Sink>(
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
            Kind::Empty => {}
            Kind::Run if count == 1 || extent == layout.size => {
                sink.run(at.wrapping_offset(from as isize), (to - from) as usize);
            }
            Kind::Run => strided(at, layout.size, extent, from, to, sink),
            Kind::Strided { block, stride, count: n } if extent == stride.wrapping_mul(n) => {
                strided(at, block, stride, from, to, sink);
            }
            _ => looped(base, layout, extent, from, to, sink),
        }
    }
}

/// # Safety
/// Invariant WALK.
unsafe fn part<S: Sink>(layout: &Layout, base: *mut u8, from: i64, to: i64, sink: &mut S) {
    let at = base.wrapping_offset(layout.disp as isize);
    // SAFETY: WALK is handed on: every callee covers the same bytes or the part of them in its range.
    unsafe {
        match &layout.kind {
            Kind::Empty => {}
            Kind::Run => sink.run(at.wrapping_offset(from as isize), (to - from) as usize),
            Kind::Strided { block, stride, .. } => strided(at, *block, *stride, from, to, sink),
            Kind::Loop { stride, body, .. } => looped(at, body, *stride, from, to, sink),
            Kind::Blocks(list) => blocks(list, at, from, to, sink),
            Kind::Seq(parts) => {
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
unsafe fn looped<S: Sink>(base: *mut u8, body: &Layout, stride: i64, from: i64, to: i64, sink: &mut S) {
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
unsafe fn whole_copies<S: Sink>(base: *mut u8, body: &Layout, stride: i64, first: i64, count: i64, sink: &mut S) {
    let places = (first..first + count).map(|i| base.wrapping_offset(i.wrapping_mul(stride) as isize));
    // SAFETY: WALK; the copies are within the range that the caller divided.
    unsafe {
        match &body.kind {
            Kind::Strided { block, stride: inner, count } => {
                for place in places {
                    let at = place.wrapping_offset(body.disp as isize);
                    sink.strided(at, *block as usize, *inner, *count as usize);
                }
            }
            Kind::Blocks(list) => {
                for place in places {
                    let at = place.wrapping_offset(body.disp as isize);
                    for block in list.iter() {
                        sink.run(at.wrapping_offset(block.disp as isize), block.len as usize);
                    }
                }
            }
            _ => {
                for place in places {
                    part(body, place, 0, body.size, sink);
                }
            }
        }
    }
}

/// # Safety
/// Invariant WALK.
unsafe fn strided<S: Sink>(base: *mut u8, block: i64, stride: i64, from: i64, to: i64, sink: &mut S) {
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
            sink.strided(place(i), block as usize, stride, whole as usize);
        }
        (i, done) = (i + whole, done + whole * block);
        if done < to {
            sink.run(place(i), (to - done) as usize);
        }
    }
}

/// # Safety
/// Invariant WALK.
unsafe fn blocks<S: Sink>(list: &[Block], base: *mut u8, from: i64, to: i64, sink: &mut S) {
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

/// Quotient and remainder; the start of a message, the usual case, without the division.
fn divide(from: i64, size: i64) -> (i64, i64) {
    if from == 0 { (0, 0) } else { (from / size, from % size) }
}
