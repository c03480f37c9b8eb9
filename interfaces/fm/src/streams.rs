//! Messages that are being sent, put together piece by piece, and the one that a handler receives.
//!
//! Programs hold a stream as a pointer, which is a number here, so that a wrong one is no crash.

use weft_ports::ready::{Room, bytes_of};

/// A message that is being sent.
pub struct Sending {
    pub to: u32,
    pub handler: u32,
    /// Most bytes of all pieces.
    pub most: usize,
    pub bytes: Vec<u8>,
}

/// A message that has come.
pub struct ReceivedStream {
    pub from: u32,
    pub what: ForHandler,
    pub room: Room,
    pub length: usize,
}

/// Whose handler a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForHandler {
    /// Of FM 2.x, by its number.
    Stream(u32),
    /// Of FM 1.1, by its place in the program, which stands in the first 8 bytes.
    Function,
}

impl ForHandler {
    const FUNCTION: i32 = 1 << 16;
    /// The bytes follow in a message of their own.
    pub const APART: i32 = 1 << 17;

    pub fn tag(self) -> i32 {
        match self {
            Self::Stream(handler) => handler as i32,
            Self::Function => Self::FUNCTION,
        }
    }

    /// With whether the bytes follow.
    pub fn from_tag(tag: i32) -> Option<(Self, bool)> {
        let (rest, apart) = (tag & !Self::APART, tag & Self::APART != 0);
        match rest {
            Self::FUNCTION => Some((Self::Function, apart)),
            0..Self::FUNCTION => Some((Self::Stream(rest as u32), apart)),
            _ => None,
        }
    }
}

/// The message whose handler runs.
struct Running {
    room: Room,
    length: usize,
    taken: usize,
}

#[derive(Default)]
pub struct FmStreams {
    /// By their numbers; those that are free keep their memory.
    sending: Vec<(bool, Sending)>,
    running: Option<Running>,
}

/// The number of the stream that a handler receives from.
pub const RECEIVED: usize = 7;
/// Numbers of streams that are sent are multiples of this, from it on.
const STEP: usize = 16;

impl FmStreams {
    /// Begins a message; the number of its stream.
    #[inline]
    pub fn begin(&mut self, to: u32, handler: u32, most: usize) -> usize {
        let at = self.sending.iter().position(|(used, _)| !used).unwrap_or_else(|| {
            self.sending.push((false, Sending { to, handler, most, bytes: Vec::new() }));
            self.sending.len() - 1
        });
        let (used, stream) = &mut self.sending[at];
        *used = true;
        (stream.to, stream.handler, stream.most) = (to, handler, most);
        stream.bytes.clear();
        (at + 1) * STEP
    }

    /// The stream of this number, if its message was begun and has not ended.
    #[inline]
    pub fn sending(&mut self, number: usize) -> Option<&mut Sending> {
        let at = number.checked_sub(STEP).filter(|at| at % STEP == 0)? / STEP;
        self.sending.get_mut(at).filter(|(used, _)| *used).map(|(_, stream)| stream)
    }

    /// Ends a stream; its bytes are to come back by [`Self::recycle`].
    #[inline]
    pub fn end(&mut self, number: usize) -> Option<Sending> {
        let Sending { to, handler, most, .. } = *self.sending(number)?;
        let (_, stream) = self.sending.get_mut(number / STEP - 1)?;
        Some(Sending { to, handler, most, bytes: std::mem::take(&mut stream.bytes) })
    }

    /// The stream of this number is free.
    #[inline]
    pub fn recycle(&mut self, number: usize, bytes: Vec<u8>) {
        if let Some((used, stream)) = (number / STEP).checked_sub(1).and_then(|at| self.sending.get_mut(at)) {
            (*used, stream.bytes) = (false, bytes);
        }
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// From here on a handler receives these bytes.
    #[inline]
    pub fn run(&mut self, room: Room, length: usize) {
        self.running = Some(Running { room, length, taken: 0 });
    }

    #[inline]
    pub fn has_run(&mut self) -> Option<Room> {
        self.running.take().map(|running| running.room)
    }

    /// The next bytes of the message whose handler runs: as many, or those that there are.
    #[inline]
    pub fn receive(&mut self, length: usize) -> Option<&[u8]> {
        let Running { room, length: all, taken } = self.running.as_mut()?;
        let begin = *taken;
        *taken = (begin + length).min(*all);
        Some(&bytes_of(room, *all)[begin..*taken])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_ports::ready::tight;

    #[test]
    fn streams_that_have_ended_are_no_streams() {
        let mut streams = FmStreams::default();
        let (one, other) = (streams.begin(1, 2, 30), streams.begin(3, 4, 5));
        streams.sending(one).expect("begun").bytes.extend([1, 2]);
        let ended = streams.end(one).expect("begun");
        assert_eq!((ended.to, ended.handler, &ended.bytes[..]), (1, 2, &[1, 2][..]));
        streams.recycle(one, ended.bytes);
        for wrong in [one, 0, 1, RECEIVED, other + STEP, usize::MAX] {
            assert!(streams.sending(wrong).is_none() && streams.end(wrong).is_none(), "{wrong}");
        }
        assert_eq!(streams.begin(1, 2, 30), one);
        assert!(streams.sending(one).expect("begun again").bytes.is_empty());
    }

    #[test]
    fn a_message_is_received_in_pieces_and_not_beyond_its_end() {
        let mut streams = FmStreams::default();
        assert_eq!(streams.receive(1), None);
        streams.run(tight(&[1, 2, 3, 4, 5]), 5);
        assert_eq!(streams.receive(2), Some(&[1, 2][..]));
        assert_eq!(streams.receive(0), Some(&[][..]));
        assert_eq!(streams.receive(9), Some(&[3, 4, 5][..]));
        assert_eq!(streams.receive(9), Some(&[][..]));
        assert!(streams.has_run().is_some() && streams.has_run().is_none());
    }

    #[test]
    fn tags_are_read_as_they_were_written() {
        for what in [ForHandler::Stream(0), ForHandler::Stream(63), ForHandler::Stream(65_535), ForHandler::Function] {
            assert_eq!(ForHandler::from_tag(what.tag()), Some((what, false)));
            assert_eq!(ForHandler::from_tag(what.tag() | ForHandler::APART), Some((what, true)));
        }
        for wrong in [-1, 1 << 18, (1 << 16) + 1] {
            assert_eq!(ForHandler::from_tag(wrong), None);
        }
    }
}
