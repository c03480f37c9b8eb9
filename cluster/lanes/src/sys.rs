//! What the guardian asks of the kernel beside sockets of the standard library.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use weft_device::kernel;
use weft_device::shm::stream::Arena;
use weft_wire::stream::meeting::{NONCE_BYTES, Nonce};

/// Takes a new descriptor of the device's for ours.
pub fn own(descriptor: RawFd) -> OwnedFd {
    // SAFETY: callers hand over a descriptor that was made for them and that nobody else closes.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

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
        unsafe {
            libc::connect(self.0.as_raw_fd(), &raw const nobody, size_of::<libc::sockaddr>() as libc::socklen_t);
        }
    }

    fn set_linger(&self, mut linger: libc::linger) {
        let (at, bytes) = ((&raw mut linger).cast(), size_of::<libc::linger>() as libc::socklen_t);
        // SAFETY: a value and its length.
        unsafe { libc::setsockopt(self.0.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, at, bytes) };
    }
}

/// A program that wanted its own close to wait is not waited for here.
impl Drop for Anchor {
    fn drop(&mut self) {
        let mut linger = libc::linger { l_onoff: 0, l_linger: 0 };
        let mut bytes = size_of::<libc::linger>() as libc::socklen_t;
        let at = (&raw mut linger).cast();
        // SAFETY: a valid place of this length.
        unsafe { libc::getsockopt(self.0.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, at, &mut bytes) };
        if linger.l_onoff != 0 && linger.l_linger != 0 {
            self.set_linger(libc::linger { l_onoff: 0, l_linger: 0 });
        }
    }
}

/// Gives the memory of a slot back that nobody uses any more.
pub fn forget_rings(arena: &Arena, slot: u32) {
    // SAFETY: the program has given its place back, has ended, or has never had it, and the gateway believes nothing of the
    // slot any more.
    unsafe { arena.forget_rings(slot) };
}

/// Descriptors that this process may have.
pub fn descriptor_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid place for the answer.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if asked == 0 { limit.rlim_cur as usize } else { 1024 }
}

/// One that nobody can guess.
pub fn nonce() -> Option<Nonce> {
    let (low, high) = (kernel::true_random()?, kernel::true_random()?);
    let mut nonce = [0; NONCE_BYTES];
    nonce[..8].copy_from_slice(&low.to_le_bytes());
    nonce[8..].copy_from_slice(&high.to_le_bytes());
    (nonce != [0; NONCE_BYTES]).then_some(nonce)
}
