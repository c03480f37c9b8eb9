//! Whether what comes by the links ends a sleep.
//!
//! While the kernel watches a socket for somebody who may sleep on it, it notes each datagram that comes there, in the
//! call of whoever sends it. So it watches only for those that sleep: who is awake looks for himself. Who sleeps in
//! every wait stays watched, since to begin and to end it are system calls.

/// After so many looks that have found something without a sleep in between, sleeps are rare.
const FINDS_AWAKE: u32 = 4;

#[derive(Default)]
pub struct Watch {
    on: bool,
    /// Somebody may sleep.
    armed: bool,
    finds: u32,
}

impl Watch {
    /// Before a sleep. `begin` has the kernel watch, and answers whether it does: without it, there must be no sleep.
    /// What has come before ends the sleep as well.
    pub fn arm(&mut self, begin: impl FnOnce() -> bool) -> bool {
        self.on = self.on || begin();
        (self.armed, self.finds) = (self.on, 0);
        self.on
    }

    /// After a sleep that was armed for.
    pub fn disarm(&mut self) {
        self.armed = false;
    }

    /// A look has found something; `end` has the kernel watch no more. Another thread may sleep meanwhile.
    #[inline]
    pub fn note_find(&mut self, end: impl FnOnce()) {
        if !self.on || self.armed {
            return;
        }
        self.finds += 1;
        if self.finds >= FINDS_AWAKE {
            self.on = false;
            end();
        }
    }
}

/// Has all of these watched, or none of them: beside a half no sleep ends for what comes by the others, and yet the
/// kernel notes what comes by it.
pub fn begin_all<T>(all: impl Iterator<Item = T> + Clone, begin: impl Fn(T) -> bool, end: impl FnMut(T)) -> bool {
    let every = all.clone().all(begin);
    if !every {
        all.for_each(end);
    }
    every
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn where_one_cannot_be_watched_none_is() {
        for refused in [None, Some(0), Some(1), Some(2)] {
            let watched = RefCell::new(Vec::new());
            let begin = |one: u32| {
                let can = refused != Some(one);
                watched.borrow_mut().extend(can.then_some(one));
                can
            };
            let mut watch = Watch::default();
            let end = |one: u32| watched.borrow_mut().retain(|other| *other != one);
            let armed = watch.arm(|| begin_all(0..3, begin, end));
            assert_eq!(armed, refused.is_none());
            assert_eq!(watched.borrow().len(), if armed { 3 } else { 0 }, "{refused:?}");
        }
    }

    fn finds(watch: &mut Watch, count: u32) -> u32 {
        let mut ended = 0;
        (0..count).for_each(|_| watch.note_find(|| ended += 1));
        ended
    }

    #[test]
    fn who_is_awake_is_watched_no_more_and_who_sleeps_again_is() {
        let mut watch = Watch::default();
        assert_eq!(finds(&mut watch, 10), 0, "nothing to end");
        assert!(watch.arm(|| true));
        watch.disarm();
        assert_eq!(finds(&mut watch, 10), 1);
        let mut begun = false;
        assert!(watch.arm(|| std::mem::replace(&mut begun, true) | true) && begun);
    }

    #[test]
    fn who_sleeps_in_every_wait_stays_watched() {
        let mut watch = Watch::default();
        assert!(watch.arm(|| true));
        for _ in 0..10 {
            watch.disarm();
            assert_eq!(finds(&mut watch, FINDS_AWAKE - 1), 0);
            assert!(watch.arm(|| panic!("it is watched")));
        }
    }

    #[test]
    fn nothing_ends_while_somebody_sleeps() {
        let mut watch = Watch::default();
        assert!(watch.arm(|| true));
        assert_eq!(finds(&mut watch, 10), 0, "another thread of the process looks");
        watch.disarm();
        assert_eq!(finds(&mut watch, FINDS_AWAKE), 1);
    }

    #[test]
    fn who_cannot_be_watched_must_not_sleep() {
        let mut watch = Watch::default();
        assert!(!watch.arm(|| false));
        assert!(watch.arm(|| true), "perhaps later");
    }
}
