//! Bytes of a peer that is gone, for somebody who cannot read the ring.
//!
//! Only the other end of a TCP connection can put bytes into it, and that end is gone. So they are put into a
//! connection that is made for them, between the same addresses (but not the same ports; and where the other one is
//! another host's, both are ours), and ended as the old one was; its end takes the place of the descriptor.
//!
//! The direction is kept all the time: a call of another thread finds the bytes either where they were, or all of them,
//! in their order, behind the new descriptor.

use std::ffi::c_int;

use libc::{O_CLOEXEC, POLLOUT, iovec, pollfd};
use weft_fabric::stream::ReceiveGuard;

use super::conn::{ASK_KERNEL, Hold};
use super::pieces::Pieces;
use super::{incoming, kernel_counts, raw};

const PIECE: usize = 16 << 10;
/// Asked for; the kernel gives what the host allows.
const ROOM: c_int = 4 << 20;
/// Nobody reads meanwhile: what does not fit now will not fit later.
const FULL_NS: u64 = 20_000_000;
const ARRIVAL_LOOKS: u32 = 100;
const ARRIVAL_NS: u64 = 200_000;

/// Whether nobody is left who could send again what it has put into the ring. The kernel's word on the end comes first:
/// what the peer did before is seen afterwards.
pub fn is_due(held: &Hold, fd: c_int) -> bool {
    let stream = held.stream();
    kernel_counts::has_ended(fd)
        && !(stream.peer_half_closed() && stream.peer_reads_on())
        && !stream.lock_receive().want_kernel()
}

/// Two descriptors of our own.
struct DescriptorPair {
    near: c_int,
    far: c_int,
}

impl Drop for DescriptorPair {
    fn drop(&mut self) {
        raw::close(self.near);
        raw::close(self.far);
    }
}

/// Moves what is left into a connection that takes the place of all descriptors of this one. False where that cannot
/// be: then bytes may be missing, and nobody must take the rest for the whole.
pub fn replace(held: &Hold, fd: c_int) -> bool {
    // What others of the fork family have still to read is theirs.
    if held.stream().is_shared() {
        return false;
    }
    let Ok(here) = raw::name(libc::SYS_getsockname, fd) else { return false };
    // An address of another host is none that we could connect from.
    let far = held.stream().is_far();
    let there = raw::name(libc::SYS_getpeername, fd).ok().filter(|_| !far).unwrap_or(here);
    let Some((near, far)) = raw::connected_pair(&here, &there, ROOM) else { return false };
    let pair = DescriptorPair { near, far };
    let mut guard = held.stream().lock_receive();
    let Some(reset) = move_all(&mut guard, held, fd, pair.far) else { return false };
    if reset && has_arrived(pair.far) {
        raw::reset_when_closed(pair.far);
    }
    let flags = raw::fcntl(fd, libc::F_GETFL, 0).unwrap_or(0);
    let _ = raw::fcntl(pair.near, libc::F_SETFL, flags);
    let mut replaced = true;
    held.descriptors(held.index, |fd| {
        let closes = raw::fcntl(fd, libc::F_GETFD, 0).is_ok_and(|flags| flags & libc::FD_CLOEXEC as usize != 0);
        replaced &= raw::copy_onto(pair.near, fd, if closes { O_CLOEXEC } else { 0 }).is_ok();
    });
    if replaced {
        guard.finish();
    }
    replaced
}

/// Everything up to the end; whether that is a reset. `None`: it cannot be moved.
fn move_all(guard: &mut ReceiveGuard, held: &Hold, fd: c_int, to: c_int) -> Option<bool> {
    let mut buffer = [0u8; PIECE];
    loop {
        let piece = [iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: PIECE }];
        held.set_flag(ASK_KERNEL);
        match incoming::receive_held(guard, held, fd, Pieces::new(&piece)) {
            Ok(0) => return Some(false),
            Ok(came) if write_all(to, &buffer[..came]).is_some() => {}
            // Nobody shall read what is behind the hole.
            Ok(_) => return discard_rest(guard, held, fd),
            Err(libc::EAGAIN | libc::EINTR) => return discard_rest(guard, held, fd),
            Err(_) => return Some(true),
        }
    }
}

fn discard_rest(guard: &mut ReceiveGuard, held: &Hold, fd: c_int) -> Option<bool> {
    let mut buffer = [0u8; PIECE];
    let piece = [iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: PIECE }];
    while incoming::receive_held(guard, held, fd, Pieces::new(&piece)).is_ok_and(|came| came > 0) {}
    None
}

fn write_all(to: c_int, mut bytes: &[u8]) -> Option<()> {
    while !bytes.is_empty() {
        match raw::send_now(to, bytes) {
            Ok(went) => bytes = &bytes[went..],
            Err(libc::EAGAIN) => {
                let mut room = [pollfd { fd: to, events: POLLOUT, revents: 0 }];
                if raw::poll(&mut room, Some(FULL_NS), None) == Ok(0) {
                    return None;
                }
            }
            Err(_) => return None,
        }
    }
    Some(())
}

/// Whether all of it is where a reset leaves it alone.
fn has_arrived(fd: c_int) -> bool {
    (0..ARRIVAL_LOOKS).any(|_| {
        let arrived = raw::ioctl_number(fd, libc::TIOCOUTQ) == Ok(0);
        if !arrived {
            let _ = raw::poll(&mut [], Some(ARRIVAL_NS), None);
        }
        arrived
    })
}
