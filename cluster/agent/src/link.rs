//! What launcher and keeper tell each other: records of three numbers on a socket that keeps their boundaries.

use crate::sys;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use weft_cluster::state::Exit;

/// A record. The first four go to the launcher, the others to the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    Started {
        rank: usize,
        pid: u32,
    },
    /// `errno` is the system's number for the reason.
    NotStarted {
        rank: usize,
        errno: i32,
    },
    Ended {
        rank: usize,
        exit: Exit,
    },
    /// Nothing of the job lives any more; so many processes had outlived the ranks and were ended.
    Over {
        leftovers: usize,
    },
    /// Send this signal to every rank that lives.
    Signal {
        signal: i32,
    },
    /// End everything now.
    Kill,
}

const RECORD_BYTES: usize = 12;
const CODE: u32 = 2;
const SIGNALLED: u32 = 3;
const OUT_OF_MEMORY: u32 = 7;

impl Message {
    fn encode(self) -> [u8; RECORD_BYTES] {
        let (kind, a, b) = match self {
            Self::Started { rank, pid } => (0, rank as u32, pid),
            Self::NotStarted { rank, errno } => (1, rank as u32, errno as u32),
            Self::Ended { rank, exit: Exit::Code(code) } => (CODE, rank as u32, code as u32),
            Self::Ended { rank, exit: Exit::Signal(signal) } => (SIGNALLED, rank as u32, signal as u32),
            Self::Ended { rank, exit: Exit::OutOfMemory { is_sure } } => (OUT_OF_MEMORY, rank as u32, is_sure.into()),
            Self::Over { leftovers } => (4, leftovers as u32, 0),
            Self::Signal { signal } => (5, signal as u32, 0),
            Self::Kill => (6, 0, 0),
        };
        let mut record = [0; RECORD_BYTES];
        for (place, number) in record.chunks_exact_mut(4).zip([kind, a, b]) {
            place.copy_from_slice(&u32::to_ne_bytes(number));
        }
        record
    }

    fn decode(record: &[u8]) -> Option<Self> {
        let record: &[u8; RECORD_BYTES] = record.try_into().ok()?;
        let number = |at: usize| u32::from_ne_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
        let (a, b) = (number(4), number(8));
        let rank = a as usize;
        Some(match number(0) {
            0 => Self::Started { rank, pid: b },
            1 => Self::NotStarted { rank, errno: b as i32 },
            CODE => Self::Ended { rank, exit: Exit::Code(b as i32) },
            SIGNALLED => Self::Ended { rank, exit: Exit::Signal(b as i32) },
            OUT_OF_MEMORY => Self::Ended { rank, exit: Exit::OutOfMemory { is_sure: b != 0 } },
            4 => Self::Over { leftovers: rank },
            5 => Self::Signal { signal: a as i32 },
            6 => Self::Kill,
            _ => return None,
        })
    }
}

/// What a look at the link found.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Message(Message),
    NothingYet,
    /// The other side is gone.
    Gone,
}

/// One end of the link.
pub struct Link(OwnedFd);

impl Link {
    pub fn pair() -> io::Result<(Self, Self)> {
        sys::record_pair().map(|(a, b)| (Self(a), Self(b)))
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Waits until the record is taken; a peer that is gone shows at the next [`Link::try_receive`].
    pub fn send(&self, message: Message) {
        while !self.try_send(message) && weft_kernel::await_events(self.fd(), libc::POLLOUT, None).is_ok() {}
    }

    /// Answers false when there is no room for the record now.
    pub fn try_send(&self, message: Message) -> bool {
        match sys::send_now(self.fd(), &message.encode()) {
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
            Ok(_) => true,
        }
    }

    pub fn try_receive(&self) -> Received {
        let mut record = [0; RECORD_BYTES];
        match weft_kernel::receive(self.fd(), &mut record) {
            Ok(count) => Message::decode(&record[..count]).map_or(Received::Gone, Received::Message),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Received::NothingYet,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Received::NothingYet,
            // It is gone and had not read all of ours, which the kernel says once, before what it had said itself.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.try_receive(),
            Err(_) => Received::Gone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_arrive_as_sent_and_the_end_is_seen() {
        let messages = [
            Message::Started { rank: 3, pid: 4_000_000 },
            Message::NotStarted { rank: 1, errno: 2 },
            Message::Ended { rank: 2, exit: Exit::Code(255) },
            Message::Ended { rank: 2, exit: Exit::Signal(11) },
            Message::Ended { rank: 2, exit: Exit::OutOfMemory { is_sure: true } },
            Message::Ended { rank: 2, exit: Exit::OutOfMemory { is_sure: false } },
            Message::Over { leftovers: 7 },
            Message::Signal { signal: 15 },
            Message::Kill,
        ];
        let (ours, theirs) = Link::pair().unwrap();
        messages.iter().for_each(|message| ours.send(*message));
        for message in messages {
            assert_eq!(theirs.try_receive(), Received::Message(message));
        }
        assert_eq!(theirs.try_receive(), Received::NothingYet);
        drop(ours);
        assert_eq!(theirs.try_receive(), Received::Gone);
    }

    /// A signal is passed on while the last rank ends: the keeper goes without having read it.
    #[test]
    fn what_one_has_said_that_went_without_listening_is_heard() {
        let (ours, theirs) = Link::pair().unwrap();
        theirs.send(Message::Signal { signal: 18 });
        ours.send(Message::Over { leftovers: 0 });
        drop(ours);
        assert_eq!(theirs.try_receive(), Received::Message(Message::Over { leftovers: 0 }));
        assert_eq!(theirs.try_receive(), Received::Gone);
        theirs.send(Message::Kill);
        assert_eq!(theirs.try_receive(), Received::Gone, "and it is asked no more");
    }
}
