//! What lay unread in the rings of a socket when its process forked: parent and child hold it both, and each datagram is
//! taken by the first of them that receives.
//!
//! The memory is shared by those who come from the fork, written before it, and never afterwards but for the place of the
//! next datagram. Whoever moves that place on has taken it.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use weft_fabric::datagram::Peer;

use crate::raw;

use super::socket::{NEXT_KERNEL, Socket};

/// What all rings of a socket could hold lies in this, with what stands before each datagram: address space only.
const BYTES: usize = 64 << 20;
/// The place of the next one, and the end of the last.
const FIRST_AT: usize = 16;
/// Length (u32), port (u32), address.
const HEADING: usize = 24;

/// The memory of one socket, or none.
pub struct Left(AtomicPtr<u8>);

/// A datagram of it.
pub struct Found<'a> {
    pub peer: Peer,
    pub bytes: &'a [u8],
    at: u64,
}

impl Left {
    fn words(&self) -> Option<(*mut u8, &[AtomicU64; 2])> {
        let base = self.0.load(Ordering::Acquire);
        // SAFETY: where there is memory it begins with these words, and lives as long as the record is in use.
        (!base.is_null()).then(|| (base, unsafe { &*base.cast() }))
    }

    pub fn is_empty(&self) -> bool {
        self.words().is_none_or(|(_, [next, end])| next.load(Ordering::Acquire) >= end.load(Ordering::Relaxed))
    }

    /// The next one.
    pub fn first(&self) -> Option<Found<'_>> {
        let (base, [next, end]) = self.words()?;
        let at = next.load(Ordering::Acquire);
        if at >= end.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: below the end there are whole datagrams, each behind its heading; nobody writes there any more.
        unsafe {
            let heading = base.add(at as usize);
            let [length, port] = heading.cast::<[u32; 2]>().read();
            let peer = Peer::new(heading.add(8).cast::<[u8; 16]>().read(), port as u16);
            let bytes = std::slice::from_raw_parts(heading.add(HEADING), length as usize);
            Some(Found { peer, bytes, at })
        }
    }

    /// Takes what was found; false when somebody else has.
    pub fn take(&self, found: &Found<'_>) -> bool {
        let after = found.at + place_of(found.bytes.len()) as u64;
        self.words().is_some_and(|(_, [next, _])| {
            next.compare_exchange(found.at, after, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })
    }

    /// The record is given back.
    pub fn forget(&self) {
        let base = self.0.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !base.is_null() {
            // SAFETY: mapped in `keep` with this size; nobody uses the record any more.
            unsafe { raw::unmap(base, BYTES) };
        }
    }
}

fn place_of(length: usize) -> usize {
    (HEADING + length).next_multiple_of(8)
}

/// Before a fork, when nothing more comes into the rings: what is there lies in shared memory from now on. Without memory
/// it stays in the rings, for the parent.
pub fn keep(socket: &Socket) {
    if !socket.waiting() || !socket.left.is_empty() {
        return;
    }
    let base = raw::map(BYTES, true);
    if base.is_null() {
        return;
    }
    let known = socket.known();
    let shown = match socket.next.swap(0, Ordering::Relaxed) {
        0 | NEXT_KERNEL => 0,
        next => next as usize - 1,
    };
    let mut at = FIRST_AT;
    for step in 0..known.len() {
        let pairing = &known[(shown + step) % known.len()];
        let Some(mut guard) = pairing.channel().and_then(|channel| channel.lock_receive()) else { continue };
        while let Some((length, _)) = guard.first().filter(|(length, _)| at + place_of(*length) <= BYTES) {
            let Peer { address, port } = pairing.peer();
            // SAFETY: new memory, which nobody else knows yet; the datagram fits behind its heading.
            unsafe {
                let heading = base.add(at);
                heading.cast::<[u32; 2]>().write([length as u32, u32::from(port)]);
                heading.add(8).cast::<[u8; 16]>().write(address);
                guard.read(0, std::slice::from_raw_parts_mut(heading.add(HEADING), length));
            }
            guard.take();
            at += place_of(length);
        }
    }
    // SAFETY: as above.
    unsafe { base.cast::<[u64; 2]>().write([FIRST_AT as u64, at as u64]) };
    // What is there already was taken to its end.
    socket.left.forget();
    socket.left.0.store(base, Ordering::Release);
}
