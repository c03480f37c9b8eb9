//! What lay unread in the rings of a socket when its process forked: parent and child hold it both, and each datagram is
//! taken by the first of them that receives.
//!
//! The memory is shared by those who come from the fork, written before it, and never afterwards but for the place of the
//! next datagram. Whoever moves that place on has taken it.
//!
//! What comes after the fork comes by the kernel, so all that is here is older. What the kernel had before, and is to be
//! received before something in a ring, therefore lies here, too, before that.

use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use libc::{MSG_DONTWAIT, MSG_PEEK, iovec, msghdr};
use weft_fabric::datagram::{LONGEST, Peer};

use crate::{raw, real};

use super::names;
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

/// New memory that is being filled.
struct Filling {
    base: *mut u8,
    at: usize,
}

impl Filling {
    fn has_room(&self, length: usize) -> bool {
        self.at + place_of(length) <= BYTES
    }

    /// Puts a datagram there, whose bytes `write` writes. There is room.
    fn put(&mut self, Peer { address, port }: Peer, length: usize, write: impl FnOnce(&mut [u8])) {
        // SAFETY: new memory, which nobody else knows yet; the datagram fits behind its heading.
        unsafe {
            let heading = self.base.add(self.at);
            heading.cast::<[u32; 2]>().write([length as u32, u32::from(port)]);
            heading.add(8).cast::<[u8; 16]>().write(address);
            write(std::slice::from_raw_parts_mut(heading.add(HEADING), length));
        }
        self.at += place_of(length);
    }

    /// Moves here what the kernel has, `most` datagrams. It ends where one comes from an address that cannot stand here, or
    /// with more than bytes, or an error is due: those are the program's to receive, and come a little late.
    fn take_from_kernel(&mut self, socket: &Socket, fd: c_int, most: usize) {
        let _errno = raw::KeepErrno::new();
        for _ in 0..most {
            if !self.has_room(LONGEST) || raw::poll_one(fd, libc::POLLIN) != libc::POLLIN {
                return;
            }
            // SAFETY: new memory, which nobody else knows yet, with room for the longest behind the heading.
            let into = unsafe { std::slice::from_raw_parts_mut(self.base.add(self.at + HEADING), LONGEST) };
            if from_kernel(socket, fd, into, MSG_PEEK).is_none() {
                return;
            }
            let Some((peer, length)) = from_kernel(socket, fd, into, 0) else { return };
            self.put(peer, length, |_| ());
        }
    }
}

/// What the kernel has next: its sender and its length, if those and its bytes are all there is about it.
fn from_kernel(socket: &Socket, fd: c_int, into: &mut [u8], flags: c_int) -> Option<(Peer, usize)> {
    let mut control = [0u64; 32];
    // SAFETY: zeros are an address and a header; all that it points at lives across the call.
    unsafe {
        let mut name: libc::sockaddr_storage = std::mem::zeroed();
        let mut piece = iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let mut header: msghdr = std::mem::zeroed();
        (header.msg_name, header.msg_namelen) = ((&raw mut name).cast(), size_of_val(&name) as u32);
        (header.msg_iov, header.msg_iovlen) = (&raw mut piece, 1);
        (header.msg_control, header.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control) as _);
        let length = real::recvmsg(fd, &raw mut header, flags | MSG_DONTWAIT);
        let whole = header.msg_controllen == 0 && header.msg_flags & (libc::MSG_CTRUNC | libc::MSG_TRUNC) == 0;
        let room = (header.msg_namelen as usize).min(size_of_val(&name));
        let peer = names::read((&raw const name).cast(), room, socket.family());
        usize::try_from(length).ok().filter(|_| whole).zip(peer).map(|(length, peer)| (peer, length))
    }
}

/// Before a fork, when nothing more comes into the rings: what is there lies in shared memory from now on. Without memory
/// it stays in the rings, for the parent.
pub fn keep(socket: &Socket, fd: c_int) {
    if !socket.waiting() || !socket.left.is_empty() {
        return;
    }
    let base = raw::map(BYTES, true);
    if base.is_null() {
        return;
    }
    let mut filling = Filling { base, at: FIRST_AT };
    let known = socket.known();
    let shown = match socket.next.swap(0, Ordering::Relaxed) {
        0 => 0,
        NEXT_KERNEL => {
            filling.take_from_kernel(socket, fd, 1);
            0
        }
        next => next as usize - 1,
    };
    for step in 0..known.len() {
        let pairing = &known[(shown + step) % known.len()];
        let Some(mut guard) = pairing.channel().and_then(|channel| channel.lock_receive()) else { continue };
        while let Some((length, after_kernel)) = guard.first().filter(|(length, _)| filling.has_room(*length)) {
            if after_kernel {
                filling.take_from_kernel(socket, fd, usize::MAX);
                if !filling.has_room(length) {
                    break;
                }
            }
            filling.put(pairing.peer(), length, |into| guard.read(0, into));
            guard.take();
        }
    }
    // SAFETY: new memory of that size, which nobody else knows yet.
    unsafe { base.cast::<[u64; 2]>().write([FIRST_AT as u64, filling.at as u64]) };
    // What is there already was taken to its end.
    socket.left.forget();
    socket.left.0.store(base, Ordering::Release);
}
