//! A connection that carries frames both ways, and never waits.

use super::HandToken;
use crate::frame::{FrameStream, LARGEST, Nonsense};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use weft_kernel::EventLoop;

/// Who does not take what waits for it is lost beyond this.
const MOST_WAITING: usize = 2 * LARGEST;

pub struct FrameLink {
    reads: File,
    writes: File,
    incoming: FrameStream,
    waiting: Vec<u8>,
}

impl FrameLink {
    pub fn of_socket(stream: UnixStream) -> io::Result<Self> {
        let other = stream.try_clone()?;
        Self::new(OwnedFd::from(stream), OwnedFd::from(other))
    }

    pub fn new(reads: OwnedFd, writes: OwnedFd) -> io::Result<Self> {
        for descriptor in [reads.as_raw_fd(), writes.as_raw_fd()] {
            let flags = weft_kernel::control(descriptor, libc::F_GETFL, 0)?;
            weft_kernel::control(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK)?;
        }
        let (incoming, waiting) = Default::default();
        Ok(Self { reads: reads.into(), writes: writes.into(), incoming, waiting })
    }

    pub fn ask(&self, events: &mut EventLoop<HandToken>, token: HandToken) {
        let writes = if self.waiting.is_empty() { 0 } else { libc::POLLOUT };
        if self.reads.as_raw_fd() == self.writes.as_raw_fd() || writes == 0 {
            events.ask(self.reads.as_raw_fd(), libc::POLLIN, token);
        } else {
            events.ask(self.reads.as_raw_fd(), libc::POLLIN, token);
            events.ask(self.writes.as_raw_fd(), libc::POLLOUT, token);
        }
    }

    /// Reads and writes what goes now.
    ///
    /// # Errors
    /// The other end is closed.
    pub fn serve(&mut self) -> io::Result<()> {
        self.write_waiting()?;
        let mut piece = [0; 1 << 16];
        match self.reads.read(&mut piece) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                self.incoming.push(&piece[..length]);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The bytes of the next frame that has come.
    ///
    /// # Errors
    /// What comes are no frames.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, Nonsense> {
        self.incoming.next_frame()
    }

    /// # Errors
    /// The other end is closed, or takes nothing.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.waiting.len() + bytes.len() > MOST_WAITING {
            return Err(ErrorKind::OutOfMemory.into());
        }
        self.waiting.extend(bytes);
        self.write_waiting()
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        let mut written = 0;
        let outcome = loop {
            if written == self.waiting.len() {
                break Ok(());
            }
            match self.writes.write(&self.waiting[written..]) {
                Ok(length) => written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.waiting.drain(..written);
        outcome
    }

    /// A last attempt.
    pub fn flush(&mut self) {
        let _ = self.write_waiting();
    }
}
