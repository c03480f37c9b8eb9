//! Memory of other processes of this host: regions that several of them map, and copies straight into one's memory.
//!
//! A [`Region`] is made by one process, which tells the others its [`Region::ticket`]; each of them opens it by that.
//! No name and no privilege is needed for it: the kernel shows a process's descriptors to processes of the same user.
//! Where it does not (other process namespaces), opening is an error, and whoever wanted a region goes another way.
//!
//! What a ticket says is a claim: it leads to memory of our kind, with the token that its maker wrote, or is refused.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weft_device::shm::{Memory, ShownMemory};
use weft_device::sys;
use weft_wire::segment::PAGE_BYTES;

/// Memory that several processes of this host have mapped. Zero at the start; its address differs between them.
pub struct Region {
    memory: Arc<Memory>,
    token: u64,
    /// The process that has made it, if it is not another one's.
    maker: Option<u32>,
}

/// How other processes find a region: number of the descriptor, and what stands in the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub number: u32,
    pub token: u64,
}

impl Region {
    /// A new region of `bytes`. More than the machine could hold is an error here; the pages of a long one come with
    /// their first touch.
    pub fn create(bytes: usize) -> io::Result<Self> {
        let whole = bytes.checked_add(PAGE_BYTES).filter(|whole| *whole <= isize::MAX as usize);
        let whole = whole.ok_or_else(|| io::Error::other(format!("{bytes} bytes are more than there can be")))?;
        let memory = Memory::create_for_data(c"weft-region", whole)?;
        let token = sys::now_ns() ^ u64::from(std::process::id()) << 32;
        let region = Self { memory: Arc::new(memory), token, maker: Some(std::process::id()) };
        region.mark().store(token, Ordering::Release);
        Ok(region)
    }

    pub fn ticket(&self) -> Ticket {
        Ticket { number: self.memory.descriptor().as_raw_fd() as u32, token: self.token }
    }

    /// The region of another process, which is to have so many bytes.
    pub(crate) fn open(pid: i32, ticket: Ticket, bytes: usize) -> io::Result<Self> {
        let region = Self::open_any(pid, ticket)?;
        if region.bytes() == bytes { Ok(region) } else { Err(io::Error::other("it is other memory")) }
    }

    /// The region of another process, however long it is.
    pub(crate) fn open_any(pid: i32, ticket: Ticket) -> io::Result<Self> {
        let number = i32::try_from(ticket.number).map_err(io::Error::other)?;
        let memory = Memory::open_of(pid, number)?;
        let region = Self { memory: Arc::new(memory), token: ticket.token, maker: None };
        if region.memory.bytes() > PAGE_BYTES && region.is_in_use() {
            Ok(region)
        } else {
            Err(io::Error::other("it is other memory"))
        }
    }

    /// What its maker wrote: the token, until it gives the region up.
    fn mark(&self) -> &AtomicU64 {
        // SAFETY: an atomic at the beginning of a mapping, which is a page and more, and lives as long as `self`.
        unsafe { &*self.memory.at(0, 8).cast() }
    }

    /// Whether its maker still has it.
    pub fn is_in_use(&self) -> bool {
        self.mark().load(Ordering::Acquire) == self.token
    }

    /// Bytes that can be used.
    pub fn bytes(&self) -> usize {
        self.memory.bytes() - PAGE_BYTES
    }

    /// The memory behind it, and where `offset` is in that.
    pub(crate) fn shown(&self, offset: usize) -> ShownMemory {
        ShownMemory { memory: self.memory.clone(), offset: PAGE_BYTES + offset }
    }

    /// The address of `bytes` bytes at `offset`, in this process.
    pub fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        self.memory.at(PAGE_BYTES + offset, bytes)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // A forked child has it, too, and gives nothing up.
        if self.maker == Some(std::process::id()) {
            self.mark().store(0, Ordering::Release);
        }
    }
}

/// Another process of this host whose memory the kernel may let us copy.
#[derive(Clone, Copy, Debug)]
pub struct Attach {
    pub(crate) pid: i32,
}

impl Attach {
    /// Copies `length` bytes at address `from` of the other process.
    ///
    /// # Safety
    /// `to` is writable for `length` bytes and nobody reads it meanwhile.
    pub unsafe fn read(&self, from: u64, to: *mut u8, length: usize) -> io::Result<()> {
        // SAFETY: the caller's promise; the kernel refuses what is not mapped there.
        unsafe { sys::copy_from_process(self.pid, from, to, length) }
    }

    /// Copies `length` bytes to address `to` of the other process, which has asked for it.
    ///
    /// # Safety
    /// `from` is readable for `length` bytes.
    pub unsafe fn write(&self, from: *const u8, to: u64, length: usize) -> io::Result<()> {
        // SAFETY: the caller's promise; the kernel refuses what is not mapped there.
        unsafe { sys::copy_to_process(self.pid, from, to, length) }
    }

    /// Copies bytes that lie side by side to places of the other process: each an address and a length.
    ///
    /// # Safety
    /// `from` is readable for the bytes of all places.
    pub unsafe fn scatter(&self, from: *const u8, places: impl Iterator<Item = (u64, usize)>) -> io::Result<()> {
        // SAFETY: the caller's promise; the kernel refuses what is not mapped there.
        unsafe { sys::scatter_to_process(self.pid, from, places) }
    }

    /// Brings the bytes of places of the other process side by side: each an address and a length.
    ///
    /// # Safety
    /// `to` is writable for the bytes of all places and nobody reads it meanwhile.
    pub unsafe fn gather(&self, places: impl Iterator<Item = (u64, usize)>, to: *mut u8) -> io::Result<()> {
        // SAFETY: the caller's promise; the kernel refuses what is not mapped there.
        unsafe { sys::gather_from_process(self.pid, places, to) }
    }
}

/// Whether an error says that the other process's memory is closed to us, rather than that there is none at the
/// address.
pub fn is_refusal(error: &io::Error) -> bool {
    !matches!(error.raw_os_error(), Some(libc::EFAULT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_opened_by_its_ticket_only() {
        let region = Region::create(5000).expect("memory");
        let me = std::process::id() as i32;
        let ticket = region.ticket();
        let other = Region::open(me, ticket, 5000).expect("the same process");
        // SAFETY: inside both mappings, one thread.
        unsafe {
            region.at(4999, 1).write(3);
            assert_eq!(other.at(4999, 1).read(), 3);
        }
        assert!(Region::open(me, ticket, 4999).is_err());
        assert!(Region::open(me, Ticket { token: !ticket.token, ..ticket }, 5000).is_err());
        assert!(Region::open(me, Ticket { number: u32::MAX, ..ticket }, 5000).is_err());
    }

    #[test]
    fn bytes_go_to_many_places_in_their_order() {
        let attach = Attach { pid: std::process::id() as i32 };
        let (from, mut to) = ((0..=255).collect::<Vec<u8>>(), vec![0u8; 3000]);
        let base = to.as_mut_ptr() as u64;
        // Backwards, one and two bytes by turns, more than one call takes.
        let places: Vec<(u64, usize)> = (0..170).map(|i| (base + 2990 - 10 * i, 1 + (i % 2) as usize)).collect();
        // SAFETY: all places are ours, and 255 bytes are given.
        unsafe { attach.scatter(from.as_ptr(), places.iter().copied()).expect("our own memory") };
        let mut next = 0;
        let mut expected = vec![0u8; 3000];
        for (at, length) in &places {
            for byte in 0..*length {
                expected[(at - base) as usize + byte] = next;
                next += 1;
            }
        }
        assert!(to == expected);
        let mut back = vec![0u8; 255];
        // SAFETY: as before, with room for 255 bytes.
        unsafe { attach.gather(places.iter().copied(), back.as_mut_ptr()).expect("our own memory") };
        assert!(back == from[..255]);
        // SAFETY: as before; page zero is refused.
        let error = unsafe { attach.scatter(from.as_ptr(), [(base, 1), (16, 1)].into_iter()) }.expect_err("page zero");
        assert!(!is_refusal(&error));
    }

    #[test]
    fn an_address_without_memory_is_no_refusal() {
        let attach = Attach { pid: std::process::id() as i32 };
        let mut byte = 0u8;
        // SAFETY: the place is ours.
        let error = unsafe { attach.read(16, &raw mut byte, 1) }.expect_err("page zero");
        assert!(!is_refusal(&error));
        assert!(is_refusal(&io::Error::from_raw_os_error(libc::EPERM)));
    }
}
