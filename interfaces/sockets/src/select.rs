//! `select` and `pselect`, by way of [`poll`](super::poll).

use std::ffi::c_int;

use libc::{POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLPRI, POLLRDBAND, POLLRDNORM, POLLWRBAND, POLLWRNORM};
use libc::{fd_set, pollfd};

use super::poll::{self, PollScratch};
use super::raw::{self, Errno};
use super::table;
use super::wait::left_ns;

const READ: i16 = POLLRDNORM | POLLRDBAND | POLLIN | POLLHUP | POLLERR;
const WRITE: i16 = POLLWRBAND | POLLWRNORM | POLLOUT | POLLERR;
const EXCEPT: i16 = POLLPRI;
const WORD_BITS: usize = u64::BITS as usize;

/// The three sets of one call; the first `count` bits of each count. Sets may be longer than the C library's type.
#[derive(Clone, Copy)]
pub struct Sets {
    words: [*mut u64; 3],
    count: usize,
}

impl Sets {
    pub fn new(count: c_int, sets: [*mut fd_set; 3]) -> Self {
        Self { words: sets.map(|set| set.cast()), count: count.max(0) as usize }
    }

    fn word(&self, set: usize, index: usize) -> u64 {
        if self.words[set].is_null() {
            return 0;
        }
        // SAFETY: the program promises sets of `count` bits, in words.
        let word = unsafe { self.words[set].add(index).read_unaligned() };
        let valid = self.count - index * WORD_BITS;
        if valid >= WORD_BITS { word } else { word & ((1 << valid) - 1) }
    }

    /// All descriptors in any set, with the events they stand for.
    fn members(&self) -> impl Iterator<Item = pollfd> + '_ {
        (0..self.count.div_ceil(WORD_BITS)).flat_map(move |index| {
            let words = [self.word(0, index), self.word(1, index), self.word(2, index)];
            let mut any = words[0] | words[1] | words[2];
            std::iter::from_fn(move || {
                let bit = (any != 0).then(|| any.trailing_zeros())?;
                any &= any - 1;
                let wants = |set: usize, events: i16| if words[set] >> bit & 1 != 0 { events } else { 0 };
                let events =
                    wants(0, POLLIN | POLLRDNORM | POLLRDBAND) | wants(1, POLLOUT | POLLWRNORM) | wants(2, POLLPRI);
                Some(pollfd { fd: (index * WORD_BITS) as c_int + bit as c_int, events, revents: 0 })
            })
        })
    }

    /// Whether any of the descriptors needs more than the kernel.
    pub fn concern(&self) -> bool {
        self.members().any(|one| table::entry(one.fd).is_some())
    }

    fn clear(&self) {
        for words in self.words.iter().filter(|words| !words.is_null()) {
            for index in 0..self.count.div_ceil(WORD_BITS) {
                // SAFETY: as in `word`.
                unsafe { words.add(index).write_unaligned(0) };
            }
        }
    }

    fn set(&self, set: usize, fd: c_int) {
        let (index, bit) = (fd as usize / WORD_BITS, fd as usize % WORD_BITS);
        // SAFETY: as in `word`; the descriptor came out of these sets.
        unsafe {
            let at = self.words[set].add(index);
            at.write_unaligned(at.read_unaligned() | 1 << bit);
        }
    }

    fn answer(&self, list: &[pollfd]) -> usize {
        let mut told = 0;
        self.clear();
        for one in list {
            for set in answers(one) {
                self.set(set, one.fd);
                told += 1;
            }
        }
        told
    }
}

/// The sets in whose answer this one stands.
fn answers(one: &pollfd) -> impl Iterator<Item = usize> + '_ {
    let asked_and_told = [(POLLIN, READ), (POLLOUT, WRITE), (POLLPRI, EXCEPT)].into_iter().enumerate();
    let told = asked_and_told.filter(|(_, (asked, told))| one.events & asked != 0 && one.revents & told != 0);
    told.map(|(set, _)| set)
}

/// `pselect` over sets of which [`Sets::concern`] is true.
pub fn select(sets: &Sets, timeout_ns: Option<u64>, mask: *const libc::sigset_t) -> Result<usize, Errno> {
    let Some(mut scratch) = PollScratch::new(sets.members().count()) else { return Err(libc::ENOMEM) };
    let list = scratch.list();
    for (place, one) in list.iter_mut().zip(sets.members()) {
        *place = one;
    }
    let deadline = timeout_ns.filter(|ns| *ns > 0).map(|ns| raw::now_ns().saturating_add(ns));
    let mut left = timeout_ns;
    loop {
        let found = poll::poll(list, left, mask)?;
        if list.iter().any(|one| one.revents & POLLNVAL != 0) {
            return Err(libc::EBADF);
        }
        if found == 0 || left == Some(0) || list.iter().any(|one| answers(one).next().is_some()) {
            return Ok(sets.answer(list));
        }
        // What `poll` tells unasked, such as an end of both ways, is nothing to those who asked for other things; it
        // stays so.
        list.iter_mut().filter(|one| one.revents != 0).for_each(|one| (one.fd, one.revents) = (-1, 0));
        left = if timeout_ns == Some(0) { Some(0) } else { left_ns(deadline) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_answers_are_those_of_the_three_sets() {
        let (mut read, mut write) = ([0u64; 2], [0u64; 2]);
        read[0] = 1 << 3 | 1 << 63;
        write[1] = 1 << 5 | 1 << 9;
        read[1] = 1 << 5;
        let sets = Sets::new(64 + 6, [read.as_mut_ptr().cast(), write.as_mut_ptr().cast(), std::ptr::null_mut()]);
        let mut list: Vec<pollfd> = sets.members().collect();
        let seen: Vec<(c_int, bool, bool)> =
            list.iter().map(|one| (one.fd, one.events & POLLIN != 0, one.events & POLLOUT != 0)).collect();
        assert_eq!(seen, [(3, true, false), (63, true, false), (69, true, true)]);
        list[0].revents = POLLHUP;
        list[2].revents = POLLIN | POLLOUT;
        assert_eq!(sets.answer(&list), 3);
        assert_eq!((read, write), ([1 << 3, 1 << 5], [0, 1 << 5]));
    }
}
