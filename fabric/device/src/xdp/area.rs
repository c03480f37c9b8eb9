//! The memory that the lanes of a host share, the lock of what only one may do at a time, and whose turn each frame is.
//!
//! Frames go round: to the kernel by the fill ring, to a lane in its receive ring, and back by the fill ring; or from a
//! lane by its send ring, through the wire, and back by the completion ring. Each lane sends from frames of its own,
//! but a completion may come to any of them, so each such frame has a word: where the packet in it begins while it is
//! on its way, and the same with [`THROUGH`] once it is through. Packets of the same frame begin at two places by
//! turns. So a completion that is handled twice, because who handled it first was killed before he could say so, does
//! nothing the second time: nothing completes until it has been handled again, and so the frame has been used once
//! since, from the other place. Whose turn it is and whether the frame is free is one word, so that nobody who is
//! killed leaves one without the other.

use super::socket::KernelRing;
use crate::kernel::{self, Descriptor};
use crate::shm::Memory;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use weft_wire::xdp::{HEADER_BYTES, LaneLayout, STATES_AT, THROUGH, TURN_BYTES};

/// The process of whose threads one is inside the lock, 0 for none: the kernel's lock is between processes.
static INSIDE: AtomicU32 = AtomicU32::new(0);
/// Others of this process are inside for a microsecond, or, where they do not run, much longer.
const PATIENCE: u32 = 10_000;

/// The one of this process that may ask for the kernel's lock, and close descriptors of the memory: with the first that
/// it closes, a process loses the lock.
pub struct InsideArea;

impl InsideArea {
    pub fn enter() -> Option<Self> {
        let me = kernel::process();
        // ORDER: inside of a process: `drop` releases.
        match INSIDE.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Some(Self),
            Err(other) if other == me => None,
            // A thread of the process that we are a child of, which is not here.
            Err(other) => {
                let taken = INSIDE.compare_exchange(other, me, Ordering::Acquire, Ordering::Relaxed);
                taken.is_ok().then_some(Self)
            }
        }
    }

    /// Waits a while.
    pub fn wait() -> Option<Self> {
        (0..PATIENCE).find_map(|_| {
            let inside = Self::enter();
            if inside.is_none() {
                kernel::yield_core();
            }
            inside
        })
    }
}

impl Drop for InsideArea {
    fn drop(&mut self) {
        // ORDER: inside of a process: see `enter`.
        INSIDE.store(0, Ordering::Release);
    }
}

/// Whether the word of a frame that is sent from says that it is free.
fn is_through(state: u64) -> bool {
    state == 0 || state & THROUGH != 0
}

/// Mapped memory of lanes.
pub struct LaneArea {
    /// Gone only while it is dropped.
    memory: Option<Memory>,
    layout: LaneLayout,
}

impl LaneArea {
    /// New memory, with its header.
    pub fn create(layout: LaneLayout) -> io::Result<Self> {
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
    pub fn adopt(descriptor: impl Into<Descriptor>) -> io::Result<Self> {
        let memory = Memory::open_raw(descriptor.into())?;
        if memory.bytes() < STATES_AT {
            return Err(io::Error::other("the memory of the xdp lanes is too small"));
        }
        let mut header = [0; HEADER_BYTES];
        // SAFETY: so many bytes are there; they are copied, and looked at in the copy.
        unsafe { std::ptr::copy_nonoverlapping(memory.at(0, HEADER_BYTES), header.as_mut_ptr(), HEADER_BYTES) };
        let layout = LaneLayout::decode(&header).map_err(io::Error::other)?;
        if memory.bytes() < layout.bytes() {
            return Err(io::Error::other("the memory of the xdp lanes is too small"));
        }
        Ok(Self { memory: Some(memory), layout })
    }

    pub fn layout(&self) -> &LaneLayout {
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
        self.frame(address) < u64::from(self.layout.receive_frames())
            && (address & (frame_bytes - 1)) + u64::from(length) <= frame_bytes
    }

    /// The number of the frame that a place is in. Frames have a power of two of bytes.
    pub fn frame(&self, address: u64) -> u64 {
        address >> self.layout.frame_bytes.trailing_zeros()
    }

    /// `bytes` bytes of the frames from a place on.
    pub fn at(&self, address: u64, bytes: usize) -> *mut u8 {
        self.memory().at(self.layout.frames_at() + address as usize, bytes)
    }

    /// Copies a packet that has arrived; the place has room for it.
    pub fn copy_out(&self, address: u64, to: &mut [u8]) {
        let from = self.at(address, to.len());
        // SAFETY: so many bytes are there, outside of `to`. Another lane that writes there spoils what arrived for us.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
    }

    /// Copies a packet into a frame.
    pub fn copy_in(&self, address: u64, from: &[u8]) {
        let to = self.at(address, from.len());
        // SAFETY: so many bytes are there, outside of `from`; the frame is the caller's.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
    }

    /// The word of a frame that is sent from.
    fn state(&self, index: u32) -> &AtomicU64 {
        let at = self.memory().at(STATES_AT + index as usize * 8, 8);
        // SAFETY: inside the memory, aligned, and only ever an atomic.
        unsafe { &*at.cast() }
    }

    /// Where the next packet of a free frame begins.
    pub fn next_place(&self, index: u32) -> u64 {
        let frame = u64::from(self.layout.receive_frames() + index);
        let turn = !self.state(index).load(Ordering::Relaxed) & u64::from(TURN_BYTES);
        (frame << self.layout.frame_bytes.trailing_zeros()) + turn
    }

    /// A packet at this place is on its way. What the caller has stored before is stored before this, for whoever goes
    /// on when he is killed.
    pub fn begin(&self, index: u32, address: u64) {
        self.state(index).store(address, Ordering::Release);
    }

    /// The packet of this frame, which no ring has had, is not on its way: all is as before [`Self::begin`].
    pub fn withdraw(&self, index: u32) {
        let state = self.state(index);
        let now = state.load(Ordering::Relaxed);
        if !is_through(now) {
            state.store((now ^ u64::from(TURN_BYTES)) | THROUGH, Ordering::Release);
        }
    }

    /// Whether the kernel is through with the frame.
    // ORDER: end of a frame's way: see `finish`.
    pub fn is_free(&self, index: u32) -> bool {
        is_through(self.state(index).load(Ordering::Acquire))
    }

    /// The packet at this place, of whatever lane, is through. Nonsense does nothing.
    pub fn finish(&self, address: u64) {
        let sent = self.frame(address).checked_sub(self.layout.receive_frames().into());
        if let Some(index) = sent.filter(|index| *index < u64::from(self.layout.lanes * self.layout.send_frames)) {
            // ORDER: end of a frame's way: `is_free` acquires.
            let _ = self.state(index as u32).compare_exchange(
                address,
                address | THROUGH,
                Ordering::Release,
                Ordering::Relaxed,
            );
        }
    }

    /// The lock of the rings that all lanes share, unless somebody has it. A holder who is killed has it no longer: the
    /// kernel sees to that.
    pub fn try_lock(&self) -> Option<LockedArea<'_>> {
        let inside = InsideArea::enter()?;
        kernel::set_lock(self.descriptor().as_raw_fd(), true).then(|| LockedArea { area: self, _inside: inside })
    }
}

impl Drop for LaneArea {
    fn drop(&mut self) {
        let inside = InsideArea::wait();
        if let (None, Some(memory)) = (&inside, &mut self.memory) {
            memory.leave_open();
        }
        self.memory = None;
    }
}

/// Ends with its value.
pub struct LockedArea<'a> {
    area: &'a LaneArea,
    _inside: InsideArea,
}

impl LockedArea<'_> {
    /// Takes back the frames, of whatever lane, that the kernel is through with. False where it has more than there
    /// are. Who is killed before the last store leaves completions that are handled once more.
    pub fn take_back(&self, completion: &KernelRing) -> bool {
        let (mut finished, end) = (completion.consumer(), completion.producer());
        if end.wrapping_sub(finished) > completion.entries() {
            return false;
        }
        while finished != end {
            self.area.finish(completion.address(finished));
            finished = finished.wrapping_add(1);
        }
        completion.consume(finished);
        true
    }
}

impl Drop for LockedArea<'_> {
    fn drop(&mut self) {
        kernel::set_lock(self.area.descriptor().as_raw_fd(), false);
    }
}

#[cfg(test)]
impl LaneArea {
    /// Where the words of frames are.
    pub fn word_memory(&self) -> (*mut u8, usize) {
        let bytes = (self.layout.lanes * self.layout.send_frames) as usize * 8;
        (self.memory().at(STATES_AT, bytes), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area() -> LaneArea {
        LaneArea::create(LaneLayout::new(2, 1500, 1).expect("two lanes")).expect("memory")
    }

    #[test]
    fn a_completion_that_comes_twice_frees_once() {
        let area = area();
        let index = area.layout().first_sent(1).1;
        let place = area.next_place(index);
        area.begin(index, place);
        let other = area.next_place(index);
        area.finish(other);
        assert!(!area.is_free(index), "the other turn");
        area.finish(place);
        assert!(area.is_free(index) && area.next_place(index) == other);
        area.begin(index, other);
        area.finish(place);
        assert!(!area.is_free(index), "the completion of the turn before, once more");
        area.finish(other);
        assert!(area.is_free(index) && area.next_place(index) == place);
    }

    #[test]
    fn what_was_withdrawn_has_its_turn_again() {
        let area = area();
        for _ in 0..3 {
            let place = area.next_place(5);
            area.withdraw(5);
            assert_eq!(area.next_place(5), place, "nothing was begun");
            area.begin(5, place);
            area.withdraw(5);
            assert!(area.is_free(5) && area.next_place(5) == place);
            area.begin(5, place);
            area.finish(place);
        }
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
        assert!(LaneArea::adopt(blank.descriptor().try_clone_to_owned().expect("dup")).is_err());
        let header = LaneLayout::new(2, 1500, 1).expect("two lanes").encode();
        // SAFETY: inside the memory.
        unsafe { std::ptr::copy_nonoverlapping(header.as_ptr(), blank.at(0, HEADER_BYTES), HEADER_BYTES) };
        assert!(LaneArea::adopt(blank.descriptor().try_clone_to_owned().expect("dup")).is_err());
        let tiny = Memory::create(c"weft-test", 16).expect("memfd");
        assert!(LaneArea::adopt(tiny.descriptor().try_clone_to_owned().expect("dup")).is_err());
    }

    /// Other tests of this process are inside at times.
    fn lock(area: &LaneArea) -> LockedArea<'_> {
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
