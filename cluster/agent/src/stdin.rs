//! Standard input for the ranks, where it cannot simply be inherited: from a terminal, or to all ranks.

use crate::sys;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

const CHUNK_BYTES: usize = 64 * 1024;

/// Copies our standard input into pipes. The slowest reader sets the pace: no more is read before all have the last
/// piece, so that memory stays bounded and what is not wanted is left for others.
pub struct Pump {
    source: RawFd,
    terminal: bool,
    ended: bool,
    piece: Vec<u8>,
    targets: Vec<InputTarget>,
}

struct InputTarget {
    pipe: OwnedFd,
    /// How much of the piece it has.
    taken: usize,
}

impl Pump {
    /// From descriptor `source` into `pipes` (write ends of our own).
    pub fn new(source: RawFd, pipes: Vec<OwnedFd>) -> io::Result<Self> {
        pipes.iter().try_for_each(sys::set_nonblocking)?;
        let terminal = sys::kind(source) == sys::DescriptorKind::Terminal;
        let targets = pipes.into_iter().map(|pipe| InputTarget { pipe, taken: 0 }).collect();
        Ok(Self { source, terminal, ended: false, piece: Vec::new(), targets })
    }

    /// Whether there is nothing left to do.
    pub fn is_done(&self) -> bool {
        self.targets.is_empty()
    }

    /// Whether the source should be read when it has something. A terminal is read in its foreground only.
    pub fn wants_input(&self) -> bool {
        self.is_ready_for_more() && !self.is_in_background()
    }

    /// Whether only the terminal's foreground is missing; nobody tells us when that changes.
    pub fn waits_for_foreground(&self) -> bool {
        self.is_ready_for_more() && self.is_in_background()
    }

    fn is_ready_for_more(&self) -> bool {
        !self.ended && self.piece.is_empty() && !self.targets.is_empty()
    }

    fn is_in_background(&self) -> bool {
        self.terminal && !sys::in_foreground(self.source)
    }

    pub fn source(&self) -> RawFd {
        self.source
    }

    /// The pipes that still want some of the piece, or whose reader we watch for its end.
    pub fn targets(&self) -> impl Iterator<Item = (RawFd, bool)> + '_ {
        self.targets.iter().map(|target| (target.pipe.as_raw_fd(), target.taken < self.piece.len()))
    }

    /// The source has something (or has ended). An error ends it: there will be no more.
    pub fn handle_readable(&mut self) {
        self.piece.resize(CHUNK_BYTES, 0);
        let read = sys::read(self.source, &mut self.piece);
        let again = matches!(&read, Err(error) if sys::is_temporary(error) || self.is_in_background());
        let count = read.unwrap_or(0);
        self.piece.truncate(count);
        self.ended = count == 0 && !again;
        self.push();
    }

    /// Gives the readers what they can take, and closes the pipes after the end.
    pub fn push(&mut self) {
        let piece = &self.piece;
        self.targets.retain_mut(|target| target.push(piece));
        if self.targets.iter().all(|target| target.taken == piece.len()) {
            self.piece.clear();
            self.targets.iter_mut().for_each(|target| target.taken = 0);
            if self.ended {
                self.targets.clear();
            }
        }
    }

    /// The reader of `pipe` is gone.
    pub fn handle_reader_gone(&mut self, pipe: RawFd) {
        self.targets.retain(|target| target.pipe.as_raw_fd() != pipe);
        self.push();
    }
}

impl InputTarget {
    /// Answers false when the reader is gone.
    fn push(&mut self, piece: &[u8]) -> bool {
        while self.taken < piece.len() {
            match sys::write(self.pipe.as_raw_fd(), &piece[self.taken..]) {
                Ok(count) => self.taken += count,
                Err(error) if sys::is_temporary(&error) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn all_readers_get_everything_and_the_slowest_sets_the_pace() {
        let (source, mut user) = io::pipe().unwrap();
        let (mut first, first_in) = io::pipe().unwrap();
        let (mut second, second_in) = io::pipe().unwrap();
        let mut pump = Pump::new(source.as_raw_fd(), vec![first_in.into(), second_in.into()]).unwrap();
        user.write_all(b"one").unwrap();
        pump.handle_readable();
        assert!(pump.wants_input());
        user.write_all(&[b'x'; CHUNK_BYTES]).unwrap();
        pump.handle_readable();
        // The pipes already hold three bytes, so the rest of the piece has no room.
        assert!(!pump.wants_input());
        let mut seen = [vec![0; 16], vec![0; 16]];
        first.read_exact(&mut seen[0]).unwrap();
        second.read_exact(&mut seen[1]).unwrap();
        assert_eq!(seen[0], seen[1]);
        drop(user);
        let readers = [first, second].map(|mut pipe| {
            std::thread::spawn(move || {
                let mut rest = Vec::new();
                pipe.read_to_end(&mut rest).unwrap();
                rest.len()
            })
        });
        while !pump.is_done() {
            if pump.wants_input() { pump.handle_readable() } else { pump.push() }
        }
        for reader in readers {
            assert_eq!(reader.join().unwrap(), CHUNK_BYTES + 3 - 16);
        }
    }

    #[test]
    fn reader_that_leaves_does_not_hold_the_others_up() {
        let (source, mut user) = io::pipe().unwrap();
        let (gone, gone_in) = io::pipe().unwrap();
        let (mut stays, stays_in) = io::pipe().unwrap();
        let mut pump = Pump::new(source.as_raw_fd(), vec![gone_in.into(), stays_in.into()]).unwrap();
        drop(gone);
        user.write_all(b"hello").unwrap();
        drop(user);
        pump.handle_readable();
        pump.handle_readable();
        assert!(pump.is_done());
        let mut text = String::new();
        stays.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }
}
