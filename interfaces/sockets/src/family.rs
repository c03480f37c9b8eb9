//! Who else holds a socket: processes that came from one another by fork share a page of counts.
//!
//! A socket that two processes hold is not offered: each would count only its own bytes. A cell is taken at the first
//! fork and counts the processes that may use the socket; a process that was killed stays counted, so that the socket
//! stays the kernel's, which is the safe side.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::conn::Connection;
use super::raw;

const CELLS: usize = 1 << 16;
const REACH: usize = 64;
/// More than there are processes.
const SPOILED: u32 = 1 << 24;
/// There was no cell: the socket stays the kernel's.
const LOST: u32 = u32::MAX;

static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());
static NEXT: AtomicU32 = AtomicU32::new(1);

fn cell(index: u32) -> Option<&'static AtomicU32> {
    let page = PAGE.load(Ordering::Acquire);
    if page.is_null() || index == 0 || index as usize >= CELLS {
        return None;
    }
    // SAFETY: below CELLS; the page is never unmapped; zeros are valid atomics.
    Some(unsafe { &*page.add(index as usize) })
}

/// Before a fork: one more process will hold this socket.
pub fn share(conn: &Connection) {
    if PAGE.load(Ordering::Acquire).is_null() {
        PAGE.store(raw::map(CELLS * size_of::<AtomicU32>(), true).cast(), Ordering::Release);
    }
    match cell(conn.family.load(Ordering::Relaxed)) {
        Some(count) => drop(count.fetch_add(1, Ordering::SeqCst)),
        // ORDER: with the state of the connection, which who shares looks at next, and who attaches has set before.
        None => conn.family.store(take_cell(), Ordering::SeqCst),
    }
}

/// A free cell that counts two; LOST when none is near.
fn take_cell() -> u32 {
    for _ in 0..REACH {
        let index = NEXT.fetch_add(1, Ordering::Relaxed) % CELLS as u32;
        let free = |count: &AtomicU32| count.compare_exchange(0, 2, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if cell(index).is_some_and(free) {
            return index;
        }
    }
    LOST
}

/// Whether only this process holds the socket.
pub fn alone(conn: &Connection) -> bool {
    match conn.family.load(Ordering::SeqCst) {
        0 => true,
        LOST => false,
        index => cell(index).is_some_and(|count| count.load(Ordering::SeqCst) == 1),
    }
}

/// Somebody outside of the family may use the socket from now on: nobody of the family shall take it over.
pub fn spoil(conn: &Connection) {
    if let Some(count) = cell(conn.family.load(Ordering::Relaxed)) {
        count.fetch_add(SPOILED, Ordering::SeqCst);
    }
}

/// This process holds the socket no more (or the fork did not happen).
pub fn leave(conn: &Connection) {
    if let Some(count) = cell(conn.family.load(Ordering::Relaxed)) {
        count.fetch_sub(1, Ordering::SeqCst);
    }
}
