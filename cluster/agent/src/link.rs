//! What launcher and keeper tell each other: records on a socket that keeps their boundaries: three
//! numbers, and what more there is to a few of them.

use crate::sys;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use weft_cluster::state::Exit;
use weft_cluster::usage::{NOBODY, RankUsage};

/// A record. Signals and the end go to the keeper, the others to the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// What a rank's processes have used, or those of nobody. Comes before its end, and again for what it left behind.
    Used {
        rank: Option<usize>,
        usage: RankUsage,
    },
    /// Where a rank has failed, in lines for people.
    Failed {
        rank: usize,
        text: String,
    },
    /// Send this signal to every rank that lives.
    Signal {
        signal: i32,
    },
    /// End everything now.
    Kill,
}

/// Of the three numbers.
const RECORD_BYTES: usize = 12;
const USAGE_BYTES: usize = 32;
/// The longest text that a record takes; what is longer is cut.
pub const TEXT_MAX: usize = 16 << 10;
const CODE: u32 = 2;
const SIGNALLED: u32 = 3;
const OUT_OF_MEMORY: u32 = 7;
const USED: u32 = 8;
const FAILED: u32 = 9;

impl Message {
    fn encode(&self) -> Vec<u8> {
        let (kind, a, b) = match *self {
            Self::Started { rank, pid } => (0, rank as u32, pid),
            Self::NotStarted { rank, errno } => (1, rank as u32, errno as u32),
            Self::Ended { rank, exit: Exit::Code(code) } => (CODE, rank as u32, code as u32),
            Self::Ended { rank, exit: Exit::Signal(signal) } => (SIGNALLED, rank as u32, signal as u32),
            Self::Ended { rank, exit: Exit::OutOfMemory { is_sure } } => (OUT_OF_MEMORY, rank as u32, is_sure.into()),
            Self::Over { leftovers } => (4, leftovers as u32, 0),
            Self::Signal { signal } => (5, signal as u32, 0),
            Self::Kill => (6, 0, 0),
            Self::Used { rank, .. } => (USED, rank.map_or(NOBODY, |rank| rank as u32), 0),
            Self::Failed { rank, .. } => (FAILED, rank as u32, 0),
        };
        let mut record: Vec<u8> = [kind, a, b].into_iter().flat_map(u32::to_ne_bytes).collect();
        match self {
            Self::Used { usage, .. } => record.extend(usage.words().into_iter().flat_map(u64::to_ne_bytes)),
            Self::Failed { text, .. } => record.extend(text.bytes().take(TEXT_MAX)),
            _ => {}
        }
        record
    }

    fn decode(record: &[u8]) -> Option<Self> {
        let (record, more) = record.split_first_chunk::<RECORD_BYTES>()?;
        let long = |at: usize| Some(u64::from_ne_bytes(*more.get(at * 8..)?.first_chunk()?));
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
            USED => Self::Used {
                rank: (a != NOBODY).then_some(rank),
                usage: RankUsage::of_words([long(0)?, long(1)?, long(2)?, long(3)?]),
            },
            FAILED => Self::Failed { rank, text: String::from_utf8_lossy(more).into_owned() },
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
        while !self.try_send(&message) && weft_kernel::await_events(self.fd(), libc::POLLOUT, None).is_ok() {}
    }

    /// Answers false when there is no room for the record now.
    pub fn try_send(&self, message: &Message) -> bool {
        match sys::send_now(self.fd(), &message.encode()) {
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
            Ok(_) => true,
        }
    }

    /// Whether the other side is gone, as far as that shows without taking anything.
    pub fn is_gone(&self) -> bool {
        weft_kernel::is_hung_up(self.fd())
    }

    pub fn try_receive(&self) -> Received {
        let mut short = [0; RECORD_BYTES + USAGE_BYTES];
        let mut long = Vec::new();
        // Most are short; how long the next one is the kernel tells beforehand.
        let record = match sys::next_record(self.fd()) {
            Ok(bytes) if bytes > short.len() => {
                long.resize(bytes.min(RECORD_BYTES + TEXT_MAX), 0);
                &mut long[..]
            }
            Ok(_) => &mut short[..],
            // What comes from now on may be a long one.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Received::NothingYet,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return self.try_receive(),
            Err(_) => &mut short[..],
        };
        match weft_kernel::receive(self.fd(), record) {
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
            Message::Used { rank: Some(1), usage: RankUsage::of_words([1, 2, 3, u64::MAX]) },
            Message::Used { rank: None, usage: RankUsage::default() },
            Message::Failed { rank: 4, text: "x".repeat(TEXT_MAX) },
            Message::Failed { rank: 4, text: String::new() },
        ];
        let (ours, theirs) = Link::pair().unwrap();
        messages.iter().for_each(|message| ours.send(message.clone()));
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
