//! Waiting for the first of several ports and descriptors, and the descriptor by which an event loop waits for us.

use crate::desk::FABRIC;
use crate::error::{NativeError, Result};
use crate::known;
use crate::message::{Pick, selectors};
use crate::received::ReceivedMessage;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};
use weft_kernel::DescriptorSet;
use weft_ports::{Selector, Waiting};

/// How many looks at ports go without one at the descriptors.
const LOOKS: u32 = 256;

/// A descriptor that is waited for, as `poll` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled {
    pub descriptor: RawFd,
    /// `POLLIN`, `POLLOUT` and others.
    pub events: i16,
    /// Those that have come.
    pub ready: i16,
}

/// What has come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// Something that the choice of this index accepts. It stays where it is.
    Message(usize, ReceivedMessage),
    /// The descriptor of this index is ready.
    Descriptor(usize),
    /// The time is over.
    Nothing,
}

/// Descriptors, in a set of their own.
struct Descriptors<'a> {
    all: &'a mut [Polled],
    set: DescriptorSet,
    /// One that the kernel does not watch since it is always ready, such as a file.
    ready: Option<usize>,
    /// Some stand there more than once.
    again: bool,
}

impl<'a> Descriptors<'a> {
    fn new(all: &'a mut [Polled]) -> Result<Self> {
        let set = DescriptorSet::new().map_err(|error| NativeError::system("descriptors cannot be watched", &error))?;
        let (mut ready, mut again) = (None, Vec::new());
        for (at, polled) in all.iter_mut().enumerate() {
            polled.ready = 0;
            if polled.descriptor < 0 {
                continue;
            }
            match set.watch(polled.descriptor, polled.events, at as u64) {
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => again.push(at),
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                    polled.ready = polled.events & (libc::POLLIN | libc::POLLOUT);
                    ready = ready.or(Some(at));
                }
                Err(error) => {
                    let text = format!("descriptor {} cannot be waited for: {error}", polled.descriptor);
                    return Err(NativeError::argument(text));
                }
            }
        }
        for descriptor in again.iter().map(|at: &usize| all[*at].descriptor) {
            // It is watched for what all its places want, under the first of them.
            let mut same = all.iter().enumerate().filter(|(_, polled)| polled.descriptor == descriptor);
            let first = same.next().map_or((0, 0), |(at, polled)| (at, polled.events));
            let events = same.fold(first.1, |events, (_, polled)| events | polled.events);
            let changed = set.change(descriptor, events, first.0 as u64);
            changed.map_err(|error| NativeError::system("descriptors cannot be watched", &error))?;
        }
        Ok(Self { all, set, ready, again: !again.is_empty() })
    }

    /// The first that is ready, as the set tells them.
    fn look(&mut self) -> Option<usize> {
        let mut first = self.ready;
        for (key, events) in self.set.wait(Some(Duration::ZERO)).into_iter().flatten() {
            let Some(polled) = self.all.get_mut(key as usize) else { continue };
            let descriptor = polled.descriptor;
            polled.ready = events;
            let mut at = key as usize;
            if self.again {
                let same = self.all.iter_mut().enumerate().filter(|(_, polled)| polled.descriptor == descriptor);
                at = usize::MAX;
                for (place, polled) in same {
                    polled.ready = events & (polled.events | !(libc::POLLIN | libc::POLLOUT | libc::POLLPRI));
                    at = if polled.ready != 0 { at.min(place) } else { at };
                }
            }
            first = Some(first.map_or(at, |first| first.min(at)));
        }
        first.filter(|at| *at < self.all.len())
    }
}

fn message(endpoint: &mut weft_ports::Endpoint, from: &[Selector]) -> Option<Happened> {
    from.iter().enumerate().find_map(|(at, from)| {
        let seen = endpoint.probe(*from)?;
        Some(Happened::Message(at, ReceivedMessage::new(from.context, &seen)))
    })
}

pub(crate) fn select(picks: &[Pick], descriptors: &mut [Polled], patience: Option<Duration>) -> Result<Happened> {
    known::allowed()?;
    let from = if picks.is_empty() { Vec::new() } else { selectors(picks)? };
    let mut descriptors = if descriptors.is_empty() { None } else { Some(Descriptors::new(descriptors)?) };
    if let Some(descriptors) = &descriptors {
        // Who sleeps on descriptors hears other processes by a descriptor, too.
        let opened = FABRIC.with_both(|endpoint, desk| {
            endpoint.wake_descriptor()?;
            desk.attend_selected(&descriptors.set)
        });
        opened.map_err(|error| NativeError::system("descriptors cannot be watched", &error))?;
    }
    let until = patience.and_then(|patience| Instant::now().checked_add(patience));
    let mut number = until.map(|until| FABRIC.with_both(|_, desk| desk.look_at(until)));
    let mut looks = 0u32;
    let what = from.first().map_or(Waiting { call: "weft_select", peer: None, tag: None, context: 0 }, |from| {
        Waiting { call: "weft_select", peer: from.peer, tag: from.tag, context: from.context }
    });
    let happened = FABRIC.wait_both(what, |endpoint, desk| {
        let mut found = message(endpoint, &from);
        if let (None, Some(descriptors)) = (&found, &mut descriptors)
            && (looks.is_multiple_of(LOOKS) || std::mem::take(&mut desk.noticed))
        {
            found = descriptors.look().map(Happened::Descriptor);
        }
        // What has come before is taken at least once.
        let is_over = looks > 0 && until.is_some_and(|until| Instant::now() >= until);
        looks = looks.wrapping_add(1);
        let found = found.or_else(|| is_over.then_some(Happened::Nothing))?;
        number.take().into_iter().for_each(|number| desk.forget_time(number));
        Some(found)
    });
    if let Some(descriptors) = &descriptors {
        FABRIC.with_both(|_, desk| desk.leave_selected(&descriptors.set));
    }
    Ok(happened)
}

/// The descriptor that can be read when something comes, once it was armed.
pub(crate) fn descriptor() -> Result<RawFd> {
    known::allowed()?;
    let made = FABRIC.with_both(|endpoint, desk| -> io::Result<RawFd> {
        if let Some(bell) = &desk.bell {
            return Ok(bell.as_raw_fd());
        }
        let bell = DescriptorSet::new()?;
        bell.watch(endpoint.wake_descriptor()?, libc::POLLIN, 0)?;
        bell.add(desk.set()?, 0)?;
        Ok(desk.bell.insert(bell).as_raw_fd())
    });
    made.map_err(|error| NativeError::system("there is no descriptor", &error))
}

/// How long an event loop may sleep on the descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaySleep {
    /// Something has come: look for messages first.
    Not,
    /// Until the descriptor can be read, or so much time has passed.
    Until(Option<Duration>),
}

/// To be called before an event loop sleeps, after the last look for messages.
pub(crate) fn arm() -> Result<MaySleep> {
    descriptor()?;
    Ok(FABRIC.with_both(|endpoint, desk| {
        // What a pass takes now nobody has seen.
        if desk.serve(endpoint) | endpoint.progress() || desk.has_group_news(endpoint) {
            return MaySleep::Not;
        }
        match endpoint.arm_descriptor() {
            None => MaySleep::Not,
            Some(limit) => MaySleep::Until(limit.into_iter().chain(desk.rest()).chain(desk.others_rest()).min()),
        }
    }))
}
