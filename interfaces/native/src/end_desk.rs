//! Processes that are gone: how, and notices of it, which come as messages at ports of who has asked, once each.
//!
//! A message is waited for together with others, in an event loop and in a coroutine, so no call needs to know of ends.

use crate::known::PortNumber;
use crate::started_desk::{KnownEnd, StartedJobs};
use std::time::{Duration, Instant};
use weft_fabric::SendMode;
use weft_fabric::spawn::Exit;
use weft_ports::{Endpoint, Envelope, Peer, RequestId};

/// How a process is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoneHow {
    /// It has taken its leave.
    Left,
    /// It has ended without leave, or cannot be reached.
    Lost,
}

/// How often it is looked which processes are gone.
const LOOK: Duration = Duration::from_millis(20);

/// How a process has ended, as the message tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessEnd {
    pub process: Peer,
    /// Well is: with leave or, where its code is known, with code 0.
    pub how: GoneHow,
    /// Its exit code, where that is known: of processes that the receiver has started.
    pub code: Option<i32>,
    /// The signal that has killed it, where that is known.
    pub signal: Option<i32>,
}

/// `WEFT_LEFT` and `WEFT_LOST`.
const LEFT: i32 = 1;
const LOST: i32 = 2;

impl ProcessEnd {
    /// Bytes of the message: those of `struct weft_end`.
    pub const BYTES: usize = 16;

    fn words(self) -> [i32; 4] {
        let how = match self.how {
            GoneHow::Left => LEFT,
            GoneHow::Lost => LOST,
        };
        [self.process.0 as i32, how, self.code.unwrap_or(-1), self.signal.unwrap_or(0)]
    }

    /// Reads what a message of [`crate::Weft::notify`] holds; `None` where it is none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let how = match word(4) {
            LEFT => GoneHow::Left,
            LOST => GoneHow::Lost,
            _ => return None,
        };
        let [code, signal] = [word(8), word(12)];
        let (code, signal) = ((code >= 0).then_some(code), (signal > 0).then_some(signal));
        Some(Self { process: Peer(word(0) as u32), how, code, signal })
    }

    fn told(process: Peer, exit: Option<Exit>) -> Self {
        let how = if exit == Some(Exit::Code(0)) { GoneHow::Left } else { GoneHow::Lost };
        let (code, signal) = match exit {
            None => (None, None),
            Some(Exit::Code(code)) => (Some(code), None),
            Some(Exit::Signal(signal)) => (None, Some(signal)),
            Some(Exit::OutOfMemory { .. }) => (None, Some(libc::SIGKILL)),
        };
        Self { process, how, code, signal }
    }
}

/// Who wants to be told of whom, and where.
struct EndNotice {
    of: Peer,
    port: PortNumber,
    tag: i32,
}

/// All of this process.
#[derive(Default)]
pub struct EndNotices {
    all: Vec<EndNotice>,
    looked: Option<Instant>,
    /// Messages that have not arrived yet.
    leaving: Vec<(RequestId, Vec<u8>)>,
}

impl EndNotices {
    /// The next look is not put off.
    pub fn look_soon(&mut self) {
        self.looked = None;
    }

    /// A message is to come to this port once that process is gone.
    pub fn add(&mut self, of: Peer, port: PortNumber, tag: i32) {
        self.all.push(EndNotice { of, port, tag });
        self.look_soon();
    }

    /// How long nobody is to look.
    pub fn rest(&self) -> Option<Duration> {
        (!self.all.is_empty()).then_some(LOOK)
    }

    /// Looks now and then who is gone, and sends word of that; true if anybody is.
    pub fn look(&mut self, endpoint: &mut Endpoint, started: &mut StartedJobs) -> bool {
        if self.all.is_empty() {
            return false;
        }
        let now = Instant::now();
        if self.looked.is_some_and(|looked| now < looked + LOOK) {
            return false;
        }
        self.looked = Some(now);
        endpoint.look_for_lost();
        let Self { all, leaving, .. } = self;
        let before = all.len();
        all.retain(|notice| {
            let end = end_of(endpoint, started, notice.of);
            leaving.extend(end.map(|end| notice.tell(endpoint, end)));
            end.is_none()
        });
        leaving.retain(|(request, _)| endpoint.take_outcome(*request).is_none());
        all.len() < before
    }
}

impl EndNotice {
    /// Sends word; the bytes are to be kept until the request is complete.
    fn tell(&self, endpoint: &mut Endpoint, end: ProcessEnd) -> (RequestId, Vec<u8>) {
        // What the process has sent comes before that.
        while endpoint.progress() {}
        let me = endpoint.me();
        let envelope = Envelope { context: self.port.0, tag: self.tag, source: me.0 };
        let bytes: Vec<u8> = end.words().into_iter().flat_map(i32::to_ne_bytes).collect();
        // SAFETY: who asks keeps them.
        let request = unsafe { endpoint.post_send(me, envelope, bytes.as_ptr(), bytes.len(), SendMode::Standard) };
        (request, bytes)
    }
}

/// How a process is gone that this one has not started.
pub fn gone(endpoint: &Endpoint, process: Peer) -> Option<GoneHow> {
    if endpoint.took_leave(process) {
        return Some(GoneHow::Left);
    }
    (endpoint.is_lost(process) || endpoint.has_ended(process)).then_some(GoneHow::Lost)
}

fn end_of(endpoint: &mut Endpoint, started: &mut StartedJobs, process: Peer) -> Option<ProcessEnd> {
    match started.end_of(process) {
        KnownEnd::Lives => None,
        KnownEnd::Ended(exit) => Some(ProcessEnd::told(process, exit)),
        KnownEnd::Unknown => {
            endpoint.attend(process);
            gone(endpoint, process).map(|how| ProcessEnd { process, how, code: None, signal: None })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_read_as_it_was_written() {
        let exits = [Some(Exit::Code(0)), Some(Exit::Code(7)), Some(Exit::Signal(9)), None];
        for end in exits.map(|exit| ProcessEnd::told(Peer(4), exit)) {
            let bytes: Vec<u8> = end.words().into_iter().flat_map(i32::to_ne_bytes).collect();
            assert_eq!(ProcessEnd::from_bytes(&bytes), Some(end));
            assert_eq!(ProcessEnd::from_bytes(&bytes[1..]), None);
        }
        assert_eq!(ProcessEnd::from_bytes(&[0; ProcessEnd::BYTES]), None);
    }

    #[test]
    fn code_0_is_an_end_with_leave_and_all_else_is_none() {
        assert_eq!(ProcessEnd::told(Peer(4), Some(Exit::Code(0))).how, GoneHow::Left);
        let killed = ProcessEnd::told(Peer(4), Some(Exit::OutOfMemory { is_sure: true }));
        assert_eq!((killed.how, killed.code, killed.signal), (GoneHow::Lost, None, Some(9)));
    }
}
