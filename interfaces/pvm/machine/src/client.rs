//! A task's or a console's end of its connection to the daemon.

use crate::code;
use crate::door;
use crate::frame::{Answer, Event, FrameStream, Introduction, Request, Told, VERSION, framed, read};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// What is read at a time.
const PIECE: usize = 1 << 16;

pub struct DaemonClient {
    stream: UnixStream,
    incoming: FrameStream,
    events: VecDeque<Event>,
    answers: VecDeque<Answer>,
}

impl DaemonClient {
    /// # Errors
    /// There is no daemon of this user, or it is none.
    pub fn connect() -> io::Result<Self> {
        let (incoming, events, answers) = Default::default();
        let mut client = Self { stream: door::connect()?, incoming, events, answers };
        client.send(&Request::Speak { version: VERSION })?;
        Ok(client)
    }

    /// Asks to become a task of the machine: [`Answer::Enrolled`], or why not.
    ///
    /// # Errors
    /// The daemon has ended, or is of another version: then the error is `Unsupported`, and names its process.
    pub fn enrol(&mut self, who: Introduction) -> io::Result<Answer> {
        let answer = match self.ask(&Request::Enrol { who }) {
            Ok(answer) => answer,
            // It may have closed before it was asked, and said why.
            Err(error) => self.poll_answer().ok().flatten().ok_or(error)?,
        };
        if answer != (Answer::Code { code: code::OTHER_VERSION }) {
            return Ok(answer);
        }
        let pid = weft_kernel::peer(self.descriptor())?.pid;
        let text = format!("its daemon is of another version of Weft; 'kill {pid}' ends it");
        Err(io::Error::new(ErrorKind::Unsupported, text))
    }

    /// Can be read when something has come.
    pub fn descriptor(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// # Errors
    /// The daemon has ended.
    pub fn send(&mut self, request: &Request) -> io::Result<()> {
        self.stream.write_all(&framed(request))
    }

    /// Asks, and waits for the answer; what else comes is kept.
    ///
    /// # Errors
    /// The daemon has ended.
    pub fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        self.send(request)?;
        loop {
            if let Some(answer) = self.poll_answer()? {
                return Ok(answer);
            }
            weft_kernel::await_events(self.descriptor(), libc::POLLIN, None)?;
        }
    }

    /// The answer to what was sent, if it has come.
    ///
    /// # Errors
    /// The daemon has ended.
    pub fn poll_answer(&mut self) -> io::Result<Option<Answer>> {
        if self.answers.is_empty() {
            self.look()?;
        }
        Ok(self.answers.pop_front())
    }

    /// What has come unasked. Looks anew if nothing is kept.
    ///
    /// # Errors
    /// The daemon has ended, and everything was taken that it has said.
    pub fn poll_event(&mut self) -> io::Result<Option<Event>> {
        if self.events.is_empty() {
            self.look()?;
        }
        Ok(self.events.pop_front())
    }

    /// Waits until the daemon has ended, at most so long.
    pub fn await_end(&mut self, limit: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < limit && self.look().is_ok() {
            let _ = weft_kernel::await_events(self.descriptor(), libc::POLLIN, Some(limit / 10));
        }
    }

    /// Takes in what has come.
    fn look(&mut self) -> io::Result<()> {
        let mut piece = [0; PIECE];
        loop {
            let length = match weft_kernel::receive(self.descriptor(), &mut piece) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.incoming.push(&piece[..length]);
            while let Some(frame) = self.incoming.next_frame().map_err(|_| ErrorKind::InvalidData)? {
                match read(&frame).ok_or(ErrorKind::InvalidData)? {
                    Told::Answer { answer } => self.answers.push_back(answer),
                    Told::Event { event } => self.events.push_back(event),
                }
            }
            if length < PIECE {
                return Ok(());
            }
        }
    }
}
