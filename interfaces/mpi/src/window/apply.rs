//! What the accumulate family does to the memory of a target that this process reaches.

use super::elements::{Span, runs};
use super::transfer::pieces;
use super::{TargetWay, remote};
use crate::datatype::Datatype;
use crate::error::Result;
use crate::op::{Kernel, PredefinedOperation};
use weft_fabric::region::Attach;

/// What is copied out of another process's memory, changed and copied back at a time, bytes: it stays in the caches.
const PIECE: usize = 32 * 1024;

/// What is done to each element.
#[derive(Clone, Copy)]
pub(super) enum Action {
    /// `MPI_NO_OP`: only what is there is fetched.
    Keep,
    Replace,
    Combine(Kernel),
    /// Stored if what is there equals the first half of the origin's elements.
    Swap,
}

impl Action {
    /// # Errors
    /// The operation is not defined for the type.
    pub fn of(op: PredefinedOperation, basic: &Datatype) -> Result<Self> {
        Ok(match op {
            PredefinedOperation::NoOp => Self::Keep,
            PredefinedOperation::Replace => Self::Replace,
            op => Self::Combine(op.kernel(basic)?),
        })
    }
}

/// Does it, with the lock held.
///
/// # Safety
/// The spans lie in the target's memory; the origin has the elements, and the result, if not null, room for them.
pub(super) unsafe fn apply(
    target: &super::TargetMember,
    action: Action,
    spans: &[Span],
    basic: &Datatype,
    (mut origin, mut result): (*const u8, *mut u8),
) -> std::io::Result<()> {
    let extent = basic.extent() as usize;
    if let TargetWay::Attach(attach) = target.way
        && basic.size() == basic.extent()
    {
        // SAFETY: the caller's promise.
        return unsafe { apart(attach, target.base, (action, spans, basic), (origin, result)) };
    }
    for span in spans.iter().filter(|span| span.count > 0) {
        let bytes = span.count * extent;
        // SAFETY: the caller's promise; the kernel was chosen for the type.
        unsafe {
            match target.way {
                TargetWay::Mapped(base) => {
                    let at = base.wrapping_offset(span.at as isize);
                    if !result.is_null() {
                        std::ptr::copy_nonoverlapping(at, result, bytes);
                    }
                    change(action, origin, at, span.count, basic);
                }
                TargetWay::Attach(attach) => {
                    let at = target.base.wrapping_add(span.at as u64);
                    through(attach, at, action, (origin, result), bytes, basic)?;
                }
                TargetWay::Message => return Err(std::io::Error::other("its memory is not reached from here")),
            }
        }
        origin = origin.wrapping_add(bytes);
        if !result.is_null() {
            result = result.wrapping_add(bytes);
        }
    }
    Ok(())
}

/// As [`apply`] for elements without gaps in another process's memory: many spans at once through memory of ours. What
/// replaces all and fetches nothing goes straight there.
///
/// # Safety
/// As [`apply`].
unsafe fn apart(
    attach: Attach,
    base: u64,
    (action, spans, basic): (Action, &[Span], &Datatype),
    (origin, result): (*const u8, *mut u8),
) -> std::io::Result<()> {
    let extent = basic.extent() as usize;
    if matches!(action, Action::Replace) && result.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { remote::scatter(attach, base, spans, extent, origin) };
    }
    let mut aside = Vec::new();
    for piece in pieces(spans, extent, extent as i64) {
        aside.resize(piece.bytes.max(aside.len()), 0u8);
        // SAFETY: `aside` has room for a piece; origin and result have the bytes of all.
        unsafe {
            remote::gather(attach, base, &piece.spans, extent, aside.as_mut_ptr())?;
            if !result.is_null() {
                std::ptr::copy_nonoverlapping(aside.as_ptr(), result.add(piece.from), piece.bytes);
            }
            let from = origin.wrapping_add(piece.from);
            if change(action, from, aside.as_mut_ptr(), piece.bytes / extent, basic) {
                remote::scatter(attach, base, &piece.spans, extent, aside.as_ptr())?;
            }
        }
    }
    Ok(())
}

/// As [`apply`] for one span with gaps in another process's memory, piece by piece through memory of ours.
///
/// # Safety
/// As [`apply`].
unsafe fn through(
    attach: Attach,
    at: u64,
    action: Action,
    (origin, result): (*const u8, *mut u8),
    bytes: usize,
    basic: &Datatype,
) -> std::io::Result<()> {
    let extent = basic.extent() as usize;
    let most = PIECE / extent * extent;
    let mut aside = vec![0u8; bytes.min(most)];
    for done in (0..bytes).step_by(most) {
        let length = most.min(bytes - done);
        // SAFETY: `aside` has room for a piece; origin and result have the bytes of the span.
        unsafe {
            attach.read(at.wrapping_add(done as u64), aside.as_mut_ptr(), length)?;
            if !result.is_null() {
                std::ptr::copy_nonoverlapping(aside.as_ptr(), result.add(done), length);
            }
            if change(action, origin.wrapping_add(done), aside.as_mut_ptr(), length / extent, basic) {
                // Between an element's parts somebody else may have written meanwhile.
                for run in runs(basic, (length / extent) as i64, 0).iter() {
                    let from = &aside[run.at as usize..][..run.count];
                    attach.write(from.as_ptr(), at.wrapping_add(done as u64).wrapping_add(run.at as u64), run.count)?;
                }
            }
        }
    }
    Ok(())
}

/// Changes `count` elements at `at`; whether there was anything to change.
///
/// # Safety
/// As [`apply`].
unsafe fn change(action: Action, origin: *const u8, at: *mut u8, count: usize, basic: &Datatype) -> bool {
    let extent = basic.extent() as usize;
    // SAFETY: the caller's promise.
    unsafe {
        match action {
            Action::Keep => false,
            Action::Replace => {
                // What lies between an element's parts is somebody else's.
                for run in runs(basic, count as i64, 0).iter() {
                    std::ptr::copy(origin.offset(run.at as isize), at.offset(run.at as isize), run.count);
                }
                true
            }
            Action::Combine(kernel) => {
                kernel(origin, at, at, count);
                true
            }
            Action::Swap => {
                let compare = std::slice::from_raw_parts(origin, extent);
                let equal = (0..extent).all(|byte| at.add(byte).read() == compare[byte]);
                if equal {
                    std::ptr::copy_nonoverlapping(origin.add(extent), at, extent);
                }
                equal
            }
        }
    }
}
