//! AF_XDP sockets: making them, their rings in our memory, and the calls on them.

use crate::kernel::{self, Descriptor};
use crate::past_caches;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::ptr::NonNull;

/// Where the options of these sockets stand.
const LEVEL: i32 = libc::SOL_XDP;
const OFFSETS: i32 = 1;
const RECEIVE_RING: i32 = 2;
const SEND_RING: i32 = 3;
const REGISTER: i32 = 4;
const FILL_RING: i32 = 5;
const COMPLETION_RING: i32 = 6;
const STATISTICS: i32 = 7;

const SHARED: u16 = 1 << 0;
const COPY: u16 = 1 << 1;
const NEED_WAKEUP: u16 = 1 << 3;
/// In a ring's word of flags: the kernel waits for a call.
const WAITS: u32 = 1;

/// The four rings of a socket. Two are its own, two are shared by all sockets of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichRing {
    Receive,
    Send,
    Fill,
    Completion,
}

impl WhichRing {
    /// Where its memory is mapped from, and how many words an entry has.
    fn place(self) -> (i64, usize) {
        match self {
            Self::Receive => (0, 2),
            Self::Send => (0x8000_0000, 2),
            Self::Fill => (0x1_0000_0000, 1),
            Self::Completion => (0x1_8000_0000, 1),
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RingOffsets {
    producer: u64,
    consumer: u64,
    entries: u64,
    flags: u64,
}

/// Packets that the kernel could not hand to a socket, or that a socket could not send.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub receive_dropped: u64,
    pub receive_invalid: u64,
    pub send_invalid: u64,
    /// Dropped because its lane did not look for so long that its ring was full.
    pub receive_ring_full: u64,
    pub fill_ring_empty: u64,
    pub send_ring_empty: u64,
}

#[repr(C)]
struct MemoryRegistration {
    at: u64,
    length: u64,
    frame_bytes: u32,
    headroom: u32,
    flags: u32,
    metadata_bytes: u32,
}

/// Calls that one push makes at most; the kernel sends 32 packets in each.
const KICKS: u32 = 64;

/// What has become of packets in a ring to be sent.
pub enum Pushed {
    /// The kernel has them.
    All,
    /// It has no room for some now.
    Some,
    /// The interface is down.
    Down,
    /// There is no way by this socket any more.
    Never(io::Error),
}

/// An AF_XDP socket.
pub struct XdpSocket(Descriptor);

impl XdpSocket {
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW, `EAFNOSUPPORT` where the kernel has no such sockets.
    pub fn new() -> io::Result<Self> {
        // SAFETY: numbers only; the descriptor is new and ours.
        unsafe {
            match libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) {
                -1 => Err(io::Error::last_os_error()),
                number => Ok(Self(Descriptor::own(number))),
            }
        }
    }

    /// Takes over a socket that somebody else has made. Whether it is one shows when its rings are mapped.
    pub fn adopt(descriptor: impl Into<Descriptor>) -> Self {
        Self(descriptor.into())
    }

    pub fn into_descriptor(self) -> OwnedFd {
        // SAFETY: it is ours, and nobody else's from now on.
        unsafe { OwnedFd::from_raw_fd(self.0.into_raw_fd()) }
    }

    fn set<T>(&self, option: i32, value: &T) -> io::Result<()> {
        // SAFETY: the option's value, with its size.
        let result = unsafe {
            let at = (value as *const T).cast();
            libc::setsockopt(self.0.as_raw_fd(), LEVEL, option, at, size_of::<T>() as libc::socklen_t)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// # Safety
    /// Any bytes are a `T`.
    unsafe fn ask<T: Default>(&self, option: i32) -> io::Result<T> {
        let mut value = T::default();
        let mut length = size_of::<T>() as libc::socklen_t;
        let (socket, level) = (self.0.as_raw_fd() as usize, LEVEL as usize);
        // SAFETY: a valid place for the answer and its size. Not by the C library, as in `kick`.
        unsafe {
            let [at, size] = [(&raw mut value) as usize, (&raw mut length) as usize];
            kernel::checked(libc::SYS_getsockopt, [socket, level, option as usize, at, size, 0])?;
        }
        if length as usize == size_of::<T>() { Ok(value) } else { Err(io::Error::other("it is no AF_XDP socket")) }
    }

    /// Gives the kernel `length` bytes at `at` as frames, for all sockets that are bound as sharers of this one.
    ///
    /// # Safety
    /// It is shared memory that nobody makes references into: the kernel writes there as long as sockets use it.
    pub unsafe fn register(&self, at: *mut u8, length: usize, frame_bytes: u32) -> io::Result<()> {
        let registration = MemoryRegistration {
            at: at as u64,
            length: length as u64,
            frame_bytes,
            headroom: 0,
            flags: 0,
            metadata_bytes: 0,
        };
        self.set(REGISTER, &registration)
    }

    /// Makes a ring of so many entries, a power of two.
    pub fn make_ring(&self, which: WhichRing, entries: u32) -> io::Result<()> {
        let option = match which {
            WhichRing::Receive => RECEIVE_RING,
            WhichRing::Send => SEND_RING,
            WhichRing::Fill => FILL_RING,
            WhichRing::Completion => COMPLETION_RING,
        };
        self.set(option, &entries)
    }

    /// Binds the socket to a queue of an interface: the first one with frames of its own, the others as its sharers.
    pub fn bind(&self, interface: u32, queue: u32, first: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: if first.is_some() { SHARED } else { COPY | NEED_WAKEUP },
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: first.map_or(0, |first| first.as_raw_fd() as u32),
        };
        // SAFETY: an address with its size.
        let result = unsafe {
            let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
            libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), length)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Lets packets of `bytes` in all be on their way at once, if we may.
    pub fn widen(&self, bytes: usize) {
        let bytes = bytes as i32;
        // SAFETY: an option's value with its size. Where it is refused, less is on its way.
        unsafe {
            let (at, length) = ((&raw const bytes).cast(), size_of::<i32>() as libc::socklen_t);
            libc::setsockopt(self.0.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, at, length);
        }
    }

    /// Has the kernel send what stands in the ring of packets to send, some of it at least.
    pub fn kick(&self) -> io::Result<()> {
        let [socket, flags] = [self.0.as_raw_fd() as usize, libc::MSG_DONTWAIT as usize];
        // Not by the C library, whose call is a point where threads are cancelled, and may be a preloaded library's.
        // SAFETY: no memory.
        unsafe { kernel::checked(libc::SYS_sendto, [socket, 0, 0, flags, 0, 0]) }.map(drop)
    }

    /// Whether the interface is up, of a socket that has no ring to send by: it is looked at before the ring.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn is_up(&self) -> io::Result<bool> {
        match self.kick() {
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => Ok(false),
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Err(error),
            _ => Ok(true),
        }
    }

    /// Has the kernel send what stands in the ring, as far as it does so now.
    pub fn push(&self, ring: &KernelRing, mut on_kick: impl FnMut()) -> Pushed {
        for _ in 0..KICKS {
            let before = ring.consumer();
            if before == ring.producer() || !ring.waits() {
                return Pushed::All;
            }
            on_kick();
            match self.kick().map_err(|error| (error.raw_os_error(), error)) {
                Ok(()) | Err((Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR), _)) => {}
                Err((Some(libc::ENETDOWN), _)) => return Pushed::Down,
                Err((_, error)) => return Pushed::Never(error),
            }
            if ring.consumer() == before {
                return Pushed::Some;
            }
        }
        Pushed::Some
    }

    pub fn statistics(&self) -> io::Result<Statistics> {
        // SAFETY: numbers only.
        unsafe { self.ask(STATISTICS) }
    }

    /// Maps one of the rings, which has at least `entries` entries; the kernel refuses more than there are.
    pub fn map(&self, which: WhichRing, entries: u32) -> io::Result<KernelRing> {
        // SAFETY: numbers only.
        let offsets: [RingOffsets; 4] = unsafe { self.ask(OFFSETS) }?;
        let offsets = offsets[which as usize];
        let (from, words) = which.place();
        let bytes = offsets.entries as usize + entries as usize * words * 8;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe {
            let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
            libc::mmap(std::ptr::null_mut(), bytes, protection, flags, self.0.as_raw_fd(), from)
        };
        match NonNull::new(at.cast()) {
            Some(base) if at != libc::MAP_FAILED => Ok(KernelRing { base, bytes, offsets, mask: entries - 1, words }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A ring that we share with the kernel, and perhaps with other lanes. What stands in it is a claim.
pub struct KernelRing {
    base: NonNull<u8>,
    bytes: usize,
    offsets: RingOffsets,
    mask: u32,
    words: usize,
}

// SAFETY: the mapping may be used from any thread; what is inside is accessed through atomics only.
unsafe impl Send for KernelRing {}
// SAFETY: as above.
unsafe impl Sync for KernelRing {}

impl KernelRing {
    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: inside the mapping, as the kernel's offsets of the three words lie before those of the entries;
        // aligned.
        unsafe { &*self.base.as_ptr().add(offset as usize).cast() }
    }

    fn entry(&self, index: u32, word: usize) -> &AtomicU64 {
        let at = self.offsets.entries as usize + ((index & self.mask) as usize * self.words + word) * 8;
        debug_assert!(word < self.words && at + 8 <= self.bytes);
        // SAFETY: index & mask is less than the number of entries for which the mapping was made; aligned.
        unsafe { &*self.base.as_ptr().add(at).cast() }
    }

    /// Where an entry stands.
    #[inline]
    pub fn place_of(&self, index: u32) -> *const u8 {
        std::ptr::from_ref(self.entry(index, 0)).cast()
    }

    pub fn entries(&self) -> u32 {
        self.mask + 1
    }

    /// How far the producer has come.
    // ORDER: entries of a ring: the kernel's producers release, as we do in `produce`.
    pub fn producer(&self) -> u32 {
        self.word(self.offsets.producer).load(Ordering::Acquire)
    }

    /// Asks for the line that says it.
    #[inline]
    pub fn fetch_producer(&self) {
        past_caches::fetch::<false>(std::ptr::from_ref(self.word(self.offsets.producer)).cast());
    }

    /// How far the consumer has come.
    // ORDER: room in a ring: the kernel's consumers release, as we do in `consume`.
    pub fn consumer(&self) -> u32 {
        self.word(self.offsets.consumer).load(Ordering::Acquire)
    }

    /// What stands before this position is there to be read.
    // ORDER: entries of a ring, see `producer`.
    pub fn produce(&self, position: u32) {
        self.word(self.offsets.producer).store(position, Ordering::Release);
    }

    /// What stands before this position is read.
    // ORDER: room in a ring, see `consumer`.
    pub fn consume(&self, position: u32) {
        self.word(self.offsets.consumer).store(position, Ordering::Release);
    }

    /// Whether the kernel waits for a call.
    pub fn waits(&self) -> bool {
        self.word(self.offsets.flags).load(Ordering::Relaxed) & WAITS != 0
    }

    /// Of a ring of frames.
    pub fn address(&self, index: u32) -> u64 {
        self.entry(index, 0).load(Ordering::Relaxed)
    }

    pub fn set_address(&self, index: u32, address: u64) {
        self.entry(index, 0).store(address, Ordering::Relaxed);
    }

    /// Of a ring of packets: where it is, and its length.
    pub fn packet(&self, index: u32) -> (u64, u32) {
        let [a, b, c, d, ..] = self.entry(index, 1).load(Ordering::Relaxed).to_ne_bytes();
        (self.address(index), u32::from_ne_bytes([a, b, c, d]))
    }

    pub fn set_packet(&self, index: u32, address: u64, length: u32) {
        let mut word = [0; 8];
        word[..4].copy_from_slice(&length.to_ne_bytes());
        self.entry(index, 0).store(address, Ordering::Relaxed);
        self.entry(index, 1).store(u64::from_ne_bytes(word), Ordering::Relaxed);
    }
}

#[cfg(test)]
impl KernelRing {
    /// A ring that is shared with nobody but children of this process.
    pub fn of_own_memory(which: WhichRing, entries: u32) -> Self {
        let offsets = RingOffsets { producer: 0, consumer: 64, entries: 192, flags: 128 };
        let words = which.place().1;
        let bytes = 192 + entries as usize * words * 8;
        let base = kernel::map_shared(None, bytes).expect("memory");
        Self { base: NonNull::new(base).expect("mapped"), bytes, offsets, mask: entries - 1, words }
    }

    pub fn memory(&self) -> (*mut u8, usize) {
        (self.base.as_ptr(), self.bytes)
    }
}

impl Drop for KernelRing {
    fn drop(&mut self) {
        // SAFETY: our mapping; every reference into it borrows from `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
