//! When to look at the sockets: a look is a system call, and takes as long as ten polls of shared memory.
//!
//! A poll takes a look only when some microseconds have passed since the last one: fewer while something comes, more
//! where all comes another way, by datagrams or by a lane. Where there is only one connection, looks that follow each
//! other quickly read it at once, and do not ask the set of all sockets.

use crate::sys;

/// Between two looks, at least: the clock's own ticks, of which there are one to four in a nanosecond.
const LEAST_TICKS: u64 = 64;
/// And at most, where other devices are polled as well: about two microseconds.
const MOST_TICKS: u64 = 4096;
/// And where they are not.
const MOST_TICKS_ALONE: u64 = 512;
/// And where nothing is expected: about a tenth of a millisecond.
const MOST_TICKS_IDLE: u64 = 1 << 18;

/// And where another device has brought so much since anything came here: some ten microseconds.
const MOST_TICKS_ASIDE: u64 = 1 << 15;
const FINDS_ELSEWHERE: u32 = 32;

/// The set of sockets is asked this long after the last time, in ticks of the clock: some ten microseconds or more.
const SET_TICKS: u64 = 1 << 16;

/// Looks often while something comes, less often while nothing does.
pub struct Look {
    last: u64,
    interval: u64,
    most: u64,
    /// Nothing is expected.
    idle: bool,
    /// What another device has brought since anything came here.
    elsewhere: u32,
}

impl Look {
    pub fn new(alone: bool) -> Self {
        let most = if alone { MOST_TICKS_ALONE } else { MOST_TICKS };
        Self { last: 0, interval: LEAST_TICKS, most, idle: false, elsewhere: 0 }
    }

    /// Whether it is time for a look, which then takes place. `ticks`: the processor's counter, read only just.
    #[inline]
    pub fn is_due(&mut self, ticks: u64) -> bool {
        let due = ticks.wrapping_sub(self.last) >= self.interval;
        if due {
            self.last = ticks;
        }
        due
    }

    /// What the look has found.
    pub fn learn(&mut self, any: bool) {
        let most = match self.idle {
            true => MOST_TICKS_IDLE,
            false if self.elsewhere >= FINDS_ELSEWHERE => MOST_TICKS_ASIDE,
            false => self.most,
        };
        self.interval = if any { LEAST_TICKS } else { (self.interval * 2).min(most) };
        if any {
            self.elsewhere = 0;
        }
    }

    /// Another device has brought something: where that is all that comes, looks become rarer.
    pub fn note_elsewhere(&mut self) {
        self.elsewhere = self.elsewhere.saturating_add(1);
    }

    /// How long the next look waits, in the clock's ticks.
    pub fn interval_ticks(&self) -> u64 {
        self.interval
    }

    /// Whether nothing is expected from now on: looks may become rarer still.
    pub fn set_idle(&mut self, idle: bool) {
        self.idle = idle;
    }

    #[inline]
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// The next poll looks.
    pub fn soon(&mut self) {
        self.last = self.last.wrapping_sub(self.interval);
    }
}

/// When the device of connections looks, and at what.
pub(super) struct SocketLooks {
    pub look: Look,
    /// When the set of sockets was last asked, and whether the next look does.
    set_ticks: u64,
    asks_set: bool,
    /// Another device leads to the same peers and is preferred.
    pub stands_by: bool,
}

impl SocketLooks {
    /// With `alone` no other device is polled beside.
    pub fn new(alone: bool) -> Self {
        Self { look: Look::new(alone), set_ticks: 0, asks_set: false, stands_by: false }
    }

    /// The next poll asks the set.
    pub fn soon(&mut self) {
        self.asks_set = true;
        self.look.soon();
    }

    /// Whether a look reads the one connection that there is if it is the `only` thing to look at, and asks the set of
    /// sockets some other time: two calls where something has come are one then, and whoever sends does not wait for
    /// the set, which it has to tell.
    pub fn reads_directly(&mut self, only: bool) -> bool {
        let now = sys::ticks();
        let asks = std::mem::take(&mut self.asks_set) || now.wrapping_sub(self.set_ticks) >= SET_TICKS;
        if only && !asks {
            return true;
        }
        self.set_ticks = now;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_rare_while_nothing_comes_and_are_frequent_again_when_something_does() {
        let mut look = Look::new(false);
        (0..20).for_each(|_| look.learn(false));
        assert_eq!(look.interval, MOST_TICKS);
        look.learn(true);
        assert_eq!(look.interval, LEAST_TICKS);
        (0..20).for_each(|_| look.learn(false));
        look.soon();
        assert!(look.is_due(sys::ticks()), "however short ago the last was");
    }

    #[test]
    fn where_all_comes_by_another_device_looks_are_rare_until_something_comes_here() {
        let mut look = Look::new(false);
        (0..FINDS_ELSEWHERE).for_each(|_| look.note_elsewhere());
        (0..20).for_each(|_| look.learn(false));
        assert_eq!(look.interval, MOST_TICKS_ASIDE);
        look.learn(true);
        (0..20).for_each(|_| look.learn(false));
        assert_eq!(look.interval, MOST_TICKS);
    }
}
