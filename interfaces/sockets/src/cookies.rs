//! From the cookie of an offered socket to its connection: a table of fixed size without locks.
//!
//! A cookie stands in one of the few places after the one it hashes to. Where all of them are taken the connection is
//! not offered.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::conn::{self, Connection};
use super::raw;

const PLACES: usize = 1 << 18;
const REACH: usize = 16;

static TABLE: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// Makes the table (address space only). False when there is no room.
pub fn start() -> bool {
    let at = raw::map(PLACES * size_of::<AtomicU32>(), false);
    TABLE.store(at.cast(), Ordering::Release);
    !at.is_null()
}

fn places(cookie: u64) -> impl Iterator<Item = &'static AtomicU32> {
    let first = (cookie.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize;
    let table = TABLE.load(Ordering::Relaxed);
    // SAFETY: the index is below PLACES; the table is never unmapped; zeros are valid atomics.
    (first..first + REACH).map(move |index| unsafe { &*table.add(index % PLACES) })
}

/// Remembers that the connection `index` was offered under `cookie`.
pub fn insert(cookie: u64, index: u32) -> bool {
    places(cookie).any(|place| place.compare_exchange(0, index, Ordering::AcqRel, Ordering::Relaxed).is_ok())
}

/// Forgets it.
pub fn remove(cookie: u64, index: u32) {
    for place in places(cookie) {
        if place.compare_exchange(index, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// The connection that was offered under `cookie`, once.
pub fn take(cookie: u64) -> Option<u32> {
    places(cookie).find_map(|place| {
        let index = place.load(Ordering::Acquire);
        let found = index != 0 && conn::at(index).cookie.load(Ordering::Relaxed) == cookie;
        (found && place.compare_exchange(index, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()).then_some(index)
    })
}

/// Forgets a connection whose record is given back.
pub fn remove_of(conn: &Connection) {
    let cookie = conn.cookie.load(Ordering::Relaxed);
    for place in places(cookie) {
        let index = place.load(Ordering::Acquire);
        if index != 0 && std::ptr::eq(conn::at(index), conn) {
            let _ = place.compare_exchange(index, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}
