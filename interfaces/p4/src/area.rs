//! Memory that the processes of a cluster share: mapped before any of them is forked, so that it has one address in
//! all, and what `p4_shmalloc` hands out of it.
//!
//! Free parts stand in a list by their addresses; the first one that is long enough is cut. Parts that touch become
//! one. What stands in the area between its parts is trusted as far as the processes of a program trust each other: who
//! writes over the end of a part destroys the list.

use crate::family::Register;
use crate::lock::SharedLock;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Parts begin at multiples of this, and a part's head has so many bytes.
const GRAIN: usize = 16;

/// At the beginning of the area.
#[repr(C, align(64))]
struct AreaHead {
    register: Register,
    lock: SharedLock,
    bytes: usize,
    /// Offset of the first free part, 0 for none.
    free: usize,
}

/// Before a part.
#[repr(C)]
struct PartHead {
    /// Bytes with this head.
    bytes: usize,
    /// Of a free part the next one's offset; else [`USED`].
    next: usize,
}

const USED: usize = 0x7034_7573_6564_2100;
const _: () = assert!(size_of::<PartHead>() == GRAIN);

static AREA: AtomicPtr<AreaHead> = AtomicPtr::new(ptr::null_mut());

fn aligned(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(GRAIN)
}

/// Makes the area, with so many bytes to hand out.
///
/// # Errors
/// The system has not so much memory.
pub fn create(bytes: usize) -> io::Result<&'static Register> {
    let first = size_of::<AreaHead>().next_multiple_of(GRAIN);
    let whole = aligned(bytes.max(GRAIN)).and_then(|bytes| bytes.checked_add(first + GRAIN));
    let whole = whole.filter(|whole| *whole < isize::MAX as usize).ok_or(io::ErrorKind::OutOfMemory)?;
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: new memory, at a place of the system's choice.
    let at = unsafe { libc::mmap(ptr::null_mut(), whole, access, kind, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let head: *mut AreaHead = at.cast();
    // SAFETY: the head and the first part lie in the new memory, which is zero and stays as long as the process lives.
    unsafe {
        (*head).bytes = whole;
        (*head).free = first;
        part(head, first).write(PartHead { bytes: whole - first, next: 0 });
        AREA.store(head, Ordering::Release);
        Ok(&(*head).register)
    }
}

/// # Safety
/// `offset` is one of a part in the area.
unsafe fn part(head: *mut AreaHead, offset: usize) -> *mut PartHead {
    // SAFETY: the caller's promise.
    unsafe { head.cast::<u8>().add(offset).cast() }
}

/// A part of so many bytes, or null where there is none so long.
pub fn allocate(bytes: usize) -> *mut u8 {
    let head = AREA.load(Ordering::Acquire);
    let Some(wanted) = aligned(bytes.max(1)).and_then(|bytes| bytes.checked_add(GRAIN)) else { return ptr::null_mut() };
    if head.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: the area was made and stays; its list is looked at with its lock held.
    unsafe {
        (*head).lock.lock("p4_shmalloc");
        let taken = take(head, wanted);
        (*head).lock.unlock();
        if taken == 0 { ptr::null_mut() } else { part(head, taken).cast::<u8>().add(GRAIN) }
    }
}

/// Offset of a part of so many bytes with its head, or 0.
///
/// # Safety
/// The lock is held.
unsafe fn take(head: *mut AreaHead, wanted: usize) -> usize {
    // SAFETY: offsets in the list are those of parts.
    unsafe {
        let mut link = &raw mut (*head).free;
        while *link != 0 {
            let at = *link;
            let found = part(head, at);
            let left = (*found).bytes.checked_sub(wanted);
            match left {
                None => {
                    link = &raw mut (*found).next;
                    continue;
                }
                Some(left) if left >= 2 * GRAIN => {
                    part(head, at + wanted).write(PartHead { bytes: left, next: (*found).next });
                    *link = at + wanted;
                    (*found).bytes = wanted;
                }
                Some(_) => *link = (*found).next,
            }
            (*found).next = USED;
            return at;
        }
    }
    0
}

/// Gives a part back; false if it is none that is in use.
pub fn free(at: *mut u8) -> bool {
    let head = AREA.load(Ordering::Acquire);
    let first = size_of::<AreaHead>().next_multiple_of(GRAIN);
    let Some(offset) = (at as usize).checked_sub(head as usize + GRAIN) else { return false };
    // SAFETY: the area was made if its address is not null, and stays; the place is checked, and what stands there.
    unsafe {
        if head.is_null() || offset < first || offset >= (*head).bytes || !offset.is_multiple_of(GRAIN) {
            return false;
        }
        (*head).lock.lock("p4_shmalloc");
        let is_used = (*part(head, offset)).next == USED;
        if is_used {
            put(head, offset);
        }
        (*head).lock.unlock();
        is_used
    }
}

/// # Safety
/// The lock is held; the part is in use.
unsafe fn put(head: *mut AreaHead, offset: usize) {
    // SAFETY: offsets in the list are those of parts.
    unsafe {
        let (mut link, mut before) = (&raw mut (*head).free, 0);
        while *link != 0 && *link < offset {
            before = *link;
            link = &raw mut (*part(head, before)).next;
        }
        let freed = part(head, offset);
        (*freed).next = *link;
        *link = offset;
        let after = (*freed).next;
        if after != 0 && offset + (*freed).bytes == after {
            (*freed).bytes += (*part(head, after)).bytes;
            (*freed).next = (*part(head, after)).next;
        }
        let earlier = part(head, before);
        if before != 0 && before + (*earlier).bytes == offset {
            (*earlier).bytes += (*freed).bytes;
            (*earlier).next = (*freed).next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_and_become_one_again() {
        create(1 << 20).expect("memory");
        let most = (1 << 20) - 64;
        let parts: Vec<*mut u8> = (1..200).map(|bytes| allocate(bytes * 16)).collect();
        assert!(parts.iter().all(|part| !part.is_null() && (*part as usize).is_multiple_of(GRAIN)));
        for (at, part) in parts.iter().enumerate() {
            // SAFETY: so long is the part.
            unsafe { part.write_bytes(at as u8, (at + 1) * 16) };
        }
        assert!(allocate(most).is_null() && allocate(usize::MAX).is_null());
        for (at, part) in parts.iter().enumerate() {
            // SAFETY: as above.
            assert!((0..(at + 1) * 16).all(|byte| unsafe { part.add(byte).read() } == at as u8));
        }
        assert!(parts.iter().skip(1).step_by(2).all(|part| free(*part)));
        assert!(parts.iter().step_by(2).all(|part| free(*part)));
        assert!(!free(parts[3]) && !free(ptr::null_mut()) && !free(parts[3].wrapping_add(1)));
        let whole = allocate(most);
        assert!(!whole.is_null() && free(whole));
    }
}
