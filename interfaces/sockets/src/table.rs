//! What each descriptor number is to us: one small atomic word per number, zero for what is none of our business.
//!
//! The memory is sparse: 4 MiB of address space, of which a page is there for every thousand numbers in use. Numbers
//! beyond the table are plain.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

/// How many numbers have a place.
pub const PLACES: usize = 1 << 20;
const INDEX_BITS: u32 = 28;
const CONNECTION: u32 = 1 << INDEX_BITS;
const SET: u32 = 2 << INDEX_BITS;
const DATAGRAM: u32 = 3 << INDEX_BITS;

static TABLE: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());
/// The highest number that ever had an entry.
static HIGHEST: AtomicI32 = AtomicI32::new(-1);

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A connection: its index in the pool of connections.
    Connection(u32),
    /// An epoll set: its index among the sets.
    Set(u32),
    /// A datagram socket: its index among them.
    Datagram(u32),
}

impl Entry {
    fn word(self) -> u32 {
        match self {
            Entry::Connection(index) => CONNECTION | index,
            Entry::Set(index) => SET | index,
            Entry::Datagram(index) => DATAGRAM | index,
        }
    }

    fn of(word: u32) -> Option<Entry> {
        let index = word & (CONNECTION - 1);
        match word & !(CONNECTION - 1) {
            CONNECTION => Some(Entry::Connection(index)),
            SET => Some(Entry::Set(index)),
            DATAGRAM => Some(Entry::Datagram(index)),
            _ => None,
        }
    }
}

/// Makes the table. False when there is no address space for it: then every number stays plain.
pub fn start() -> bool {
    let at = super::raw::map(PLACES * size_of::<AtomicU32>(), false);
    TABLE.store(at.cast(), Ordering::Release);
    !at.is_null()
}

#[inline]
fn place(fd: c_int) -> Option<&'static AtomicU32> {
    let table = TABLE.load(Ordering::Relaxed);
    if table.is_null() || fd as u32 as usize >= PLACES {
        return None;
    }
    // SAFETY: the table has PLACES words, is never unmapped, and zeros are valid atomics.
    Some(unsafe { &*table.add(fd as usize) })
}

/// What `fd` is; `None` for plain.
#[inline]
pub fn entry(fd: c_int) -> Option<Entry> {
    match place(fd)?.load(Ordering::Acquire) {
        0 => None,
        word => Entry::of(word),
    }
}

/// Sets what `fd` is, and answers what it was. False for a number beyond the table.
pub fn replace(fd: c_int, entry: Option<Entry>) -> Option<Entry> {
    let place = place(fd)?;
    if entry.is_some() {
        HIGHEST.fetch_max(fd, Ordering::Relaxed);
    }
    Entry::of(place.swap(entry.map_or(0, Entry::word), Ordering::SeqCst))
}

/// Whether `fd` has a place.
pub fn has_place(fd: c_int) -> bool {
    place(fd).is_some()
}

/// The highest number that ever was more than plain; -1 for none.
pub fn highest() -> c_int {
    HIGHEST.load(Ordering::Relaxed)
}

/// All numbers from `first` to `last` that are not plain, with what they are.
pub fn entries(first: c_int, last: c_int) -> impl Iterator<Item = (c_int, Entry)> {
    let last = last.min(HIGHEST.load(Ordering::Relaxed));
    (first.max(0)..=last).filter_map(|fd| entry(fd).map(|entry| (fd, entry)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_as_they_were_put() {
        assert!(start());
        for entry in [Entry::Connection(0), Entry::Connection(PLACES as u32 - 1), Entry::Set(7), Entry::Datagram(9)] {
            assert_eq!(replace(40, Some(entry)), None);
            assert_eq!(super::entry(40), Some(entry));
            assert_eq!(entries(0, c_int::MAX).collect::<Vec<_>>(), [(40, entry)]);
            assert_eq!(replace(40, None), Some(entry));
        }
        assert_eq!((super::entry(-1), super::entry(PLACES as c_int)), (None, None));
        assert!(!has_place(-1) && !has_place(PLACES as c_int) && has_place(PLACES as c_int - 1));
    }
}
