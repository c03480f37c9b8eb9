//! What lay unread in the rings of a socket when its process forked: parent and child hold it both, and each datagram
//! is taken by the first of them that receives.
//!
//! The memory is shared by those who come from the fork, written before it, and never afterwards but for the place of
//! the next datagram. Whoever moves that place on has taken it.
//!
//! What comes after the fork comes by the kernel, so all that is here is older. What the kernel had before, and is to
//! be received before something in a ring, therefore lies here, too, before that.

use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use libc::{MSG_DONTWAIT, MSG_PEEK, iovec, msghdr};
use weft_fabric::datagram::DatagramPeer;

use crate::{raw, real};

use super::names;
use super::socket::{NEXT_KERNEL, UserSocket};

/// What all rings of a socket could hold lies in this, with what stands before each datagram: address space only.
const BYTES: usize = 64 << 20;
/// The place of the next one, and the end of the last.
const FIRST_AT: usize = 16;
/// No datagram is longer; one that came by a ring never is as long.
const LONGEST_FROM_KERNEL: usize = u16::MAX as usize;
/// Length (u32), port (u32), address.
const HEADING: usize = 24;

/// The memory of one socket, or none.
pub struct Left(AtomicPtr<u8>);

/// A datagram of it.
pub struct FoundDatagram<'a> {
    pub peer: DatagramPeer,
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
    pub fn first(&self) -> Option<FoundDatagram<'_>> {
        let (base, [next, end]) = self.words()?;
        let at = next.load(Ordering::Acquire);
        if at >= end.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: below the end there are whole datagrams, each behind its heading; nobody writes there any more.
        unsafe {
            let heading = base.add(at as usize);
            let [length, port] = heading.cast::<[u32; 2]>().read();
            let peer = DatagramPeer::new(heading.add(8).cast::<[u8; 16]>().read(), port as u16);
            let bytes = std::slice::from_raw_parts(heading.add(HEADING), length as usize);
            Some(FoundDatagram { peer, bytes, at })
        }
    }

    /// Takes what was found; false when somebody else has.
    pub fn take(&self, found: &FoundDatagram<'_>) -> bool {
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
    fn put(&mut self, DatagramPeer { address, port }: DatagramPeer, length: usize, write: impl FnOnce(&mut [u8])) {
        // SAFETY: new memory, which nobody else knows yet; the datagram fits behind its heading.
        unsafe {
            let heading = self.base.add(self.at);
            heading.cast::<[u32; 2]>().write([length as u32, u32::from(port)]);
            heading.add(8).cast::<[u8; 16]>().write(address);
            write(std::slice::from_raw_parts_mut(heading.add(HEADING), length));
        }
        self.at += place_of(length);
    }

    /// Moves here what the kernel has, `most` datagrams. It ends where one comes from an address that cannot stand
    /// here, or with more than bytes, or an error is due: those are the program's to receive, and come a little late.
    /// Where another thread takes what was looked at, the next one is received unseen, and kept whatever it comes with:
    /// nobody else has it.
    fn take_from_kernel(&mut self, socket: &UserSocket, fd: c_int, most: usize) {
        let _errno = raw::KeepErrno::new();
        for _ in 0..most {
            if !self.has_room(LONGEST_FROM_KERNEL) || raw::poll_one(fd, libc::POLLIN) != libc::POLLIN {
                return;
            }
            // SAFETY: new memory, which nobody else knows yet, with room for the longest behind the heading.
            let into = unsafe { std::slice::from_raw_parts_mut(self.base.add(self.at + HEADING), LONGEST_FROM_KERNEL) };
            if !receive(fd, into, MSG_PEEK).is_some_and(|seen| seen.may_stand_here(socket.family())) {
                return;
            }
            let Some(taken) = receive(fd, into, 0) else { return };
            self.put(taken.sender(), taken.length, |_| ());
        }
    }
}

/// A datagram of the kernel's, whose bytes lie elsewhere.
struct ReceivedElsewhere {
    name: libc::sockaddr_storage,
    name_size: usize,
    length: usize,
    /// Its bytes are all of it, and there is nothing about it but the address.
    whole: bool,
}

impl ReceivedElsewhere {
    /// Whether nothing is lost where only its sender and its bytes are kept.
    fn may_stand_here(&self, family: c_int) -> bool {
        // SAFETY: as much was written there.
        self.whole && unsafe { names::read((&raw const self.name).cast(), self.name_size, family) }.is_some()
    }

    /// Its sender, as far as a place here can say it.
    fn sender(&self) -> DatagramPeer {
        let name = &raw const self.name;
        // SAFETY: the storage is as large as either address, and zeros beyond what the kernel wrote.
        unsafe {
            if c_int::from(self.name.ss_family) == libc::AF_INET6 {
                let v6 = name.cast::<libc::sockaddr_in6>().read();
                return DatagramPeer::new(v6.sin6_addr.s6_addr, u16::from_be(v6.sin6_port));
            }
            let v4 = name.cast::<libc::sockaddr_in>().read();
            DatagramPeer::of_v4(v4.sin_addr.s_addr.to_ne_bytes(), u16::from_be(v4.sin_port))
        }
    }
}

/// What the kernel has next.
fn receive(fd: c_int, into: &mut [u8], flags: c_int) -> Option<ReceivedElsewhere> {
    let mut control = [0u64; 32];
    // SAFETY: zeros are an address and a header; all that it points at lives across the call.
    unsafe {
        let mut name: libc::sockaddr_storage = std::mem::zeroed();
        let mut piece = iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let mut header: msghdr = std::mem::zeroed();
        (header.msg_name, header.msg_namelen) = ((&raw mut name).cast(), size_of_val(&name) as u32);
        (header.msg_iov, header.msg_iovlen) = (&raw mut piece, 1);
        (header.msg_control, header.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control) as _);
        let length = usize::try_from(real::recvmsg(fd, &raw mut header, flags | MSG_DONTWAIT)).ok()?;
        let whole = header.msg_controllen == 0 && header.msg_flags & (libc::MSG_CTRUNC | libc::MSG_TRUNC) == 0;
        let name_size = (header.msg_namelen as usize).min(size_of_val(&name));
        Some(ReceivedElsewhere { name, name_size, length, whole })
    }
}

/// Before a fork, when nothing more comes into the rings: what is there lies in shared memory from now on. Without
/// memory it stays in the rings, for the parent.
pub fn keep(socket: &UserSocket, fd: c_int) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    #[test]
    fn what_was_taken_is_there_also_where_it_came_with_more_than_bytes() {
        let [socket, sender] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let one: c_int = 1;
        // SAFETY: a value of this size.
        let set = unsafe {
            let value = (&raw const one).cast();
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMP, value, size_of_val(&one) as u32)
        };
        assert_eq!(set, 0);
        sender.send_to(b"with a time", socket.local_addr().unwrap()).unwrap();
        let mut into = [0; 64];
        let seen = receive(socket.as_raw_fd(), &mut into, MSG_PEEK).expect("there is one");
        assert!(!seen.may_stand_here(libc::AF_INET), "its time would be lost");
        let taken = receive(socket.as_raw_fd(), &mut into, 0).expect("it is taken nevertheless");
        let from = DatagramPeer::of_v4([127, 0, 0, 1], sender.local_addr().unwrap().port());
        assert_eq!((taken.sender(), &into[..taken.length]), (from, &b"with a time"[..]));
    }
}
