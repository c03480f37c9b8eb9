//! What launcher and keeper tell each other: records on a socket that keeps their boundaries, of the kinds and in the
//! form of [`weft_cluster::frame`].

use crate::sys;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use weft_cluster::state::Exit;
use weft_cluster::usage::RankUsage;

weft_cluster::said! {
    /// A record. Signals and the end go to the keeper, the others to the launcher.
    pub enum KeeperMessage {
        6: Started { rank: usize, pid: u32 },
        /// `errno` is the system's number for the reason.
        7: NotStarted { rank: usize, errno: i32 },
        8 | 9: Ended { rank: usize, exit: Exit },
        /// Nothing of the job lives any more; so many processes had outlived the ranks and were ended.
        11: Over { leftovers: usize },
        /// Send this signal to every rank that lives.
        12: Signal { signal: i32 },
        /// End everything now.
        13: Kill,
        /// Send this signal to this rank, if it lives.
        27: SignalOne { rank: usize, signal: i32 },
        /// What a rank's processes have used, or those of nobody. Comes before its end, and again for what it left
        /// behind.
        22: Used { rank: Option<usize>, usage: RankUsage },
        /// Where a rank has failed, in lines for people.
        23: Failed { rank: usize, text: String },
    }
}

/// The longest of the short ones, which say what was used.
const SHORT_BYTES: usize = 38;
/// The longest text that a record takes; what is longer is cut.
const TEXT_MAX: usize = 16 << 10;

impl KeeperMessage {
    /// That a rank has failed.
    pub fn failed(rank: usize, mut text: String) -> Self {
        text.truncate(text.floor_char_boundary(TEXT_MAX));
        Self::Failed { rank, text }
    }

    fn encode(&self) -> Vec<u8> {
        let killed = matches!(self, Self::Ended { exit: Exit::Signal(_) | Exit::OutOfMemory { .. }, .. });
        let mut record = vec![self.kind() + u8::from(killed)];
        self.put(&mut record);
        record
    }
}

/// What a look at the link found.
#[derive(Debug, PartialEq, Eq)]
pub enum ReceivedRecord {
    Message(KeeperMessage),
    NothingYet,
    /// The other side is gone.
    Gone,
}

/// One end of the link.
pub struct KeeperLink(OwnedFd);

impl KeeperLink {
    pub fn pair() -> io::Result<(Self, Self)> {
        sys::record_pair().map(|(a, b)| (Self(a), Self(b)))
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Waits until the record is taken; a peer that is gone shows at the next [`KeeperLink::try_receive`].
    pub fn send(&self, message: KeeperMessage) {
        while !self.try_send(&message) && weft_kernel::await_events(self.fd(), libc::POLLOUT, None).is_ok() {}
    }

    /// Answers false when there is no room for the record now.
    pub fn try_send(&self, message: &KeeperMessage) -> bool {
        match sys::send_now(self.fd(), &message.encode()) {
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
            Ok(_) => true,
        }
    }

    /// Whether the other side is gone, as far as that shows without taking anything.
    pub fn is_gone(&self) -> bool {
        weft_kernel::is_hung_up(self.fd())
    }

    pub fn try_receive(&self) -> ReceivedRecord {
        let mut short = [0; SHORT_BYTES];
        let mut long = Vec::new();
        // Most are short; how long the next one is the kernel tells beforehand.
        let record = match sys::next_record(self.fd()) {
            Ok(bytes) if bytes > short.len() => {
                long.resize(bytes.min(SHORT_BYTES + TEXT_MAX), 0);
                &mut long[..]
            }
            Ok(_) => &mut short[..],
            // What comes from now on may be a long one.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return ReceivedRecord::NothingYet,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return self.try_receive(),
            Err(_) => &mut short[..],
        };
        match weft_kernel::receive(self.fd(), record) {
            Ok(count) => KeeperMessage::decode(&record[..count]).map_or(ReceivedRecord::Gone, ReceivedRecord::Message),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ReceivedRecord::NothingYet,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => ReceivedRecord::NothingYet,
            // It is gone and had not read all of ours, which the kernel says once, before what it had said itself.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.try_receive(),
            Err(_) => ReceivedRecord::Gone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_arrive_as_sent_and_the_end_is_seen() {
        let messages = [
            KeeperMessage::Started { rank: 3, pid: 4_000_000 },
            KeeperMessage::NotStarted { rank: 1, errno: 2 },
            KeeperMessage::Ended { rank: 2, exit: Exit::Code(255) },
            KeeperMessage::Ended { rank: 2, exit: Exit::Signal(11) },
            KeeperMessage::Ended { rank: 2, exit: Exit::OutOfMemory { is_sure: true } },
            KeeperMessage::Ended { rank: 2, exit: Exit::OutOfMemory { is_sure: false } },
            KeeperMessage::Over { leftovers: 7 },
            KeeperMessage::Signal { signal: 15 },
            KeeperMessage::SignalOne { rank: 5, signal: 10 },
            KeeperMessage::Kill,
            KeeperMessage::Used {
                rank: Some(1),
                usage: RankUsage { wall_us: 1, peak_bytes: u64::MAX, ..RankUsage::default() },
            },
            KeeperMessage::Used { rank: None, usage: RankUsage::default() },
            KeeperMessage::failed(4, "x".repeat(TEXT_MAX + 1)),
            KeeperMessage::Failed { rank: 4, text: String::new() },
        ];
        let (ours, theirs) = KeeperLink::pair().unwrap();
        messages.iter().for_each(|message| ours.send(message.clone()));
        for message in messages {
            assert_eq!(theirs.try_receive(), ReceivedRecord::Message(message));
        }
        assert_eq!(theirs.try_receive(), ReceivedRecord::NothingYet);
        drop(ours);
        assert_eq!(theirs.try_receive(), ReceivedRecord::Gone);
    }

    /// A signal is passed on while the last rank ends: the keeper goes without having read it.
    #[test]
    fn what_one_has_said_that_went_without_listening_is_heard() {
        let (ours, theirs) = KeeperLink::pair().unwrap();
        theirs.send(KeeperMessage::Signal { signal: 18 });
        ours.send(KeeperMessage::Over { leftovers: 0 });
        drop(ours);
        assert_eq!(theirs.try_receive(), ReceivedRecord::Message(KeeperMessage::Over { leftovers: 0 }));
        assert_eq!(theirs.try_receive(), ReceivedRecord::Gone);
        theirs.send(KeeperMessage::Kill);
        assert_eq!(theirs.try_receive(), ReceivedRecord::Gone, "and it is asked no more");
    }
}
