//! What the guardian asks of the kernel beside sockets of the standard library.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use weft_device::kernel;
use weft_device::shm::stream::Arena;
use weft_wire::stream::meeting::{NONCE_BYTES, Nonce};

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

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

/// Descriptors to be watched, as one.
pub struct Set(OwnedFd);

impl Set {
    pub fn new() -> io::Result<Self> {
        // SAFETY: numbers only; the descriptor is new.
        Ok(Self(own(check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?)))
    }

    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub fn add(&self, descriptor: &impl AsRawFd, key: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor.as_raw_fd(), key)
    }

    pub fn remove(&self, descriptor: &impl AsRawFd) {
        let _ = self.control(libc::EPOLL_CTL_DEL, descriptor.as_raw_fd(), 0);
    }

    fn control(&self, operation: i32, descriptor: RawFd, key: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: key };
        // SAFETY: the event lives across the call.
        check(unsafe { libc::epoll_ctl(self.descriptor(), operation, descriptor, &mut event) }).map(drop)
    }

    /// The keys of what is readable now.
    pub fn ready(&self) -> Vec<u64> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        // SAFETY: a valid place for so many events.
        let found = unsafe { libc::epoll_wait(self.descriptor(), events.as_mut_ptr(), events.len() as i32, 0) };
        events[..found.max(0) as usize].iter().map(|event| event.u64).collect()
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
