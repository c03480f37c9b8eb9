//! Output of many ranks into one stream, line by line.

use crate::sys::{self, DescriptorKind};
use std::io;
use std::os::fd::RawFd;

/// A line that grows longer than this is written in pieces, and the other ranks wait for its end.
pub const LINE_HELD_BYTES: usize = 64 * 1024;
/// No more is read from the ranks while so much waits to be written.
const QUEUE_BYTES: usize = 256 * 1024;
/// What a pipe takes at once when it takes anything at all (`PIPE_BUF`).
const PIPE_BYTES: usize = 4096;
/// What is given to a terminal at once, so that a slow one holds us up for no longer than this takes.
const TERMINAL_BYTES: usize = 512;

/// Puts the lines of all ranks one after the other. Pure: bytes in, bytes out.
///
/// A line begins at the begin of a line and is followed by its own end, except that a rank which is silent in the
/// middle of a line (a prompt, or the end of its output) may be followed by a line break of ours.
#[derive(Debug)]
pub struct Merger {
    tag: bool,
    /// The begun line of each rank that has not been written yet.
    begun: Vec<Vec<u8>>,
    queue: Vec<u8>,
    /// The last byte written is in the middle of a line.
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    rank: usize,
    /// The others wait for the end of the line.
    exclusive: bool,
}

impl Merger {
    pub fn new(size: usize, tag: bool) -> Self {
        Self { tag, begun: vec![Vec::new(); size], queue: Vec::new(), open: None }
    }

    /// What waits to be written.
    pub fn queue(&self) -> &[u8] {
        &self.queue
    }

    /// The first `count` bytes of the queue have been written.
    pub fn handle_written(&mut self, count: usize) {
        self.queue.drain(..count);
    }

    /// Whether more of `rank` should be read now.
    pub fn has_room(&self, rank: usize) -> bool {
        self.queue.len() < QUEUE_BYTES && !self.must_wait(rank, LINE_HELD_BYTES)
    }

    /// Whether another rank's long line is in the way and `rank` already has `bytes` waiting.
    fn must_wait(&self, rank: usize, bytes: usize) -> bool {
        self.open.is_some_and(|open| open.exclusive && open.rank != rank) && self.begun[rank].len() >= bytes
    }

    /// Takes in what `rank` wrote.
    pub fn handle_bytes(&mut self, rank: usize, bytes: &[u8]) {
        self.begun[rank].extend_from_slice(bytes);
        self.advance(rank);
    }

    /// Writes out the whole lines of `rank`, and the begin of one that is too long to be held.
    fn advance(&mut self, rank: usize) {
        if self.must_wait(rank, 0) {
            return;
        }
        if let Some(end) = self.begun[rank].iter().rposition(|byte| *byte == b'\n') {
            let rest = self.begun[rank].split_off(end + 1);
            let lines = std::mem::replace(&mut self.begun[rank], rest);
            self.emit_lines(rank, &lines);
        }
        let is_long = self.begun[rank].len() >= LINE_HELD_BYTES;
        let is_own = self.open.is_some_and(|open| open.exclusive && open.rank == rank);
        if is_long || (is_own && !self.begun[rank].is_empty()) {
            self.emit_begun(rank, true);
        }
    }

    /// `lines` ends with a line break.
    fn emit_lines(&mut self, rank: usize, lines: &[u8]) {
        let was_exclusive = self.open.is_some_and(|open| open.exclusive);
        self.open_line(rank);
        if self.tag {
            let mut pieces = lines.split_inclusive(|byte| *byte == b'\n');
            self.queue.extend_from_slice(pieces.next().unwrap_or_default());
            for piece in pieces {
                self.put_tag(rank);
                self.queue.extend_from_slice(piece);
            }
        } else {
            self.queue.extend_from_slice(lines);
        }
        self.open = None;
        if was_exclusive {
            self.advance_all();
        }
    }

    fn advance_all(&mut self) {
        for rank in 0..self.begun.len() {
            self.advance(rank);
        }
    }

    fn emit_begun(&mut self, rank: usize, exclusive: bool) {
        self.open_line(rank);
        let begun = std::mem::take(&mut self.begun[rank]);
        self.queue.extend_from_slice(&begun);
        self.open = Some(Open { rank, exclusive });
    }

    /// Makes the stream stand where `rank`'s line goes on, or at the begin of a new line.
    fn open_line(&mut self, rank: usize) {
        match self.open {
            Some(open) if open.rank == rank => {}
            Some(_) => {
                self.queue.push(b'\n');
                self.put_tag(rank);
            }
            None => self.put_tag(rank),
        }
    }

    fn put_tag(&mut self, rank: usize) {
        if self.tag {
            self.queue.extend_from_slice(format!("[{rank}] ").as_bytes());
        }
    }

    /// There will be no more from `rank`: its last line is written though it has no end.
    pub fn handle_end(&mut self, rank: usize) {
        self.release(rank);
        if !self.begun[rank].is_empty() {
            if self.must_wait(rank, 0) {
                return;
            }
            self.emit_begun(rank, false);
        }
    }

    /// `rank` has been silent for a while in the middle of a line: show what there is (a prompt).
    pub fn handle_silence(&mut self, rank: usize) {
        if !self.begun[rank].is_empty() && !self.must_wait(rank, 0) {
            self.emit_begun(rank, false);
        }
    }

    /// The rank for whose long line the others wait.
    pub fn exclusive_rank(&self) -> Option<usize> {
        self.open.filter(|open| open.exclusive).map(|open| open.rank)
    }

    /// `rank`'s long line is not waited for any longer.
    pub fn release(&mut self, rank: usize) {
        if self.exclusive_rank() == Some(rank) {
            self.open = Some(Open { rank, exclusive: false });
            self.advance_all();
        }
    }

    /// Everything that is still held comes out: no rank will write again.
    pub fn handle_end_of_all(&mut self) {
        if let Some(rank) = self.exclusive_rank() {
            self.release(rank);
        }
        for rank in 0..self.begun.len() {
            self.handle_end(rank);
        }
    }
}

/// Where a merged stream goes: our standard output or error, which others may hold too. So its flags stay as they are,
/// and we write only when it can take something.
#[derive(Debug)]
pub struct MergedSink {
    fd: RawFd,
    kind: DescriptorKind,
    pub merger: Merger,
    /// Nobody reads any more, or it cannot be written.
    pub failed: Option<io::Error>,
}

impl MergedSink {
    pub fn new(fd: RawFd, merger: Merger) -> Self {
        Self { fd, kind: sys::kind(fd), merger, failed: None }
    }

    pub fn fd(&self) -> RawFd {
        self.fd
    }

    pub fn is_terminal(&self) -> bool {
        self.kind == DescriptorKind::Terminal
    }

    pub fn has_work(&self) -> bool {
        self.failed.is_none() && !self.merger.queue().is_empty()
    }

    /// The descriptor can take something.
    pub fn handle_writable(&mut self) {
        let queue = self.merger.queue();
        let written = match self.kind {
            DescriptorKind::Socket => sys::send_now(self.fd, queue),
            DescriptorKind::Pipe => sys::write(self.fd, &queue[..queue.len().min(PIPE_BYTES)]),
            DescriptorKind::Terminal => sys::write(self.fd, &queue[..queue.len().min(TERMINAL_BYTES)]),
            DescriptorKind::Other => sys::write(self.fd, queue),
        };
        match written {
            Ok(count) => self.merger.handle_written(count),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => self.failed = Some(error),
        }
    }
}

#[cfg(test)]
mod tests;
