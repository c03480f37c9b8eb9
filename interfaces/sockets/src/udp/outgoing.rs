//! Sending datagrams.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use libc::{MSG_CONFIRM, MSG_DONTWAIT, MSG_MORE, MSG_NOSIGNAL, iovec, msghdr, ssize_t};
use weft_fabric::datagram::{DatagramChannel, DatagramPeer, LONGEST, SentDatagram};
use weft_fabric::stream::KernelOnly;

use crate::meet::STREAMS;
use crate::raw;

use super::socket::{ATTACHED, Pairing, SocketHold, UserSocket};
use super::{gate, names, pairs};

/// Flags that mean nothing to a ring; sends with others are the kernel's.
const KNOWN: c_int = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CONFIRM;
/// The kernel's own limit of buffers.
const MOST_PIECES: usize = 1024;
/// Between two looks whether the peer takes anything out of its ring: about a millisecond.
const LOOK_TICKS: u64 = 1 << 21;

/// `sendmsg`, with `flags`; `plain` is the program's own call.
///
/// # Safety
/// The program's header, its buffers and its name.
pub unsafe fn send(
    held: &SocketHold,
    fd: c_int,
    header: &msghdr,
    flags: c_int,
    plain: impl FnOnce() -> ssize_t,
) -> ssize_t {
    if held.is_kernel_s() {
        return plain();
    }
    pairs::look_for_mail();
    // SAFETY: the caller's promise.
    let peer = unsafe { destination(held, header) };
    if flags & MSG_MORE != 0 {
        // The datagram ends with a later call, which must be the kernel's, too.
        gate::withdraw(fd, KernelOnly::Flag(MSG_MORE));
    }
    if let Some(peer) = &peer
        && flags & !KNOWN == 0
        && header.msg_controllen == 0
        && let Some(pairing) = held.attached(peer)
        // SAFETY: the caller's promise.
        && let Some(length) = unsafe { by_ring(held, fd, pairing, header) }
    {
        return length as ssize_t;
    }
    let went = plain();
    if went >= 0 {
        sent_by_kernel(held, fd, peer.as_ref(), went as usize);
    }
    went
}

/// After the kernel has sent a datagram: what goes to the same peer by a ring later comes after it.
pub fn sent_by_kernel(held: &SocketHold, fd: c_int, peer: Option<&DatagramPeer>, bytes: usize) {
    STREAMS.counters().bytes_kernel_out.fetch_add(bytes as u64, Ordering::Relaxed);
    match peer {
        Some(peer) => pairs::sent(held, fd, peer),
        // Its address is spelled in a way that we do not read: it may be any of them.
        None => held.known().iter().for_each(|pairing| pairing.after_kernel.store(1, Ordering::Relaxed)),
    }
}

/// Where the datagram goes, if that may have a ring.
///
/// # Safety
/// The program's header and its name.
pub unsafe fn destination(held: &UserSocket, header: &msghdr) -> Option<DatagramPeer> {
    if header.msg_name.is_null() {
        return held.connected();
    }
    // SAFETY: the caller's promise.
    unsafe { names::read(header.msg_name.cast(), header.msg_namelen as usize, held.family()) }
}

/// Sends by the ring if it can; how many bytes.
#[inline]
unsafe fn by_ring(held: &SocketHold, fd: c_int, pairing: &Pairing, header: &msghdr) -> Option<usize> {
    let channel = pairing.channel()?;
    if channel.peer_gone() {
        leave_the_gone(held, fd);
        pairs::sweep(held);
        return None;
    }
    let count = header.msg_iovlen;
    if count > MOST_PIECES || is_stalled(held, fd, pairing, &channel) {
        return None;
    }
    let pieces = if count == 0 {
        &[]
    } else {
        // SAFETY: the program promises so many buffers.
        unsafe { std::slice::from_raw_parts(header.msg_iov, count) }
    };
    let length = pieces.iter().fold(0usize, |sum, piece| sum.saturating_add(piece.iov_len));
    if length > LONGEST {
        return None;
    }
    let after_kernel = pairing.after_kernel.load(Ordering::Relaxed) != 0;
    let sent = channel.send(length, after_kernel, |write| {
        for iovec { iov_base, iov_len } in pieces.iter().filter(|piece| piece.iov_len > 0) {
            // SAFETY: the program promises that its buffers are readable for this call.
            write(unsafe { std::slice::from_raw_parts(iov_base.cast(), *iov_len) });
        }
    });
    if sent == SentDatagram::Kernel {
        return None;
    }
    if after_kernel {
        pairing.after_kernel.store(0, Ordering::Relaxed);
    }
    let counters = STREAMS.counters();
    counters.datagrams_ring_out.fetch_add(1, Ordering::Relaxed);
    counters.bytes_ring_out.fetch_add(length as u64, Ordering::Relaxed);
    Some(length)
}

/// Whether the peer leaves what is in its ring: it may be dead, which the kernel knows, and the rendezvous only later.
#[inline]
fn is_stalled(held: &SocketHold, fd: c_int, pairing: &Pairing, channel: &DatagramChannel) -> bool {
    let now = raw::ticks();
    if now.wrapping_sub(pairing.looked_at.load(Ordering::Relaxed)) >= LOOK_TICKS {
        pairing.looked_at.store(now, Ordering::Relaxed);
        let stands = stands_still(held, fd, pairing, channel);
        pairing.stalled.store(u32::from(stands), Ordering::Relaxed);
    }
    pairing.stalled.load(Ordering::Relaxed) != 0
}

/// Whether nothing has been taken since the last look, or will be.
fn stands_still(held: &SocketHold, fd: c_int, pairing: &Pairing, channel: &DatagramChannel) -> bool {
    // Where all is taken there is nothing that could stand until the next look.
    let taken = if channel.unread_by_peer() > 0 { channel.consumed() } else { u64::MAX };
    let before = pairing.seen.swap(taken, Ordering::Relaxed);
    if taken == u64::MAX {
        return false;
    }
    // Who has taken something since the last look lives, or did a moment ago.
    if (before == taken || before == u64::MAX) && channel.peer_dead() {
        send_again(held, fd, pairing, channel);
        return true;
    }
    before == taken
}

/// Before a sleep: what a peer that has died before it read it would have been told to us as an error. The kernel says
/// so when it gets it.
pub fn send_again_what_the_dead_left(held: &SocketHold, fd: c_int) {
    for pairing in held.known() {
        let Some(channel) = pairing.channel() else { continue };
        if pairing.state.load(Ordering::Relaxed) != ATTACHED || channel.unread_by_peer() == 0 || !channel.peer_dead() {
            continue;
        }
        send_again(held, fd, pairing, &channel);
    }
}

/// Nothing more goes to sockets that are gone. What they have sent is still read, and then their places are free.
#[cold]
pub fn leave_the_gone(held: &SocketHold, fd: c_int) {
    let _errno = raw::KeepErrno::new();
    send_again_what_the_dead_left(held, fd);
    let gone = |pairing: &&Pairing| pairing.channel().is_some_and(|channel| channel.peer_gone());
    for pairing in held.known().iter().filter(gone) {
        pairs::drain(pairing, &gate::LockedSocket::new(held));
    }
}

#[cold]
fn send_again(held: &SocketHold, fd: c_int, pairing: &Pairing, channel: &DatagramChannel) {
    let _errno = raw::KeepErrno::new();
    pairs::drain(pairing, &gate::LockedSocket::new(held));
    let buffer = raw::map(LONGEST, false);
    if !buffer.is_null() {
        // SAFETY: new memory of that length, ours alone.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer, LONGEST) };
        channel.take_back(|length, read| {
            read(&mut buffer[..length]);
            send_to(fd, &buffer[..length], &pairing.peer(), held);
            true
        });
        // SAFETY: mapped above with this size, used by nobody any more.
        unsafe { raw::unmap(buffer.as_mut_ptr(), LONGEST) };
    }
}

fn send_to(fd: c_int, bytes: &[u8], peer: &DatagramPeer, held: &SocketHold) {
    let mut name = [0u8; 32];
    // SAFETY: a place of that size; a header of zeros is an empty one, and what it points at lives across the call.
    unsafe {
        let mut piece = iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let mut header: msghdr = std::mem::zeroed();
        if held.connected().is_none() {
            header.msg_namelen = names::write(peer, held.family(), name.as_mut_ptr(), name.len());
            header.msg_name = name.as_mut_ptr().cast();
        }
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        // The error of the datagram before is told instead of sending this one; its own is the program's.
        if raw::send_message(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) == Err(libc::ECONNREFUSED) {
            let _ = raw::send_message(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
    }
}
