//! What the guardian asks of the kernel beside sockets of the standard library.

use std::os::fd::{AsRawFd, OwnedFd};
use weft_device::shm::stream::Arena;
use weft_kernel::{limits, option, set_option, system_call, true_random};
use weft_wire::stream::meeting::{NONCE_BYTES, Nonce};

/// A duplicate of a program's socket, which keeps the kernel's end of its connection back.
pub struct Anchor(OwnedFd);

impl Anchor {
    pub fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Lets it go so that the other host is told of an error, and not of an end: bytes are missing there.
    pub fn reset_when_closed(&self) {
        self.set_linger(libc::linger { l_onoff: 1, l_linger: 0 });
    }

    /// Undoes the connection, for the program as well, and tells the other host so.
    pub fn reset(&self) {
        let nobody = libc::sockaddr { sa_family: libc::AF_UNSPEC as libc::sa_family_t, sa_data: [0; 14] };
        // SAFETY: an address and its length.
        let _ = unsafe { system_call!(libc::SYS_connect, self.0.as_raw_fd(), &raw const nobody, size_of_val(&nobody)) };
    }

    fn set_linger(&self, linger: libc::linger) {
        let _ = set_option(self.0.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, linger);
    }
}

/// A program that wanted its own close to wait is not waited for here.
impl Drop for Anchor {
    fn drop(&mut self) {
        let nothing = libc::linger { l_onoff: 0, l_linger: 0 };
        let said = option(self.0.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, nothing).unwrap_or(nothing);
        if said.l_onoff != 0 && said.l_linger != 0 {
            self.set_linger(nothing);
        }
    }
}

/// Gives the memory of a slot back that nobody uses any more.
pub fn forget_rings(arena: &Arena, slot: u32) {
    // SAFETY: the program has given its place back, has ended, or has never had it, and the gateway believes nothing of
    // the slot any more.
    unsafe { arena.forget_rings(slot) };
}

/// Descriptors that this process may have.
pub fn descriptor_limit() -> usize {
    limits(libc::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft as usize)
}

/// One that nobody can guess.
pub fn nonce() -> Option<Nonce> {
    let (low, high) = (true_random()?, true_random()?);
    let mut nonce = [0; NONCE_BYTES];
    nonce[..8].copy_from_slice(&low.to_le_bytes());
    nonce[8..].copy_from_slice(&high.to_le_bytes());
    (nonce != [0; NONCE_BYTES]).then_some(nonce)
}
