//! Sets of descriptors of which the kernel says which are ready.

use crate::descriptors::Descriptor;
use crate::system_call;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// So many are told of at a time; the others are first the next time.
const EVENTS: usize = 64;

/// Each descriptor in it has a key.
pub struct DescriptorSet(Descriptor);

impl DescriptorSet {
    /// # Errors
    /// There are too few descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory.
        let made = unsafe { system_call!(libc::SYS_epoll_create1, libc::EPOLL_CLOEXEC) };
        made.map(|set| Self(Descriptor::own(set as RawFd)))
    }

    /// Watches a descriptor for what is to be read.
    ///
    /// # Errors
    /// It cannot be watched, or is already.
    pub fn add(&self, descriptor: &(impl AsRawFd + ?Sized), key: u64) -> io::Result<()> {
        self.watch(descriptor.as_raw_fd(), libc::POLLIN, key)
    }

    /// Watches a descriptor for events (`POLLIN` and others, which have the same numbers here).
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn watch(&self, descriptor: RawFd, events: i16, key: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, events, key)
    }

    /// # Errors
    /// It is not watched.
    pub fn change(&self, descriptor: RawFd, events: i16, key: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, events, key)
    }

    /// Watches a descriptor no more. One that is not watched is left alone.
    pub fn remove(&self, descriptor: &impl AsRawFd) {
        let _ = self.control(libc::EPOLL_CTL_DEL, descriptor.as_raw_fd(), 0, 0);
    }

    fn control(&self, operation: i32, descriptor: RawFd, events: i16, key: u64) -> io::Result<()> {
        let event = libc::epoll_event { events: events as u32, u64: key };
        // SAFETY: the event lives across the call.
        unsafe { system_call!(libc::SYS_epoll_ctl, self.as_raw_fd(), operation, descriptor, &raw const event) }
            .map(drop)
    }

    /// Sleeps until something is ready, or for a signal, at most for `limit`. Answers keys and events of what is.
    ///
    /// # Errors
    /// The set is none any more.
    pub fn wait(&self, limit: Option<Duration>) -> io::Result<impl Iterator<Item = (u64, i16)> + use<>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        // Rounded up: who is early asks again and again until it is time.
        let limit = limit.map_or(-1, |limit| i32::try_from(limit.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX));
        let at = events.as_mut_ptr();
        // SAFETY: the events are valid and ours across the call. No signal mask is given.
        let found = match unsafe { system_call!(libc::SYS_epoll_pwait, self.as_raw_fd(), at, EVENTS, limit, 0, 8) } {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            found => found.unwrap_or(0),
        };
        Ok(events.into_iter().take(found).map(|event| (event.u64, event.events as i16)))
    }
}

/// Readable when something in the set is ready.
impl AsRawFd for DescriptorSet {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Write, pipe};

    fn keys(set: &DescriptorSet, limit: Duration) -> Vec<u64> {
        set.wait(Some(limit)).expect("a set").map(|(key, _)| key).collect()
    }

    #[test]
    fn a_set_tells_the_keys_of_what_is_ready() {
        let set = DescriptorSet::new().expect("a set");
        let [(one, _keeps), (other, mut writer)] = [(); 2].map(|()| pipe().expect("a pipe"));
        set.add(&one, 1).and_then(|()| set.add(&other, u64::MAX)).expect("watched");
        assert_eq!(keys(&set, Duration::ZERO), []);
        writer.write_all(b"x").expect("room");
        assert_eq!(keys(&set, Duration::from_secs(60)), [u64::MAX]);
        set.change(other.as_raw_fd(), libc::POLLIN, 7).expect("it is watched");
        assert_eq!(keys(&set, Duration::ZERO), [7]);
        set.remove(&other);
        assert_eq!(keys(&set, Duration::ZERO), []);
    }
}
