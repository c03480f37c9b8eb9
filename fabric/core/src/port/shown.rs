//! Messages in memory that their sender can show to us: copied without the kernel, which takes a microsecond or two for
//! each copy out of another process.
//!
//! A sender that has its message in such memory ([`crate::memory`]) says where when it asks. What it says is a claim:
//! where it does not lead to memory of that kind, the message goes as any other.
//!
//! The receiver maps such memory once and copies from there.

use super::Port;
use crate::memory;
use crate::region::{Region, Ticket};
use weft_device::shm::ShownMemory;

/// Regions of others that are kept open, at most. Messages out of more go as any other.
const MOST: usize = 256;

/// Messages between two looks whether their makers still have them.
const FINDS_PER_LOOK: u32 = 1024;

/// Where bytes lie that others can map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownPlace {
    pub ticket: Ticket,
    pub offset: u64,
}

impl ShownPlace {
    /// Where `bytes` bytes from `data` on lie, if they can be shown.
    pub fn of(data: *const u8, bytes: usize) -> Option<Self> {
        let memory::Location { ticket, offset, .. } = memory::of(data as usize, bytes)?;
        Some(Self { ticket, offset: offset as u64 })
    }
}

/// What a sender that asks says of its message, besides its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// In its own memory.
    pub address: u64,
    /// Its request.
    pub request: u32,
    /// The message may be taken at once, received or not.
    pub offered: bool,
    pub place: Option<ShownPlace>,
}

/// Set beside the number of a descriptor, so that there is one.
const HAS_PLACE: u64 = 1 << 63;

impl Asked {
    /// As the words of the packet behind the length ([`Self::from_words`] reads them).
    pub fn words(&self) -> [u64; 5] {
        let offered = u64::from(self.offered);
        let Some(ShownPlace { ticket, offset }) = self.place else {
            return [self.address, self.request.into(), offered, 0, 0];
        };
        let number = HAS_PLACE | u64::from(ticket.number) << 1;
        [self.address, self.request.into(), offered | number, ticket.token, offset]
    }

    pub fn from_words(words: [u64; 5]) -> Self {
        let [address, request, flags, token, offset] = words;
        let place = (flags & HAS_PLACE != 0)
            .then_some(ShownPlace { ticket: Ticket { number: (flags >> 1) as u32, token }, offset });
        Self { address, request: request as u32, offered: flags & 1 != 0, place }
    }
}

/// A region of a peer, or that it cannot be opened.
struct Opened {
    peer: u32,
    ticket: Ticket,
    region: Option<Region>,
}

/// The regions of others that have been opened.
#[derive(Default)]
pub(super) struct Opens {
    opened: Vec<Opened>,
    finds: u32,
}

impl Opens {
    /// The message of `bytes` bytes at a place of `peer`, whose process is `pid`.
    fn find(&mut self, peer: u32, pid: i32, place: ShownPlace, bytes: u64) -> Option<ShownMemory> {
        self.finds = self.finds.wrapping_add(1);
        if self.finds.is_multiple_of(FINDS_PER_LOOK) {
            self.drop_unused();
        }
        let known = self.opened.iter().position(|opened| opened.peer == peer && opened.ticket == place.ticket);
        let at = known.or_else(|| self.open(peer, pid, place.ticket))?;
        let region = self.opened[at].region.as_ref()?;
        let end = place.offset.checked_add(bytes)?;
        (end <= region.bytes() as u64).then(|| region.shown(place.offset as usize))
    }

    fn open(&mut self, peer: u32, pid: i32, ticket: Ticket) -> Option<usize> {
        self.drop_unused();
        if self.opened.len() == MOST {
            return None;
        }
        self.opened.push(Opened { peer, ticket, region: Region::open_any(pid, ticket).ok() });
        Some(self.opened.len() - 1)
    }

    /// What its maker has given up shall not stay because of us.
    fn drop_unused(&mut self) {
        self.opened.retain(|opened| opened.region.as_ref().is_some_and(Region::is_in_use));
    }

    pub fn forget(&mut self, peer: u32) {
        self.opened.retain(|opened| opened.peer != peer);
    }
}

impl Port {
    /// Where a message to `to` lies, if that can be shown there and is worth it.
    #[inline]
    pub(super) fn place_of(&self, to: u32, data: *const u8, length: usize) -> Option<ShownPlace> {
        if !self.rules.may_show(length) {
            return None;
        }
        let place = ShownPlace::of(data, length)?;
        self.attachable(to).is_some().then_some(place)
    }

    /// What `from` says that it has at a place, if it leads to that.
    pub fn see(&mut self, from: u32, place: ShownPlace, bytes: u64) -> Option<ShownMemory> {
        let pid = self.attachable(from)?;
        self.opens.find(from, pid, place, bytes)
    }

    /// The message, where its sender shows it.
    pub(super) fn shown(&mut self, from: u32, asked: &Asked, bytes: u64) -> Option<ShownMemory> {
        self.see(from, asked.place?, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_read_as_it_was_written() {
        let place = ShownPlace { ticket: Ticket { number: u32::MAX, token: 7 }, offset: u64::MAX };
        for (offered, place) in [(false, None), (true, None), (false, Some(place)), (true, Some(place))] {
            let asked = Asked { address: 0x1234, request: u32::MAX, offered, place };
            assert_eq!(Asked::from_words(asked.words()), asked);
        }
    }

    #[test]
    fn regions_are_found_while_they_are_in_use() {
        let (me, region) = (std::process::id() as i32, Region::create(5000).expect("memory"));
        let place = ShownPlace { ticket: region.ticket(), offset: 4000 };
        let mut opens = Opens::default();
        // SAFETY: inside the region.
        unsafe { region.at(4999, 1).write(9) };
        let shown = opens.find(3, me, place, 1000).expect("a region");
        let mut byte = 0;
        // SAFETY: one byte, ours.
        unsafe { shown.copy(999, &raw mut byte, 1) };
        assert_eq!(byte, 9);
        assert!(opens.find(3, me, place, 8192).is_none(), "beyond its end");
        assert!(opens.find(3, me, ShownPlace { offset: u64::MAX, ..place }, 2).is_none(), "an end that wraps around");
        let made_up = ShownPlace { ticket: Ticket { token: 5, ..place.ticket }, offset: 0 };
        assert!(opens.find(3, me, made_up, 1).is_none(), "another token");
        drop(region);
        opens.open(4, me, place.ticket);
        assert!(opens.opened.iter().all(|opened| opened.peer == 4 && opened.region.is_none()), "given up by its maker");
    }
}
