//! Where the next packet will stand.
//!
//! Who waits for a packet sees three lines that another core has written: the ring's position, the entry, and the
//! packet itself. Each is asked for when the one before has come, which takes 50 ns or 250, depending on how far apart
//! the cores are. But entry and frame are known beforehand, since frames come as they were given to the kernel. So all
//! three are asked for while one waits. Measured, 64 bytes one way: 2.28 us and 2.21 between cores that are near each
//! other, 3.07 and 2.77 between such that are not.
//!
//! It is a guess: where it is wrong, as among several lanes that share frames, the lines are asked for later.

use super::area::LaneArea;
use super::socket::KernelRing;
use crate::past_caches;
use crate::sync::{AtomicU32, Ordering};
use std::sync::atomic::AtomicBool;

/// Frames that others may have been given in between.
const AHEAD: u32 = 8;
/// So often the whole ring of frames is searched, since where the kernel is shows late; and once more after so many
/// packets that were found without.
const SEARCHES: u32 = 8;
const FOUND: u32 = 64;
/// The lines of a short packet.
const FETCHED_BYTES: usize = 128;

/// A lane's guess.
pub(super) struct Foresight {
    /// Where the ring of frames names the one of the next packet.
    next: AtomicU32,
    /// Where in its frame a packet begins.
    start: AtomicU32,
    /// Whether that was right the last time, how often it was, and how often it was searched for.
    is_sure: AtomicBool,
    found: AtomicU32,
    searches: AtomicU32,
}

impl Foresight {
    pub fn new(fill: &KernelRing) -> Self {
        Self {
            next: AtomicU32::new(fill.consumer()),
            start: AtomicU32::new(0),
            is_sure: AtomicBool::new(false),
            found: AtomicU32::new(0),
            searches: AtomicU32::new(0),
        }
    }

    /// The next packet is the one at `position` of the ring of what arrives, and may have come.
    #[inline(always)]
    pub fn fetch(&self, area: &LaneArea, fill: &KernelRing, receive: &KernelRing, position: u32) {
        past_caches::fetch::<false>(receive.place_of(position));
        if !self.is_sure.load(Ordering::Relaxed) {
            return;
        }
        let frame = fill.address(self.next.load(Ordering::Relaxed));
        let address = frame.wrapping_add(self.start.load(Ordering::Relaxed).into());
        if area.is_received(address, FETCHED_BYTES as u32) {
            let packet = area.at(address, FETCHED_BYTES).cast_const();
            past_caches::fetch::<false>(packet);
            past_caches::fetch::<false>(packet.wrapping_add(FETCHED_BYTES / 2));
        }
    }

    /// A packet has come there.
    #[inline]
    pub fn learn(&self, area: &LaneArea, fill: &KernelRing, address: u64) {
        let start = address % u64::from(area.layout().frame_bytes);
        self.start.store(start as u32, Ordering::Relaxed);
        let next = self.next.load(Ordering::Relaxed);
        let is_right = fill.address(next) == address - start;
        let place = if is_right { Some(next) } else { self.search(fill, address - start) };
        self.is_sure.store(is_right, Ordering::Relaxed);
        if let Some(place) = place {
            self.next.store(place.wrapping_add(1), Ordering::Relaxed);
            self.note_found();
        }
    }

    /// Where the ring of frames names this one, if that is near, or the whole ring may be searched.
    fn search(&self, fill: &KernelRing, frame: u64) -> Option<u32> {
        let next = self.next.load(Ordering::Relaxed);
        let find = |most: u32| (0..most).map(|ahead| next.wrapping_add(ahead)).find(|at| fill.address(*at) == frame);
        find(AHEAD).or_else(|| {
            let searches = self.searches.load(Ordering::Relaxed);
            if searches >= SEARCHES {
                return None;
            }
            self.searches.store(searches + 1, Ordering::Relaxed);
            find(fill.entries())
        })
    }

    fn note_found(&self) {
        let found = self.found.load(Ordering::Relaxed).wrapping_add(1);
        self.found.store(found, Ordering::Relaxed);
        if found.is_multiple_of(FOUND) {
            let searches = self.searches.load(Ordering::Relaxed);
            self.searches.store(searches.saturating_sub(1), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::socket::WhichRing;
    use super::*;
    use weft_wire::xdp::LaneLayout;

    #[test]
    fn frames_are_expected_in_the_order_in_which_the_kernel_got_them() {
        let layout = LaneLayout::new(1, 1500, 1).expect("a layout");
        let area = LaneArea::create(layout).expect("memory");
        let fill = KernelRing::of_own_memory(WhichRing::Fill, layout.fill_entries());
        let frame = |number: u32| u64::from(number * 7 % layout.receive_frames()) * u64::from(layout.frame_bytes);
        (0..layout.fill_entries()).for_each(|at| fill.set_address(at, frame(at)));
        let foresight = Foresight::new(&fill);
        let next = || foresight.next.load(Ordering::Relaxed) & (fill.entries() - 1);
        // Far from where the kernel says that it is.
        foresight.learn(&area, &fill, frame(100) + 256);
        assert_eq!((next(), foresight.start.load(Ordering::Relaxed)), (101, 256));
        assert!(!foresight.is_sure.load(Ordering::Relaxed), "it was found, not foreseen");
        foresight.learn(&area, &fill, frame(101) + 256);
        assert!(next() == 102 && foresight.is_sure.load(Ordering::Relaxed));
        // Others had some.
        foresight.learn(&area, &fill, frame(105) + 256);
        assert!(next() == 106 && !foresight.is_sure.load(Ordering::Relaxed));
        // Searched for in vain it is searched for no more, and what is near is still found.
        let none = u64::from(layout.receive_frames()) * u64::from(layout.frame_bytes);
        (0..2 * SEARCHES).for_each(|_| foresight.learn(&area, &fill, none));
        assert_eq!(next(), 106);
        foresight.learn(&area, &fill, frame(90));
        assert_eq!(next(), 106);
        foresight.learn(&area, &fill, frame(107));
        assert_eq!(next(), 108);
    }
}
