//! The memory that the lanes of a host share, the lock of what only one may do at a time, and whose turn each frame is.
//!
//! Frames go round: to the kernel by the fill ring, to a lane in its receive ring, and back by the fill ring; or from a lane
//! by its send ring, through the wire, and back by the completion ring. Each lane sends from frames of its own, but a
//! completion may come to any of them, so each such frame has a word: where the packet in it begins while it is on its way,
//! and 0 otherwise. Packets of the same frame begin at two places by turns. So a completion that is handled twice, because
//! who handled it first was killed before he could say so, does nothing the second time: nothing completes until it has
//! been handled again, and so the frame has been used once since, from the other place.

use crate::shm::Memory;
use crate::sync::{AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weft_wire::xdp::{HEADER_BYTES, Layout, STATES_AT};

/// Who of this process is inside the lock. The kernel's lock is between processes.
static INSIDE: Mutex<()> = Mutex::new(());

/// Mapped memory of lanes.
pub struct Area {
    /// Gone only while it is dropped.
    memory: Option<Memory>,
    layout: Layout,
}

impl Area {
    /// New memory, with its header.
    pub fn create(layout: Layout) -> io::Result<Self> {
        let memory = Memory::create(c"weft-xdp", layout.bytes())?;
        memory.populate(0, layout.bytes())?;
        let header = layout.encode();
        // SAFETY: so many bytes are there, and nobody else has the memory yet.
        unsafe { std::ptr::copy_nonoverlapping(header.as_ptr(), memory.at(0, HEADER_BYTES), HEADER_BYTES) };
        Ok(Self { memory: Some(memory), layout })
    }

    /// Memory that somebody else has made.
    ///
    /// # Errors
    /// It is not sealed, its header is none, or it is too small for what the header says.
    pub fn adopt(descriptor: OwnedFd) -> io::Result<Self> {
        let memory = Memory::open(descriptor)?;
        if memory.bytes() < STATES_AT {
            return Err(io::Error::other("the memory of the xdp lanes is too small"));
        }
        let mut header = [0; HEADER_BYTES];
        // SAFETY: so many bytes are there; they are copied, and looked at in the copy.
        unsafe { std::ptr::copy_nonoverlapping(memory.at(0, HEADER_BYTES), header.as_mut_ptr(), HEADER_BYTES) };
        let layout = Layout::decode(&header).map_err(io::Error::other)?;
        if memory.bytes() < layout.bytes() {
            return Err(io::Error::other("the memory of the xdp lanes is too small"));
        }
        Ok(Self { memory: Some(memory), layout })
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    fn memory(&self) -> &Memory {
        self.memory.as_ref().expect("there until the drop")
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.memory().descriptor()
    }

    /// All frames, for the kernel.
    pub fn frames(&self) -> (*mut u8, usize) {
        let bytes = self.layout.frames_bytes();
        (self.memory().at(self.layout.frames_at(), bytes), bytes)
    }

    /// Whether a packet lies in one of the frames for what arrives.
    pub fn is_received(&self, address: u64, length: u32) -> bool {
        let frame_bytes = u64::from(self.layout.frame_bytes);
        address < u64::from(self.layout.receive_frames()) * frame_bytes
            && address % frame_bytes + u64::from(length) <= frame_bytes
    }

    /// Copies a packet that has arrived; the place has room for it.
    pub fn copy_out(&self, address: u64, to: &mut [u8]) {
        let from = self.memory().at(self.layout.frames_at() + address as usize, to.len());
        // SAFETY: so many bytes are there, outside of `to`. Another lane that writes there spoils what arrived for us.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
    }

    /// Copies a packet into a frame.
    pub fn copy_in(&self, address: u64, from: &[u8]) {
        let to = self.memory().at(self.layout.frames_at() + address as usize, from.len());
        // SAFETY: so many bytes are there, outside of `from`; the frame is the caller's.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
    }

    /// The word of a frame that is sent from.
    fn state(&self, index: u32) -> &AtomicU64 {
        let at = self.memory().at(STATES_AT + index as usize * 8, 8);
        // SAFETY: inside the memory, aligned, and only ever an atomic.
        unsafe { &*at.cast() }
    }

    /// A packet at this place is on its way.
    pub fn begin(&self, index: u32, address: u64) {
        self.state(index).store(address, Ordering::Relaxed);
    }

    /// Whether the kernel is through with the frame.
    // ORDER: end of a frame's way: see `finish`.
    pub fn is_free(&self, index: u32) -> bool {
        self.state(index).load(Ordering::Acquire) == 0
    }

    /// The packet at this place, of whatever lane, is through. Nonsense does nothing.
    pub fn finish(&self, address: u64) {
        let frame = address / u64::from(self.layout.frame_bytes);
        let sent = frame.checked_sub(self.layout.receive_frames().into());
        if let Some(index) = sent.filter(|index| *index < u64::from(self.layout.lanes * self.layout.send_frames)) {
            // ORDER: end of a frame's way: `is_free` acquires.
            let _ = self.state(index as u32).compare_exchange(address, 0, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// The lock of the rings that all lanes share, unless somebody has it. A holder who is killed has it no longer: the
    /// kernel sees to that.
    pub fn try_lock(&self) -> Option<Locked<'_>> {
        let inside = match INSIDE.try_lock() {
            Ok(inside) => inside,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return None,
        };
        self.set_lock(libc::F_WRLCK).then(|| Locked { area: self, _inside: inside })
    }

    fn set_lock(&self, kind: libc::c_int) -> bool {
        // SAFETY: plain data, for which zero is a valid value.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as libc::c_short;
        lock.l_len = 1;
        // SAFETY: our descriptor; the kernel reads the lock during the call.
        unsafe { libc::fcntl(self.descriptor().as_raw_fd(), libc::F_SETLK, &raw const lock) == 0 }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // Closing any descriptor of a file gives up all locks that the process has on it.
        let _inside: MutexGuard<'_, ()> = INSIDE.lock().unwrap_or_else(PoisonError::into_inner);
        self.memory = None;
    }
}

/// Ends with its value.
pub struct Locked<'a> {
    area: &'a Area,
    _inside: MutexGuard<'static, ()>,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.area.set_lock(libc::F_UNLCK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area() -> Area {
        Area::create(Layout::new(2, 1500, 1).expect("two lanes")).expect("memory")
    }

    #[test]
    fn a_completion_that_comes_twice_frees_once() {
        let area = area();
        let (first, index) = area.layout().first_sent(1);
        let place = u64::from(first) * u64::from(area.layout().frame_bytes);
        area.begin(index, place);
        area.finish(place + 64);
        assert!(!area.is_free(index), "the other turn");
        area.finish(place);
        assert!(area.is_free(index));
        area.begin(index, place + 64);
        area.finish(place);
        assert!(!area.is_free(index), "the completion of the turn before, once more");
        area.finish(place + 64);
        assert!(area.is_free(index));
    }

    #[test]
    fn completions_of_what_is_no_frame_do_nothing() {
        let area = area();
        for address in [0, 2048, u64::MAX, area.layout().frames_bytes() as u64] {
            area.finish(address);
        }
    }

    #[test]
    fn places_outside_of_a_frame_are_none() {
        let area = area();
        let end = u64::from(area.layout().receive_frames()) * 2048;
        assert!(area.is_received(256, 1514) && area.is_received(end - 2048, 2048));
        assert!(!area.is_received(end, 1) && !area.is_received(600, 1514) && !area.is_received(0, u32::MAX));
    }

    #[test]
    fn memory_that_is_too_small_or_no_lanes_memory_is_refused() {
        let blank = Memory::create(c"weft-test", 8192).expect("memfd");
        assert!(Area::adopt(blank.descriptor().try_clone_to_owned().expect("dup")).is_err());
        let header = Layout::new(2, 1500, 1).expect("two lanes").encode();
        // SAFETY: inside the memory.
        unsafe { std::ptr::copy_nonoverlapping(header.as_ptr(), blank.at(0, HEADER_BYTES), HEADER_BYTES) };
        assert!(Area::adopt(blank.descriptor().try_clone_to_owned().expect("dup")).is_err());
        let tiny = Memory::create(c"weft-test", 16).expect("memfd");
        assert!(Area::adopt(tiny.descriptor().try_clone_to_owned().expect("dup")).is_err());
    }

    /// Other tests of this process are inside at times.
    fn lock(area: &Area) -> Locked<'_> {
        loop {
            if let Some(locked) = area.try_lock() {
                return locked;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn one_of_a_process_has_the_lock() {
        let (one, other) = (area(), area());
        let held = lock(&one);
        assert!(other.try_lock().is_none() && one.try_lock().is_none());
        drop(held);
        lock(&other);
    }
}
