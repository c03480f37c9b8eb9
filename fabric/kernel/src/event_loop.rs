//! The loop of a process that serves many descriptors.

use crate::epoll::DescriptorSet;
use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Who serves says before each turn what it is to wait for, and gets what has come, at most 64 things at a time.
///
/// A token names one file for as long as the loop lives: a new one under the number of one that was closed has another
/// token, since nobody is told of a close.
pub struct EventLoop<T> {
    set: DescriptorSet,
    /// What is to be waited for in the next turn, with the events.
    asked: Vec<(RawFd, i16, T)>,
    /// What the set watches, and what it cannot watch.
    known: HashMap<RawFd, Watched<T>>,
    /// Of what was added last.
    serial: u32,
}

struct Watched<T> {
    token: T,
    events: i16,
    /// Tells this file from others that had the number.
    serial: u32,
    /// Its place among what was asked for in this turn, if it was.
    asked: Option<usize>,
    /// Files, of which nothing can be waited for, are ready; so is what is not open, which shows when it is used.
    is_unwatched: Option<i16>,
}

impl<T: Copy + PartialEq> EventLoop<T> {
    /// # Errors
    /// There are too few descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self { set: DescriptorSet::new()?, asked: Vec::new(), known: HashMap::new(), serial: 0 })
    }

    /// In the next turn these events (`POLLIN` and others) of this descriptor are waited for, and its end. A descriptor
    /// is asked for once.
    pub fn ask(&mut self, descriptor: RawFd, events: i16, token: T) {
        self.asked.push((descriptor, events, token));
    }

    /// Waits until something of what was asked for has come, or a signal, at most for `limit`. Answers what has, in the
    /// order in which it was asked for.
    ///
    /// # Errors
    /// The kernel cannot watch more.
    pub fn turn(&mut self, limit: Option<Duration>) -> io::Result<Vec<(T, i16)>> {
        let asked = std::mem::take(&mut self.asked);
        self.arm(&asked)?;
        let is_ready = |known: &Watched<T>| Some((known.asked?, known.is_unwatched?));
        let mut found: Vec<(usize, i16)> = self.known.values().filter_map(is_ready).collect();
        let limit = if found.is_empty() { limit } else { Some(Duration::ZERO) };
        let mut has_strangers = false;
        for (key, events) in self.set.wait(limit)? {
            let known = self.known.get(&(key as u32 as RawFd)).filter(|known| u64::from(known.serial) == key >> 32);
            match known.and_then(|known| known.asked) {
                Some(place) => found.push((place, events)),
                None => has_strangers = true,
            }
        }
        found.sort_unstable();
        let answer = found.into_iter().map(|(place, events)| (asked[place].2, events)).collect();
        if has_strangers {
            // What is closed here and open in another process cannot be taken out of a set.
            self.known.clear();
            self.set = DescriptorSet::new()?;
        }
        Ok(answer)
    }

    /// Lets the set watch what is asked for, and nothing else.
    fn arm(&mut self, asked: &[(RawFd, i16, T)]) -> io::Result<()> {
        self.known.values_mut().for_each(|known| known.asked = None);
        for (place, (descriptor, events, token)) in asked.iter().copied().enumerate() {
            let known = match self.known.remove(&descriptor).filter(|known| known.token == token) {
                Some(known) if known.events == events => known,
                Some(known)
                    if known.is_unwatched.is_none() && self.change(descriptor, events, known.serial).is_ok() =>
                {
                    Watched { events, ..known }
                }
                _ => self.add(descriptor, events, token)?,
            };
            self.known.insert(descriptor, Watched { asked: Some(place), ..known });
        }
        let set = &self.set;
        self.known.retain(|descriptor, known| {
            if known.asked.is_none() && known.is_unwatched.is_none() {
                set.remove(descriptor);
            }
            known.asked.is_some()
        });
        Ok(())
    }

    fn add(&mut self, descriptor: RawFd, events: i16, token: T) -> io::Result<Watched<T>> {
        self.serial = self.serial.wrapping_add(1);
        let serial = self.serial;
        let key = key_of(descriptor, serial);
        let added = self.set.watch(descriptor, events, key).or_else(|error| match error.raw_os_error() {
            Some(libc::EEXIST) => self.set.change(descriptor, events, key),
            _ => Err(error),
        });
        let is_unwatched = match added.map_err(|error| (error.raw_os_error(), error)) {
            Ok(()) => None,
            Err((Some(libc::EPERM), _)) => Some(events),
            Err((Some(libc::EBADF), _)) => Some(libc::POLLNVAL),
            Err((_, error)) => return Err(error),
        };
        let is_unwatched = is_unwatched.filter(|events| *events != 0);
        Ok(Watched { token, events, serial, asked: None, is_unwatched })
    }

    fn change(&self, descriptor: RawFd, events: i16, serial: u32) -> io::Result<()> {
        self.set.change(descriptor, events, key_of(descriptor, serial))
    }
}

fn key_of(descriptor: RawFd, serial: u32) -> u64 {
    u64::from(serial) << 32 | u64::from(descriptor as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system_call;
    use std::fs::File;
    use std::io::{Read, Write, pipe};
    use std::os::fd::AsRawFd;

    const NOW: Option<Duration> = Some(Duration::ZERO);
    const LONG: Option<Duration> = Some(Duration::from_secs(60));

    fn turn(events: &mut EventLoop<char>, asked: &[(RawFd, i16, char)], limit: Option<Duration>) -> Vec<(char, i16)> {
        asked.iter().for_each(|(descriptor, of_it, token)| events.ask(*descriptor, *of_it, *token));
        events.turn(limit).expect("a turn")
    }

    #[test]
    fn what_has_come_is_told_in_the_order_asked_and_only_while_it_is_asked_for() {
        let mut events = EventLoop::new().expect("a loop");
        let [(one, mut to_one), (mut other, mut to_other)] = [(); 2].map(|()| pipe().expect("a pipe"));
        let asked = [(other.as_raw_fd(), libc::POLLIN, 'b'), (one.as_raw_fd(), libc::POLLIN, 'a')];
        assert_eq!(turn(&mut events, &asked, NOW), []);
        to_one.write_all(b"x").and_then(|()| to_other.write_all(b"x")).expect("room");
        assert_eq!(turn(&mut events, &asked, LONG), [('b', libc::POLLIN), ('a', libc::POLLIN)]);
        assert_eq!(turn(&mut events, &asked[1..], LONG), [('a', libc::POLLIN)]);
        assert_eq!(events.set.wait(NOW).expect("a set").count(), 1, "what is not asked for is taken out");
        assert_eq!(turn(&mut events, &[], NOW), []);
        other.read_exact(&mut [0]).expect("it is there");
        assert_eq!(turn(&mut events, &asked, LONG), [('a', libc::POLLIN)]);
        drop(to_other);
        // The end shows, asked for or not.
        assert_eq!(turn(&mut events, &[(other.as_raw_fd(), 0, 'b')], LONG), [('b', libc::POLLHUP)]);
    }

    #[test]
    fn a_file_is_ready_at_once_and_what_is_not_open_as_well() {
        let mut events = EventLoop::new().expect("a loop");
        let file = File::open("/proc/self/exe").expect("it is there");
        let (quiet, _keeps) = pipe().expect("a pipe");
        let asked = [(quiet.as_raw_fd(), libc::POLLIN, 'q'), (file.as_raw_fd(), libc::POLLIN, 'f')];
        for _ in 0..2 {
            assert_eq!(turn(&mut events, &asked, LONG), [('f', libc::POLLIN)]);
        }
        assert_eq!(turn(&mut events, &[asked[0], (file.as_raw_fd(), 0, 'f')], NOW), []);
        assert_eq!(turn(&mut events, &[(1 << 20, libc::POLLOUT, 'n')], LONG), [('n', libc::POLLNVAL)]);
    }

    #[test]
    fn another_file_under_the_same_number_is_another_one() {
        let mut events = EventLoop::new().expect("a loop");
        let (first, mut to_first) = pipe().expect("a pipe");
        let number = first.as_raw_fd();
        assert_eq!(turn(&mut events, &[(number, libc::POLLIN, 'a')], NOW), []);
        // It stays open elsewhere, so that the set is not told of its end.
        let elsewhere = first.try_clone().expect("another number");
        let (second, mut writer) = pipe().expect("a pipe");
        // SAFETY: `first` is another pipe from now on, which nobody else has.
        unsafe { system_call!(libc::SYS_dup3, second.as_raw_fd(), number, libc::O_CLOEXEC) }.expect("replaced");
        to_first.write_all(b"x").expect("room");
        assert_eq!(
            turn(&mut events, &[(number, libc::POLLIN, 'b')], LONG),
            [],
            "what comes to the first is not the second's"
        );
        writer.write_all(b"x").expect("room");
        assert_eq!(turn(&mut events, &[(number, libc::POLLIN, 'b')], LONG), [('b', libc::POLLIN)]);
        drop(elsewhere);
    }

    #[test]
    fn what_is_closed_here_and_open_elsewhere_does_not_keep_the_loop_awake() {
        let mut events = EventLoop::new().expect("a loop");
        let (gone, mut writer) = pipe().expect("a pipe");
        let (quiet, _keeps) = pipe().expect("a pipe");
        let asked = [(quiet.as_raw_fd(), libc::POLLIN, 'q')];
        assert_eq!(turn(&mut events, &[asked[0], (gone.as_raw_fd(), libc::POLLIN, 'g')], NOW), []);
        let elsewhere = gone.try_clone().expect("another number");
        drop(gone);
        writer.write_all(b"x").expect("room");
        assert_eq!(turn(&mut events, &asked, LONG), [], "the set is not fit any more");
        assert_eq!(events.set.wait(NOW).expect("a set").count(), 0, "the new one does not know it");
        assert_eq!(turn(&mut events, &asked, NOW), []);
        drop(elsewhere);
    }
}
