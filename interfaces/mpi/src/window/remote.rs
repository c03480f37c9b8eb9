//! Many spans in the memory of another process of this host. A system call for each would cost far more than their
//! bytes.

use super::elements::Span;
use std::io::Result;
use weft_fabric::region::Attach;

/// A hole between spans that is read with them, bytes: it costs less than a call, or a piece of one.
const HOLE: i64 = 4096;
/// What is read with its holes at a time, bytes: it stays in the caches.
const BLOCK: i64 = 64 * 1024;

/// Stores elements of `extent` bytes that lie side by side where the spans are.
///
/// # Safety
/// `from` has the bytes of all spans.
pub unsafe fn scatter(attach: Attach, base: u64, spans: &[Span], extent: usize, from: *const u8) -> Result<()> {
    let place = |span: &Span| (base.wrapping_add(span.at as u64), span.count * extent);
    // SAFETY: the caller's promise.
    unsafe {
        match spans {
            [span] => attach.write(from, place(span).0, place(span).1),
            _ => attach.scatter(from, spans.iter().map(place)),
        }
    }
}

/// Brings what the spans hold, side by side. Holes are read as well, and dropped: nobody sees what is there.
///
/// # Safety
/// `to` is writable for the bytes of all spans.
pub unsafe fn gather(attach: Attach, base: u64, spans: &[Span], extent: usize, mut to: *mut u8) -> Result<()> {
    let place = |span: &Span| (base.wrapping_add(span.at as u64), span.count * extent);
    let mut aside = Vec::new();
    let mut rest = spans;
    while let Some((together, hull)) = near(rest, extent as i64) {
        let taken = if together == 1 { alone(rest, extent as i64) } else { together };
        let (now, later) = rest.split_at(taken);
        rest = later;
        // SAFETY: `to` has room for these spans and those behind them.
        unsafe {
            match now {
                [span] => attach.read(place(span).0, to, place(span).1)?,
                _ if together > 1 && block(attach, base, (now, hull), extent, (&mut aside, to)) => {}
                _ => attach.gather(now.iter().map(place), to)?,
            }
        }
        to = to.wrapping_add(now.iter().map(|span| span.count).sum::<usize>() * extent);
    }
    Ok(())
}

/// Reads from the first to the last byte of some spans at once. Whether that could be done: between the spans of a
/// window that memory is attached to there may be none.
///
/// # Safety
/// As [`gather`].
unsafe fn block(
    attach: Attach,
    base: u64,
    (spans, (low, high)): (&[Span], (i64, i64)),
    extent: usize,
    (aside, mut to): (&mut Vec<u8>, *mut u8),
) -> bool {
    let length = (high - low) as usize;
    aside.resize(length.max(aside.len()), 0);
    // SAFETY: `aside` has room for all from `low` to `high`, where the spans lie.
    unsafe {
        if attach.read(base.wrapping_add(low as u64), aside.as_mut_ptr(), length).is_err() {
            return false;
        }
        for span in spans {
            let (at, bytes) = ((span.at - low) as usize, span.count * extent);
            std::ptr::copy_nonoverlapping(aside[at..at + bytes].as_ptr(), to, bytes);
            to = to.wrapping_add(bytes);
        }
    }
    true
}

/// How many of the first spans have no neighbour that could be read with them.
fn alone(spans: &[Span], extent: i64) -> usize {
    (0..spans.len()).take_while(|&at| matches!(near(&spans[at..], extent), Some((1, _)))).count()
}

/// How many of the first spans lie so near each other that they are read at once, and from where to where.
fn near(spans: &[Span], extent: i64) -> Option<(usize, (i64, i64))> {
    let ends = |span: &Span| (span.at, span.at.saturating_add(span.count as i64 * extent));
    let (first, others) = spans.split_first()?;
    let mut hull = ends(first);
    let mut taken = 1;
    for span in others {
        let (low, high) = ends(span);
        let wider = (hull.0.min(low), hull.1.max(high));
        if low > hull.1.saturating_add(HOLE)
            || high < hull.0.saturating_sub(HOLE)
            || wider.1.saturating_sub(wider.0) > BLOCK
        {
            break;
        }
        (hull, taken) = (wider, taken + 1);
    }
    Some((taken, hull))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(at: i64, count: usize) -> Span {
        Span { at, count }
    }

    #[test]
    fn spans_near_each_other_are_read_at_once_in_any_order() {
        assert_eq!(near(&[], 4), None);
        assert_eq!(near(&[span(8, 2)], 4), Some((1, (8, 16))));
        assert_eq!(near(&[span(100, 1), span(0, 2), span(50, 1)], 4), Some((3, (0, 104))));
    }

    #[test]
    fn what_is_far_away_or_too_much_is_read_by_itself() {
        assert_eq!(near(&[span(0, 1), span(4 + HOLE, 1), span(9 + 2 * HOLE, 1)], 4), Some((2, (0, 8 + HOLE))));
        assert_eq!(near(&[span(2 * HOLE, 1), span(0, 1)], 4), Some((1, (2 * HOLE, 2 * HOLE + 4))));
        assert_eq!(near(&[span(0, BLOCK as usize), span(BLOCK, 1)], 1), Some((1, (0, BLOCK))));
        let far = |i: i64| span(i * 2 * HOLE, 1);
        assert_eq!(alone(&[far(0), far(1), far(2), span(4 * HOLE + 8, 1)], 4), 2);
    }
}
