//! Anonymous shared memory: a memfd and its mapping.

use crate::kernel::{self, Descriptor, FileIdentity};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr::NonNull;

/// A mapped memfd. Sparse: pages exist from their first touch on. The kernel frees it with the last descriptor and
/// mapping, however the processes ended.
pub struct Memory {
    base: NonNull<u8>,
    /// Where in the file the mapping begins.
    start: usize,
    bytes: usize,
    descriptor: Descriptor,
    /// What the descriptor leads to as long as it is ours.
    identity: Option<FileIdentity>,
}

// SAFETY: the mapping may be used from any thread; what is inside is accessed through atomics or by protocol.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Bytes made to exist at a time: a signal undoes what one call has done.
const POPULATED: usize = 4 << 20;
/// Of long memory: what its maker writes first is there.
const FIRST: usize = 4096;

/// How the kernel is asked for pages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PagesWay {
    Descriptor,
    Mapping,
}

impl Memory {
    /// New memory of `bytes`, all zero. The descriptor is closed on exec unless the launcher hands it on.
    pub fn create(name: &std::ffi::CStr, bytes: usize) -> io::Result<Self> {
        Self::create_parts(name, bytes, 1)
    }

    /// New memory of so many parts, of which the first is mapped here. It is of one part only where the limit on the
    /// size of files allows no more.
    pub fn create_parts(name: &std::ffi::CStr, bytes: usize, parts: usize) -> io::Result<Self> {
        check_file_limit(bytes)?;
        let whole = if check_file_limit(bytes * parts).is_ok() { bytes * parts } else { bytes };
        // Nobody can shrink it under a mapping: no access ends in SIGBUS for want of file.
        Self::map(kernel::sealed_memory(name, whole)?, 0, bytes)
    }

    /// New memory for a program's data. The pages of short memory exist from now on. Those of long memory come with
    /// their first touch, near the processor that touches them, as those of `malloc` do: programs ask for much that
    /// they never use. What `malloc` would refuse is refused; where the kernel promises no more than it has, all pages
    /// exist.
    ///
    /// # Errors
    /// As [`Self::create`] and [`Self::populate`].
    pub fn create_for_data(name: &std::ffi::CStr, bytes: usize) -> io::Result<Self> {
        let is_long = bytes > POPULATED && !is_strict();
        if is_long {
            check_commitment(bytes)?;
        }
        let memory = Self::create(name, bytes)?;
        memory.populate(0, if is_long { FIRST } else { bytes })?;
        Ok(memory)
    }

    /// Memory that somebody else created. Refused unless it is sealed against shrinking.
    pub fn open(descriptor: OwnedFd) -> io::Result<Self> {
        Self::open_raw(descriptor.into())
    }

    /// The same where the C library's calls may be a preloaded library's.
    pub fn open_raw(descriptor: Descriptor) -> io::Result<Self> {
        let bytes = kernel::sealed_bytes(descriptor.as_raw_fd())
            .ok_or_else(|| io::Error::other("the descriptor is not a sealed memfd"))?;
        Self::map(descriptor, 0, bytes)
    }

    /// A part of memory that somebody else created, whose length the caller has seen.
    pub(super) fn open_part(descriptor: OwnedFd, start: usize, bytes: usize) -> io::Result<Self> {
        Self::map(descriptor.into(), start, bytes)
    }

    /// Its descriptor is not closed when it is dropped.
    pub fn leave_open(&mut self) {
        self.descriptor.leave_open();
    }

    /// Its descriptor, which it does not need: how much of it there is room for is asked by the mapping then.
    pub fn take_descriptor(&mut self) -> OwnedFd {
        std::mem::replace(&mut self.descriptor, Descriptor::own(-1)).into()
    }

    /// Memory that process `pid`, of the same user, has open as descriptor `number`. What it is is a claim until it was
    /// looked at: nothing else is opened (to open a device or a pipe may do something), and if the other process is
    /// faster than we are, we wait for nothing and get no terminal.
    ///
    /// # Errors
    /// The kernel does not let us see that process's descriptors, or it is no sealed memory of ours.
    pub fn open_of(pid: i32, number: i32) -> io::Result<Self> {
        let path = format!("/proc/{pid}/fd/{number}");
        if !std::fs::read_link(&path)?.as_os_str().as_bytes().starts_with(b"/memfd:weft-") {
            return Err(io::Error::other("the descriptor is no memory of ours"));
        }
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK);
        Self::open(options.open(path)?.into())
    }

    fn map(descriptor: Descriptor, start: usize, bytes: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, descriptor.as_raw_fd(), start as i64) };
        match NonNull::new(at.cast()) {
            Some(base) if at != libc::MAP_FAILED => {
                let identity = kernel::identity(descriptor.as_raw_fd());
                Ok(Self { base, start, bytes, descriptor, identity })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Makes the pages of a range exist, so that too little memory is an error here and not a signal later. Where the
    /// kernel cannot be asked (a sandbox forbids the calls) they come with their first touch.
    ///
    /// # Errors
    /// There is too little memory; the text says how much was wanted and what allows no more.
    pub fn populate(&self, offset: usize, bytes: usize) -> io::Result<()> {
        assert!(offset + bytes <= self.bytes, "range {offset}+{bytes} outside the memory of {}", self.bytes);
        let end = offset + bytes;
        let mut at = offset;
        let mut way = if self.has_descriptor() { PagesWay::Descriptor } else { PagesWay::Mapping };
        while at < end {
            let step = (end - at).min(POPULATED);
            let Err(cause) = self.ask(way, at, step) else {
                at += step;
                continue;
            };
            match (cause.raw_os_error(), way) {
                (Some(libc::EINTR), _) => {}
                (Some(libc::ENOSYS | libc::EPERM | libc::EOPNOTSUPP), PagesWay::Descriptor) => way = PagesWay::Mapping,
                (Some(libc::ENOSYS | libc::EPERM | libc::EINVAL), PagesWay::Mapping) => return Ok(()),
                // A touch would end in a SIGBUS.
                (Some(libc::EFAULT), PagesWay::Mapping) => {
                    return Err(too_little(bytes, &io::Error::from_raw_os_error(libc::ENOSPC)));
                }
                _ => return Err(too_little(bytes, &cause)),
            }
        }
        Ok(())
    }

    /// Whether the descriptor is still that of this memory. Some programs close all that they do not know; the number
    /// may be that of a file of theirs since, or of other memory of ours, which must not grow.
    pub(super) fn has_descriptor(&self) -> bool {
        self.identity.is_some() && kernel::identity(self.descriptor.as_raw_fd()) == self.identity
    }

    /// Asks for pages. By the mapping they are mapped as well, which takes longer for who does not touch all of them.
    fn ask(&self, way: PagesWay, at: usize, bytes: usize) -> io::Result<()> {
        // SAFETY: system calls on our descriptor, and on a range inside our mapping, whose content they do not change.
        let answer = unsafe {
            match way {
                PagesWay::Descriptor => {
                    libc::fallocate(self.descriptor.as_raw_fd(), 0, (self.start + at) as i64, bytes as i64)
                }
                PagesWay::Mapping => {
                    let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
                    let first = at / page * page;
                    let start = self.base.as_ptr().add(first).cast();
                    libc::madvise(start, at + bytes - first, libc::MADV_POPULATE_WRITE)
                }
            }
        };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The address of `bytes` bytes at `offset`.
    pub fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        assert!(
            offset.checked_add(bytes).is_some_and(|end| end <= self.bytes),
            "range {offset}+{bytes} outside the memory of {}",
            self.bytes
        );
        // SAFETY: inside the mapping, as just checked.
        unsafe { self.base.as_ptr().add(offset) }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.has_descriptor() {
            self.leave_open();
        }
        // SAFETY: our mapping, and every view borrows from `self` or from an `Arc` of it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

fn too_little(bytes: usize, cause: &io::Error) -> io::Error {
    io::Error::other(format!(
        "{bytes} bytes were wanted: {cause}; no more is allowed by the memory limit of the control group (memory.max) or \
         of the machine (vm.overcommit_memory)"
    ))
}

/// Whether memory that was promised is there for sure (`vm.overcommit_memory`), so that too little is a signal at a
/// touch.
fn is_strict() -> bool {
    std::fs::read("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.first() == Some(&b'2'))
}

/// Refuses what the kernel would not promise a process. The mapping stands for one that comes after it, and no limit of
/// the process counts both.
fn check_commitment(bytes: usize) -> io::Result<()> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice, which nobody knows and which goes at once.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
        if at == libc::MAP_FAILED {
            return Err(too_little(bytes, &io::Error::last_os_error()));
        }
        libc::munmap(at, bytes);
    }
    Ok(())
}

/// A limit on the size of files (`ulimit -f`) holds for this memory too, and exceeding it is a deadly signal.
fn check_file_limit(bytes: usize) -> io::Result<()> {
    match kernel::limits(libc::RLIMIT_FSIZE) {
        Ok((most, _)) if most < bytes as u64 => {
            Err(io::Error::other(format!("files may have {most} bytes only (ulimit -f)")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_see_each_other() {
        let a = Memory::create(c"weft-test", 8192).expect("memfd");
        let b = Memory::open(a.descriptor().try_clone_to_owned().expect("dup")).expect("map");
        // SAFETY: inside both mappings, one thread.
        unsafe {
            a.at(5000, 1).write(7);
            assert_eq!(b.at(5000, 1).read(), 7);
        }
    }

    /// Bytes of the memory that a descriptor leads to which exist.
    fn blocks(memory: &Memory) -> usize {
        // SAFETY: a structure of numbers, for which zero is a value; the descriptor is ours.
        unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            assert_eq!(libc::fstat(memory.descriptor().as_raw_fd(), &mut stat), 0);
            stat.st_blocks as usize * 512
        }
    }

    #[test]
    fn pages_of_long_memory_come_with_their_first_touch() {
        for (bytes, exist) in [(POPULATED / 2, POPULATED / 2), (8 * POPULATED, FIRST)] {
            let memory = Memory::create_for_data(c"weft-test", bytes).expect("memory");
            assert_eq!(blocks(&memory), if is_strict() { bytes } else { exist });
        }
        // More than any machine has, less than there are addresses.
        let refused = Memory::create_for_data(c"weft-test", 1 << 46);
        assert!(refused.err().expect("too much").to_string().contains("bytes were wanted"));
    }

    #[test]
    fn memory_is_found_by_process_and_number() {
        let a = Memory::create(c"weft-test", 8192).expect("memfd");
        let me = std::process::id() as i32;
        let b = Memory::open_of(me, a.descriptor().as_raw_fd()).expect("our own");
        assert_eq!(b.bytes(), 8192);
        // SAFETY: inside both mappings, one thread.
        unsafe {
            a.at(100, 1).write(9);
            assert_eq!(b.at(100, 1).read(), 9);
        }
        assert!(Memory::open_of(me, 1 << 20).is_err());
    }

    #[test]
    fn nothing_is_opened_that_another_process_only_calls_our_memory() {
        let me = std::process::id() as i32;
        let foreign = Memory::create(c"another", 8192).expect("memfd");
        assert!(Memory::open_of(me, foreign.descriptor().as_raw_fd()).is_err());
        // To open a pipe that nobody writes to wakes whoever waits for a reader: its descriptor stays as it is.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let (reads, writes) = (reader.as_raw_fd(), writer.as_raw_fd());
        for number in [reads, writes] {
            let error = Memory::open_of(me, number).err().expect("no memory");
            assert_eq!(error.to_string(), "the descriptor is no memory of ours");
        }
    }

    /// A program closes descriptors that it does not know, and other memory of ours gets the number.
    #[test]
    fn a_number_that_is_other_memory_s_by_now_is_neither_used_nor_closed() {
        let [ours, other] = [(); 2].map(|()| Memory::create(c"weft-test", 2 * POPULATED).expect("memfd"));
        let number = ours.descriptor().as_raw_fd();
        // SAFETY: both are open; from here on the number is the other memory's.
        assert_eq!(unsafe { libc::dup2(other.descriptor().as_raw_fd(), number) }, number);
        ours.populate(0, POPULATED).expect("memory");
        assert_eq!(blocks(&other), 0, "the other one has grown");
        drop(ours);
        let kept = Descriptor::own(number);
        assert_eq!(kernel::identity(kept.as_raw_fd()), kernel::identity(other.descriptor().as_raw_fd()));
    }

    #[test]
    fn an_unsealed_file_is_refused() {
        let file = std::fs::File::open("/proc/self/exe").expect("open");
        assert!(Memory::open(file.into()).is_err());
    }

    #[test]
    #[should_panic(expected = "outside the memory")]
    fn no_address_outside() {
        Memory::create(c"weft-test", 4096).expect("memfd").at(4090, 7);
    }
}
